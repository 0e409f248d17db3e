//! What is waited for comes to another mbarrier: to that at the same place of another CTA, or to that of another stage.

use super::{Blocked, barrier_of};
use crate::diagnostic::{Diagnostic, Label};
use crate::machine::barrier::mbarrier::{Mbarrier, sum};
use crate::machine::cluster::Cluster;
use crate::machine::explain::names::counted;
use crate::machine::warp::State;

/// What to do about a commit whose mask leaves this CTA out.
pub fn leaves_out(cta: usize) -> String {
    format!("Let the mask of this commit name CTA {cta}, too: its bit {cta} is not set.")
}

impl Cluster<'_> {
    /// Nothing has ever come to what is waited for, but the same statement has let the warp pass another mbarrier before: that one, if
    /// who arrived there waits for this warp.
    pub fn other_stage(&self, blocked: &[Blocked], waiter: &Blocked) -> Option<u32> {
        let barrier = barrier_of(waiter)?;
        let passed = |n: u32| {
            let mut passed = self.warps[waiter.warp].passed.iter();
            passed.any(|passed| passed.barrier == n && passed.site == waiter.site && passed.phase.is_some())
        };
        let has_come = |n: u32| !self.barriers[n as usize].came.is_empty();
        let waits_for_this = |warp: usize| blocked.iter().any(|b| b.warp == warp && self.due(b).contains(&waiter.warp));
        let by_one_who_waits = |n: u32| self.barriers[n as usize].came.iter().any(|came| waits_for_this(came.warp));
        let mut others = (0..self.barriers.len() as u32).filter(|&n| n != barrier);
        others.find(|&n| !has_come(barrier) && has_come(n) && passed(n) && by_one_who_waits(n))
    }

    /// Nothing ever arrives at an mbarrier; at one that the same statement has waited for before it does.
    pub fn only_at_another_stage(
        &self,
        blocked: &[Blocked],
        waiter: &Blocked,
        barrier: u32,
        other: u32,
        wait: Label,
    ) -> Diagnostic {
        let (name, there) = (self.barrier_name(barrier), self.barrier_name(other));
        let came = &self.barriers[other as usize].came;
        let arrival = came.iter().find(|came| !came.bytes).or(came.first());
        let mut d = self.hang(
            waiter.site,
            format!("the wait for {name} never ends: nothing ever arrives at it, only at {there}, which this statement waited for before"),
            "Let both sides go through the same mbarriers: as many, in the same order.".into(),
        );
        d.labels = vec![wait];
        d.labels.extend(arrival.map(|came| self.label(came.site, format!("this arrives at {there}"))));
        // Who arrives waits at the first one of its ring again.
        let closes = |at: &Blocked| {
            let mut passed = self.warps[at.warp].passed.iter();
            let again =
                barrier_of(at).is_some_and(|n| passed.any(|passed| (passed.barrier, passed.site) == (n, at.site)));
            again && arrival.is_some_and(|came| came.warp == at.warp)
        };
        let at_home = |b: &&Mbarrier| b.cta == self.barriers[other as usize].cta;
        if let Some(came) = arrival.filter(|_| blocked.iter().any(closes)) {
            let arrives = |b: &&Mbarrier| b.came.iter().any(|known| known.site == came.site);
            let round = self.barriers.iter().filter(at_home).filter(arrives).count();
            d.help = format!(
                "Let both sides go through the same mbarriers: what arrives goes round {round} of them, and this wait is for one more. Compare where the stage \
                 of each begins at 0 again."
            );
        }
        d
    }

    /// The mbarriers at the same offset, in all CTAs of the cluster.
    pub fn at_offset(&self, b: &Mbarrier) -> impl Iterator<Item = &Mbarrier> {
        self.barriers.iter().filter(move |other| other.offset == b.offset && other.valid)
    }

    /// The mbarriers at the same offset in other CTAs, with their numbers.
    fn twins(&self, barrier: u32) -> impl Iterator<Item = (u32, &Mbarrier)> {
        let offset = self.barriers[barrier as usize].offset;
        let all = (0..).zip(&self.barriers);
        all.filter(move |(n, other)| *n != barrier && other.valid && other.offset == offset)
    }

    /// An mbarrier at the same offset in another CTA where something has come, and where nobody waits.
    pub fn idle_twin(&self, blocked: &[Blocked], barrier: u32) -> Option<u32> {
        let awaited =
            |n: u32| blocked.iter().any(|b| matches!(b.state, State::Mbarrier { barrier, .. } if barrier == n));
        self.twins(barrier).find(|(n, other)| !other.came.is_empty() && !awaited(*n)).map(|(n, _)| n)
    }

    /// An mbarrier at the same offset in another CTA where something has come.
    pub fn busy_twin(&self, barrier: u32) -> Option<u32> {
        self.twins(barrier).find(|(_, other)| !other.came.is_empty()).map(|(n, _)| n)
    }

    /// A multicast commit that has arrived at this mbarrier of another CTA, and never at this one: the statement and that one.
    pub fn commit_elsewhere(&self, barrier: u32) -> Option<(u32, u32)> {
        let here = |site: u32| self.barriers[barrier as usize].came.iter().any(|came| came.site == site);
        let left_out = |site: &u32| self.is_commit(*site) && self.is_multicast(*site) && !here(*site);
        self.twins(barrier).find_map(|(n, other)| Some((other.came.iter().map(|came| came.site).find(left_out)?, n)))
    }

    /// Some of the arrivals that a phase lacks are at an mbarrier of another CTA, where nobody waits.
    pub fn arrivals_elsewhere(&self, d: &mut Diagnostic, barrier: u32, twin: u32) {
        let other = &self.barriers[twin as usize];
        let got = other.expected - other.pending;
        if got == 0 && other.phase == 0 {
            return;
        }
        let (here, there) = (self.barrier_name(barrier), self.barrier_name(twin));
        let times = if got == 0 { "the others".to_string() } else { got.to_string() };
        d.title = format!("{}; {there} gets {times}, where nobody waits", d.title);
        d.help = format!(
            "Let all arrive at {here}, where the wait is: mbarrier.arrive with .shared::cluster, at the address that mapa gives for its \
             CTA."
        );
        // The arrival first: it is what has to change.
        let site = other.came.iter().find(|came| !came.bytes).map(|came| came.site);
        let place = site.map(|site| self.place(site));
        let here = d.labels.iter().position(|label| Some(&label.place) == place.as_ref());
        if let Some(at) = here {
            let label = d.labels.remove(at);
            let text = format!("{}, and {times} at {there}", label.text);
            d.labels.insert(0, Label { text, ..label });
        } else if let Some(site) = site {
            d.labels.insert(0, self.label(site, format!("this arrives at {there}")));
        }
    }

    /// Copies bring bytes that a phase lacks to an mbarrier of another CTA, where nobody waits.
    pub fn bytes_elsewhere(&self, d: &mut Diagnostic, barrier: u32, twin: u32) {
        let copies = &self.barriers[twin as usize].traffic.brought;
        let brought = sum(copies);
        let Some(first) = copies.first() else { return };
        let (here, there) = (self.barrier_name(barrier), self.barrier_name(twin));
        d.title = format!("{}; {there} gets {}, where nobody waits", d.title, counted(brought, "byte"));
        d.help = format!(
            "Let the copies of both CTAs tell {here}, where the wait is: with .cta_group::2 they may, at the address that mapa gives for \
             its CTA."
        );
        if self.called_async(first.site).is_some() {
            d.help = format!(
                "Let the bytes that {here} waits for be stored to its CTA: check the rank that mapa gets for the two addresses."
            );
            d.labels
                .insert(0, self.label(first.site, format!("{} from here come to {there}", counted(brought, "byte"))));
            return;
        }
        // Where other copies tell this one, the copy first: it is what has to change.
        if sum(&self.barriers[barrier as usize].traffic.brought) == 0 {
            return;
        }
        let place = self.place(first.site);
        d.labels.retain(|label| label.place != place);
        d.labels.insert(0, self.label(first.site, format!("this copy tells {there}")));
    }

    /// Nothing ever arrives at an mbarrier; at that of another CTA it does.
    pub fn only_at_the_twin(&self, blocked: &[Blocked], barrier: u32, twin: u32, wait: Label) -> Diagnostic {
        let (name, there) = (self.barrier_name(barrier), self.barrier_name(twin));
        let other = &self.barriers[twin as usize];
        let arrival = other.came.iter().find(|came| !came.bytes).or(other.came.first());
        let (home, commit) = (other.cta, arrival.is_some_and(|came| self.is_commit(came.site)));
        let here = self.barriers[barrier as usize].cta;
        let mut d = self.hang(
            self.barriers[barrier as usize].init.site,
            format!("the wait for {name} never ends: nothing ever arrives at it, only at that of CTA {home}"),
            match commit {
                true if arrival.is_some_and(|came| self.is_multicast(came.site)) => leaves_out(here),
                true => {
                    "Let the commit arrive in both CTAs: tcgen05.commit with .multicast::cluster and a mask of both."
                        .into()
                }
                false => format!("Wait in CTA {home} alone, or let something arrive at {name}, too."),
            },
        );
        d.labels = vec![wait];
        d.labels.extend(arrival.map(|came| self.label(came.site, format!("this arrives at {there} alone"))));
        // Or no thread of the CTA comes to where others arrive at their own.
        if let Some(came) = arrival.filter(|_| !commit)
            && let Some(barred) = self.barred(blocked, came.site, |cta| cta == here)
        {
            // Or the wait is wrong, as the help says.
            let help = d.help.clone();
            self.add_barred(&mut d, came.site, "", &barred);
            d.help = help;
        }
        d
    }
}
