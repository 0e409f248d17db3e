//! How far a batch is: a bar on a terminal; elsewhere, as in a log, a plain line now and then.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};
use std::fmt::Write;
use std::io::IsTerminal;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Before the first plain line, and between two of them at first: each pause is twice as long as the one before.
const FIRST: Duration = Duration::from_secs(30);
/// No pause is longer.
const LONGEST: Duration = Duration::from_secs(600);

/// How far it is.
pub(super) struct Progress {
    bar: ProgressBar,
    seen: Arc<Seen>,
    /// Says the plain lines, until the other end is gone.
    lines: Option<(Sender<()>, JoinHandle<()>)>,
}

/// What tells how long the rest takes.
#[derive(Default)]
struct Seen {
    /// How many of those that are done had their results before: they say nothing of how long one takes.
    kept: AtomicU64,
    /// When the first began to be graded: what is compiled before that is compiled once.
    began: OnceLock<Instant>,
    /// When one was graded last.
    ended: Mutex<Option<Instant>>,
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
        let seen = Arc::new(Seen::default());
        let of_all = seen.clone();
        let rest = move |state: &ProgressState, text: &mut dyn Write| {
            let rest = of_all.rest(state.pos(), state.len().unwrap_or_default());
            let _ = write!(text, "{}", rest.words());
        };
        let style = ProgressStyle::with_template("{bar:30} {pos} of {len} hand-ins{rest}");
        bar.set_style(style.map_err(|error| error.to_string())?.with_key("rest", rest));
        Ok(Progress { bar, seen, lines: None })
    }

    /// One of them is going to be graded, and waits for nothing else.
    pub(super) fn began(&self) {
        self.seen.began.get_or_init(Instant::now);
    }

    /// So many were graded.
    pub(super) fn graded(&self, count: usize) {
        self.began();
        if count > 0 {
            *self.seen.ended.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
        }
        self.bar.inc(count as u64);
    }

    /// One of them had its result before.
    pub(super) fn kept(&self) {
        self.seen.kept.fetch_add(1, Ordering::Relaxed);
        self.bar.inc(1);
    }

    /// In plain lines.
    fn plain(hand_ins: usize, first: Duration, say: impl Fn(&str) + Send + 'static) -> Progress {
        let bar = ProgressBar::with_draw_target(Some(hand_ins as u64), ProgressDrawTarget::hidden());
        let (ended, wait) = mpsc::channel();
        let seen = Arc::new(Seen::default());
        let (begin, count, of_all) = (Instant::now(), bar.clone(), seen.clone());
        let lines = thread::spawn(move || {
            let (mut longest, mut pause) = (first, first);
            while wait.recv_timeout(pause) == Err(RecvTimeoutError::Timeout) {
                let (done, of) = (count.position(), hand_ins as u64);
                let rest = of_all.rest(done, of);
                say(&line(done, of, begin.elapsed(), &rest));
                longest = (longest * 2).min(LONGEST);
                pause = rest.pause(longest, first);
            }
        });
        Progress { bar, seen, lines: Some((ended, lines)) }
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

/// What is known of how long the rest takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rest {
    /// Nothing was graded from which one could tell; or nothing is left.
    Unknown,
    /// As long as those before took.
    Left(Duration),
    /// Longer than those before: none has ended for so long.
    Quiet(Duration),
}

impl Seen {
    fn rest(&self, done: u64, of: u64) -> Rest {
        let graded = done.saturating_sub(self.kept.load(Ordering::Relaxed));
        let ended = *self.ended.lock().unwrap_or_else(PoisonError::into_inner);
        match (self.began.get(), ended) {
            (Some(began), Some(ended)) => {
                rest(graded, of.saturating_sub(done), ended.duration_since(*began), ended.elapsed())
            }
            _ => Rest::Unknown,
        }
    }
}

/// From how long those took that were graded until the last of them ended, and how long that is ago.
fn rest(graded: u64, left: u64, until: Duration, quiet: Duration) -> Rest {
    if graded == 0 || left == 0 {
        return Rest::Unknown;
    }
    // What is being graded is not told apart from what waits, so time goes by for all of them.
    match until.mul_f64(left as f64 / graded as f64).checked_sub(quiet) {
        Some(left) => Rest::Left(left),
        None => Rest::Quiet(quiet),
    }
}

