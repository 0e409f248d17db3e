//! Says what a long silence is about.

use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread;
use std::time::Duration;

/// Silence up to here needs no word.
const SHORT: Duration = Duration::from_secs(2);

/// Work that may take long. If it is not over (this value dropped) after two seconds, a line on stderr says what it is.
#[derive(Debug)]
#[must_use = "dropped at once, it says nothing"]
pub struct Patience {
    // What ends is the sender: the waiting thread notices.
    _over: Sender<()>,
}

impl Patience {
    /// Begins to wait. `work` reads as a line of its own.
    pub fn new(work: impl Into<String>) -> Patience {
        let (over, waiting) = mpsc::channel::<()>();
        let work = work.into();
        thread::spawn(move || {
            if waiting.recv_timeout(SHORT) == Err(RecvTimeoutError::Timeout) {
                eprintln!("{work}");
            }
        });
        Patience { _over: over }
    }
}
