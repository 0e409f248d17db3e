//! The loops around an instruction: where a kernel goes on for a round too many, or ends a round too early.

use crate::diagnostics::Explanation;
use crate::observe::Observation;
use crate::ptxas;
use emulator::{Event, Place, Source};
use std::ops::RangeInclusive;

/// Lines (from 1) from a label to a branch back to it.
type Loop = RangeInclusive<u32>;

/// The loops around a line, the innermost first.
fn around(ptx: &str, line: u32) -> Vec<Loop> {
    let lines = || (1u32..).zip(ptx.lines());
    let label = |name: &str| {
        let is = |text: &str| text.split_whitespace().any(|word| word.strip_suffix(':') == Some(name));
        lines().find(|(_, text)| is(text)).map(|(at, _)| at)
    };
    let targets = |text: &str| {
        let behind = text.split("bra").skip(1).filter(|rest| rest.starts_with([' ', '.']));
        behind.filter_map(|rest| Some(rest.split(';').next()?.split_whitespace().last()?.to_string())).collect()
    };
    let mut all: Vec<Loop> = Vec::new();
    for (at, text) in lines().skip(line.saturating_sub(1) as usize) {
        let targets: Vec<String> = targets(text);
        all.extend(targets.iter().filter_map(|name| label(name)).filter(|from| *from <= line).map(|from| from..=at));
    }
    all.sort_by_key(|around| around.end() - around.start());
    all
}

/// A line of the kernel's text as a place.
fn place(run: &Observation, line: u32) -> Option<Place> {
    let text = run.built.ptx.lines().nth(line.checked_sub(1)? as usize)?;
    let source = ptxas::source(&run.built.ptx, line);
    let source = source.map(|at| Source { file: at.file, line: at.line, column: at.column });
    let column = text.len() - text.trim_start().len() + 1;
    Some(Place { line, column: column as u32, text: text.trim().to_string(), source })
}

/// With the end of the innermost loop around an instruction: that over K.
pub(super) fn inner(run: &Observation, explanation: Explanation, of: &Place, text: &str) -> Explanation {
    labelled(run, explanation, around(&run.built.ptx, of.line).first(), text)
}

/// With the end of the outermost loop: that over tiles, where there is one.
pub(super) fn outer(run: &Observation, explanation: Explanation, of: &Place, text: &str) -> Explanation {
    labelled(run, explanation, around(&run.built.ptx, of.line).last(), text)
}

fn labelled(run: &Observation, explanation: Explanation, around: Option<&Loop>, text: &str) -> Explanation {
    match around.and_then(|around| place(run, *around.end())) {
        Some(place) => explanation.at(&place, text),
        None => explanation,
    }
}

/// Whether the warp of an instruction has left the innermost loop around it between two of its times: it did something outside. `None`
/// where there is no loop.
pub(super) fn left(run: &Observation, event: &Event, between: RangeInclusive<u64>) -> Option<bool> {
    let around = around(&run.built.ptx, event.place.line).into_iter().next()?;
    let outside = |other: &&Event| {
        other.issuer == event.issuer && between.contains(&other.issued) && !around.contains(&other.place.line)
    };
    Some(run.report.trace.iter().any(|other| outside(&other)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loops_from_the_inside() {
        let ptx =
            "mov;\n$tile:\n$round: mov;\nmma;\n@%p1 bra $round;\n@!%p2 bra.uni $end; @%p3 bra $tile;\n$end:\nmma;";
        assert_eq!(around(ptx, 4), [3..=5, 2..=6]);
        assert_eq!(around(ptx, 8), [], "a branch forward is no loop");
    }
}
