//! A launch description on a GPU: what the emulator can run can be run there, by the same description.
//!
//! A kernel that hangs or breaks a rule takes its process with it. So the judge's kernels run in processes of their own ([`Card`]),
//! which are this program again, asked with `--on-gpu`.

mod answer;
mod card;
mod parameters;
mod tied;
mod timed;
pub(crate) mod verify;
pub mod work;

pub use answer::asked;
pub(crate) use card::waiting;
pub use card::{Card, Runner, end};
pub use tied::leave_with_the_parent;

use device::{Gpu, Touched};
use emulator::{Attributes, Content, Launch};
use std::fmt;
use std::fs;
use std::path::Path;
use std::time::Duration;

/// How long a kernel may run. The largest one of the workbook takes milliseconds.
pub const TIMEOUT: Duration = Duration::from_secs(10);

/// What a launch left.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outputs {
    /// Each buffer's bytes, in the order of [`Launch::buffers`].
    pub buffers: Vec<Vec<u8>>,
    /// How long the kernel ran.
    pub milliseconds: f64,
    /// What was written next to a buffer.
    pub touched: Vec<Touched>,
    /// What the driver's assembler said though it took the text.
    pub log: String,
}

/// Why a launch gave no outputs.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum CudaFailure {
    /// The description asks for something that a GPU cannot do.
    Refused {
        /// The field: `buffers[0].content`.
        field: String,
        /// What is wrong with it.
        why: String,
    },
    /// The driver says so.
    Failed(device::Error),
    /// The kernel did not end: leave the process ([`device::leave`]).
    Hung {
        /// The launch.
        what: String,
        /// How long it was waited for.
        after: Duration,
    },
}

impl CudaFailure {
    /// The machine is to blame, and no kernel: see [`device::Error::of_the_machine`].
    pub fn is_of_the_machine(&self) -> bool {
        matches!(self, CudaFailure::Failed(error) if error.of_the_machine)
    }

    /// The driver's name of what went wrong, or one of ours.
    pub fn code(&self) -> &str {
        match self {
            CudaFailure::Refused { .. } => "refused",
            CudaFailure::Failed(error) if error.name.is_empty() => "refused",
            CudaFailure::Failed(error) => &error.name,
            CudaFailure::Hung { .. } => "hang",
        }
    }
}

impl fmt::Display for CudaFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CudaFailure::Refused { field, why } => write!(f, "`{field}` {why}"),
            CudaFailure::Failed(error) => error.fmt(f),
            CudaFailure::Hung { what, after } => {
                write!(f, "{what}: the kernel did not end within {} s", after.as_secs_f64())
            }
        }
    }
}

impl std::error::Error for CudaFailure {}

impl From<device::Error> for CudaFailure {
    fn from(error: device::Error) -> CudaFailure {
        CudaFailure::Failed(error)
    }
}

impl From<device::Failure> for CudaFailure {
    fn from(failure: device::Failure) -> CudaFailure {
        match failure {
            device::Failure::Error(error) => CudaFailure::Failed(error),
            device::Failure::Hung { what, after } => CudaFailure::Hung { what, after },
        }
    }
}

pub(crate) fn refused(field: impl Into<String>, why: impl Into<String>) -> CudaFailure {
    CudaFailure::Refused { field: field.into(), why: why.into() }
}

/// A launch on a GPU: kernel, buffers and parameters, ready to run any number of times.
pub struct Ready {
    /// The kernel.
    pub kernel: device::Kernel,
    /// The buffers, in the order of [`Launch::buffers`], with their content.
    pub buffers: Vec<device::Buffer>,
    /// What is launched.
    pub launch: device::Launch,
}

/// Runs a launch once, from PTX text to the bytes that it left, for [`TIMEOUT`] at most.
///
/// # Errors
/// [`CudaFailure`]. After one that [`Gpu::is_dead`] tells, nothing else runs in this process.
pub fn run(gpu: &Gpu, ptx: &str, launch: &Launch) -> Result<Outputs, CudaFailure> {
    run_for(gpu, ptx, launch, TIMEOUT)
}

/// The same, for so long at most.
///
/// # Errors
/// As [`run`].
pub fn run_for(gpu: &Gpu, ptx: &str, launch: &Launch, timeout: Duration) -> Result<Outputs, CudaFailure> {
    run_marked(gpu, ptx, launch, timeout, None)
}

