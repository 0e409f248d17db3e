//! The bug corpus: the solutions with one thing wrong, and what the emulator says of each.
//!
//! A mutant is a solution's PTX text with a line or two changed, or its launch with another tensor map. Line numbers stay, so
//! that the line of a finding can be held against the line that was changed. Some mutants are no bugs: [`equivalent`] proves
//! so, by rules. What is neither found nor proved is a miss, of the emulator or of the rules, and is listed.
//!
//! | module | idea |
//! |---|---|
//! | [`text`], [`flow`] | the lines of a kernel; which threads come to which of them |
//! | [`kernels`] | the solutions, each at a size at which all of it is used |
//! | [`systematic`], [`operands`] | every synchronising instruction deleted, doubled, moved, with other operands |
//! | `neighbour` | how far a moved one moves |
//! | [`descriptors`], [`maps`] | wrong addresses and layouts, in the text and in the launch |
//! | [`protocol`] | mistakes of a design, each in several lines |
//! | [`equivalent`] | which mutants cannot behave otherwise, and why |
//! | [`machine_code`] | whether the assembler makes the same of two texts |
//! | [`run`], [`table`] | what the emulator says; what people see |
//! | [`culprit`] | whether a hang is told of what was changed |

pub mod culprit;
pub mod descriptors;
pub mod equivalent;
pub mod flow;
pub mod kernels;
pub mod machine_code;
pub mod maps;
mod neighbour;
pub mod operands;
pub mod protocol;
pub mod run;
pub mod systematic;
pub mod table;
pub mod text;

use crate::inputs::Random;
use kernels::Kernel;
use maps::MapChange;
use serde::Serialize;
use std::collections::{BTreeMap, HashSet};
use std::fmt::{Display, Formatter, Result as Formatted};
use text::Text;

/// Where mutants come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, clap::ValueEnum)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// A synchronising instruction deleted, doubled, moved, or with another operand
    Systematic,
    /// A wrong descriptor, address, layout or tensor map
    Descriptors,
    /// A mistake of the protocol between warps, engines and CTAs
    Protocol,
}

impl Kind {
    /// All of them.
    pub const ALL: [Kind; 3] = [Kind::Systematic, Kind::Descriptors, Kind::Protocol];
}

impl Display for Kind {
    fn fmt(&self, f: &mut Formatter<'_>) -> Formatted {
        f.write_str(match self {
            Kind::Systematic => "systematic",
            Kind::Descriptors => "descriptors",
            Kind::Protocol => "protocol",
        })
    }
}

/// What was done, as the rules of [`equivalent`] ask for it. Numbers are indices of statements.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What {
    /// A statement, or all of a wait, was deleted.
    Deleted(usize),
    /// An instruction stands there twice.
    Doubled(usize),
    /// A statement, or all of a wait, moved across its neighbour, and what lies between along with it: which one moved, and across which.
    Moved(usize, usize),
    /// The branch around instructions that not all threads execute was deleted.
    Unguarded(usize),
    /// An instruction has another operand or opcode: the statement, and what stands there now.
    Changed(usize, String),
    /// A field of a descriptor has another value.
    Field(&'static str, usize),
    /// Only what this register holds is another.
    Register(String),
    /// A tensor map is another one.
    Map,
    /// Anything else.
    Other,
}

/// What differs from the solution.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// These lines (indices), with what stands in them now.
    Lines(Vec<(usize, String)>),
    /// The tensor map of this parameter.
    Map(usize, MapChange),
}

/// A solution with one thing wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mutant {
    /// `08/first-phase/103`: step, mistake, line; `.2` and so on behind it where there are several.
    pub id: String,
    /// The step.
    pub step: u8,
    /// Where it comes from.
    pub kind: Kind,
    /// The mistake in a word or two.
    pub mistake: &'static str,
    /// The first line that differs, from 1; 0 for a tensor map.
    pub line: usize,
    /// For the rules.
    pub what: What,
    /// What differs.
    pub change: Change,
}

/// A mutant that has no number yet.
pub(crate) fn mutant(mistake: &'static str, kind: Kind, what: What, change: Change) -> Mutant {
    let line = match &change {
        Change::Lines(lines) => lines.iter().map(|(line, _)| line + 1).min().unwrap_or_default(),
        Change::Map(..) => 0,
    };
    Mutant { id: String::new(), step: 0, kind, mistake, line, what, change }
}

impl Mutant {
    /// Lines that differ, from 1.
    pub fn lines(&self) -> Vec<u32> {
        match &self.change {
            Change::Lines(lines) => lines.iter().map(|(line, _)| *line as u32 + 1).collect(),
            Change::Map(..) => Vec::new(),
        }
    }

    /// What differs, in one line.
    pub fn diff(&self, text: &Text) -> String {
        let lines = match &self.change {
            Change::Map(param, change) => return format!("tensor map of parameter {param}: {change}"),
            Change::Lines(lines) => lines,
        };
        let shown = |code: &str| if code.trim().is_empty() { "(nothing)".to_string() } else { code.trim().to_string() };
        let lines =
            lines.iter().map(|(line, now)| format!("{}: {} -> {}", line + 1, shown(&text.lines[*line]), shown(now)));
        lines.collect::<Vec<_>>().join(" | ")
    }
}

