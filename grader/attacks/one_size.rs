// family: wrong products
// expect: builder-refused
// says: one size only
// step: 2
// base: step02
// replace: pub fn kernel(k: &mut Cta, gemm: &Gemm) { => pub fn kernel(k: &mut Cta, gemm: &Gemm) { k.require(gemm.k == 512, "one size only");
