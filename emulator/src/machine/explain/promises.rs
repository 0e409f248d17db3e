//! Asynchronous writes of shared memory that nobody has waited for when their mbarrier, or their CTA, ends.

use super::names::counted;
use crate::diagnostic::{Diagnostic, Meaning, Severity};
use crate::machine::barrier::mbarrier::{Destination, Promise, Used};
use crate::machine::cluster::Cluster;
use crate::machine::state::{Commit, Slot};
use crate::machine::tma::bounding_box::Rows;
use rustc_hash::FxHasher;
use std::hash::{Hash, Hasher};

impl Cluster<'_> {
    /// Warp `w` invalidates an mbarrier: what other warps did with it must come before, and the warp must know.
    pub fn check_uses(&mut self, w: usize, barrier: u32, site: u32) {
        let other =
            |used: &&Used| used.warp != w && !self.warps[w].has_heard_of(self.warps[used.warp].actor, used.epoch);
        let Some(&used) = self.barriers[barrier as usize].uses.iter().find(other) else { return };
        if !self.options.judges() {
            return;
        }
        let (who, name) = (self.warp_name(used.warp), self.barrier_name(barrier));
        let (meet, whose) = if self.warps[used.warp].cta == self.warps[w].cta {
            ("CTA barrier", "the CTA")
        } else {
            ("barrier of the cluster", "the cluster")
        };
        let found = self.invalidated_early(
            barrier,
            site,
            &format!("{who} may still use it"),
            "Every operation on an mbarrier must come before its mbarrier.inval: nothing but mbarrier.init may follow (PTX ISA, mbarrier.inval).",
            format!("Let the threads of {whose} meet (a {meet}) behind their last use of {name}, then invalidate it."),
            (used.site, &format!("nothing says that {who} is done with this by then")),
        );
        self.findings.add(found);
    }

    /// Warp `w` invalidates an mbarrier: what completes on it must have done so, and the warp must know. Tells whether that is not so.
    pub fn check_promises(&mut self, w: usize, barrier: u32, site: u32) -> bool {
        let b = &self.barriers[barrier as usize];
        let Some(&promise) = b.promises.iter().find(|promise| !self.knows(w, barrier, promise)) else { return false };
        let found = self.invalidated_early(
            barrier,
            site,
            "a copy that completes on it may be on its way",
            "A copy completes on its mbarrier whenever its bytes are there, and no operation on an mbarrier may follow its mbarrier.inval \
             (PTX ISA, mbarrier.inval; cp.async.bulk).",
            self.wait_for(barrier, &promise, "before it is invalidated"),
            (promise.site, "nothing says that this copy is complete by then"),
        );
        self.findings.add(found);
        true
    }

    /// The same of the arrivals of commits. Those of one thread are taken to come in their order. Where the warp has learnt meanwhile that the MMAs are
    /// complete, it is over in time, and a note: Triton 3.6 commits the same MMAs to several mbarriers, and waits for one of them.
    pub fn check_commits(&mut self, w: usize, barrier: u32, site: u32) -> bool {
        let first = self.barriers[barrier as usize].first_commit;
        let knows = |c: &Commit| !self.options.judges() || self.warps[w].has_heard_of(c.thread.0, c.thread.1);
        let complete = |c: &Commit| !c.late && self.warps[w].has_heard_of(c.queue, c.epoch);
        let unknown = self.commits[first..].iter().filter(|c| c.barrier == barrier && !knows(c));
        let Some((over, commit)) = unknown.map(|c| (complete(c), c.site)).min_by_key(|&(over, _)| over) else {
            return false;
        };
        let name = self.barrier_name(barrier);
        let found = self.invalidated_early(
            barrier,
            site,
            "a commit may still arrive at it",
            "A commit arrives at its mbarrier when all MMAs that its thread issued before are complete, and no operation on an mbarrier may \
             follow its mbarrier.inval (PTX ISA, tcgen05.commit; mbarrier.inval).",
            format!("Wait for the phase of {name} that this commit completes, or for a later commit of the same thread, before it is invalidated."),
            (commit, "nothing says that this commit has arrived by then"),
        );
        self.findings.add(Diagnostic { severity: if over { Severity::Note } else { Severity::Finding }, ..found });
        true
    }

    /// A number for where a copy takes its bytes from.
    pub fn source_of(&self, rows: &[Rows], from: Option<Slot>) -> u64 {
        let mut hasher = FxHasher::default();
        from.hash(&mut hasher);
        rows.iter().for_each(|rows| rows.inside.hash(&mut hasher));
        hasher.finish()
    }

    /// A copy that completes on an mbarrier writes these bytes: no other that completes the same phase may, since nothing orders the two.
    pub fn check_copies_apart(&mut self, barrier: u32, slot: Slot, bytes: u32, source: u64, site: u32, warp: usize) {
        if !self.options.judges() {
            return;
        }
        let b = &mut self.barriers[barrier as usize];
        let (start, end) = (slot.offset, slot.offset + bytes);
        let new = Destination { epoch: b.next_epoch(), cta: slot.cta, start, end, source, site, warp };
        let Some(other) = b.brings(new) else { return };
        let (low, high) = (start.max(other.start), end.min(other.end));
        let (name, phase) = (self.shared_name(low), self.barrier_name(barrier));
        let [here, there] = [new.warp, other.warp].map(|w| self.warps[w].cta);
        let both = counted(high - low, "byte");
        let (title, help, meaning) = match here == there {
            true => (
                format!("two copies write the {both} from {name} on, and complete the same phase of {phase}"),
                "Give each copy a destination of its own: check where each tile of a stage begins, and how many bytes the one before takes.",
                Meaning::Plain,
            ),
            false => (
                format!(
                    "CTA {there} and CTA {here} each copy to the {both} from {name} on in CTA {}, for the same phase of {phase}",
                    slot.cta
                ),
                "Let each CTA of the cluster copy to bytes that no other one writes: look at the CTA that the address of the destination means (mapa, or \
                 bits of the rank that are taken out of it), or at the CTA mask of the multicast.",
                Meaning::SameBytes,
            ),
        };
        let mut diagnostic = self.problem(
            "race-shared",
            site,
            title,
            "Bulk copies run by themselves, in no order: of two whose bytes one phase of an mbarrier counts, nobody knows which writes last \
             (PTX ISA, cp.async.bulk; 8.9.1.1, asynchronous operations).",
            help.into(),
        );
        diagnostic.severity = Severity::Finding;
        let text = |d: &Destination| {
            let who = if other.warp == warp { "this copy".into() } else { self.warp_name(d.warp) };
            format!("{who} writes {} from {} on", counted(d.end - d.start, "byte"), self.shared_name(d.start))
        };
        let (first, second) = (text(&other), text(&new));
        match other.site == site {
            true => diagnostic.labels[0].text = format!("{first}; {second}"),
            false => {
                diagnostic.labels[0].text = second;
                diagnostic.labels.push(self.label(other.site, first));
            }
        }
        diagnostic.labels[0].meaning = meaning;
        self.findings.add(diagnostic);
    }

    /// A note on an `mbarrier.inval` of what holds no mbarrier: it changes nothing, as before an initialisation in a loop over tiles.
    pub fn note_nothing_invalidated(&mut self, offset: u32, site: u32) {
        let name = self.shared_name(offset);
        let mut diagnostic = self.problem(
            "mbarrier-not-initialised",
            site,
            format!("{name} is invalidated here, but holds no mbarrier"),
            "mbarrier.inval asks for a valid mbarrier (PTX ISA, mbarrier.inval). An H200 changed no byte of another place, and counted right at the mbarrier \
             that was initialised there next.",
            "Leave it out where nothing is initialised yet: mbarrier.init needs no mbarrier.inval before it, unless an mbarrier lies there. If one is meant, check the address.".into(),
        );
        diagnostic.severity = Severity::Note;
        self.findings.add(diagnostic);
    }

    fn invalidated_early(
        &self,
        barrier: u32,
        site: u32,
        although: &str,
        rule: &str,
        help: String,
        (other, text): (u32, &str),
    ) -> Diagnostic {
        let name = self.barrier_name(barrier);
        let title = format!("{name} is invalidated although {although}");
        let mut diagnostic = self.problem("mbarrier-invalidated-early", site, title, rule, help);
        diagnostic.severity = Severity::Finding;
        diagnostic.labels[0].text = format!("{name} is invalidated here");
        diagnostic.labels.push(self.label(other, text));
        diagnostic
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
        !self.options.judges() || self.warps[w].has_heard_of(actor, promise.epoch)
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