/// All mutants of a kernel, of these kinds, numbered; none twice. What a mutant is called, and of which kind one is that two kinds make, does
/// not depend on which of them are asked for.
pub fn mutants(kernel: &Kernel, kinds: &[Kind]) -> Vec<Mutant> {
    let mut all: Vec<Mutant> = Vec::new();
    for kind in Kind::ALL {
        all.extend(match kind {
            Kind::Systematic => [systematic::mutants(kernel), operands::mutants(kernel)].concat(),
            Kind::Descriptors => [descriptors::mutants(&kernel.text), maps::mutants(kernel)].concat(),
            Kind::Protocol => protocol::mutants(kernel),
        });
    }
    // Two changes may come to the same text: of two neighbours, one moved up and the other one down.
    let mut seen = HashSet::from([Now::Lines(BTreeMap::new())]);
    let mut count: BTreeMap<String, usize> = BTreeMap::new();
    all.retain(|mutant| match &mutant.change {
        Change::Lines(lines) => seen.insert(Now::of(&kernel.text, lines)),
        Change::Map(param, change) => seen.insert(Now::Map(format!("{param}: {change:?}"))),
    });
    for mutant in &mut all {
        mutant.step = kernel.step;
        let id = format!("{:02}/{}/{}", kernel.step, mutant.mistake.replace(' ', "-"), mutant.line);
        let number = count.entry(id.clone()).or_default();
        *number += 1;
        mutant.id = if *number == 1 { id } else { format!("{id}.{number}") };
    }
    all.retain(|mutant| kinds.contains(&mutant.kind));
    all
}

/// What a change comes to, to tell whether two come to the same.
#[derive(PartialEq, Eq, Hash)]
enum Now {
    /// The lines that are others, in a text of as many.
    Lines(BTreeMap<usize, String>),
    /// The text, of other lines.
    Text(String),
    /// The launch.
    Map(String),
}

impl Now {
    fn of(text: &Text, lines: &[(usize, String)]) -> Now {
        if lines.iter().any(|(_, to)| to.contains('\n')) {
            return Now::Text(text.with(lines));
        }
        let mut changed: BTreeMap<usize, String> = lines.iter().cloned().collect();
        changed.retain(|line, to| text.lines.get(*line).is_some_and(|was| was != to));
        Now::Lines(changed)
    }
}

/// So many of each kind, chosen by a seed, in their order.
pub fn sample(mutants: Vec<Mutant>, count: usize, seed: u64) -> Vec<Mutant> {
    let mut chosen: Vec<usize> = Vec::new();
    for kind in Kind::ALL {
        let mut of_kind: Vec<usize> = (0..mutants.len()).filter(|&n| mutants[n].kind == kind).collect();
        let step = mutants.first().map_or(0, |first| u64::from(first.step));
        let mut random = Random::new(seed ^ step << 32 ^ (kind as u64) << 40);
        for _ in 0..count.min(of_kind.len()) {
            let at = random.below(of_kind.len() as u64) as usize;
            chosen.push(of_kind.swap_remove(at));
        }
    }
    chosen.sort_unstable();
    let mut mutants: Vec<Option<Mutant>> = mutants.into_iter().map(Some).collect();
    chosen.into_iter().filter_map(|n| mutants[n].take()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::steps::hopper::HOPPER;

    #[test]
    fn every_mutant_has_an_id_of_its_own_and_changes_something() {
        for step in kernels::STEPS {
            let kernel = Kernel::new(step).unwrap();
            let all = mutants(&kernel, &Kind::ALL);
            let ids: std::collections::BTreeSet<&str> = all.iter().map(|mutant| mutant.id.as_str()).collect();
            assert!(ids.len() == all.len() && all.len() > 200, "step {step}: {} of {}", ids.len(), all.len());
            let texts = all.iter().filter_map(|mutant| match &mutant.change {
                Change::Lines(lines) => Some(kernel.text.with(lines)),
                Change::Map(..) => None,
            });
            let mut texts: Vec<String> = std::iter::once(kernel.text.with(&[])).chain(texts).collect();
            let made = texts.len();
            texts.sort();
            texts.dedup();
            assert_eq!(texts.len(), made, "step {step}: the same text twice");
        }
    }

    #[test]
    fn a_mutant_is_the_same_whichever_kinds_are_asked_for() {
        for step in [HOPPER, 9] {
            let kernel = Kernel::new(step).unwrap();
            let each: Vec<Mutant> = Kind::ALL.iter().flat_map(|kind| mutants(&kernel, &[*kind])).collect();
            let mut all = mutants(&kernel, &Kind::ALL);
            all.sort_by_key(|mutant| mutant.kind);
            assert_eq!(each, all, "step {step}");
            let twice = protocol::mutants(&kernel).len() - mutants(&kernel, &[Kind::Protocol]).len();
            assert!(
                twice > 0,
                "step {step}: no mistake of the protocol is a systematic change, too: this shows nothing"
            );
        }
    }

    #[test]
    fn a_sample_is_repeated_by_its_seed() {
        let all = mutants(&Kernel::new(5).unwrap(), &Kind::ALL);
        let of = |seed| sample(all.clone(), 5, seed);
        assert_eq!(of(1), of(1));
        assert_ne!(of(1), of(2));
        for kind in Kind::ALL {
            assert_eq!(of(1).iter().filter(|mutant| mutant.kind == kind).count(), 5);
        }
        assert_eq!(sample(all.clone(), usize::MAX, 0), all);
    }
}
