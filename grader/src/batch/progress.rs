//! How far a batch is: a bar on a terminal; elsewhere, as in a log, a plain line now and then.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::IsTerminal;
use std::ops::Deref;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Before the first plain line, and between two of them at first: each pause is twice as long as the one before.
const FIRST: Duration = Duration::from_secs(30);
/// No pause is longer.
const LONGEST: Duration = Duration::from_secs(600);

/// How far it is.
pub(super) struct Progress {
    bar: ProgressBar,
    /// Says the plain lines, until the other end is gone.
    lines: Option<(Sender<()>, JoinHandle<()>)>,
}

impl Progress {
    /// Of so many hand-ins, on stderr.
    pub(super) fn of(hand_ins: usize) -> Result<Progress, String> {
        if !std::io::stderr().is_terminal() {
            return Ok(Progress::plain(hand_ins, FIRST, |line| eprintln!("{line}")));
        }
        let bar = ProgressBar::with_draw_target(Some(hand_ins as u64), ProgressDrawTarget::stderr());
        let style = ProgressStyle::with_template("{bar:30} {pos} of {len} hand-ins, {eta} left");
        bar.set_style(style.map_err(|error| error.to_string())?);
        bar.enable_steady_tick(Duration::from_secs(1));
        Ok(Progress { bar, lines: None })
    }

    /// In plain lines.
    fn plain(hand_ins: usize, first: Duration, say: impl Fn(&str) + Send + 'static) -> Progress {
        let bar = ProgressBar::with_draw_target(Some(hand_ins as u64), ProgressDrawTarget::hidden());
        let (ended, wait) = mpsc::channel();
        let (begin, count) = (Instant::now(), bar.clone());
        let lines = thread::spawn(move || {
            let mut pause = first;
            while wait.recv_timeout(pause) == Err(RecvTimeoutError::Timeout) {
                say(&line(count.position(), hand_ins as u64, begin.elapsed()));
                pause = (pause * 2).min(LONGEST);
            }
        });
        Progress { bar, lines: Some((ended, lines)) }
    }
}

impl Deref for Progress {
    type Target = ProgressBar;

    fn deref(&self) -> &ProgressBar {
        &self.bar
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
        if let Some((ended, lines)) = self.lines.take() {
            drop(ended);
            // It waits for nothing else.
            let _ = lines.join();
        }
    }
}

fn line(done: u64, of: u64, since: Duration) -> String {
    let minutes = |time: Duration| format!("{} min", (time.as_secs_f64() / 60.0).ceil().max(1.0));
    let left = match (done, of.saturating_sub(done)) {
        (0, _) | (_, 0) => String::new(),
        (done, left) => format!(", about {} left", minutes(since.mul_f64(left as f64 / done as f64))),
    };
    format!("{done} of {of} hand-ins after {}{left}", minutes(since))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_terminal_there_is_a_line_now_and_then_and_it_ends_with_the_batch() {
        let (send, lines) = mpsc::channel();
        let progress = Progress::plain(8, Duration::from_millis(5), move |line| {
            let _ = send.send(line.to_string());
        });
        progress.inc(2);
        let second = lines.iter().nth(1).expect("more than one");
        assert!(second.starts_with("2 of 8 hand-ins after 1 min, about 1 min left"), "{second}");
        drop(progress);
        assert!(lines.iter().count() < 20, "pauses get longer, and nothing is said afterwards");
        assert_eq!(line(0, 8, Duration::from_secs(30)), "0 of 8 hand-ins after 1 min");
        assert_eq!(line(2, 8, Duration::from_secs(600)), "2 of 8 hand-ins after 10 min, about 30 min left");
    }
}
