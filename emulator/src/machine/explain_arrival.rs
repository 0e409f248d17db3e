//! Why a phase gets more arrivals than it takes: often a wait before the arrival has passed when it should not have.

use super::cluster::{Cluster, Stop};
use super::warp::Passed;

impl Cluster<'_> {
    /// A warp has stopped at an arrival. If the wait that it passed last has let it pass for the same phase before, that is told first: the
    /// arrival comes too early, and there is none too many.
    pub fn behind_a_wait_that_passed_again(&self, w: usize, stop: Stop) -> Stop {
        let mut diagnostic = stop?;
        let passed =
            self.warps[w].passed.last().filter(|passed| passed.again && diagnostic.code == "mbarrier-overflow");
        if let Some(&Passed { barrier, site, parity, phase, .. }) = passed {
            let (who, name) = (self.warp_name(w), self.barrier_name(barrier));
            let on = match phase {
                Some(phase) => format!("for phase {phase}"),
                None => "on the fresh mbarrier".to_string(),
            };
            diagnostic.title = format!(
                "{who} passes its wait for {name} {on} a second time, and arrives too early: {}",
                diagnostic.title
            );
            diagnostic.rule = "A wait by parity passes as long as the phase of that parity is the last one that is complete, also for who has seen \
                               it (PTX ISA 9.7.13.15.16); and the pending count of a phase cannot fall below 0 (9.7.13.15.2)."
                .into();
            diagnostic.help = format!(
                "Let the parity of the wait for {name} change with each phase: in a ring, where the stage begins at 0 again, there alone, and \
                 on from one tile to the next."
            );
            let wait = format!("{who} passes here {on}, by parity {parity}, as it did before");
            diagnostic.labels.insert(1.min(diagnostic.labels.len()), self.label(site, wait));
        }
        Some(diagnostic)
    }
}
