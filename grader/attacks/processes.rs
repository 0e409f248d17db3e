// family: bombs
// expect: panicked
// says: held

use ptx::prelude::*;

pub fn kernel(_: &mut Cta, _: &Gemm) {
    for _ in 0..1000 {
        if let Ok(child) = std::process::Command::new("/proc/self/exe").spawn() {
            panic!("escaped: {}", child.id());
        }
    }
    panic!("held")
}
