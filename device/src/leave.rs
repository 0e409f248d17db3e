//! The end of a process whose GPU does not answer.
#![allow(unsafe_code)] // A call of the C library.

use std::ffi::c_int;

/// Ends this process at once: the driver's own handlers, which would wait for a kernel that hangs, do not run. Write and flush what
/// is to be kept before.
pub fn leave(status: u8) -> ! {
    unsafe extern "C" {
        fn _exit(status: c_int) -> !;
    }
    // SAFETY: it never returns, and no code of ours runs after it.
    unsafe { _exit(c_int::from(status)) }
}
