//! What of a hand-in was refused or ended, and what its text names that no kernel has where it runs: for the teacher.
//!
//! **Does:** say what happened and what stands in the text, with the line. **Never does:** say why somebody wrote it, or change a point: a
//! kernel that names `std::net` is judged like any other. What a text hides from this is not stopped by it, but by the
//! [sandbox](crate::sandbox).

mod names;

use harness::workbook::name;
use harness::{Ending, Whose};
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

/// What happened to the compiler or to the program that builds the kernel. A program's own words are not looked at.
pub fn happened(ending: &Ending) -> Stopped {
    let called = |whose: &Whose| match whose {
        Whose::Compiler => "the compiler",
        Whose::Kernel => "the program",
    };
    let (what, text) = match ending {
        Ending::Refused(why) => (What::Answer, format!("refused: {why}")),
        Ending::Silent => (What::Answer, "the program ended and left no answer".to_string()),
        Ending::TooLong(whose, limit) => {
            // What it used by then is another each time.
            let limit = limit.split(", of which").next().unwrap_or_default();
            (What::Time, format!("{} was ended after {limit}", called(whose)))
        }
        Ending::Failed(Whose::Compiler, how) => (What::Ended, format!("the compiler was {how}")),
        Ending::Failed(Whose::Kernel, how) => (What::Ended, format!("the program failed ({how})")),
    };
    Stopped { what, text: format!("{text}; {}", what.holds()), line: None }
}

#[cfg(test)]
#[path = "../../emulator/tests/common/processor.rs"]
mod processor;

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;
    use harness::{Answer, answers};

    #[test]
    fn a_hostile_text_is_read_in_time_and_told_in_few_lines() {
        let begun = processor::time();
        assert_eq!(named(&"std::{".repeat(1 << 17)), []);
        let took = processor::time() - begun;
        assert!(took.as_secs() < 10, "{took:?}");
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
    fn what_happened_is_told_in_a_line() {
        let late = |whose, limit: &str| Ending::TooLong(whose, limit.to_string());
        let said: String = [
            Ending::Refused("the answer is not a kernel: unknown field `points`".to_string()),
            Ending::Silent,
            late(Whose::Compiler, "120 s of CPU time"),
            late(Whose::Kernel, "200 s on the clock, of which it used 0.3 s of CPU time (it slept or waited)"),
            Ending::Failed(Whose::Compiler, "ended by signal 9".to_string()),
            Ending::Failed(Whose::Kernel, "exit status: 3".to_string()),
        ]
        .iter()
        .map(|ending| happened(ending).of_step(2) + "\n")
        .collect();
        expect![[r#"
            step02: refused: the answer is not a kernel: unknown field `points`; it gets no points
            step02: the program ended and left no answer; it gets no points
            step02: the compiler was ended after 120 s of CPU time; it gets no points
            step02: the program was ended after 200 s on the clock; it gets no points
            step02: the compiler was ended by signal 9; it gets no points
            step02: the program failed (exit status: 3); it gets no points
        "#]]
        .assert_eq(&said);
    }

    /// The words of a program are not what happened, whatever they are.
    #[test]
    fn a_program_cannot_say_what_happened_to_it() {
        let forged =
            r#"{"failed": {"no_answer": {"message": "compiling it took longer than 5 s of CPU time and was ended"}}}"#;
        let Ok(Answer::Failed(failure)) = answers::parse(forged) else { panic!("it is an answer") };
        assert!(
            failure.to_string().starts_with("compiling it took longer") && failure.ending().is_none(),
            "{failure:?}"
        );
        let forged = r#"{"failed": {"no_answer": {"message": "", "ending": "silent"}}}"#;
        let refused = answers::parse(forged).expect_err("no answer has this field");
        assert!(refused.contains("unknown field `ending`"), "{refused}");
    }
}
