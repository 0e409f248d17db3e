//! Operands of a stage of a ring other than the one that the MMA's thread has waited for.

use super::boxes::Which;
use super::slices::Tile;
use crate::diagnostic::Label;
use crate::machine::barrier::mbarrier::Came;
use crate::machine::cluster::Cluster;
use crate::machine::explain::drafts::Draft;
use crate::machine::explain::names::Name;
use crate::machine::explain::phase::passed_before;
use crate::machine::state::{ActorKind, Race};
use crate::machine::warp::Passed;
use crate::order::{ActorId, GRANULE, Stamp};

/// So many operands of statements are remembered.
const MOST: usize = 64;

/// An operand that nobody has told the MMA's thread of, and that came with another mbarrier than the one that it has waited for, to which the
/// same statement brought it as well.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OtherStage {
    /// The MMA.
    site: u32,
    which: Which,
    /// The copy, and where it brought what is read: begin and end.
    copy: u32,
    at: [u32; 2],
    /// The mbarrier that tells of it, the one that was waited for, by which statement, and where the copy brought what that told of.
    read: u32,
    awaited: u32,
    wait: u32,
    there: u32,
    /// The other operand came with the one that was waited for.
    alone: bool,
}

impl Cluster<'_> {
    /// The mbarrier that a copy to an address completes on.
    fn brought_by(&self, cta: usize, at: u32) -> Option<u32> {
        let writer = self.ctas[cta].shared_shadow.writer(at.into())?;
        self.barrier_of(writer.actor)
    }

    pub fn barrier_of(&self, actor: ActorId) -> Option<u32> {
        self.barriers.iter().position(|b| b.actor == actor).map(|n| n as u32)
    }

    /// An MMA of a warp reads A and B at these addresses: do they lie in the stage that it has waited for?
    pub fn note_stage(&mut self, w: usize, cta: usize, site: u32, operands: [u32; 2]) {
        let by = operands.map(|at| self.ctas[cta].shared_shadow.writer(at.into()));
        for (n, which) in [Which::A, Which::B].into_iter().enumerate() {
            let Some(writer) = by[n] else { continue };
            // Most often the load comes before the MMA, and that of the other operand was told by the same mbarrier: nothing more is asked.
            let alike = by[1 - n].is_none_or(|other| other.actor == writer.actor);
            if alike && self.has_heard(w, writer) || self.other_stages.len() == MOST {
                continue;
            }
            let new = self.of_another_stage((w, cta, site), which, operands[n], (writer, by[1 - n]));
            if let Some(new) = new.filter(|new| !self.other_stages.contains(new)) {
                self.other_stages.push(new);
            }
        }
    }

    /// The same of what a `tcgen05.cp` of a warp reads, which has no operand beside it: so many bytes from an address on.
    pub fn note_stage_of_copy(&mut self, w: usize, cta: usize, site: u32, source: [u32; 2]) {
        let Some(writer) = self.ctas[cta].shared_shadow.writer(source[0].into()) else { return };
        if self.has_heard(w, writer) || self.other_stages.len() == MOST {
            return;
        }
        let new = self.source_of_another_stage((w, cta, site), source, writer);
        if let Some(new) = new.filter(|new| !self.other_stages.contains(new)) {
            self.other_stages.push(new);
        }
    }

    /// Scale factors of a stage may be less than a KiB: who brought them is known by the mbarriers, not by the boxes.
    fn source_of_another_stage(
        &self,
        (w, cta, site): (usize, usize, u32),
        [from, bytes]: [u32; 2],
        writer: Stamp,
    ) -> Option<OtherStage> {
        let (read, copy) = (self.barrier_of(writer.actor)?, writer.site);
        let Passed { barrier: awaited, site: wait, .. } =
            *self.warps[w].passed.iter().rfind(|passed| self.brings(passed))?;
        let (of, actor) = (&self.ctas[cta], self.barriers[awaited as usize].actor);
        let by = |at: u32| of.shared_shadow.writer(at.into()).is_some_and(|by| (by.actor, by.site) == (actor, copy));
        let there = (0..of.shared.bytes.len() as u32).step_by(GRANULE as usize).find(|&at| by(at))?;
        let at = [from, from + bytes];
        (awaited != read).then_some(OtherStage {
            site,
            which: Which::Copied,
            copy,
            at,
            read,
            awaited,
            wait,
            there,
            alone: false,
        })
    }

    /// Bytes came that count on the mbarrier of a wait.
    fn brings(&self, passed: &Passed) -> bool {
        self.barriers[passed.barrier as usize].came.iter().any(|came| came.bytes)
    }

    fn has_heard(&self, w: usize, by: Stamp) -> bool {
        self.warps[w].views.heard(by.actor) >= by.epoch
    }

    /// Whether the operand that begins at an address is of another stage than what the MMA's warp has waited for: the other operand's, if that is known.
    fn of_another_stage(
        &self,
        (w, cta, site): (usize, usize, u32),
        which: Which,
        start: u32,
        (writer, other): (Stamp, Option<Stamp>),
    ) -> Option<OtherStage> {
        let loaded = &self.ctas[cta].loaded;
        let tile = loaded.tile(start).filter(|tile| start - tile.start < tile.pitch)?;
        let (read, copy) = (self.barrier_of(writer.actor)?, tile.site);
        let passed = &self.warps[w].passed;
        // Who looks ahead has waited for the next stage last, and for that of the other operand before.
        let beside = other.filter(|by| by.actor != writer.actor && self.has_heard(w, *by));
        let beside = beside.and_then(|by| self.barrier_of(by.actor));
        let of_the_other = passed.iter().position(|passed| Some(passed.barrier) == beside);
        let awaited = if self.has_heard(w, writer) {
            // An operand that has stayed in a stage which was waited for before.
            let before = passed.iter().position(|passed| passed.barrier == read);
            of_the_other.filter(|at| before.is_none_or(|before| before < *at))?
        } else {
            of_the_other.or_else(|| passed.iter().rposition(|passed| self.brings(passed)))?
        };
        let Passed { barrier: awaited, site: wait, .. } = passed[awaited];
        let came = |came: &Came| came.bytes && came.site == copy;
        if awaited == read || !self.barriers[awaited as usize].came.iter().any(came) {
            return None;
        }
        // The same tensor's boxes: one statement may bring those of both operands.
        let tensor = |tile: &Tile| (tile.site, tile.bytes, tile.origin.map(|origin| origin.address));
        let mut tiles = loaded.tiles().filter(|other| tensor(other) == tensor(tile));
        let there = tiles.find(|tile| self.brought_by(cta, tile.start) == Some(awaited))?.start;
        let at = [tile.start, tile.start + tile.bytes];
        Some(OtherStage { site, which, copy, at, read, awaited, wait, there, alone: of_the_other.is_some() })
    }

    /// A copy of a ring's stage was not waited for by an MMA that reads bytes of that stage, and has waited for another one. Or it comes too early
    /// for one that reads one operand of that stage, and the other one of another: else the stage itself was freed too early.
    pub fn explain_stage(&self, race: &Race, name: &Name) -> Option<Draft> {
        let is_mma = |stamp: Stamp| matches!(self.kind(stamp), Some(ActorKind::Mmas { .. }));
        let (first, second) = (race.conflict.first, race.second);
        let reads_last = is_mma(second) && !race.late;
        let (load, mma) = if reads_last { (first, second) } else { (second, first) };
        if !is_mma(mma) {
            return None;
        }
        let (read, byte) = (self.barrier_of(load.actor)?, race.conflict.byte as u32);
        let is_it = |it: &&OtherStage| {
            (it.site, it.read, it.copy) == (mma.site, read, load.site)
                && (it.at[0]..it.at[1]).contains(&byte)
                && (reads_last || it.alone)
        };
        let it = self.other_stages.iter().find(is_it)?;
        let OtherStage { which, awaited, .. } = *it;
        let is_other = |other: &OtherStage| (other.site, other.awaited) == (it.site, awaited) && other.which != which;
        // What is told of both is one finding, which names the bytes of both.
        let operands = match self.other_stages.iter().any(is_other) {
            true => "A and B".to_string(),
            false => which.to_string(),
        };
        let (reader, what) = match which {
            Which::Copied => ("a tcgen05.cp reads a tile".to_string(), "the tile".to_string()),
            _ => (format!("an MMA reads {operands}"), which.to_string()),
        };
        let (read, awaited) = (self.barrier_name(it.read), self.barrier_name(awaited));
        let (at, there) = (self.shared_name(it.at[0]), self.shared_name(it.there));
        let labels: Vec<Label> = vec![
            self.label(mma.site, format!("{what} is read from {at}, of which {read} tells")),
            self.label(it.wait, format!("this wait is for {awaited}, which tells of {what} in {there}")),
            self.label(load.site, format!("this loads {what} to {at} and to {there}, as the stages go")),
        ];
        let help = match it.alone {
            _ if which == Which::Copied => format!(
                "Let the mbarrier that is waited for, and the addresses of what is copied and multiplied, be of one stage: behind the wait for {awaited}, \
                 {what} lies in {there}."
            ),
            true => format!(
                "Let the address of {which} go on with the stage, as its mbarrier and the other operand do: behind the wait for {awaited}, {which} \
                 lies in {there}."
            ),
            false => format!(
                "Let the mbarrier that is waited for, the addresses of A and B and the commit of a round be of one stage: behind the wait for {awaited}, \
                 {which} lies in {there}."
            ),
        };
        Some(Draft::of(race, Some(name))(
            "operand-not-ready",
            format!("{reader} of another stage than its thread has waited for: {{}}"),
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
            self.comes_by_threads(&self.barriers[barrier as usize]).any(|came| came.warp == reader as usize)
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
