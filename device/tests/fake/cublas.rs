//! A cuBLAS for `opening.rs`, whose product looks at its arguments: their numbers are written here as cuBLAS's documentation has them.
#![allow(non_snake_case, clippy::missing_safety_doc, clippy::too_many_arguments)]

use std::ffi::c_int;

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cublasCreate_v2(to: *mut usize) -> c_int {
    unsafe { *to = 7 };
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cublasGetVersion_v2(_handle: usize, to: *mut c_int) -> c_int {
    unsafe { *to = 131_002 };
    0
}

#[unsafe(no_mangle)]
pub extern "C" fn cublasDestroy_v2(_handle: usize) -> c_int {
    0
}

#[unsafe(no_mangle)]
pub extern "C" fn cublasSetStream_v2(_handle: usize, stream: usize) -> c_int {
    c_int::from(stream != 2)
}

#[unsafe(no_mangle)]
pub extern "C" fn cublasSetWorkspace_v2(_handle: usize, _address: u64, bytes: usize) -> c_int {
    c_int::from(bytes != 32 << 20)
}

/// Anything but FP32 sums is answered with a status that has no name.
#[unsafe(no_mangle)]
pub extern "C" fn cublasSetMathMode(_handle: usize, mode: c_int) -> c_int {
    if mode == 16 { 0 } else { 4711 }
}

/// Writes the first two bytes of its B to D, if all else is as it should be; its status says what is not.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cublasGemmEx(
    handle: usize,
    of_a: c_int,
    of_b: c_int,
    m: c_int,
    n: c_int,
    k: c_int,
    alpha: *const f32,
    _a: u64,
    a_type: c_int,
    a_step: c_int,
    b: u64,
    b_type: c_int,
    b_step: c_int,
    beta: *const f32,
    d: u64,
    d_type: c_int,
    d_step: c_int,
    compute: c_int,
    algorithm: c_int,
) -> c_int {
    unsafe {
        match () {
            () if (handle, of_a, of_b) != (7, 1, 0) => 101,
            () if (m, n, k) != (16, 8, 32) => 102,
            () if (*alpha, *beta) != (1.0, 0.0) => 103,
            () if (a_type, b_type, d_type) != (14, 14, 14) => 104,
            () if (a_step, b_step, d_step) != (32, 32, 16) => 105,
            () if (compute, algorithm) != (68, -1) => 106,
            () => {
                std::ptr::copy_nonoverlapping(b as *const u8, d as *mut u8, 2);
                0
            }
        }
    }
}
