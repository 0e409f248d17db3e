//! What a run gives back.

use crate::diagnostic::{Diagnostic, Label, Place};
use serde::Serialize;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

/// The outcome of a run.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// All CTAs ran to their end.
    pub completed: bool,
    /// Errors and findings, root causes first. Empty: nothing is wrong.
    pub findings: Vec<Diagnostic>,
    /// Rules broken that no machine code would show.
    pub notes: Vec<Diagnostic>,
    /// What this run could not check; never empty and "clean" at once.
    pub incomplete: Vec<String>,
    /// Whether an interleaving of this launch can get stuck.
    pub deadlock: Deadlock,
    /// Statements by which time decides what warps do: other schedules may take other paths, of which this run says nothing.
    pub timing: Vec<Label>,
    /// Simulated cycles from the launch to the end of the last CTA.
    pub cycles: u64,
    /// Instructions executed, per warp.
    pub instructions: u64,
    /// Clusters that ran, and those of them that computed values ([`crate::Options::values`]).
    pub clusters: u32,
    /// See [`Report::clusters`].
    pub computed_clusters: u32,
    /// How much of the GPU's throughput the run used.
    pub usage: Usage,
    /// The buffers afterwards, in the order of the launch description.
    pub buffers: Vec<Memory>,
    /// The CTAs' on-chip memories as they left them, if asked for ([`crate::Options::keep_ctas`]).
    pub ctas: Vec<CtaState>,
    /// What happened, if asked for ([`crate::Options::trace`]): in the order of [`Event::start`]; of what began in the same cycle,
    /// clusters by their number, and what a cluster did in the order in which it was simulated. The same in every run.
    pub trace: Vec<Event>,
    /// The kernel's own shared variables, by which a [timeline](crate::timeline) names what events say of shared memory.
    pub variables: Vec<Variable>,
    /// What the kernel printed (`printf`): cluster by cluster, in each in the order in which it was simulated.
    pub printed: Vec<Printed>,
    /// Texts more that it printed: of a cluster the first thousand are kept.
    pub printed_beyond: u64,
}

/// A variable of a kernel in shared memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Variable {
    /// What the kernel calls it.
    pub name: String,
    /// Where it begins, from the start of dynamic shared memory: negative, as it lies before that.
    pub offset: i32,
    /// So many bytes it takes.
    pub bytes: u32,
}

/// A text that a thread printed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Printed {
    /// The thread and its CTA.
    pub thread: String,
    /// As it was printed: calls are put together until a line ends.
    pub text: String,
}

/// Whether any interleaving in which all warps take the paths of this run can get stuck.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Deadlock {
    /// The run did not come to its end, or no rule was checked.
    #[default]
    NotJudged,
    /// Proved: none can.
    Impossible,
    /// One is known: this run, or the one that a finding describes.
    Possible,
    /// None was found, and none was ruled out: why, one sentence each.
    NotProved(Vec<String>),
}

impl Deadlock {
    /// What holds of both of two parts of a launch.
    pub(crate) fn join(&mut self, other: Deadlock) {
        *self = match (std::mem::take(self), other) {
            (Deadlock::Possible, _) | (_, Deadlock::Possible) => Deadlock::Possible,
            (Deadlock::NotProved(mut reasons), Deadlock::NotProved(more)) => {
                let new: Vec<String> = more.into_iter().filter(|reason| !reasons.contains(reason)).collect();
                reasons.extend(new);
                Deadlock::NotProved(reasons)
            }
            (Deadlock::NotProved(reasons), _) | (_, Deadlock::NotProved(reasons)) => Deadlock::NotProved(reasons),
            (Deadlock::Impossible, _) | (_, Deadlock::Impossible) => Deadlock::Impossible,
            (Deadlock::NotJudged, Deadlock::NotJudged) => Deadlock::NotJudged,
        };
    }
}

/// Shares of what a GPU could do in the cycles of a run, from 0 to 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Usage {
    /// Of the tensor cores of all SMs.
    pub tensor_cores: f64,
    /// Of the bandwidth between L2 and all SMs.
    pub l2: f64,
    /// Of the bandwidth of DRAM.
    pub dram: f64,
}

impl Report {
    /// Nothing is wrong, and nothing was left unchecked. Values count only where they were computed: see [`Memory::blank`].
    pub fn is_clean(&self) -> bool {
        self.completed && self.findings.is_empty() && self.incomplete.is_empty()
    }
}

