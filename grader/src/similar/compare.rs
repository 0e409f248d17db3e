//! Which kernels share more of what is rare than the class does otherwise.
//!
//! What many wrote is what one writes: a piece weighs the more the fewer have it, and nothing if the solution has it. But who copied says
//! nothing about what one writes, however many did: kernels that are nearly the same count once. How much two kernels share is the weight
//! of what both have, in parts of the lighter one. A pair stands out if that is much, and far above what pairs of this class share; pairs
//! with a kernel in common are one group.
//!
//! The limits that hold whatever the class does come from twenty kernels of step 2 that were written independently
//! (`grader/tests/similar`): any two of these share at most a third of their pieces, all weighing the same.

use super::groups::Groups;
use super::units::{Unit, Units};
use std::collections::{BTreeMap, BTreeSet};

/// Below this, nothing stands out, whatever the class does; and from here on two kernels count once, all pieces weighing the same.
const LEAST: f64 = 0.5;
/// The least where the class is too small to tell what its pairs share.
const LEAST_IN_SMALL_CLASS: f64 = 0.6;
/// Above this, a pair stands out, whatever the class does.
const MOST: f64 = 0.8;
/// Of fewer pairs the middle tells nothing.
const FEW_PAIRS: usize = 12;
/// A class of up to this is small.
const SMALL_CLASS: usize = 6;
/// How far above the middle of all pairs one must be, in median deviations.
const DEVIATIONS: f64 = 6.0;
/// The least weight of what is shared, as so many pieces that only two have.
const PIECES: f64 = 4.0;
/// A piece is common if more than this part of the class has it. So many who wrote nearly the same each count: it is what one writes.
const COMMON: f64 = 0.25;

/// Kernels that stand out by what they share.
#[derive(Clone, Debug, PartialEq)]
pub struct Group {
    /// Places in the class of two or more, in order. Each stands out with one of the others at least.
    pub who: Vec<usize>,
    /// The part of the lighter one that two have in common, from 0 to 1: the least and the most of the pairs in the group that stand out.
    pub share: [f64; 2],
    /// The statements that two or more of them have: what most have first, then the rarest.
    pub statements: Vec<Unit>,
}

/// What was found in a class.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Found {
    /// Kernels that stand out together, those with the largest share first.
    pub groups: Vec<Group>,
    /// What two kernels of this class share otherwise: the middle.
    pub median: f64,
    /// From where on a pair stands out.
    pub limit: f64,
}

/// Compares all kernels of a class with each other.
pub fn compare(class: &[Units]) -> Found {
    let count = class.len();
    let statements = holders(class.iter().map(|units| units.statements.iter()));
    let runs = holders(class.iter().map(|units| units.runs.iter()));
    let pairs: Vec<[usize; 2]> =
        (0..count).flat_map(|first| (first + 1..count).map(move |second| [first, second])).collect();
    let once = nearly_the_same([&statements, &runs], count, &pairs);
    let (statements, runs) = (Measure::of(&statements, &once), Measure::of(&runs, &once));
    let all: Vec<([usize; 2], f64)> =
        pairs.into_iter().map(|who| (who, statements.share(who).max(runs.share(who)))).collect();

    let apart = |[a, b]: [usize; 2]| once.of(a) != once.of(b);
    let mut shares: Vec<f64> = all.iter().filter(|(who, _)| apart(*who)).map(|(_, share)| *share).collect();
    let median = middle(&mut shares);
    let mut deviations: Vec<f64> = shares.iter().map(|share| (share - median).abs()).collect();
    let limit = match shares.len() {
        few if few < FEW_PAIRS => LEAST_IN_SMALL_CLASS,
        _ => (median + DEVIATIONS * middle(&mut deviations)).clamp(LEAST, MOST),
    };
    let mut joined = Groups::new(count);
    let outstanding: Vec<_> =
        all.into_iter().filter(|(who, share)| *share >= limit && statements.has_weight(*who)).collect();
    outstanding.iter().for_each(|(who, _)| joined.join(*who));
    let group = |who: Vec<usize>| {
        let of_group = outstanding.iter().filter(|([first, _], _)| who.contains(first));
        let share = of_group.fold([1.0, 0.0], |[least, most], (_, share)| [share.min(least), share.max(most)]);
        Group { share, statements: statements.shared(&who), who }
    };
    let mut groups: Vec<Group> = joined.all().into_iter().map(group).collect();
    groups.sort_by(|a, b| b.share[1].total_cmp(&a.share[1]).then(a.who.cmp(&b.who)));
    Found { groups, median, limit }
}

