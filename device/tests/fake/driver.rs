//! A CUDA driver for `opening.rs`: a library of the C interface, whose one GPU has the host's memory. Layouts and numbers are written
//! here as `cuda.h` has them, and not taken from the bindings that are tested with it. `FAKE` says what is wrong with it.
#![allow(non_snake_case, clippy::missing_safety_doc)]

use std::ffi::{c_char, c_int, c_uint, c_void};

fn fake(what: &str) -> bool {
    std::env::var("FAKE").is_ok_and(|fake| fake == what)
}

/// Functions that write one value, their first argument, and succeed.
macro_rules! give {
    ($($name:ident($ty:ty = $value:expr);)*) => {$(
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(to: *mut $ty) -> c_int {
            unsafe { *to = $value };
            0
        }
    )*};
}

/// Functions that do nothing, and succeed.
macro_rules! succeed {
    ($($name:ident)*) => {$(
        #[unsafe(no_mangle)]
        pub extern "C" fn $name() -> c_int { 0 }
    )*};
}

give! {
    cuDriverGetVersion(c_int = if fake("old") { 12_020 } else { 13_010 });
    cuDeviceGetCount(c_int = 1);
    cuDeviceGet(c_int = 0);
    cuDeviceGetUuid_v2([u8; 16] = [0xab; 16]);
    cuDeviceTotalMem_v2(usize = 1 << 36);
    cuDevicePrimaryCtxRetain(usize = 1);
    cuStreamCreate(usize = 2);
    cuModuleLoadDataEx(usize = 3);
    cuModuleGetFunction(usize = 4);
    cuEventCreate(usize = 5);
    cuEventElapsedTime_v2(f32 = 1.5);
}
succeed! {
    cuDevicePrimaryCtxRelease_v2 cuCtxSetCurrent cuMemFree_v2 cuMemHostAlloc cuMemHostGetDevicePointer_v2 cuMemFreeHost cuModuleUnload cuStreamDestroy_v2 cuEventDestroy_v2 cuEventRecord
    cuEventQuery cuFuncSetAttribute
}
#[cfg(not(lacking))]
succeed! { cuTensorMapEncodeTiled }

#[unsafe(no_mangle)]
pub extern "C" fn cuInit(_flags: c_uint) -> c_int {
    match () {
        () if fake("stub") => 34,
        () if fake("unknown") => 4711,
        () => 0,
    }
}

/// It has no name for any number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuGetErrorName(_code: c_int, to: *mut *const c_char) -> c_int {
    unsafe { *to = std::ptr::null() };
    1
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuGetErrorString(code: c_int, to: *mut *const c_char) -> c_int {
    unsafe { cuGetErrorName(code, to) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuDeviceGetName(to: *mut c_char, _bytes: c_int, _device: c_int) -> c_int {
    unsafe { std::ptr::copy_nonoverlapping(c"A fake".as_ptr(), to, 7) };
    0
}

/// Each attribute of the GPU is its own number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuDeviceGetAttribute(to: *mut c_int, which: c_int, _device: c_int) -> c_int {
    unsafe { *to = which };
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuMemGetInfo_v2(free: *mut usize, total: *mut usize) -> c_int {
    unsafe { (*free, *total) = (1 << 35, 1 << 36) };
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuMemAlloc_v2(to: *mut u64, bytes: usize) -> c_int {
    unsafe { *to = vec![0u8; bytes].leak().as_ptr() as u64 };
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuMemcpyHtoD_v2(to: u64, from: *const u8, bytes: usize) -> c_int {
    unsafe { std::ptr::copy_nonoverlapping(from, to as *mut u8, bytes) };
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuMemcpyDtoH_v2(to: *mut u8, from: u64, bytes: usize) -> c_int {
    unsafe { std::ptr::copy_nonoverlapping(from as *const u8, to, bytes) };
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuMemsetD8Async(to: u64, value: u8, bytes: usize, _stream: usize) -> c_int {
    unsafe { std::ptr::write_bytes(to as *mut u8, value, bytes) };
    0
}

/// 1024 threads at most, and 0 of all else.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuFuncGetAttribute(to: *mut c_int, which: c_int, _function: usize) -> c_int {
    unsafe { *to = if which == 0 { 1024 } else { 0 } };
    0
}

/// Kernels take one address.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuFuncGetParamInfo(_function: usize, n: usize, at: *mut usize, bytes: *mut usize) -> c_int {
    unsafe { (*at, *bytes) = (0, 8) };
    c_int::from(n > 0)
}

/// `CUlaunchConfig`.
#[repr(C)]
pub struct Config {
    extents: [c_uint; 6],
    shared: c_uint,
    stream: usize,
    attributes: *const [c_uint; 18],
    count: c_uint,
}

/// A kernel of any name writes what it was launched with to the address: extents, shared memory, stream, number of attributes, and of
/// the first attribute what it is and its three numbers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuLaunchKernelEx(
    config: *const Config,
    function: usize,
    parameters: *const *const u64,
    _extra: *const c_void,
) -> c_int {
    unsafe {
        let config = &*config;
        let attribute = *config.attributes;
        let mut words = config.extents.to_vec();
        words.extend([config.shared, config.stream as c_uint, config.count]);
        words.extend([attribute[0], attribute[2], attribute[3], attribute[4], function as c_uint]);
        std::ptr::copy_nonoverlapping(words.as_ptr(), **parameters as *mut c_uint, words.len());
    }
    0
}

/// A status that came with CUDA 13.1 (`CUDA_ERROR_GRAPH_RECAPTURE_FAILURE`), of which bindings for 13.0 know nothing.
#[unsafe(no_mangle)]
pub extern "C" fn cuStreamSynchronize(_stream: usize) -> c_int {
    918
}
