//! Instructions after decoding: dense, registers renumbered, immediates turned into constant registers.

pub use super::tensor_core::{MmaA, MmaFactors, MmaOp, Packed, TensorCopyOp, TensorCopyShape, TensorShape};
pub use super::tma::{Reduction, TmaKind, TmaOp};

/// A 32-bit register of a warp: one value a lane. Narrower registers live in the low bits.
pub type L32 = [u32; 32];
/// A 64-bit register of a warp.
pub type L64 = [u64; 32];

/// A register: its class and its number within the class.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reg {
    /// 8, 16 and 32 bits.
    B32(u16),
    /// 64 bits.
    B64(u16),
    /// A predicate, a bit a lane.
    Pred(u16),
    /// 128 bits: the numbers of the 64-bit registers that hold the low and the high half are this and the next.
    B128(u16),
    /// `_`
    Sink,
}

/// Predicate register 0 is always true, 1 is always false.
pub const TRUE: u16 = 0;
/// See [`TRUE`].
pub const FALSE: u16 = 1;

/// An instruction with what every instruction has.
#[derive(Debug)]
pub struct Inst {
    /// What to do.
    pub op: Op,
    /// `@p`: executed by lanes in which this predicate …
    pub guard: u16,
    /// … differs from this.
    pub guard_negated: bool,
    /// Registers read.
    pub uses: Box<[Reg]>,
    /// Registers written.
    pub defs: Box<[Reg]>,
    /// Index into the kernel's statement table: PTX place and source line.
    pub site: u32,
    /// What the interpreter asks of it each time.
    pub facts: super::facts::Facts,
}

/// What ends a launch with an error.
#[derive(Clone, Copy, Debug)]
pub enum Abort {
    /// `trap`
    Trap,
    /// `brkpt`
    Breakpoint,
    /// A call of `__assertfail`: places of its parameters in the thread's local memory (the expression, the file, the line, the function)
    Assertion { expression: u32, file: u32, line: u32, function: u32 },
}

/// A memory operand: `[base + offset]`.
#[derive(Clone, Copy, Debug)]
pub struct Address {
    /// `Reg::Sink` for none.
    pub base: Reg,
    /// Bytes added to it.
    pub offset: i64,
}

/// The window that an address points into.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Space {
    /// Any, told by the address.
    Generic,
    /// Global memory.
    Global,
    /// Shared memory of the CTA.
    Shared,
    /// Shared memory of any CTA of the cluster.
    SharedCluster,
    /// Kernel parameters.
    Param,
    /// The thread's own frame.
    Local,
}

/// How two predicates are combined by `setp.…{.and,.or,.xor}`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Logic {
    /// And.
    And,
    /// Or.
    Or,
    /// Exclusive or.
    Xor,
}

/// A special register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Special {
    /// `%tid`
    Tid(u8),
    /// `%ntid`
    Ntid(u8),
    /// `%ctaid`
    Ctaid(u8),
    /// `%nctaid`
    Nctaid(u8),
    /// `%laneid`
    Lane,
    /// `%warpid`
    Warp,
    /// `%nwarpid`
    Nwarp,
    /// `%clusterid`
    ClusterId(u8),
    /// `%nclusterid`
    NclusterId(u8),
    /// `%cluster_ctaid`
    ClusterCtaid(u8),
    /// `%cluster_nctaid`
    ClusterNctaid(u8),
    /// `%cluster_ctarank`
    ClusterRank,
    /// `%cluster_nctarank`
    ClusterNrank,
    /// `%smid`
    Sm,
    /// `%nsmid`
    Nsm,
    /// `%clock`, `%clock64`
    Clock,
    /// `%globaltimer`, `_lo`, `_hi`: without so many of its lowest bits
    Timer(u8),
    /// `%dynamic_smem_size`
    DynamicShared,
    /// `%lanemask_eq`, `_le`, `_lt`, `_ge`, `_gt`
    LaneMask(u8),
}

impl Special {
    /// Whether lanes of a warp may hold different values.
    pub fn differs(self) -> bool {
        self.is_time() || matches!(self, Special::Tid(_) | Special::Lane | Special::LaneMask(_))
    }

    /// Whether it is another one each time.
    pub fn is_time(self) -> bool {
        matches!(self, Special::Clock | Special::Timer(_))
    }
}

/// 32-bit registers of some lanes.
type Lanes32 = [u32];
/// 64-bit registers of some lanes.
type Lanes64 = [u64];

