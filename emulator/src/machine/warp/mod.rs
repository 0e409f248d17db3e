//! A warp: the parts it falls into while its lanes are at different places, and what it knows of others.

pub mod compute;
pub mod exchange;
pub mod on_the_way;
pub mod part_defined;
pub mod print;
pub mod register_pool;
pub mod registers;
pub mod step;
pub mod trap;

use crate::machine::memory::resolve::Target;
use crate::machine::schedule::fragments::Fragments;
use crate::order::{ActorId, Clock, NOBODY, Views};
use crate::program::atomic::Scope;
use crate::program::op::Reg;
use crate::report::Memory;
use on_the_way::OnTheWay;
use registers::Registers;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

/// Lanes of a warp that move together. A converged warp is one fragment.
#[derive(Clone, Debug)]
pub struct Fragment {
    pub pc: u32,
    pub mask: u32,
    /// When it can execute its next instruction.
    pub ready_at: u64,
    pub state: State,
    /// Index into [`Warp::meetings`] of the place where it waits for the lanes it parted from.
    pub meeting: Option<u32>,
}

/// Whether a fragment can go on.
#[derive(Clone, Debug, PartialEq)]
pub enum State {
    Ready,
    /// At the end of a divergent part, until the other lanes come or end.
    Meeting,
    /// In `bar.warp.sync` with this mask.
    WarpSync(u32),
    /// In `bar.sync` with this number.
    CtaBarrier(u32),
    /// In `mbarrier.try_wait`, for this barrier (index into the cluster's) and parity; the predicate to set.
    Mbarrier {
        barrier: u32,
        parity: u32,
        p: u16,
        mask: u32,
        since: u64,
        order: crate::machine::barrier::scopes::Order,
    },
    /// In `tcgen05.alloc`; of a pair, with this many columns.
    TensorAlloc {
        pair: Option<u32>,
    },
    /// In `setmaxnreg.inc`, for so many registers a thread more.
    Registers(u32),
    /// In `barrier.cluster.wait`.
    ClusterBarrier,
    /// In a strong access of global memory, until the window of simulated time ends; the request's number.
    Chip(u32),
    /// Until an MMA of its warpgroup is complete; in `wgmma.wait_group`, for how many of its groups, and since when.
    Wgmma {
        number: u32,
        wait: Option<(u32, u64)>,
    },
    /// In `cp.async.bulk.wait_group`.
    BulkGroups {
        pending: u32,
        read: bool,
        mask: u32,
    },
}

/// A place where lanes that parted meet again.
#[derive(Clone, Debug)]
pub struct Meeting {
    pub pc: u32,
    /// The lanes that parted and have not ended.
    pub mask: u32,
    pub outer: Option<u32>,
}

/// A `tcgen05.ld` whose registers are not yet valid.
#[derive(Clone, Debug)]
pub struct OpenLoad {
    pub site: u32,
    /// Its number among the warp's loads.
    pub epoch: u32,
    pub d: Box<[u16]>,
    /// Lanes defined, for each register.
    pub defined: Vec<u32>,
    /// A register of it was used: that waits for its value, but orders nothing else.
    pub landed: bool,
    /// Why they are not, if they are not.
    pub origin: u32,
    pub done_at: u64,
}

/// How a warp last got past an mbarrier.
#[derive(Clone, Copy, Debug)]
pub struct Passed {
    pub barrier: u32,
    pub site: u32,
    /// The lanes that have waited for this phase: parts of a warp that has diverged do it one after the other.
    pub lanes: u32,
    pub parity: u32,
    /// The phase whose completion let it pass; `None` on a barrier that had completed none.
    pub phase: Option<u64>,
    /// The warp had not known that phase to be complete.
    pub fresh: bool,
    /// The same phase had let a lane of it pass before.
    pub again: bool,
    /// Its statement has let a lane pass twice for one phase, now or before: it asks for other phases than those that it is meant for.
    pub lost: bool,
}

/// A proxy fence that covers less than it may seem to.
#[derive(Clone, Debug)]
pub struct NarrowFence {
    pub site: u32,
    pub why: String,
    /// The warp's epoch when it was last executed: what came before it has this one at most.
    pub epoch: u32,
}

