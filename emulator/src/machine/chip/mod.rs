//! The chip: clusters on their SMs, and what they have to do with each other.
//!
//! Clusters run side by side on the host's threads, in windows of simulated time, and know nothing of each other while a window
//! lasts. Where it ends, all that they did to each other takes effect in the order of its times, then of the clusters' numbers:
//! writes to global memory, atomic operations, requests for work and for tensor memory, the end of a cluster and the begin of
//! another. Bandwidth is shared out anew. So a run depends neither on the number of threads nor on their speed.

pub mod cache;
pub mod conclude;
pub mod grant;
pub mod launch_control;
pub mod outbox;
pub mod prerequisite;
pub mod share;
pub mod spare;
pub mod threads;
pub mod tracker;

use crate::diagnostic::Label;
use crate::machine::cluster::{Cluster, Place, Shared, cluster_extent};
use crate::machine::coverage::outputs::Outputs;
use crate::machine::explain::findings::Findings;
use crate::machine::explain::protocol::Ahead;
use crate::machine::loops::runaway::watched_from;
use crate::machine::memory::parties::Parties;
use crate::machine::memory::rewrites::{Rewrites, Span};
use crate::machine::memory::{Global, Runs};
use crate::machine::schedule::Progress;
use crate::machine::state::{Race, RaceMemory};
use crate::machine::tma::tensor_maps::MAP_BYTES;
use crate::order::{Far, Stamp, Views};
use crate::program::op::Op;
use crate::report::{CtaState, Deadlock, Event, Printed, Report};
use cache::LINE;
use grant::slots;
use launch_control::Queue;
use outbox::{Columns, Item};
use share::{Rates, ctas_an_sm};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};
use threads::Crew;
use tracker::{Toucher, Tracker};

/// Cycles of a window. Short where clusters talk to each other, since an answer takes until the end of the window; where they only
/// share bandwidth, windows become longer, each up to four times the one before: up to `LONG`, and beyond that, up to `LONGEST`, as
/// long as shares stay as they are and limit nobody. What a cluster holds fits into a core's caches, and what all of them hold does
/// not, so that each window begins with misses.
const SHORT: u64 = 512;
const LONG: u64 = 4096;
const LONGEST: u64 = 16384;

/// Cycles in which no cluster does anything but ask again, before that is taken for a hang.
const IDLE: u64 = 1 << 20;
/// What all clusters do in a window is done by one thread if it took less: to wake another takes some ten microseconds.
const BRIEF: Duration = Duration::from_micros(100);

/// SMs that a cluster runs on, side by side.
#[derive(Debug)]
pub struct Group {
    first_sm: u32,
    /// Clusters that run here.
    pub held: Vec<u32>,
    /// Since when there is room.
    free_at: u64,
    /// Columns of tensor memory that are taken, in slots of 32: of each CTA of a cluster's, by (cluster, CTA's rank).
    pub columns: Vec<(u32, usize, u16)>,
    /// CTAs that have allocated and may go on to: (cluster, CTA's rank). No other CTA of their SM allocates until they relinquish
    /// or end.
    pub permits: Vec<(u32, usize)>,
    /// Requests for tensor memory that wait, with their clusters.
    pub waiting: Vec<(u32, Columns)>,
}

pub struct Running<'a> {
    pub cluster: Box<Cluster<'a>>,
    pub index: u32,
    pub group: usize,
    pub progress: Progress,
}

