//! Runs a case in a process of its own, and ends that when it takes too long.

use crate::case::{self, Case};
use crate::recording::{Outcome, Recording};
use device::About;
use harness::cuda::end;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// Beyond the kernel's own time: to start a process, open the GPU, assemble, copy.
const START: Duration = Duration::from_secs(50);

/// Runs a case with `child`, a command that takes PTX file, launch file, output file, UUID, seconds and what was typed; gives
/// the recording that it wrote. A process that does not answer in time is a hang if its kernel was running.
///
/// # Errors
/// When the process does not start, ends without a recording, or does not answer although no kernel runs: the machine's fault.
pub fn record(child: Command, case: &Case, about: &About, typed: &str, limit: Duration) -> Result<Recording, String> {
    record_within(child, case, about, typed, limit, START)
}

fn record_within(
    mut child: Command,
    case: &Case,
    about: &About,
    typed: &str,
    limit: Duration,
    start: Duration,
) -> Result<Recording, String> {
    let folder = tempfile::tempdir().map_err(|error| format!("cannot make a scratch folder: {error}"))?;
    let out = folder.path().join("recording.json");
    child.arg(&case.ptx).arg(&case.launch).arg(&out).arg(&about.uuid).arg(limit.as_secs().to_string()).arg(typed);
    let mut process =
        // It leaves when the other end of the pipe, which is held here, is closed: it does not outlive this process.
        child.stdin(Stdio::piped()).spawn().map_err(|error| format!("cannot start the process: {error}"))?;
    let mark = case::mark(&out);
    let ended = wait(&mut process, &mark, limit + start);
    match (ended, out.is_file()) {
        // It may have been stuck on its way out.
        (_, true) => case::read(&out),
        (None, false) if !mark.exists() => Err(format!(
            "its process did not answer within {} s and was ended, and no kernel was running: the host is too slow, or the driver does \
             not answer\n  try: Run it again while the machine does nothing else.",
            (limit + start).as_secs_f64()
        )),
        (None, false) => {
            let mut recording = case::blank(about, typed);
            recording.outcome = Outcome::Hang;
            recording.message = Some("its process did not answer and was ended".to_string());
            Ok(recording)
        }
        (Some(status), false) => Err(format!("its process ended without a recording ({status}){}", hint(&out))),
    }
}

fn hint(out: &Path) -> &'static str {
    if out.exists() { "; the recording is no file" } else { "; what it said stands above" }
}

/// How the process ended, or `None` after it had to be. The time begins anew when its kernel does.
fn wait(process: &mut Child, mark: &Path, limit: Duration) -> Option<std::process::ExitStatus> {
    let (mut begin, mut launched) = (Instant::now(), false);
    while begin.elapsed() < limit {
        if !launched && mark.exists() {
            (begin, launched) = (Instant::now(), true);
        }
        match process.try_wait() {
            Ok(Some(status)) => return Some(status),
            Ok(None) => thread::sleep(Duration::from_millis(10)),
            Err(_) => break,
        }
    }
    end(process, Duration::ZERO);
    None
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use std::path::PathBuf;

    fn about() -> About {
        About { name: "NVIDIA H200".into(), uuid: "GPU-7".into(), driver: Some("580.82.07".into()), ..About::default() }
    }

    /// A fake of the process: a script, which is given what the real one is given.
    fn record(script: &str) -> Result<Recording, String> {
        let case = Case { name: "c".into(), ptx: PathBuf::from("c.ptx"), launch: PathBuf::from("c.json") };
        let mut child = Command::new("sh");
        child.args(["-c", script, "child"]);
        let limit = Duration::from_millis(300);
        record_within(child, &case, &about(), "silicon record cases", limit, Duration::from_millis(200))
    }

    #[test]
    fn a_process_that_hangs_is_ended_and_told() {
        let begin = Instant::now();
        let recording = record(": > \"${3%json}running\"; exec sleep 60").unwrap();
        assert!(begin.elapsed() < Duration::from_secs(10));
        assert_eq!((recording.outcome, recording.uuid.as_str()), (Outcome::Hang, "GPU-7"));
    }

    #[test]
    fn a_process_whose_kernel_does_not_run_is_no_hang() {
        for script in ["exec sleep 60", ": > \"${3%json}running\"; rm \"${3%json}running\"; exec sleep 60", "cat"] {
            let error = record(script).unwrap_err();
            assert!(
                error.starts_with("its process did not answer within 0.5 s and was ended, and no kernel"),
                "{error}"
            );
        }
    }

    #[test]
    fn what_the_process_wrote_counts_even_if_it_does_not_end() {
        let written = Recording { outcome: Outcome::Hang, ..case::blank(&about(), "silicon record cases") };
        let text = serde_json::to_string(&written).unwrap();
        let script = format!("printf '%s' '{text}' > \"$3\"; exec sleep 60");
        assert_eq!(record(&script), Ok(written));
    }

    #[test]
    fn a_process_that_breaks_off_is_an_error() {
        let error = record("[ \"$1 $2 $4\" = 'c.ptx c.json GPU-7' ] && exit 3").unwrap_err();
        assert_eq!(error, "its process ended without a recording (exit status: 3); what it said stands above");
    }
}