/// Own bytes, or given ones that nobody has changed yet and nothing has copied. Who changes given ones has a copy of his own from then on.
#[derive(Clone, Debug, Default)]
pub struct Bytes {
    given: Option<Arc<Vec<u8>>>,
    /// Empty while there are given ones.
    own: Vec<u8>,
}

impl Bytes {
    /// Own bytes; a copy if they are given ones.
    pub(crate) fn own(&mut self) -> &mut Vec<u8> {
        if self.given.is_some() {
            self.own = self.given.take().map(Arc::unwrap_or_clone).unwrap_or_default();
        }
        &mut self.own
    }

    /// Of memory that is held for own ones.
    pub(crate) fn capacity(&self) -> usize {
        self.own.capacity()
    }
}

impl From<Vec<u8>> for Bytes {
    fn from(own: Vec<u8>) -> Bytes {
        Bytes { given: None, own }
    }
}

impl From<Arc<Vec<u8>>> for Bytes {
    fn from(given: Arc<Vec<u8>>) -> Bytes {
        Bytes { given: Some(given), own: Vec::new() }
    }
}

impl From<Bytes> for Vec<u8> {
    fn from(mut bytes: Bytes) -> Vec<u8> {
        std::mem::take(bytes.own())
    }
}

impl Deref for Bytes {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        self.given.as_deref().unwrap_or(&self.own)
    }
}

impl DerefMut for Bytes {
    #[inline]
    fn deref_mut(&mut self) -> &mut [u8] {
        self.own()
    }
}

impl AsRef<[u8]> for Bytes {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl<T: AsRef<[u8]> + ?Sized> PartialEq<T> for Bytes {
    fn eq(&self, other: &T) -> bool {
        self[..] == *other.as_ref()
    }
}

impl Eq for Bytes {}

/// Bytes, and which of them were ever written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    /// The bytes; one that was never written holds the poison `0xFF` (FP16, BF16 and FP32 then read as NaN).
    pub bytes: Bytes,
    /// A bit for each byte, lowest first: written, with a defined value.
    pub defined: Vec<u64>,
    /// A bit for each byte, lowest first: blank, that is written with a defined value that was not computed
    /// ([`crate::Values::OfClusters`]). What the byte holds then says nothing. Empty where nothing is blank.
    pub blank: Vec<u64>,
}

impl Memory {
    /// Whether this byte holds a defined value.
    pub fn is_defined(&self, byte: usize) -> bool {
        self.defined.get(byte / 64).is_some_and(|word| word >> (byte % 64) & 1 == 1)
    }

    /// Whether this byte was written without its value having been computed.
    pub fn is_blank(&self, byte: usize) -> bool {
        self.blank.get(byte / 64).is_some_and(|word| word >> (byte % 64) & 1 == 1)
    }
}

/// A CTA's on-chip memories at the end of the run. Tensor memory that was freed keeps what it held.
#[derive(Clone, Debug, Default)]
pub struct CtaState {
    /// Its place in the grid.
    pub cta: [u32; 3],
    /// Its dynamic shared memory.
    pub dynamic_shared: Memory,
    /// Its static shared memory.
    pub static_shared: Memory,
    /// Tensor memory: 128 lanes × 512 columns of 4 bytes, lane after lane.
    pub tensor: Memory,
    /// Columns of tensor memory it held at most.
    pub tensor_columns: u32,
}

/// Who did it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Actor {
    /// A warp of the CTA.
    Warp(u32),
    /// The tensor core of the CTA's SM.
    TensorCore,
    /// The TMA engine of the CTA's SM.
    Tma,
}

/// A warp of the launch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize)]
pub struct Issuer {
    /// Index of its CTA in launch order (x fastest).
    pub cta: u32,
    /// Its number in the CTA.
    pub warp: u32,
}

