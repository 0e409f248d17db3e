//! Which TODO is shown as the one that is not right, where a mistake in one of them shows at others, too.

use super::{BROKE_OFF, Judge};
use crate::diagnostics;
use crate::findings::Findings;
use crate::observe::Observation;
use crate::steps::Seen;
use crate::verdict::{MilestoneState, Part, Verdict};

impl Judge<'_> {
    /// One TODO is shown as not right: the first that is, by its own check, or because what `correct` says first is about its lines, or because
    /// the run broke off there. What others show may come of it, and is not held against them.
    pub(super) fn settle(&self, verdict: &mut Verdict, findings: &Findings, seen: &Observation) {
        let wrong = |state: &MilestoneState| matches!(state, MilestoneState::Wrong { .. });
        let named = findings.found.first().filter(|_| !verdict.part(Part::Correct).passed());
        if let Some((_, found)) = named
            && let Some(home) = self.milestone_of(found, seen)
        {
            let milestones = &mut verdict.milestones;
            let before = milestones.iter().take_while(|milestone| milestone.id != home.id).any(|m| wrong(&m.state));
            let its = milestones.iter_mut().find(|milestone| milestone.id == home.id && milestone.state.seen());
            if let Some(milestone) = its.filter(|_| !before) {
                milestone.state = diagnostics::render(found, &self.options.sources).into();
            }
        }
        // Where a run breaks off says less than what a milestone's own check has seen.
        let checked = |id: &str| {
            let known = self.step.milestones.iter().find(|milestone| milestone.id == id);
            known.is_some_and(|milestone| !matches!((milestone.check)(seen), Seen::Cut))
        };
        let all: Vec<String> = verdict.milestones.iter().filter(|m| wrong(&m.state)).map(|m| m.id.clone()).collect();
        let Some(first) = all.iter().find(|id| checked(id)).or(all.first()) else { return };
        let mut before = true;
        for milestone in &mut verdict.milestones {
            before &= milestone.id != *first;
            if wrong(&milestone.state) && milestone.id != *first {
                milestone.state = match before {
                    true => MilestoneState::NotReached { reason: BROKE_OFF.to_string() },
                    false => MilestoneState::WaitsFor { id: first.clone() },
                };
            }
        }
    }
}
