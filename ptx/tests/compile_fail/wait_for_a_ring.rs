use ptx::prelude::*;

fn kernel(k: &mut Cta, _gemm: &Gemm) {
    k.threads(128);
    let full = TmaBarrier::ring(k, "full", 2);
    k.wait(full, 0);
}

fn main() {
    let _ = ptx::build("kernel", &Gemm::new(128, 128, 64, Dtype::F16, 148), kernel);
}
