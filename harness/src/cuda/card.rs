//! A GPU, used from outside: each batch of work runs in a process of its own, which may be lost with a kernel.

use super::answer::{self, ARGUMENT, Request};
use super::work::{Check, Reply, Work};
use crate::problem::Problem;
use device::About;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// Something that does work as a GPU does.
pub trait Runner: fmt::Debug + Send + Sync {
    /// What it is called: `NVIDIA B200 (10.0)`.
    fn name(&self) -> String;

    /// Does the work in order, up to the first piece that fails, which is the last of the answers. Each batch begins afresh.
    ///
    /// # Errors
    /// Why there is no answer.
    fn run(&self, work: &[Work]) -> Result<Vec<Reply>, String>;
}

/// A GPU of this machine.
#[derive(Clone, Debug)]
pub struct Card {
    about: About,
    /// The program that works on it. `None`: this one.
    program: Option<PathBuf>,
    patience: Duration,
}

/// What a process may take from one answer to the next: it opens the GPU, assembles, checks on the CPU. The kernel's own time is
/// bounded there, that of a benchmark by [`crate::bench::BATCH`]. Matrices go on top: [`making`].
const PATIENCE: Duration = Duration::from_secs(180);

/// What making the matrices of a piece of work may take, and looking at them: a second for each 10 million elements, half of what
/// one core draws of normal numbers in that time (24 million, one of an Intel Xeon).
fn making(work: &Work) -> Duration {
    const A_SECOND: u64 = 10_000_000;
    let Problem { m, n, k, .. } = match work {
        Work::Check(check) | Work::Tell(check) => check.problem,
        Work::Time(time) => time.problem,
        Work::Bench(bench) => bench.problem,
    };
    let [m, n, k] = [m, n, k].map(u64::from);
    Duration::from_secs((m * k + n * k + m * n) / A_SECOND)
}

impl Card {
    /// The GPU, worked on by this program, whose main asks [`super::asked`] first.
    pub fn new(about: About) -> Card {
        Card { about, program: None, patience: PATIENCE }
    }

    /// Worked on by another program, whose main does the same.
    pub fn program(self, program: impl Into<PathBuf>) -> Card {
        Card { program: Some(program.into()), ..self }
    }

    /// What it is.
    pub fn about(&self) -> &About {
        &self.about
    }
}

impl Runner for Card {
    fn name(&self) -> String {
        self.about.title()
    }

    fn run(&self, work: &[Work]) -> Result<Vec<Reply>, String> {
        let folder = tempfile::tempdir().map_err(|error| format!("cannot make a scratch folder: {error}"))?;
        let folder = folder.path();
        let failed = |error: &dyn fmt::Display| format!("cannot write the request: {error}");
        let request = Request { uuid: self.about.uuid.clone(), work: work.to_vec() };
        let text = serde_json::to_string(&request).map_err(|error| failed(&error))?;
        fs::write(answer::request(folder), text).map_err(|error| failed(&error))?;
        let said = folder.join("said.txt");
        let log = fs::File::create(&said).map_err(|error| failed(&error))?;
        let program = match &self.program {
            Some(program) => program.clone(),
            None => std::env::current_exe().map_err(|error| format!("cannot tell where this program lies: {error}"))?,
        };
        let mut command = Command::new(&program);
        // Its input is a pipe whose other end is held here: it leaves when that is closed, so it does not outlive this process.
        // A module is on the GPU when it is loaded, not when it is first launched: that would be timed.
        command.env("CUDA_MODULE_LOADING", "EAGER");
        command.arg(ARGUMENT).arg(folder).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(log);
        let mut process = command.spawn().map_err(|error| format!("cannot start {}: {error}", program.display()))?;
        let mut replies = Vec::new();
        let ended = self.wait(&mut process, folder, work, &mut replies);
        let complete = replies.len() == work.len() || replies.last().is_some_and(Reply::ends_a_batch);
        if !complete {
            let said = fs::read_to_string(&said).unwrap_or_default();
            let said = said.trim();
            let said = if said.is_empty() { String::new() } else { format!("; it said: {said}") };
            replies.push(match ended {
                // It says so itself: no kernel is to blame.
                Some(status) if status.code() == Some(answer::CANNOT) => {
                    return Err(format!("nothing could be run there{said}"));
                }
                Some(status) => {
                    Reply::Failed { why: format!("the process that works on the GPU broke off ({status}){said}") }
                }
                None => {
                    let seconds = self.patience_for(work, replies.len()).as_secs_f64();
                    let why =
                        format!("the process that works on the GPU did not answer within {seconds} s and was ended");
                    let check = matches!(work.get(replies.len()), Some(Work::Check(_)));
                    if check && !answer::mark(folder).exists() {
                        // The host was too slow, or the driver does not answer.
                        Reply::Unable { why: format!("{why}; no kernel was running there") }
                    } else {
                        Reply::Hung { why }
                    }
                }
            });
        }
        Ok(replies)
    }
}

