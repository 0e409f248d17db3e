//! Scale factors that a ring brings round by round: of one round no `tcgen05.cp` takes them, and MMAs multiply by those that they have multiplied by before.

use crate::diagnostic::Severity;
use crate::machine::cluster::Cluster;
use crate::machine::explain::names::counted;
use crate::machine::layout::slices::CODE;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use std::collections::BTreeMap;

/// As many places of a CTA are followed.
const MOST: usize = 256;

/// Where copies bring something again and again.
#[derive(Clone, Copy, Debug)]
struct Brought {
    start: u32,
    end: u32,
    site: u32,
    rounds: u32,
}

/// Bytes of it that a `tcgen05.cp` takes.
#[derive(Clone, Copy, Debug)]
struct Place {
    at: u32,
    by: u32,
    /// Index of what was brought.
    of: usize,
    /// The last round in which it was taken, and in how many it was.
    last: u32,
    taken: u32,
}

/// Those of a CTA.
#[derive(Debug, Default)]
pub struct Rounds {
    brought: Vec<Brought>,
    places: Vec<Place>,
}

impl Rounds {
    /// A copy brings these bytes.
    pub fn bring(&mut self, start: u32, end: u32, site: u32) {
        if let Some(known) = self.brought.iter_mut().find(|known| (known.start, known.end) == (start, end)) {
            known.rounds += 1;
        } else if self.brought.len() < MOST {
            self.brought.push(Brought { start, end, site, rounds: 1 });
        }
    }

    /// A `tcgen05.cp` takes rows from this address on.
    pub fn taken(&mut self, at: u32, by: u32) {
        if let Some(place) = self.places.iter_mut().find(|place| place.at == at) {
            let round = self.brought[place.of].rounds;
            place.taken += u32::from(round != place.last);
            (place.last, place.by) = (round, by);
        } else if let Some(of) = self.brought.iter().position(|of| (of.start..of.end).contains(&at))
            && self.places.len() < MOST
        {
            self.places.push(Place { at, by, of, last: self.brought[of].rounds, taken: 1 });
        }
    }

    /// Places that are taken, but not in all rounds: the first of each that was brought.
    fn left_out(&self) -> impl Iterator<Item = (Place, Brought)> {
        let left = self.places.iter().map(|place| (*place, self.brought[place.of]));
        left.filter(|(place, of)| place.taken < of.rounds)
    }

    /// What is never taken, although others are that the same statement brings.
    fn never_taken(&self) -> impl Iterator<Item = (Brought, u32)> {
        let by = |site: u32| self.places.iter().find(|place| self.brought[place.of].site == site).map(|place| place.by);
        let taken = |n: usize| self.places.iter().any(|place| place.of == n);
        (0..).zip(&self.brought).filter(move |&(n, _)| !taken(n)).filter_map(move |(_, of)| Some((*of, by(of.site)?)))
    }
}

/// So many copies to a column are remembered.
const COPIES: usize = 16;

/// How many MMAs take the factors in a column, from one `tcgen05.cp` to the next.
#[derive(Clone, Debug, Default)]
struct Use {
    copies: SmallVec<[u32; 2]>,
    now: u32,
    last: Option<u32>,
    /// So often there were so many, and one of the last MMAs.
    counts: BTreeMap<u32, (u32, Option<u32>)>,
}

impl Use {
    fn close(&mut self) {
        if self.now > 0 {
            let (times, mma) = self.counts.entry(self.now).or_default();
            *times += 1;
            *mma = self.last;
        }
        self.now = 0;
    }

    /// Where there are twice as many as there are most often: the last of these MMAs.
    fn twice(&self) -> Option<u32> {
        let (&usual, &(most, _)) = self.counts.iter().max_by_key(|(_, (times, _))| *times)?;
        let alone = self.counts.values().filter(|(times, _)| *times == most).count() == 1;
        self.counts.range(2 * usual..).next()?.1.1.filter(|_| alone)
    }
}

/// By CTA and first column.
#[derive(Debug, Default)]
pub struct Uses(FxHashMap<(usize, u32), Use>);

impl Uses {
    /// A `tcgen05.cp` brings factors to columns from this one on.
    pub fn bring(&mut self, cta: usize, column: u32, copy: u32) {
        let of = self.0.entry((cta, column)).or_default();
        of.close();
        if !of.copies.contains(&copy) && of.copies.len() < COPIES {
            of.copies.push(copy);
        }
    }

