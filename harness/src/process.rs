//! Runs another program to its end, or to ours.

use crate::warden;
use std::fmt;
use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc;
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
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::DoesNotStart(why) => f.write_str(why),
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
    let name = command.get_program().to_string_lossy().into_owned();
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let started = warden::start(command, folder);
    let mut watched = started.map_err(|e| Failure::DoesNotStart(format!("cannot start {name}: {e}")))?;
    let child = &mut watched.child;
    // Read beside the wait: a full pipe would stop the program for ever.
    let (stdout, stderr) = (reader(child.stdout.take()), reader(child.stderr.take()));
    let begin = Instant::now();
    let mut pause = Duration::from_millis(1);
    let status = loop {
        match child.try_wait() {
            Ok(Some(status)) => break status,
            Ok(None) if begin.elapsed() < timeout => thread::sleep(pause),
            Ok(None) => {
                watched.end();
                return Err(Failure::TookTooLong(timeout.as_secs()));
            }
            Err(e) => return Err(Failure::DoesNotStart(format!("cannot wait for {name}: {e}"))),
        }
        pause = (pause * 2).min(Duration::from_millis(10));
    };
    watched.end_rest();
    // Who left its group may keep the pipe open for ever. A machine that does much else takes a while for what is in it: what is said there decides.
    const REST: Duration = Duration::from_secs(60);
    let text = |pipe: mpsc::Receiver<String>| pipe.recv_timeout(REST).unwrap_or_default();
    Ok(Ended { success: status.success(), status: status.to_string(), stdout: text(stdout), stderr: text(stderr) })
}

fn reader(pipe: Option<impl Read + Send + 'static>) -> mpsc::Receiver<String> {
    const MOST: u64 = 1 << 20;
    let (send, receive) = mpsc::channel();
    thread::spawn(move || {
        let mut text = Vec::new();
        if let Some(mut pipe) = pipe {
            // What cannot be read is missing from a message only. The rest is read away, so that the program can go on.
            let _ = pipe.by_ref().take(MOST).read_to_end(&mut text);
            let _ = send.send(String::from_utf8_lossy(&text).into_owned());
            let _ = std::io::copy(&mut pipe, &mut std::io::sink());
        }
    });
    receive
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

    #[test]
    fn a_program_that_does_not_exist_is_named() {
        let Err(failure) = run(&mut Command::new("/no/such/program"), Duration::from_secs(1)) else { panic!("it ran") };
        assert!(failure.to_string().starts_with("cannot start /no/such/program: "), "{failure}");
    }
}