/// Lane-wise functions, of as many lanes as there are results.
#[derive(Clone, Copy)]
pub enum Alu {
    /// 32 → 32
    U32(fn(&mut Lanes32, &Lanes32)),
    /// 32, 32 → 32
    B32(fn(&mut Lanes32, &Lanes32, &Lanes32)),
    /// 32, 32, 32 → 32
    T32(fn(&mut Lanes32, &Lanes32, &Lanes32, &Lanes32)),
    /// 32, 32, 32 → 32, each byte of the result out of one byte of the first two, which the third chooses: `prmt`
    Permute(fn(&mut Lanes32, &Lanes32, &Lanes32, &Lanes32)),
    /// 64 → 64
    U64(fn(&mut Lanes64, &Lanes64)),
    /// 64, 64 → 64
    B64(fn(&mut Lanes64, &Lanes64, &Lanes64)),
    /// 64, 64, 64 → 64
    T64(fn(&mut Lanes64, &Lanes64, &Lanes64, &Lanes64)),
    /// 32 → 64
    Widen(fn(&mut Lanes64, &Lanes32)),
    /// 64 → 32
    Narrow(fn(&mut Lanes32, &Lanes64)),
    /// 32, 32 → 64
    Wide2(fn(&mut Lanes64, &Lanes32, &Lanes32)),
    /// 32, 32, 64 → 64
    Wide3(fn(&mut Lanes64, &Lanes32, &Lanes32, &Lanes64)),
    /// 64, 32 → 64
    Shift64(fn(&mut Lanes64, &Lanes64, &Lanes32)),
    /// 64, 32, 32 → 64
    Field64(fn(&mut Lanes64, &Lanes64, &Lanes32, &Lanes32)),
    /// 32, 32 → predicate
    Compare32(fn(&Lanes32, &Lanes32) -> u32),
    /// 64, 64 → predicate
    Compare64(fn(&Lanes64, &Lanes64) -> u32),
}

impl std::fmt::Debug for Alu {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("alu")
    }
}

/// Whether `st.bulk` fills so many bytes (PTX ISA, st.bulk).
pub fn fills(bytes: u64) -> bool {
    bytes.is_multiple_of(8) && bytes <= 16_777_216
}

