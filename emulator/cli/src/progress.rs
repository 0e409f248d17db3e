//! How far a long job is, on a line of the terminal that is overwritten.

use std::io::{IsTerminal, Write, stderr};
use std::time::{Duration, Instant};

/// Before this nothing is said.
const PATIENCE: Duration = Duration::from_secs(2);
/// From one message to the next.
const PAUSE: Duration = Duration::from_millis(200);

/// Says of a job's schedules which one runs.
pub struct Progress {
    total: usize,
    /// When the next message is due; `None`: there is nobody to tell.
    due: Option<Instant>,
    said: bool,
}

impl Progress {
    pub fn new(total: usize) -> Progress {
        let shown = total > 1 && stderr().is_terminal();
        Progress { total, due: shown.then(|| Instant::now() + PATIENCE), said: false }
    }

    /// So many schedules have been run.
    pub fn at(&mut self, done: usize) {
        let Some(due) = &mut self.due else { return };
        let now = Instant::now();
        if now < *due {
            return;
        }
        *due = now + PAUSE;
        self.said = true;
        let _ = write!(stderr(), "\r{}", line(done, self.total));
    }

    /// All have been run: the line is empty again.
    pub fn end(&self) {
        if self.said {
            let _ = write!(stderr(), "\r{}\r", " ".repeat(line(self.total, self.total).chars().count()));
        }
    }
}

fn line(done: usize, total: usize) -> String {
    format!("{done} of {total} schedules are run")
}
