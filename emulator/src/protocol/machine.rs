//! Carries out recorded steps in any order that their barriers allow.

use super::record::{Record, Step, What};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

/// The cluster that a record is of.
#[derive(Clone, Copy, Debug, Default)]
pub struct Shape {
    pub ctas: usize,
    /// Threads of each CTA.
    pub threads: u32,
    /// CTAs, one of each cluster, that may hold tensor memory of the same SM.
    pub room: u32,
    /// CTAs that do share an SM, with so many clusters in the launch.
    pub sharing: u32,
}

impl Shape {
    /// Warps of each CTA.
    pub fn warps(&self) -> u32 {
        self.threads.div_ceil(32).max(1)
    }

    /// The first warp of a warp's warpgroup, both by their places in the cluster.
    pub fn warpgroup(&self, warp: u16) -> u16 {
        warp - (u32::from(warp) % self.warps() % 4) as u16
    }

    /// The lanes of a warp that exist.
    fn lanes(&self, warp: u32) -> u32 {
        match self.threads.saturating_sub(warp % self.warps() * 32) {
            32.. => u32::MAX,
            threads => (1 << threads) - 1,
        }
    }
}

/// The steps as a graph: what each one follows, and what follows it.
#[derive(Debug)]
pub struct Graph<'a> {
    pub steps: &'a [Step],
    before: &'a [SmallVec<[u32; 2]>],
    behind: Vec<SmallVec<[u32; 2]>>,
}

impl<'a> Graph<'a> {
    pub fn new(record: &'a Record, before: &'a [SmallVec<[u32; 2]>]) -> Graph<'a> {
        let mut behind = vec![SmallVec::new(); record.steps.len()];
        for (n, list) in before.iter().enumerate() {
            list.iter().for_each(|&first| behind[first as usize].push(n as u32));
        }
        Graph { steps: &record.steps, before, behind }
    }
}

/// An mbarrier.
#[derive(Clone, Copy, Debug, Default)]
pub struct Mbarrier {
    expected: u32,
    pub pending: u32,
    pub bytes: i64,
    /// Phases that are complete.
    pub phase: u32,
}

/// A CTA barrier.
#[derive(Clone, Debug, Default)]
struct Named {
    threads: u32,
    /// Lanes of warps that are there while others of the warp are not.
    partial: FxHashMap<u16, u32>,
    expected: Option<u16>,
    rounds: u32,
}

/// Why a run of the machine ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    Completed,
    /// What is left waits for ever.
    Stuck,
    /// It took too long.
    Unknown,
    /// More arrive with this step than its phase takes.
    Overflow(u32),
}

#[derive(Debug)]
pub struct Machine<'a> {
    graph: &'a Graph<'a>,
    shape: Shape,
    missing: Vec<u8>,
    /// Steps behind all that comes before them.
    pub ready: Vec<u32>,
    done: usize,
    mbarriers: FxHashMap<u32, Mbarrier>,
    named: FxHashMap<(u8, u8), Named>,
    /// The round of a CTA barrier that lanes came to last.
    came: FxHashMap<(u16, u8, u8), Vec<(u32, u32)>>,
    /// Lanes of each warp that have arrived at the cluster barrier, its rounds, and the one that lanes came to last.
    cluster_arrived: Vec<u32>,
    cluster_rounds: u32,
    cluster_came: FxHashMap<u16, Vec<(u32, u32)>>,
    /// Lanes of each warp that have not ended.
    live: Vec<u32>,
    wgmmas: FxHashMap<u16, u32>,
    /// Columns that each CTA holds, and how often it has allocated with its peer.
    columns: Vec<u32>,
    paired: Vec<u32>,
    /// Registers a thread in the pool of each CTA.
    spare: Vec<u32>,
    /// CTAs that have allocated tensor memory and not given up the right to.
    permits: Vec<bool>,
    /// Of each CTA's SM, what other clusters hold.
    pub others: Vec<Others>,
    /// A step, and the phase of its mbarrier that it has counted for.
    pub watched: Option<u32>,
    pub counted: Option<u32>,
    /// Nothing is given back, and nothing allocated but by these CTAs.
    pub only: Option<Vec<bool>>,
}