/// What a decoded instruction does.
#[derive(Debug)]
pub enum Op {
    /// A lane-wise function of one destination; sources in order.
    Alu { f: Alu, d: u16, s: [u16; 3] },
    /// `lop3`
    Lop3 { d: u16, s: [u16; 3], table: u8 },
    /// `bfi`: some low bits of `a` over bits of `b`, from a position on, so many
    Insert { d: Reg, a: Reg, b: Reg, position: u16, count: u16 },
    /// `cvt` of any pair of types
    Convert { how: crate::program::arithmetic::convert::Conversion, d: Reg, s: Reg },
    /// `setp`: `d = f(a, b) [logic c]`, `q = !f(a, b) [logic c]`.
    Setp { f: Alu, d: Option<u16>, q: Option<u16>, a: u16, b: u16, logic: Option<(Logic, u16, bool)> },
    /// Predicate logic; `negate` the result.
    Pred { logic: Logic, d: u16, a: u16, a_negated: bool, b: u16, negate: bool },
    /// `selp`
    Select32 { d: u16, a: u16, b: u16, p: u16, negated: bool },
    /// `selp` of 64 bits
    Select64 { d: u16, a: u16, b: u16, p: u16, negated: bool },
    /// `mov d, {…}` and `mov {…}, s` of parts: bits of each part, low first.
    Repack { d: Vec<Reg>, s: Vec<Reg>, d_bits: u8, s_bits: u8 },
    /// A special register.
    Special { d: Reg, which: Special },
    /// The address of a shared variable, as a shared address.
    SharedAddress { d: Reg, offset: u32 },
    /// `cvta.shared` (towards generic) or `cvta.to.shared`.
    Cvta { d: Reg, s: Reg, space: Space, to: bool },
    /// `elect.sync`
    Elect { d: Option<u16>, p: u16, mask: u16 },
    /// `activemask`
    ActiveMask { d: u16 },
    /// `shfl.sync`
    Shuffle { mode: ShuffleMode, d: u16, p: Option<u16>, a: u16, b: u16, c: u16, mask: u16 },
    /// `vote.sync`
    Vote { mode: VoteMode, d: Reg, a: u16, negated: bool, mask: u16 },
    /// `redux.sync`
    Reduce { what: crate::program::arithmetic::lanes::Fold, d: u16, a: u16, mask: u16 },
    /// `match.sync`: of all lanes, or which lanes hold the same
    Match { all: bool, d: u16, p: Option<u16>, a: Reg, mask: u16 },
    /// `bra`; conditional by the guard.
    Branch { target: u32, reconverge: u32 },
    /// `brx.idx`
    BranchTable { index: u16, targets: Box<[u32]>, reconverge: u32 },
    /// `ret`, `exit`
    Exit,
    /// What ends the launch with an error
    Trap(Abort),
    /// A call of `vprintf`: places of its parameters, and of what it returns, in the thread's local memory
    Print { format: u32, arguments: u32, result: u32 },
    /// `ld`
    Load(Box<super::atomic::LoadOp>),
    /// `st`
    Store(Box<super::atomic::StoreOp>),
    /// `atom`, `red`
    Atomic(Box<super::atomic::AtomicOp>),
    /// `bar.sync`/`barrier.sync` (wait) or `.arrive`
    CtaBarrier { id: u16, threads: Option<u16>, wait: bool, aligned: bool },
    /// `bar.red`/`barrier.red`: of predicate `a`
    BarrierReduce { id: u16, threads: Option<u16>, aligned: bool, what: BarrierVote, d: Reg, a: u16, negated: bool },
    /// `bar.warp.sync`
    WarpSync { mask: u16 },
    /// `fence.proxy.async`, of shared memory or only of global memory
    ProxyFence { shared: bool, global: bool },
    /// `fence.mbarrier_init`
    InitFence,
    /// `fence.acq_rel`/`sc`, `membar`, and fences of one direction
    Fence { scope: super::atomic::Scope, ways: FenceWays },
    /// `mbarrier.init`
    BarrierInit { address: Address, count: u16 },
    /// `mbarrier.inval`
    BarrierInval { address: Address },
    /// `mbarrier.arrive{.expect_tx}`; `remote`: of any CTA of the cluster; `wide`: at `.cluster` scope
    BarrierArrive {
        address: Address,
        count: Option<u16>,
        expect: Option<u16>,
        state: Option<u16>,
        remote: bool,
        relaxed: bool,
        wide: bool,
        kind: super::atomic::ArrivalKind,
    },
    /// `mbarrier.expect_tx`, or `mbarrier.complete_tx`
    BarrierExpect { address: Address, bytes: u16, remote: bool, complete: bool },
    /// `barrier.cluster.arrive`
    ClusterArrive { relaxed: bool, aligned: bool },
    /// `barrier.cluster.wait`
    ClusterWait { aligned: bool },
    /// `mapa`: the address of the same place in the CTA of a rank
    MapAddress { d: Reg, s: Reg, rank: u16 },
    /// `isspacep`: whether a generic address lies in this space.
    IsSpace { p: u16, s: Reg, space: AddressSpace },
    /// `getctarank`
    AddressRank { d: u16, s: Reg },
    /// What changes speed only: `prefetch.tensormap`; `griddepcontrol.launch_dependents`, since no grid begins under a launch (assumption
    /// `dependent-launch-alone`)
    Hint,
    /// `griddepcontrol.wait`
    GridWait,
    /// `setmaxnreg.inc` (`more`) and `.dec`: so many registers a thread
    SetRegisters { count: u32, more: bool },
    /// `mbarrier.try_wait.parity` (`block`) and `mbarrier.test_wait.parity`; `wide`: at `.cluster` scope. Without `.parity`, the state that the parity is of
    BarrierWait { address: Address, p: u16, parity: u16, state: Option<u16>, block: bool, relaxed: bool, wide: bool },
    /// `tcgen05.alloc`
    TensorAlloc { address: Address, columns: u16, pair: bool },
    /// `tcgen05.dealloc`
    TensorFree { tensor: u16, columns: u16 },
    /// `tcgen05.relinquish_alloc_permit`
    TensorRelinquish,
    /// `tcgen05.ld`; `pack`: the low halves of two columns in each register
    TensorLoad { shape: TensorShape, tensor: Address, d: Box<[u16]>, pack: bool },
    /// `tcgen05.st`; `unpack`: the halves of each register to two columns
    TensorStore { shape: TensorShape, tensor: Address, s: Box<[u16]>, unpack: bool },
    /// `tcgen05.wait::ld` or `::st`
    TensorWait { loads: bool },
    /// `tcgen05.mma`
    Mma(Box<MmaOp>),
    /// `tcgen05.cp`
    TensorCopy(TensorCopyOp),
    /// `tcgen05.commit`; `targets`: the multicast mask
    Commit { address: Address, pair: bool, targets: Option<u16> },
    /// `tcgen05.fence::before_thread_sync` or `::after_thread_sync`
    TensorFence { before: bool },
    /// A copy by the TMA engine
    Tma(Box<TmaOp>),
    /// `cp.async.bulk.commit_group`
    BulkCommit,
    /// `cp.async.bulk.wait_group{.read}`
    BulkWait { pending: u32, read: bool },
    /// `cp.async`: 4, 8 or 16 bytes of each lane, of which only the first `read` are read
    AsyncCopy { to: Address, from: Address, bytes: u8, read: Option<u16> },
    /// `cp.async.commit_group`
    AsyncCommit,
    /// `cp.async.mbarrier.arrive`; `counted`: `.noinc`, the arrivals are among those that the mbarrier was initialised for
    AsyncArrive { address: Address, counted: bool },
    /// `cp.async.wait_group` (`wait_all`: `None`)
    AsyncWait { pending: Option<u32> },
    /// `ldmatrix`
    MatrixLoad { address: Address, shape: super::matrix::MatrixShape, d: Box<[u16]> },
    /// `stmatrix`
    MatrixStore { address: Address, shape: super::matrix::MatrixShape, s: Box<[u16]> },
    /// `mma.sync`
    WarpMma(Box<super::warp_mma::WarpMmaOp>),
    /// `movmatrix`
    MoveMatrix { d: u16, a: u16 },
    /// `tensormap.replace`: a field of the map at an address
    MapReplace { space: Space, address: Address, field: crate::tensor_map::Field, value: Reg },
    /// `tensormap.cp_fenceproxy`: 128 bytes of shared memory to global memory, and a release for who reads tensor maps
    MapPublish { to: Address, from: Address, scope: super::atomic::Scope },
    /// `fence.proxy.tensormap::generic.release`
    MapRelease { scope: super::atomic::Scope },
    /// `fence.proxy.tensormap::generic.acquire`, of the map at an address
    MapAcquire { address: Address, scope: super::atomic::Scope },
    /// `st.async`, `red.async`
    AsyncStore(Box<super::atomic::AsyncStoreOp>),
    /// `st.bulk`: zeroes to [so many](fills) bytes of shared memory
    Fill { space: Space, address: Address, bytes: Reg },
    /// `discard`: what 128 bytes of global memory hold is not needed any more
    Discard { space: Space, address: Address },
    /// `clusterlaunchcontrol.try_cancel`
    TryCancel { to: Address, barrier: Address, all: bool },
    /// `clusterlaunchcontrol.query_cancel.is_canceled`
    IsCanceled { p: u16, response: Reg },
    /// `clusterlaunchcontrol.query_cancel.get_first_ctaid`; 0 to 2 for one dimension
    FirstCta { d: Box<[Reg]>, response: Reg, first: u8 },
    /// `nanosleep`
    Sleep,
    /// `wgmma.mma_async`
    Wgmma(Box<super::wgmma::WgmmaOp>),
    /// `wgmma.fence`
    WgmmaFence,
    /// `wgmma.commit_group`
    WgmmaCommit,
    /// `wgmma.wait_group`
    WgmmaWait { pending: u32 },
}

/// What `isspacep` asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AddressSpace {
    /// Also kernel parameters, whose window lies in that of global memory.
    Global,
    Const,
    Local,
    /// The shared memory of the own CTA.
    SharedCta,
    /// That of any CTA of the cluster.
    SharedCluster,
    /// Parameters of the kernel.
    Param,
}

/// `shfl.sync`'s mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShuffleMode {
    /// `.up`
    Up,
    /// `.down`
    Down,
    /// `.bfly`
    Butterfly,
    /// `.idx`
    Index,
}

/// What `barrier.red` makes of the predicates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum BarrierVote {
    And,
    Or,
    Count,
}

/// In which directions a fence orders.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum FenceWays {
    Both,
    Acquire,
    Release,
}

/// `vote.sync`'s mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum VoteMode {
    All,
    Any,
    Uniform,
    Ballot,
}
