//! The launch description: all that a run needs beside the PTX text. The one such type of the project.

mod buffer;
pub(crate) mod param;

pub use buffer::{Buffer, Content, Distribution, NumberType, Random};
pub use param::{Block, Field, Param, ParamValue};

use serde::{Deserialize, Serialize};

/// What is launched, on what.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Launch {
    /// Name of the `.entry`.
    pub entry: String,
    /// CTAs in x, y, z.
    pub grid: [u32; 3],
    /// CTAs of a cluster in x, y, z. `[1, 1, 1]`: launched without clusters.
    #[serde(default = "one")]
    pub cluster: [u32; 3],
    /// Threads of a CTA in x, y, z.
    pub block: [u32; 3],
    /// Bytes of dynamic shared memory.
    #[serde(default)]
    pub dynamic_shared: u32,
    /// Global memory.
    #[serde(default)]
    pub buffers: Vec<Buffer>,
    /// Kernel parameters, in order.
    #[serde(default)]
    pub params: Vec<Param>,
    /// All kernel parameters as one block of bytes, as a launch was recorded; then `params` is empty.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub param_block: Option<Block>,
    /// Names for parts of the on-chip memories; used in messages only.
    #[serde(default)]
    pub regions: Vec<Region>,
    /// Attributes of the launch.
    #[serde(default)]
    pub attributes: Attributes,
    /// Buffers to keep afterwards.
    #[serde(default)]
    pub outputs: Vec<Output>,
}

fn one() -> [u32; 3] {
    [1, 1, 1]
}

/// Attributes of a launch (`cudaLaunchAttribute`), and of the GPU that it meets.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Attributes {
    /// Clusters that run at once; the rest of the launch waits. `None`: as many as a B200 has SMs for.
    /// [`crate::Options::resident_clusters`] goes before it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resident_clusters: Option<u32>,
    /// Indices of [`Launch::buffers`] that the grid before may still write when this one begins, by programmatic dependent launch
    /// (`cudaLaunchAttributeProgrammaticStreamSerialization`): `griddepcontrol.wait` waits for that. What it writes they hold from the beginning.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub prerequisite_writes: Vec<usize>,
}

/// A buffer to keep after the run. The command `emulate` writes it; [`crate::run`] reads and writes no files.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Output {
    /// Index into [`Launch::buffers`].
    pub buffer: usize,
    /// The file that its bytes go to; a relative path counts from the launch file.
    pub file: String,
}

/// A named part of an on-chip memory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Region {
    /// The name the programmer gave it.
    pub name: String,
    /// Which memory.
    pub space: RegionSpace,
    /// First byte: from the start of the CTA's dynamic shared memory, or the first column of the CTA's first
    /// allocation of tensor memory.
    pub offset: u32,
    /// Bytes of shared memory, or columns of tensor memory.
    pub bytes: u32,
    /// What lies there.
    pub kind: RegionKind,
    /// Stage of a ring, if it is one of several.
    #[serde(default)]
    pub stage: Option<u32>,
}

/// The memory that a region is part of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RegionSpace {
    /// Dynamic shared memory.
    DynamicShared,
    /// Tensor memory.
    Tensor,
}

/// What lies in a region.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[serde(deny_unknown_fields)]
pub enum RegionKind {
    /// A matrix tile, row after row.
    Tile {
        /// Rows.
        rows: u32,
        /// Columns, in elements.
        columns: u32,
        /// Bytes of an element.
        element_bytes: u32,
        /// Bytes of the swizzle pattern's row: 0 (none), 32, 64 or 128.
        swizzle: u32,
    },
    /// An mbarrier.
    Barrier,
    /// Anything else.
    Scalar,
}
