//! Stages of a ring that overlap: what is loaded for one mbarrier lies where something is loaded for another.

use super::drafts::Draft;
use super::names::{Name, counted};
use crate::diagnostic::Meaning;
use crate::machine::cluster::Cluster;
use crate::machine::state::{ActorKind, Race};
use crate::order::{Reason, Stamp};

const RULE: &str = "Bulk copies write whenever their bytes come, in no order; that a stage's mbarrier is waited for says nothing of the bytes of another \
                    stage (PTX ISA, cp.async.bulk; 8.9.1.1, asynchronous operations).";

impl Cluster<'_> {
    /// Two copies write the same bytes for two mbarriers, and the statement of one has brought bytes to that of the other as well: these are stages of
    /// one ring, and should have no bytes in common. Where one statement writes the very same box for both, its address does not go on at all, which is told otherwise.
    pub fn stages_overlap(&self, race: &Race, name: &Name) -> Option<Draft> {
        let (first, second) = (race.conflict.first, race.second);
        let loads = [first, second].iter().all(|&stamp| matches!(self.kind(stamp), Some(ActorKind::Mbarrier)));
        if !loads || race.conflict.reason != Reason::Unordered {
            return None;
        }
        let (one, other) = (self.barrier_of(first.actor)?, self.barrier_of(second.actor)?);
        let [[a, a_end], [b, b_end]] = race.boxes?;
        let brings =
            |n: u32, site: u32| self.barriers[n as usize].came.iter().any(|came| came.bytes && came.site == site);
        let in_a_ring = brings(one, second.site) || brings(other, first.site);
        if one == other || self.barriers[one as usize].cta != self.barriers[other as usize].cta || !in_a_ring {
            return None;
        }
        if first.site == second.site && a == b {
            return None;
        }
        let (before, now) = (self.barrier_name(one), self.barrier_name(other));
        let text = |name: &str, [start, end]: [u32; 2]| {
            format!("for {name}, this writes {} from {} on", counted(end - start, "byte"), self.shared_name(start))
        };
        let (here, there) = (text(&now, [b, b_end]), text(&before, [a, a_end]));
        let labels = match first.site == second.site {
            true => vec![self.label(second.site, format!("{here}; {there}")).that_means(Meaning::OneForTwoStages)],
            false => vec![
                self.label(second.site, here).that_means(Meaning::OneForTwoStages),
                self.label(first.site, there).that_means(Meaning::OneForTwoStages),
            ],
        };
        let waits_itself = self.waits_for_its_bytes_otherwise(second, race.by, other);
        let help = match waits_itself {
            true => format!(
                "Let the stage begin at 0 again behind the last one: {now} is what the warp that issues the copies waits for itself, and lies behind the \
                 mbarriers of this ring."
            ),
            false => "Give each stage bytes of its own: compare by how much the addresses go on from one stage to the next with the bytes of a stage, and the \
                      number of stages with the room there is."
                .into(),
        };
        let draft = Draft::of(race, Some(name))(
            "race-shared",
            format!("{{}} belongs to two stages: it is loaded for {now} and for {before}"),
            labels,
            RULE,
            help,
        );
        Some(draft)
    }

    /// From where to where the last copy by this statement goes that writes a byte of a CTA's shared memory.
    pub fn box_at(&self, stamp: Stamp, cta: usize, byte: u32) -> Option<[u32; 2]> {
        let copies = self.copies.iter().rev().filter(|copy| copy.site == stamp.site);
        let mut slots = copies.flat_map(|copy| copy.shared.iter().map(|slot| (slot.cta, slot.offset, copy.extent)));
        slots.find_map(|(of, start, bytes)| {
            (of == cta && (start..start + bytes).contains(&byte)).then_some([start, start + bytes])
        })
    }

    /// The warp of a copy has waited for the copy's mbarrier by a statement that lets it go on to copies: it takes it for one that says what is free.
    fn waits_for_its_bytes_otherwise(&self, stamp: Stamp, by: Option<usize>, barrier: u32) -> bool {
        let Some(warp) = by.and_then(|w| self.warps.get(w)) else { return false };
        let mut waits = warp.passed.iter().filter(|passed| passed.barrier == barrier);
        waits.any(|passed| self.leads_past_no_wait(passed.site, stamp.site))
    }
}