/// A warp.
#[derive(Debug)]
pub struct Warp {
    /// Rank of its CTA in the cluster.
    pub cta: usize,
    /// Accesses are held against others. Otherwise a warp knows of others no more than what happened before ([`Views::hb`]): it says what
    /// a hang is due to.
    pub judged: bool,
    /// Its number in the CTA.
    pub index: u32,
    /// Lanes that exist and have not ended.
    pub live: u32,
    pub registers: Registers,
    pub fragments: Fragments,
    pub meetings: Vec<Meeting>,
    pub views: Views,
    pub epoch: u32,
    /// The epoch in which all its lanes last synchronised.
    pub synced: u32,
    /// Who made the accesses of all its lanes together.
    pub actor: ActorId,
    pub halves: crate::machine::memory::halves::Halves,
    pub fences: crate::machine::barrier::scopes::Fences,
    /// CTAs of the cluster that it knows to have started, as a mask.
    pub met: u32,
    /// Its lanes' frames of local memory, one behind the other; empty until one is touched.
    pub local: Memory,
    /// Lanes that have arrived at the cluster barrier and not waited yet.
    pub cluster_arrived: u32,
    /// The statements by which its lanes last arrived there.
    pub cluster_arrivals: SmallVec<[(u32, u32); 1]>,
    /// Lanes whose phase of the cluster barrier is complete, and which have not waited yet.
    pub cluster_passed: u32,
    /// Bulk groups by lane.
    pub bulk: FxHashMap<usize, crate::machine::tma::bulk::BulkGroups>,
    /// Who made those of some of its lanes.
    pub parts: Vec<(u32, ActorId)>,
    /// Proxy fences that cover less than they may seem to.
    pub narrow_fences: Vec<NarrowFence>,
    /// Proxy fences of shared memory: the statement, and the warp's epoch when it was last executed. The last at the end.
    pub proxy_fences: SmallVec<[(u32, u32); 2]>,
    /// Its relaxed arrivals at the cluster barrier: the statement, and its own epoch and that of its `cp.async`s then.
    pub relaxed_arrivals: SmallVec<[(u32, u32, u32); 2]>,
    /// Its `tcgen05.ld`s and `tcgen05.st`s, in order.
    pub loads: Queue,
    /// Its `cp.async` groups.
    pub copies: Queue,
    /// Epochs of them that an arrival closed, and no `cp.async.commit_group`: they belong to the group behind them.
    pub copies_open: SmallVec<[u32; 4]>,
    pub copies_waited: Option<crate::machine::explain::groups::GroupWait>,
    pub copies_untold: crate::machine::tma::copy_lanes::Untold,
    pub stores: Queue,
    /// Its side of its warpgroup's MMAs.
    pub wgmma: crate::machine::mma::wgmma::Own,
    pub open_loads: Vec<OpenLoad>,
    /// The warp's own epoch when it issued each of them, loads and stores.
    pub loads_issued: Vec<u32>,
    pub stores_issued: Vec<u32>,
    /// When the values of stores are all there: the compiler issues loads ahead of stores that do not need them.
    pub stores_ready_at: u64,
    pub stores_done_at: u64,
    /// Registers whose value is still on its way from memory.
    pub on_the_way: OnTheWay,
    /// What its lanes have done in shared memory and not told each other.
    pub untold: crate::machine::memory::lanes_apart::Untold,
    pub loaded_chunks: crate::machine::layout::copied::LoadedChunks,
    /// Why a register holds no defined value (index into the run's origins).
    pub origins: FxHashMap<Reg, u32>,
    pub passed: Vec<Passed>,
    /// Waits that said no, and behind which it went on; the last of each mbarrier.
    pub unheeded: Vec<crate::machine::explain::unheeded::Unheeded>,
    /// Waits in a row that did not succeed.
    pub polls: u64,
    /// Registers that each of its threads may have, if `.maxnreg` says how many it began with.
    pub most_registers: u32,
    /// Its `setmaxnreg`s, in order.
    pub register_counts: Vec<register_pool::Resized>,
    /// The last strong access of global memory that brought what it had brought before and changed nothing, or the last wait that
    /// did not succeed: its statement, and when.
    pub asks: Option<(u32, u64)>,
    /// The loops that it may be in when the run's instructions are used up.
    pub loops: crate::machine::loops::runaway::Loops,
    /// Its rounds since anything changed.
    pub rounds: crate::machine::loops::livelock::Rounds,
    /// What strong accesses of global memory brought last: by statement, first lane and its target.
    pub seen: FxHashMap<(u32, usize, Target), Vec<u128>>,
    /// Statements at which an operation meant for one thread was executed by several lanes.
    pub multi_lane_sites: Vec<u32>,
}

/// Asynchronous operations of one kind that complete in order.
#[derive(Clone, Copy, Debug)]
pub struct Queue {
    /// [`NOBODY`] before the first.
    pub actor: ActorId,
    pub epoch: u32,
    /// When the last of them ends (MMAs).
    pub busy_until: u64,
    /// The statement of the last of them (MMAs).
    pub site: u32,
}

impl Default for Queue {
    fn default() -> Queue {
        Queue::of(NOBODY)
    }
}

impl Queue {
    pub fn of(actor: ActorId) -> Queue {
        Queue { actor, epoch: 0, busy_until: 0, site: 0 }
    }

    pub fn is_used(&self) -> bool {
        self.actor != NOBODY
    }

    /// Its operations up to this epoch have happened, to the eyes of whom the clock is.
    pub fn raise(&self, clock: &mut Clock, epoch: u32) {
        clock.raise(self.actor, epoch);
    }
}

impl Warp {
    /// A place where lanes are to meet; says which.
    pub fn add_meeting(&mut self, new: Meeting) -> u32 {
        // Nobody waits for a meeting that has taken place.
        let place = self.meetings.iter().position(|m| m.mask == 0).unwrap_or(self.meetings.len());
        match self.meetings.get_mut(place) {
            Some(meeting) => *meeting = new,
            None => self.meetings.push(new),
        }
        place as u32
    }

