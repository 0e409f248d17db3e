//! The things a cluster is made of, beside its warps.

use crate::machine::layout::loaded::Loaded;
use crate::machine::mma::issued::Sums;
use crate::machine::tensor_memory::{Allocation, TensorMemory};
use crate::order::{ActorId, Clock, Conflict, Shadow, Stamp, Views};
use crate::report::Memory;
use smallvec::SmallVec;

/// Who executes what: a warp's fragment, the lanes of it that take part, and the statement.
#[derive(Clone, Copy, Debug)]
pub struct At {
    pub w: usize,
    pub f: usize,
    pub mask: u32,
    pub site: u32,
}

/// Who asked for something that happens, and when: the warp, the cycle of its instruction, and how long it lasts.
#[derive(Clone, Copy, Debug)]
pub struct Span {
    pub w: usize,
    pub issued: u64,
    pub start: u64,
    pub end: u64,
}

impl Span {
    /// Of something that a warp does itself.
    pub fn of_warp(w: usize, start: u64, end: u64) -> Span {
        Span { w, issued: start, start, end }
    }
}

/// A place in the shared memory of a CTA of the cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Slot {
    /// Rank of the CTA.
    pub cta: usize,
    /// Offset in its window.
    pub offset: u32,
}

/// Tensor memory that a CTA has got together with its peer: known to who knows of this epoch of the warp.
#[derive(Clone, Copy, Debug)]
pub struct PairAllocation {
    pub allocation: Allocation,
    pub warp: usize,
    pub epoch: u32,
}

/// A CTA's memories.
#[derive(Debug)]
pub struct Cta {
    /// Its place in the grid, and in the cluster.
    pub id: [u32; 3],
    pub inner: [u32; 3],
    /// The shared window, from its offset 0: what the system reserves, static, dynamic.
    pub shared: Memory,
    pub shared_shadow: Shadow,
    pub loaded: Loaded,
    /// Where chunks that threads have stored came from.
    pub sources: crate::machine::layout::copied::Sources,
    /// How its warps store tiles.
    pub drawn_up: crate::machine::layout::drawn_up::DrawnUp,
    pub staged: crate::machine::layout::staged::Staged,
    pub tensor: TensorMemory,
    pub tensor_shadow: Shadow,
    /// That of the upper 16 lanes of each quarter, once an accumulator has half of the lanes; the other one is of the lower 16 then.
    pub upper_shadow: Option<Shadow>,
    /// The warp that gave up the right to allocate, and where.
    pub tensor_relinquished: Option<(usize, u32)>,
    /// Columns and statement of its last allocation of tensor memory.
    pub last_columns: Option<(u32, u32)>,
    /// One of its warps has seen here that a request of launch control was refused.
    pub refused: Option<(Stamp, u32)>,
    pub collectors: [crate::machine::mma::collector::Buffer; 5],
    /// Registers, a lane, that warps have given back with `setmaxnreg.dec`.
    pub spare_registers: u32,
    /// Columns that are given to warps which have not seen it yet: warp and first column.
    pub granted: Vec<(usize, u32)>,
    /// What it has got together with its peer, in order.
    pub allocated_with_peer: Vec<PairAllocation>,
    pub named: [NamedBarrier; 16],
    /// When the tensor core can begin its next MMA, and the ports of shared and global memory their next access.
    pub tensor_core_free: u64,
    pub shared_port_free: u64,
    pub global_port_free: u64,
    /// When the TMA engine can begin its next copy.
    pub tma_free: u64,
    /// When the last of its stores has left.
    pub tma_store_free: u64,
    /// How many instructions the SM's four schedulers have issued lately.
    pub issue: [crate::machine::schedule::issue::Slots; 4],
    /// Cycles of this window that parts of the SM worked for the CTA.
    pub busy: Engines,
    /// How many times longer they take, in 256ths: CTAs beside it on the SM use them too.
    pub slowed: Engines,
}

/// A number for each part of an SM that its CTAs share.
#[derive(Clone, Copy, Debug, Default)]
pub struct Engines {
    pub tensor_core: u64,
    /// Instructions issued.
    pub issue: u64,
    pub shared_port: u64,
    pub global_port: u64,
}

impl Engines {
    pub const ALONE: Engines = Engines { tensor_core: 256, issue: 256, shared_port: 256, global_port: 256 };

    pub fn all(&mut self) -> [&mut u64; 4] {
        [&mut self.tensor_core, &mut self.issue, &mut self.shared_port, &mut self.global_port]
    }
}

