//! Why something of the GPU cannot be used here: one sentence each, and a way out.

use crate::target::Target;
use std::fmt;

/// Why there is no GPU, cuBLAS or NVML to work with.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Unavailable {
    /// The driver's library is not there.
    NoDriver {
        /// Names it was looked for under.
        looked_for: Vec<String>,
    },
    /// What is there is the library that programs are linked with, not the driver.
    StubDriver,
    /// The driver is older than what PTX for Blackwell needs.
    DriverTooOld {
        /// What was found.
        found: String,
        /// The CUDA version that is needed.
        wanted: String,
    },
    /// The driver does not start.
    DriverFails {
        /// The name of its status.
        name: String,
        /// What it says of it.
        meaning: String,
    },
    /// There is no GPU, or `CUDA_VISIBLE_DEVICES` hides all.
    NoGpu,
    /// None of the GPUs runs code for this target.
    OtherArchitecture {
        /// What was asked for.
        wanted: Target,
        /// The GPUs that are there, with their compute capability.
        found: Vec<String>,
    },
    /// No GPU has this UUID (any more).
    NoSuchGpu {
        /// The UUID.
        uuid: String,
    },
    /// Somebody else has the GPU for themselves.
    Busy {
        /// Its name.
        gpu: String,
    },
    /// The GPU's memory is taken.
    Full {
        /// Its name.
        gpu: String,
        /// MiB that are free, if it says so.
        free: Option<u64>,
        /// MiB that are needed.
        needed: u64,
    },
    /// No cuBLAS.
    NoCublas {
        /// Where it was looked for.
        looked_at: Vec<String>,
    },
    /// A cuBLAS that does not work.
    CublasFails {
        /// What happened.
        why: String,
    },
    /// No NVML.
    NoNvml,
}

impl Unavailable {
    /// What to do about it, as a sentence.
    pub fn way_out(&self) -> String {
        match self {
            Unavailable::NoDriver { .. } | Unavailable::StubDriver => {
                "Install NVIDIA's driver, or give the container the host's (with Docker: `--gpus all`).".into()
            }
            Unavailable::DriverTooOld { wanted, .. } => format!("Install a driver for CUDA {wanted} or later."),
            Unavailable::DriverFails { .. } => "Look whether `nvidia-smi` runs; the driver may need a restart.".into(),
            Unavailable::NoGpu => "Look at `nvidia-smi`, and whether CUDA_VISIBLE_DEVICES hides the GPU.".into(),
            Unavailable::OtherArchitecture { wanted, .. } => {
                format!("Use a machine with a GPU that runs {wanted}, or the emulator.")
            }
            Unavailable::NoSuchGpu { .. } => "Look at `nvidia-smi -L`.".into(),
            Unavailable::Busy { .. } | Unavailable::Full { .. } => {
                "Wait until the other program ends, or choose another GPU with CUDA_VISIBLE_DEVICES.".into()
            }
            Unavailable::NoCublas { .. } => {
                "`pip install nvidia-cublas` brings it; then set CUBLAS to the path of its \
                                             library, or to the folder that holds it."
                    .into()
            }
            Unavailable::CublasFails { .. } => {
                "Set CUBLAS to the path of a library that fits the driver; `pip install nvidia-cublas` brings one."
                    .into()
            }
            Unavailable::NoNvml => {
                "Install the driver's management library, `libnvidia-ml`; only clocks, power and temperature are missing without it.".into()
            }
        }
    }
}

impl fmt::Display for Unavailable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unavailable::NoDriver { looked_for } => {
                write!(f, "there is no NVIDIA driver: {} does not open", looked_for.join(" or "))
            }
            Unavailable::StubDriver => {
                f.write_str("there is no NVIDIA driver: the libcuda that was found is a stub, made for linking only")
            }
            Unavailable::DriverTooOld { found, wanted } => {
                write!(f, "the NVIDIA driver is too old: {found}; PTX for Blackwell needs CUDA {wanted}")
            }
            Unavailable::DriverFails { name, meaning } => {
                write!(f, "the NVIDIA driver does not start: {name} ({meaning})")
            }
            Unavailable::NoGpu => f.write_str("the NVIDIA driver finds no GPU"),
            Unavailable::OtherArchitecture { wanted, found } => {
                write!(f, "no GPU here runs {wanted}: there is {}", found.join(", "))
            }
            Unavailable::NoSuchGpu { uuid } => write!(f, "there is no GPU {uuid}"),
            Unavailable::Busy { gpu } => write!(f, "{gpu} is used by another program that has it for itself"),
            Unavailable::Full { gpu, free: Some(free), needed } => {
                write!(f, "the memory of {gpu} is taken: {free} MiB are free, {needed} MiB are needed")
            }
            Unavailable::Full { gpu, free: None, needed } => {
                write!(f, "the memory of {gpu} is taken: {needed} MiB are needed")
            }
            Unavailable::NoCublas { looked_at } => {
                write!(f, "there is no cuBLAS: looked at {}", looked_at.join(", "))
            }
            Unavailable::CublasFails { why } => write!(f, "cuBLAS does not work: {why}"),
            Unavailable::NoNvml => f.write_str("NVML does not open"),
        }
    }
}

impl std::error::Error for Unavailable {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_a_sentence_with_a_way_out() {
        let target = Target::named("sm_100a").unwrap();
        for (why, says) in [
            (
                Unavailable::NoDriver { looked_for: vec!["libcuda.so.1".into()] },
                "there is no NVIDIA driver: libcuda.so.1 does not open",
            ),
            (
                Unavailable::OtherArchitecture { wanted: target, found: vec!["NVIDIA H200 (9.0)".into()] },
                "no GPU here runs sm_100a: there is NVIDIA H200 (9.0)",
            ),
            (
                Unavailable::Full { gpu: "NVIDIA H200".into(), free: Some(12), needed: 512 },
                "the memory of NVIDIA H200 is taken: 12 MiB are free, 512 MiB are needed",
            ),
            (
                Unavailable::Full { gpu: "NVIDIA H200".into(), free: None, needed: 512 },
                "the memory of NVIDIA H200 is taken: 512 MiB are needed",
            ),
            (
                Unavailable::DriverTooOld { found: "one for CUDA 12.2".into(), wanted: "12.8".into() },
                "the NVIDIA driver is too old: one for CUDA 12.2; PTX for Blackwell needs CUDA 12.8",
            ),
        ] {
            assert_eq!(why.to_string(), says);
            assert!(why.way_out().ends_with('.'), "{why}");
        }
    }
}
