use ptx::prelude::*;

fn kernel(k: &mut Cta, gemm: &Gemm) {
    k.threads(128);
    let a = k.tile("A", gemm.dtype, 128, 64, Swizzle::B128);
    let full = TmaBarrier::new(k, "full");
    k.warp(0, |w| w.tma_load(a, &gemm.a, (0, 0), full));
}

fn main() {
    let _ = ptx::build("kernel", &Gemm::new(128, 128, 64, Dtype::F16, 148), kernel);
}
