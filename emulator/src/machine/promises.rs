//! Asynchronous writes of shared memory that nobody has waited for when their mbarrier, or their CTA, ends.

use super::cluster::Cluster;
use super::mbarrier::Promise;
use super::state::Commit;
use crate::diagnostic::Severity;

impl Cluster<'_> {
    /// Warp `w` invalidates an mbarrier: what completes on it must have done so, and the warp must know.
    pub fn check_promises(&mut self, w: usize, barrier: u32, site: u32) {
        let b = &self.barriers[barrier as usize];
        let Some(&promise) = b.promises.iter().find(|promise| !self.knows(w, barrier, promise)) else { return };
        self.invalidated_early(
            barrier,
            site,
            "a copy that completes on it may be on its way",
            "A copy completes on its mbarrier whenever its bytes are there, and no operation on an mbarrier may follow its mbarrier.inval \
             (PTX ISA, mbarrier.inval; cp.async.bulk).",
            self.wait_for(barrier, &promise, "before it is invalidated"),
            (promise.site, "nothing says that this copy is complete by then"),
        );
    }

    /// The same of the arrivals of commits. Those of one thread are taken to come in their order.
    pub fn check_commits(&mut self, w: usize, barrier: u32, site: u32) {
        let first = self.barriers[barrier as usize].first_commit;
        let knows = |c: &Commit| self.options.timing_only || self.warps[w].has_heard_of(c.thread.0, c.thread.1);
        let mut own = self.commits[first..].iter().filter(|c| c.barrier == barrier);
        let Some(commit) = own.find(|c| !knows(c)).map(|c| c.site) else { return };
        let name = self.barrier_name(barrier);
        self.invalidated_early(
            barrier,
            site,
            "a commit may still arrive at it",
            "A commit arrives at its mbarrier when all MMAs that its thread issued before are complete, and no operation on an mbarrier may \
             follow its mbarrier.inval (PTX ISA, tcgen05.commit; mbarrier.inval).",
            format!("Wait for the phase of {name} that this commit completes, or for a later commit of the same thread, before it is invalidated."),
            (commit, "nothing says that this commit has arrived by then"),
        );
    }

    fn invalidated_early(
        &mut self,
        barrier: u32,
        site: u32,
        although: &str,
        rule: &str,
        help: String,
        (other, text): (u32, &str),
    ) {
        let name = self.barrier_name(barrier);
        let title = format!("{name} is invalidated although {although}");
        let mut diagnostic = self.problem("mbarrier-invalidated-early", site, title, rule, help);
        diagnostic.severity = Severity::Finding;
        diagnostic.labels[0].text = format!("{name} is invalidated here");
        diagnostic.labels.push(self.label(other, text));
        self.findings.add(diagnostic);
    }

    /// All warps have ended: of each write into a CTA's shared memory, one of the CTA's warps must have known.
    pub fn unawaited_writes(&mut self) {
        let unknown = |barrier: u32, promise: &Promise| {
            let mut own = (0..self.warps.len()).filter(|&w| self.warps[w].cta == promise.cta);
            !own.any(|w| self.knows(w, barrier, promise))
        };
        let all = (0..).zip(&self.barriers).flat_map(|(n, b)| b.promises.iter().map(move |promise| (n, *promise)));
        let found: Vec<(u32, Promise)> = all.filter(|(n, promise)| unknown(*n, promise)).collect();
        for (barrier, promise) in found {
            let place = self.place(promise.site);
            if self.findings.mentions(&place) {
                continue;
            }
            let mut diagnostic = self.problem(
                "load-outlives-cta",
                promise.site,
                "the CTA may end while this copy writes to its shared memory".into(),
                "Shared memory is a CTA's only until all its threads have ended; then another CTA may get it, and what is still on its way \
                 overwrites that one's (PTX ISA 5.1.7).",
                self.wait_for(barrier, &promise, "before the last thread ends, or issue no copy that nobody needs"),
            );
            // The CTA's shared memory is kept until its own copies are there.
            diagnostic.severity = if promise.own { Severity::Note } else { Severity::Finding };
            diagnostic.labels[0].text = "no thread of the CTA waits for this copy".into();
            // Others that complete the same phase.
            let b = &self.barriers[barrier as usize];
            let traffic = match b.phase_of(promise.epoch) {
                Some(phase) if phase == b.phase => &b.traffic,
                _ => &b.traffic_before,
            };
            let others = traffic.brought.iter().map(|bytes| bytes.site).filter(|&site| site != promise.site);
            diagnostic.labels.extend(others.take(2).map(|site| self.label(site, "nor for this one")));
            self.findings.add(diagnostic);
        }
    }

    /// Whether a warp knows that a write is complete: through a wait of its own, or from somebody who waited.
    fn knows(&self, w: usize, barrier: u32, promise: &Promise) -> bool {
        let actor = self.barriers[barrier as usize].actor;
        self.options.timing_only || self.warps[w].has_heard_of(actor, promise.epoch)
    }

    fn wait_for(&self, barrier: u32, promise: &Promise, when: &str) -> String {
        let name = self.barrier_name(barrier);
        match self.barriers[barrier as usize].phase_of(promise.epoch) {
            Some(phase) => {
                format!("Wait for phase {phase} of {name} (mbarrier.try_wait.parity with parity {}) {when}.", phase % 2)
            }
            None => format!("Wait for {name} {when}."),
        }
    }
}
