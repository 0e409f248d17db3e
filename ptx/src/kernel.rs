//! What a build gives: a kernel's PTX text with all that a launch of it needs, or the list of what is wrong.

use crate::gemm::Gemm;
use crate::scope::Cta;
use crate::state;
use crate::tile::Swizzle;
use std::fmt;
use std::panic::Location;

/// Writes a kernel: a function that runs once, on the CPU, and records instructions.
pub type KernelFn = fn(&mut Cta, &Gemm);

/// A line of Rust source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Place {
    /// File, as the compiler names it: relative to the workspace root.
    pub file: &'static str,
    /// Line, from 1.
    pub line: u32,
    /// Column, from 1.
    pub column: u32,
}

impl Place {
    /// The place of the call that led here, through every function marked `#[track_caller]`.
    #[track_caller]
    pub(crate) fn caller() -> Place {
        let location = Location::caller();
        Place { file: location.file(), line: location.line(), column: location.column() }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.file, self.line, self.column)
    }
}

/// Something that was refused while building.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BuildError {
    /// The call that was refused.
    pub place: Place,
    /// What is wrong, with the value found and the values allowed.
    pub message: String,
    /// One thing to try.
    pub help: String,
}

impl fmt::Display for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}\n  try: {}", self.place, self.message, self.help)
    }
}

impl std::error::Error for BuildError {}

/// A kernel parameter.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Param {
    /// The address of a matrix in global memory, by the name of the matrix: `"A"`, `"B"` or `"D"`.
    Pointer(&'static str),
    /// A tensor map, by value: 128 bytes.
    TensorMap(TensorMap),
}

/// A tensor map that a launch must make: it describes a matrix to TMA, and how its boxes lie in shared memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TensorMap {
    /// The matrix: `"A"`, `"B"` or `"D"`.
    pub matrix: &'static str,
    /// Rows of a box.
    pub box_rows: u32,
    /// Columns of a box, in elements.
    pub box_columns: u32,
    /// How a box lies in shared memory.
    pub swizzle: Swizzle,
    /// The parameter's name in the PTX.
    pub name: String,
}

/// An on-chip memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(rename_all = "snake_case", deny_unknown_fields)
)]
pub enum Space {
    /// Dynamic shared memory.
    DynamicShared,
    /// Tensor memory.
    Tensor,
}

/// What lies in a [`Region`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(rename_all = "snake_case", deny_unknown_fields)
)]
pub enum RegionKind {
    /// A matrix tile, row after row.
    Tile {
        /// Rows.
        rows: u32,
        /// Columns, in elements.
        columns: u32,
        /// Bytes of an element.
        element_bytes: u32,
        /// Bytes of a row of the swizzle pattern: 0 (none), 32, 64 or 128.
        swizzle: u32,
    },
    /// An mbarrier.
    Barrier,
    /// Anything else.
    Scalar,
}

/// A named part of an on-chip memory. Names are for messages: they change nothing in the kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(deny_unknown_fields))]
pub struct Region {
    /// The name given in the kernel's source.
    pub name: String,
    /// Which memory.
    pub space: Space,
    /// First byte of dynamic shared memory, or first column from that of the CTA's first tensor memory allocation.
    pub offset: u32,
    /// Bytes of shared memory, or columns of tensor memory.
    pub bytes: u32,
    /// What lies there.
    pub kind: RegionKind,
    /// Stage of a ring, if it is one of several.
    pub stage: Option<u32>,
}

/// A piece of a kernel that is still to be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Todo {
    /// Its number: step, dot, number in the step.
    pub id: &'static str,
    /// The call to `todo`.
    pub place: Place,
}

/// A kernel, built.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kernel {
    /// Name of the `.entry`.
    pub name: String,
    /// The PTX text.
    pub text: String,
    /// CTAs in x, y, z.
    pub grid: [u32; 3],
    /// CTAs of a cluster in x, y, z.
    pub cluster: [u32; 3],
    /// Threads of a CTA in x, y, z.
    pub block: [u32; 3],
    /// Bytes of dynamic shared memory that a CTA needs.
    pub dynamic_shared: u32,
    /// Parameters, in order.
    pub params: Vec<Param>,
    /// Names for parts of the on-chip memories.
    pub regions: Vec<Region>,
    /// What is still to be written, in order.
    pub todos: Vec<Todo>,
    /// Tensor memory that is allocated and never freed, each at its allocation. Such a kernel runs, and its result may
    /// be right: so that is no error of the build, but who judges the kernel must not let it pass. Empty while
    /// [`Kernel::todos`] is not: one of them may be the one that frees.
    pub leaks: Vec<BuildError>,
}

/// Builds a kernel: runs `body` once, on the CPU, and gives the PTX of what it asked for.
///
/// # Errors
/// All that was refused, in order, each with the file and line of the call. What follows from a refused call (a
/// register that it did not give, a tile that does not exist) is no error of its own, and what a line repeats in an
/// unrolled loop is told once, with a count.
#[track_caller]
pub fn build(name: &str, gemm: &Gemm, body: impl FnOnce(&mut Cta, &Gemm)) -> Result<Kernel, Vec<BuildError>> {
    let building = state::Building::begin(name, gemm, Place::caller()).map_err(|error| vec![error])?;
    building.run(|| body(&mut Cta::outermost(), gemm));
    building.finish()
}
