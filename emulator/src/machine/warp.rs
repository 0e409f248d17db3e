//! A warp: registers of 32 lanes, and the parts it falls into while its lanes are at different places.

use super::access::Target;
use super::on_the_way::OnTheWay;
use crate::order::{ActorId, Clock, Views};
use crate::program::Kernel;
use crate::program::atomic::Scope;
use crate::program::facts::number;
use crate::program::op::{FALSE, Inst, L32, L64, Reg, TRUE};
use crate::report::Memory;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

/// The registers of a warp, and which lanes of each hold a defined value.
#[derive(Debug)]
pub struct Registers {
    pub b32: Vec<L32>,
    pub b64: Vec<L64>,
    pub pred: Vec<u32>,
    /// Of each class, how many there are.
    counts: (u16, u16, u16),
    /// Lanes defined, by the registers' [`number`].
    defined: Vec<u32>,
    /// Those that a `tcgen05.ld` is still to bring, by their number.
    loading: Vec<bool>,
    /// Which bits of registers lack a value, where not all do.
    pub parts: FxHashMap<Reg, Box<L64>>,
}

/// What registers hold before they are written: as a float, NaN.
const POISON: u32 = 0xffff_ffff;

impl Registers {
    pub fn new(kernel: &Kernel) -> Registers {
        let (n32, n64, np) = kernel.registers;
        let mut r = Registers {
            b32: vec![[POISON; 32]; n32.into()],
            b64: vec![[u64::MAX; 32]; n64.into()],
            pred: vec![0; np.into()],
            counts: kernel.registers,
            defined: vec![0; usize::from(n32) + usize::from(n64) + usize::from(np)],
            loading: vec![false; usize::from(n32) + usize::from(n64) + usize::from(np)],
            parts: FxHashMap::default(),
        };
        r.pred[usize::from(TRUE)] = u32::MAX;
        for p in [TRUE, FALSE] {
            r.set_defined(Reg::Pred(p), u32::MAX, u32::MAX);
        }
        for &(reg, value) in &kernel.constants32 {
            r.b32[usize::from(reg)] = [value; 32];
            r.set_defined(Reg::B32(reg), u32::MAX, u32::MAX);
        }
        for &(reg, value) in &kernel.constants64 {
            r.b64[usize::from(reg)] = [value; 32];
            r.set_defined(Reg::B64(reg), u32::MAX, u32::MAX);
        }
        r
    }

    /// A register's number among those of all classes.
    pub fn number(&self, reg: Reg) -> u32 {
        number(reg, self.counts)
    }

    /// Lanes in which a register holds a defined value.
    #[inline]
    pub fn defined(&self, reg: Reg) -> u32 {
        let n = self.number(reg) as usize;
        match reg {
            Reg::B128(_) => self.defined[n] & self.defined[n + 1],
            Reg::Sink => u32::MAX,
            _ => self.defined[n],
        }
    }

    /// Of the lanes that come to an instruction, those that its guard lets execute it; `None`: the guard has no defined value in one.
    #[inline]
    pub fn guarded(&self, inst: &Inst, active: u32) -> Option<u32> {
        if !inst.facts.guarded {
            return Some(active);
        }
        if active & !self.defined(Reg::Pred(inst.guard)) != 0 {
            return None;
        }
        let value = self.pred[usize::from(inst.guard)];
        Some(active & if inst.guard_negated { !value } else { value })
    }

    /// Of the lanes of `mask`, those in which an instruction's result is not defined, because a source is not.
    #[inline(always)]
    pub fn undefined(&self, inst: &Inst, mask: u32) -> u32 {
        let facts = &inst.facts;
        let lacking = if facts.few {
            let [a, b, c, d] = facts.reads.map(|n| self.defined[usize::from(n)]);
            !(a & b & c & d)
        } else {
            inst.uses.iter().fold(0, |mask, &reg| mask | !self.defined(reg))
        };
        match mask & lacking {
            0 => 0,
            lacking => mask & self.not_selected(inst, lacking),
        }
    }

    /// Whether a `tcgen05.ld` is still to bring a register that an instruction reads or writes.
    #[inline]
    pub fn waits_for_load(&self, inst: &Inst) -> bool {
        if inst.facts.few {
            let mut numbers = inst.facts.reads.iter().chain(&inst.facts.writes);
            return numbers.any(|&n| self.loading[usize::from(n)]);
        }
        let loading = |&reg: &Reg| matches!(reg, Reg::B32(_)) && self.loading[self.number(reg) as usize];
        inst.uses.iter().chain(&inst.defs).any(loading)
    }

    /// A `tcgen05.ld` is to bring these 32-bit registers, or has.
    pub fn set_loading(&mut self, registers: &[u16], loading: bool) {
        registers.iter().for_each(|&reg| self.loading[usize::from(reg)] = loading);
    }

