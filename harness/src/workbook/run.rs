//! `run`: the verdict on one kernel.

use super::binary;
use super::workspace::{Workspace, name};
#[cfg(feature = "solutions")]
use super::{Patience, print};
#[cfg(feature = "solutions")]
use crate::{InProcess, JudgeOptions, judge, reference_kernels};
use std::process::{Command, ExitCode};

/// Builds a step and runs its test.
pub(super) fn step(workspace: &Workspace, number: u8, args: &[String]) -> Result<ExitCode, String> {
    let program = binary(workspace, number)?;
    let status = Command::new(&program)
        .args(args)
        .current_dir(workspace.root.join("steps").join(name(number)))
        .status()
        .map_err(|error| format!("cannot start {}: {error}", program.display()))?;
    let code = status.code().and_then(|code| u8::try_from(code).ok());
    const USAGE: u8 = 2;
    if code == Some(USAGE) && args.iter().any(|argument| argument.starts_with('-')) {
        eprintln!("note: what stands behind `{}` goes to the step's test, as with cargo test", name(number));
    }
    Ok(ExitCode::from(code.unwrap_or(1)))
}

/// The verdict on the kernel for Hopper.
#[cfg(feature = "solutions")]
pub(super) fn hopper() -> Result<ExitCode, String> {
    let kernel = reference_kernels::hopper().ok_or("this program does not hold the kernel for Hopper")?;
    let options = JudgeOptions::for_hopper()?;
    let verdict = {
        let _patience = Patience::new("judging the kernel for Hopper …");
        judge(&crate::steps::hopper::STEP, &InProcess(kernel), &options)
    };
    print(&crate::report::render(&verdict));
    let missing: Vec<String> =
        verdict.parts.iter().filter(|(_, outcome)| !outcome.passed()).map(|(part, _)| part.to_string()).collect();
    if !missing.is_empty() {
        eprintln!("error: not passed: {}", missing.join(", "));
    }
    Ok(if verdict.passed() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