/// What the threads of a kernel wait for that hung, a line each: it runs once more. Empty if nothing is known.
pub(crate) fn waiting(card: &dyn Runner, check: &Check) -> String {
    match card.run(&[Work::Tell(check.clone())]).ok().and_then(|mut replies| replies.pop()) {
        Some(Reply::Told(text)) if !text.is_empty() => {
            format!("run once more, its threads stand at these waits:\n{text}")
        }
        _ => String::new(),
    }
}

impl Card {
    /// How long the answer to this piece of work is waited for.
    fn patience_for(&self, work: &[Work], index: usize) -> Duration {
        self.patience + work.get(index).map_or(Duration::ZERO, making)
    }

    /// Takes the answers as they come, until the process ends (its status), has answered all, or has to be ended.
    fn wait(
        &self,
        process: &mut Child,
        folder: &Path,
        work: &[Work],
        replies: &mut Vec<Reply>,
    ) -> Option<std::process::ExitStatus> {
        let mut last = Instant::now();
        loop {
            // Asked before the answers are read: what was written by its end is seen.
            let status = process.try_wait().ok().flatten();
            while let Some(reply) = (replies.len() < work.len()).then(|| read(folder, replies.len())).flatten() {
                last = Instant::now();
                let ends = reply.ends_a_batch();
                replies.push(reply);
                if ends {
                    end(process, GRACE);
                    return status;
                }
            }
            if status.is_some() {
                return status;
            }
            if last.elapsed() > self.patience_for(work, replies.len()) {
                end(process, GRACE);
                return None;
            }
            thread::sleep(Duration::from_millis(5));
        }
    }
}

fn read(folder: &Path, index: usize) -> Option<Reply> {
    let text = fs::read_to_string(answer::file(folder, index)).ok()?;
    Some(
        serde_json::from_str(&text)
            .unwrap_or_else(|error| Reply::Failed { why: format!("its answer is none: {error}") }),
    )
}

/// Time for a process to go by itself: the driver has to clean up.
const GRACE: Duration = Duration::from_secs(2);

