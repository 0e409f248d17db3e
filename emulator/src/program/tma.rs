//! Operands of the TMA engine's instructions: bulk copies and reductions.

use super::op::Address;

/// Operands of a bulk copy.
#[derive(Debug)]
pub struct TmaOp {
    /// What is copied where.
    pub kind: TmaKind,
    /// Shared memory: destination of a load, source of a store.
    pub shared: Address,
    /// The destination may lie in another CTA (`.shared::cluster`).
    pub remote: bool,
    /// Tensor map, or global address of a plain bulk copy.
    pub map: Address,
    /// Coordinates, innermost first; empty for a plain bulk copy.
    pub coordinates: Vec<u16>,
    /// `.tile::gather4`, `.tile::scatter4`: the coordinates are those of a column and of four rows.
    pub four_rows: bool,
    /// Bytes of a plain bulk copy.
    pub bytes: Option<u16>,
    /// `.cp_mask`: which bytes of each 16 a plain store writes.
    pub mask: Option<u16>,
    /// `.ignore_oob`: how many bytes at the beginning and at the end of a plain load may lie outside of what is there.
    pub ignored: Option<[u16; 2]>,
    /// What a reduction in shared memory does: the kind is [`TmaKind::Forward`].
    pub combines: Option<Reduction>,
    /// Type of the elements of a plain reduction.
    pub element: Option<crate::tensor_map::Element>,
    /// The mbarrier of a load.
    pub barrier: Option<Address>,
    /// The multicast mask of a load.
    pub targets: Option<u16>,
    /// `cta_group::2`: the mbarrier may be the pair peer's.
    pub pair: bool,
}

/// What a bulk copy does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TmaKind {
    /// Global to shared.
    Load,
    /// Shared to global.
    Store,
    /// Shared, added to global.
    Reduce(Reduction),
    /// Global to L2.
    Prefetch,
    /// Shared to shared of another CTA.
    Forward,
}

/// What a reduction does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Reduction {
    Add,
    Min,
    Max,
    And,
    Or,
    Xor,
    Inc,
    Dec,
}
