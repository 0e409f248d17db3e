//! Which TODO a finding is about: the one whose code it points at, or whose task the kernel lacks.

use super::Judge;
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
        let id = diagnostic.labels.iter().find_map(|label| todo_at(self.step, &self.options.sources, &label.place))?;
        self.step.milestones.iter().find(|milestone| milestone.id == id)
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

/// The untouched file of a step, made from the solution that this program holds: a verdict depends on the program, and on no file that lies
/// about when it judges.
#[cfg(feature = "solutions")]
fn untouched(step: u8, _: &Sources) -> Option<String> {
    let (_, solution) = solutions::TEXTS.iter().find(|(number, _)| *number == step)?;
    crate::skeleton::generate(step, &format!("solutions/src/step{step:02}.rs"), solution).ok()
}

/// The untouched file of a step, as a student edition has it; also the one that this program was built with.
#[cfg(not(feature = "solutions"))]
fn untouched(step: u8, sources: &Sources) -> Option<String> {
    let file = crate::workbook::Workspace::untouched(step);
    sources.read(&file).or_else(|| Sources::workspace().read(&file))
}

#[cfg(all(test, feature = "solutions"))]
mod tests {
    use super::*;
    use crate::workbook::Workspace;
    use std::fs;

    #[test]
    fn the_untouched_files_are_those_of_this_program_whatever_lies_about() {
        let checkout = Workspace { root: std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("..") };
        let folder = tempfile::tempdir().unwrap();
        for file in ["harness/untouched", "solutions/src"] {
            fs::create_dir_all(folder.path().join(file)).unwrap();
        }
        for (step, _) in solutions::ALL {
            for file in [Workspace::untouched(*step), Workspace::solution(*step)] {
                fs::write(folder.path().join(file), "// another\n").unwrap();
            }
            let own = checkout.skeleton(*step).unwrap();
            let found = untouched(*step, &Sources::at(folder.path()));
            assert_eq!(found.as_deref(), Some(own.as_str()), "step {step}");
        }
    }
}
