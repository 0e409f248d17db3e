//! Accesses, and when one is ordered after another.

use super::clock::{ActorId, Views};
use std::cell::Cell;

/// An access, as a memory remembers it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Stamp {
    /// Who.
    pub actor: ActorId,
    /// Its epoch at the time; 0: nobody.
    pub epoch: u32,
    /// The statement.
    pub site: u32,
    /// Index of its cluster: actors of different clusters are ordered through atomic operations only.
    pub cluster: u32,
    /// Through the asynchronous proxy.
    pub asynchronous: bool,
    /// Two strong accesses whose scopes include each other do not race.
    pub strength: Strength,
    /// Whether it adds to what is there.
    pub sum: Sum,
}

impl Stamp {
    /// A weak access through the generic proxy.
    pub fn new(actor: ActorId, epoch: u32, site: u32, cluster: u32) -> Stamp {
        Stamp { actor, epoch, site, cluster, asynchronous: false, strength: Strength::Weak, sum: Sum::No }
    }

    /// Whether all that races with another access of a place races with this one, too, as far as their strengths go.
    pub(super) fn covers(&self, other: &Stamp) -> bool {
        self.covers_all() || self.class() == other.class()
    }

    /// Whether that is so of any other.
    pub(super) fn covers_all(&self) -> bool {
        self.strength == Strength::Weak
    }

    /// The same as a relaxed reduction at the scope of the GPU.
    pub fn adds(self) -> Stamp {
        Stamp { strength: Strength::Gpu, sum: Sum::Last, ..self }
    }

    /// Accesses of one class race with the same others, as far as their strengths go.
    pub(super) fn class(&self) -> (Strength, bool) {
        (self.strength, self.asynchronous)
    }

    /// A weak access through the asynchronous proxy.
    pub fn asynchronous(actor: ActorId, epoch: u32, site: u32, cluster: u32) -> Stamp {
        Stamp { asynchronous: true, ..Stamp::new(actor, epoch, site, cluster) }
    }
}

/// Whether an access adds to what is there, and does not tell its thread what that was: `red`, or a bulk reduction. Which of several comes
/// first is then chance, and who comes after one of them need not come after the others (PTX ISA 8.9.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Sum {
    /// Of another kind.
    No,
    /// It does; somebody else, who does not come after it, has added to the place since.
    Beside,
    /// It does, and nobody has written the place since.
    Last,
}

/// Whether an access is strong, and for whom (PTX ISA 8.5, scopes).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Strength {
    /// Plain.
    Weak,
    /// At the scope of the CTA of this rank.
    Cta(u8),
    /// At the scope of its cluster.
    Cluster,
    /// At the scope of the GPU or the system.
    Gpu,
}

/// An access that is about to happen.
#[derive(Clone, Copy, Debug)]
pub struct Access<'a> {
    /// How it will be remembered.
    pub stamp: Stamp,
    /// What its actor (or the warp that issued it) knows.
    pub views: &'a Views,
    /// The memory is not reached through proxies (tensor memory).
    pub proxyless: bool,
    /// Of global memory, for which other proxy fences count than for shared memory.
    pub global: bool,
    /// Accesses of the same cluster are not held against each other: somebody else does that.
    pub across: bool,
    /// Its actor is a queue of operations that run by themselves, in no order: it comes after an earlier one only if who issues it has waited for
    /// that.
    pub queued: bool,
    /// What it comes after, because it comes after what read it, counts: all accesses of the memory are checked, so that a read which
    /// was found to be no race came after the write that it read.
    pub transitive: bool,
    /// Where scopes are looked at: the rank of each actor's CTA, [`NOWHERE`] for one that makes no generic accesses.
    pub homes: Option<&'a [u8]>,
    /// Is set by a write on top of one that the same actor made since it told anything last: who races with the second has missed the first,
    /// which nobody remembers.
    pub again: Option<&'a Cell<bool>>,
}

/// No CTA.
pub const NOWHERE: u8 = u8::MAX;

/// Why two accesses are not ordered; what weighs most comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Reason {
    /// No chain of synchronisation leads from the first to the second.
    Unordered,
    /// There is a chain, but a release or an acquire of it is at a scope that does not include the other side.
    TooNarrow,
    /// There is a chain, but no `fence.proxy.async` lies on it.
    NotFenced,
    /// There is a chain, but a wait of it is relaxed.
    NotAcquired,
    /// There is a chain, but no `tcgen05.fence::before_thread_sync` at its begin.
    NoFenceBefore,
    /// There is a chain, but no `tcgen05.fence::after_thread_sync` at its end.
    NoFenceAfter,
}

/// Both are strong and go through the same proxy, and each scope includes the other's thread (PTX ISA 8.6, moral strength).
fn strong_together(first: &Stamp, second: &Stamp) -> bool {
    if first.asynchronous != second.asynchronous {
        return false;
    }
    match (first.strength, second.strength) {
        (Strength::Weak, _) | (_, Strength::Weak) => false,
        (Strength::Gpu, Strength::Gpu) => true,
        // A CTA's rank is known of accesses at its scope only; a wider partner counts as one of its threads.
        (Strength::Cta(a), Strength::Cta(b)) => first.cluster == second.cluster && a == b,
        _ => first.cluster == second.cluster,
    }
}

