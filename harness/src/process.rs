//! Runs another program to its end, or to ours.

use crate::streams::{REST, Streams};
use crate::warden;
use std::fmt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// A program that came to its end.
pub(crate) struct Ended {
    pub(crate) success: bool,
    /// Exit code or signal, as the system names it.
    pub(crate) status: String,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// The last of what a program wrote to stderr, as a continuation of a sentence.
pub(crate) fn last_lines(stderr: &str) -> String {
    const LINES: usize = 20;
    let lines: Vec<&str> = stderr.trim().lines().collect();
    let tail = &lines[lines.len().saturating_sub(LINES)..];
    if tail.is_empty() { String::new() } else { format!("; it said:\n{}", tail.join("\n")) }
}

/// A program that did not.
pub(crate) enum Failure {
    DoesNotStart(String),
    /// After so many seconds.
    TookTooLong(u64),
    /// Its end, or what it wrote, is not known, for this: something here failed.
    Unknown(String),
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::DoesNotStart(why) | Failure::Unknown(why) => f.write_str(why),
            Failure::TookTooLong(seconds) => write!(f, "it took longer than {seconds} s and was ended"),
        }
    }
}

/// Runs a program without input; what it writes is kept, up to 1 MiB each. It ends with this process, by whatever way that ends.
pub(crate) fn run(command: &mut Command, timeout: Duration) -> Result<Ended, Failure> {
    run_in(command, None, timeout)
}

/// The same, with a scratch folder that is removed when this process is killed: else whoever made it does.
pub(crate) fn run_in(command: &mut Command, folder: Option<&Path>, timeout: Duration) -> Result<Ended, Failure> {
    run_and_rest(command, folder, timeout, REST)
}

/// The same; once it has ended, what it wrote is read so long.
fn run_and_rest(
    command: &mut Command,
    folder: Option<&Path>,
    timeout: Duration,
    rest: Duration,
) -> Result<Ended, Failure> {
    const MOST: u64 = 1 << 20;
    let name = command.get_program().to_string_lossy().into_owned();
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let started = warden::start(command, folder);
    let mut watched = started.map_err(|e| Failure::DoesNotStart(format!("cannot start {name}: {e}")))?;
    let unknown = |what: &str, error: &dyn fmt::Display| Failure::Unknown(format!("cannot {what} {name}: {error}"));
    let streams = Streams::of(&mut watched.child, [MOST; 2]).map_err(|e| unknown("read what is written by", &e))?;
    let begin = Instant::now();
    let mut pause = Duration::from_millis(1);
    let status = loop {
        match watched.child.try_wait() {
            Ok(Some(status)) => break status,
            Ok(None) if begin.elapsed() < timeout => thread::sleep(pause),
            Ok(None) => {
                watched.end().map_err(|e| unknown("end", &e))?;
                return Err(Failure::TookTooLong(timeout.as_secs()));
            }
            Err(e) => return Err(unknown("wait for", &e)),
        }
        pause = (pause * 2).min(Duration::from_millis(10));
    };
    watched.end_rest().map_err(|e| unknown("end what was started by", &e))?;
    // What is said decides: a part of it may say something else.
    let written = streams.rest_within(rest).map_err(|cut| Failure::Unknown(format!("{name}: {}", cut.why)))?;
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    Ok(Ended {
        success: status.success(),
        status: status.to_string(),
        stdout: text(written.stdout),
        stderr: text(written.stderr),
    })
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_does_not_end_is_ended() {
        let begin = Instant::now();
        let result = run(Command::new("sleep").arg("60"), Duration::from_millis(100));
        assert!(matches!(result, Err(Failure::TookTooLong(_))));
        assert!(begin.elapsed() < Duration::from_secs(10));
    }

    #[test]
    fn a_program_that_writes_more_than_a_pipe_holds_ends() {
        let script = "head -c 3000000 /dev/zero; echo why >&2; exit 3";
        let Ok(ended) = run(Command::new("sh").args(["-c", script]), Duration::from_secs(20)) else {
            panic!("it was ended");
        };
        assert_eq!(
            (ended.success, ended.stdout.len(), last_lines(&ended.stderr).as_str()),
            (false, 1 << 20, "; it said:\nwhy")
        );
    }

    #[test]
    fn what_a_program_leaves_keeps_nothing_of_what_it_said() {
        let begin = Instant::now();
        let Ok(ended) =
            run(Command::new("sh").args(["-c", "sleep 60 & echo out; echo why >&2"]), Duration::from_secs(30))
        else {
            panic!("it was ended");
        };
        assert_eq!((ended.stdout.as_str(), ended.stderr.as_str()), ("out\n", "why\n"));
        assert!(begin.elapsed() < Duration::from_secs(20), "{:?}", begin.elapsed());
    }

    /// What left the group is not ended with it, and holds the streams: that is told, and is no silence of the program.
    #[cfg(target_os = "linux")]
    #[test]
    fn what_cannot_be_read_to_its_end_is_no_empty_answer() {
        let mut command = Command::new("sh");
        command.args(["-c", "setsid sleep 5 & sleep 0.2; echo out"]);
        let ended = run_and_rest(&mut command, None, Duration::from_secs(30), Duration::from_secs(1));
        let Err(Failure::Unknown(why)) = ended else { panic!("{:?}", ended.map(|ended| ended.stdout).ok()) };
        assert!(why.starts_with("sh: what it wrote could not be read to its end within 1 s"), "{why}");
    }

    #[test]
    fn a_program_that_does_not_exist_is_named() {
        let Err(failure) = run(&mut Command::new("/no/such/program"), Duration::from_secs(1)) else { panic!("it ran") };
        assert!(failure.to_string().starts_with("cannot start /no/such/program: "), "{failure}");
    }
}
