//! A cluster: the CTAs, their warps and what is on its way between them.

use crate::Options;
use crate::diagnostic::Diagnostic;
use crate::launch::Launch;
use crate::machine::barrier::mbarrier::Mbarrier;
use crate::machine::chip::cache::Touched;
use crate::machine::chip::outbox::Outbox;
use crate::machine::chip::share::{RATE_BYTES, Rates};
use crate::machine::chip::tracker::Tracker;
use crate::machine::explain::findings::Findings;
use crate::machine::memory::places::Places;
use crate::machine::memory::{Global, Runs};
use crate::machine::state::{ActorKind, Commit, Cta, Lacks, NamedBarrier, Origin, Pending, Race, RaceMemory, Span};
use crate::machine::values::{Blank, Dependences};
use crate::machine::warp::{Queue, Warp};
use crate::order::{ActorId, Clock, NOBODY, Reason, Stamp, Views};
use crate::program::Kernel;
use crate::protocol::Record;
use crate::report::{Actor, Event, EventKind, Issuer, Memory, Printed};
use crate::tensor_map::TensorMap;
use crate::time::Costs;
use rustc_hash::{FxBuildHasher, FxHashMap, FxHashSet};
use smallvec::SmallVec;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::hash::BuildHasher;
use std::sync::Arc;

/// What all clusters of a launch share.
#[derive(Clone, Copy)]
pub struct Shared<'a> {
    pub kernel: &'a Kernel,
    pub launch: &'a Launch,
    pub options: &'a Options,
    pub params: &'a [u8],
    pub costs: &'a Costs,
    /// Number of buffers in global memory.
    pub buffers: usize,
    pub dependences: &'a Dependences,
    pub leavings: &'a crate::machine::loops::livelock::Leavings,
    /// Whether it is known who knows of what. Without it clusters run faster, and say where they had to guess.
    pub clocks: bool,
}

/// Which cluster of the launch: its number, its first CTA, the SM it begins on, and when.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    pub index: u32,
    pub first: [u32; 3],
    pub sm: u32,
    pub start: u64,
    /// Clusters that an SM has room for.
    pub room: u32,
    /// Clusters that share an SM when as many run as can.
    pub sharing: u32,
}

/// Sets of lanes of a warp whose accesses are told apart.
pub const MAX_PARTS: usize = 64;

/// The run cannot go on; the diagnostic (if it is not a consequence of one already found) says why.
pub type Stop = Option<Box<Diagnostic>>;

