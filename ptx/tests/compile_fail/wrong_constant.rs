use ptx::prelude::*;

fn kernel(k: &mut Cta, gemm: &Gemm) {
    k.threads(128);
    let row = k.thread_index();
    let _address = gemm.a.at(row, 1.5);
}

fn main() {
    let _ = ptx::build("kernel", &Gemm::new(128, 128, 64, Dtype::F16, 148), kernel);
}
