//! Mbarriers that are initialised for fewer arrivals than come in a phase: they complete it before the last one has come.

use super::names::{counted, distinct};
use crate::diagnostic::{Label, Meaning};
use crate::machine::barrier::mbarrier::Mbarrier;
use crate::machine::cluster::Cluster;
use crate::machine::hang::mbarrier::counts_too_few_threads;
use crate::machine::state::{ActorKind, Race};

impl Cluster<'_> {
    /// The commits of more warps come to an mbarrier than it counts arrivals, and it has completed more phases than this warp has waited for: where it
    /// is initialised, and what to do.
    pub fn counts_too_few_commits(&self, barrier: u32, waiter: usize) -> Option<(Label, String)> {
        let b = &self.barriers[barrier as usize];
        let warps = self.warps_that_commit(b);
        if warps <= b.expected || !self.has_more_phases_than_waits(barrier, waiter) {
            return None;
        }
        let name = self.barrier_name(barrier);
        let expected = counted(b.expected, "arrival");
        let text = format!("{name} is initialised for {expected} a phase, and {warps} warps commit MMAs to it");
        let label = self.label(b.init.site, text).that_means(Meaning::CountsTooFew);
        let help = format!(
            "Initialise {name} for as many arrivals as there are commits in a phase, {warps}: with {}, it is complete before the last.",
            b.expected
        );
        Some((label, help))
    }

    /// The same where threads arrive, too: more warps arrive and commit than it counts arrivals.
    pub fn counts_too_few_that_come(&self, barrier: u32, waiter: usize) -> Option<(Label, String)> {
        let b = &self.barriers[barrier as usize];
        let (threads, commits) = (self.warps_that_arrive(b), self.warps_that_commit(b));
        if threads == 0 || threads + commits <= b.expected || !self.has_more_phases_than_waits(barrier, waiter) {
            return None;
        }
        let name = self.barrier_name(barrier);
        let (expected, threads) = (counted(b.expected, "arrival"), counted(threads, "warp"));
        let text =
            format!("{name} is initialised for {expected} a phase; the threads of {threads} arrive at it, and commits");
        let label = self.label(b.init.site, text).that_means(Meaning::CountsTooFew);
        let help = format!(
            "Initialise {name} for as many arrivals as come in a round, by threads and by commits: with {}, it is complete before the last.",
            b.expected
        );
        Some((label, help))
    }

    /// Of mbarriers that the warp of the second access has waited for, one at which more threads arrive in a round than it counts: its phases are complete
    /// before the last of them have come.
    pub fn awaited_counts_too_few(&self, race: &Race) -> Option<(Label, String)> {
        let second = self.second_warp(race)?;
        self.warps[second].passed.iter().find_map(|passed| {
            let b = &self.barriers[passed.barrier as usize];
            let arrivals = self.more_arrive_than_it_counts(passed.barrier)?;
            let label = self.made_for(passed.barrier).that_means(Meaning::CountsTooFew);
            Some((label, counts_too_few_threads(&self.barrier_name(passed.barrier), arrivals, b.expected)))
        })
    }

    /// Where an mbarrier is initialised, and for how many arrivals.
    pub fn made_for(&self, barrier: u32) -> Label {
        let b = &self.barriers[barrier as usize];
        let (name, expected) = (self.barrier_name(barrier), counted(b.expected, "arrival"));
        self.label(b.init.site, format!("{name} is initialised for {expected} a phase here"))
    }

    /// How many warps have committed MMAs to an mbarrier.
    fn warps_that_commit(&self, b: &Mbarrier) -> u32 {
        distinct(b.came.iter().filter(|came| self.is_commit(came.site)).map(|came| came.warp)).len() as u32
    }

    /// The warp that makes the second access of a race, or gives it to an engine.
    pub fn second_warp(&self, race: &Race) -> Option<usize> {
        match self.kind(race.second) {
            Some(ActorKind::TensorLoads(w) | ActorKind::TensorStores(w)) => Some(w as usize),
            _ => race.by.or_else(|| self.issuer(race.second)),
        }
    }
}
