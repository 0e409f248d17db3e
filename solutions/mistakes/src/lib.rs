//! Solutions with one mistake each, of those that people make, and what the emulator is expected to say of it.
//!
//! **Does:** make them from the solutions by the files in `diffs/` and `rules/`, which README.md describes; a diff that no longer applies is a
//! build error. **Never does:** judge them; `tests/mistakes.rs` does.

use ptx::KernelFn;

include!(concat!(env!("OUT_DIR"), "/mistakes.rs"));

/// Which of the two lists a mistake is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum List {
    /// `diffs/`: a machine shows it, by what it computes, a fault or a hang; or it cannot be built.
    Harm,
    /// `rules/`: a rule is broken, and no machine is known on which anything comes of it. The verdict alone holds it.
    Rule,
}

/// A solution with a mistake.
#[derive(Clone, Copy, Debug)]
pub struct Mistake {
    /// The name of its file.
    pub name: &'static str,
    /// The step that it is made in; 0 is the kernel for Hopper.
    pub step: u8,
    /// Its list.
    pub list: List,
    /// The kernel.
    pub kernel: KernelFn,
    /// Its file: header and diff.
    text: &'static str,
    /// The source with the mistake.
    pub source: &'static str,
}

impl Mistake {
    /// What the header says under a key; one that stands there several times says several things.
    pub fn says(&self, key: &str) -> impl Iterator<Item = &'static str> {
        let header = self.text.split("\n\n").next().unwrap_or_default();
        header.lines().filter_map(move |line| line.strip_prefix(key)?.strip_prefix(": "))
    }

    /// The codes that are expected, of which each is right.
    pub fn expected(&self) -> Vec<&'static str> {
        self.says("expect").flat_map(|codes| codes.split(" | ")).collect()
    }
}
