use ptx::prelude::*;

fn kernel(k: &mut Cta, _gemm: &Gemm) {
    k.threads(128);
    let full = TmaBarrier::new(k, "full");
    k.warp(0, |w| {
        w.elect_one(|t| t.commit(full));
    });
}

fn main() {
    let _ = ptx::build("kernel", &Gemm::new(128, 128, 64, Dtype::F16, 148), kernel);
}