    /// What the warp knows, its own accesses included; what it does next is not part of it.
    pub fn release(&mut self) -> Views {
        let snapshot = self.views.told();
        self.advance();
        snapshot
    }

    /// Tells it to others.
    pub fn release_to(&mut self, others: &mut Views) {
        others.join(&self.views);
        self.advance();
    }

    /// An asynchronous operation of its begins: what came before. What the warp does next, a wait above all, did not.
    pub fn starts(&mut self) -> Clock {
        let before = if self.judged { self.views.before_now() } else { Clock::default() };
        self.advance();
        before
    }

    /// What the warp does next is told apart from what it did.
    pub fn advance(&mut self) {
        self.epoch += 1;
        self.views.raise(self.actor, self.epoch);
        for &(_, actor) in &self.parts {
            self.views.raise(actor, self.epoch);
        }
    }

    /// Whether an epoch of an actor is known to have been, also through a relaxed wait that orders nothing.
    pub fn has_heard_of(&self, actor: ActorId, epoch: u32) -> bool {
        [&self.views, &self.halves.unacquired].iter().any(|views| views.came_before(actor) >= epoch)
    }

    /// What a relaxed operation tells others.
    pub fn fenced_release(&mut self) -> Views {
        let told = self.told_relaxed(self.halves.at_fence.clone());
        self.advance();
        told
    }

    /// The same, told to threads of its own CTA, and to those of others.
    pub fn fenced_releases(&mut self) -> (Views, Views) {
        let near = self.told_relaxed(self.halves.at_fence.clone());
        let beyond = self.told_relaxed(self.halves.at_cluster_fence.clone());
        self.advance();
        (near, beyond)
    }

    fn told_relaxed(&self, mut views: Views) -> Views {
        // Loads that a proxy fence follows are over: the asynchronous proxy may overwrite what they have read (the example of
        // clusterlaunchcontrol.try_cancel in the PTX ISA hands its response back so).
        views.fenced.join(&self.views.fenced);
        views.inits.clone_from(&self.views.inits);
        if self.judged {
            views.order = self.views.before_now();
        }
        views
    }

    /// A fence of the generic proxy, of both directions.
    pub fn fence(&mut self, scope: Scope) {
        self.acquire_fence(scope);
        self.release_fence(scope);
    }

    /// What relaxed operations saw before is known from now on.
    pub fn acquire_fence(&mut self, scope: Scope) {
        let seen = std::mem::take(&mut self.halves.unacquired);
        self.views.join(&seen);
        if scope == Scope::Gpu {
            let seen = std::mem::take(&mut self.halves.unacquired_far);
            self.views.join(&seen);
        }
        self.fences.acquire(scope, &mut self.views);
    }

    /// What is known now is told by relaxed operations from now on.
    pub fn release_fence(&mut self, scope: Scope) {
        self.fences.release(scope, &self.views);
        self.halves.at_fence = self.release();
        if scope >= Scope::Cluster {
            self.halves.at_cluster_fence = self.halves.at_fence.clone();
        }
        if scope == Scope::Gpu {
            self.halves.at_gpu_fence = self.halves.at_fence.clone();
        }
    }

    /// `fence.mbarrier_init`: initialisations so far may be told by a relaxed operation.
    pub fn init_fence(&mut self) {
        if self.judged {
            self.views.inits.join(&self.views.hb);
        }
        self.advance();
    }

    /// All its lanes have synchronised with each other: what one of them fences from now on includes what all did before.
    pub fn synchronised(&mut self) {
        self.synced = self.epoch;
        self.advance();
    }

    /// `fence.proxy.async` by these lanes: what happened before is visible to the asynchronous proxy. What other lanes of
    /// the warp did since the warp last synchronised did not happen before.
    pub fn proxy_fence(&mut self, mask: u32, shared: bool, global: bool) {
        let known = self.known_to(mask);
        if !self.judged {
            return;
        }
        if shared {
            self.views.fenced.join(&known);
        }
        if global {
            self.views.fenced_global.join(&known);
            self.views.fence_far();
        }
        self.views.fence_late(shared, global);
    }

    /// A release fence for tensor maps, by these lanes of a warp of this cluster: who acquires the map may use what happened before.
    pub fn map_release(&mut self, mask: u32, scope: Scope, cluster: u32) {
        let known = self.known_to(mask);
        let maps = if scope == Scope::Cta { &mut self.views.maps_near } else { &mut self.views.maps };
        maps.join(&known);
        if scope == Scope::Gpu {
            self.views.release_maps_far(cluster, &known);
        }
        self.fence(scope);
    }

    /// What happened before, to the eyes of these lanes. What they do next is told apart from it.
    fn known_to(&mut self, mask: u32) -> Clock {
        let mut known = self.views.hb.clone();
        self.advance();
        if mask != self.live {
            known.lower(self.actor, self.synced);
            for &(part, actor) in &self.parts {
                if part & !mask != 0 {
                    known.lower(actor, self.synced);
                }
            }
        }
        known
    }
}
