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
        let which = match self.what {
            What::Moved(statement, _) => text.statements.get(statement).map(|statement| statement.line),
            _ => None,
        };
        if let Some(moved) = moved(text, lines, which) {
            return moved;
        }
        let shown = |code: &str| if code.trim().is_empty() { "(nothing)".to_string() } else { code.trim().to_string() };
        let lines =
            lines.iter().map(|(line, now)| format!("{}: {} -> {}", line + 1, shown(&text.lines[*line]), shown(now)));
        lines.collect::<Vec<_>>().join(" | ")
    }
}

/// Characters that are shown of code that moved.
const CODE: usize = 120;

/// The same of lines that stand elsewhere now, and are otherwise what they were: those that moved, and where to. `None` where a line is another one.
/// `line`: one of those that moved, if that is known.
fn moved(text: &Text, lines: &[(usize, String)], line: Option<usize>) -> Option<String> {
    let now: BTreeMap<usize, &str> = lines.iter().map(|(line, now)| (*line, now.trim())).collect();
    let (first, last) = (*now.keys().next()?, *now.keys().next_back()?);
    // Lines between that say only where the next one is from, or nothing, stay.
    let says_nothing =
        |line: &str| line.trim().is_empty() || [".loc", "//"].iter().any(|word| line.trim_start().starts_with(word));
    let all = text.lines.get(first..=last)?.iter().map(|line| line.trim()).zip(first..);
    let all: Vec<(usize, &str)> =
        all.filter(|(line, at)| now.contains_key(at) || !says_nothing(line)).map(|(line, at)| (at, line)).collect();
    let (before, after): (Vec<&str>, Vec<&str>) =
        all.iter().map(|(at, line)| (*line, now.get(at).copied().unwrap_or(line))).unzip();
    // Two neighbouring blocks change places: where nobody knows, the shorter one has moved across the other.
    let split = (1..all.len()).find(|&split| before[split..].iter().chain(&before[..split]).eq(&after))?;
    let first_moved = match line.and_then(|line| all.iter().position(|(at, _)| *at == line)) {
        Some(position) => position < split,
        None => 2 * split <= all.len(),
    };
    let (block, to) = match first_moved {
        true => (&all[..split], format!("behind line {}", last + 1)),
        false => (&all[split..], format!("in front of line {}", first + 1)),
    };
    let which = match block {
        [(line, _)] => format!("line {}", line + 1),
        [(from, _), .., (to, _)] => format!("lines {} to {}", from + 1, to + 1),
        [] => return None,
    };
    let code: Vec<&str> = block.iter().map(|(_, line)| line.trim()).filter(|line| !line.is_empty()).collect();
    let code = code.join(" | ");
    // The registers of a load of tensor memory fill lines.
    let shown = match code.char_indices().nth(CODE) {
        Some((end, _)) => format!("{} …", code[..end].trim_end()),
        None => code,
    };
    Some(format!("{which} moved {to}: {shown}"))
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
    fn a_move_is_shown_as_a_move() {
        let kernel = Kernel::new(7).unwrap();
        let all = mutants(&kernel, &Kind::ALL);
        let mut shown = 0;
        for mutant in all.iter().filter(|mutant| matches!(mutant.what, What::Moved(..))) {
            let diff = mutant.diff(&kernel.text);
            // Two that only change places, across a label, are shown as two lines.
            let Some((place, code)) = diff.split_once(": ").filter(|(place, _)| place.contains(" moved ")) else {
                assert_eq!(diff.matches(" -> ").count(), 2, "{}: {diff}", mutant.id);
                continue;
            };
            shown += 1;
            assert!(diff.len() < 200, "{}: {} characters: {diff}", mutant.id, diff.len());
            let way = if mutant.mistake == "move up" { "in front of" } else { "behind" };
            assert!(place.contains(way) || !mutant.mistake.starts_with("move"), "{}: {diff}", mutant.id);
            // It says which line, and the line is so.
            let number: usize = place.split(' ').nth(1).unwrap().parse().unwrap();
            let line = kernel.text.lines[number - 1].trim();
            assert!(code.starts_with(&line[..line.len().min(100)]), "{}: line {number} is {line}: {diff}", mutant.id);
        }
        assert!(shown > 20, "{shown} moves");
        let other = all.iter().find(|mutant| mutant.id == "07/column/366").unwrap();
        assert!(other.diff(&kernel.text).contains(" -> "), "{}", other.diff(&kernel.text));
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