/// Something that happened.
///
/// What a warp does itself begins when it is issued. An engine begins later: when it is free, and with a `tcgen05.commit` when all
/// is complete that it covers. `start` and `end` are the engine's times.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// Index of the CTA that it concerns, in launch order (x fastest): the one that holds the barrier, whose tensor core or TMA
    /// engine works (of a pair, the even one), or the warp's own.
    pub cta: u32,
    /// Who did it.
    pub actor: Actor,
    /// The warp whose instruction asked for it.
    pub issuer: Issuer,
    /// The cycle in which that instruction was issued.
    pub issued: u64,
    /// The cycle it began.
    pub start: u64,
    /// The cycle it ended: its result is there.
    pub end: u64,
    /// The instruction that asked for it.
    pub place: Place,
    /// What it was.
    pub kind: EventKind,
}

/// A part of the shared memory of a CTA: bytes from the start of its shared window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
pub struct Barrier {
    /// Index of the CTA that holds it.
    pub cta: u32,
    /// Bytes from the start of the CTA's *dynamic* shared memory (negative: in static shared memory).
    pub offset: i32,
}

/// What an event was. Offsets of shared memory count from the start of the CTA's dynamic shared memory.
#[derive(Clone, Debug, PartialEq)]
pub enum EventKind {
    /// `mbarrier.init`.
    BarrierInit {
        /// Which.
        barrier: Barrier,
        /// Arrivals that complete a phase.
        count: u32,
    },
    /// An arrival, by a thread or by an engine.
    BarrierArrive {
        /// Which.
        barrier: Barrier,
        /// The phase it counts for, from 0.
        phase: u64,
        /// How many.
        count: u32,
        /// Bytes that the arrival announced (`.expect_tx`); 0 for none.
        announced: u32,
    },
    /// `mbarrier.expect_tx` without an arrival.
    BarrierExpect {
        /// Which.
        barrier: Barrier,
        /// Bytes announced.
        announced: u32,
    },
    /// A wait that ended: `start` is when it was first asked, `end` when it passed.
    BarrierWait {
        /// Which.
        barrier: Barrier,
        /// The parity waited for.
        parity: u32,
        /// The phase whose completion let it pass, from 0; `None` when it passed on a barrier that had never completed
        /// one (parity 1 on a fresh barrier).
        passed_phase: Option<u64>,
    },
    /// `bar.sync` and relatives; from arrival to release.
    CtaBarrier {
        /// Barrier number 0–15.
        id: u32,
        /// Threads that take part.
        threads: u32,
    },
    /// `fence.proxy.async`.
    ProxyFence,
    /// Plain stores to shared memory by one instruction of one warp.
    SharedStore {
        /// Lowest byte.
        offset: i32,
        /// Bytes stored.
        bytes: u32,
    },
    /// Plain loads from global memory by one instruction of one warp.
    GlobalLoad {
        /// Index into the launch description's buffers.
        buffer: usize,
        /// Bytes loaded.
        bytes: u32,
    },
    /// Plain stores to global memory by one instruction of one warp.
    GlobalStore {
        /// Index into the launch description's buffers.
        buffer: usize,
        /// Bytes stored.
        bytes: u32,
    },
    /// A copy by the TMA engine, from when the engine began it until its last byte is there. Prefetches are not traced.
    Copy(Box<Copy>),
    /// `tcgen05.alloc`.
    TensorAlloc {
        /// First column.
        column: u32,
        /// Columns.
        columns: u32,
    },
    /// `tcgen05.dealloc`.
    TensorFree {
        /// First column.
        column: u32,
        /// Columns.
        columns: u32,
    },
    /// A `tcgen05.mma`, from when the tensor core began it until its result is in tensor memory.
    Mma(Box<Mma>),
    /// A `tcgen05.cp`, from when the tensor core began it until what it brings is in tensor memory.
    TensorCopy {
        /// First column.
        column: u32,
        /// Columns.
        columns: u32,
        /// Bytes of shared memory, of each CTA.
        bytes: u32,
    },
    /// A `wgmma.mma_async` of a warpgroup, from when the tensor cores began it until its result may be in registers. The issuer is
    /// the warpgroup's first warp; it was issued when the last of the four warps came to it.
    Wgmma(Box<Wgmma>),
    /// `wgmma.commit_group` of a warp.
    WgmmaCommit {
        /// MMAs in the group.
        covers: u32,
    },
    /// `wgmma.wait_group` of a warp, if it had something to wait for: `start` is when it was asked, `end` when it passed.
    WgmmaWait {
        /// MMAs that it waited for, and no earlier wait of the warp.
        covers: u32,
    },
    /// `tcgen05.commit`: from when all is complete that it covers to its last arrival.
    Commit {
        /// The barriers that arrivals go to: one, or one in each CTA of a multicast.
        barriers: Vec<Barrier>,
        /// MMAs (and copies) it covers that no earlier commit of this thread did.
        covers: u32,
    },
    /// `tcgen05.ld`.
    TensorLoad {
        /// First column.
        column: u32,
        /// Columns.
        columns: u32,
        /// First lane.
        lane: u32,
        /// Lanes.
        lanes: u32,
    },
    /// `tcgen05.wait::ld`.
    TensorWaitLoad,
    /// The warp's threads ended.
    Exit,
}

