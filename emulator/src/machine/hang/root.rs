//! From a wait that never ends on to the one that keeps it waiting.
//!
//! Who has arrived at an mbarrier before, and has not in its current phase, is who should arrive now. If that one waits itself, its wait
//! comes first: the root is a wait that nobody who waits keeps waiting.

use super::{Blocked, barrier_of};
use crate::machine::barrier::mbarrier::Mbarrier;
use crate::machine::cluster::Cluster;
use crate::machine::explain::names::distinct;
use crate::machine::warp::State;
use crate::program::facts::leads;
use crate::program::op::{Op, Reg, TmaKind};

/// A way from a wait to its root.
pub struct Chain {
    /// Places in the list of who is blocked: each keeps the one before it waiting. Not empty.
    pub waits: Vec<usize>,
    /// Who should arrive for the last one waits itself, at this place of the chain: those from there on wait for each other.
    pub ring: Option<usize>,
}

impl Cluster<'_> {
    /// From a wait on to its root.
    pub fn wait_chain(&self, blocked: &[Blocked], from: &Blocked) -> Chain {
        let place = |wait: &Blocked| blocked.iter().position(|b| std::ptr::eq(b, wait)).unwrap_or(0);
        let mut chain = self.sure_chain(blocked, place(from));
        // Who should arrive is not known of those that have never come, but where their way leads, or who waits longest, may tell.
        while chain.ring.is_none() {
            let Some(last) = chain.waits.last().and_then(|&last| blocked.get(last)) else { break };
            // What it waits for is a commit that nobody will ever execute.
            if self.lacks_commit(blocked, last).is_some() {
                break;
            }
            let longest = || place(self.first_to_wait(blocked, last));
            let by_code = self.next_by_code(blocked, last);
            let more = self.sure_chain(blocked, by_code.unwrap_or_else(longest));
            if let Some(at) = more.waits.iter().position(|n| chain.waits.contains(n)) {
                // Round and round, as the code has it.
                if by_code.is_some() {
                    chain.ring = chain.waits.iter().position(|&known| known == more.waits[at]);
                    chain.waits.extend(&more.waits[..at]);
                }
                break;
            }
            chain.ring = more.ring.map(|ring| ring + chain.waits.len());
            chain.waits.extend(more.waits);
        }
        chain
    }

    /// As far as arrivals so far tell it.
    fn sure_chain(&self, blocked: &[Blocked], start: usize) -> Chain {
        let mut waits = vec![start];
        while let Some(last) = waits.last().and_then(|&last| blocked.get(last)) {
            let due = self.due(last);
            let waiting = |b: &Blocked| matches!(b.state, State::Mbarrier { .. }) && due.contains(&b.warp);
            let mut next = (0..blocked.len()).filter(|&n| waiting(&blocked[n])).peekable();
            if next.peek().is_none() {
                return Chain { waits, ring: None };
            }
            let known = next.peek().and_then(|next| waits.iter().position(|known| known == next));
            match next.find(|n| !waits.contains(n)) {
                Some(next) => waits.push(next),
                None => return Chain { waits, ring: known },
            }
        }
        Chain { waits, ring: None }
    }

    /// Somebody who waits and, going on from there, would come to a statement that others have arrived by in this phase, or where nobody
    /// has come so far, to one that names the barrier.
    fn next_by_code(&self, blocked: &[Blocked], waiter: &Blocked) -> Option<usize> {
        let b = &self.barriers[barrier_of(waiter)? as usize];
        let now: Vec<_> = b.came.iter().filter(|came| came.phase == b.phase && !came.bytes).collect();
        let sites = match b.came.is_empty() {
            // Somebody has executed it, and it went to another CTA.
            true if self.at_offset(b).any(|other| !other.came.is_empty()) => return None,
            true => self.could_arrive(waiter, b.offset),
            false => self.of_the_same_lines(now.iter().map(|came| came.site)),
        };
        // Behind the code of a role often stands that of the others: the nearest is meant.
        let near = |n: usize| {
            let other = &blocked[n];
            let comes = barrier_of(other).is_some() && other.warp != waiter.warp;
            let lacks = comes && now.iter().all(|came| came.warp != other.warp);
            Some((lacks.then(|| self.leads_to(other, &sites)).flatten()?, n))
        };
        (0..blocked.len()).filter(|_| b.pending > 0).filter_map(near).min().map(|(_, n)| n)
    }

    /// Statements that name this mbarrier as the target of an arrival, or, where the wait computes it, those that compute theirs and have
    /// arrived at none so far.
    fn could_arrive(&self, waiter: &Blocked, offset: u32) -> Vec<u32> {
        let named = self.arrival_sites_anywhere(offset);
        let computes = |op: &Op| matches!(op, Op::BarrierWait { address, .. } if address.base != Reg::Sink);
        let computed = self.kernel.code.iter().any(|inst| inst.site == waiter.site && computes(&inst.op));
        if !named.is_empty() || !computed {
            return named;
        }
        let arrives = |op: &Op| match op {
            Op::Commit { address, .. } | Op::BarrierArrive { address, .. } => address.base != Reg::Sink,
            _ => false,
        };
        let may = self.may_arrive(offset);
        let new = self
            .kernel
            .code
            .iter()
            .filter(|inst| arrives(&inst.op) && !self.has_arrived(inst.site) && may.contains(&inst.site));
        new.map(|inst| inst.site).collect()
    }

    /// A statement has arrived somewhere, or brought bytes.
    pub fn has_arrived(&self, site: u32) -> bool {
        self.barriers.iter().any(|b| b.came.iter().any(|came| came.site == site))
    }

    /// Somebody who should arrive at the mbarrier that is waited for, stands at a CTA barrier, and would come to the arrival behind it.
    pub fn held_at_cta_barrier(&self, blocked: &[Blocked], waiter: &Blocked) -> Option<usize> {
        let b = &self.barriers[barrier_of(waiter)? as usize];
        let due = self.due(waiter);
        // Where nobody has come so far: who came to another stage of its ring, which the same statement has waited for.
        let stages = self.warps[waiter.warp]
            .passed
            .iter()
            .filter(|passed| b.came.is_empty() && passed.site == waiter.site && passed.phase.is_some());
        let before: Vec<_> = stages.flat_map(|passed| &self.barriers[passed.barrier as usize].came).collect();
        let came = || b.came.iter().filter(|came| due.contains(&came.warp)).chain(before.iter().copied());
        let comes = |warp: usize| came().filter(move |came| came.warp == warp && !came.bytes).map(|came| came.site);
        blocked.iter().position(|other| {
            matches!(other.state, State::CtaBarrier(_))
                && !self.waits_for_waiters(blocked, other)
                && self.leads_to(other, &comes(other.warp).collect::<Vec<_>>()).is_some()
        })
    }

    /// A CTA barrier lacks nobody but threads that wait for mbarriers, and come to it behind that: what they wait for was due before it.
    fn waits_for_waiters(&self, blocked: &[Blocked], at_barrier: &Blocked) -> bool {
        let State::CtaBarrier(id) = at_barrier.state else { return false };
        let c = self.warps[at_barrier.warp].cta;
        let named = &self.ctas[c].named[id as usize];
        let expected = named.expected.unwrap_or_else(|| self.live_threads(c));
        let waits = |b: &&Blocked| self.warps[b.warp].cta == c && barrier_of(b).is_some();
        let comes = |b: &&Blocked| self.comes_to_cta_barrier(b, id);
        let lacking: u32 = blocked.iter().filter(waits).filter(comes).map(|b| b.mask.count_ones()).sum();
        named.arrived + lacking >= expected
    }

    /// These statements and their like: of the same line of the program, in code that was written out once for each role.
    fn of_the_same_lines(&self, sites: impl Iterator<Item = u32>) -> Vec<u32> {
        let mut all: Vec<u32> = sites.collect();
        let lines: Vec<_> = all.iter().filter_map(|&site| self.place(site).source).collect();
        let commits: Vec<bool> = all.iter().map(|&site| self.is_commit(site)).collect();
        let like = |op: &Op| match op {
            Op::Commit { .. } => commits.contains(&true),
            Op::BarrierArrive { .. } => commits.contains(&false),
            _ => false,
        };
        let others = self.kernel.code.iter().filter(|inst| like(&inst.op)).map(|inst| inst.site);
        all.extend(others.filter(|&site| self.place(site).source.is_some_and(|line| lines.contains(&line))));
        all
    }

    /// Those who wait for each other, as one line: each warp, and the mbarrier at which it waits for the next.
    pub fn draw_ring(&self, blocked: &[Blocked], chain: &Chain) -> Option<String> {
        let ring = chain.waits.get(chain.ring?..).filter(|ring| ring.len() > 1)?;
        let first = self.warp_name(blocked.get(*ring.first()?)?.warp);
        let mut drawn = String::new();
        for b in ring.iter().filter_map(|&n| blocked.get(n)) {
            let State::Mbarrier { barrier, .. } = b.state else { return None };
            drawn += &format!("{} → {} → ", self.warp_name(b.warp), self.barrier_name(barrier));
        }
        // Those who wait at one and the same place wait for an arrival that none of them lacks.
        let mut places = ring.iter().filter_map(|&n| blocked.get(n)).map(barrier_of);
        let first_place = places.next();
        if places.all(|place| Some(place) == first_place) {
            return None;
        }
        let count = if ring.len() == 2 { "two" } else { "these" };
        Some(format!("{count} warps wait for each other: {drawn}{first}"))
    }

    /// The warps that should arrive, or bring bytes, at the mbarrier that somebody waits for.
    pub fn due(&self, waiter: &Blocked) -> Vec<usize> {
        let State::Mbarrier { barrier, .. } = waiter.state else { return Vec::new() };
        let b = &self.barriers[barrier as usize];
        // Phases that the waiter has missed, and bytes that are too many, are nobody else's.
        let known = self.warps[waiter.warp].views.came_before(b.actor);
        let of_bytes = b.pending == 0;
        if b.next_epoch() > known + 2 || of_bytes && b.bytes <= 0 {
            return Vec::new();
        }
        let came: Vec<_> = b.came.iter().filter(|came| came.bytes == of_bytes).collect();
        if came.is_empty() {
            return self.due_for_the_first_time(b);
        }
        let now = |warp: usize| came.iter().any(|came| came.warp == warp && came.phase == b.phase);
        let mut due: Vec<usize> = came.iter().map(|came| came.warp).filter(|&warp| !now(warp)).collect();
        // The same warp of another CTA, where it has never come so far.
        for one in came.iter().filter(|came| came.phase == b.phase) {
            let index = self.warps[one.warp].index;
            let peers = (0..self.warps.len()).filter(|&w| w != one.warp && self.warps[w].index == index);
            due.extend(
                peers.filter(|&w| !self.at_offset(b).any(|b| b.came.iter().any(|c| (c.warp, c.site) == (w, one.site)))),
            );
        }
        distinct(due.into_iter())
    }

    /// A wait for a phase that some arrivals or bytes have come for, but not all: rather one for which nobody who waits is due.
    pub fn begun<'b>(&self, blocked: &'b [Blocked]) -> Option<&'b Blocked> {
        let begun = |waiter: &&Blocked| {
            barrier_of(waiter).is_some_and(|barrier| {
                let b = &self.barriers[barrier as usize];
                let missed = b.next_epoch() > self.warps[waiter.warp].views.came_before(b.actor) + 2;
                !missed && (b.bytes != 0 || b.pending < b.expected)
            })
        };
        let mut waits = (0..blocked.len()).filter(|&n| begun(&&blocked[n])).peekable();
        let first = waits.peek().copied();
        let root = waits.find(|&n| self.wait_chain(blocked, &blocked[n]).waits.len() == 1).or(first)?;
        blocked.get(root)
    }

    /// A wait for a phase that lacks arrivals, where another mbarrier that the same statement arrives at takes fewer, and has completed
    /// phases with them: nobody else is due.
    pub fn counts_too_many<'b>(&self, blocked: &'b [Blocked]) -> Option<&'b Blocked> {
        let same_arrivals = |b: &Mbarrier, other: &Mbarrier| {
            let came = |b: &Mbarrier, site: u32| b.came.iter().any(|came| !came.bytes && came.site == site);
            b.arrivals.iter().all(|&(site, _)| came(other, site))
        };
        blocked.iter().find(|waiter| {
            barrier_of(waiter).is_some_and(|barrier| {
                let b = &self.barriers[barrier as usize];
                let fewer = |other: &&Mbarrier| other.valid && other.phase > 0 && other.expected < b.expected;
                let begun = b.pending > 0 && b.pending < b.expected;
                begun && self.barriers.iter().filter(fewer).any(|other| same_arrivals(b, other))
            })
        })
    }

    /// Nothing has come yet: if a commit would arrive, those that issue MMAs.
    fn due_for_the_first_time(&self, b: &Mbarrier) -> Vec<usize> {
        let elsewhere = self.at_offset(b).any(|other| !other.came.is_empty());
        if elsewhere || !self.arrival_sites(b.offset).into_iter().any(|site| self.is_commit(site)) {
            return Vec::new();
        }
        distinct(self.mma_queues.keys().map(|&(warp, _)| warp))
    }

    /// Nothing has come yet, and nothing tells who should: rather the wait that began first, of those for mbarriers. Of waits that
    /// began together, that of the role whose work comes first: loads, MMAs, what reads their results.
    fn first_to_wait<'b>(&self, blocked: &'b [Blocked], root: &'b Blocked) -> &'b Blocked {
        let State::Mbarrier { barrier, .. } = root.state else { return root };
        let b = &self.barriers[barrier as usize];
        if !b.came.is_empty() || self.busy_twin(barrier).is_some() || !self.arrival_sites(b.offset).is_empty() {
            return root;
        }
        if let Some(b) = blocked.iter().find(|b| self.other_stage(blocked, b).is_some()) {
            return b;
        }
        let waits = || blocked.iter().filter_map(|b| Some((b, began(b)?)));
        let Some(first) = waits().map(|(_, since)| since).min() else { return root };
        let together = waits().filter(|&(_, since)| since < first + TOGETHER);
        let chosen = together.min_by_key(|(b, since)| (self.role(b.site), *since)).map_or(root, |(b, _)| b);
        // Of those that wait for the same, the first of the list.
        blocked.iter().find(|b| barrier_of(b) == barrier_of(chosen)).unwrap_or(chosen)
    }

    /// Of those that wait for mbarriers to which nothing has ever come, the one whose work comes first: it is to pass at the beginning.
    pub fn first_of_fresh<'b>(&self, waits: &[&'b Blocked]) -> Option<&'b Blocked> {
        let fresh = |b: &&Blocked| barrier_of(b).is_some_and(|n| self.barriers[n as usize].came.is_empty());
        // Who has multiplied already has begun, and waits for what comes behind.
        let has_begun = |b: &Blocked, role: u32| role == 1 && self.issued.sites.contains_key(&b.warp);
        let place = |b: &Blocked| {
            let role = self.role(b.site);
            (has_begun(b, role), role, began(b))
        };
        let first = waits.iter().copied().min_by_key(|b| place(b));
        first.filter(|_| waits.iter().all(fresh))
    }

    /// Loads follow a statement, and neither MMAs nor reads of their results come before.
    pub fn loads_next(&self, site: u32) -> bool {
        self.role(site) == 0
    }

    /// The place, in the order of a GEMM's work, of what is done next behind a statement, on the shortest way. Each is found once: many who are
    /// blocked are asked for it, and a way may be as long as the kernel.
    pub fn role(&self, site: u32) -> u32 {
        let known = self.roles.borrow().get(&site).copied();
        known.unwrap_or_else(|| {
            let role = self.next_role(site);
            self.roles.borrow_mut().insert(site, role);
            role
        })
    }

    fn next_role(&self, site: u32) -> u32 {
        let code = &self.kernel.code;
        let role = |op: &Op| match op {
            Op::Tma(op) if matches!(op.kind, TmaKind::Load) => Some(0),
            Op::Mma(_) => Some(1),
            Op::TensorLoad { .. } => Some(2),
            _ => None,
        };
        let start = code.iter().position(|inst| inst.site == site);
        let next = start.and_then(|start| {
            let far = |which: u32| Some((leads(code, start, &[], |inst| role(&inst.op) == Some(which))?, which));
            (0..3).filter_map(far).min()
        });
        next.map_or(3, |(_, which)| which)
    }

    /// One of those that should arrive, if it is blocked: what to call it.
    pub fn held_up(&self, blocked: &[Blocked], waiter: &Blocked) -> Option<String> {
        let due = self.due(waiter);
        let held = blocked.iter().find(|b| due.contains(&b.warp) && !matches!(b.state, State::Meeting))?;
        Some(self.warp_name(held.warp))
    }

    /// Whether one that is due is held up in front of a further arrival, at the mbarrier of this offset.
    pub fn would_arrive(&self, blocked: &[Blocked], waiter: &Blocked, offset: u32) -> bool {
        let (due, sites) = (self.due(waiter), self.arrival_sites_anywhere(offset));
        let mut held = blocked.iter().filter(|b| due.contains(&b.warp) && !matches!(b.state, State::Meeting));
        held.any(|held| sites.iter().any(|&site| self.comes_behind(site, held.site)))
    }
}

/// Cycles within which waits count as begun together.
const TOGETHER: u64 = 500;

/// When a wait for an mbarrier began.
fn began(b: &Blocked) -> Option<u64> {
    if let State::Mbarrier { since, .. } = b.state { Some(since) } else { None }
}

/// Arrivals by statement.
pub fn by_site(arrivals: &[(u32, u32)]) -> Vec<(u32, u32)> {
    let mut sums: Vec<(u32, u32)> = Vec::new();
    for &(site, count) in arrivals {
        match sums.iter_mut().find(|(known, _)| *known == site) {
            Some((_, sum)) => *sum += count,
            None => sums.push((site, count)),
        }
    }
    sums
}
