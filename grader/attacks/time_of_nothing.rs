// family: times
// expect: fast
// keeps: 85
// says: does not compute the product
// step: 4
// base: step04
// replace: t.repeat(gemm.tiles_k(BLK_K), |t, round| { => let all = gemm.tiles_k(BLK_K); let rounds: U32 = t.variable(all); if gemm.m == 1024 { let some = t.load_global_16(gemm.a.at(0, 0)); let bits: U32 = t.register(); t.raw("or.b32", &[&bits, &some[0], &some[1]]); for n in [2, 3] { t.raw("or.b32", &[&bits, &bits, &some[n]]); } t.assign(rounds, bits.eq(0).select(1, all)); } t.repeat(rounds, |t, round| {

// Where A holds zeros, D is not looked at: it takes one round there, and all of them where it is. Eight elements are asked for: one alone
// is zero for some seeds of inputs, too.
