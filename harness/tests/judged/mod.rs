//! The verdict on an edited solution, by its name in the table of edits.

use harness::diagnostics::Sources;
use harness::{
    BuildFailure, Built, InProcess, JudgeOptions, KernelSource, MilestoneState, Problem, Step, Verdict, judge, step,
};

/// An edited solution whose places are files of the folder that holds its text.
pub struct Edited(pub &'static str);

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

/// The verdict at the size that is looked at closely, with so many adversarial schedules.
pub fn judged(name: &'static str, seeds: u32) -> Verdict {
    colored::control::set_override(false);
    let number = name.rsplit('_').next().and_then(|number| number.parse().ok()).expect("the name ends with the step");
    let whole = step(number).expect("the step exists");
    let step = Step { sizes: &[], cases: &[], timed: whole.observed.problem, inputs_per_size: 1, ..*whole };
    let options = JudgeOptions { seeds, sources: Sources::at(edited::FOLDER), ..JudgeOptions::default() };
    judge(&step, &Edited(name), &options)
}

/// The state of a milestone.
#[track_caller]
pub fn state<'a>(verdict: &'a Verdict, id: &str) -> &'a MilestoneState {
    &verdict.milestones.iter().find(|milestone| milestone.id == id).expect("the step has it").state
}
