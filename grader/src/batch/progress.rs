//! How far a batch is: a bar on a terminal; elsewhere, as in a log, a plain line now and then.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};
use std::fmt::Write;
use std::io::IsTerminal;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
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
    /// How many of those that are done had their results before: they say nothing of how long one takes.
    kept: Arc<AtomicU64>,
    /// Says the plain lines, until the other end is gone.
    lines: Option<(Sender<()>, JoinHandle<()>)>,
}

impl Progress {
    /// Of so many hand-ins, on stderr.
    pub(super) fn of(hand_ins: usize) -> Result<Progress, String> {
        if !std::io::stderr().is_terminal() {
            return Ok(Progress::plain(hand_ins, FIRST, |line| eprintln!("{line}")));
        }
        let progress = Progress::bar(hand_ins, ProgressDrawTarget::stderr())?;
        progress.bar.enable_steady_tick(Duration::from_secs(1));
        Ok(progress)
    }

    /// As a bar.
    fn bar(hand_ins: usize, target: ProgressDrawTarget) -> Result<Progress, String> {
        let bar = ProgressBar::with_draw_target(Some(hand_ins as u64), target);
        let kept = Arc::new(AtomicU64::new(0));
        let of_kept = kept.clone();
        let rest = move |state: &ProgressState, text: &mut dyn Write| {
            let (done, of) = (state.pos(), state.len().unwrap_or_default());
            let left = left(done, of_kept.load(Ordering::Relaxed), of, state.elapsed());
            let _ = left.map_or(Ok(()), |left| write!(text, ", about {} left", fine(left)));
        };
        let style = ProgressStyle::with_template("{bar:30} {pos} of {len} hand-ins{rest}");
        bar.set_style(style.map_err(|error| error.to_string())?.with_key("rest", rest));
        Ok(Progress { bar, kept, lines: None })
    }

    /// One of those that are done had its result before.
    pub(super) fn kept(&self) {
        self.kept.fetch_add(1, Ordering::Relaxed);
    }

    /// In plain lines.
    fn plain(hand_ins: usize, first: Duration, say: impl Fn(&str) + Send + 'static) -> Progress {
        let bar = ProgressBar::with_draw_target(Some(hand_ins as u64), ProgressDrawTarget::hidden());
        let (ended, wait) = mpsc::channel();
        let kept = Arc::new(AtomicU64::new(0));
        let (begin, count, of_kept) = (Instant::now(), bar.clone(), kept.clone());
        let lines = thread::spawn(move || {
            let mut pause = first;
            while wait.recv_timeout(pause) == Err(RecvTimeoutError::Timeout) {
                let kept = of_kept.load(Ordering::Relaxed);
                say(&line(count.position(), kept, hand_ins as u64, begin.elapsed()));
                pause = (pause * 2).min(LONGEST);
            }
        });
        Progress { bar, kept, lines: Some((ended, lines)) }
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

/// How long the rest may take; `None` while nothing was graded from which one could tell, and at the end.
fn left(done: u64, kept: u64, of: u64, since: Duration) -> Option<Duration> {
    let (graded, rest) = (done.saturating_sub(kept), of.saturating_sub(done));
    (graded > 0 && rest > 0).then(|| since.mul_f64(rest as f64 / graded as f64))
}

fn minutes(time: Duration) -> String {
    format!("{} min", (time.as_secs_f64() / 60.0).ceil().max(1.0))
}

/// For what changes each second.
fn fine(time: Duration) -> String {
    if time < Duration::from_secs(60) { format!("{} s", time.as_secs() + 1) } else { minutes(time) }
}

fn line(done: u64, kept: u64, of: u64, since: Duration) -> String {
    let left = left(done, kept, of, since).map(|left| format!(", about {} left", minutes(left)));
    format!("{done} of {of} hand-ins after {}{}", minutes(since), left.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use indicatif::TermLike;
    use std::io;
    use std::sync::Mutex;

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
        assert_eq!(line(0, 0, 8, Duration::from_secs(30)), "0 of 8 hand-ins after 1 min");
        assert_eq!(line(2, 0, 8, Duration::from_secs(600)), "2 of 8 hand-ins after 10 min, about 30 min left");
        assert_eq!(line(4, 4, 8, Duration::from_secs(1)), "4 of 8 hand-ins after 1 min", "all of them were there");
        assert_eq!(line(5, 4, 8, Duration::from_secs(600)), "5 of 8 hand-ins after 10 min, about 30 min left");
    }

    /// What is written to a terminal.
    #[derive(Clone, Debug, Default)]
    struct Terminal(Arc<Mutex<String>>);

    impl TermLike for Terminal {
        fn width(&self) -> u16 {
            100
        }
        fn move_cursor_up(&self, _: usize) -> io::Result<()> {
            Ok(())
        }
        fn move_cursor_down(&self, _: usize) -> io::Result<()> {
            Ok(())
        }
        fn move_cursor_right(&self, _: usize) -> io::Result<()> {
            Ok(())
        }
        fn move_cursor_left(&self, _: usize) -> io::Result<()> {
            Ok(())
        }
        fn write_line(&self, text: &str) -> io::Result<()> {
            self.write_str(text)
        }
        fn write_str(&self, text: &str) -> io::Result<()> {
            self.0.lock().expect("whole").push_str(text);
            Ok(())
        }
        fn clear_line(&self) -> io::Result<()> {
            Ok(())
        }
        fn flush(&self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_bar_says_no_time_before_one_is_graded() {
        let shown = |kept: u64, graded: u64| {
            let terminal = Terminal::default();
            let target = ProgressDrawTarget::term_like(Box::new(terminal.clone()));
            let progress = Progress::bar(8, target).expect("a bar");
            (0..kept).for_each(|_| progress.kept());
            progress.inc(kept + graded);
            progress.tick();
            let shown = terminal.0.lock().expect("whole").clone();
            shown.rsplit_once("of 8").map(|(_, rest)| rest.trim().to_string()).expect("a bar")
        };
        assert_eq!(shown(0, 0), "hand-ins");
        assert_eq!(shown(3, 0), "hand-ins", "what was kept took no time");
        assert_eq!(shown(3, 2), "hand-ins, about 1 s left");
        assert_eq!(shown(0, 8), "hand-ins");
        assert_eq!(fine(Duration::from_secs(59)), "60 s");
        assert_eq!(fine(Duration::from_secs(61)), "2 min");
    }
}