/// The same; while the kernel runs, there is a file `mark`. So who waits for this process can tell whether the kernel is to blame.
///
/// # Errors
/// As [`run`].
pub fn run_marked(
    gpu: &Gpu,
    ptx: &str,
    launch: &Launch,
    timeout: Duration,
    mark: Option<&Path>,
) -> Result<Outputs, CudaFailure> {
    let ready = prepare(gpu, ptx, launch)?;
    if let Some(mark) = mark {
        // Without it no kernel is blamed for a process that does not answer; one that hangs is found here all the same.
        let _ = fs::write(mark, "");
    }
    let ran = gpu.launch_bounded(&ready.kernel, &ready.launch, timeout);
    if let Some(mark) = mark {
        let _ = fs::remove_file(mark);
    }
    let milliseconds = ran?;
    let mut outputs = Outputs { milliseconds, log: ready.kernel.log().to_string(), ..Outputs::default() };
    for buffer in &ready.buffers {
        outputs.buffers.push(buffer.read()?);
        outputs.touched.extend(buffer.touched()?);
    }
    Ok(outputs)
}

/// Loads the kernel, makes and fills the buffers, packs the parameters. Every field of the description is honoured or refused,
/// but for what stands in messages only (`regions`, rows and elements of buffers) and `outputs`, which are the caller's to write.
///
/// # Errors
/// As [`run`].
pub fn prepare(gpu: &Gpu, ptx: &str, launch: &Launch) -> Result<Ready, CudaFailure> {
    // Each field by name: a new one must be thought of here.
    let Launch {
        entry,
        grid,
        cluster,
        block,
        dynamic_shared,
        buffers,
        params,
        param_block,
        regions: _,
        attributes: Attributes { resident_clusters, prerequisite_writes: _ },
        outputs: _,
    } = launch;
    if resident_clusters.is_some() {
        let why = "cannot be chosen on a GPU, which runs as many clusters at once as fit (try: Leave it out.)";
        return Err(refused("attributes.resident_clusters", why));
    }
    if param_block.is_some() && !params.is_empty() {
        return Err(refused("param_block", "goes instead of `params`, not beside them"));
    }
    let kernel = gpu.load(ptx, entry)?;
    let mut made = Vec::new();
    for (n, buffer) in buffers.iter().enumerate() {
        made.push(fill(gpu, n, buffer)?);
    }
    let extents: Vec<(u64, u64)> = made.iter().map(|buffer| (buffer.address(), buffer.bytes() as u64)).collect();
    let encode = |map: &device::TensorMap| map.encode().map_err(|error| error.to_string());
    let packed = parameters::Packing { buffers: &extents, encode: &encode };
    for (n, buffer) in buffers.iter().enumerate() {
        if let Content::Struct(block) = &buffer.content {
            made[n].write(&packed.block(&format!("buffers[{n}].content.struct"), block)?)?;
        }
    }
    let parameters = match param_block {
        Some(block) => {
            let bytes = packed.block("param_block", block)?;
            device::Launch::split(&bytes, kernel.parameters()).map_err(|why| refused("param_block", why))?
        }
        None => packed.list(params)?,
    };
    let launch = device::Launch {
        grid: *grid,
        block: *block,
        // In a launch description, a cluster of one CTA is none.
        cluster: (*cluster != [1, 1, 1]).then_some(*cluster),
        dynamic_shared: *dynamic_shared,
        parameters,
    };
    Ok(Ready { kernel, buffers: made, launch })
}

/// A buffer with its content. What counts as never written is poisoned: it reads as NaN.
fn fill(gpu: &Gpu, n: usize, described: &emulator::Buffer) -> Result<device::Buffer, CudaFailure> {
    let emulator::Buffer { name, content, row_bytes: _, element_bytes: _ } = described;
    let bytes = content.size().map_err(|why| refused(format!("buffers[{n}].content"), format!("is {why}")))?;
    let buffer = gpu.buffer(name, bytes)?;
    match content {
        Content::Bytes(bytes) => buffer.write(bytes)?,
        Content::Fill { value, .. } => buffer.fill(*value)?,
        // Its addresses are known when all buffers are there.
        Content::Undefined { .. } | Content::Struct(_) => {}
        Content::Random(random) => buffer.write(&random.bytes())?,
        // Its size is an error already.
        Content::File(path) => return Err(refused(format!("buffers[{n}].content"), format!("is the file `{path}`"))),
    }
    Ok(buffer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_has_a_code_and_a_sentence() {
        let refused = refused("attributes.resident_clusters", "cannot be chosen on a GPU");
        assert_eq!(
            (refused.code(), refused.to_string().as_str()),
            ("refused", "`attributes.resident_clusters` cannot be chosen on a GPU")
        );
        let hung = CudaFailure::Hung { what: "launch of `k`".into(), after: TIMEOUT };
        assert_eq!(
            (hung.code(), hung.to_string().as_str()),
            ("hang", "launch of `k`: the kernel did not end within 10 s")
        );
    }
}