    /// Says of the registers that an instruction has written that they are defined in these lanes.
    #[inline]
    pub fn all_defined(&mut self, inst: &Inst, mask: u32) {
        if !self.parts.is_empty() {
            inst.defs.iter().for_each(|&d| self.forget_parts(d, mask));
        }
        if inst.facts.few {
            inst.facts.writes.iter().for_each(|&n| self.defined[usize::from(n)] |= mask);
        } else {
            inst.defs.iter().for_each(|&d| self.set_defined(d, mask, u32::MAX));
        }
    }

    /// Says, for the lanes of `mask`, in which the value just written is defined.
    #[inline]
    pub fn set_defined(&mut self, reg: Reg, mask: u32, defined: u32) {
        if !self.parts.is_empty() {
            self.forget_parts(reg, mask);
        }
        let n = self.number(reg) as usize;
        let count = match reg {
            Reg::Sink => 0,
            Reg::B128(_) => 2,
            _ => 1,
        };
        for d in &mut self.defined[n..n + count] {
            *d = *d & !mask | mask & defined;
        }
    }

    /// Whether a 32-bit register holds the same in all these lanes.
    pub fn is_uniform(&self, reg: u16, mask: u32) -> bool {
        let values = &self.b32[usize::from(reg)];
        let first = values[mask.trailing_zeros() as usize % 32];
        let same = values.iter().enumerate().fold(0, |same, (lane, &value)| same | u32::from(value == first) << lane);
        mask & !same == 0
    }

    pub fn write32(&mut self, d: u16, mask: u32, value: &L32) {
        let d = &mut self.b32[usize::from(d)];
        if mask == u32::MAX {
            *d = *value;
        } else {
            for lane in lanes(mask) {
                d[lane] = value[lane];
            }
        }
    }

    pub fn write64(&mut self, d: u16, mask: u32, value: &L64) {
        let d = &mut self.b64[usize::from(d)];
        if mask == u32::MAX {
            *d = *value;
        } else {
            for lane in lanes(mask) {
                d[lane] = value[lane];
            }
        }
    }

    pub fn write_pred(&mut self, d: u16, mask: u32, value: u32) {
        let d = &mut self.pred[usize::from(d)];
        *d = *d & !mask | value & mask;
    }

    /// Writes one value to these lanes.
    pub fn broadcast(&mut self, d: Reg, mask: u32, value: u64) {
        match d {
            Reg::B32(r) => self.write32(r, mask, &[value as u32; 32]),
            Reg::B64(r) => self.write64(r, mask, &[value; 32]),
            Reg::Pred(r) => self.write_pred(r, mask, if value & 1 == 1 { mask } else { 0 }),
            Reg::B128(_) | Reg::Sink => lanes(mask).for_each(|lane| self.set_lane(d, lane, value.into())),
        }
    }

    /// Writes the low bits of one lane, whatever the class.
    #[inline]
    pub fn set_lane(&mut self, d: Reg, lane: usize, value: u128) {
        match d {
            Reg::B32(r) => self.b32[usize::from(r)][lane] = value as u32,
            Reg::B64(r) => self.b64[usize::from(r)][lane] = value as u64,
            Reg::B128(r) => {
                self.b64[usize::from(r)][lane] = value as u64;
                self.b64[usize::from(r) + 1][lane] = (value >> 64) as u64;
            }
            Reg::Pred(r) => {
                let p = &mut self.pred[usize::from(r)];
                *p = *p & !(1 << lane) | ((value & 1) as u32) << lane;
            }
            Reg::Sink => {}
        }
    }

    /// Reads one lane, whatever the class.
    #[inline]
    pub fn lane(&self, s: Reg, lane: usize) -> u128 {
        match s {
            Reg::B32(r) => self.b32[usize::from(r)][lane].into(),
            Reg::B64(r) => self.b64[usize::from(r)][lane].into(),
            Reg::B128(r) => {
                u128::from(self.b64[usize::from(r)][lane]) | u128::from(self.b64[usize::from(r) + 1][lane]) << 64
            }
            Reg::Pred(r) => u128::from(self.pred[usize::from(r)] >> lane & 1),
            Reg::Sink => 0,
        }
    }
}

/// The set bits of a mask.
pub fn lanes(mask: u32) -> impl Iterator<Item = usize> {
    let mut rest = mask;
    std::iter::from_fn(move || {
        if rest == 0 {
            return None;
        }
        let lane = rest.trailing_zeros() as usize;
        rest &= rest - 1;
        Some(lane)
    })
}

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
        order: super::scopes::Order,
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
    pub parity: u32,
    /// The phase whose completion let it pass; `None` on a barrier that had completed none.
    pub phase: Option<u64>,
    /// The warp had not known that phase to be complete.
    pub fresh: bool,
    /// The same phase had let it pass before.
    pub again: bool,
    /// Its statement has let the warp pass twice for one phase, now or before: it asks for other phases than those that it is meant for.
    pub lost: bool,
}

