//! The CUDA driver: its functions, as far as they are used here (CUDA driver API reference).
#![allow(unsafe_code)] // Calls into the driver.

use crate::library::{self, functions};
use crate::unavailable::Unavailable;
use std::ffi::{CStr, c_char, c_int, c_uchar, c_uint, c_void};
use std::path::PathBuf;
use std::sync::OnceLock;

/// A context, module, function, stream or event of the driver.
pub(crate) type Handle = *mut c_void;
/// An address on the GPU.
pub(crate) type Address = u64;

functions! {
    /// The functions of `libcuda`, under the names that it exports.
    Driver -> c_int {
        cuInit(c_uint);
        cuDriverGetVersion(*mut c_int);
        cuGetErrorName(c_int, *mut *const c_char);
        cuGetErrorString(c_int, *mut *const c_char);
        cuDeviceGetCount(*mut c_int);
        cuDeviceGet(*mut c_int, c_int);
        cuDeviceGetName(*mut c_char, c_int, c_int);
        cuDeviceGetUuid_v2(*mut [u8; 16], c_int);
        cuDeviceGetAttribute(*mut c_int, c_int, c_int);
        cuDeviceTotalMem_v2(*mut usize, c_int);
        cuDevicePrimaryCtxRetain(*mut Handle, c_int);
        cuDevicePrimaryCtxRelease_v2(c_int);
        cuCtxSetCurrent(Handle);
        cuMemGetInfo_v2(*mut usize, *mut usize);
        cuMemAlloc_v2(*mut Address, usize);
        cuMemFree_v2(Address);
        cuMemcpyHtoD_v2(Address, *const c_void, usize);
        cuMemcpyDtoH_v2(*mut c_void, Address, usize);
        cuMemsetD8Async(Address, c_uchar, usize, Handle);
        cuModuleLoadDataEx(*mut Handle, *const c_void, c_uint, *mut c_int, *mut *mut c_void);
        cuModuleUnload(Handle);
        cuModuleGetFunction(*mut Handle, Handle, *const c_char);
        cuFuncGetAttribute(*mut c_int, c_int, Handle);
        cuFuncSetAttribute(Handle, c_int, c_int);
        cuFuncGetParamInfo(Handle, usize, *mut usize, *mut usize);
        cuLaunchKernelEx(*const LaunchConfig, Handle, *mut *mut c_void, *mut *mut c_void);
        cuStreamCreate(*mut Handle, c_uint);
        cuStreamDestroy_v2(Handle);
        cuStreamSynchronize(Handle);
        cuEventCreate(*mut Handle, c_uint);
        cuEventDestroy_v2(Handle);
        cuEventRecord(Handle, Handle);
        cuEventQuery(Handle);
        cuEventElapsedTime(*mut f32, Handle, Handle);
        cuTensorMapEncodeTiled(*mut TensorMapObject, c_int, c_uint, Address, *const u64, *const u64, *const c_uint, *const c_uint, c_int, c_int, c_int, c_int);
    }
}

/// `CUlaunchConfig`.
#[repr(C)]
pub(crate) struct LaunchConfig {
    pub(crate) grid: [c_uint; 3],
    pub(crate) block: [c_uint; 3],
    pub(crate) dynamic_shared: c_uint,
    pub(crate) stream: Handle,
    pub(crate) attributes: *mut LaunchAttribute,
    pub(crate) attribute_count: c_uint,
}

/// `CUlaunchAttribute`, whose value is a union of 64 bytes, aligned as a pointer is.
#[repr(C)]
pub(crate) struct LaunchAttribute {
    pub(crate) id: c_uint,
    pub(crate) pad: [u8; 4],
    pub(crate) value: AttributeValue,
}

/// `CUlaunchAttributeValue`, for the attributes that are three numbers.
#[repr(C, align(8))]
pub(crate) struct AttributeValue {
    pub(crate) numbers: [c_uint; 3],
    pub(crate) rest: [c_uint; 13],
}

/// `CUtensorMap`: CUDA 13 aligns it to 128 bytes, earlier versions to 64.
#[repr(C, align(128))]
#[derive(Clone, Copy)]
pub(crate) struct TensorMapObject(pub(crate) [u8; 128]);

/// Numbers of `CUresult` that are looked at.
pub(crate) mod result {
    use std::ffi::c_int;
    pub(crate) const SUCCESS: c_int = 0;
    pub(crate) const OUT_OF_MEMORY: c_int = 2;
    pub(crate) const STUB_LIBRARY: c_int = 34;
    pub(crate) const DEVICE_UNAVAILABLE: c_int = 46;
    pub(crate) const NO_DEVICE: c_int = 100;
    pub(crate) const NOT_READY: c_int = 600;
}

