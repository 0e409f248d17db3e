//! Which TODO a finding is about: the one whose code it points at, or whose task the kernel lacks.

use super::{Judge, ranked};
use crate::diagnostics::{self, Sources};
use crate::observe::Observation;
use crate::skeleton;
use crate::steps::{Milestone, Seen, Step};
use crate::told::{Pointer, Says, Told};
use crate::workbook::carry;
use emulator::{Diagnostic, Meaning, Place};

/// Findings that point at the last use of something that must last longer: what is missing is at the kernel's end.
const AT_THE_END: &[&str] = &["bulk-store-outlives-thread", "remote-use-outlives-cta", "pair-freed-early"];

/// Where the TODO stands that mends a finding, seen from the one that its line belongs to.
#[derive(Clone, Copy)]
enum Way {
    /// In front of it, or it is the same.
    Before,
    /// Behind it, in the round before.
    After,
}

/// Findings that point at who is harmed, where something is missing elsewhere: the words that the TODO has to which it belongs, where that
/// stands, and the page. A tile is written over in a round because the round before did not wait for the MMAs that read it.
const ELSEWHERE: [(&str, &[&str], Way, &str); 3] = [
    ("missing-proxy-fence", &[" see "], Way::Before, "book: proxies and fences (book/src/proxies.md)"),
    ("mma-not-awaited", &["every warp waits"], Way::Before, "book: mbarriers and phases (book/src/mbarriers.md)"),
    (
        "operand-overwritten",
        &["every warp waits", "committed and awaited"],
        Way::After,
        "book: mbarriers and phases (book/src/mbarriers.md)",
    ),
];

/// What a task says that asks for the fence of tcgen05 behind a wait, and one that asks for both: tasks name no call.
const FENCE_AFTER: &str = "keep loads from tensor memory behind the wait";
const FENCES_ON_BOTH_SIDES: &str = "a fence of tcgen05 on either side";

/// The milestone of the TODO that mends a finding, and what to read for it, where that is not the TODO `harmed` that its line belongs to.
pub fn mended_elsewhere(step: &Step, code: &str, harmed: &str) -> Option<(&'static Milestone, &'static str)> {
    let (_, words, way, read) = ELSEWHERE.iter().find(|(known, ..)| *known == code)?;
    let milestones: &'static [Milestone] = step.milestones;
    let harmed = milestones.iter().position(|known| known.id == harmed)?;
    let is_it = |known: &&Milestone| words.iter().any(|word| known.title.contains(word) || known.task.contains(word));
    let mends = match way {
        Way::Before => milestones[..=harmed].iter().rev().find(is_it),
        Way::After => milestones[harmed + 1..].iter().find(is_it),
    };
    Some((mends?, read))
}