impl Rest {
    fn words(&self) -> String {
        match self {
            Rest::Unknown => String::new(),
            Rest::Left(left) => format!(", about {} left", time(*left)),
            Rest::Quiet(quiet) => {
                format!(", none has ended for {}: those that run take longer than most", time(*quiet))
            }
        }
    }

    /// Until the next line. A time that is left must not stand there when it is over.
    fn pause(&self, longest: Duration, least: Duration) -> Duration {
        match self {
            Rest::Left(left) => longest.min((*left).max(least)),
            _ => longest,
        }
    }
}

/// A time, rounded: seconds below two minutes.
fn time(time: Duration) -> String {
    let seconds = time.as_secs_f64().round() as u64;
    if seconds < 120 { format!("{} s", seconds.max(1)) } else { format!("{} min", (seconds + 30) / 60) }
}

fn line(done: u64, of: u64, since: Duration, rest: &Rest) -> String {
    format!("{done} of {of} hand-ins after {}{}", time(since), rest.words())
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
        progress.graded(2);
        let second = lines.iter().nth(1).expect("more than one");
        assert!(second.starts_with("2 of 8 hand-ins after 1 s, "), "{second}");
        drop(progress);
        assert!(lines.iter().count() < 20, "pauses get longer, and nothing is said afterwards");
    }

    const fn minutes(count: u64) -> Duration {
        Duration::from_secs(60 * count)
    }

    #[test]
    fn the_time_left_is_of_what_was_graded_and_gives_way_where_it_is_over() {
        let now = Duration::ZERO;
        let said =
            |graded, done, quiet| line(done, 8, minutes(10) + quiet, &rest(graded, 8 - done, minutes(10), quiet));
        assert_eq!(said(0, 0, now), "0 of 8 hand-ins after 10 min");
        assert_eq!(said(0, 4, now), "4 of 8 hand-ins after 10 min", "all of them were there");
        assert_eq!(said(2, 2, now), "2 of 8 hand-ins after 10 min, about 30 min left");
        assert_eq!(said(1, 5, now), "5 of 8 hand-ins after 10 min, about 30 min left");
        assert_eq!(said(8, 8, now), "8 of 8 hand-ins after 10 min");
        // The last one takes its time: what the others took is no answer.
        assert_eq!(said(7, 7, now), "7 of 8 hand-ins after 10 min, about 86 s left");
        assert_eq!(said(7, 7, Duration::from_secs(60)), "7 of 8 hand-ins after 11 min, about 26 s left");
        assert_eq!(
            said(7, 7, minutes(20)),
            "7 of 8 hand-ins after 30 min, none has ended for 20 min: those that run take longer than most"
        );
        assert_eq!(line(0, 8, Duration::from_secs(30), &Rest::Unknown), "0 of 8 hand-ins after 30 s");
    }

    #[test]
    fn a_line_with_a_time_is_followed_by_the_next_when_that_is_over() {
        let pause = |rest: Rest| rest.pause(LONGEST, FIRST);
        assert_eq!(pause(Rest::Left(minutes(1))), minutes(1));
        assert_eq!(pause(Rest::Left(Duration::from_secs(2))), FIRST);
        assert_eq!(pause(Rest::Left(minutes(60))), LONGEST);
        assert_eq!(pause(Rest::Unknown), LONGEST);
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
            progress.began();
            progress.graded(graded as usize);
            progress.bar.tick();
            let shown = terminal.0.lock().expect("whole").clone();
            shown.rsplit_once("of 8").map(|(_, rest)| rest.trim().to_string()).expect("a bar")
        };
        assert_eq!(shown(0, 0), "hand-ins");
        assert_eq!(shown(3, 0), "hand-ins", "what was kept took no time");
        assert!(shown(3, 2).starts_with("hand-ins, "), "{}", shown(3, 2));
        assert_eq!(shown(0, 8), "hand-ins");
    }
}
