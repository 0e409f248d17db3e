//! Which TODO a verdict names when the line that is shown belongs to another one, or cuts short what stands in front of it.

use harness::diagnostics::Sources;
use harness::{
    BuildFailure, Built, InProcess, JudgeOptions, KernelSource, MilestoneState, Outcome, Part, Problem, Step, Verdict,
    judge, report, step,
};

/// An edited solution whose places are files of the folder that holds its text.
struct Edited(&'static str);

impl KernelSource for Edited {
    fn build(&self, problem: &Problem, sms: u32) -> Result<Built, BuildFailure> {
        let folder = format!("{}/", edited::FOLDER);
        let mut built = InProcess(edited::kernel(self.0)).build(problem, sms)?;
        built.ptx = built.ptx.replace(&folder, "");
        for todo in &mut built.todos {
            todo.place.file = todo.place.file.replace(&folder, "");
        }
        Ok(built)
    }
}

/// The verdict at the size that is looked at closely.
fn judged(name: &'static str) -> Verdict {
    colored::control::set_override(false);
    let number = name.rsplit('_').next().and_then(|number| number.parse().ok()).expect("the name ends with the step");
    let whole = step(number).expect("the step exists");
    let step = Step { sizes: &[], cases: &[], timed: whole.observed.problem, inputs_per_size: 1, ..*whole };
    let options = JudgeOptions { seeds: 1, sources: Sources::at(edited::FOLDER), ..JudgeOptions::default() };
    judge(&step, &Edited(name), &options)
}

#[track_caller]
fn state<'a>(verdict: &'a Verdict, id: &str) -> &'a MilestoneState {
    &verdict.milestones.iter().find(|milestone| milestone.id == id).expect("the step has it").state
}

/// A wait for the number of the round breaks the run off in round 2. It is TODO 2.4 that is not right, and not 2.1, of which the run has not
/// shown every round.
#[test]
fn what_breaks_a_run_off_is_shown_at_its_own_todo() {
    for name in ["round_as_parity_2", "round_as_parity_begun_2"] {
        let verdict = judged(name);
        let whole = report::render(&verdict);
        let MilestoneState::Wrong { text } = state(&verdict, "2.4") else { panic!("`{name}`:\n{whole}") };
        assert!(text.contains("mbarrier-parity") && text.contains("k.wait(mma_done, round);"), "`{name}`:\n{text}");
        for id in ["2.1", "2.2", "2.3"] {
            assert!(!matches!(state(&verdict, id), MilestoneState::Wrong { .. }), "`{name}`, {id}:\n{whole}");
        }
    }
    let verdict = judged("round_as_parity_begun_2");
    let first = verdict.first_undone().map(|milestone| milestone.id.as_str());
    assert_eq!(first, Some("2.4"), "{}", report::render(&verdict));
}

/// The note stands at the load; the fence is asked for by the TODO of the wait in step 1, and by that of the loads in step 2.
#[test]
fn a_missing_fence_is_that_of_the_todo_that_asks_for_it() {
    for (name, id) in [("no_fence_behind_the_wait_1", "1.5"), ("no_fence_before_the_loads_2", "2.5")] {
        let verdict = judged(name);
        let whole = report::render(&verdict);
        let Outcome::Failed { text, .. } = verdict.part(Part::RaceFree) else { panic!("`{name}`:\n{whole}") };
        assert!(text.starts_with("note[missing-tensor-fence]"), "`{name}`:\n{text}");
        assert!(text.contains(&format!("\n  TODO {id}; read: ")), "`{name}`:\n{text}");
        assert_eq!(*state(&verdict, id), MilestoneState::Flagged { part: Part::RaceFree }, "`{name}`:\n{whole}");
    }
}
