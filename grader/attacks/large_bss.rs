// family: bombs
// expect: program-failed
// says: ended by signal

use ptx::prelude::*;
use std::sync::atomic::{AtomicU8, Ordering};

// It takes no room in the file, and more than the program may have when it starts: the kernel ends it before its first line.
static LARGE: [AtomicU8; 3 << 30] = [const { AtomicU8::new(0) }; 3 << 30];

pub fn kernel(_: &mut Cta, gemm: &Gemm) {
    LARGE[gemm.m as usize].store(1, Ordering::Relaxed);
    panic!("{}", LARGE[gemm.n as usize].load(Ordering::Relaxed))
}
