//! Operands of a stage of a ring other than the one that the MMA's thread has waited for.

use super::cluster::Cluster;
use super::drafts::Draft;
use super::explain_phase::passed_before;
use super::names::Name;
use super::slices::Tile;
use super::state::{ActorKind, Race};
use crate::diagnostic::Label;
use crate::order::Stamp;

/// So many operands of statements are remembered.
const MOST: usize = 64;

/// An operand that came with another mbarrier than the last one that the MMA's thread has waited for, and to which the same statement brought it
/// as well.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OtherStage {
    /// The MMA.
    site: u32,
    is_b: bool,
    /// The copy, and where it brought what is read.
    copy: u32,
    at: u32,
    /// The mbarrier that told of it, the one that was waited for, by which statement, and where the copy brought what that told of.
    read: u32,
    awaited: u32,
    wait: u32,
    there: u32,
    /// The other operand came with the one that was waited for.
    alone: bool,
}

impl Cluster<'_> {
    /// The box that lies at an address, and the mbarrier that its copy completes on.
    fn brought_by(&self, cta: usize, at: u32) -> Option<(&Tile, u32)> {
        let tile = self.ctas[cta].loaded.tile(at)?;
        let writer = self.ctas[cta].shared_shadow.writer(at.into())?;
        let barrier = self.barriers.iter().position(|b| b.actor == writer.actor)?;
        Some((tile, barrier as u32))
    }

    /// An MMA of a warp reads A and B at these addresses: are they of the stage that it has waited for?
    pub fn note_stage(&mut self, w: usize, cta: usize, site: u32, operands: [u32; 2]) {
        if self.other_stages.len() == MOST {
            return;
        }
        let by = |n: usize| self.brought_by(cta, operands[n]);
        let (a, b) = (by(0), by(1));
        let brings = |barrier: u32| self.barriers[barrier as usize].came.iter().any(|came| came.bytes);
        let Some(last) = self.warps[w].passed.iter().rev().find(|passed| brings(passed.barrier)) else { return };
        let (awaited, wait) = (last.barrier, last.site);
        let other = |this: Option<(&Tile, u32)>, that: Option<(&Tile, u32)>, is_b: bool| {
            let start = operands[usize::from(is_b)];
            let (tile, read) = this.filter(|(tile, by)| *by != awaited && start - tile.start < tile.pitch)?;
            let (site_of, at) = (tile.site, tile.start);
            let came = |c: &super::mbarrier::Came| c.bytes && c.site == site_of;
            self.barriers[awaited as usize].came.iter().find(|c| came(c))?;
            let tiles = self.ctas[cta].loaded.tiles().filter(|tile| tile.site == site_of);
            let there =
                tiles.filter_map(|tile| self.brought_by(cta, tile.start)).find(|(_, by)| *by == awaited)?.0.start;
            let alone = that.is_some_and(|that| that.1 == awaited);
            Some(OtherStage { site, is_b, copy: site_of, at, read, awaited, wait, there, alone })
        };
        let new: Vec<OtherStage> = [other(a, b, false), other(b, a, true)].into_iter().flatten().collect();
        for new in new {
            if !self.other_stages.contains(&new) {
                self.other_stages.push(new);
            }
        }
    }

    /// A copy of a ring's stage races with an MMA that reads bytes of that stage and has waited for another one.
    pub fn explain_stage(&self, race: &Race, mma: Stamp, load: Stamp, name: &Name) -> Option<Draft> {
        if !matches!(self.kind(load), Some(ActorKind::Mbarrier)) {
            return None;
        }
        let barrier = self.barriers.iter().position(|b| b.actor == load.actor)? as u32;
        let is_it = |it: &&OtherStage| (it.site, it.read, it.copy) == (mma.site, barrier, load.site);
        let it = self.other_stages.iter().find(is_it)?;
        let operand = if it.is_b { "B" } else { "A" };
        let (read, awaited) = (self.barrier_name(it.read), self.barrier_name(it.awaited));
        let (at, there) = (self.shared_name(it.at), self.shared_name(it.there));
        let labels: Vec<Label> = vec![
            self.label(mma.site, format!("{operand} is read from {at}, of which {read} tells")),
            self.label(
                it.wait,
                format!("the last wait before it is for {awaited}, which tells of {operand} in {there}"),
            ),
            self.label(load.site, format!("this loads {operand} to {at} and to {there}, as the stages go")),
        ];
        let help = match it.alone {
            true => format!(
                "Let the address of {operand} go on with the stage, as its mbarrier and the other operand do: behind the wait for {awaited}, {operand} \
                 lies in {there}."
            ),
            false => format!(
                "Let the mbarrier that is waited for, the addresses of A and B and the commit of a round be of one stage: behind the wait for {awaited}, \
                 {operand} lies in {there}."
            ),
        };
        Some(Draft::of(race, Some(name))(
            "operand-not-ready",
            format!("an MMA reads {operand} of another stage than its thread has waited for: {{}}"),
            labels,
            "A stage's mbarrier tells that the copies that complete on it have brought their bytes, and of no other bytes (PTX ISA, cp.async.bulk; \
             9.7.13.15.16).",
            help,
        ))
    }

    /// A warp that issues MMAs waits for the mbarrier at which who reads a product arrives, and has passed there on a phase that it had passed on before:
    /// that wait, and what to try.
    pub fn waits_for_readers_again(&self, mma: Stamp, load: Stamp) -> Option<(Label, String)> {
        let (Some(ActorKind::Mmas { warp, .. }), Some(ActorKind::TensorLoads(reader))) =
            (self.kind(mma), self.kind(load))
        else {
            return None;
        };
        let passed = self.warps.get(warp as usize)?.passed.iter().rev();
        let told = |barrier: u32| {
            let mut came = self.barriers[barrier as usize].came.iter();
            came.any(|came| came.warp == reader as usize && !came.bytes && !self.is_commit(came.site))
        };
        let wait = passed.filter(|passed| passed.again || passed.lost).find(|passed| told(passed.barrier))?;
        let name = self.barrier_name(wait.barrier);
        let on = match wait.phase {
            None => "at once, on a fresh mbarrier,".to_string(),
            Some(phase) => format!("on phase {phase}"),
        };
        let (before, meaning) = passed_before(true);
        let text = format!(
            "this wait for parity {} of {name}, where {} arrives when it has read, passed {on}{before}",
            wait.parity,
            self.warp_name(reader as usize),
        );
        let help = format!("Let the parity of this wait for {name} go on with each phase: phase n has parity n mod 2.");
        Some((self.label(wait.site, text).that_means(meaning), help))
    }
}