/// Numbers of `CUdevice_attribute`.
pub(crate) mod attribute {
    use std::ffi::c_int;
    pub(crate) const CLOCK_RATE: c_int = 13;
    pub(crate) const SMS: c_int = 16;
    pub(crate) const MEMORY_CLOCK_RATE: c_int = 36;
    pub(crate) const L2_BYTES: c_int = 38;
    pub(crate) const MAJOR: c_int = 75;
    pub(crate) const MINOR: c_int = 76;
    pub(crate) const SHARED_OPT_IN: c_int = 97;
}

/// Numbers of `CUfunction_attribute`.
pub(crate) mod function {
    use std::ffi::c_int;
    pub(crate) const MAX_THREADS: c_int = 0;
    pub(crate) const STATIC_SHARED: c_int = 1;
    pub(crate) const LOCAL_BYTES: c_int = 3;
    pub(crate) const REGISTERS: c_int = 4;
    pub(crate) const MAX_DYNAMIC_SHARED: c_int = 8;
    pub(crate) const CLUSTER_MUST_BE_SET: c_int = 10;
    pub(crate) const REQUIRED_CLUSTER: [c_int; 3] = [11, 12, 13];
    pub(crate) const NON_PORTABLE_CLUSTER: c_int = 14;
}

/// Numbers of `CUjit_option`.
pub(crate) mod jit {
    use std::ffi::c_int;
    pub(crate) const INFO_LOG: c_int = 3;
    pub(crate) const INFO_LOG_BYTES: c_int = 4;
    pub(crate) const ERROR_LOG: c_int = 5;
    pub(crate) const ERROR_LOG_BYTES: c_int = 6;
    pub(crate) const LINE_INFO: c_int = 13;
}

/// `CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION`.
pub(crate) const CLUSTER_DIMENSION: c_uint = 4;

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
    let driver = Driver::of(library).map_err(|lacks| Unavailable::DriverTooOld {
        found: format!("one without `{lacks}`"),
        wanted: version(OLDEST),
    })?;
    // SAFETY: it takes flags, which must be 0.
    match unsafe { (driver.cuInit)(0) } {
        result::SUCCESS => {}
        result::STUB_LIBRARY => return Err(Unavailable::StubDriver),
        result::NO_DEVICE => return Err(Unavailable::NoGpu),
        code => return Err(Unavailable::DriverFails { name: driver.name(code), meaning: driver.meaning(code) }),
    }
    let mut found = 0;
    // SAFETY: writes one number.
    let code = unsafe { (driver.cuDriverGetVersion)(&mut found) };
    if code == result::SUCCESS && found < OLDEST {
        return Err(Unavailable::DriverTooOld {
            found: format!("one for CUDA {}", version(found)),
            wanted: version(OLDEST),
        });
    }
    Ok(driver)
}

/// `12080` as `12.8`.
pub(crate) fn version(number: c_int) -> String {
    format!("{}.{}", number / 1000, number % 1000 / 10)
}

impl Driver {
    /// The name of a status: `CUDA_ERROR_ILLEGAL_ADDRESS`.
    pub(crate) fn name(&self, code: c_int) -> String {
        self.text(self.cuGetErrorName, code).unwrap_or_else(|| format!("CUDA error {code}"))
    }

    /// What the driver says of a status.
    pub(crate) fn meaning(&self, code: c_int) -> String {
        self.text(self.cuGetErrorString, code).unwrap_or_default()
    }

    fn text(&self, of: unsafe extern "C" fn(c_int, *mut *const c_char) -> c_int, code: c_int) -> Option<String> {
        let mut text = std::ptr::null();
        // SAFETY: writes one pointer, to a text that lives as long as the driver, or null for a number without one.
        unsafe {
            of(code, &mut text);
            (!text.is_null()).then(|| CStr::from_ptr(text).to_string_lossy().into_owned())
        }
    }

    /// The driver's CUDA version, as `13.0`.
    pub(crate) fn cuda(&self) -> String {
        let mut found = 0;
        // SAFETY: writes one number.
        unsafe { (self.cuDriverGetVersion)(&mut found) };
        version(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::mem::{align_of, offset_of, size_of};

    /// The layouts of `cuda.h` (CUDA 13.0) for 64-bit systems.
    #[test]
    fn structures_are_laid_out_as_in_cuda_h() {
        assert_eq!((size_of::<LaunchConfig>(), offset_of!(LaunchConfig, stream)), (56, 32));
        assert_eq!((offset_of!(LaunchConfig, attributes), offset_of!(LaunchConfig, attribute_count)), (40, 48));
        assert_eq!((size_of::<LaunchAttribute>(), offset_of!(LaunchAttribute, value)), (72, 8));
        assert_eq!((size_of::<TensorMapObject>(), align_of::<TensorMapObject>()), (128, 128));
    }

    #[test]
    fn versions_read_as_people_write_them() {
        assert_eq!((version(12_080), version(13_000)), ("12.8".to_string(), "13.0".to_string()));
    }
}
