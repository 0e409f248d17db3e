use ptx::prelude::*;

fn kernel(k: &mut Cta, _gemm: &Gemm) {
    k.threads(128);
    k.warpgroup(0, |wg| wg.warp(0, |w| w.sync_warpgroup(1)));
}

fn main() {
    let _ = ptx::build("kernel", &Gemm::new(128, 128, 64, Dtype::F16, 148), kernel);
}