pub struct Cluster<'a> {
    pub kernel: &'a Kernel,
    pub launch: &'a Launch,
    pub options: &'a Options,
    pub params: &'a [u8],
    pub costs: &'a Costs,
    /// As it was where this window began.
    pub global: Arc<Global>,
    /// What others see of this cluster where the window ends.
    pub outbox: Outbox<'a>,
    /// Who of this cluster touched global memory.
    pub tracker: Tracker,
    /// Who makes loads that nothing orders, once there was one.
    pub non_coherent: Option<ActorId>,
    /// The grid before, once somebody has waited for it.
    pub prerequisite: Option<ActorId>,
    /// Statements that have touched a buffer too early, with the buffer.
    pub early: FxHashSet<(u32, usize)>,
    pub acquired: crate::machine::tma::tensor_maps::Acquired,
    /// By warp.
    pub map_reads: FxHashMap<usize, crate::machine::tma::map_reads::MapReads>,
    pub made_maps: crate::machine::tma::made_maps::MadeMaps,
    pub findings: Findings,
    pub index: u32,
    /// It computes no values; `None`: it does.
    pub blank: Option<Blank<'a>>,
    /// The first statement of a cluster with values that read what was not computed.
    pub read_blank: Option<u32>,
    /// What the run has ended at, since it is not modelled.
    pub not_modelled: Option<String>,
    /// The first statement that [`Options::tensor_load_factor`] cannot be applied to, and why.
    pub factor_fails: Option<(u32, &'static str)>,
    pub sm: u32,
    /// Clusters that its SM has room for, and that share it when as many run as can.
    pub room: u32,
    pub sharing: u32,
    /// What it gets of the chip's bandwidth.
    pub rates: Rates,
    /// Bytes that it moved through L2 in this window, those of them that were not there, and the lines that it touched.
    pub moved: u64,
    pub missed: u64,
    pub lines: Touched,
    /// Numbers of strong accesses, and responses that are not on their way yet.
    pub requests: u32,
    pub awaited: u32,
    /// Warp instructions so far, and how many there may be.
    pub instructions: u64,
    pub budget: u64,
    /// From this one on it is asked whether some loop is never left.
    pub look_at: u64,
    /// From this one on it is watched which loops warps are in.
    pub watched: u64,
    /// What happened since the last window ended.
    pub activity: crate::machine::loops::livelock::Activity,
    /// Its CTAs, by rank.
    pub ctas: Vec<Cta>,
    pub warps: Vec<Warp>,
    pub actors: Vec<ActorKind>,
    pub scopes: crate::machine::barrier::scopes::Scopes,
    /// The queue of MMAs of each thread that issued one: by (warp, lane).
    pub mma_queues: FxHashMap<(usize, usize), Queue>,
    /// The same of its commits.
    pub commit_queues: FxHashMap<(usize, usize), Queue>,
    /// Phases that one arrival of a thread's commits in a CTA completed alone: the ones behind it tell of them (assumption
    /// `commits-arrive-in-order`).
    pub commits_completed: FxHashMap<(ActorId, usize), Clock>,
    pub barriers: Vec<Mbarrier>,
    pub leavings: &'a crate::machine::loops::livelock::Leavings,
    /// See [`Shared::clocks`].
    pub clocks: bool,
    /// Something was asked that clocks alone say.
    pub guessed: bool,
    /// Counts what warps and engines do that others, or they themselves later, could see, other than words that they write to memory.
    pub changes: u64,
    /// Counts windows in which some cluster did so.
    pub far_changes: u64,
    /// The same of such words.
    pub writes: u64,
    pub far_writes: u64,
    /// All that could go on goes round in loops that find the same each time.
    pub nobody_acts: bool,
    /// The same where some of it looks at global memory, or writes: what `changes` and `far_changes` were; and where none of it writes, `writes` and `far_writes`.
    pub round_since: Option<(u64, u64)>,
    pub quiet_since: Option<[u64; 2]>,
    /// Where it writes and looks, once all go round and some write.
    pub trail: Option<Box<crate::machine::loops::trail::Trail>>,
    /// Index into `barriers` by rank of the CTA and offset.
    pub barrier_at: FxHashMap<(usize, u32), u32>,
    /// The first and the end of all places in shared memory where there was an mbarrier.
    pub barrier_span: (u32, u32),
    pub mmas: Places<crate::machine::mma::PendingMma>,
    pub issued: crate::machine::mma::issued::Issued,
    pub tensor_copies: Places<crate::machine::tensor_memory::copy::PendingTensorCopy>,
    pub products: crate::machine::layout::loaded::Products,
    pub depths: crate::machine::layout::depths::Depths,
    pub offsets: crate::machine::layout::offsets::Offsets,
    /// What of tensors it loads, and what of products it reads.
    pub inputs: crate::machine::coverage::inputs::Inputs,
    pub drained: crate::machine::coverage::drained::Drained,
    pub supplies: crate::machine::tensor_memory::supplies::Supplies,
    pub sums: crate::machine::coverage::sums::Sums,
    pub placed: crate::machine::coverage::placed::Placed,
    /// Statements that have loaded what is added to a product.
    pub added: rustc_hash::FxHashSet<u32>,
    /// How often MMAs take the scale factors that copies bring.
    pub uses: crate::machine::coverage::rounds::Uses,
    /// What says nothing where anything was found: it may be a consequence of that.
    pub if_clean: Vec<crate::diagnostic::Diagnostic>,
    /// Found out when a hang asks for them.
    pub groups: std::cell::OnceCell<crate::machine::hang::groups::Groups>,
    pub roles: std::cell::RefCell<FxHashMap<u32, u32>>,
    pub forks: crate::machine::explain::forks::Forks,
    /// By the first warp of each.
    pub warpgroups: FxHashMap<usize, crate::machine::mma::wgmma::Warpgroup>,
    pub wgmmas: Places<crate::machine::mma::wgmma_work::PendingWgmma>,
    pub wgmma_scratch: crate::machine::mma::wgmma_work::Scratch,
    pub remote: crate::machine::memory::remote::Remote,
    /// Those that are complete and not computed yet.
    pub batches: crate::machine::arithmetic::batch::Batches,
    pub commits: Vec<Commit>,
    pub copies_arrivals: Vec<crate::machine::state::CopiesArrival>,
    /// The last MMA of each queue that a commit covers.
    pub covered: FxHashMap<(usize, usize), u32>,
    pub copies: Vec<crate::machine::tma::Copy>,
    /// Initialisations of mbarriers that nothing orders before their uses, as far as they are told.
    pub unordered_inits: Vec<crate::machine::explain::init_order::UnorderedInits>,
    /// Phases that were complete before copies for which more bytes came than were announced: the mbarrier, the place at which that is told, and the copies.
    pub early_phases: Vec<(u32, crate::diagnostic::Place, Vec<u32>)>,
    /// Places in `copies` of those that nobody asks for any more.
    pub free_copies: Vec<usize>,
    /// Tensor maps, as they lay in memory and decoded.
    pub maps: Vec<([u8; 128], Arc<TensorMap>)>,
    /// Loads that will read their source when they complete.
    pub waiting: Vec<usize>,
    /// What of their sources is not prefetched yet.
    pub unfetched: crate::machine::tma::prefetches::Unfetched,
    /// Memory for what copies read, used again.
    pub spare_data: Vec<Memory>,
    /// The same for where accesses lead.
    pub spare_targets: Vec<(usize, crate::machine::memory::resolve::Target)>,
    /// Answers of cluster launch control on their way.
    pub responses: Vec<crate::machine::chip::launch_control::Response>,
    /// The phase of the cluster barrier that is not complete, and what the last complete one told, and when.
    pub cluster_barrier: NamedBarrier,
    pub cluster_known: Views,
    /// What relaxed arrivals at the cluster barrier tell their own CTA alone, in this phase and in the one that is complete; empty in a
    /// cluster of one CTA.
    pub cluster_near: Vec<Views>,
    pub cluster_known_near: Vec<Views>,
    pub cluster_time: u64,
    /// The barrier as an actor, and how many phases are complete.
    pub cluster_phases: Option<(ActorId, u32)>,
    /// What strong stores to shared memory published.
    pub published: crate::machine::memory::atomics::Published,
    /// What warps and engines did to wait for each other.
    pub record: Record,
    pub races: Vec<Race>,
    /// While a store is checked: its conflicts among them, of which it is not known yet whether both store the same value.
    pub raced: Option<Vec<usize>>,
    /// The mbarrier at which an arrival was one too many, and the warp that made it or issued the MMAs that did.
    pub overflowed: Option<(u32, usize)>,
    /// Operands of MMAs that go on behind the boxes in which they begin.
    pub overruns: Vec<crate::machine::layout::boxes::Overrun>,
    /// Where operands of MMAs begin.
    pub starts: Vec<crate::machine::layout::unshifted::Starts>,
    /// Operands of another stage than the one that was waited for.
    pub other_stages: Vec<crate::machine::layout::stage::OtherStage>,
    /// Stores of boxes that were loaded for MMAs.
    pub boxes_stored: Vec<crate::machine::explain::stores::BoxStored>,
    /// Loads of tensor memory from other accumulators than those that were waited for.
    pub other_accumulators: Vec<crate::machine::explain::other_accumulator::OtherAccumulator>,
    pub rewrites: crate::machine::memory::rewrites::Rewrites,
    /// What warps have stored to tensor memory since they told anything last.
    pub stored_cells: crate::machine::memory::rewrites::Rewrites,
    /// Phases that may be overtaken.
    pub untold: Vec<crate::machine::explain::overtaken::Untold>,
    /// Once nothing goes on any more: which clusters wait for tensor memory, and whether for each other.
    pub wanted_columns: Option<(Vec<crate::machine::chip::grant::Wanted>, bool)>,
    /// Who made accesses of other clusters that races of this one name.
    pub strangers: FxHashMap<(u32, ActorId), crate::machine::memory::parties::Party>,
    pub race_keys: HashMap<(u32, u32, RaceMemory, Reason), usize>,
    pub origins: Vec<Origin>,
    /// Where those of a statement and a text are among them, by the hash of both.
    pub known_origins: FxHashMap<u64, SmallVec<[u32; 1]>>,
    pub kept_origins: crate::machine::memory::origins::Kept,
    /// Who has multiplied what of shared memory nothing had written: statement, CTA and offset.
    pub unwritten: Vec<(u32, usize, u32)>,
    pub events: BinaryHeap<Reverse<(u64, u64, Pending)>>,
    pub sequence: u64,
    /// No instruction that others can see is executed after this cycle before the scheduler has looked again.
    pub horizon: u64,
    /// The last cycle of the window.
    pub until: u64,
    pub end: u64,
    /// The time of the event that is being handled.
    pub now: u64,
    pub trace: Vec<Event>,
    /// What its threads printed, and how many texts more.
    pub printed: Vec<Printed>,
    pub printed_beyond: u64,
    pub polls: u64,
    pub random: Option<u64>,
}

