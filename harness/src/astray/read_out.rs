//! What is read out of tensor memory.

use super::multiplied::Factors;
use super::{Astray, Stage, astray};
use crate::diagnostics::Explanation;
use crate::observe::Observation;
use emulator::{Event, EventKind};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

const LANES: u32 = 128;
const RULE: &str = "Each column of an accumulator is a column of D: element i of a row of D lies in column i (PTX ISA, tcgen05: data path \
                    layouts). tcgen05.ld reads from the column on that its address names.";
const HELP: &str = "Check which columns each load of tensor memory is given: all of them together read every column of the accumulator once.";

/// The accumulators of a CTA: their columns, and how many sums are begun in each.
type Accumulators = BTreeMap<(u32, u32), usize>;

/// A load of tensor memory: its columns, its lanes.
type Load<'a> = (&'a Event, Range<u32>, Range<u32>);

/// Columns of an accumulator that are read more often than others.
pub(super) fn find(run: &Observation, factors: &[Factors]) -> Option<Astray> {
    let mut all: BTreeMap<u32, Accumulators> = BTreeMap::new();
    for factors in factors {
        let accumulator = factors.mma.columns?;
        for cta in factors.mma.ctas {
            *all.entry(*cta).or_default().entry(accumulator).or_default() += usize::from(!factors.mma.accumulate);
        }
    }
    for (cta, accumulators) in all {
        let loads: Vec<Load> = (run.report.trace.iter())
            .filter(|event| event.cta == cta)
            .filter_map(|event| match event.kind {
                EventKind::TensorLoad { column, columns, lane, lanes } => {
                    Some((event, column..column + columns, lane..lane + lanes))
                }
                _ => None,
            })
            .collect();
        // All lanes of a warp's quarter are read alike.
        let mut quarters = (0..LANES).step_by(32);
        if let Some(found) = quarters.find_map(|lane| in_quarter(&accumulators, &loads, lane)) {
            return Some(found);
        }
    }
    None
}

/// The same, of the lanes that one warp reads.
fn in_quarter(accumulators: &Accumulators, loads: &[Load], lane: u32) -> Option<Astray> {
    let loads: Vec<&Load> = loads.iter().filter(|(_, _, lanes)| lanes.contains(&lane)).collect();
    let read = |column: u32| loads.iter().filter(|(_, columns, _)| columns.contains(&column)).count();
    let written: BTreeSet<u32> = accumulators.keys().flat_map(|(first, count)| *first..first + count).collect();
    let few = written.iter().map(|column| read(*column)).min()?;
    let many = written.iter().map(|column| read(*column)).max()?;
    let beyond = loads.iter().find(|(_, range, _)| range.clone().any(|column| !written.contains(&column)));
    if few == many && beyond.is_none() {
        return None;
    }
    let (title, often) = if few == many {
        let column = beyond.and_then(|(_, range, _)| range.clone().find(|column| !written.contains(column)))?;
        (format!("column {column} of tensor memory is read, and no MMA writes it"), None)
    } else {
        // The first accumulator whose columns are read seldom tells: which, and instead of which.
        let (first, count, sums) = accumulators.iter().find_map(|((first, count), sums)| {
            (*first..first + count).any(|column| read(column) == few).then_some((*first, *count, *sums))
        })?;
        let within = |times: usize| together((first..first + count).filter(|column| read(*column) == times));
        let seldom = within(few).into_iter().next()?;
        let most = (first..first + count).map(read).max()?;
        let often = within(most).into_iter().next().filter(|_| most > few);
        let of = match accumulators.len() {
            1 => "the accumulator".to_string(),
            _ => format!("the accumulator from column {first} of tensor memory on"),
        };
        let mut title = format!("{} of {of} {} {}", columns(&seldom, first), are(&seldom), times(few, sums));
        if let Some(often) = &often {
            title += &format!(", its {} {} {}", columns(often, first), are(often), times(most, sums));
        }
        (title, often)
    };
    let mut explanation = Explanation::new(title, RULE, HELP);
    let reads = |load: &Load| often.as_ref().is_some_and(|often| load.1.contains(&often.start));
    // What reads beyond is at fault; else the last of those that read the same.
    let odd = beyond.or_else(|| loads.iter().rev().find(|load| reads(load)));
    let line = |load: &Load| load.0.place.line;
    let other = loads.iter().find(|load| reads(load) && odd.is_none_or(|odd| line(odd) != line(load)));
    for (event, range, _) in odd.into_iter().chain(other) {
        let text = format!("columns {} to {} of tensor memory are read here", range.start, range.end - 1);
        explanation = explanation.at(&event.place, text);
    }
    Some(astray(Stage::ReadOut, explanation))
}

/// Columns in one piece each.
fn together(columns: impl Iterator<Item = u32>) -> Vec<Range<u32>> {
    let mut pieces: Vec<Range<u32>> = Vec::new();
    for column in columns {
        match pieces.last_mut() {
            Some(last) if last.end == column => last.end += 1,
            _ => pieces.push(column..column + 1),
        }
    }
    pieces
}

/// Columns of an accumulator that begins at this column of tensor memory.
fn columns(range: &Range<u32>, first: u32) -> String {
    match range.len() {
        1 => format!("column {}", range.start - first),
        _ => format!("columns {} to {}", range.start - first, range.end - 1 - first),
    }
}

fn are(range: &Range<u32>) -> &'static str {
    if range.len() == 1 { "is" } else { "are" }
}

/// How often a column is read that so many sums lie in, one after the other.
fn times(count: usize, sums: usize) -> String {
    let (count, each) = match sums {
        2.. if count > 0 && count.is_multiple_of(sums) => (count / sums, " for each tile"),
        _ => (count, ""),
    };
    match count {
        0 => "never read".into(),
        1 => format!("read once{each}"),
        2 => format!("read twice{each}"),
        count => format!("read {count} times{each}"),
    }
}