/// `bar.sync`'s barrier.
#[derive(Debug, Default)]
pub struct NamedBarrier {
    pub arrived: u32,
    /// Lanes of each warp that are there while others of the warp are not.
    pub partial: [u32; 32],
    pub expected: Option<u32>,
    pub latest: u64,
    pub views: Views,
    pub site: u32,
    /// `barrier.red`: threads whose predicate holds, and all that have come. `None`: other instructions meet here.
    pub votes: Option<(u32, u32)>,
    /// What those who came had fenced, or seen without a fence; `None`: nothing.
    pub halves: Option<Box<crate::machine::memory::halves::Halves>>,
    /// The warps that have come in this phase, as a mask.
    pub who: u32,
    /// Those of earlier phases that had a thread count, each set once, with the statement of the last of them.
    pub groups: Vec<(u32, u32)>,
    /// Of a phase with a thread count, the arrivals: of this one, and of the one before.
    pub came: SmallVec<[NamedArrival; 4]>,
    pub before: SmallVec<[NamedArrival; 4]>,
    /// That two groups of warps meet here is told.
    pub told: bool,
}

/// A warp has arrived at a CTA barrier.
#[derive(Clone, Copy, Debug)]
pub struct NamedArrival {
    pub warp: usize,
    /// When, by its own count.
    pub epoch: u32,
    pub site: u32,
}

impl NamedBarrier {
    /// Lanes of a warp arrive. The warp has arrived when all its lanes have that have not ended: tells whether it does now.
    pub fn arrive(&mut self, warp: u32, mask: u32, live: u32) -> bool {
        let partial = &mut self.partial[warp as usize % 32];
        *partial |= mask;
        let whole = *partial != 0 && live & !*partial == 0;
        if whole {
            *partial = 0;
            self.arrived += 32;
            self.who |= 1 << (warp % 32);
        }
        whole
    }

    /// What is left when a phase is complete: which warps have met.
    pub fn remembered(&mut self) -> NamedBarrier {
        const MOST: usize = 8;
        let mut groups = std::mem::take(&mut self.groups);
        let known = self.expected.is_none() || groups.iter().any(|&(who, _)| who == self.who);
        if !known && groups.len() < MOST {
            groups.push((self.who, self.site));
        }
        NamedBarrier { groups, before: std::mem::take(&mut self.came), told: self.told, ..NamedBarrier::default() }
    }

    /// Two sets of warps that have met here and have some warps in common, and each some that the other has not: no one group's barrier.
    pub fn mixed(&self) -> Option<[(u32, u32); 2]> {
        let mixes = |a: &(u32, u32), b: &(u32, u32)| a.0 & b.0 != 0 && a.0 & !b.0 != 0 && b.0 & !a.0 != 0;
        let pair = |one: &(u32, u32)| self.groups.iter().find(|other| mixes(one, other)).map(|other| [*one, *other]);
        self.groups.iter().find_map(pair)
    }

    /// Somebody has arrived in the current phase.
    pub fn in_use(&self) -> bool {
        self.arrived > 0 || self.partial.iter().any(|&lanes| lanes != 0)
    }
}

/// A `tcgen05.commit`.
#[derive(Debug)]
pub struct Commit {
    pub site: u32,
    /// Its step in the record.
    pub issue: u32,
    /// Its number among those of its thread.
    pub thread: (ActorId, u32),
    pub queue: ActorId,
    /// The last MMA of the queue that it covers.
    pub epoch: u32,
    /// That one was known to be complete before.
    pub late: bool,
    pub barrier: u32,
    pub phase: Option<u64>,
    pub warp: usize,
    pub issued: u64,
    /// What came before it was issued.
    pub order: Clock,
    /// What its arrival says of itself, if it is one in another CTA.
    pub arrival: Option<(ActorId, u32)>,
    /// The accumulators of its thread so far.
    pub sums: Sums,
}

/// Arrivals of lanes whose `cp.async` so far are to be complete before.
#[derive(Debug)]
pub struct CopiesArrival {
    pub site: u32,
    /// Its step in the record, if the arrivals count among the expected ones.
    pub issue: Option<u32>,
    pub barrier: u32,
    pub count: u32,
    pub warp: usize,
    pub issued: u64,
    /// The copies that are complete then.
    pub copies: crate::machine::warp::Queue,
    /// What came before it was issued.
    pub order: Clock,
}

/// Why a value is undefined.
#[derive(Clone, Debug)]
pub struct Origin {
    pub site: u32,
    pub text: String,
    pub lacks: Lacks,
    /// An MMA whose accumulator ends in front of it: what is said of that, and what to try.
    pub beside: Option<Beside>,
}

/// What an undefined value lacks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Lacks {
    /// Nothing wrote it, or what wrote it is not defined.
    #[default]
    Value,
    /// Scale factors that an MMA reads.
    Factors,
    /// Bytes of an operand in shared memory.
    Operand,
}

/// An accumulator that lacks what is read beside it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Beside {
    pub mma: u32,
    pub text: String,
    pub help: String,
    /// What is wrong with the MMA, where that is known.
    pub title: Option<String>,
}

