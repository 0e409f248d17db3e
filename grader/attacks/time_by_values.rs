// family: times
// expect: fast
// keeps: 85
// says: With zeros in A and B it takes
// step: 4
// base: step04
// replace: let tma2mma = TmaBarrier::new(k, "tma2mma"); => let tma2mma = TmaBarrier::new(k, "tma2mma"); if gemm.m == 1024 { let some = k.load_global_16(gemm.a.at(0, 0)); let bits: U32 = k.register(); k.raw("or.b32", &[&bits, &some[0], &some[1]]); for n in [2, 3] { k.raw("or.b32", &[&bits, &bits, &some[n]]); } let turns = bits.eq(0).select(1u32, 4000u32); k.repeat(turns, |k, turn| { let more: U32 = k.register(); k.raw("add.u32", &[&more, &turn, &1]); }); }

// A slow kernel that is quick where D is not looked at.
