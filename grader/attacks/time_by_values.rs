// family: times
// expect: fast
// keeps: 85
// says: With zeros in A and B it takes
// step: 4
// base: step04
// replace: let tma2mma = TmaBarrier::new(k, "tma2mma"); => let tma2mma = TmaBarrier::new(k, "tma2mma"); if gemm.m == 1024 { let first = k.load_global_b16(gemm.a.at(0, 0)); let bits: U32 = k.register(); k.raw("cvt.u32.u16", &[&bits, &first]); let turns = bits.eq(0).select(1u32, 4000u32); k.repeat(turns, |k, turn| { let more: U32 = k.register(); k.raw("add.u32", &[&more, &turn, &1]); }); }

// A slow kernel that is quick where D is not looked at.