pub struct Chip<'a> {
    pub s: Shared<'a>,
    pub global: Arc<Global>,
    /// Accesses of different clusters to global memory.
    pub tracker: Tracker,
    pub rewrites: Rewrites,
    pub outputs: Outputs,
    /// Of clusters that have ended.
    pub inputs: crate::machine::coverage::inputs::Inputs,
    pub drained: crate::machine::coverage::drained::Drained,
    pub supplies: crate::machine::tensor_memory::supplies::Supplies,
    pub sums: crate::machine::coverage::sums::Sums,
    pub placed: crate::machine::coverage::placed::Placed,
    /// Their notes that say nothing where anything was found.
    pub if_clean: Findings,
    pub queue: Queue,
    pub groups: Vec<Group>,
    /// Clusters that an SM group can hold, and that may run at once.
    pub room: usize,
    pub most: usize,
    /// Cycles of the next window, and of the longest.
    pub window: u64,
    pub longest: u64,
    pub crew: Arc<Crew<'a>>,
    /// The window before took so little of the host's time that no other thread is woken for the next.
    brief: bool,
    /// By ascending number.
    pub running: Vec<Running<'a>>,
    pub rates: Rates,
    /// Clusters that have ended and whose memory no other has yet.
    pub ended: Vec<Cluster<'a>>,
    /// What all SMs did: cycles of tensor cores, bytes from and to L2, bytes from DRAM.
    pub done: [u64; 3],
    /// Of clusters that have ended.
    pub instructions: u64,
    /// One of these had to guess.
    pub guessed: bool,
    pub idle: u64,
    pub trails: crate::machine::loops::trail::Trails,
    pub cycles: u64,
    /// Of clusters that have ended, by number.
    pub findings: Vec<(u32, Findings)>,
    pub ctas: Vec<(u32, Vec<CtaState>)>,
    pub trace: Vec<(u32, Vec<Event>)>,
    pub printed: Vec<(u32, Vec<Printed>)>,
    pub printed_beyond: u64,
    pub parties: Parties,
    /// Clusters that have begun, and those of them that compute values.
    pub begun: u32,
    pub computed: Vec<u32>,
    /// What clusters that have ended could not do without values, by number.
    pub missing: Vec<(u32, String)>,
    /// Whether an interleaving of the clusters that have ended can get stuck; those in which none can.
    pub deadlock: Deadlock,
    pub judged: BTreeMap<u128, Deadlock>,
    pub ahead: Arc<Ahead>,
    pub timing: Vec<Label>,
    pub requests_refused_and_granted: [u32; 2],
}

