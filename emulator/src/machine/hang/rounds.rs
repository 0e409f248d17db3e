//! Two loops that should go round equally often: who has arrived in each round so far has left its own, and who waits goes round once more.

use super::{Blocked, barrier_of};
use crate::diagnostic::{Diagnostic, Label};
use crate::machine::cluster::Cluster;
use crate::machine::explain::names::distinct;
use crate::program::op::Op;
use crate::protocol::{Step, What};

/// How often both sides have come round.
pub struct Rounds {
    /// The warp that has arrived, and by which statement.
    by: usize,
    site: u32,
    arrived: usize,
    /// So many times who waits has come to its wait, this one among them.
    waits: usize,
}

impl Cluster<'_> {
    /// The warp that completed the last phase of what is waited for comes to its arrival no more, and has come there less often than the other to its
    /// wait: each in a loop.
    pub fn unequal_rounds(&self, blocked: &[Blocked], waiter: &Blocked) -> Option<Rounds> {
        let b = &self.barriers[barrier_of(waiter)? as usize];
        let last = b.came.iter().filter(|came| !came.bytes && came.phase + 1 == b.phase);
        let last: Vec<(usize, u32)> = distinct(last.map(|came| (came.warp, came.site)));
        let &[(by, site)] = last.as_slice() else { return None };
        let known = !self.record.is_off() && !self.record.is_full();
        let comes = blocked.iter().any(|other| other.warp == by && self.leads_to(other, &[site]).is_some());
        if !known || comes || by == waiter.warp {
            return None;
        }
        let steps = |warp: usize, site: u32| {
            self.record.steps.iter().filter(move |step| usize::from(step.warp) == warp && step.site == site)
        };
        let arrives = |step: &&Step| matches!(step.what, What::Arrive { .. } | What::Issue { commit: Some(_), .. });
        let arrived = steps(by, site).filter(arrives).count();
        let waits = steps(waiter.warp, waiter.site).filter(|step| matches!(step.what, What::Wait { .. })).count() + 1;
        let in_loops = arrived > 1 && waits > arrived;
        in_loops.then_some(Rounds { by, site, arrived, waits })
    }

    /// What is said of them.
    pub fn tell_unequal_rounds(&self, waiter: &Blocked, rounds: &Rounds, name: &str, wait: Label) -> Diagnostic {
        let &Rounds { by, site, arrived, waits } = rounds;
        let (one, other) = (self.warp_name(waiter.warp), self.warp_name(by));
        let is_commit = self.kernel.code.iter().any(|inst| inst.site == site && matches!(inst.op, Op::Commit { .. }));
        let does = if is_commit { "commits" } else { "arrives" };
        let mut d = self.hang(
            waiter.site,
            format!(
                "{one} waits for {name} in round {waits}, and {other}, which {does} in each round, is through after {arrived}"
            ),
            format!(
                "Let the loops of {one} and {other} go round equally often: compare their bounds, and by how much each goes on."
            ),
        );
        d.labels = vec![wait, self.label(site, format!("{other} {does} here, {arrived} times in all"))];
        d
    }
}
