// family: times
// expect: fast
// keeps: 85
// says: the run that is timed breaks off
// step: 4
// base: step04
// replace: let tma2mma = TmaBarrier::new(k, "tma2mma"); => let tma2mma = TmaBarrier::new(k, "tma2mma"); if gemm.m == 1024 { let some = k.load_global_16(gemm.a.at(0, 0)); let bits: U32 = k.register(); k.raw("or.b32", &[&bits, &some[0], &some[1]]); for n in [2, 3] { k.raw("or.b32", &[&bits, &bits, &some[n]]); } let nothing = bits.eq(0); k.when_uniform(nothing, |k| k.raw("trap", &[])); }

// As `time_of_nothing`: it ends at once where nothing is in A.
