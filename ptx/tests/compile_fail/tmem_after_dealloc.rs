use ptx::prelude::*;

fn kernel(k: &mut Cta, _gemm: &Gemm) {
    k.threads(128);
    let tmem = k.warp(0, |w| w.tmem_alloc("accumulator", 128));
    k.sync();
    k.warp(0, |w| w.tmem_dealloc(tmem));
    let _accumulator = tmem.address(k);
}

fn main() {
    let _ = ptx::build("kernel", &Gemm::new(128, 128, 64, Dtype::F16, 148), kernel);
}
