//! Scopes of mbarrier operations: an arrival or a wait at `.cta` scope, as it is where none is written, is no synchronisation with another
//! CTA (PTX ISA 8.5, 8.8, 8.9.4, 9.7.13.15.13, 9.7.13.15.16).
//!
//! Production kernels hand buffers back to other CTAs at that scope, and are right: what overwrites a buffer needs no more than to come
//! later. So `hb` takes every arrival for one of the cluster. Beside it, [`Views::scoped`] goes from CTA to CTA only where both scopes are
//! wide enough, and a load of what a thread of another CTA has stored is held against it. Few kernels have such loads; for the others
//! it stays empty.

use crate::diagnostic::Severity;
use crate::machine::cluster::Cluster;
use crate::machine::explain::drafts::Draft;
use crate::machine::explain::names::Name;
use crate::machine::state::{ActorKind, Race, RaceMemory};
use crate::machine::warp::Warp;
use crate::order::{Clock, NOWHERE, Stamp, Views};
use crate::program::atomic::Scope;
use crate::program::op::Op;

const RULE: &str = "Where no scope is written, an mbarrier arrival releases to its own CTA only, and a wait acquires from its own CTA only. \
                    What a thread of another CTA has stored is ordered before a load when both scopes include the other thread (PTX ISA \
                    8.5, 8.8, 8.9.4, 9.7.13.15.13, 9.7.13.15.16).";

const RELAXED_RULE: &str = "A wait with .relaxed says that a phase is complete, and orders no other access behind it (PTX ISA 8.8, \
                            9.7.13.15.16). ptxas makes the same instruction of it as of a wait that acquires at .cta scope, but is free to \
                            move accesses in front of it.";

/// Memory order and scope of an arrival or a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Order {
    pub relaxed: bool,
    /// At `.cluster` scope.
    pub wide: bool,
}

impl Order {
    /// It releases to other CTAs, or acquires from them, without a fence.
    fn reaches_others(self) -> bool {
        self.wide && !self.relaxed
    }
}

/// What a warp's fences at `.cluster` scope do for its other arrivals and waits. The ISA wants these at `.cluster` scope as well; a fence
/// beside one at `.cta` scope is taken to be enough.
#[derive(Debug, Default)]
pub struct Fences {
    /// What the warp knew at the last of them.
    told: Clock,
    /// What its waits have seen of other CTAs: known after the next.
    seen: Clock,
}

impl Fences {
    pub fn acquire(&mut self, scope: Scope, views: &mut Views) {
        if scope >= Scope::Cluster && !views.scoped.is_empty() {
            views.scoped.join(&std::mem::take(&mut self.seen));
        }
    }

    pub fn release(&mut self, scope: Scope, views: &Views) {
        if scope >= Scope::Cluster && !views.scoped.is_empty() {
            self.told.clone_from(&views.scoped);
        }
    }
}

/// A statement that did not tell other CTAs all that it might have, or did not learn it from them.
#[derive(Debug)]
struct Narrow {
    site: u32,
    waits: bool,
    order: Order,
    /// What was not told.
    kept: Clock,
}

/// What a cluster keeps to judge scopes.
#[derive(Debug, Default)]
pub struct Scopes {
    /// They are looked at.
    pub matter: bool,
    homes: Vec<u8>,
    narrow: Vec<Narrow>,
}

impl Scopes {
    /// See [`crate::order::Access::homes`].
    pub fn homes(&self) -> Option<&[u8]> {
        self.matter.then_some(&self.homes)
    }

    /// A wait passes: what arrivals of other CTAs told.
    pub fn learn(&mut self, warp: &mut Warp, beyond: &Clock, order: Order, site: u32) {
        if beyond.is_empty() {
            return;
        }
        if order.reaches_others() {
            warp.views.scoped.join(beyond);
        } else {
            warp.fences.seen.join(beyond);
            self.note(site, true, order, beyond);
        }
    }

    fn note(&mut self, site: u32, waits: bool, order: Order, kept: &Clock) {
        match self.narrow.iter_mut().find(|known| (known.site, known.waits) == (site, waits)) {
            Some(known) => known.kept.join(kept),
            None => self.narrow.push(Narrow { site, waits, order, kept: kept.clone() }),
        }
    }
}

