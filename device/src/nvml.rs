//! NVML: clocks, power, temperature, and what slows a GPU down (NVML API reference).
//!
//! Its few functions are declared here: cudarc does not bind them, and the crate `nvml-wrapper` (0.13), with what it needs, took 21
//! seconds of CPU time to build; this whole crate takes two.
#![allow(unsafe_code)] // Calls into NVML.

use crate::library;
use crate::unavailable::Unavailable;
use std::ffi::{CString, c_char, c_int, c_uint, c_ulonglong, c_void};
use std::path::PathBuf;
use std::sync::OnceLock;

type Handle = *mut c_void;

/// A table of functions: each field is one, loaded by its name when the table is made. All return a status.
macro_rules! functions {
    ($table:ident { $($name:ident($($argument:ty),*);)* }) => {
        #[allow(non_snake_case)]
        struct $table {
            $($name: unsafe extern "C" fn($($argument),*) -> c_int,)*
        }

        impl $table {
            /// The functions of a library, if it has all.
            fn of(library: &'static libloading::Library) -> Option<$table> {
                let symbol = |name| library::Symbol::of(library, name);
                // SAFETY: the types are the ones that NVML's documentation gives for these names.
                unsafe { Some($table { $($name: symbol(stringify!($name))?.typed(),)* }) }
            }
        }
    };
}

functions! {
    Functions {
        nvmlInit_v2();
        nvmlSystemGetDriverVersion(*mut c_char, c_uint);
        nvmlDeviceGetHandleByUUID(*const c_char, *mut Handle);
        nvmlDeviceGetMemoryInfo(Handle, *mut [c_ulonglong; 3]);
        nvmlDeviceGetUtilizationRates(Handle, *mut [c_uint; 2]);
        nvmlDeviceGetClockInfo(Handle, c_int, *mut c_uint);
        nvmlDeviceGetPowerUsage(Handle, *mut c_uint);
        nvmlDeviceGetTemperature(Handle, c_int, *mut c_uint);
        nvmlDeviceGetCurrentClocksThrottleReasons(Handle, *mut c_ulonglong);
    }
}

/// NVML of this machine.
pub struct Nvml(Functions);

/// A GPU, as NVML knows it.
pub struct Device {
    nvml: &'static Nvml,
    handle: Handle,
}

/// How a GPU is at a moment. What it does not tell is `None`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct State {
    /// Clock of the SMs, in MHz.
    pub clock: Option<u32>,
    /// Clock of the memory, in MHz.
    pub memory_clock: Option<u32>,
    /// Watts.
    pub power: Option<f64>,
    /// Degrees Celsius.
    pub temperature: Option<u32>,
    /// What slows it down, in words.
    pub slowed_by: Vec<&'static str>,
}

/// Bits of `nvmlClocksThrottleReasons`. Bit 0, idle, slows nothing down.
const REASONS: [(u32, &str); 8] = [
    (1, "clocks that an application set"),
    (2, "the power cap"),
    (3, "a hardware slowdown"),
    (4, "another GPU that it boosts with"),
    (5, "its temperature (software)"),
    (6, "its temperature (hardware)"),
    (7, "a power brake"),
    (8, "the display's clock"),
];

impl Nvml {
    /// NVML, initialised.
    ///
    /// # Errors
    /// [`Unavailable::NoNvml`].
    pub fn get() -> Result<&'static Nvml, Unavailable> {
        static NVML: OnceLock<Option<Nvml>> = OnceLock::new();
        NVML.get_or_init(Nvml::open).as_ref().ok_or(Unavailable::NoNvml)
    }

    fn open() -> Option<Nvml> {
        let names: &[&str] = if cfg!(windows) { &["nvml.dll"] } else { &["libnvidia-ml.so.1", "libnvidia-ml.so"] };
        let candidates: Vec<PathBuf> = names.iter().map(PathBuf::from).collect();
        let functions = Functions::of(library::open(&candidates)?.0)?;
        // SAFETY: takes nothing.
        (unsafe { (functions.nvmlInit_v2)() } == 0).then_some(Nvml(functions))
    }

    /// The driver's version: `580.82.07`.
    pub fn driver_version(&self) -> Option<String> {
        let mut text = [0u8; 96];
        // SAFETY: writes a text that ends with a zero within so many bytes.
        let code = unsafe { (self.0.nvmlSystemGetDriverVersion)(text.as_mut_ptr().cast(), text.len() as c_uint) };
        let end = text.iter().position(|byte| *byte == 0)?;
        (code == 0).then(|| String::from_utf8_lossy(&text[..end]).into_owned())
    }

    /// The GPU with this UUID.
    pub fn device(&'static self, uuid: &str) -> Option<Device> {
        let uuid = CString::new(uuid).ok()?;
        let mut handle = std::ptr::null_mut();
        // SAFETY: reads a text that ends with a zero, writes one handle.
        let code = unsafe { (self.0.nvmlDeviceGetHandleByUUID)(uuid.as_ptr(), &mut handle) };
        (code == 0).then_some(Device { nvml: self, handle })
    }
}

impl Device {
    /// Bytes that are free.
    pub fn free(&self) -> u64 {
        // Total, free, used.
        let mut memory = [0; 3];
        // SAFETY: writes three numbers.
        let code = unsafe { (self.nvml.0.nvmlDeviceGetMemoryInfo)(self.handle, &mut memory) };
        if code == 0 { memory[1] } else { 0 }
    }

    /// Per cent of the last second, or less, in which a kernel ran.
    pub fn busy(&self) -> u32 {
        // Kernels, memory.
        let mut shares = [0; 2];
        // SAFETY: writes two numbers.
        let code = unsafe { (self.nvml.0.nvmlDeviceGetUtilizationRates)(self.handle, &mut shares) };
        if code == 0 { shares[0] } else { 0 }
    }

    /// How it is now.
    pub fn state(&self) -> State {
        const SM: c_int = 1;
        const MEMORY: c_int = 2;
        let functions = &self.nvml.0;
        let number = |code: c_int, value: c_uint| (code == 0).then_some(value);
        let clock = |which| {
            let mut value = 0;
            // SAFETY: writes one number.
            number(unsafe { (functions.nvmlDeviceGetClockInfo)(self.handle, which, &mut value) }, value)
        };
        let (mut milliwatts, mut degrees, mut reasons) = (0, 0, 0);
        // SAFETY: each writes one number. Sensor 0 is the GPU's.
        let (power, temperature, slow) = unsafe {
            (
                (functions.nvmlDeviceGetPowerUsage)(self.handle, &mut milliwatts),
                (functions.nvmlDeviceGetTemperature)(self.handle, 0, &mut degrees),
                (functions.nvmlDeviceGetCurrentClocksThrottleReasons)(self.handle, &mut reasons),
            )
        };
        State {
            clock: clock(SM),
            memory_clock: clock(MEMORY),
            power: number(power, milliwatts).map(|milliwatts| f64::from(milliwatts) / 1000.0),
            temperature: number(temperature, degrees),
            slowed_by: if slow == 0 { words(reasons) } else { Vec::new() },
        }
    }
}

fn words(reasons: u64) -> Vec<&'static str> {
    REASONS.iter().filter(|(bit, _)| reasons >> bit & 1 == 1).map(|(_, words)| *words).collect()
}

#[cfg(test)]
mod tests {
    #[test]
    fn bits_are_told_in_words() {
        assert_eq!(super::words(0b0100_0101), ["the power cap", "its temperature (hardware)"]);
        assert!(super::words(1).is_empty(), "an idle GPU is not slowed down");
    }
}