impl<'a> Cluster<'a> {
    /// CTAs of other clusters may hold tensor memory of the same SM.
    pub fn shares_sm(&self) -> bool {
        self.room > 1
    }

    /// CTAs of a cluster in x, y, z.
    pub fn extent(&self) -> [u32; 3] {
        cluster_extent(self.kernel, self.launch)
    }

    pub fn actor(&mut self, kind: ActorKind) -> ActorId {
        if !self.clocks {
            return NOBODY;
        }
        self.actors.push(kind);
        self.scopes_know(kind);
        self.actors.len() as ActorId - 1
    }

    /// Who the operations of a warp's queue are: known from the first of them on, since clocks are as long as there are actors.
    pub fn queue_actor(&mut self, w: usize, queue: fn(&mut Warp) -> &mut Queue, kind: fn(u32) -> ActorKind) -> ActorId {
        let known = queue(&mut self.warps[w]);
        if known.is_used() {
            return known.actor;
        }
        let actor = self.actor(kind(w as u32));
        queue(&mut self.warps[w]).actor = actor;
        actor
    }

    /// 0 in the default schedule; in an adversarial one, a number below `limit`, one time in four 0.
    pub fn jitter(&mut self, limit: u64) -> u64 {
        let Some(state) = &mut self.random else { return 0 };
        *state = mix(*state);
        if *state >> 60 < 4 { 0 } else { (*state >> 20) % limit.max(1) }
    }

