//! Waits for mbarriers that said no, and whose warp went on: what it touches then races with what it should have waited for.

use super::cluster::Cluster;
use super::explain_copy::Cure;
use super::state::{ActorKind, Race};
use crate::order::Stamp;
use crate::program::facts::leads;

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
        let unheeded =
            race.unheeded.iter().rev().find(|unheeded| self.tells_of(unheeded.barrier, race.conflict.first, w))?;
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

    /// Whether a phase of an mbarrier tells this warp of an access: bytes that its copies bring, the commit behind an MMA, the arrival of copies of
    /// threads, or that of the access's thread behind it.
    fn tells_of(&self, barrier: u32, first: Stamp, w: usize) -> bool {
        let b = &self.barriers[barrier as usize];
        if b.actor == first.actor {
            return true;
        }
        let Some(by) = self.issuer(first) else { return false };
        let mut came = b.came.iter().filter(|came| came.warp == by && !came.bytes);
        match self.kind(first) {
            Some(ActorKind::Mmas { .. }) => came.any(|came| self.is_commit(came.site)),
            Some(ActorKind::AsyncCopies(_)) => came.any(|came| !self.is_commit(came.site)),
            _ => by != w && came.any(|came| !self.is_commit(came.site) && self.comes_behind(came.site, first.site)),
        }
    }

    /// Whether a way leads from one statement to another.
    pub fn comes_behind(&self, site: u32, first: u32) -> bool {
        let code = &self.kernel.code;
        let mut begins = (0..code.len()).filter(|&at| code[at].site == first);
        begins.any(|at| leads(code, at, &[], |inst| inst.site == site).is_some())
    }

    /// The warp that made an access, or issued what makes it.
    pub fn issuer(&self, stamp: Stamp) -> Option<usize> {
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
