//! Buffers that the grid before may still write when this one begins, by programmatic dependent launch.

use crate::diagnostic::Severity;
use crate::machine::cluster::Cluster;
use crate::machine::memory::Runs;
use crate::machine::state::ActorKind;
use crate::program::op::Op;

impl Cluster<'_> {
    /// Whether the grid before may still write when this one begins.
    fn has_prerequisite(&self) -> bool {
        !self.launch.attributes.prerequisite_writes.is_empty()
    }

    /// `griddepcontrol.wait`: the grid before has ended, and what it wrote is there, for the asynchronous proxy too (assumption `dependent-launch-alone`).
    pub fn wait_for_prerequisite(&mut self, w: usize) {
        if self.has_prerequisite() {
            let actor = match self.prerequisite {
                Some(actor) => actor,
                None => {
                    let actor = self.actor(ActorKind::Prerequisite);
                    *self.prerequisite.insert(actor)
                }
            };
            self.warps[w].views.raise(actor, 1);
        }
    }

    /// A warp, or a copy that it issues, touches global memory: whether the grid before has surely ended.
    pub fn check_prerequisite(&mut self, w: usize, runs: Runs, site: u32, writes: bool) {
        if !self.options.judges()
            || !self.has_prerequisite()
            || !self.launch.attributes.prerequisite_writes.contains(&runs.buffer)
        {
            return;
        }
        if self.prerequisite.is_some_and(|actor| self.warps[w].views.came_before(actor) > 0) {
            return;
        }
        // Once of each statement: it may stand in a loop.
        if !self.early.insert((site, runs.buffer)) {
            return;
        }
        let name = self.launch.buffers.get(runs.buffer).map_or("a buffer", |buffer| &buffer.name);
        let waits = self.kernel.code.iter().find(|inst| matches!(inst.op, Op::GridWait));
        let mut diagnostic = self.problem(
            "race-global",
            site,
            format!(
                "{} {} `{name}`, which the grid before may still write",
                self.warp_name(w),
                if writes { "writes to" } else { "reads" }
            ),
            "A grid that is launched as a dependent one may begin before those that it depends on have ended: griddepcontrol.wait waits until they have, and \
             what they wrote is there (PTX ISA, griddepcontrol).",
            match waits {
                Some(_) => "Let the thread execute griddepcontrol.wait before it, or wait at a barrier for one that has.".into(),
                None => "Put griddepcontrol.wait before the first access of what the grid before writes.".into(),
            },
        );
        diagnostic.severity = Severity::Finding;
        if let Some(wait) = waits.filter(|wait| wait.site != site) {
            diagnostic
                .labels
                .push(self.label(wait.site, "this waits for the grid before, and does not come before that access"));
        }
        self.findings.add(diagnostic);
    }
}
