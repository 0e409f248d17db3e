//! What a kernel is run on.

use std::fmt;

/// What a kernel is run on. `WORKBOOK_DEVICE` chooses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Device {
    /// The emulator, on the CPU.
    #[default]
    Emulator,
}

/// The environment variable that chooses the device.
pub const VARIABLE: &str = "WORKBOOK_DEVICE";

impl Device {
    /// The device that the environment asks for.
    ///
    /// # Errors
    /// One sentence with the value found and the values allowed.
    pub fn from_env() -> Result<Device, String> {
        match std::env::var_os(VARIABLE) {
            None => Ok(Device::default()),
            Some(value) => Device::named(&value.to_string_lossy()),
        }
    }

    /// The device of this name: `auto`, `emulator` or `cuda`.
    ///
    /// # Errors
    /// One sentence with the value found and the values allowed.
    pub fn named(name: &str) -> Result<Device, String> {
        match name {
            "auto" | "emulator" | "" => Ok(Device::Emulator),
            "cuda" => Err(format!(
                "{VARIABLE}=cuda: the CUDA device is not part of this build yet; set {VARIABLE}=emulator, or leave it unset"
            )),
            other => Err(format!("{VARIABLE}={other}: there is no such device; allowed are auto, emulator and cuda")),
        }
    }
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Device::Emulator => f.write_str("emulator"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        assert_eq!(Device::named("auto"), Ok(Device::Emulator));
        assert_eq!(Device::named("emulator"), Ok(Device::Emulator));
        assert!(Device::named("cuda").unwrap_err().contains("set WORKBOOK_DEVICE=emulator"));
        assert!(Device::named("gpu").unwrap_err().contains("allowed are auto, emulator and cuda"));
    }
}
