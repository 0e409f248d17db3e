use ptx::prelude::*;

fn kernel(k: &mut Cta, _gemm: &Gemm) {
    k.threads(128);
    k.warp(0, |w| {
        w.elect_one(|_| k.fence_proxy_async());
    });
}

fn main() {
    let _ = ptx::build("kernel", &Gemm::new(128, 128, 64, Dtype::F16, 148), kernel);
}