/// A warp.
#[derive(Debug)]
pub struct Warp {
    /// Rank of its CTA in the cluster.
    pub cta: usize,
    /// Its number in the CTA.
    pub index: u32,
    /// Lanes that exist and have not ended.
    pub live: u32,
    pub registers: Registers,
    pub fragments: SmallVec<[Fragment; 1]>,
    pub meetings: Vec<Meeting>,
    pub views: Views,
    pub epoch: u32,
    /// The epoch in which all its lanes last synchronised.
    pub synced: u32,
    /// Who made the accesses of all its lanes together.
    pub actor: ActorId,
    pub halves: super::halves::Halves,
    pub fences: super::scopes::Fences,
    /// CTAs of the cluster that it knows to have started, as a mask.
    pub met: u32,
    /// Its lanes' frames of local memory, one behind the other; empty until one is touched.
    pub local: Memory,
    /// Lanes that have arrived at the cluster barrier and not waited yet.
    pub cluster_arrived: u32,
    /// Lanes whose phase of the cluster barrier is complete, and which have not waited yet.
    pub cluster_passed: u32,
    /// Bulk groups by lane.
    pub bulk: FxHashMap<usize, super::bulk::BulkGroups>,
    /// Who made those of some of its lanes.
    pub parts: Vec<(u32, ActorId)>,
    /// Proxy fences that cover less than they may seem to: statement, and why.
    pub narrow_fences: Vec<(u32, String)>,
    /// Its relaxed arrivals at the cluster barrier: the statement, and its own epoch and that of its `cp.async`s then.
    pub relaxed_arrivals: SmallVec<[(u32, u32, u32); 2]>,
    /// Its `tcgen05.ld`s and `tcgen05.st`s, in order.
    pub loads: Queue,
    /// Its `cp.async` groups.
    pub copies: Queue,
    /// Epochs of them that an arrival closed, and no `cp.async.commit_group`: they belong to the group behind them.
    pub copies_open: SmallVec<[u32; 4]>,
    pub stores: Queue,
    /// Its side of its warpgroup's MMAs.
    pub wgmma: super::wgmma::Own,
    pub open_loads: Vec<OpenLoad>,
    /// The warp's own epoch when it issued each of them, loads and stores.
    pub loads_issued: Vec<u32>,
    pub stores_issued: Vec<u32>,
    /// When the values of stores are all there: the compiler issues loads ahead of stores that do not need them.
    pub stores_ready_at: u64,
    pub stores_done_at: u64,
    /// Registers whose value is still on its way from memory.
    pub on_the_way: OnTheWay,
    pub loaded_chunks: super::copied::LoadedChunks,
    /// Why a register holds no defined value (index into the run's origins).
    pub origins: FxHashMap<Reg, u32>,
    pub passed: Vec<Passed>,
    /// Waits that said no, and behind which it went on; the last of each mbarrier.
    pub unheeded: Vec<super::unheeded::Unheeded>,
    /// Waits in a row that did not succeed.
    pub polls: u64,
    /// Registers that each of its threads may have, if `.maxnreg` says how many it began with.
    pub most_registers: u32,
    /// Its `setmaxnreg`s, in order.
    pub register_counts: Vec<super::register_pool::Resized>,
    /// The last strong access of global memory that brought what it had brought before and changed nothing, or the last wait that
    /// did not succeed: its statement, and when.
    pub asks: Option<(u32, u64)>,
    /// Its rounds since anything changed.
    pub rounds: super::livelock::Rounds,
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
}

/// No actor.
const NOBODY: ActorId = ActorId::MAX;

impl Default for Queue {
    fn default() -> Queue {
        Queue::of(NOBODY)
    }
}

impl Queue {
    pub fn of(actor: ActorId) -> Queue {
        Queue { actor, epoch: 0, busy_until: 0 }
    }

    pub fn is_used(&self) -> bool {
        self.actor != NOBODY
    }

    /// Its operations up to this epoch have happened, to the eyes of whom the clock is.
    pub fn raise(&self, clock: &mut Clock, epoch: u32) {
        if self.is_used() {
            clock.raise(self.actor, epoch);
        }
    }
}

impl Warp {
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
        let before = self.views.before_now();
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
        self.told_relaxed(self.halves.at_fence.clone())
    }

    /// The same, told to threads of other CTAs.
    pub fn fenced_release_beyond(&mut self) -> Views {
        self.told_relaxed(self.halves.at_cluster_fence.clone())
    }

    fn told_relaxed(&self, mut views: Views) -> Views {
        // Loads that a proxy fence follows are over: the asynchronous proxy may overwrite what they have read (the example of
        // clusterlaunchcontrol.try_cancel in the PTX ISA hands its response back so).
        views.fenced.join(&self.views.fenced);
        views.inits.clone_from(&self.views.inits);
        views.order = self.views.before_now();
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
        self.views.inits.join(&self.views.hb);
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
        if shared {
            self.views.fenced.join(&known);
        }
        if global {
            self.views.fenced_global.join(&known);
            self.views.fence_far();
        }
        self.views.fence_late(shared, global);
    }

    /// A release fence for tensor maps, by these lanes: who acquires the map may use what happened before.
    pub fn map_release(&mut self, mask: u32, scope: Scope) {
        let known = self.known_to(mask);
        let maps = if scope == Scope::Cta { &mut self.views.maps_near } else { &mut self.views.maps };
        maps.join(&known);
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
