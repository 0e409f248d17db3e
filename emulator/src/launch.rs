//! The launch description: all that a run needs beside the PTX text. The one such type of the project.

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
    /// Names for parts of the on-chip memories; used in messages only.
    #[serde(default)]
    pub regions: Vec<Region>,
}

fn one() -> [u32; 3] {
    [1, 1, 1]
}

/// A piece of global memory.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Buffer {
    /// Its name in messages.
    pub name: String,
    /// Content before the launch.
    pub content: Content,
    /// Bytes from one row to the next, if it holds a matrix: messages then name row and column.
    #[serde(default)]
    pub row_bytes: Option<u32>,
    /// Bytes of an element (for messages); 1 if unknown.
    #[serde(default)]
    pub element_bytes: Option<u32>,
}

/// What a buffer holds before the launch.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Content {
    /// These bytes.
    Bytes(Vec<u8>),
    /// So many bytes, all of this value.
    Fill {
        /// Size in bytes.
        bytes: u64,
        /// The value of each.
        value: u8,
    },
    /// So many bytes that count as never written: reading them before writing is found.
    Undefined {
        /// Size in bytes.
        bytes: u64,
    },
}

impl Default for Content {
    fn default() -> Content {
        Content::Bytes(Vec::new())
    }
}

/// A kernel parameter.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Param {
    /// A 32-bit value.
    U32(u32),
    /// A 64-bit value.
    U64(u64),
    /// The address of a byte of a buffer.
    Pointer {
        /// Index into [`Launch::buffers`].
        buffer: usize,
        /// Byte in it.
        offset: u64,
    },
    /// These bytes, as they are.
    Bytes(Vec<u8>),
    /// A tensor map over a buffer, as the 128-byte object. Its address counts from the start of the buffer.
    TensorMap {
        /// Index into [`Launch::buffers`].
        buffer: usize,
        /// What `cuTensorMapEncodeTiled` takes.
        map: crate::tensor_map::TensorMap,
    },
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
