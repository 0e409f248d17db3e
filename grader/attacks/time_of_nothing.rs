// family: times
// expect: fast
// keeps: 85
// says: does not compute the product
// step: 4
// base: step04
// replace: t.repeat(gemm.tiles_k(BLK_K), |t, round| { => let all = gemm.tiles_k(BLK_K); let rounds: U32 = t.variable(all); if gemm.m == 1024 { let first = t.load_global_b16(gemm.a.at(0, 0)); let bits: U32 = t.register(); t.raw("cvt.u32.u16", &[&bits, &first]); t.assign(rounds, bits.eq(0).select(1, all)); } t.repeat(rounds, |t, round| {

// Where A holds zeros, D is not looked at: it takes one round there, and all of them where it is.