/// What a copy moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CopyKind {
    /// Global to shared memory.
    Load,
    /// Shared to global memory.
    Store,
    /// The same, combined with what is there.
    Reduce,
    /// Shared memory of one CTA to that of another.
    Forward,
}

/// What the TMA engine copied.
#[derive(Clone, Debug, PartialEq)]
pub struct Copy {
    /// From where to where.
    pub kind: CopyKind,
    /// By a tensor map (`cp.async.bulk.tensor`); else plain bytes (`cp.async.bulk`).
    pub tensor: bool,
    /// Where the box begins in the tensor, innermost dimension first; empty for plain bytes.
    pub coordinates: Vec<i32>,
    /// Elements of the box in each dimension, in the same order.
    pub extents: Vec<u32>,
    /// Its place in shared memory: destination of a load, source of a store, of a [`CopyKind::Forward`] the destination.
    pub shared: i32,
    /// The CTAs whose shared memory that is, as indices in launch order: several for a multicast.
    pub ctas: Vec<u32>,
    /// Bytes for each of them, those outside of the tensor included.
    pub bytes: u32,
    /// Index into the launch description's buffers; `None` when the box lies outside of the tensor.
    pub buffer: Option<usize>,
    /// The mbarriers that a load counts its bytes on, one for each of `ctas`.
    pub barriers: Vec<Barrier>,
}

/// What an MMA did.
#[derive(Clone, Debug, PartialEq)]
pub struct Mma {
    /// Rows, columns, and depth of the product.
    pub shape: [u32; 3],
    /// 1 or 2 CTAs.
    pub cta_group: u32,
    /// Whether it added to what the accumulator held.
    pub accumulate: bool,
    /// First column of the accumulator.
    pub column: u32,
    /// The CTAs whose tensor memory holds it, as indices in launch order: one, or both of a pair.
    pub ctas: Vec<u32>,
    /// Where A was read.
    pub a: OperandRead,
    /// Where B was read.
    pub b: OperandRead,
}

impl Mma {
    /// Columns of tensor memory that the accumulator takes in each CTA: of 128 rows of a pair, half of the product's lie beside the
    /// other half (layout B).
    pub fn accumulator_columns(&self) -> u32 {
        let [m, n, _] = self.shape;
        if (m, self.ctas.len()) == (128, 2) { n / 2 } else { n }
    }
}

/// What a warpgroup's MMA did.
#[derive(Clone, Debug, PartialEq)]
pub struct Wgmma {
    /// Rows, columns, and depth of the product.
    pub shape: [u32; 3],
    /// Whether it added to what the accumulator held.
    pub accumulate: bool,
    /// Where A was read; `None`: in registers.
    pub a: Option<OperandRead>,
    /// Where B was read.
    pub b: Option<OperandRead>,
}

/// An operand of an MMA in shared memory, as the hardware read it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OperandRead {
    /// Lowest byte read.
    pub offset: i32,
    /// Highest byte read, plus one.
    pub end: i32,
    /// The descriptor's swizzle: bytes of the pattern's row: 0, 32, 64 or 128.
    pub swizzle: u32,
    /// What an element is taken for: `FP16`, `BF16`.
    pub format: &'static str,
    /// It is multiplied by −1.
    pub negated: bool,
    /// MN-major: columns of shared memory are taken for the operand's rows.
    pub mn_major: bool,
    /// The operand, row after row, 32 bytes of each as 16-bit patterns, if asked for ([`crate::Options::keep_operands`]): elements of
    /// 16 bits, halves of TF32, pairs of 8-bit elements. FP6 and FP4 of `kind::f8f6f4` are in containers of 8 bits, as in tensor memory.
    pub elements: Vec<u16>,
}