    /// Whether an adversarial schedule takes the less likely way here, one time in `n`.
    pub fn perturbed(&mut self, n: u64) -> bool {
        let Some(state) = &mut self.random else { return false };
        *state = mix(*state);
        (*state >> 20).is_multiple_of(n)
    }

    /// Brings bytes of global memory into L2: how many were not there.
    pub fn missed(&mut self, runs: Runs) -> u64 {
        self.lines.missed(&self.global.cache, runs)
    }

    /// Cycles that it takes to move bytes between a CTA's SM and L2, some of which come from DRAM.
    pub fn carry(&mut self, cta: usize, bytes: u64, missed: u64) -> u64 {
        self.moved += bytes;
        self.missed += missed;
        let port = bytes.div_ceil(self.costs.port_bytes_per_cycle);
        self.ctas[cta].busy.global_port += port;
        let port = port * self.ctas[cta].slowed.global_port / 256;
        let share = |bytes: u64, rate: u64| (bytes * rate).div_ceil(RATE_BYTES);
        port.max(share(bytes, self.rates.l2)).max(share(missed, self.rates.dram))
    }

    /// A CTA's number in the grid, x fastest.
    pub fn cta_index(&self, cta: usize) -> u32 {
        let [gx, gy, _] = self.launch.grid;
        let [x, y, z] = self.ctas[cta].id;
        x + gx * (y + gy * z)
    }

    pub fn trace(
        &mut self,
        cta: usize,
        actor: Actor,
        span: Span,
        site: u32,
        kind: impl FnOnce() -> EventKind,
    ) -> Option<usize> {
        if !self.options.trace {
            return None;
        }
        let place = self.place(site);
        let cta = self.cta_index(cta);
        let Span { w, issued, start, end } = span;
        let issuer = Issuer { cta: self.cta_index(self.warps[w].cta), warp: self.warps[w].index };
        self.trace.push(Event { cta, actor, issuer, issued, start, end, place, kind: kind() });
        Some(self.trace.len() - 1)
    }

