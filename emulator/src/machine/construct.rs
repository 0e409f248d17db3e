//! A cluster at its begin: its CTAs with their memory, and their warps.

use crate::MAX_SHARED;
use crate::machine::chip::cache::Touched;
use crate::machine::chip::outbox::Outbox;
use crate::machine::chip::share::Rates;
use crate::machine::chip::spare::Spare;
use crate::machine::chip::tracker::Tracker;
use crate::machine::cluster::{Cluster, Place, Shared, mix};
use crate::machine::explain::findings::Findings;
use crate::machine::explain::forks::Forks;
use crate::machine::loops::endless;
use crate::machine::schedule::fragments::Fragments;
use crate::machine::state::{ActorKind, Cta, Engines, Lacks, NamedBarrier, Origin};
use crate::machine::values::Blank;
use crate::machine::warp::registers::Registers;
use crate::machine::warp::{Fragment, Queue, State, Warp};
use crate::order::{Shadow, Views};
use crate::protocol::Record;
use crate::report::Memory;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use std::collections::{BinaryHeap, HashMap};
use std::sync::Arc;

impl<'a> Cluster<'a> {
    /// A cluster at its begin. It takes the memory of one that has ended.
    pub fn new(s: &Shared<'a>, place: Place, before: Option<Cluster<'a>>) -> Cluster<'a> {
        let Place { index, first, sm, start, room, sharing } = place;
        let kernel = s.kernel;
        let threads: u32 = s.launch.block.iter().product();
        let window = (kernel.dynamic_start + s.launch.dynamic_shared).min(MAX_SHARED + kernel.dynamic_start);
        let mut cluster = Cluster {
            kernel,
            launch: s.launch,
            options: s.options,
            params: s.params,
            costs: s.costs,
            global: Arc::default(),
            outbox: Outbox::default(),
            tracker: Tracker::new(if s.options.judges() { s.buffers } else { 0 }, false),
            non_coherent: None,
            prerequisite: None,
            early: Default::default(),
            acquired: Default::default(),
            map_reads: Default::default(),
            made_maps: Default::default(),
            findings: Findings::default(),
            index,
            blank: (!s.options.values.include(index)).then(|| Blank::new(kernel, s.dependences)),
            read_blank: None,
            not_modelled: None,
            factor_fails: None,
            sm,
            room,
            sharing,
            rates: Rates::ALONE,
            moved: 0,
            missed: 0,
            lines: Touched::default(),
            requests: 0,
            awaited: 0,
            instructions: 0,
            budget: 0,
            look_at: endless::SELDOM,
            watched: 0,
            activity: crate::machine::loops::livelock::Activity { acted: true, ..Default::default() },
            ctas: Vec::new(),
            warps: Vec::new(),
            actors: Vec::new(),
            scopes: Default::default(),
            mma_queues: FxHashMap::default(),
            commit_queues: FxHashMap::default(),
            commits_completed: FxHashMap::default(),
            barriers: Vec::new(),
            leavings: s.leavings,
            clocks: s.clocks,
            guessed: false,
            changes: 0,
            far_changes: 0,
            writes: 0,
            far_writes: 0,
            nobody_acts: false,
            round_since: None,
            quiet_since: None,
            trail: None,
            barrier_at: FxHashMap::default(),
            barrier_span: (u32::MAX, 0),
            mmas: Default::default(),
            issued: Default::default(),
            tensor_copies: Default::default(),
            products: Default::default(),
            depths: Default::default(),
            offsets: Default::default(),
            inputs: Default::default(),
            drained: Default::default(),
            supplies: Default::default(),
            sums: Default::default(),
            placed: Default::default(),
            added: Default::default(),
            uses: Default::default(),
            if_clean: vec![],
            groups: Default::default(),
            roles: Default::default(),
            forks: Forks::default(),
            warpgroups: FxHashMap::default(),
            wgmmas: Default::default(),
            wgmma_scratch: Default::default(),
            remote: Default::default(),
            batches: Default::default(),
            commits: Vec::new(),
            copies_arrivals: Vec::new(),
            covered: FxHashMap::default(),
            copies: Vec::new(),
            unordered_inits: Vec::new(),
            early_phases: Vec::new(),
            free_copies: Vec::new(),
            maps: Vec::new(),
            waiting: Vec::new(),
            unfetched: Default::default(),
            spare_data: Vec::new(),
            spare_targets: Vec::new(),
            responses: Vec::new(),
            cluster_barrier: NamedBarrier::default(),
            cluster_known: Views::default(),
            cluster_near: Vec::new(),
            cluster_known_near: Vec::new(),
            cluster_time: 0,
            cluster_phases: None,
            published: Default::default(),
            // Without the judge, what a hang is explained by.
            record: Record::new(!s.options.computes()),
            races: Vec::new(),
            raced: None,
            overflowed: None,
            overruns: vec![],
            starts: vec![],
            other_stages: vec![],
            boxes_stored: vec![],
            other_accumulators: vec![],
            rewrites: Default::default(),
            stored_cells: Default::default(),
            untold: Vec::new(),
            wanted_columns: None,
            strangers: FxHashMap::default(),
            race_keys: HashMap::new(),
            origins: vec![Origin { site: 0, text: String::new(), lacks: Lacks::Value, beside: None }],
            known_origins: Default::default(),
            kept_origins: Default::default(),
            unwritten: vec![],
            events: BinaryHeap::new(),
            sequence: 0,
            horizon: 0,
            until: 0,
            end: start,
            now: start,
            trace: Vec::new(),
            printed: Vec::new(),
            printed_beyond: 0,
            polls: 0,
            random: s.options.seed.map(|seed| mix(seed ^ u64::from(index) << 40)),
        };
        let (computes, judges) = (s.options.computes(), s.options.judges());
        let mut left = Vec::new();
        if let Some(before) = before.filter(|_| computes) {
            cluster.maps = before.maps;
            (cluster.spare_data, cluster.lines) = (before.spare_data, before.lines);
            cluster.wgmma_scratch = before.wgmma_scratch;
            cluster.batches = before.batches.emptied();
            left = Cluster::spare(before.ctas, before.warps);
        }
        let [cx, cy, cz] = cluster.extent();
        cluster.scopes.matter = kernel.scopes && cx * cy * cz > 1 && judges;
        for rank in 0..cx * cy * cz {
            let inner = [rank % cx, rank / cx % cy, rank / (cx * cy)];
            let Spare { shared, tensor, registers } = match computes {
                true => Spare::take(left.pop(), window as usize),
                false => Spare { shared: Memory::zeros(window as usize), ..Spare::default() },
            };
            cluster.ctas.push(Cta {
                id: std::array::from_fn(|n| first[n] + inner[n]),
                inner,
                shared,
                loaded: Default::default(),
                sources: Default::default(),
                drawn_up: Default::default(),
                staged: Default::default(),
                shared_shadow: if judges { Shadow::default() } else { Shadow::off() },
                tensor,
                tensor_shadow: if judges { Shadow::default() } else { Shadow::off() },
                upper_shadow: kernel.half_stores.then(|| if judges { Shadow::default() } else { Shadow::off() }),
                tensor_relinquished: None,
                last_columns: None,
                refused: None,
                collectors: Default::default(),
                spare_registers: 0,
                granted: Vec::new(),
                allocated_with_peer: Vec::new(),
                named: Default::default(),
                tensor_core_free: start,
                shared_port_free: start,
                global_port_free: start,
                tma_free: start,
                tma_store_free: start,
                issue: Default::default(),
                busy: Engines::default(),
                slowed: Engines::ALONE,
            });
            cluster.add_warps(rank as usize, threads, start, registers);
        }
        cluster.forks = Forks::new(kernel.code.len(), cluster.warps.len());
        cluster
    }

    /// The memory that its CTAs leave.
    pub fn spare(ctas: Vec<Cta>, warps: Vec<Warp>) -> Vec<Spare> {
        let mut left: Vec<Spare> = (ctas.into_iter())
            .map(|cta| Spare { shared: cta.shared, tensor: cta.tensor, registers: Vec::new() })
            .collect();
        for warp in warps {
            left[warp.cta].registers.push(warp.registers);
        }
        left
    }

    fn add_warps(&mut self, cta: usize, threads: u32, start: u64, mut left: Vec<Registers>) {
        let kernel = self.kernel;
        for first in (0..threads).step_by(32) {
            let live = if threads - first >= 32 { u32::MAX } else { (1 << (threads - first)) - 1 };
            let warp = first / 32;
            let id = self.warps.len() as u32;
            let actor = self.actor(ActorKind::Warp(id));
            let mut views = Views::default();
            views.hb.raise(actor, 1);
            if self.scopes.matter {
                views.scoped.raise(actor, 1);
            }
            let delay = self.jitter(2000);
            self.warps.push(Warp {
                cta,
                judged: self.options.judges(),
                index: warp,
                live,
                registers: Registers::new(kernel, cta, left.pop()),
                fragments: Fragments::new(Fragment {
                    pc: 0,
                    mask: live,
                    ready_at: start + delay,
                    state: State::Ready,
                    meeting: None,
                }),
                meetings: Vec::new(),
                views,
                epoch: 1,
                synced: 0,
                actor,
                halves: Default::default(),
                fences: Default::default(),
                met: 1 << cta,
                local: Memory::default(),
                cluster_arrived: 0,
                cluster_arrivals: Default::default(),
                cluster_passed: 0,
                bulk: FxHashMap::default(),
                parts: Vec::new(),
                narrow_fences: Vec::new(),
                proxy_fences: SmallVec::new(),
                relaxed_arrivals: SmallVec::new(),
                loads: Queue::default(),
                copies: Queue::default(),
                copies_open: Default::default(),
                copies_waited: None,
                copies_untold: Default::default(),
                stores: Queue::default(),
                wgmma: Default::default(),
                open_loads: Vec::new(),
                loads_issued: vec![],
                stores_issued: vec![],
                stores_ready_at: 0,
                stores_done_at: 0,
                on_the_way: Default::default(),
                untold: Default::default(),
                loaded_chunks: Default::default(),
                origins: FxHashMap::default(),
                passed: Vec::new(),
                unheeded: Vec::new(),
                polls: 0,
                most_registers: kernel.max_registers.unwrap_or(0).next_multiple_of(8),
                register_counts: Vec::new(),
                asks: None,
                rounds: Default::default(),
                loops: Default::default(),
                seen: FxHashMap::default(),
                multi_lane_sites: Vec::new(),
            });
        }
    }
}
