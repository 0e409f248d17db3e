//! The CUDA driver: its functions, as far as they are used here (CUDA driver API reference), with the types of cudarc's bindings.
#![allow(unsafe_code)] // Calls into the driver.

use crate::library::{self, Symbol, call, symbols};
use crate::unavailable::Unavailable;
use cudarc::driver::sys;
use std::ffi::{CStr, c_char, c_int};
use std::path::PathBuf;
use std::sync::OnceLock;

symbols! {
    /// What every driver has, however old.
    Start {
        cuInit
        cuDriverGetVersion
        cuGetErrorName
        cuGetErrorString
    }
}

symbols! {
    /// All else, under the names that `libcuda` exports. `cuda.h` makes shorter names of those that end with a version.
    Functions {
        cuDeviceGetCount
        cuDeviceGet
        cuDeviceGetName
        cuDeviceGetUuid_v2
        cuDeviceGetAttribute
        cuDeviceTotalMem_v2
        cuDevicePrimaryCtxRetain
        cuDevicePrimaryCtxRelease_v2
        cuCtxSetCurrent
        cuMemGetInfo_v2
        cuMemAlloc_v2
        cuMemFree_v2
        cuMemHostAlloc
        cuMemHostGetDevicePointer_v2
        cuMemFreeHost
        cuMemcpyHtoD_v2
        cuMemcpyDtoH_v2
        cuMemsetD8Async
        cuModuleLoadDataEx
        cuModuleUnload
        cuModuleGetFunction
        cuFuncGetAttribute
        cuFuncSetAttribute
        cuFuncGetParamInfo
        cuLaunchKernelEx
        cuStreamCreate
        cuStreamDestroy_v2
        cuStreamSynchronize
        cuEventCreate
        cuEventDestroy_v2
        cuEventRecord
        cuEventQuery
        cuEventElapsedTime_v2
        cuTensorMapEncodeTiled
    }
}

/// The driver of this machine.
pub(crate) struct Driver {
    start: Start,
    pub(crate) functions: Functions,
}

/// Calls a function of the driver: `cuda!(driver, cuMemFree_v2(address))`. Gives its status, an integer.
macro_rules! cuda {
    ($driver:expr, $name:ident($($argument:expr),* $(,)?)) => {{
        use cudarc::driver::sys;
        $crate::library::call!(sys, $driver.functions, $name($($argument),*))
    }};
}
pub(crate) use cuda;

/// Numbers of `CUresult` that are looked at.
pub(crate) mod result {
    use cudarc::driver::sys::CUresult::*;
    use std::ffi::c_int;
    pub(crate) const SUCCESS: c_int = CUDA_SUCCESS as c_int;
    pub(crate) const OUT_OF_MEMORY: c_int = CUDA_ERROR_OUT_OF_MEMORY as c_int;
    pub(crate) const STUB_LIBRARY: c_int = CUDA_ERROR_STUB_LIBRARY as c_int;
    pub(crate) const DEVICE_UNAVAILABLE: c_int = CUDA_ERROR_DEVICE_UNAVAILABLE as c_int;
    pub(crate) const NO_DEVICE: c_int = CUDA_ERROR_NO_DEVICE as c_int;
    pub(crate) const NOT_READY: c_int = CUDA_ERROR_NOT_READY as c_int;
}

/// The oldest CUDA version that assembles for `sm_100a` (PTX ISA 8.6, release notes): its driver's number.
const OLDEST: c_int = 12_080;

/// The driver of this machine, initialised.
///
/// # Errors
/// [`Unavailable`]: no driver, or one that is too old.
pub(crate) fn driver() -> Result<&'static Driver, Unavailable> {
    static DRIVER: OnceLock<Result<Driver, Unavailable>> = OnceLock::new();
    DRIVER.get_or_init(open).as_ref().map_err(Clone::clone)
}

