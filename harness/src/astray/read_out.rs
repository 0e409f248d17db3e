//! What is read out of tensor memory.

use super::multiplied::Factors;
use super::{Astray, Stage, astray};
use crate::diagnostics::Explanation;
use crate::observe::Observation;
use emulator::EventKind;
use std::collections::{BTreeMap, BTreeSet};

const LANES: u32 = 128;

/// Columns of an accumulator that are read more often than others.
pub(super) fn find(run: &Observation, factors: &[Factors]) -> Option<Astray> {
    let mut accumulators: BTreeMap<u32, BTreeSet<u32>> = BTreeMap::new();
    for factors in factors {
        let (first, count) = factors.mma.columns?;
        for cta in factors.mma.ctas {
            accumulators.entry(*cta).or_default().extend(first..first + count);
        }
    }
    for (cta, columns) in accumulators {
        let loads: Vec<_> = (run.report.trace.iter())
            .filter(|event| event.cta == cta)
            .filter_map(|event| match event.kind {
                EventKind::TensorLoad { column, columns, lane, lanes } => {
                    Some((event, column..column + columns, lane..lane + lanes))
                }
                _ => None,
            })
            .collect();
        let read = |lane: u32, column: u32| {
            loads.iter().filter(|(_, columns, lanes)| columns.contains(&column) && lanes.contains(&lane)).count()
        };
        let count = |least: bool, lane: u32| {
            let counts = columns.iter().map(|column| (read(lane, *column), *column));
            if least { counts.min_by_key(|(count, _)| *count) } else { counts.max_by_key(|(count, _)| *count) }
        };
        // All lanes of a warp's quarter are read alike.
        for lane in (0..LANES).step_by(32) {
            let (Some((few, seldom)), Some((many, often))) = (count(true, lane), count(false, lane)) else { continue };
            let beyond =
                loads.iter().find(|(_, range, lanes)| lanes.contains(&lane) && !columns.contains(&(range.end - 1)));
            if few == many && beyond.is_none() {
                continue;
            }
            let title =
                format!("column {seldom} of an accumulator is {}, its column {often} is {}", times(few), times(many));
            let rule = "Each column of an accumulator is a column of D: element i of a row of D lies in column i (PTX ISA, tcgen05: data path \
                        layouts). tcgen05.ld reads from the column on that its address names.";
            let help = "Check the column that each tcgen05.ld begins at: together they reach every column once.";
            let mut explanation = Explanation::new(title, rule, help);
            let odd = beyond.or_else(|| {
                loads.iter().rev().find(|(_, columns, lanes)| columns.contains(&often) && lanes.contains(&lane))
            });
            if let Some((event, columns, _)) = odd {
                explanation = explanation
                    .at(&event.place, format!("columns {} to {} are read here", columns.start, columns.end - 1));
            }
            let other = loads.iter().find(|(event, columns, lanes)| {
                columns.contains(&often)
                    && lanes.contains(&lane)
                    && odd.is_none_or(|(odd, ..)| odd.place.line != event.place.line)
            });
            if let Some((event, columns, _)) = other {
                explanation = explanation
                    .at(&event.place, format!("columns {} to {} are read here", columns.start, columns.end - 1));
            }
            return Some(astray(Stage::ReadOut, explanation));
        }
    }
    None
}

fn times(count: usize) -> String {
    match count {
        0 => "never read".into(),
        1 => "read once".into(),
        2 => "read twice".into(),
        count => format!("read {count} times"),
    }
}