    /// Remembers a conflict; it is explained at the end of the run.
    pub fn race(&mut self, race: Race) {
        let issuer = match self.kind(race.second) {
            Some(ActorKind::Warp(w) | ActorKind::AsyncCopies(w)) => Some(w),
            Some(ActorKind::Mmas { warp, .. } | ActorKind::Wgmmas { warp } | ActorKind::BulkReads { warp }) => {
                Some(warp)
            }
            _ => None,
        };
        let issuer = issuer.and_then(|w| self.warps.get(w as usize));
        let first = race.conflict.first;
        let known = issuer.is_some_and(|warp| warp.views.came_before(first.actor) >= first.epoch);
        let in_time = race.in_time || known && matches!(race.memory, RaceMemory::Shared(_));
        // What an engine writes, too, comes behind what its warp has heard of.
        let giver = issuer.or_else(|| self.warps.get(race.by?));
        let heard = |warp: &&Warp| warp.views.came_before(first.actor) >= first.epoch;
        let giver = giver.filter(|warp| in_time || heard(warp) && matches!(race.memory, RaceMemory::Shared(_)));
        let relaxed_arrival = giver.and_then(|warp| self.relaxed_arrival_behind(first, &warp.views));
        let narrow_fence = issuer.and_then(|warp| self.narrow_fence_between(first, warp));
        let comes_late = issuer.is_some_and(|warp| self.was_issued_unheard(first, warp));
        let race = Race { in_time, relaxed_arrival, narrow_fence, comes_late, ..race };
        let key = (race.conflict.first.site, race.second.site, race.memory, race.conflict.reason);
        let reads = self.reader_of(&race).filter(|_| matches!(race.memory, RaceMemory::Global(_)));
        match self.race_keys.get(&key) {
            Some(&n) => {
                let newer = self.groups_behind(first);
                let known = &mut self.races[n];
                known.count += 1;
                known.newer_groups = [known.newer_groups[0].min(newer), known.newer_groups[1].max(newer)];
                known.in_time &= race.in_time;
                known.relaxed_arrival = known.relaxed_arrival.filter(|_| race.relaxed_arrival.is_some());
                known.unwaited &= race.unwaited;
                known.comes_late &= race.comes_late;
                if let Some(reads) = reads.filter(|reader| !known.readers.contains(reader)) {
                    known.readers.push(reads);
                }
                match &mut self.raced {
                    Some(raced) => raced.push(n),
                    None => known.same_value &= race.same_value,
                }
            }
            None => {
                self.race_keys.insert(key, self.races.len());
                self.raced.iter_mut().for_each(|raced| raced.push(self.races.len()));
                let unheeded = self.unheeded_by(&race);
                let (group_wait, newer_groups) = (self.group_wait(first), [self.groups_behind(first); 2]);
                let first_passed = self.passed_for_second(&race);
                let passed = match race.by.and_then(|w| self.warps.get(w)).or(issuer) {
                    Some(warp) if race.passed.is_empty() => warp.passed.clone(),
                    _ => race.passed,
                };
                let not_fenced = race.conflict.reason == Reason::NotFenced && narrow_fence.is_none();
                let reader = self.issuer(race.second).filter(|_| not_fenced);
                let misplaced = reader.and_then(|reader| self.misplaced_fence(first, reader));
                let readers = Vec::from_iter(reads);
                self.races.push(Race {
                    passed,
                    first_passed,
                    unheeded,
                    group_wait,
                    newer_groups,
                    misplaced,
                    readers,
                    ..race
                });
            }
        }
    }

    /// How an access by these lanes is remembered.
    pub fn stamp(&mut self, w: usize, mask: u32, site: u32) -> Stamp {
        let warp = &self.warps[w];
        let part = warp.parts.iter().find(|part| part.0 == mask).map(|part| part.1);
        let actor = match part {
            _ if mask == warp.live => warp.actor,
            Some(actor) => actor,
            // Far more ways to part than kernels have: the rest counts as the whole warp's.
            None if warp.parts.len() >= MAX_PARTS => warp.actor,
            None => {
                let actor = self.actor(ActorKind::Warp(w as u32));
                let warp = &mut self.warps[w];
                warp.parts.push((mask, actor));
                warp.views.raise(actor, warp.epoch);
                actor
            }
        };
        Stamp::new(actor, self.warps[w].epoch, site, self.index)
    }

    /// Number of a new reason for undefined values.
    pub fn origin(&mut self, site: u32, text: String) -> u32 {
        let known = self.known_origins.entry(FxBuildHasher.hash_one((site, &text))).or_default();
        let is_it = |n: &&u32| {
            let origin = &self.origins[**n as usize];
            origin.site == site && origin.text == text
        };
        if let Some(&n) = known.iter().find(is_it) {
            return n;
        }
        let new = self.origins.len() as u32;
        known.push(new);
        self.origins.push(Origin { site, text, lacks: Lacks::Value, beside: None });
        new
    }

    /// Threads of a CTA that have not ended, counted in whole warps.
    pub fn live_threads(&self, cta: usize) -> u32 {
        self.warps.iter().filter(|w| w.cta == cta && w.live != 0).count() as u32 * 32
    }
}

/// CTAs of a cluster in x, y, z: what the launch says, or else the kernel's `.reqnctapercluster`.
pub fn cluster_extent(kernel: &Kernel, launch: &Launch) -> [u32; 3] {
    if launch.cluster == [1, 1, 1] { kernel.required_cluster.unwrap_or([1, 1, 1]) } else { launch.cluster }
}

pub fn mix(x: u64) -> u64 {
    let x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let x = (x ^ x >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ x >> 31
}
