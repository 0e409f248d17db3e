use ptx::prelude::*;

fn kernel(k: &mut Cta, gemm: &Gemm) {
    k.threads(128);
    let a = k.tile("A", gemm.dtype, 128, 64, Swizzle::B128);
    let b = k.tile("B", gemm.dtype, 128, 64, Swizzle::B128);
    let tmem = k.warp(0, |w| w.tmem_alloc("accumulator", 128));
    k.sync();
    let accumulator = tmem.address(k);
    k.warp(0, |w| w.mma(accumulator, a.k_slice(0), b.k_slice(0), false));
}

fn main() {
    let _ = ptx::build("kernel", &Gemm::new(128, 128, 64, Dtype::F16, 148), kernel);
}