impl<'a> Access<'a> {
    /// Of memory that is reached through proxies.
    pub fn new(stamp: Stamp, views: &'a Views) -> Access<'a> {
        Access {
            stamp,
            views,
            proxyless: false,
            global: false,
            across: false,
            queued: false,
            transitive: false,
            homes: None,
            again: None,
        }
    }

    /// Of tensor memory.
    pub fn of_tensor_memory(stamp: Stamp, views: &'a Views) -> Access<'a> {
        Access { proxyless: true, transitive: true, ..Access::new(stamp, views) }
    }

    /// Why it is not ordered after an earlier access; `None`: it is.
    #[inline]
    pub(super) fn unordered(&self, first: &Stamp) -> Option<Reason> {
        if first.epoch == 0 {
            return None;
        }
        let crosses = !first.asynchronous && self.stamp.asynchronous;
        if first.cluster != self.stamp.cluster {
            let (hb, fenced) = self.views.far(first.cluster, first.actor);
            return match (first.epoch > hb, crosses && first.epoch > fenced) {
                (true, _) => Some(Reason::Unordered),
                (false, true) => Some(Reason::NotFenced),
                (false, false) => None,
            };
        }
        if first.actor == self.stamp.actor {
            // What one statement does in one group may be parts of one copy.
            let same = (first.epoch, first.site) == (self.stamp.epoch, self.stamp.site);
            let ordered = !self.queued || same || first.epoch <= self.views.hb.get(first.actor);
            return (!ordered).then_some(Reason::Unordered);
        }
        if first.epoch > self.views.hb.get(first.actor) {
            return Some(self.heard_late(first, crosses));
        }
        if self.proxyless {
            let reason = if first.epoch > self.views.before.get(first.actor) {
                Reason::NoFenceBefore
            } else {
                Reason::NoFenceAfter
            };
            return (first.epoch > self.views.after.get(first.actor)).then_some(reason);
        }
        let fenced = if self.global { &self.views.fenced_global } else { &self.views.fenced };
        (crosses && first.epoch > fenced.get(first.actor)).then_some(Reason::NotFenced)
    }

    /// Why it is not ordered after an access that it knows nothing of, unless through a relaxed wait. Loads and stores of threads of two
    /// CTAs want an acquire at the scope of the cluster, of which ptxas makes more than of a relaxed wait: it empties the first-level
    /// cache of global memory.
    #[cold]
    fn heard_late(&self, first: &Stamp, crosses: bool) -> Reason {
        let generic = !first.asynchronous && !self.stamp.asynchronous;
        match self.views.late() {
            Some(late)
                if late.hb.get(first.actor) >= first.epoch
                    && !(generic && (self.global || self.of_two_ctas(first))) =>
            {
                let fenced =
                    |views: &Views| (if self.global { &views.fenced_global } else { &views.fenced }).get(first.actor);
                let missing = crosses && first.epoch > fenced(late).max(fenced(self.views));
                if missing { Reason::NotFenced } else { Reason::NotAcquired }
            }
            _ => Reason::Unordered,
        }
    }

    /// Whether two generic accesses are of threads of different CTAs, where that is looked at.
    fn of_two_ctas(&self, first: &Stamp) -> bool {
        let home =
            |stamp: &Stamp| self.homes.and_then(|homes| homes.get(stamp.actor as usize)).copied().unwrap_or(NOWHERE);
        let (from, to) = (home(first), home(&self.stamp));
        from != to && from != NOWHERE && to != NOWHERE
    }

    /// Whether a read comes after the write of another CTA only through a scope that does not include both. What only overwrites
    /// needs no more than to come later: production kernels say at `.cta` scope that a buffer is free.
    pub(super) fn too_narrow(&self, first: &Stamp) -> Option<Reason> {
        if first.asynchronous || self.stamp.asynchronous || first.cluster != self.stamp.cluster {
            return None;
        }
        let known = first.epoch <= self.views.hb.get(first.actor) && first.epoch > self.views.scoped.get(first.actor);
        (known && self.of_two_ctas(first) && !strong_together(first, &self.stamp)).then_some(Reason::TooNarrow)
    }

    /// It goes through the asynchronous proxy to shared memory, and a proxy fence of which it knows follows an earlier generic access.
    pub(super) fn has_fenced(&self, first: &Stamp) -> bool {
        let crosses = !first.asynchronous && self.stamp.asynchronous && !self.global && !self.proxyless;
        crosses && first.cluster == self.stamp.cluster && first.epoch <= self.views.fenced.get(first.actor)
    }

    /// Nothing needs to be remembered of an earlier access of a place behind this write: all that races with it races with this one, too.
    #[inline]
    pub(super) fn displaces(&self, first: &Stamp) -> bool {
        self.stamp.covers_all() || self.stamp.class() == first.class() && !self.stands_beside(first)
    }

    /// Both add to a place, and neither comes after the other. Those of one actor count as one.
    pub(super) fn stands_beside(&self, first: &Stamp) -> bool {
        let of = |stamp: &Stamp| (stamp.cluster, stamp.actor);
        self.stamp.sum != Sum::No
            && first.sum != Sum::No
            && self.stamp.class() == first.class()
            && of(&self.stamp) != of(first)
            && !(self.across && first.cluster == self.stamp.cluster)
            && self.unordered(first).is_some()
    }

    /// As a strong read, it tells its thread of the sums before that it does not race with (PTX ISA 8.9.5, observation order).
    pub(super) fn observes(&self) -> bool {
        self.stamp.strength != Strength::Weak
    }

    /// It takes the place of an earlier write.
    #[inline]
    pub(super) fn replaces(&self, first: &Stamp, first_writes: bool) {
        if let Some(again) = self.again
            && first_writes
            && (first.actor, first.epoch) == (self.stamp.actor, self.stamp.epoch)
        {
            again.set(true);
        }
    }

    /// Why it races with an earlier access, when one of them writes.
    #[inline]
    pub(super) fn races(&self, first: &Stamp) -> Option<Reason> {
        let apart = self.across && first.cluster == self.stamp.cluster;
        self.unordered(first).filter(|_| !apart && !strong_together(first, &self.stamp))
    }
}