/// What other clusters hold on an SM: columns of tensor memory, and the right to allocate some.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Others {
    pub columns: u32,
    pub permit: bool,
}

impl<'a> Machine<'a> {
    /// Whether somebody who gets no further only asks: he is told something else, and goes on; where to, nobody knows.
    pub fn asks(&self) -> bool {
        self.ready.iter().any(|&n| matches!(self.graph.steps[n as usize].what, What::Asked { .. }))
    }

    pub fn new(graph: &'a Graph<'a>, shape: Shape) -> Machine<'a> {
        let missing: Vec<u8> = graph.before.iter().map(|list| list.len() as u8).collect();
        let ready = (0..graph.steps.len() as u32).filter(|&n| missing[n as usize] == 0).collect();
        Machine {
            graph,
            shape,
            missing,
            ready,
            done: 0,
            mbarriers: FxHashMap::default(),
            named: FxHashMap::default(),
            came: FxHashMap::default(),
            cluster_arrived: vec![0; shape.ctas * shape.warps() as usize],
            cluster_rounds: 0,
            cluster_came: FxHashMap::default(),
            live: (0..shape.ctas as u32 * shape.warps()).map(|warp| shape.lanes(warp)).collect(),
            wgmmas: FxHashMap::default(),
            columns: vec![0; shape.ctas],
            paired: vec![0; shape.ctas],
            spare: vec![0; shape.ctas],
            permits: vec![false; shape.ctas],
            others: vec![Others::default(); shape.ctas],
            watched: None,
            counted: None,
            only: None,
        }
    }

    /// Takes steps until none can be taken: of those that can, the one to which `rank` gives the smallest number. `left`: how many
    /// steps may be looked at.
    pub fn run(&mut self, left: &mut usize, mut rank: impl FnMut(u32, &Step) -> u64) -> End {
        loop {
            *left = left.saturating_sub(self.ready.len());
            if *left == 0 {
                return End::Unknown;
            }
            let can = self.ready.iter().enumerate().filter(|&(_, &n)| self.can(n));
            let Some((place, n)) = can.map(|(place, &n)| (place, n)).min_by_key(|&(_, n)| {
                let step = &self.graph.steps[n as usize];
                (rank(n, step), n)
            }) else {
                break;
            };
            self.ready.swap_remove(place);
            if !self.take(n) {
                return End::Overflow(n);
            }
            while let Some(place) = self.together_with(n) {
                let next = self.ready.swap_remove(place);
                if !self.take(next) {
                    return End::Overflow(next);
                }
            }
        }
        if self.done == self.graph.steps.len() { End::Completed } else { End::Stuck }
    }

    /// Another arrival, of those that are ready, of the commit of which this is one: a commit arrives at all its CTAs at once.
    fn together_with(&self, n: u32) -> Option<usize> {
        let issue_of = |n: u32| match self.graph.steps[n as usize].what {
            What::Done { issue, .. } => Some(issue),
            _ => None,
        };
        let issue = issue_of(n)?;
        let what = self.graph.steps[issue as usize].what;
        let many = matches!(what, What::Issue { tells: 2.., commit: Some(_) });
        many.then(|| self.ready.iter().position(|&other| issue_of(other) == Some(issue)))?
    }

    pub fn mbarrier(&self, barrier: u32) -> Option<Mbarrier> {
        self.mbarriers.get(&barrier).copied()
    }

    /// What this cluster holds on the SM of each of its CTAs.
    pub fn holds(&self) -> impl Iterator<Item = Others> {
        self.columns.iter().zip(&self.permits).map(|(&columns, &permit)| Others { columns, permit })
    }

    /// How many steps were taken.
    pub fn done(&self) -> usize {
        self.done
    }

    pub fn cta(&self, warp: u16) -> usize {
        (u32::from(warp) / self.shape.warps()) as usize
    }

    /// Whether a step that is ready can be taken now.
    fn can(&self, n: u32) -> bool {
        let step = &self.graph.steps[n as usize];
        match step.what {
            // Lanes that were told otherwise might take another path, of which nothing is said.
            What::Wait { barrier, parity } | What::Asked { barrier, parity } => {
                self.mbarriers.get(&barrier).is_some_and(|b| b.phase & 1 != u32::from(parity & 1))
            }
            What::NamedPassed { cta, id } => {
                let rounds = self.named.get(&(cta, id)).map_or(0, |m| m.rounds);
                passed(self.came.get(&(step.warp, cta, id)), step.lanes, rounds)
            }
            What::ClusterPassed => passed(self.cluster_came.get(&step.warp), step.lanes, self.cluster_rounds),
            What::WgmmaWait { number } => {
                let first = self.shape.warpgroup(step.warp);
                (first..first + 4).all(|warp| self.wgmmas.get(&warp).is_some_and(|&n| n >= number))
            }
            What::Alloc { columns, pair } => {
                let cta = self.cta(step.warp);
                let ahead = pair && self.paired.get(cta ^ 1) > self.paired.get(cta);
                let room = |cta: usize| {
                    let others = self.others.get(cta).copied().unwrap_or_default();
                    let held = self.columns.get(cta).map_or(0, |held| held + others.columns);
                    held + u32::from(columns) <= 512 && !others.permit
                };
                let may = self.only.as_ref().is_none_or(|only| only.get(cta).is_some_and(|&may| may));
                may && (ahead || room(cta) && (!pair || room(cta ^ 1) && self.peer_allocates(cta)))
            }
            What::Free { .. } => self.only.is_none(),
            What::TakeRegisters { count } => self.spare[self.cta(step.warp)] >= u32::from(count),
            _ => true,
        }
    }

    /// The CTA's peer has allocated with it already, or has come to it.
    fn peer_allocates(&self, cta: usize) -> bool {
        let peer = cta ^ 1;
        let ahead = self.paired.get(peer) > self.paired.get(cta);
        ahead
            || self.ready.iter().any(|&n| {
                let step = &self.graph.steps[n as usize];
                matches!(step.what, What::Alloc { pair: true, .. }) && self.cta(step.warp) == peer
            })
    }

    /// Takes a step; `false`: more arrive than the phase takes.
    fn take(&mut self, n: u32) -> bool {
        let step = self.graph.steps[n as usize];
        self.done += 1;
        for &next in &self.graph.behind[n as usize] {
            self.missing[next as usize] -= 1;
            if self.missing[next as usize] == 0 {
                self.ready.push(next);
            }
        }
        match step.what {
            What::Init { barrier, count } => {
                let new = Mbarrier { expected: count, pending: count, ..Mbarrier::default() };
                self.mbarriers.insert(barrier, new);
            }
            What::Inval { barrier } => drop(self.mbarriers.remove(&barrier)),
            What::Drop { barrier, count } => {
                if let Some(b) = self.mbarriers.get_mut(&barrier) {
                    b.expected = b.expected.saturating_sub(count);
                }
            }
            What::Arrive { barrier, count, bytes } => return self.counts(n, barrier, count, i64::from(bytes)),
            What::Done { barrier, count, bytes, .. } => return self.counts(n, barrier, count, -i64::from(bytes)),
            What::Named { cta, id, expected } => {
                let live = self.live[usize::from(step.warp)];
                let named = self.named.entry((cta, id)).or_default();
                named.expected = expected;
                let partial = named.partial.entry(step.warp).or_default();
                *partial |= step.lanes;
                if live & !*partial == 0 {
                    *partial = 0;
                    named.threads += 32;
                }
                let rounds = named.rounds;
                came(self.came.entry((step.warp, cta, id)).or_default(), step.lanes, rounds);
                self.all_there();
            }
            What::ClusterArrive => {
                self.cluster_arrived[usize::from(step.warp)] |= step.lanes;
                came(self.cluster_came.entry(step.warp).or_default(), step.lanes, self.cluster_rounds);
                self.all_there();
            }
            What::Wgmma { number } => drop(self.wgmmas.insert(step.warp, number)),
            What::Alloc { columns, pair } => {
                let cta = self.cta(step.warp);
                self.columns[cta] += u32::from(columns);
                self.permits[cta] = true;
                self.paired[cta] += u32::from(pair);
            }
            What::Free { columns } => {
                let cta = self.cta(step.warp);
                self.columns[cta] = self.columns[cta].saturating_sub(columns.into());
            }
            What::Relinquish => {
                let cta = self.cta(step.warp);
                self.permits[cta] = false;
            }
            What::Exit => {
                self.live[usize::from(step.warp)] &= !step.lanes;
                self.all_there();
                let (cta, each) = (self.cta(step.warp), self.shape.warps() as usize);
                if self.live[cta * each..][..each].iter().all(|&lanes| lanes == 0) {
                    (self.columns[cta], self.permits[cta]) = (0, false);
                }
            }
            What::TakeRegisters { count } => {
                let cta = self.cta(step.warp);
                self.spare[cta] = self.spare[cta].saturating_sub(count.into());
            }
            What::GiveRegisters { count } => {
                let cta = self.cta(step.warp);
                self.spare[cta] += u32::from(count);
            }
            What::Wait { .. }
            | What::Issue { .. }
            | What::Asked { .. }
            | What::NamedDone { .. }
            | What::NamedPassed { .. }
            | What::ClusterDone
            | What::ClusterPassed
            | What::WgmmaWait { .. }
            | What::Meet => {}
        }
        true
    }

    fn counts(&mut self, n: u32, barrier: u32, count: u32, bytes: i64) -> bool {
        // What arrives before the initialisation is lost.
        let Some(b) = self.mbarriers.get_mut(&barrier) else { return true };
        if self.watched == Some(n) {
            self.counted = Some(b.phase);
        }
        if count > b.pending {
            return false;
        }
        b.pending -= count;
        b.bytes += bytes;
        if b.pending == 0 && b.bytes == 0 {
            b.phase += 1;
            b.pending = b.expected;
        }
        true
    }

    /// Ends the rounds of CTA barriers, and of the cluster's, for which all have come.
    fn all_there(&mut self) {
        let each = self.shape.warps() as usize;
        for (&(cta, _), named) in &mut self.named {
            // Lanes that waited for others of their warp, which have ended now.
            for (&warp, partial) in &mut named.partial {
                if *partial != 0 && self.live[usize::from(warp)] & !*partial == 0 {
                    *partial = 0;
                    named.threads += 32;
                }
            }
            let own = &self.live[usize::from(cta) * each..][..each];
            let live = own.iter().filter(|&&lanes| lanes != 0).count() as u32 * 32;
            if named.threads > 0 && named.threads >= named.expected.map_or(live, u32::from) {
                named.threads = 0;
                named.rounds += 1;
            }
        }
        let mut warps = self.live.iter().zip(&self.cluster_arrived);
        let complete = warps.clone().all(|(live, arrived)| live & !arrived == 0);
        if complete && warps.any(|(live, arrived)| live & arrived != 0) {
            self.cluster_arrived.fill(0);
            self.cluster_rounds += 1;
        }
    }
}

/// Lanes come to a round.
fn came(list: &mut Vec<(u32, u32)>, lanes: u32, round: u32) {
    list.retain_mut(|known| {
        known.0 &= !lanes;
        known.0 != 0
    });
    list.push((lanes, round));
}

/// Whether the rounds that these lanes came to are over.
fn passed(list: Option<&Vec<(u32, u32)>>, lanes: u32, rounds: u32) -> bool {
    list.into_iter().flatten().all(|&(known, round)| known & lanes == 0 || rounds > round)
}
