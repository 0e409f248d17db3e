//! Kernels of libraries and of Gluon with a single line wrong: what a newcomer is told of it.

use super::case::told;
use super::compiled::case as gluon;
use emulator::{Diagnostic, Launch, Options, Report};

/// A kernel and its launch; `library`: of `../libraries`, otherwise of `../gluon`.
pub fn kernel(library: bool, name: &str) -> (String, Launch) {
    let folder = if library { "libraries" } else { "gluon" };
    let path = |ending: &str| format!("{}/tests/{folder}/{name}.{ending}", env!("CARGO_MANIFEST_DIR"));
    let read = |ending: &str| std::fs::read_to_string(path(ending)).unwrap_or_else(|e| panic!("{}: {e}", path(ending)));
    let launch = match library {
        true => serde_json::from_str(&read("json")).expect("a launch"),
        false => gluon::launch_file(name),
    };
    (read("ptx"), launch)
}

/// What the default schedule says of a kernel where this is written in this line for that.
pub fn broken(library: bool, name: &str, edits: &[(usize, &str, &str)]) -> Report {
    let (text, launch) = kernel(library, name);
    let mut lines: Vec<String> = text.lines().map(str::to_string).collect();
    for (line, from, to) in edits {
        let old = &mut lines[line - 1];
        assert_eq!(old.matches(from).count(), 1, "{name}, line {line}: `{from}` in `{old}`");
        *old = old.replace(from, to);
    }
    let program = emulator::load(&lines.join("\n")).unwrap_or_else(|e| panic!("{name}: {e:#?}"));
    emulator::run(&program, &launch, &Options { max_instructions: 10_000_000, ..Default::default() })
}

fn first(report: &Report) -> &Diagnostic {
    report.findings.first().expect("a finding")
}

/// A finding of this code, with labels that begin so at these lines, and this in its advice.
#[track_caller]
fn says(found: &Diagnostic, code: &str, labels: &[(u32, &str)], advice: &str) {
    let all = told(std::slice::from_ref(found));
    assert_eq!(found.code, code, "{all}");
    for (line, text) in labels {
        let known = |label: &emulator::Label| label.place.line == *line && label.text.contains(text);
        assert!(found.labels.iter().any(known), "`{text}` is not said of line {line}:\n{all}");
    }
    assert!(found.help.contains(advice), "`{advice}` is not advised:\n{all}");
}

#[test]
fn parity_of_the_wait_for_a_product() {
    let report = broken(true, "thunderkittens_level_09", &[(925, "0;", "1;")]);
    let found = first(&report);
    says(found, "wrong-phase", &[(930, "passed at once"), (888, "its completion arrives at")], "Wait for parity 0");
    assert_eq!(found.labels[0].place.line, 930);
}

/// The stage's commit goes to where the next stage's commit does, or to where bytes are announced.
#[test]
fn commit_to_another_mbarrier() {
    for other in ["+72]", "+56]"] {
        let report = broken(true, "cute_dsl_persistent", &[(591, "+64]", other)]);
        says(first(&report), "hang", &[(591, "this commit tells")], "Let the commit arrive at it");
    }
}

/// A fence that stands in front of the stores, or behind the copy, is not named.
#[test]
fn fences_that_stand_elsewhere() {
    let report = broken(true, "thunderkittens_level_09", &[(1663, "fence.proxy.async.shared::cta;", "")]);
    let found = first(&report);
    says(found, "missing-proxy-fence", &[(1673, "reads it here")], "fence.proxy.async");
    let fence = found.labels.iter().find(|label| label.place.text.contains("fence.proxy"));
    assert!(fence.is_none(), "{}", told(&report.findings));
}

#[test]
fn two_arrivals_at_the_cluster_barrier() {
    let wait = "barrier.cluster.wait.acquire.aligned;";
    let report = broken(true, "thunderkittens_level_09", &[(209, wait, "")]);
    says(first(&report), "cluster-barrier", &[(1961, "here"), (205, "it arrived here before")], "barrier.cluster.wait");
}

#[test]
fn relaxed_arrival_behind_the_initialisation() {
    let report = broken(true, "thunderkittens_level_09", &[(205, ".release", ".relaxed")]);
    let found = report.findings.iter().chain(&report.notes).find(|d| d.code == "mbarrier-init-unordered");
    let found = found.unwrap_or_else(|| panic!("not said, but\n{}", told(&report.findings)));
    says(found, "mbarrier-init-unordered", &[(205, "is relaxed")], ".release");
}

/// A register that nothing writes is called by its name.
#[test]
fn undefined_register() {
    let report = broken(true, "thunderkittens_level_09", &[(923, "mov.b32 	%r338, symbol_1;", "")]);
    let found = first(&report);
    says(found, "undefined-operand", &[(930, "`%r47`")], "Write the value");
}

/// Nobody says how many registers a thread begins with, or says more than it can have.
#[test]
fn registers_that_do_not_change() {
    let (text, launch) = kernel(false, "fp8_roles");
    let limit = text.lines().find(|line| line.starts_with(".maxnreg")).expect("a limit");
    for (instead, says) in [("", "nothing says how many"), (".maxnreg 256", ".maxnreg 256 is ignored")] {
        let program = emulator::load(&text.replace(limit, instead)).unwrap_or_else(|e| panic!("{e:#?}"));
        let report = emulator::run(&program, &launch, &Options::default());
        let note = report.notes.iter().find(|d| d.code == "setmaxnreg-without-effect");
        assert!(note.is_some_and(|d| d.title.contains(says)), "{instead}:\n{}", told(&report.notes));
        // It is said of each of them.
        let all = text.lines().filter(|line| line.contains("setmaxnreg")).count();
        assert!(all > 1 && note.is_some_and(|d| d.labels.len() == all), "{instead}:\n{}", told(&report.notes));
        assert!(report.findings.is_empty(), "{instead}:\n{}", told(&report.findings));
    }
}

/// The last product's commit is missing: who should execute it stands at a barrier, to which the others come behind their wait.
#[test]
fn commit_behind_the_last_product() {
    let commit = "@%p25 tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%r98];";
    let report = broken(false, "fp8_roles", &[(547, commit, "")]);
    says(first(&report), "hang", &[(878, "waits for")], "arrive once more before it waits where it does now");
}

/// Who reads an accumulator never says that it has.
#[test]
fn arrival_of_the_readers() {
    let arrival = "@%p106 mbarrier.arrive.shared::cta.b64 _, [%r417];";
    let report = broken(false, "attention_roles", &[(350, arrival, "")]);
    let labels = [(1256, "waits for"), (729, "warp 0 waits for")];
    says(first(&report), "hang", &labels, "let warp 0 arrive at it before warp 0 waits for");
}