fn open() -> Result<Driver, Unavailable> {
    let names: &[&str] = if cfg!(windows) { &["nvcuda.dll"] } else { &["libcuda.so.1", "libcuda.so"] };
    let candidates: Vec<PathBuf> = names.iter().map(PathBuf::from).collect();
    let Some((library, _)) = library::open(&candidates) else {
        return Err(Unavailable::NoDriver { looked_for: names.iter().map(ToString::to_string).collect() });
    };
    let too_old = |found| Unavailable::DriverTooOld { found, wanted: version(OLDEST) };
    let lacks = |name| too_old(format!("one without `{name}`"));
    let start = Start::of(library).map_err(lacks)?;
    // SAFETY: it takes flags, which must be 0.
    match unsafe { call!(sys, start, cuInit(0)) } {
        result::SUCCESS => {}
        result::STUB_LIBRARY => return Err(Unavailable::StubDriver),
        result::NO_DEVICE => return Err(Unavailable::NoGpu),
        code => return Err(Unavailable::DriverFails { name: start.name(code), meaning: start.meaning(code) }),
    }
    let mut found = 0;
    // SAFETY: writes one number.
    let code = unsafe { call!(sys, start, cuDriverGetVersion(&mut found)) };
    if code == result::SUCCESS && found < OLDEST {
        return Err(too_old(format!("one for CUDA {}", version(found))));
    }
    Ok(Driver { functions: Functions::of(library).map_err(lacks)?, start })
}

/// `12080` as `12.8`.
pub(crate) fn version(number: c_int) -> String {
    format!("{}.{}", number / 1000, number % 1000 / 10)
}

impl Driver {
    /// The name of a status: `CUDA_ERROR_ILLEGAL_ADDRESS`.
    pub(crate) fn name(&self, code: c_int) -> String {
        self.start.name(code)
    }

    /// What the driver says of a status.
    pub(crate) fn meaning(&self, code: c_int) -> String {
        self.start.meaning(code)
    }

    /// The driver's CUDA version, as `13.0`.
    pub(crate) fn cuda(&self) -> String {
        let mut found = 0;
        // SAFETY: writes one number.
        unsafe { call!(sys, self.start, cuDriverGetVersion(&mut found)) };
        version(found)
    }
}

impl Start {
    fn name(&self, code: c_int) -> String {
        text(self.cuGetErrorName, code).unwrap_or_else(|| format!("CUDA error {code}"))
    }

    fn meaning(&self, code: c_int) -> String {
        text(self.cuGetErrorString, code).unwrap_or_default()
    }
}

/// What one of the two functions says of a status, which need not have a name: so the status is an integer here, as it is in C.
fn text(of: Symbol, code: c_int) -> Option<String> {
    type Function = unsafe extern "C" fn(c_int, *mut *const c_char) -> c_int;
    let mut text = std::ptr::null();
    // SAFETY: writes one pointer, to a text that lives as long as the driver, or null for a number without one.
    unsafe {
        of.typed::<Function>()(code, &mut text);
        (!text.is_null()).then(|| CStr::from_ptr(text).to_string_lossy().into_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::mem::{align_of, offset_of, size_of};

    /// cudarc's layouts are those of `cuda.h` (CUDA 13.0) for 64-bit systems.
    #[test]
    fn structures_are_laid_out_as_in_cuda_h() {
        assert_eq!((size_of::<sys::CUlaunchConfig>(), offset_of!(sys::CUlaunchConfig, hStream)), (56, 32));
        assert_eq!((offset_of!(sys::CUlaunchConfig, attrs), offset_of!(sys::CUlaunchConfig, numAttrs)), (40, 48));
        assert_eq!((size_of::<sys::CUlaunchAttribute>(), offset_of!(sys::CUlaunchAttribute, value)), (72, 8));
        assert_eq!((size_of::<sys::CUtensorMap>(), align_of::<sys::CUtensorMap>()), (128, 128));
    }

    #[test]
    fn versions_read_as_people_write_them() {
        assert_eq!((version(12_080), version(13_000)), ("12.8".to_string(), "13.0".to_string()));
    }
}