impl<'a> Chip<'a> {
    pub fn new(s: Shared<'a>, global: Global, crew: Arc<Crew<'a>>) -> Chip<'a> {
        let extent = cluster_extent(s.kernel, s.launch);
        let [nx, ny, nz] = std::array::from_fn(|n| u64::from(s.launch.grid[n] / extent[n].max(1)));
        let size = extent.iter().product::<u32>();
        // Clusters of one or two CTAs fit everywhere; larger ones stay within a GPC.
        let mut first_sm = 0;
        let mut groups = Vec::new();
        for &sms in s.costs.gpcs {
            for n in 0..sms / size {
                let group = Group {
                    first_sm: first_sm + n * size,
                    held: vec![],
                    free_at: 0,
                    columns: vec![],
                    permits: vec![],
                    waiting: vec![],
                };
                groups.push(group);
            }
            first_sm += sms;
        }
        let room = ctas_an_sm(&s) as usize;
        let asked = s.options.resident_clusters.or(s.launch.attributes.resident_clusters);
        let most = asked.map_or(usize::MAX, |n| n.max(1) as usize).min(groups.len() * room);
        let talks = s.kernel.code.iter().any(|inst| match &inst.op {
            Op::Load(op) => op.sync.is_some(),
            Op::Store(op) => op.sync.is_some(),
            Op::Atomic(_) | Op::TryCancel { .. } => true,
            Op::TensorAlloc { .. } => room > 1,
            _ => false,
        });
        let mut chip = Chip {
            rewrites: Rewrites::default(),
            tracker: Tracker::new(if s.options.judges() { s.buffers } else { 0 }, true),
            global: Arc::new(global),
            outputs: if s.options.judges() { Outputs::new(s.launch) } else { Outputs::default() },
            inputs: Default::default(),
            drained: Default::default(),
            supplies: Default::default(),
            sums: Default::default(),
            placed: Default::default(),
            if_clean: Findings::default(),
            queue: Queue { next: 0, total: nx * ny * nz, clusters: [nx, ny, nz] },
            groups,
            room,
            most,
            window: SHORT,
            longest: if talks { SHORT } else { LONG },
            crew,
            brief: false,
            running: vec![],
            rates: Rates::ALONE,
            ended: vec![],
            done: [0; 3],
            guessed: false,
            instructions: 0,
            idle: 0,
            trails: Default::default(),
            cycles: 0,
            findings: vec![],
            ctas: vec![],
            trace: vec![],
            printed: vec![],
            printed_beyond: 0,
            parties: Parties::default(),
            begun: 0,
            computed: vec![],
            missing: vec![],
            deadlock: Deadlock::NotJudged,
            judged: BTreeMap::new(),
            ahead: Arc::default(),
            timing: vec![],
            requests_refused_and_granted: [0; 2],
            s,
        };
        chip.rates = chip.share(chip.most.min(chip.queue.total as usize) as u64 * u64::from(size), 1, 1);
        chip
    }

    /// Runs the launch to its end. With the report: whether a cluster had to guess ([`Shared::clocks`]).
    pub fn run(mut self) -> (Report, bool) {
        self.begin();
        let mut end = 0;
        let mut completed = true;
        while !self.running.is_empty() {
            let times =
                self.running.iter().filter_map(|r| if let Progress::Until(at) = r.progress { Some(at) } else { None });
            let window = self.window;
            end = times.min().unwrap_or(end).max(end).saturating_add(window);
            self.run_window(end - 1);
            let (rates, clusters, before) = (self.rates, self.begun, self.done);
            let answered = self.settle(window, end);
            let steady =
                self.begun == clusters && self.rates.close_to(&rates) && self.has_bandwidth_left(before, window);
            // CTAs of one SM leave each other what they left over in the window before: that changes with whatever they do.
            let (longest, growth) = match self.room {
                1 if steady && self.longest == LONG => (LONGEST, 4),
                1 => (self.longest, 4),
                _ => (self.longest, 2),
            };
            self.window = (growth * window).min(longest);
            if self.stuck(answered, end) || self.running.iter().any(|r| r.progress == Progress::Stopped) {
                completed = false;
                break;
            }
        }
        let guessed = self.guessed;
        (self.report(completed), guessed)
    }

    /// All clusters run to the end of a window.
    fn run_window(&mut self, until: u64) {
        let executed = self.instructions + (0..self.running.len()).map(|n| self.cluster(n).instructions).sum::<u64>();
        let budget = self.s.options.max_instructions.saturating_sub(executed);
        let one = self.s.options.max_instructions_of_one();
        for running in &mut self.running {
            let cluster = &mut running.cluster;
            cluster.global = self.global.clone();
            cluster.rates = self.rates;
            cluster.budget = cluster.instructions.saturating_add(budget).min(one);
            cluster.watched = watched_from(self.s.options.max_instructions, cluster.budget);
        }
        let later = |r: &Running| matches!(r.progress, Progress::Until(time) if time > until);
        let all = std::mem::take(&mut self.running).into_iter().enumerate();
        let (mut all, mut work): (Vec<_>, Vec<_>) = all.partition(|(_, running)| later(running));
        // What takes longest comes first.
        work.sort_by_key(|(_, running)| !self.s.options.values.include(running.index));
        let (ahead, judges) = (self.ahead.clone(), self.s.options.judges());
        let run = move |(n, mut running): (usize, Running<'a>)| {
            running.progress = running.cluster.run(until);
            if running.progress == Progress::Done && judges {
                running.cluster.judge_ahead(&ahead);
            }
            (n, running)
        };
        let start = Instant::now();
        match self.brief {
            true => all.extend(work.into_iter().map(run)),
            false => all.extend(self.crew.all(work, run)),
        }
        self.brief = start.elapsed() < BRIEF;
        all.sort_unstable_by_key(|&(n, _)| n);
        self.running = all.into_iter().map(|(_, running)| running).collect();
    }

    /// Where a window ends: what clusters did to each other takes effect. Whether anybody got an answer.
    fn settle(&mut self, window: u64, end: u64) -> bool {
        let mut items = Vec::new();
        let nothing: Arc<Global> = Arc::default();
        let (mut moved, mut missed, mut movers, mut tensor_cores) = (0, 0, 0, 0);
        let (mut activity, mut computes) = (crate::machine::loops::livelock::Activity::default(), false);
        let written = self.running.iter_mut().fold(0, |all, running| all | running.cluster.outbox.written());
        for running in &mut self.running {
            let index = running.index;
            let cluster = &mut running.cluster;
            cluster.read_waiting(&self.global, written);
            cluster.global = nothing.clone();
            items.extend(cluster.outbox.take().into_iter().map(|(time, item)| (time, index, item)));
            movers += u64::from(cluster.moved > 0) * cluster.ctas.len() as u64;
            moved += std::mem::take(&mut cluster.moved);
            missed += std::mem::take(&mut cluster.missed);
            tensor_cores += cluster.ctas.iter().map(|cta| cta.busy.tensor_core).sum::<u64>();
            activity.join(std::mem::take(&mut cluster.activity));
            computes = computes || cluster.computes();
        }
        self.idle = if activity.any() || computes { 0 } else { self.idle + window };
        self.tell(activity);
        // Lines that several clusters missed came once.
        let cache = &mut Arc::make_mut(&mut self.global).cache;
        let came = LINE * self.running.iter_mut().map(|running| running.cluster.lines.enter(cache)).sum::<u64>();
        if moved > 0 {
            self.rates = self.share(movers, came.min(missed), missed);
        }
        self.done[1] += moved;
        self.done[2] += came.min(missed);
        self.heat(tensor_cores, window);
        // Clusters did one thing after the other: the sort keeps that order.
        items.sort_by_key(|&(time, index, _)| (time, index));
        let mut answered = false;
        for (time, index, item) in items {
            answered |= self.take_effect(time, index, item, end);
        }
        self.share_engines(window);
        self.begin();
        answered
    }

    fn take_effect(&mut self, time: u64, index: u32, item: Item, end: u64) -> bool {
        let Some(at) = self.find(index) else { return false };
        let group = self.running[at].group;
        let judges = self.s.options.judges();
        let same = judges && matches!(&item, Item::Write(write) if write.changes_nothing(&self.global));
        if judges {
            self.outputs.see(&item, same, &self.global, &self.tracker);
        }
        match item {
            Item::Read { runs, stamp, known } => self.check(at, &[runs], stamp, &known, false, false),
            Item::Map { buffer, offset, site, known, acquired } => {
                let (known, acquired) = (Views::far_only(known), Views::far_only(acquired));
                let writers = (0..MAP_BYTES as u64).step_by(4).filter_map(|n| self.tracker.writer(buffer, offset + n));
                // What is not even ordered is a race, and found as one.
                let missing = |by: &Stamp| {
                    by.cluster != index
                        && by.epoch <= known.far(by.cluster, by.actor).0
                        && by.epoch > acquired.far_map(by.cluster, by.actor)
                };
                if let Some(by) = writers.into_iter().find(missing) {
                    let released = by.epoch <= known.far_map(by.cluster, by.actor);
                    self.cluster(at).map_not_acquired(site, by.site, released, " at .gpu scope or a wider one");
                }
            }
            Item::Write(write) => {
                if judges
                    && let Some((buffer, byte)) = write.combines_with_nothing(&self.global)
                    && self.tracker.writer(buffer, byte).is_none()
                {
                    let what = self.global.buffers[buffer].describe(byte);
                    self.cluster(at).reduces_nothing(write.stamp.site, &what);
                }
                self.check(at, &write.runs, write.stamp, &write.known, true, same);
                write.finish(Arc::make_mut(&mut self.global));
            }
            Item::Publish(told) => {
                let published = &mut Arc::make_mut(&mut self.global).published;
                for &place in &told.places {
                    published.add(place, index, &told.near, &told.far);
                }
            }
            Item::Atomic(job) => {
                self.check(at, &job.runs(), job.stamp, &job.known, true, false);
                self.lend(at, |cluster, global| cluster.finish_atomic(&job, global, end));
                let buffers = &mut Arc::make_mut(&mut self.global).buffers;
                job.places().for_each(|(buffer, _)| buffers[buffer].whole = false);
                return self.go_on(at, end) && job.request.is_some();
            }
            Item::Load(job) => {
                self.lend(at, |cluster, global| cluster.finish_load(&job, global, end));
                return self.go_on(at, end);
            }
            Item::Cancel(request) => {
                let extent = cluster_extent(self.s.kernel, self.s.launch);
                let first = self.queue.take().map(|taken| self.queue.first_cta(taken, extent));
                self.requests_refused_and_granted[usize::from(first.is_some())] += 1;
                self.cluster(at).answer_cancel(*request, first, end);
                return self.go_on(at, end);
            }
            Item::TensorAlloc(columns) => {
                self.groups[group].waiting.push((index, columns));
                return self.grant(group, end);
            }
            Item::TensorFree { cta, column, columns } => {
                let mask = slots(column, columns);
                for held in self.groups[group].columns.iter_mut().filter(|h| (h.0, h.1) == (index, cta)) {
                    held.2 &= !mask;
                }
                return self.grant(group, end);
            }
            Item::Relinquish { cta } => {
                self.groups[group].permits.retain(|&permit| permit != (index, cta));
                return self.grant(group, end);
            }
            Item::End => {
                let ended = self.running.remove(at);
                self.conclude(ended, true);
                let left = &mut self.groups[group];
                left.held.retain(|&held| held != index);
                left.columns.retain(|held| held.0 != index);
                left.permits.retain(|permit| permit.0 != index);
                left.free_at = time;
                self.grant(group, end);
                self.begin();
                return true;
            }
        }
        false
    }

    /// Where a cluster begins in the grid.
    pub fn first_cta(&self, index: u32, extent: [u32; 3]) -> [u32; 3] {
        self.queue.first_cta(index.into(), extent)
    }

    /// The place of a cluster among those that run: they began in the order of their numbers.
    pub fn find(&self, index: u32) -> Option<usize> {
        self.running.binary_search_by_key(&index, |running| running.index).ok()
    }

    pub fn cluster(&mut self, at: usize) -> &mut Cluster<'a> {
        &mut self.running[at].cluster
    }

    /// Gives global memory to a cluster, which alone has it until then.
    fn lend(&mut self, at: usize, finish: impl FnOnce(&mut Cluster<'a>, &mut Arc<Global>)) {
        let mut global = std::mem::take(&mut self.global);
        finish(self.cluster(at), &mut global);
        self.global = global;
    }

    /// A cluster that waited goes on in the next window.
    pub fn go_on(&mut self, at: usize, end: u64) -> bool {
        if self.running[at].progress == Progress::Waits {
            self.running[at].progress = Progress::Until(end);
        }
        true
    }

    /// Holds an access against those of other clusters.
    fn check(&mut self, at: usize, runs: &[Runs], stamp: Stamp, known: &Far, writes: bool, same_value: bool) {
        let known = Views::far_only(known.clone());
        let mut span = Span::default();
        for &part in runs {
            let again = (writes && span.add_runs(part)).then_some(&self.rewrites.again);
            let by = Toucher { stamp, views: &known, homes: None, again };
            let conflict = self.tracker.touch(part, by, writes);
            let memory = RaceMemory::Global(part.buffer);
            if self.rewrites.again.take() && !same_value {
                for start in part.starts() {
                    self.rewrites.add(stamp, memory, start, start + u64::from(part.bytes));
                }
            }
            if let Some(conflict) = conflict {
                let race = Race::new(memory, conflict, stamp);
                let same_value = same_value && !self.rewrites.has(conflict.first, memory, conflict.byte);
                let first = (conflict.first.cluster, conflict.first.actor);
                if !self.cluster(at).strangers.contains_key(&first)
                    && let Some(party) = self.party(conflict.first)
                {
                    self.cluster(at).strangers.insert(first, party);
                }
                let cluster = self.cluster(at);
                let same_value = same_value && cluster.overwrites(&conflict);
                cluster.race(Race { same_value, ..race });
            }
        }
    }

    /// Starts clusters while there is room for them.
    fn begin(&mut self) {
        let extent = cluster_extent(self.s.kernel, self.s.launch);
        let mut places = Vec::new();
        while self.running.len() + places.len() < self.most {
            // The emptiest SMs first, then those that have been free for longest.
            let free = self.groups.iter().enumerate().filter(|(_, g)| g.held.len() < self.room);
            let Some((n, _)) = free.min_by_key(|(n, g)| (g.held.len(), g.free_at, *n)) else { break };
            let Some(index) = self.queue.take() else { break };
            self.begun += 1;
            if self.s.options.values.include(index as u32) {
                self.computed.push(index as u32);
            }
            let group = &mut self.groups[n];
            group.held.push(index as u32);
            let place = Place {
                index: index as u32,
                first: self.queue.first_cta(index, extent),
                sm: group.first_sm,
                start: group.free_at,
                room: self.room as u32,
                sharing: (self.most as u64).min(self.queue.total).div_ceil(self.groups.len().max(1) as u64) as u32,
            };
            places.push((n, place, self.ended.pop()));
        }
        let s = self.s;
        self.running.extend(self.crew.all(places, move |(group, place, before)| {
            let cluster = Box::new(Cluster::new(&s, place, before));
            Running { cluster, index: place.index, group, progress: Progress::Until(place.start) }
        }));
    }

    /// Nothing can go on any more, or nothing but asking again has happened for long.
    fn stuck(&mut self, answered: bool, end: u64) -> bool {
        let waits = |r: &Running| r.progress == Progress::Waits;
        let quiet = self.idle > IDLE && !self.some_may_leave() || self.all_go_round(end);
        if self.running.is_empty() || !(quiet || !answered && self.running.iter().all(waits)) {
            return false;
        }
        let wanted = self.wanted_columns();
        let at = wanted.as_ref().and_then(|(links, ring)| {
            // The last one holds what all others wait for. What it waits for itself is the root, unless it asks for what others write.
            let holder = links.last().filter(|_| !ring).and_then(|link| self.find(link.holder));
            holder.filter(|&at| waits(&self.running[at])).or_else(|| self.find(links.first()?.cluster))
        });
        let outlasting = self.running.iter().position(|running| running.cluster.outlasting().is_some());
        let at = outlasting.or(at).unwrap_or(0);
        self.running[at].progress = Progress::Stopped;
        let global = self.global.clone();
        let cluster = self.cluster(at);
        cluster.global = global;
        cluster.wanted_columns = wanted;
        cluster.explain_hang();
        true
    }
}
