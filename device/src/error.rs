//! What the driver says went wrong, and what that means.

use std::fmt;
use std::time::Duration;

/// A call of the driver that failed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Error {
    /// What was done: the launch, copy or module that it belongs to.
    pub what: String,
    /// The status: `CUDA_ERROR_ILLEGAL_ADDRESS`. Empty when it was found before the driver was asked.
    pub name: String,
    /// What it means, in a few words.
    pub meaning: String,
    /// What the driver's assembler wrote, for a module that does not load.
    pub log: String,
    /// The context is dead: nothing works in this process any more.
    pub fatal: bool,
    /// The machine is to blame, and not what was launched: its memory is taken, or broken; the driver has lost the GPU.
    pub of_the_machine: bool,
}

impl Error {
    /// A request that is refused before the driver sees it.
    pub(crate) fn refused(what: impl Into<String>, why: impl Into<String>) -> Error {
        Error { what: what.into(), name: String::new(), meaning: why.into(), ..Error::default() }
    }

    /// What the driver answered.
    pub(crate) fn of(what: &str, code: i32, name: String, said: String) -> Error {
        let meaning = meaning(code).map_or(said, str::to_string);
        let (fatal, of_the_machine) = (is_fatal(code), is_of_the_machine(code));
        Error { what: what.into(), name, meaning, log: String::new(), fatal, of_the_machine }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name.as_str() {
            "" => write!(f, "{}: {}", self.what, self.meaning)?,
            name => write!(f, "{}: {} ({name})", self.what, self.meaning)?,
        }
        if self.fatal {
            f.write_str("; the context is dead, and no other kernel can run in this process")?;
        }
        match self.log.trim() {
            "" => Ok(()),
            log => write!(f, "\n{log}"),
        }
    }
}

impl std::error::Error for Error {}

/// Why a launch did not come to its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The driver says so.
    Error(Error),
    /// It still runs. The process must be left ([`crate::leave`]): nothing but its end ends the kernel.
    Hung {
        /// The launch.
        what: String,
        /// How long it was waited for.
        after: Duration,
    },
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        Failure::Error(error)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Error(error) => error.fmt(f),
            Failure::Hung { what, after } => {
                write!(f, "{what}: the kernel did not end within {} s", after.as_secs_f64())
            }
        }
    }
}

impl std::error::Error for Failure {}

/// What a status means for a kernel, where the driver's own words say little.
fn meaning(code: i32) -> Option<&'static str> {
    Some(match code {
        2 => "the GPU's memory does not suffice",
        214 => "the GPU's memory has an error that it cannot correct",
        220 => "the link between GPUs has an error that it cannot correct",
        226 => "the GPU met an error outside of the kernel",
        200 | 209 => "the module holds no code that this GPU runs",
        218 => "the PTX text does not assemble",
        222 => "the PTX text has a later .version than the driver knows",
        700 => "a thread or a copy touched memory that is not mapped: an illegal address",
        701 => "the launch needs more registers or shared memory than an SM has",
        702 => "the kernel took longer than the display's watchdog allows",
        710 => "a device-side assertion failed",
        714 => "the call stack of a thread is corrupt, or overflowed",
        715 => {
            "an illegal instruction: one that this GPU lacks, or one whose operands it refuses (a descriptor, a tensor map)"
        }
        716 => "a load or store whose address is not a multiple of its size",
        717 => "an address of another state space than the instruction takes",
        718 => "the program counter left the code",
        719 => {
            "the kernel broke off: an exception that the driver has no name for (shared memory, a barrier, tensor memory)"
        }
        720 => "not all CTAs of a cooperative launch fit at once",
        912 => "no SM group has room for a cluster of this size",
        _ => return None,
    })
}

/// Whether the context is lost with it (CUDA driver API, `CUresult`: "the process must be terminated and relaunched").
fn is_fatal(code: i32) -> bool {
    matches!(code, 214 | 220 | 226 | 700 | 702 | 709 | 710 | 714..=719 | 721)
}

/// Whether no kernel can be the cause (CUDA driver API, `CUresult`): errors of the memory and of links between GPUs, a GPU or a driver
/// that is not there (any more). Memory that does not suffice is none of these: see `Context::check`.
fn is_of_the_machine(code: i32) -> bool {
    matches!(code, 3 | 4 | 46 | 100 | 101 | 214 | 220 | 221 | 226 | 304 | 802..=809)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_names_its_launch_and_what_is_lost() {
        let error =
            Error::of("launch of `saxpy` on 4x1x1 CTAs", 700, "CUDA_ERROR_ILLEGAL_ADDRESS".into(), String::new());
        let text = "launch of `saxpy` on 4x1x1 CTAs: a thread or a copy touched memory that is not mapped: an illegal address \
                    (CUDA_ERROR_ILLEGAL_ADDRESS); the context is dead, and no other kernel can run in this process";
        assert_eq!(error.to_string(), text);
        let error = Error::of("copy", 1, "CUDA_ERROR_INVALID_VALUE".into(), "invalid argument".into());
        assert_eq!(error.to_string(), "copy: invalid argument (CUDA_ERROR_INVALID_VALUE)");
        let error = Error::of("copy", 214, "CUDA_ERROR_ECC_UNCORRECTABLE".into(), String::new());
        assert!(error.of_the_machine && error.fatal && !Error::refused("launch", "`grid` is 0").of_the_machine);
        let hung = Failure::Hung { what: "launch of `k`".into(), after: Duration::from_secs(10) };
        assert_eq!(hung.to_string(), "launch of `k`: the kernel did not end within 10 s");
    }
}
