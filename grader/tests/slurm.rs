//! A batch on the nodes of a cluster: with a stand-in for Slurm's commands, and, where `grader/tests/slurm/run` has started one, on a real one.

mod class;

use class::{Class, said, timeless};
use expect_test::expect;
use grader::batch::store::{Outcome, Record};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A cluster of one machine: runs each task of an array, but for those that the file `dead` names, once.
const SBATCH: &str = r#"#!/bin/sh
here=$(dirname "$0")
echo "$*" >> "$here/submitted"
for option; do
    case $option in --array=0-*) last=${option#--array=0-}; last=${last%%%*} ;; esac
    script=$option
done
for task in $(seq 0 "$last"); do
    if [ "$(cat "$here/dead" 2>/dev/null)" = "$task" ]; then rm "$here/dead"; continue; fi
    SLURM_ARRAY_TASK_ID=$task sh "$script" 2>> "$here/log"
done
echo 7
"#;

#[test]
fn a_job_array_grades_all_and_a_node_that_fails_is_tried_again() {
    let class = Class::new(&[("anna", "fn a( {"), ("ben's", "fn b( {"), ("carol", "fn c( {")]);
    let (bin, path) = stand_in(&class, SBATCH);
    fs::write(bin.join("dead"), "1").expect("written");
    let mut command = class
        .batch("it's out", &["--slurm", "--partition", "gpu", "--sbatch=--gpus=1", "--jobs", "2", "--seed-commit"]);
    command.env("PATH", path);
    let (status, text, errors) = said(command);
    let submitted = fs::read_to_string(bin.join("submitted")).expect("submitted");
    assert_eq!(status, Some(0), "{text}{errors}{submitted}{:?}", fs::read_to_string(bin.join("log")));
    assert!(text.starts_with("3 graded now, 0 kept from before, 0 not graded\n"), "{text}");
    assert!(errors.contains("note: 1 of the array's tasks left no result, attempt 1 of 3"), "{errors}");
    let submitted: Vec<&str> = submitted.lines().collect();
    assert_eq!(submitted.len(), 2, "{submitted:?}");
    // Two tries of an hour, what lies between and after them, and ten minutes for the node.
    for (line, array) in submitted.iter().zip(["--array=0-2%2 ", "--array=0-0%2 "]) {
        for option in ["--parsable ", "--no-requeue ", array, "--partition=gpu ", "--gpus=1 ", "--time=131 "] {
            assert!(line.contains(option), "no {option:?}: {line}");
        }
    }
    // What a node wrote is what a batch here writes: it finds nothing left to do.
    let (_, text, _) = said(class.batch("it's out", &["--seed-commit"]));
    assert!(text.starts_with("0 graded now, 3 kept from before, 0 not graded\n"), "{text}");
    let records = class.records("it's out");
    assert!(records.values().all(|record| record.seed.is_none() && record.seed_commitment.is_some()));
}

/// The folder of a stand-in's commands, and the path to search for them first.
fn stand_in(class: &Class, sbatch: &str) -> (PathBuf, String) {
    let bin = class.folder.path().join("bin");
    fs::create_dir_all(&bin).expect("a folder");
    fs::write(bin.join("sbatch"), sbatch).expect("written");
    // All has run when `sbatch` ends, so nothing is left in the queue.
    fs::write(bin.join("squeue"), "#!/bin/sh\n").expect("written");
    for command in ["sbatch", "squeue"] {
        fs::set_permissions(bin.join(command), fs::Permissions::from_mode(0o755)).expect("executable");
    }
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap_or_default());
    (bin, path)
}