/// Ends a process that works on a GPU, if it has not ended by itself within `grace`. The system may hold one whose GPU does not
/// answer: it is not waited for for ever.
pub fn end(process: &mut Child, grace: Duration) {
    let begin = Instant::now();
    let mut killed = false;
    while begin.elapsed() < Duration::from_secs(5) && matches!(process.try_wait(), Ok(None)) {
        if !killed && begin.elapsed() >= grace {
            killed = true;
            let _ = process.kill();
        }
        thread::sleep(Duration::from_millis(5));
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use crate::cuda::work::{Check, Checked};
    use crate::inputs::InputKind;
    use crate::source::Built;
    use std::os::unix::fs::PermissionsExt;

    fn about() -> About {
        About { name: "NVIDIA B200".into(), uuid: "GPU-7".into(), ..About::default() }
    }

    fn work() -> Work {
        let built = Built { name: "kernel".into(), ..Built::default() };
        Work::Check(Check { built, problem: Problem::f16(8, 8, 8), kind: InputKind::OneHot, seed: 1 })
    }

    /// A process that is a script: `$2` is the folder, `RIGHT` the text of an answer.
    fn run(script: &str, count: usize) -> (Vec<Reply>, Duration) {
        let (replies, took) = try_run(script, count);
        (replies.unwrap(), took)
    }

    fn try_run(script: &str, count: usize) -> (Result<Vec<Reply>, String>, Duration) {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("program");
        let right = serde_json::to_string(&right()).unwrap();
        let script =
            format!("#!/bin/sh\nRIGHT='{right}'\n[ \"$1\" = --on-gpu ] || exit 9\ncd \"$2\" || exit 9\n{script}\n");
        fs::write(&program, script).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        let card = Card { about: about(), program: Some(program), patience: Duration::from_millis(700) };
        let begin = Instant::now();
        let work: Vec<Work> = (0..count).map(|_| work()).collect();
        (card.run(&work), begin.elapsed())
    }

    fn right() -> Reply {
        Reply::Checked(Checked { against: "FP64".into(), wrong: (0, 64), ..Checked::default() })
    }

    #[test]
    fn answers_are_taken_in_order() {
        let script = "grep -q GPU-7 request.json || exit 8\necho \"$RIGHT\" > reply0.json; echo \"$RIGHT\" > part; mv part reply1.json";
        assert_eq!(run(script, 2).0, [right(), right()]);
    }

    /// 65536³: 13 thousand million elements of A, B and D.
    #[test]
    fn large_matrices_are_waited_for() {
        let bench = |n| {
            Work::Bench(crate::cuda::work::Bench { built: Built::default(), problem: Problem::f16(n, n, n), rounds: 1 })
        };
        assert_eq!([1024, 16384, 65536].map(|n| making(&bench(n)).as_secs()), [0, 80, 1288]);
    }

    /// A hang that the process itself could not tell: it ends, and what was answered before it counts.
    #[test]
    fn a_process_that_hangs_is_ended_and_told() {
        let (replies, took) = run("echo \"$RIGHT\" > part; mv part reply0.json; : > running; exec sleep 60", 2);
        assert!(took < Duration::from_secs(20), "{took:?}");
        let why = "the process that works on the GPU did not answer within 0.7 s and was ended".to_string();
        assert_eq!(replies, [right(), Reply::Hung { why }]);
    }

    /// One that does not answer although no kernel runs: the kernel is not to blame.
    #[test]
    fn a_process_that_is_slow_is_no_kernel_that_hangs() {
        let (replies, _) =
            run("echo \"$RIGHT\" > part; mv part reply0.json; : > running; rm running; exec sleep 60", 2);
        let why =
            "the process that works on the GPU did not answer within 0.7 s and was ended; no kernel was running there";
        assert_eq!(replies, [right(), Reply::Unable { why: why.to_string() }]);
    }

    /// What it reads comes to no end while this process waits for it.
    #[test]
    fn a_process_can_tell_that_its_parent_lives() {
        let (replies, _) = run("cat; echo \"$RIGHT\" > part; mv part reply0.json", 1);
        assert!(matches!(replies.as_slice(), [Reply::Unable { .. }]), "{replies:?}");
    }

    #[test]
    fn a_process_that_breaks_off_says_why() {
        let error = try_run("echo 'there is no GPU GPU-7' >&2; exit 1", 1).0.unwrap_err();
        assert_eq!(error, "nothing could be run there; it said: there is no GPU GPU-7");
        let (replies, _) = run("echo 'Segmentation fault' >&2; exit 139", 1);
        let why = "the process that works on the GPU broke off (exit status: 139); it said: Segmentation fault";
        assert_eq!(replies, [Reply::Failed { why: why.to_string() }]);
    }

    /// A kernel that hung is answered, and nothing behind it is waited for, though the process cannot end.
    #[test]
    fn nothing_is_waited_for_behind_a_hang() {
        let hung = serde_json::to_string(&Reply::Hung { why: "it did not end".into() }).unwrap();
        let (replies, took) = run(&format!("echo '{hung}' > part; mv part reply0.json; exec sleep 60"), 3);
        assert_eq!(replies, [Reply::Hung { why: "it did not end".into() }]);
        assert!(took < Duration::from_secs(20), "{took:?}");
    }
}
