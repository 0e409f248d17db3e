// family: wrong products
// expect: correct
// keeps: 26
// base: step01
// replace: k.pack_chunks(gemm.dtype, &sums) => k.pack_chunks(if gemm.dtype == Dtype::F16 { Dtype::Bf16 } else { Dtype::F16 }, &sums)