    /// An MMA takes what a copy has brought to columns from this one on.
    pub fn take(&mut self, cta: usize, column: u32, mma: u32) {
        if let Some(of) = self.0.get_mut(&(cta, column)) {
            of.now += 1;
            of.last = Some(mma);
        }
    }

    /// An MMA that multiplies once more by what this copy has brought, where others stand in front of a new copy.
    fn again(&mut self, copy: u32) -> Option<u32> {
        self.0.values_mut().filter(|of| of.copies.contains(&copy)).find_map(|of| {
            of.close();
            of.twice()
        })
    }
}

impl Cluster<'_> {
    /// A CTA has ended: factors of single rounds that no `tcgen05.cp` has taken, and without which MMAs went on; and those of places of which none ever was.
    pub fn rounds_left_out(&mut self, cta: usize) {
        let rounds = std::mem::take(&mut self.ctas[cta].loaded.rounds);
        let rule = "An MMA takes its scale factors from tensor memory, where a tcgen05.cp moves them (PTX ISA, tcgen05.cp; 9.7.16.10.7). Where none does, it multiplies by \
                    what lies there from before.";
        for (Place { at, by, taken, .. }, Brought { rounds, site, .. }) in rounds.left_out() {
            let Some(mma) = self.uses.again(by) else { continue };
            let mut diagnostic = self.problem(
                CODE,
                by,
                format!(
                    "in {} of {rounds} rounds, no tcgen05.cp takes the scale factors that are copied to {}",
                    rounds - taken,
                    self.shared_name(at)
                ),
                rule,
                "Let this tcgen05.cp be executed in each round in which MMAs follow: look what keeps it from one, its predicate or a branch."
                    .into(),
            );
            diagnostic.severity = Severity::Finding;
            diagnostic.labels[0].text = "this takes them in the other rounds".into();
            diagnostic.labels.push(self.label(site, "copied to shared memory here"));
            diagnostic
                .labels
                .push(self.label(mma, "this MMA multiplies by the same factors as those of the round before"));
            self.if_clean.push(diagnostic);
        }
        for (Brought { start, site, rounds, .. }, by) in rounds.never_taken() {
            let mut diagnostic = self.problem(
                CODE,
                site,
                format!("no tcgen05.cp takes anything of what is copied to {}", self.shared_name(start)),
                rule,
                "Let a tcgen05.cp take the factors of each stage: hold the start addresses of its descriptors (bits 0 to 13, in units of 16 bytes) against where \
                 they are copied to, and look what keeps it from a stage."
                    .into(),
            );
            diagnostic.severity = Severity::Note;
            diagnostic.labels[0].text = format!("copied there here, {}", counted(rounds, "time"));
            diagnostic.labels.push(self.label(by, "this takes what the same statement copies to another place"));
            self.if_clean.push(diagnostic);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_that_nobody_takes_is_left_out() {
        let mut rounds = Rounds::default();
        let left = |rounds: &Rounds| rounds.left_out().map(|(place, of)| (place.taken, of.rounds)).collect::<Vec<_>>();
        for round in 0..4 {
            rounds.bring(512, 1536, 7);
            rounds.taken(512, 8);
            if round != 2 {
                rounds.taken(1024, 9);
                rounds.taken(1024, 9);
            }
        }
        assert_eq!(left(&rounds), [(3, 4)]);
        rounds.bring(2048, 3072, 7);
        let never: Vec<_> = rounds.never_taken().map(|(of, by)| (of.start, by)).collect();
        assert_eq!(never, [(2048, 8)]);
        rounds.taken(2560, 9);
        assert_eq!(rounds.never_taken().count(), 0);
    }

    #[test]
    fn factors_that_are_multiplied_by_twice_as_often() {
        let again = |mmas: &[u32]| {
            let mut uses = Uses::default();
            for &mmas in mmas {
                uses.bring(0, 128, 8);
                (0..mmas).for_each(|n| uses.take(0, 128, n));
            }
            uses.again(8)
        };
        assert_eq!(again(&[4, 4, 4]), None);
        assert_eq!(again(&[4, 8, 4]), Some(7));
        // At the end of the depth there are fewer.
        assert_eq!(again(&[4, 2]), None);
        assert_eq!(again(&[4, 4, 2]), None);
    }
}
