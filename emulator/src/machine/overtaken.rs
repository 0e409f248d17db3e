//! A phase that may complete before somebody has seen the one before, and why.

use super::cluster::Cluster;
use super::mbarrier::Overtaken;
use super::names::counted;
use crate::diagnostic::Severity;
use crate::program::op::Op;

const RULE: &str = "A wait by parity tells a phase only from the one before it: every waiter must have seen a phase complete before the next one \
                    does, or it waits for ever (PTX ISA 9.7.13.15.4, 9.7.13.15.16).";

impl Cluster<'_> {
    /// A phase may complete before somebody has seen the one before.
    pub fn overtaken(&mut self, barrier: u32) {
        if self.barriers[barrier as usize].overtaken.is_empty() {
            return;
        }
        let name = self.barrier_name(barrier);
        let (init, expected) = (self.barriers[barrier as usize].init.site, self.barriers[barrier as usize].expected);
        let b = &mut self.barriers[barrier as usize];
        let arrivals: Vec<u32> = b.previous.iter().map(|&(site, _)| site).collect();
        // What is known of the last phase that is complete.
        let last = b.phase.saturating_sub(1);
        let brought: Vec<u32> = b.traffic_before.brought.iter().map(|bytes| bytes.site).take(2).collect();
        for Overtaken { phase, site: wait, again } in std::mem::take(&mut b.overtaken) {
            let site = arrivals.last().copied().unwrap_or(wait);
            let title = match phase.checked_sub(1) {
                Some(seen) => format!("{name} may complete phase {phase} before a wait has seen phase {seen}"),
                None => format!("{name} may complete phase 0 before a wait that passes on a fresh mbarrier only"),
            };
            let help = match phase {
                _ if again => {
                    let why = match phase {
                        0 => "both times at once, since no phase is complete",
                        _ => "the second time on the phase that it has seen",
                    };
                    format!(
                        "Let the parity of this wait for {name} go on with each phase: it asks for one parity twice running, and passes {why}. \
                         If it is for two stages in turn, give each an mbarrier of its own."
                    )
                }
                0 => "If the wait is for what this arrival tells, let it wait for parity 0; if it is for what is free at the beginning, let \
                      the arrival come only behind it."
                    .into(),
                _ => self.kept_back(site, expected),
            };
            let mut diagnostic = self.problem("phase-overtaken", site, title, RULE, help);
            diagnostic.severity = Severity::Finding;
            diagnostic.labels[0].text =
                format!("this arrival completes phase {phase}; nothing orders it after the wait");
            let parity = (phase + 1) % 2;
            let text = match phase.checked_sub(1) {
                Some(seen) if again => {
                    format!("this wait is for phase {seen} twice running: both times it asks for parity {parity}")
                }
                Some(seen) => format!("this wait is for phase {seen}"),
                None if again => "this wait is for parity 1 twice running, before any phase is complete".to_string(),
                None => "this wait is for parity 1, before any phase is complete".to_string(),
            };
            diagnostic.labels.push(self.label(wait, text));
            for copy in brought.iter().filter(|_| phase == last) {
                diagnostic.labels.push(self.label(*copy, format!("this copy brings bytes of phase {phase}")));
            }
            let made = format!("{name} is initialised for {} a phase", counted(expected, "arrival"));
            diagnostic.labels.push(self.label(init, made));
            self.findings.add(diagnostic);
        }
    }

    /// What keeps an arrival back until all have seen the phase before, by its kind.
    fn kept_back(&self, site: u32, expected: u32) -> String {
        let op = self.kernel.code.iter().find(|inst| inst.site == site).map(|inst| &inst.op);
        match op {
            Some(Op::BarrierArrive { expect: Some(_), .. }) => {
                "Let who announces the bytes wait before it until all have seen the phase before: by an mbarrier at which they arrive then, or \
                 at which the MMAs that have read its data are committed."
                    .into()
            }
            Some(Op::BarrierArrive { .. }) => format!(
                "Let this arrival come only after all have seen the phase before; or, if more than {} belong to one phase, initialise the \
                 mbarrier for as many.",
                counted(expected, "arrival")
            ),
            _ => "Let one arrival complete one phase for each wait (a single tcgen05.commit, after the last MMA), or let the next arrival \
                  come only after all have waited."
                .into(),
        }
    }
}
