//! What the outer process tells the grader of a run: in a file that the program does not see and cannot reach.
//!
//! What a program prints and how it exits are its own: it may say whatever the sandbox would. So what decides whether this machine failed or
//! the hand-in did comes from here alone.

use serde::{Deserialize, Serialize};
use std::fs;
use std::path::Path;

/// How a run went.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Told {
    /// What did not work here, so that nothing can be said of the hand-in.
    pub failed: Option<String>,
    /// Seconds of CPU time that the program and all that it started took.
    pub cpu_seconds: f64,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// Why the sandbox ended it.
    pub cut: Option<Cut>,
}

/// Why a program was ended from outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cut {
    /// It slept for longer than a program may, with nothing to wait for.
    Asleep,
    /// It took far longer than its CPU time, and did not sleep.
    Late,
}

impl Told {
    /// What is told in a file.
    ///
    /// # Errors
    /// When nobody wrote it: the sandbox itself was ended.
    pub fn read(path: &Path) -> Result<Told, String> {
        let text = fs::read(path).map_err(|error| {
            format!("the sandbox was ended before it could say how the run went ({}: {error})", path.display())
        })?;
        serde_json::from_slice(&text).map_err(|error| format!("{}: {error}", path.display()))
    }

    /// What did not work on this machine. That a program was late without using its time is its doing or that of a machine with too
    /// much to do: nobody can tell, so it counts against nobody.
    pub fn failure(&self) -> Option<String> {
        let late = || {
            format!(
                "a program of the hand-in had only {:.1} s of CPU time in ten times as long as it may take\n  \
                 try: Grade fewer at a time (--jobs), or on a machine with less to do.",
                self.cpu_seconds
            )
        };
        self.failed.clone().or_else(|| (self.cut == Some(Cut::Late)).then(late))
    }

    /// It was ended since its time was up, rather than by itself.
    pub fn took_too_long(&self, cpu_limit: u64) -> bool {
        const SIGKILL: i32 = 9;
        const SIGXCPU: i32 = 24;
        // The hard limit of CPU time kills.
        let used_up = self.cpu_seconds >= cpu_limit as f64;
        self.cut == Some(Cut::Asleep) || self.signal == Some(SIGXCPU) || self.signal == Some(SIGKILL) && used_up
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whose_fault_it_is() {
        let ended = |signal, cpu_seconds| Told { signal, cpu_seconds, ..Told::default() };
        assert!(ended(Some(24), 20.0).took_too_long(20) && ended(Some(9), 20.0).took_too_long(20));
        assert!(!ended(Some(9), 3.0).took_too_long(20), "the memory was used up");
        assert!(!ended(None, 19.0).took_too_long(20));
        let cut = |cut| Told { cut: Some(cut), ..Told::default() };
        assert!(cut(Cut::Asleep).took_too_long(20) && cut(Cut::Asleep).failure().is_none());
        assert!(!cut(Cut::Late).took_too_long(20) && cut(Cut::Late).failure().is_some());
        let folder = tempfile::tempdir().unwrap();
        Told::read(&folder.path().join("none")).expect_err("nobody wrote it");
    }
}