impl Cluster<'_> {
    /// There is a new actor.
    pub fn scopes_know(&mut self, kind: ActorKind) {
        if self.scopes.matter {
            let home = match kind {
                // Warps are made for the last CTA that there is.
                ActorKind::Warp(w) | ActorKind::AsyncCopies(w) => {
                    self.warps.get(w as usize).map_or(self.ctas.len() - 1, |warp| warp.cta) as u8
                }
                _ => NOWHERE,
            };
            self.scopes.homes.push(home);
        }
    }

    /// A warp that knows this arrives: tells it to waits at `.cluster` scope if the mbarrier is another CTA's. Gives what all waits learn.
    pub fn tell_scoped(&mut self, w: usize, barrier: u32, scoped: &Clock, order: Order, site: u32) -> Clock {
        let (warp, b) = (&self.warps[w], &mut self.barriers[barrier as usize]);
        if b.cta == warp.cta {
            return scoped.clone();
        }
        if order.reaches_others() {
            b.current.beyond.join(scoped);
        } else if self.scopes.matter {
            b.current.beyond.join(&warp.fences.told);
            self.scopes.note(site, false, order, scoped);
        }
        Clock::default()
    }

    /// What two accesses meet in.
    fn name_of(&self, race: &Race) -> Name {
        let byte = race.conflict.byte;
        match race.memory {
            RaceMemory::Global(buffer) => Name::Given(self.global.buffers[buffer].describe(byte)),
            RaceMemory::Shared(_) => self.shared_place(byte as u32),
            RaceMemory::Tensor(_) => self.tensor_place((byte / 16) as u32 % crate::machine::tensor_memory::COLUMNS),
        }
    }

    /// All that orders two accesses is a wait with `.relaxed`: a note.
    pub fn explain_relaxed(&self, race: &Race) -> Draft {
        let (first, second) = (race.conflict.first, race.second);
        let name = self.name_of(race);
        let relaxed = |site| {
            let waits = |op: &Op| matches!(op, Op::BarrierWait { relaxed: true, .. });
            self.kernel.code.iter().any(|inst| inst.site == site && waits(&inst.op))
        };
        let verb = |writes| if writes { "writes" } else { "reads" };
        let mut labels = vec![
            self.label(second.site, format!("{} {} it here", self.who(second), verb(race.conflict.second_writes))),
            self.label(first.site, format!("{} {} it here", self.who(first), verb(race.conflict.first_writes))),
        ];
        let wait = race.passed.iter().rev().find(|passed| relaxed(passed.site));
        labels.extend(wait.map(|wait| self.label(wait.site, "this wait is relaxed")));
        Draft {
            severity: Severity::Note,
            ..Draft::of(race, Some(&name))(
                "missing-acquire",
                format!(
                    "{} {} {{}} behind {}, but only a relaxed wait puts the two in order",
                    self.who(second),
                    verb(race.conflict.second_writes),
                    self.who(first)
                ),
                labels,
                RELAXED_RULE,
                "Write the wait as mbarrier.try_wait.parity without .relaxed, which acquires; or put a fence.acq_rel.cta behind it.".into(),
            )
        }
    }

    /// The statement that kept a store from another CTA.
    fn keeper(&self, first: Stamp) -> Option<&Narrow> {
        let kept = self.scopes.narrow.iter().filter(|narrow| narrow.kept.get(first.actor) >= first.epoch);
        // One with a fence beside it may have told it all the same.
        kept.min_by_key(|narrow| (narrow.order.wide, narrow.waits))
    }

    /// A load comes after the store of another CTA, but a scope on the way is too narrow.
    pub fn explain_scope(&self, race: &Race) -> Draft {
        let (first, second) = (race.conflict.first, race.second);
        let in_global = matches!(race.memory, RaceMemory::Global(_));
        let who = |stamp| if in_global { self.who_of_grid(stamp) } else { self.who(stamp) };
        let (writer, reader) = (who(first), who(second));
        let mut labels = vec![
            self.label(second.site, format!("{reader} reads it here")),
            self.label(first.site, format!("{writer} writes it here")),
        ];
        let keeper = self.keeper(first);
        let (text, help) = match keeper.map(|narrow| (narrow.order.wide, narrow.waits)) {
            Some((false, false)) => (
                "this arrival is at .cta scope: it tells other CTAs of no store",
                "Write the arrival as mbarrier.arrive.release.cluster, and the wait as mbarrier.try_wait.acquire.cluster.",
            ),
            Some((false, true)) => (
                "this wait is at .cta scope: it learns of no store of another CTA",
                "Write the wait as mbarrier.try_wait.acquire.cluster.",
            ),
            Some((true, false)) => (
                "this arrival is relaxed: it tells what came before the last fence at .cluster scope",
                "Put a fence.acq_rel.cluster between the store and the relaxed arrival.",
            ),
            Some((true, true)) => (
                "this wait is relaxed: what it saw is known behind the next fence at .cluster scope",
                "Put a fence.acq_rel.cluster between the relaxed wait and the load.",
            ),
            None => ("", "Let what releases and what acquires on the way both be at .cluster scope."),
        };
        labels.extend(keeper.map(|narrow| self.label(narrow.site, text)));
        let code = match race.memory {
            RaceMemory::Global(_) => "race-global",
            RaceMemory::Shared(_) | RaceMemory::Tensor(_) => "race-shared",
        };
        let name = self.name_of(race);
        let title =
            format!("{writer} writes {name}, {reader} reads it, and what orders the two counts within a CTA only");
        Draft::of(race, None)(code, title, labels, RULE, help.into())
    }
}
