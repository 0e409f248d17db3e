//! Tensor memory that is freed while an MMA may still be writing it: the MMA is committed, and who frees has not waited for that phase.

use crate::diagnostic::Label;
use crate::machine::cluster::Cluster;
use crate::machine::state::{ActorKind, Commit};
use crate::order::Stamp;

/// Why an MMA is not known to be complete where its columns are freed.
pub struct NotAwaited {
    /// Behind a colon in the title.
    pub why: String,
    pub labels: Vec<Label>,
    pub help: String,
}

impl Cluster<'_> {
    /// A commit behind an MMA completes a phase for which nobody has waited, or not who frees the columns, nor has it been told.
    pub fn freed_before_its_phase(&self, mma: Stamp, freed: Stamp) -> Option<NotAwaited> {
        let passes = |c: &Commit| {
            let (barrier, all) = (c.barrier, self.warps.iter().enumerate());
            let all = all.flat_map(|(w, warp)| warp.passed.iter().map(move |passed| (w, passed)));
            all.filter(move |(_, passed)| passed.barrier == barrier)
        };
        // Of several commits that follow it, the one that tells those who read the product.
        let reads = |w: usize| self.warps[w].loads.is_used();
        let behind = || self.commits.iter().filter(|c| c.queue == mma.actor && c.epoch >= mma.epoch);
        let to_readers = behind().find(|c| passes(c).any(|(w, _)| reads(w)));
        let commit =
            to_readers.or_else(|| behind().find(|c| passes(c).next().is_none())).or_else(|| behind().next())?;
        let phase = commit.phase.unwrap_or(self.barriers[commit.barrier as usize].phase);
        let (name, parity) = (self.barrier_name(commit.barrier), phase % 2);
        let told = self.label(commit.site, format!("its commit completes phase {phase} of {name}"));
        let of_phase = passes(commit).find(|(_, passed)| passed.phase.is_some_and(|seen| seen >= phase));
        if let Some((w, passed)) = of_phase {
            let (who, frees) = (self.warp_name(w), self.who(freed));
            if matches!(self.kind(freed), Some(ActorKind::Warp(of)) if of as usize == w) {
                let wait = self.label(passed.site, format!("{frees} waits for that phase here, behind the dealloc"));
                return Some(NotAwaited {
                    why: format!("{frees} waits for {name} too late"),
                    labels: vec![told, wait],
                    help: "Wait before the columns are freed: move the wait in front of tcgen05.dealloc.".into(),
                });
            }
            let wait = self.label(passed.site, format!("{who} waits for that phase here, and {frees} is not told"));
            return Some(NotAwaited {
                why: format!("{frees} has not waited for {name}"),
                labels: vec![told, wait],
                help: format!(
                    "Let {frees} wait for {name} (mbarrier.try_wait.parity, parity {parity}) before it frees, or meet {who} at a barrier (bar.sync) behind \
                     its wait."
                ),
            });
        }
        let last = passes(commit).filter(|(_, passed)| passed.phase.is_some()).max_by_key(|(_, passed)| passed.phase);
        let wait = last.map(|(w, passed)| {
            let seen = passed.phase.unwrap_or_default();
            self.label(passed.site, format!("the last wait for it, by {}, passed on phase {seen}", self.warp_name(w)))
        });
        let rounds = match wait {
            Some(_) => "as often as it is committed to: compare the bounds of both loops",
            None => "before the columns are freed",
        };
        Some(NotAwaited {
            why: format!("nobody has waited for phase {phase} of {name}, which its commit completes"),
            labels: [told].into_iter().chain(wait).collect(),
            help: format!("Wait for {name} {rounds}. Phase {phase} has parity {parity}."),
        })
    }
}