impl Judge<'_> {
    /// The milestone of the TODO that a finding is about: the one that mends it.
    pub(super) fn milestone_of(&self, diagnostic: &Diagnostic, seen: &Observation) -> Option<&'static Milestone> {
        if diagnostic.code == "hang" {
            // Who waits need not be who keeps it waiting: the first milestone that is not there says more.
            let undone =
                |milestone: &&Milestone| matches!((milestone.check)(seen), Seen::Wrong(_) | Seen::Found(_) | Seen::Cut);
            let first = self.step.milestones.iter().find(undone)?;
            return Some(self.lacks_a_commit(diagnostic, seen, first).unwrap_or(first));
        }
        if diagnostic.code == "early-arrival" {
            // A wait for another phase than its own looks like that, too, and then its own check says so.
            let waits =
                |milestone: &&Milestone| milestone.title.contains("waits") || milestone.title.contains("awaited");
            let wrong = |milestone: &&Milestone| matches!((milestone.check)(seen), Seen::Wrong(_));
            if let Some(milestone) = self.step.milestones.iter().filter(waits).find(wrong) {
                return Some(milestone);
            }
        }
        if self.step.shape.specialised && AT_THE_END.contains(&diagnostic.code) {
            return self.step.milestones.last();
        }
        let todos = diagnostic.labels.iter().filter_map(|label| {
            let id = todo_at(self.step, &self.options.sources, &label.place)?;
            self.step.milestones.iter().find(|milestone| milestone.id == id)
        });
        let todos: Vec<&'static Milestone> = todos.collect();
        if ["mbarrier-split", "mbarrier-overflow"].contains(&diagnostic.code) {
            // Who arrives may do as it should, and the barrier be made for another number, or another wait let pass what should wait.
            let of_it = |milestone: &&Milestone| todos.iter().any(|todo| todo.id == milestone.id);
            let waits = |milestone: &&Milestone| milestone.title.contains("waits");
            let wrong = |milestone: &&Milestone| matches!((milestone.check)(seen), Seen::Wrong(_));
            let milestones = || self.step.milestones.iter();
            if let Some(milestone) = milestones().filter(of_it).find(wrong).or(milestones().filter(waits).find(wrong)) {
                return Some(milestone);
            }
        }
        // The line that is shown is the access, and the fence may be asked for beside the wait.
        let fence = if diagnostic.title.contains("before_thread_sync") { "before" } else { "after" };
        let asks_for_it = |milestone: &Milestone| {
            let after = fence == "after" && milestone.task.contains(FENCE_AFTER);
            after || milestone.task.contains(FENCES_ON_BOTH_SIDES)
        };
        // Where all threads meet for it, that is a TODO of its own, which stands in front of the access.
        let asked_before = |harmed: &&'static Milestone| {
            let milestones: &'static [Milestone] = self.step.milestones;
            let at = milestones.iter().position(|known| known.id == harmed.id)?;
            milestones[..at].iter().rev().find(|known| fence == "after" && asks_for_it(known))
        };
        let fence = (diagnostic.code == "missing-tensor-fence")
            .then(|| todos.iter().copied().find(|todo| asks_for_it(todo)).or_else(|| asked_before(todos.first()?)));
        let milestone: &'static Milestone = fence.flatten().or(todos.first().copied())?;
        Some(mended_elsewhere(self.step, diagnostic.code, milestone.id).map_or(milestone, |(mends, _)| mends))
    }

    /// The milestone whose task is the commit that a hang waits for. In a loop the first round hangs, and cuts short what comes in front of it in
    /// all others, which may be right.
    fn lacks_a_commit(
        &self,
        hang: &Diagnostic,
        seen: &Observation,
        first: &'static Milestone,
    ) -> Option<&'static Milestone> {
        let lacks = hang.labels.iter().any(|label| label.meaning == Meaning::NotCommitted);
        if !(lacks && matches!((first.check)(seen), Seen::Cut)) {
            return None;
        }
        let barrier = hang.title.split('`').nth(1)?.split('[').next()?;
        // The tasks name no call.
        let is_it = |milestone: &Milestone| milestone.title.contains("committed") && milestone.task.contains(barrier);
        let commits = |milestone: &&Milestone| is_it(milestone) && matches!((milestone.check)(seen), Seen::Cut);
        self.step.milestones.iter().find(commits)
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

    /// Whether what an open TODO asks for is there, beside the call that marks it.
    pub(super) fn is_there(&self, milestone: &Milestone, at: &crate::source::Place, seen: &Observation) -> bool {
        let sources = &self.options.sources;
        let text = || Some((untouched(self.step.number, sources)?, sources.read(&at.file)?));
        let written = || text().is_some_and(|(untouched, text)| carry::holds_code(&untouched, &text, milestone.id));
        matches!((milestone.check)(seen), Seen::Done) && written()
    }

    /// A finding, with the TODO that it is about and what to read there.
    pub(super) fn shown(&self, diagnostic: &Diagnostic, seen: &Observation) -> Told {
        let text = diagnostics::render(diagnostic, &self.options.sources);
        let pointer = |milestone| pointer(self.step, milestone, diagnostic.code);
        text + self.milestone_of(diagnostic, seen).map(pointer).unwrap_or_default()
    }
}

/// Where to go on: a line below the explanation of a finding of this code, or of what no finding has (then it is empty).
pub(super) fn pointer(step: &Step, milestone: &Milestone, code: &str) -> Told {
    let (id, read) = match mended_elsewhere(step, code, milestone.id) {
        Some((mends, read)) => (mends.id, read),
        None => (milestone.id, milestone.read),
    };
    let text = format!("  TODO {id}; read: {read}\n");
    let pointer = Some(Pointer { todo: id.to_string(), read: read.to_string() });
    Told { text, says: Says { pointer, ..Says::default() } }
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

    /// The words by which a TODO is found still stand in what is to do.
    #[test]
    fn a_missing_fence_belongs_to_the_todo_that_asks_for_it() {
        for (harmed, mends) in
            [("1.3", "1.2"), ("2.2", "2.1"), ("3.3", "3.2"), ("4.7", "4.7"), ("5.7", "5.7"), ("7.7", "7.7")]
        {
            let number = harmed.split('.').next().and_then(|step| step.parse().ok()).unwrap();
            let step = crate::step(number).unwrap();
            let found = mended_elsewhere(step, "missing-proxy-fence", harmed).map(|(milestone, _)| milestone.id);
            assert_eq!(found, Some(mends), "harmed is {harmed}");
        }
        let asks = |step, words| {
            let milestones = crate::step(step).unwrap().milestones.iter();
            milestones.filter(|known| known.task.contains(words)).map(|known| known.id).collect::<Vec<_>>()
        };
        assert_eq!(asks(1, FENCE_AFTER), ["1.5"]);
        for (step, id) in [(4, "4.5"), (5, "5.6"), (6, "6.5")] {
            assert_eq!(asks(step, FENCES_ON_BOTH_SIDES), [id]);
        }
    }

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
