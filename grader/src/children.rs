//! Programs that the grader starts: what they write, how long they take, and that none outlives it.

use harness::streams::{REST, Streams};
use harness::warden::{self, Watched};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// What is read of a program's output.
const MAX_OUTPUT: u64 = 16 << 20;

/// A program that has ended.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Ended {
    /// It took too long, and was ended: what was used up.
    pub stopped: Option<Stopped>,
    /// Its exit status, if it ended by itself.
    pub code: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// CPU time that it had used when it was last looked at; only counted where it is limited.
    pub cpu_seconds: f64,
    /// Time on the clock.
    pub seconds: f64,
    pub stdout: String,
    pub stderr: String,
}

/// Why a program was ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stopped {
    Clock,
    Cpu,
}

/// What a program may take.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Within {
    /// Time on the clock.
    pub clock: Duration,
    /// CPU time, with that of the programs that it waited for; where the system does not say it, the clock alone counts.
    pub cpu: Option<Duration>,
    /// Bytes of its output that are kept, of each stream.
    pub output: u64,
}

/// Runs a program and what it starts to their end, or to ours.
pub(crate) fn run(command: &mut Command, limit: Duration) -> Result<Ended, String> {
    run_within(command, &Within { clock: limit, cpu: None, output: MAX_OUTPUT })
}

/// The same, within more limits.
pub(crate) fn run_within(command: &mut Command, within: &Within) -> Result<Ended, String> {
    run_and_rest(command, within, REST)
}

/// The same; once it has ended, what it wrote is read so long. Where it was ended, that says why, whatever it wrote; of one that ended itself a part
/// of its words may say something else than the whole.
fn run_and_rest(command: &mut Command, within: &Within, rest: Duration) -> Result<Ended, String> {
    let name = command.get_program().to_string_lossy().into_owned();
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    // When time is up, what the program started must end too.
    let mut watched = warden::start(command, None).map_err(|error| format!("cannot start {name}: {error}"))?;
    let streams = Streams::of(&mut watched.child, [within.output; 2])
        .map_err(|error| format!("cannot read what is written by {name}: {error}"))?;
    let mut ended = wait(&mut watched, within).map_err(|error| format!("cannot wait for {name}: {error}"))?;
    watched.end_rest().map_err(|error| format!("cannot end what was started by {name}: {error}"))?;
    let written = match streams.rest_within(rest) {
        Ok(written) => written,
        Err(cut) if ended.stopped.is_some() => cut.read,
        Err(cut) => return Err(format!("{name}: {}", cut.why)),
    };
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    (ended.stdout, ended.stderr) = (text(written.stdout), text(written.stderr));
    Ok(ended)
}

/// Waits for its end, or ends it.
fn wait(watched: &mut Watched, within: &Within) -> std::io::Result<Ended> {
    const LONGEST_PAUSE: Duration = Duration::from_millis(20);
    let begin = Instant::now();
    let (mut pause, mut cpu) = (Duration::from_millis(1), Duration::ZERO);
    loop {
        let status = watched.child.try_wait()?;
        if within.cpu.is_some() && status.is_none() {
            cpu = cpu_time(watched.child.id()).unwrap_or(cpu);
        }
        let ended =
            Ended { cpu_seconds: cpu.as_secs_f64(), seconds: begin.elapsed().as_secs_f64(), ..Ended::default() };
        if let Some(status) = status {
            #[cfg(unix)]
            let signal = std::os::unix::process::ExitStatusExt::signal(&status);
            #[cfg(not(unix))]
            let signal = None;
            return Ok(Ended { code: status.code(), signal, ..ended });
        }
        let stopped = if within.cpu.is_some_and(|most| cpu >= most) {
            Some(Stopped::Cpu)
        } else {
            (begin.elapsed() >= within.clock).then_some(Stopped::Clock)
        };
        if stopped.is_some() {
            watched.end()?;
            return Ok(Ended { stopped, ..ended });
        }
        thread::sleep(pause);
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

/// The CPU time of a process, and of those that it has waited for.
#[cfg(target_os = "linux")]
pub(crate) fn cpu_time(process: u32) -> Option<Duration> {
    // The kernel tells it in hundredths of a second, whatever it counts in.
    const TICK: Duration = Duration::from_millis(10);
    let text = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The name, in brackets, may hold anything. Of what follows, the 12th to the 15th are ticks.
    let rest = text.get(text.rfind(')')? + 1..)?;
    let ticks: u32 = rest.split_whitespace().skip(11).take(4).filter_map(|ticks| ticks.parse::<u32>().ok()).sum();
    Some(TICK * ticks)
}

#[cfg(not(target_os = "linux"))]
fn cpu_time(_: u32) -> Option<Duration> {
    None
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[cfg(target_os = "linux")]
    #[test]
    fn what_sleeps_takes_no_cpu_time_and_what_turns_does() {
        let run = |script: &str, clock: u64, cpu: u64| {
            let within =
                Within { clock: Duration::from_secs(clock), cpu: Some(Duration::from_secs(cpu)), output: 1 << 20 };
            run_within(Command::new("sh").args(["-c", script]), &within).unwrap()
        };
        let slept = run("sleep 2; echo done", 60, 1);
        assert_eq!((slept.stopped, slept.code, slept.stdout.as_str()), (None, Some(0), "done\n"));
        let turned = run("while :; do :; done", 60, 1);
        assert_eq!(turned.stopped, Some(Stopped::Cpu), "{turned:?}");
        let left = run("sleep 60 & echo done", 60, 5);
        assert!(left.stdout == "done\n" && left.seconds < 20.0, "{left:?}");
        let clock = run("sleep 60", 1, 5);
        assert!(clock.stopped == Some(Stopped::Clock) && clock.seconds < 20.0, "{clock:?}");
    }

    /// What left the group is not ended with it, and holds the streams: that is told, and is no silence of the program.
    #[cfg(target_os = "linux")]
    #[test]
    fn what_cannot_be_read_to_its_end_is_no_empty_answer() {
        let run = |script: &str| {
            let within = Within { clock: Duration::from_secs(2), cpu: None, output: 1 << 20 };
            run_and_rest(Command::new("sh").args(["-c", script]), &within, Duration::from_secs(1))
        };
        let why = run("setsid sleep 5 & sleep 0.2; echo done").expect_err("there may be more");
        assert!(why.starts_with("sh: what it wrote could not be read to its end within 1 s"), "{why}");
        // One that took too long did, whatever it wrote.
        let late = run("setsid sleep 8 & echo begun; sleep 60").expect("it took too long");
        assert_eq!((late.stopped, late.stdout.as_str()), (Some(Stopped::Clock), "begun\n"));
    }
}
