//! What the sandbox says of a run: how far it came, and how the program ended.
//!
//! The process that makes the place writes it to a file that nothing in the sandbox sees, one line for each thing that is reached; the
//! last line counts. An exit status or a text of the program is never taken for it: those are the program's.

use super::Enforced;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{Read, Write};
use std::path::Path;

/// How far a run came.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Reached {
    /// The sandbox was begun.
    #[default]
    Begun,
    /// It is furnished: the namespaces, and the files that the program sees.
    Entered,
    /// All rights were given up, and the program was started.
    Started,
    /// The program has ended, and what it left is brought out.
    Ended,
}

/// What is known of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Report {
    pub reached: Reached,
    /// What this machine did not do. Then nothing else counts.
    pub failed: Option<String>,
    /// What was enforced.
    pub enforced: Option<Enforced>,
    /// The program's exit status, if it ended by itself.
    pub code: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// It was ended because its CPU time was used up.
    pub cpu_ran_out: bool,
    /// It was ended because its time on the clock was over.
    pub clock_ran_out: bool,
    /// The machine ran out of memory meanwhile, and the kernel ended some process.
    pub short_of_memory: bool,
    /// CPU time of the program and of what it started.
    pub cpu_seconds: f64,
    /// Time on the clock, from its start.
    pub seconds: f64,
    /// What was brought out.
    pub brought_out: Vec<String>,
    /// What the program left and was not taken, and why.
    pub not_taken: Vec<String>,
}

/// The file that reports are written to.
#[derive(Debug)]
#[cfg_attr(not(target_os = "linux"), allow(dead_code, reason = "there is no sandbox there"))]
pub(super) struct Channel(File);

#[cfg_attr(not(target_os = "linux"), allow(dead_code, reason = "there is no sandbox there"))]
impl Channel {
    pub(super) fn open(path: &Path) -> Result<Channel, String> {
        let file = File::create(path).map_err(|error| format!("cannot write {}: {error}", path.display()))?;
        Ok(Channel(file))
    }

    pub(super) fn say(&mut self, report: &Report) -> Result<(), String> {
        let failed = |error: &dyn std::fmt::Display| format!("cannot say how far the sandbox came: {error}");
        let mut line = serde_json::to_string(report).map_err(|error| failed(&error))?;
        line.push('\n');
        self.0.write_all(line.as_bytes()).map_err(|error| failed(&error))
    }
}

/// The last report of a file; `None` when there is none. A line that was cut off is none.
pub(super) fn read(path: &Path) -> Option<Report> {
    // Far more than a sandbox says.
    const MOST: u64 = 1 << 20;
    let mut text = String::new();
    File::open(path).ok()?.take(MOST).read_to_string(&mut text).ok()?;
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    serde_json::from_str(whole.lines().next_back()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_whole_line_counts() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("report");
        assert_eq!(read(&path), None);
        let mut channel = Channel::open(&path).unwrap();
        assert_eq!(read(&path), None);
        let entered = Report { reached: Reached::Entered, ..Report::default() };
        channel.say(&entered).unwrap();
        assert_eq!(read(&path), Some(entered.clone()));
        // As on a disk that became full, or in a process that was killed.
        channel.0.write_all(b"{\"reached\":\"ended\",\"failed\":null").unwrap();
        assert_eq!(read(&path), Some(entered));
        assert!(Channel::open(&folder.path().join("no/report")).is_err());
    }
}
