//! Waits for mbarriers that said no, and whose warp went on: what it touches then races with what it should have waited for.

use super::cluster::Cluster;
use super::explain_copy::Cure;
use super::state::{ActorKind, Race};
use crate::order::Stamp;

const RULE: &str = "mbarrier.test_wait does not wait, and mbarrier.try_wait only for a time that the system sets: only where the predicate is true is \
                    the phase complete, and what came before it visible (PTX ISA 9.7.13.15.16).";

/// A wait that said that its phase is not complete, in code that does not ask again.
#[derive(Clone, Copy, Debug)]
pub struct Unheeded {
    pub barrier: u32,
    pub site: u32,
    /// Nothing reads the answer at all.
    pub unread: bool,
}

impl Cluster<'_> {
    /// A wait says no to a warp that goes on.
    pub fn goes_on_unheeding(&mut self, w: usize, new: Unheeded) {
        let list = &mut self.warps[w].unheeded;
        list.retain(|known| known.barrier != new.barrier);
        list.push(new);
    }

    /// What is missing between two accesses, if the warp of the second went on behind a wait that had said no, and that tells of the first: it
    /// is the mbarrier of the copy, or one at which the first one's warp arrives.
    pub fn cure_of_unheeded(&self, race: &Race) -> Option<Cure> {
        let w = self.issuer(race.second)?;
        let first = race.conflict.first;
        let tells = |barrier: u32| {
            let b = &self.barriers[barrier as usize];
            let comes = |w: usize| b.came.iter().any(|came| came.warp == w);
            b.actor == first.actor
                || self.issuer(first).is_some_and(|other| other != w && comes(other))
                || matches!(self.kind(first), Some(ActorKind::AsyncCopies(_)))
        };
        let unheeded = self.warps[w].unheeded.iter().rev().find(|unheeded| tells(unheeded.barrier))?;
        let (who, name) = (self.warp_name(w), self.barrier_name(unheeded.barrier));
        let text = if unheeded.unread {
            format!("{who} asks here whether the phase of {name} is complete, and nothing reads the answer")
        } else {
            format!(
                "this says to {who} that the phase of {name} is not complete, and it goes on: the wait is not repeated"
            )
        };
        let help = format!(
            "Repeat the wait for {name} until its predicate is true: branch back to it while the predicate is false."
        );
        Some(Cure { labels: vec![self.label(unheeded.site, text)], ..Cure::new(RULE, help) })
    }

    /// The warp that made an access, or issued what makes it.
    fn issuer(&self, stamp: Stamp) -> Option<usize> {
        match self.kind(stamp)? {
            ActorKind::Warp(w)
            | ActorKind::Mmas { warp: w, .. }
            | ActorKind::Wgmmas { warp: w }
            | ActorKind::BulkReads { warp: w }
            | ActorKind::BulkWrites { warp: w }
            | ActorKind::AsyncCopies(w) => Some(w as usize),
            _ => None,
        }
    }
}
