//! What of a hand-in was refused or ended, and what its text names that no kernel has where it runs: for the teacher.
//!
//! **Does:** say what happened and what stands in the text, with the line. **Never does:** say why somebody wrote it, or change a point: a
//! kernel that names `std::net` is judged like any other. What a text hides from this is not stopped by it, but by the
//! [sandbox](crate::sandbox).

mod names;

use harness::workbook::name;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// What it was about. A stable word of the JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum What {
    /// Sockets.
    Network,
    /// Files and links.
    Files,
    /// Other programs, and ending the own one.
    Processes,
    /// Threads of its own.
    Threads,
    /// Environment and arguments of the program.
    Environment,
    /// The system's own interfaces.
    System,
    /// Writing to the program's output beside the answer, and what becomes of panics.
    Output,
    /// The compiler reads other files or variables while it compiles, or other crates.
    Build,
    /// Code that Rust does not check, or that the linker places.
    Unsafe,
    /// The answer of the program is not what the workbook writes, or is missing.
    Answer,
    /// It was ended: time.
    Time,
    /// It was ended: a signal or an exit status of its own.
    Ended,
}

impl What {
    /// In words.
    pub fn words(self) -> &'static str {
        match self {
            What::Network => "network",
            What::Files => "files",
            What::Processes => "processes",
            What::Threads => "threads",
            What::Environment => "environment",
            What::System => "the system",
            What::Output => "output",
            What::Build => "what the compiler reads",
            What::Unsafe => "unchecked code",
            What::Answer => "the answer",
            What::Time => "time",
            What::Ended => "how the program ended",
        }
    }

    /// What holds where a hand-in is compiled and runs.
    fn holds(self) -> &'static str {
        match self {
            What::Network => "there is no network where a hand-in runs",
            What::Files => "there it sees the system's libraries and a scratch folder of its own",
            What::Processes => "there no other program can be started, and one that ends early has no answer",
            What::Threads => "there no thread can be started",
            What::Environment => "there the environment is empty, and the arguments are the grader's",
            What::System => "there about 70 system calls are left",
            What::Output => "nothing that is printed is believed",
            What::Build => "the compiler sees the kernel and the workbook's crates alone",
            What::Unsafe => "hand-ins are compiled without it",
            What::Answer | What::Time | What::Ended => "it gets no points",
        }
    }
}

/// One thing that was refused or ended, or stands in a kernel's text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stopped {
    /// What it was about.
    pub what: What,
    /// What happened, or what stands in the text: one sentence without a full stop.
    pub text: String,
    /// The first line of the kernel that names it; `None` for what happened.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
}

impl Stopped {
    /// The sentence with its step.
    pub fn of_step(&self, step: u8) -> String {
        format!("{}: {}", name(step), self.text)
    }
}

/// Names of a kernel that are told: a text can have any number of them.
const MOST: usize = 40;

/// What a kernel's text names: each name once, at the first line that has it.
pub fn named(text: &str) -> Vec<Stopped> {
    let (mut all, mut known) = (Vec::new(), BTreeSet::new());
    for found in names::of(text) {
        if known.contains(&found.name) {
            continue;
        }
        let what = match all.len() {
            MOST => format!("the kernel names more than these {MOST}, from line {} on", found.line),
            _ => format!("the kernel names `{}` (line {}); {}", found.name, found.line, found.what.holds()),
        };
        all.push(Stopped { what: found.what, text: what, line: Some(found.line) });
        if all.len() > MOST {
            break;
        }
        known.insert(found.name);
    }
    all
}

/// What happened, by the words in which the grader says that there is no kernel; `None`: nothing that was refused or ended, as where a text
/// does not compile. A program's own words stand behind them, and are not looked at.
pub fn happened(build_failure: &str) -> Option<Stopped> {
    let first = build_failure.lines().next().unwrap_or_default();
    let short = |text: &str| text.split("; it said:").next().unwrap_or_default().trim_end_matches(':').to_string();
    let of = |what: What, text: String| Some(Stopped { what, text: format!("{text}; {}", what.holds()), line: None });
    if first.starts_with("the answer is not") {
        return of(What::Answer, format!("refused: {}", short(first)));
    }
    if first.starts_with("the program that builds the kernel left no answer") {
        return of(What::Answer, "the program ended and left no answer".to_string());
    }
    // The size that was asked for is no matter.
    let limit = |text: &str| {
        text.split_once(" took longer than ").map(|(_, rest)| {
            // What it used by then is another each time.
            let limit = rest.split(", of which").next().unwrap_or_default();
            limit.replace(" and was ended", "")
        })
    };
    if let Some(limit) = limit(first).filter(|_| first.starts_with("compiling it")) {
        return of(What::Time, format!("the compiler was ended after {limit}"));
    }
    if let Some(limit) = limit(first).filter(|_| first.starts_with("building the kernel for")) {
        return of(What::Time, format!("the program was ended after {limit}"));
    }
    if let Some(how) = first.strip_prefix("it does not compile: the compiler was ") {
        return of(What::Ended, format!("the compiler was {how}"));
    }
    let how = first.strip_prefix("the program that builds the kernel failed (")?;
    of(What::Ended, format!("the program failed ({})", how.split_once(')').map_or(how, |(how, _)| how)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hostile_text_is_read_in_time_and_told_in_few_lines() {
        let begun = std::time::Instant::now();
        assert_eq!(named(&"std::{".repeat(1 << 17)), []);
        assert!(begun.elapsed().as_secs() < 10, "{:?}", begun.elapsed());
        let many: String = (0..10_000).map(|n| format!("mod m{n};\n")).collect();
        let told = named(&many);
        assert_eq!(told.len(), MOST + 1);
        assert_eq!(told[MOST].text, "the kernel names more than these 40, from line 41 on");
        let long = named(&format!("use std as {};", "a".repeat(1 << 19)));
        assert!(long[0].text.len() < 300, "{} bytes", long[0].text.len());
        // The same name again is told once.
        assert_eq!(named("use std::net; use std::net;").len(), 1);
    }

    #[test]
    fn what_happened_is_told_and_a_mistake_is_not() {
        let told = |text: &str| happened(text).map(|stopped| (stopped.what, stopped.text));
        let says = |text: &str, what, begin: &str| {
            let found = told(text);
            assert!(found.as_ref().is_some_and(|(w, t)| *w == what && t.starts_with(begin)), "{text}: {found:?}");
        };
        says(
            "the answer is not a kernel: unknown field `points`, expected one of `name` at line 1 column 145",
            What::Answer,
            "refused: the answer is not a kernel: unknown field `points`",
        );
        says(
            "compiling it took longer than 120 s of CPU time and was ended",
            What::Time,
            "the compiler was ended after 120 s of CPU time",
        );
        says(
            "building the kernel for 128 x 128 x 64 took longer than 20 s of CPU time and was ended\ntry: Look.",
            What::Time,
            "the program was ended after 20 s of CPU time;",
        );
        says(
            "the program that builds the kernel failed (ended by signal 31: it made a system call that is not allowed); it said:\nx",
            What::Ended,
            "the program failed (ended by signal 31: it made a system call that is not allowed)",
        );
        says(
            "the answer is not taken: `answer.json` is not a plain file; it said:\nout",
            What::Answer,
            "refused: the answer is not taken",
        );
        for text in [
            "it does not compile:\nerror[E0425]: cannot find value",
            "the kernel function panicked: took longer than",
            "",
        ] {
            assert_eq!(told(text), None, "{text}");
        }
    }
}
