//! A run for results alone is the same run.

use emulator::{Diagnostic, Launch, Mode, Options, Program, Report, Severity};

/// Without the judge, a launch computes the same in the same time, and nothing is found that the judge has not found.
#[track_caller]
pub fn compare(name: &str, program: &Program, launch: &Launch, options: &Options, judged: &Report) {
    let report = emulator::run(program, launch, &Options { mode: Mode::Compute, ..options.clone() });
    // What follows from a race is told as the race, by the judge.
    let follows = |code| ["undefined-value-stored", "mma-outlives-cta", "phase-overtaken"].contains(&code);
    let known = |code| follows(code) || judged.findings.iter().any(|known| known.code == code);
    // What stops the run at a statement is told by its cause, by the judge.
    let stops = |finding: &Diagnostic| {
        let place = |d: &Diagnostic| d.labels.first().map(|label| label.place.clone());
        let same = |known: &Diagnostic| known.severity == Severity::Error && place(known) == place(finding);
        finding.severity == Severity::Error && judged.findings.iter().any(same)
    };
    let more = report.findings.iter().find(|finding| judged.is_clean() || !known(finding.code) && !stops(finding));
    assert!(more.is_none(), "{name}, results only: {more:#?}");
    // That nobody has waited for an MMA shows at the end.
    let outlives = |report: &Report| report.findings.iter().any(|finding| finding.code == "mma-outlives-cta");
    assert!(outlives(&report) || !outlives(judged), "{name}, results only: nobody waits for an MMA");
    let hang = |report: &Report| report.findings.iter().find(|finding| finding.code == "hang").map(|d| d.title.clone());
    assert_eq!(hang(&report), hang(judged), "{name}, results only");
    let what = |report: &Report| (report.completed, report.cycles, report.instructions, report.clusters);
    assert_eq!(what(&report), what(judged), "{name}, results only: completed, cycles, instructions, clusters");
    assert!(report.buffers == judged.buffers, "{name}: results alone are others than those that were judged");
}
