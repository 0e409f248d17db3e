//! Loads of tensor memory from another accumulator than the one of which the last wait has told: the address of the load and the mbarrier do not go on
//! together.

use super::drafts::Draft;
use super::names::Name;
use crate::machine::cluster::Cluster;
use crate::machine::state::{ActorKind, Race};
use crate::order::Stamp;

/// So many statements of warps are remembered, and so many of the last commits looked at.
const MOST: usize = 64;

/// An accumulator of a thread's MMAs: its first column, how many, and the last MMA of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sum {
    pub column: u32,
    pub columns: u32,
    pub epoch: u32,
}

impl Sum {
    fn overlaps(&self, (column, columns): (u32, u32)) -> bool {
        self.column < column + columns && column < self.column + self.columns
    }
}

/// A warp reads columns behind a wait that tells of a product elsewhere, which it has not read.
#[derive(Clone, Copy, Debug)]
pub struct OtherAccumulator {
    warp: usize,
    /// The load, the wait, and the commit that completed the phase.
    load: u32,
    wait: u32,
    commit: u32,
    barrier: u32,
    phase: u64,
    /// Where the product begins.
    column: u32,
}

impl Cluster<'_> {
    /// A warp loads columns in which it knows of no product that it has not loaded: has its last wait told it of another one?
    pub fn note_other_accumulator(&mut self, w: usize, load: u32, columns: (u32, u32)) {
        let known = self.other_accumulators.iter().any(|other| (other.warp, other.load) == (w, load));
        if known || self.other_accumulators.len() == MOST {
            return;
        }
        // Who reads another one does so early on.
        let asked = self.issued.asked.entry((w, load)).or_default();
        if *asked == MOST {
            return;
        }
        *asked += 1;
        if let Some(other) = self.of_another_accumulator(w, load, columns) {
            self.other_accumulators.push(other);
        }
    }

    fn of_another_accumulator(&self, w: usize, load: u32, columns: (u32, u32)) -> Option<OtherAccumulator> {
        let passed = &self.warps[w].passed;
        let last = self.commits.len().saturating_sub(4 * MOST);
        let (passing, n) = passed.iter().rev().find_map(|passing| {
            let of_phase = |n: &usize| {
                let commit = &self.commits[*n];
                passing.phase.is_some() && (commit.barrier, commit.phase) == (passing.barrier, passing.phase)
            };
            Some((passing, (last..self.commits.len()).rev().find(of_phase)?))
        })?;
        let commit = &self.commits[n];
        // What it covers that no commit before has told of, to those who wait where this warp does.
        let to_readers = |barrier: u32| passed.iter().any(|passed| passed.barrier == barrier);
        let before = self.commits[last..n]
            .iter()
            .rev()
            .find(|before| before.queue == commit.queue && (before.site == commit.site || to_readers(before.barrier)));
        let before = before.map_or(0, |before| before.epoch);
        let told: Vec<_> = commit.sums.iter().filter(|sum| sum.epoch > before).collect();
        let read = |sum: &Sum| {
            self.issued.has_loaded(w, (sum.column, sum.columns), |mma| {
                mma.actor == commit.queue && (before + 1..=commit.epoch).contains(&mma.epoch)
            })
        };
        let &first = told.first()?;
        let elsewhere = told.iter().all(|sum| !sum.overlaps(columns) && !read(sum));
        let (cta, theirs) = (self.warps[w].cta, self.warps[commit.warp].cta);
        (elsewhere && cta | 1 == theirs | 1).then_some(OtherAccumulator {
            warp: w,
            load,
            wait: passing.site,
            commit: commit.site,
            barrier: passing.barrier,
            phase: passing.phase?,
            column: first.column,
        })
    }

    /// A load races with an MMA of an accumulator that it should not have read at that time.
    pub fn explain_other_accumulator(&self, race: &Race, mma: Stamp, load: Stamp, name: &Name) -> Option<Draft> {
        let Some(ActorKind::TensorLoads(w)) = self.kind(load) else { return None };
        let is_it = |other: &&OtherAccumulator| (other.warp, other.load) == (w as usize, load.site);
        let other = self.other_accumulators.iter().find(is_it)?;
        let (who, barrier) = (self.who(load), self.barrier_name(other.barrier));
        let product = self.tensor_name(other.column);
        let draft = Draft::of(race, Some(name));
        let draft = draft(
            "mma-not-awaited",
            format!(
                "{who} reads {{}} behind a wait for {barrier}, which tells of another accumulator: of that in {product}"
            ),
            vec![
                self.label(load.site, format!("{who} reads it here")),
                self.label(other.wait, format!("this wait passed on phase {} of {barrier}", other.phase)),
                self.label(
                    other.commit,
                    format!("this commit completes it, behind the MMAs of the product in {product}"),
                ),
                self.label(mma.site, "this MMA writes what is read, and nothing orders the two"),
            ],
            "A tcgen05.commit tells who waits for its mbarrier that the MMAs which its thread has issued before are complete, and of no others (PTX ISA \
             9.7.16.6.2.1.1, 9.7.16.6.4.4).",
            format!(
                "Let the address of the load and the mbarrier go on together: behind this phase of {barrier}, the product lies in {product}."
            ),
        );
        Some(Draft { early: true, ..draft })
    }
}