/// Who has each piece, in order.
type Holders = BTreeMap<Unit, Vec<usize>>;

fn holders<'a>(class: impl Iterator<Item = impl Iterator<Item = &'a Unit>>) -> Holders {
    let mut holders = Holders::new();
    for (who, units) in class.enumerate() {
        units.for_each(|unit| holders.entry(*unit).or_default().push(who));
    }
    holders
}

/// Who counts once: kernels that have most of their pieces in common, whatever the others have.
fn nearly_the_same(kinds: [&Holders; 2], count: usize, pairs: &[[usize; 2]]) -> Groups {
    let mut joined = Groups::new(count);
    for kind in kinds {
        let sums = Sums::of(kind, count, |_| 1.0);
        pairs.iter().filter(|who| sums.share(**who, PIECES) >= LEAST).for_each(|who| joined.join(*who));
    }
    let mut once = Groups::new(count);
    // In a small class, all may have copied from one.
    let common = (COMMON * count as f64).max(SMALL_CLASS as f64);
    for group in joined.all().into_iter().filter(|group| group.len() as f64 <= common) {
        group.windows(2).for_each(|two| once.join([two[0], two[1]]));
    }
    once
}

fn middle(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    // An empty sum is −0.
    values.get(values.len() / 2).copied().unwrap_or(0.0) + 0.0
}

/// What the pieces of each kernel weigh, and those that two have.
struct Sums {
    each: Vec<f64>,
    both: Vec<Vec<f64>>,
}

impl Sums {
    fn of(holders: &Holders, count: usize, weight: impl Fn(&Unit) -> f64) -> Sums {
        let mut sums = Sums { each: vec![0.0; count], both: vec![vec![0.0; count]; count] };
        for (unit, holders) in holders {
            let weight = weight(unit);
            for (index, first) in holders.iter().enumerate().filter(|_| weight > 0.0) {
                sums.each[*first] += weight;
                holders[index + 1..].iter().for_each(|second| sums.both[*first][*second] += weight);
            }
        }
        sums
    }

    /// What both have, in parts of the lighter one. Who has hardly anything shares all of it by chance: `least` is what that one has.
    fn share(&self, [first, second]: [usize; 2], least: f64) -> f64 {
        self.both[first][second] / self.each[first].min(self.each[second]).max(least)
    }
}

/// Pieces of one kind, and what each weighs.
struct Measure<'a> {
    holders: &'a Holders,
    weights: BTreeMap<Unit, f64>,
    sums: Sums,
    /// The weight of a few pieces that only two have.
    least: f64,
}

impl Measure<'_> {
    fn of<'a>(holders: &'a Holders, once: &Groups) -> Measure<'a> {
        // In a small class a piece weighs what it would if some more had written something else.
        let count = once.count().max(SMALL_CLASS) as f64;
        // Two may always have something that is theirs alone.
        let common = (COMMON * count).max(2.0);
        let weight =
            |holders: usize| if holders as f64 > common { 0.0 } else { ((count + 1.0) / holders.max(2) as f64).ln() };
        let counted = |holders: &[usize]| holders.iter().map(|who| once.of(*who)).collect::<BTreeSet<_>>().len();
        let weights: BTreeMap<Unit, f64> =
            holders.iter().map(|(unit, holders)| (*unit, weight(counted(holders)))).collect();
        let sums = Sums::of(holders, once.len(), |unit| weights[unit]);
        Measure { holders, weights, sums, least: PIECES * weight(2) }
    }

    fn share(&self, who: [usize; 2]) -> f64 {
        self.sums.share(who, self.least)
    }

    /// What both have is more than chance gives.
    fn has_weight(&self, [first, second]: [usize; 2]) -> bool {
        self.sums.both[first][second] >= self.least
    }

    /// What two or more of them have: what most have first, then the rarest.
    fn shared(&self, group: &[usize]) -> Vec<Unit> {
        let of_group = |holders: &Vec<usize>| holders.iter().filter(|who| group.contains(who)).count();
        let all = self.holders.iter().map(|(unit, holders)| (of_group(holders), self.weights[unit], *unit));
        let mut shared: Vec<(usize, f64, Unit)> =
            all.filter(|(of_group, weight, _)| *of_group > 1 && *weight > 0.0).collect();
        shared.sort_by(|a, b| b.0.cmp(&a.0).then(b.1.total_cmp(&a.1)).then(a.2.cmp(&b.2)));
        shared.into_iter().map(|(_, _, unit)| unit).collect()
    }
}