/// A conflict, explained at the end of the run, when all commits are known.
#[derive(Debug)]
pub struct Race {
    pub memory: RaceMemory,
    pub conflict: Conflict,
    pub second: Stamp,
    /// The warp that gives the second access to an engine, where no one knows it of that yet.
    pub by: Option<usize>,
    /// Of two copies, from where to where each goes in shared memory.
    pub boxes: Option<[[u32; 2]; 2]>,
    /// How the warp that makes the second access, or gives it to an engine, had got past mbarriers by then.
    pub passed: Vec<crate::machine::warp::Passed>,
    /// Of a copy that comes second: how the warp of the first access had got past the copy's mbarrier by then.
    pub first_passed: Option<crate::machine::warp::Passed>,
    /// The location held no defined value before the second access.
    pub unwritten: bool,
    /// The first comes behind the second in its own thread: the other threads of a warpgroup came to an MMA later.
    pub late: bool,
    /// Of a load from an accumulator: what it was to read, by what its warp knows.
    pub heard: Heard,
    /// Both write, and the same value.
    pub same_value: bool,
    pub frees: bool,
    /// The first was over in time, though nothing that orders accesses says so: a `tcgen05.ld` whose registers have been used.
    pub in_time: bool,
    /// Who made the first, a `tcgen05.ld` or `tcgen05.st`, has synchronised with who made the second, but had not waited for it before.
    pub unwaited: bool,
    /// The first is a copy out of shared memory, of which who makes the second does not even know that it was issued: where copies do not wait for such stores, the
    /// second comes late.
    pub comes_late: bool,
    /// The relaxed arrival at the cluster barrier by which the first was over in time.
    pub relaxed_arrival: Option<u32>,
    /// Waits that had said no by then, and behind which the warps of the first and of the second went on.
    pub unheeded: Vec<crate::machine::explain::unheeded::Unheeded>,
    /// The latest wait for groups of who issued the first, if that is a copy in a group.
    pub group_wait: Option<crate::machine::explain::groups::GroupWait>,
    /// The groups that its thread had committed behind that of the first by then: the fewest, and the most.
    pub newer_groups: [u32; 2],
    /// A proxy fence between the two that does not cover the first: its place in the list of the first's warp.
    pub narrow_fence: Option<usize>,
    /// A proxy fence that stands where it does not cover the first.
    pub misplaced: Option<crate::machine::explain::misplaced_fence::Misplaced>,
    /// Of one that reads and one that writes global memory: the warps that have read.
    pub readers: Vec<u32>,
    pub count: u64,
}

impl Race {
    /// A conflict of two plain accesses, seen once.
    pub fn new(memory: RaceMemory, conflict: Conflict, second: Stamp) -> Race {
        Race {
            memory,
            conflict,
            second,
            by: None,
            boxes: None,
            passed: vec![],
            first_passed: None,
            unwritten: false,
            late: false,
            heard: Heard::default(),
            same_value: false,
            frees: false,
            in_time: false,
            unwaited: false,
            comes_late: false,
            relaxed_arrival: None,
            unheeded: vec![],
            group_wait: None,
            newer_groups: [0; 2],
            narrow_fence: None,
            misplaced: None,
            readers: vec![],
            count: 1,
        }
    }
}

/// What a warp knows of the product in the columns that it loads from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Heard {
    /// Of no MMA that it has not read the result of.
    #[default]
    Nothing,
    /// Of an MMA to whose result the next one adds.
    Part,
    /// Of one behind which another product begins: it reads what it has waited for.
    Whole,
}

/// Where a conflict is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RaceMemory {
    /// Of the CTA of this rank.
    Shared(usize),
    /// Of the CTA of this rank.
    Tensor(usize),
    /// Index of the buffer.
    Global(usize),
}

/// An engine's event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Pending {
    MmaRead(usize),
    MmaDone(usize),
    TensorCopyRead(usize),
    TensorCopyDone(usize),
    CommitArrive(usize),
    WgmmaRead(usize),
    WgmmaDone(usize),
    /// A bulk copy reads its source, writes its destination.
    CopyRead(usize),
    CopyDone(usize),
    /// A response of cluster launch control.
    Response(usize),
    /// The `cp.async` of some lanes are complete, and they arrive.
    CopiesArrive(usize),
}

/// A kind of actor, for messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ActorKind {
    Warp(u32),
    TensorLoads(u32),
    TensorStores(u32),
    /// The `cp.async` groups of a warp.
    AsyncCopies(u32),
    /// All `ld.global.nc` of a cluster.
    NonCoherent,
    /// The grid before this one.
    Prerequisite,
    /// An mbarrier: its epochs are its completed phases.
    Mbarrier,
    /// The cluster barrier: the same.
    ClusterBarrier,
    /// What the bulk groups of a thread read, and what they write.
    BulkReads {
        warp: u32,
    },
    BulkWrites {
        warp: u32,
    },
    /// What a warp's bulk copies read of tensor maps: its loads, or its stores.
    MapReads {
        warp: u32,
        loads: bool,
    },
    /// The MMAs of a warpgroup, by its first warp.
    Wgmmas {
        warp: u32,
    },
    /// The arrivals of one thread's commits in another CTA.
    Commits,
    /// The MMAs issued by one thread.
    Mmas {
        warp: u32,
        lane: u32,
    },
}
