//! Which TODO a finding is about: the one whose code it points at, or whose task the kernel lacks.

use super::{Judge, ranked};
use crate::diagnostics::{self, Sources};
use crate::observe::Observation;
use crate::skeleton;
use crate::steps::{Milestone, Seen, Step};
use crate::workbook::carry;
use emulator::{Diagnostic, Place};

/// Findings that point at the last use of something that must last longer: what is missing is at the kernel's end.
const AT_THE_END: &[&str] = &["bulk-store-outlives-thread", "remote-use-outlives-cta", "pair-freed-early"];

impl Judge<'_> {
    /// The milestone of the TODO that a finding is about.
    pub(super) fn milestone_of(&self, diagnostic: &Diagnostic, seen: &Observation) -> Option<&'static Milestone> {
        if diagnostic.code == "hang" {
            // Who waits need not be who keeps it waiting: the first milestone that is not there says more.
            let undone =
                |milestone: &&Milestone| matches!((milestone.check)(seen), Seen::Wrong(_) | Seen::Found(_) | Seen::Cut);
            return self.step.milestones.iter().find(undone);
        }
        if self.step.shape.specialised && AT_THE_END.contains(&diagnostic.code) {
            return self.step.milestones.last();
        }
        let todos = diagnostic.labels.iter().filter_map(|label| {
            let id = todo_at(self.step, &self.options.sources, &label.place)?;
            self.step.milestones.iter().find(|milestone| milestone.id == id)
        });
        let todos: Vec<&'static Milestone> = todos.collect();
        // The line that is shown is the access, and the fence may be asked for beside the wait.
        let asks_for_it = |milestone: &&&Milestone| {
            let fence = if diagnostic.title.contains("before_thread_sync") { "before" } else { "after" };
            milestone.task.contains(&format!("tcgen05_fence_{fence}"))
        };
        let fence = todos.iter().find(asks_for_it).filter(|_| diagnostic.code == "missing-tensor-fence");
        fence.or(todos.first()).copied()
    }

    /// The milestone whose line broke a run off: what stands in front of it may be right, and was cut short.
    ///
    /// None where a TODO in front of it is open, or where its own check says something else.
    pub(super) fn home(&self, seen: &Observation, open: impl Fn(&str) -> bool) -> Option<&'static str> {
        if seen.report.completed {
            return None;
        }
        let home = self.milestone_of(ranked(seen).first()?, seen)?;
        let waits = self.step.milestones.iter().take_while(|milestone| milestone.id != home.id).any(|m| open(m.id));
        (!waits && matches!((home.check)(seen), Seen::Cut)).then_some(home.id)
    }

    /// A finding, with the TODO that it is about and what to read there.
    pub(super) fn shown(&self, diagnostic: &Diagnostic, seen: &Observation) -> String {
        let text = diagnostics::render(diagnostic, &self.options.sources);
        text + &self.milestone_of(diagnostic, seen).map(pointer).unwrap_or_default()
    }
}

/// Where to go on: a line below an explanation.
pub(super) fn pointer(milestone: &Milestone) -> String {
    format!("  TODO {}; read: {}\n", milestone.id, milestone.read)
}

/// The TODO of the step whose code stands at this place.
///
/// A line that stands in the untouched file, too, is nobody's. What the student has put elsewhere is the nearest TODO's above it.
fn todo_at(step: &Step, sources: &Sources, place: &Place) -> Option<String> {
    let source = place.source.as_ref()?;
    let text = sources.read(&source.file)?;
    let line = (source.line as usize).checked_sub(1)?;
    let untouched = untouched(step.number, sources).unwrap_or_default();
    if let Some(id) = carry::todo_of_line(&untouched, &text, line) {
        return Some(id);
    }
    let here = text.lines().nth(line)?.trim();
    if untouched.lines().any(|known| known.trim() == here) {
        return None;
    }
    let above = text.lines().take(line + 1).filter_map(|line| {
        skeleton::todo_id(line.trim().strip_prefix("//")?.trim())
            .filter(|id| id.starts_with(&format!("{}.", step.number)))
    });
    above.last().map(str::to_string)
}

/// The untouched file of a step, as a student edition has it or made from the solution; also the one that this program was built with.
fn untouched(step: u8, sources: &Sources) -> Option<String> {
    let read = |sources: &Sources| {
        let solution = format!("solutions/src/step{step:02}.rs");
        let made = || skeleton::generate(step, &solution, &sources.read(&solution)?).ok();
        sources.read(&format!("harness/untouched/step{step:02}.rs")).or_else(made)
    };
    read(sources).or_else(|| read(&Sources::workspace()))
}
