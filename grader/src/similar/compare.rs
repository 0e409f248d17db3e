//! Which pairs of kernels share more of what is rare than the class does otherwise.
//!
//! What many wrote is what one writes: a piece weighs the more the fewer have it, and nothing if the solution has it. How much two kernels
//! share is the weight of what both have, in parts of the lighter one. A pair stands out if that is much, and far above what pairs
//! of this class share.

use super::units::{Unit, Units};
use std::collections::{BTreeMap, BTreeSet};

/// Below this, nothing stands out, whatever the class does.
const LEAST: f64 = 0.5;
/// The same where the class is too small to tell what its pairs share.
const LEAST_IN_SMALL_CLASS: f64 = 0.7;
/// Fewer kernels are a small class.
const SMALL_CLASS: usize = 6;
/// How far above the middle of all pairs one must be, in median deviations.
const DEVIATIONS: f64 = 6.0;
/// The least weight of what is shared, as so many pieces that only two have.
const PIECES: f64 = 4.0;
/// A piece is common if more than this part of the class has it.
const COMMON: f64 = 0.25;

/// A pair that stands out.
#[derive(Clone, Debug, PartialEq)]
pub struct Pair {
    /// Places of both in the class.
    pub who: [usize; 2],
    /// The part of the lighter one that both have, from 0 to 1.
    pub share: f64,
    /// The statements that both have, rarest first.
    pub statements: Vec<Unit>,
}

/// What was found in a class.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Found {
    /// Pairs that stand out, the most similar first.
    pub pairs: Vec<Pair>,
    /// What pairs of this class share otherwise: the middle, and from where one stands out.
    pub median: f64,
    /// From where on a pair stands out.
    pub limit: f64,
}

/// Compares all kernels of a class with each other.
pub fn compare(class: &[Units]) -> Found {
    let statements: Vec<BTreeSet<Unit>> =
        class.iter().map(|units| units.statements.keys().copied().collect()).collect();
    let runs: Vec<BTreeSet<Unit>> = class.iter().map(|units| units.runs.clone()).collect();
    let (by_statement, by_run) = (Measure::of(&statements), Measure::of(&runs));
    let mut all: Vec<Pair> = Vec::new();
    for first in 0..class.len() {
        for second in first + 1..class.len() {
            let share = by_statement.share(first, second).max(by_run.share(first, second));
            all.push(Pair { who: [first, second], share, statements: Vec::new() });
        }
    }
    let mut shares: Vec<f64> = all.iter().map(|pair| pair.share).collect();
    let median = middle(&mut shares);
    let mut deviations: Vec<f64> = shares.iter().map(|share| (share - median).abs()).collect();
    let limit = match class.len() {
        small if small < SMALL_CLASS => LEAST_IN_SMALL_CLASS,
        _ => (median + DEVIATIONS * middle(&mut deviations)).clamp(LEAST, 0.95),
    };
    all.retain(|pair| pair.share >= limit && by_statement.has_weight(pair.who));
    for pair in &mut all {
        pair.statements = by_statement.shared(pair.who);
    }
    all.sort_by(|a, b| b.share.total_cmp(&a.share).then(a.who.cmp(&b.who)));
    Found { pairs: all, median, limit }
}

fn middle(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    // An empty sum is −0.
    values.get(values.len() / 2).copied().unwrap_or(0.0) + 0.0
}

/// Pieces of one kind, and what each weighs.
struct Measure<'a> {
    pieces: &'a [BTreeSet<Unit>],
    weights: BTreeMap<Unit, f64>,
    /// Of all pieces of each kernel.
    totals: Vec<f64>,
    /// Of a piece that only two have.
    heaviest: f64,
}

impl Measure<'_> {
    fn of(pieces: &[BTreeSet<Unit>]) -> Measure<'_> {
        let mut holders: BTreeMap<Unit, usize> = BTreeMap::new();
        for unit in pieces.iter().flatten() {
            *holders.entry(*unit).or_default() += 1;
        }
        let count = pieces.len() as f64;
        // Two may always have something that is theirs alone.
        let common = (COMMON * count).max(2.0);
        let weight =
            |holders: usize| if holders as f64 > common { 0.0 } else { ((count + 1.0) / holders.max(2) as f64).ln() };
        let weights: BTreeMap<Unit, f64> = holders.into_iter().map(|(unit, holders)| (unit, weight(holders))).collect();
        let totals = pieces.iter().map(|pieces| pieces.iter().map(|unit| weights[unit]).sum()).collect();
        Measure { pieces, weights, totals, heaviest: weight(2) }
    }

    /// The weight of what both have.
    fn both(&self, [first, second]: [usize; 2]) -> f64 {
        self.pieces[first].intersection(&self.pieces[second]).map(|unit| self.weights[unit]).sum()
    }

    /// The same, in parts of the lighter one.
    fn share(&self, first: usize, second: usize) -> f64 {
        let lighter = self.totals[first].min(self.totals[second]);
        // Who has hardly anything that is rare shares all of it by chance.
        self.both([first, second]) / lighter.max(PIECES * self.heaviest)
    }

    /// What both have is more than chance gives.
    fn has_weight(&self, who: [usize; 2]) -> bool {
        self.both(who) >= PIECES * self.heaviest
    }

    fn shared(&self, [first, second]: [usize; 2]) -> Vec<Unit> {
        let both = self.pieces[first].intersection(&self.pieces[second]).copied();
        let mut shared: Vec<Unit> = both.filter(|unit| self.weights[unit] > 0.0).collect();
        shared.sort_by(|a, b| self.weights[b].total_cmp(&self.weights[a]).then(a.cmp(b)));
        shared
    }
}
