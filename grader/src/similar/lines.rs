//! Which line of one kernel is which line of another.
//!
//! Two statements are the same piece when they differ in names and numbers alone, so a kernel may have a piece several times: three waits,
//! four stores. Which of them is which is told by what else is known of the two kernels: how names of the one are called in the other, where
//! pieces show it that each has once; equal numbers and texts; and the pieces around.

use super::units::{Unit, Written};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Of statements of a kernel, by their places, the place of each in another kernel, and how much says so.
type Pairs = BTreeMap<usize, (usize, usize)>;

/// So many statements before and behind are looked at.
const AROUND: usize = 6;
/// Of a statement that a kernel has more often, so many are looked at: each is compared with each, and a file has room for a hundred thousand.
const PLACES: usize = 64;

/// For each of these kernels that has the piece, in order, the line where it stands: the same statement in all of them. `None`: fewer than two have it.
pub(super) fn of(unit: Unit, kernels: &[&[Written]]) -> Option<Vec<(usize, usize)>> {
    let places: Vec<(usize, Vec<usize>)> = kernels
        .iter()
        .enumerate()
        .map(|(who, written)| {
            (who, (0..written.len()).filter(|at| written[*at].unit == unit).take(PLACES).collect::<Vec<_>>())
        })
        .filter(|(_, places)| !places.is_empty())
        .collect();
    let [(first, of_first), others @ ..] = &places[..] else { return None };
    if others.is_empty() {
        return None;
    }
    let line = |who: usize, at: usize| kernels[who][at].line;
    let paired: Vec<(usize, Pairs)> = others
        .iter()
        .map(|(other, of_other)| (*other, pairs([kernels[*first], kernels[*other]], [of_first, of_other])))
        .collect();
    // The one that is told best, in as many of them as possible.
    let told = |at: &&usize| {
        let found: Vec<usize> =
            paired.iter().filter_map(|(_, pairs)| pairs.get(*at)).map(|(_, score)| *score).collect();
        (found.len(), found.iter().sum::<usize>(), std::cmp::Reverse(**at))
    };
    let at = *of_first.iter().max_by_key(told)?;
    let others = paired.iter().filter_map(|(other, pairs)| Some((*other, line(*other, pairs.get(&at)?.0))));
    Some([(*first, line(*first, at))].into_iter().chain(others).collect())
}

/// Which statement of the second is which of the first, among those of one piece. Each is one of the other at most.
fn pairs(kernels: [&[Written]; 2], places: [&[usize]; 2]) -> Pairs {
    let names = names(kernels);
    let mut all: Vec<(usize, usize, usize, usize)> = Vec::new();
    for (nth, a) in places[0].iter().enumerate() {
        for (other, b) in places[1].iter().enumerate() {
            let words = kernels[0][*a].words.iter().zip(&kernels[1][*b].words);
            let same = words.filter(|(a, b)| names.get(a.as_str()).map_or(a == b, |known| known == b)).count();
            let score = 2 * same + around(kernels, [*a, *b]);
            all.push((score, nth.abs_diff(other), *a, *b));
        }
    }
    // What says nothing either way is in the same order in both.
    all.sort_by_key(|(score, apart, a, b)| (std::cmp::Reverse(*score), *apart, *a, *b));
    let (mut found, mut taken) = (Pairs::new(), BTreeSet::new());
    for (score, _, a, b) in all {
        if !found.contains_key(&a) && taken.insert(b) {
            found.insert(a, (b, score));
        }
    }
    found
}

/// How what is called so in the first is called in the second: what most of the statements say that each has once.
fn names<'a>(kernels: [&'a [Written]; 2]) -> HashMap<&'a str, &'a str> {
    let once = |written: &'a [Written]| {
        let mut once: HashMap<Unit, Option<&Written>> = HashMap::new();
        for one in written {
            once.entry(one.unit).and_modify(|known| *known = None).or_insert(Some(one));
        }
        once
    };
    let [first, second] = kernels.map(once);
    let mut votes: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    for (unit, one) in first {
        let (Some(one), Some(Some(other))) = (one, second.get(&unit)) else { continue };
        for (a, b) in one.words.iter().zip(&other.words).filter(|(word, _)| is_name(word)) {
            *votes.entry((a, b)).or_default() += 1;
        }
    }
    let mut names: HashMap<&str, (&str, usize)> = HashMap::new();
    for ((a, b), count) in votes {
        let known = names.entry(a).or_insert((b, count));
        if count > known.1 {
            *known = (b, count);
        }
    }
    names.into_iter().map(|(a, (b, _))| (a, b)).collect()
}

fn is_name(word: &str) -> bool {
    word.starts_with(|sign: char| sign.is_alphabetic() || sign == '_')
}

/// How many pieces two places have in common before and behind them.
fn around(kernels: [&[Written]; 2], at: [usize; 2]) -> usize {
    let near = |written: &[Written], at: usize| -> [BTreeSet<Unit>; 2] {
        let units = |range: &[Written]| range.iter().map(|one| one.unit).collect();
        let end = (at + 1 + AROUND).min(written.len());
        [units(&written[at.saturating_sub(AROUND)..at]), units(&written[at + 1..end])]
    };
    let [a, b] = [near(kernels[0], at[0]), near(kernels[1], at[1])];
    a.iter().zip(&b).map(|(a, b)| a.intersection(b).count()).sum()
}