#[test]
fn without_a_cluster_nothing_is_made_and_the_way_out_is_said() {
    let class = Class::new(&[("anna", "fn a( {")]);
    let (bin, path) = stand_in(&class, "#!/bin/sh\nexit 1\n");
    // As squeue ends where slurmctld is down.
    let down = "#!/bin/sh\necho 'squeue: error: tried' >&2\necho 'slurm_load_jobs error: Unable to contact slurm controller' >&2\nexit 1\n";
    fs::write(bin.join("squeue"), down).expect("written");
    let refused = |path: &str| {
        let mut command = class.batch("grades", &["--slurm"]);
        command.env("PATH", path);
        let (status, text, errors) = said(command);
        assert_eq!((status, text.as_str()), (Some(2), ""), "{errors}");
        assert!(!class.grades("grades").exists(), "{errors}");
        errors
    };
    expect![[r#"
        error: --slurm needs a cluster, and its controller does not answer here: slurm_load_jobs error: Unable to contact slurm controller
          try: Give this command on a machine that submits jobs to the cluster, or leave out --slurm to grade here. `scontrol ping` asks it, too.
    "#]].assert_eq(&refused(&path));
    let empty = class.folder.path().join("empty");
    fs::create_dir_all(&empty).expect("a folder");
    expect![[r#"
        error: --slurm submits jobs with `sbatch`, and no folder of PATH has one
          try: Give this command on a machine that submits jobs to the cluster, or leave out --slurm to grade here.
    "#]]
    .assert_eq(&refused(&empty.to_string_lossy()));
}

/// Slurm starts a task again whose node it takes for dead, and the node is not: its task comes to an end later than the other.
const SLOW_NODE: &str = r#"#!/bin/sh
for option; do script=$option; done
export SLURM_ARRAY_TASK_ID=0
LAGS=1 sh "$script" 2> /dev/null &
LAGS= sh "$script" 2> /dev/null
wait
echo 7
"#;

#[test]
fn a_task_that_comes_late_does_not_replace_the_result_that_is_there() {
    let class = Class::new(&[("anna", "fn a( {")]);
    let (_, path) = stand_in(&class, SLOW_NODE);
    let wrapper = class.folder.path().join("grade.sh");
    let script = "#!/bin/sh\nif [ -n \"$LAGS\" ]; then sleep 3; echo 'error: late' >&2; exit 2; fi\necho 'error: first' >&2; exit 2\n";
    fs::write(&wrapper, script).expect("written");
    fs::set_permissions(&wrapper, fs::Permissions::from_mode(0o755)).expect("executable");
    let mut command = class.batch("grades", &["--slurm", "--grade-with", &wrapper.to_string_lossy()]);
    let (status, text, errors) = said({
        command.env("PATH", path);
        command
    });
    assert_eq!(status, Some(1), "{text}{errors}");
    let first = Outcome::not_graded("first".to_string());
    assert_eq!(class.records("grades")["anna"].outcome, first, "{text}{errors}");
}

/// What is started in place of the grader: notes where it is started and for what, and from the start on whose number `hold` names,
/// waits until that is gone.
const WRAPPER: &str = r#"#!/bin/sh
cd "$(dirname "$0")" || exit 2
echo "$SLURM_ARRAY_JOB_ID $SLURMD_NODENAME $2 $$" >> started
number=$(wc -l < started)
while [ -e hold ] && [ "$number" -ge "$(cat hold)" ]; do sleep 0.1; done
exec GRADER "$@"
"#;

/// A class on a real cluster.
struct OnCluster {
    class: Class,
    wrapper: PathBuf,
    rubric: PathBuf,
}

/// One start of a grader: the array, the node, what was graded, and the process.
type Start = (String, String, String, u32);

impl OnCluster {
    fn new() -> OnCluster {
        let class = Class::new(&[("broken", "fn broken( {"), ("unread", "fn b( {")]);
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the workspace");
        let solution = fs::read_to_string(root.join("solutions/src/step01.rs")).expect("a solution");
        class.write("passes", &solution);
        class.write("wrong", &solution.replace("t.commit(mma_done);", ""));
        fs::write(class.hand_ins().join("torn.tar.gz"), "no archive").expect("written");
        let (wrapper, rubric) = (class.folder.path().join("grade.sh"), class.folder.path().join("rubric.toml"));
        fs::write(&wrapper, WRAPPER.replace("GRADER", env!("CARGO_BIN_EXE_grader"))).expect("written");
        fs::set_permissions(&wrapper, fs::Permissions::from_mode(0o755)).expect("executable");
        fs::write(&rubric, "[steps.step01]\nsizes = [\"128x128x64 f16\"]\n").expect("written");
        OnCluster { class, wrapper, rubric }
    }

    fn batch(&self, out: &str, options: &[&str]) -> Command {
        let (wrapper, rubric) = (self.wrapper.to_string_lossy(), self.rubric.to_string_lossy());
        // Batches that are compared have the same inputs: without a seed each draws its own.
        let all =
            [&["--grade-with", &wrapper, "--rubric", &rubric, "--allow-unchecked", "--seed", "1"], options].concat();
        self.class.batch(out, &all)
    }

    /// Graders that are started wait, from the one of this number on.
    fn hold(&self, from: usize) {
        let _ = fs::remove_file(self.class.folder.path().join("started"));
        fs::write(self.class.folder.path().join("hold"), from.to_string()).expect("written");
    }

    fn go_on(&self) {
        fs::remove_file(self.class.folder.path().join("hold")).expect("removed");
    }

    fn started(&self) -> Vec<Start> {
        let text = fs::read_to_string(self.class.folder.path().join("started")).unwrap_or_default();
        let start = |line: &str| {
            let words: Vec<&str> = line.split(' ').collect();
            let [job, node, what, process] = words[..] else { panic!("{line:?}") };
            (job.to_string(), node.to_string(), what.to_string(), process.parse().expect("a number"))
        };
        text.lines().map(start).collect()
    }

    /// What is compared of two batches: all results without times, and the table.
    fn grades(&self, out: &str) -> (BTreeMap<String, Record>, String) {
        let records = self.class.records(out).into_iter().map(|(name, record)| (name, timeless(record)));
        (records.collect(), self.class.csv(out))
    }
}

/// Waits until something is so.
fn until(what: &str, mut is: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !is() {
        assert!(
            begin.elapsed() < Duration::from_secs(60),
            "in a minute it did not come about that {what}\n{}",
            cluster()
        );
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// What Slurm says of itself.
fn cluster() -> String {
    ["sinfo", "squeue"].map(|command| said(Command::new(command)).1).concat()
}

fn ended(child: Child) -> (Option<i32>, String, String) {
    let output = child.wait_with_output().expect("it ends");
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

fn scontrol(arguments: &[&str]) {
    let status = Command::new("scontrol").args(arguments).stdout(Stdio::null()).status();
    assert!(status.expect("scontrol starts").success(), "scontrol {arguments:?}");
}

/// Kills a process at once, if it is still there.
fn kill(process: u32) {
    let _ = Command::new("kill").args(["-KILL", &process.to_string()]).stderr(Stdio::null()).status();
}

fn processes() -> String {
    let mut command = Command::new("ps");
    command.args(["-e", "-o", "pid,ppid,pgid,stat,args"]);
    said(command).1
}

/// Whether a process runs. One that has ended may still be listed, until its parent asks for its status.
fn runs(process: u32) -> bool {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    status.lines().any(|line| line.starts_with("State:") && !line.contains('Z'))
}

/// A node loses its power: its slurmd, what that started, and the tasks. Then it comes back.
fn node_fails(node: &str) {
    let folder = PathBuf::from(std::env::var("GRADER_CLUSTER").expect("`run` says it"));
    let slurmd = fs::read_to_string(folder.join(format!("{node}.pid"))).expect("slurmd's number");
    kill(slurmd.trim().parse().expect("a number"));
    let here = format!("SLURMD_NODENAME={node}");
    for process in fs::read_dir("/proc").expect("/proc").flatten() {
        let Ok(number) = process.file_name().to_string_lossy().parse::<u32>() else { continue };
        let environment = fs::read(process.path().join("environ")).unwrap_or_default();
        if !environment.split(|byte| *byte == 0).any(|variable| variable == here.as_bytes()) {
            continue;
        }
        let status = fs::read_to_string(process.path().join("status")).unwrap_or_default();
        let parent = status.lines().find_map(|line| line.strip_prefix("PPid:")?.trim().parse::<u32>().ok());
        let of = |parent: &u32| fs::read_to_string(format!("/proc/{parent}/comm")).unwrap_or_default();
        if let Some(step) = parent.filter(|parent| of(parent).starts_with("slurmstepd")) {
            kill(step);
        }
        kill(number);
    }
    scontrol(&["update", &format!("nodename={node}"), "state=down", "reason=test"]);
    scontrol(&["update", &format!("nodename={node}"), "state=resume"]);
    let status = Command::new("slurmd").args(["-N", node]).status();
    assert!(status.expect("slurmd starts").success());
}

#[test]
#[ignore = "needs the cluster that grader/tests/slurm/run starts"]
fn a_real_cluster_gives_the_grades_of_this_machine_whatever_fails_meanwhile() {
    let on = OnCluster::new();
    // All of it here, and all of it there.
    let (status, text, errors) = said(on.batch("here", &[]));
    assert_eq!(status, Some(1), "{errors}");
    assert!(text.starts_with("4 graded now, 0 kept from before, 1 not graded\n"), "{text}{errors}");
    let expected = on.grades("here");
    assert!(expected.1.contains("\npasses,") && expected.1.contains("\ntorn.tar.gz,,"), "{}", expected.1);
    let Outcome::Graded(passes) = &expected.0["passes"].outcome else { panic!("{}", expected.1) };
    assert!(passes.passed, "{passes:?}");
    let Outcome::Graded(wrong) = &expected.0["wrong"].outcome else { panic!("{}", expected.1) };
    assert!(!wrong.passed);
    let (status, text, errors) = said(on.batch("there", &["--slurm"]));
    assert_eq!(status, Some(1), "{text}{errors}{}", cluster());
    assert_eq!(on.grades("there"), expected);
    let (_, text, _) = said(on.batch("there", &[]));
    assert!(text.starts_with("0 graded now, 4 kept from before, 1 not graded\n"), "{text}");

    // A node fails while it grades.
    on.hold(1);
    let mut batch = on.batch("failed", &["--slurm"]);
    let batch = batch.spawn().expect("the command starts");
    until("a task runs on node1", || on.started().iter().any(|(_, node, ..)| node == "node1"));
    let lost: BTreeSet<u32> =
        on.started().into_iter().filter(|start| start.1 == "node1").map(|start| start.3).collect();
    node_fails("node1");
    on.go_on();
    let (status, text, errors) = ended(batch);
    assert_eq!(status, Some(1), "{text}{errors}{}", cluster());
    let note = format!("note: {} of the array's tasks left no result, attempt 1 of 3", lost.len());
    assert!(errors.contains(&note), "{note}: {errors}");
    assert_eq!(on.grades("failed"), expected);
    let again = on.started();
    for (_, _, what, _) in again.iter().filter(|start| lost.contains(&start.3)) {
        assert_eq!(again.iter().filter(|start| start.2 == *what).count(), 2, "{what} was tried again, once: {again:?}");
    }

    // The batch is killed; its array goes on without it, until the batch is given again.
    on.hold(3);
    let mut batch = on.batch("killed", &["--slurm", "--jobs", "1"]).spawn().expect("the command starts");
    until("two are graded and a third is being graded", || on.started().len() == 3);
    batch.kill().expect("SIGKILL");
    batch.wait().expect("ended");
    let before = on.started();
    // The batch may have been killed before it took them.
    let results = class::files(&on.class.grades("killed").join("slurm/1/results"));
    assert_eq!(results.len(), 2, "{results:?}");
    let held = before[2].3;
    assert!(runs(held), "the old array goes on");
    let batch = on.batch("killed", &["--slurm"]).spawn().expect("the command starts");
    until("the third is being graded by another array", || on.started().iter().any(|start| start.0 != before[0].0));
    assert!(!runs(held), "the old task had ended before: {}", processes());
    let queue = said(Command::new("squeue")).1;
    assert!(!queue.contains(&format!("{}_", before[0].0)), "the old array is gone: {queue}");
    on.go_on();
    let (status, text, errors) = ended(batch);
    assert_eq!(status, Some(1), "{text}{errors}{}", cluster());
    let note = format!("note: an earlier batch left job {} in the queue: it is cancelled", before[0].0);
    assert!(errors.contains(&note), "{note}: {errors}");
    assert!(text.contains(" 2 kept from before,"), "{text}");
    assert_eq!(on.grades("killed"), expected);
    for (path, time) in results {
        assert_eq!(class::files(path.parent().expect("a folder")).get(&path), Some(&time), "{path:?} is made once");
    }
    let after = on.started();
    let begun = |what: &str| after.iter().filter(|start| start.2 == what).count();
    assert_eq!(before.iter().map(|start| begun(&start.2)).collect::<Vec<_>>(), [1, 1, 2], "{after:?}");
}
