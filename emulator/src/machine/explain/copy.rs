//! Races in which an asynchronous copy has a part: what says that the copy is complete, and so what is missing, depends on the pair.

use super::bytes::ANNOUNCE;
use super::phase::passed_before;
use crate::diagnostic::Label;
use crate::machine::barrier::mbarrier::sum;
use crate::machine::cluster::Cluster;
use crate::machine::state::{ActorKind, Race};
use crate::machine::tma::Copy;
use crate::machine::warp::Passed;
use crate::order::Stamp;
use crate::program::op::{Op, TmaKind};

/// What would put two accesses in order.
pub struct Cure {
    pub rule: &'static str,
    pub help: String,
    /// What else the reader should look at.
    pub labels: Vec<Label>,
}

impl Cure {
    pub fn new(rule: &'static str, help: impl Into<String>) -> Cure {
        Cure { rule, help: help.into(), labels: vec![] }
    }

    /// Its labels, behind those of the two accesses.
    pub fn labels_behind(&self, accesses: [Label; 2]) -> Vec<Label> {
        accesses.into_iter().chain(self.labels.iter().cloned()).collect()
    }
}

const ARRIVAL_RULE: &str =
    "mbarrier.arrive.relaxed tells who waits nothing of what came before it (PTX ISA 9.7.13.15.13).";
const LOAD_RULE: &str = "A bulk copy into shared memory is complete when its bytes have completed a phase of its mbarrier; only who has waited \
                         for that phase may touch what it writes, or overwrite what it reads (PTX ISA, cp.async.bulk).";
const STORE_RULE: &str = "A bulk copy out of shared memory is waited for by the thread that issued it: cp.async.bulk.wait_group.read says that \
                          its source has been read, cp.async.bulk.wait_group that its writes are made, too (PTX ISA, \
                          cp.async.bulk.wait_group).";
const QUEUE_RULE: &str = "Asynchronous copies of one thread run by themselves, in no order, also those of one group: only waiting for the first puts the \
                          second behind it (PTX ISA, cp.async; cp.async.bulk; 8.9.1.1, asynchronous operations).";
const TWICE_RULE: &str = "Each thread that executes a bulk copy issues one, and elect.sync elects a thread in every warp that comes to it; two copies \
                          that write the same bytes are a data race unless one is waited for before the other is issued (PTX ISA 8.7.1, \
                          elect.sync, cp.async.bulk).";
const AFAR_RULE: &str = "A bulk copy into shared memory is complete when its bytes have completed a phase of its mbarrier; threads wait for mbarriers of \
                         their own CTA only (PTX ISA, cp.async.bulk; 9.7.13.15.16).";
const BEFORE_RULE: &str = "A copy is ordered after the accesses before it only through synchronisation of their threads with the thread \
                           that issues it; written data need a fence.proxy.async as well (PTX ISA 8.6, cp.async.bulk).";
const ASYNC_RULE: &str = "cp.async is asynchronous also for the thread that issues it: cp.async.wait_group or cp.async.wait_all waits for \
                          the own copies, a barrier after it for those of others (PTX ISA, cp.async.wait_group).";
const TELLS_RULE: &str = "cp.async.mbarrier.arrive arrives when all cp.async that its thread has issued before are complete; no other arrival waits for these \
                          (PTX ISA, cp.async.mbarrier.arrive; 8.9.1.1, asynchronous operations).";
const GROUP_RULE: &str = "cp.async.wait_group N waits until at most the N newest groups that the thread has committed are pending (PTX ISA, \
                          cp.async.wait_group).";
pub const FLAG_RULE: &str = "Accesses of other threads are ordered by a release pattern and an acquire pattern on the same location; a relaxed or \
                             volatile access orders nothing else (PTX ISA 8.7, 8.8).";

impl Cluster<'_> {
    /// What is missing between two accesses of which a copy makes one or both; `None`: neither is a copy's.
    pub fn cure_of_copy(&self, race: &Race, global: bool) -> Option<Cure> {
        use ActorKind::{AsyncCopies, BulkReads, BulkWrites, Mbarrier};
        let (first, second) = (race.conflict.first, race.second);
        let cure = |rule, help: String| Some(Cure::new(rule, help));
        if self.kind(first).is_none() && race.conflict.first_writes && self.is_bulk_store(first.site) {
            return cure(
                STORE_RULE,
                "Before others are told of it (st.release, red.release), let the thread that issued the copy execute \
                 cp.async.bulk.commit_group and cp.async.bulk.wait_group 0, without .read."
                    .into(),
            );
        }
        if self.kind(first).is_none()
            && !race.conflict.first_writes
            && matches!(self.kind(second), Some(BulkWrites { .. }))
        {
            return cure(
                STORE_RULE,
                "If the other CTA is to read what this copy stores, let the thread that issued the copy execute cp.async.bulk.wait_group 0, \
                 without .read, before it tells others; if it is to read what was there before, let it say when it has."
                    .into(),
            );
        }
        if let (Some(BulkWrites { .. }), Some(BulkWrites { .. })) = (self.kind(first), self.kind(second))
            && first.site == second.site
            && first.actor != second.actor
            && let (Some(one), Some(other)) = (self.cta_of(first), self.cta_of(second))
            && one == other
        {
            return Some(self.cure_of_two_stores(first, second));
        }
        if first.actor == second.actor && first.cluster == second.cluster {
            match self.kind(first) {
                Some(BulkWrites { .. }) if self.cure_of_stores_that_overlap(race).is_some() => {
                    return self.cure_of_stores_that_overlap(race);
                }
                Some(BulkWrites { .. }) => {
                    let (wait, why) =
                        Cluster::wait_for_group(race, "cp.async.bulk.commit_group", "cp.async.bulk.wait_group");
                    let help = format!(
                        "Between the two, let the thread execute {wait} (without .read), or give each a destination of its own.{why}"
                    );
                    return cure(QUEUE_RULE, help);
                }
                Some(AsyncCopies(_)) => {
                    let (wait, why) = Cluster::wait_for_group(race, "cp.async.commit_group", "cp.async.wait_group");
                    let help = format!(
                        "Between the two, let the thread execute {wait}, or give each a destination of its own.{why}"
                    );
                    return cure(QUEUE_RULE, help);
                }
                _ => {}
            }
        }
        if let Some(cure) = self.cure_of_a_wrong_source(race) {
            return Some(cure);
        }
        let then = |issuer: u32, other: Stamp| match self.kind(other) {
            Some(ActorKind::Warp(w)) if w == issuer => String::new(),
            _ => ", and then let it synchronise with the others (bar.sync)".to_string(),
        };
        match (self.kind(first)?, self.kind(second)) {
            (Mbarrier, _) => {
                let told = self.cure_of_a_missing_wait(race).or_else(|| self.cure_of_a_reader_not_counted(race));
                Some(told.unwrap_or_else(|| self.cure_of_load(first, second, &race.passed)))
            }
            (_, Some(Mbarrier)) if self.meant_the_load(race) || self.passed_again_for_load(race).is_some() => {
                let passed = self.passed_again_for_load(race);
                Some(self.cure_of_load(second, first, passed.as_slice()))
            }
            (kind @ (BulkReads { warp } | BulkWrites { warp }), other) => {
                let reads = matches!(kind, BulkReads { .. });
                let straight = matches!(other, Some(ActorKind::Warp(_))) && reads;
                let told = if straight { self.cure_of_an_arrival_straight_before(first, second, false) } else { None };
                let told = told.or_else(|| self.cure_of_a_wait_that_nobody_hears_of(race));
                let told = told.or_else(|| self.cure_of_a_group_wait(race));
                if told.is_some() {
                    return told;
                }
                if race.comes_late && matches!(other, Some(ActorKind::Warp(_))) {
                    return cure(
                        BEFORE_RULE,
                        "Let every thread that writes it execute fence.proxy.async.shared::cta and a barrier (bar.sync) before the thread behind it issues \
                         the copy."
                            .into(),
                    );
                }
                let then = then(warp, second);
                let (commit, wait) = ("cp.async.bulk.commit_group", "cp.async.bulk.wait_group");
                if reads {
                    let (wait, why) = Cluster::wait_for_group(race, commit, &format!("{wait}.read"));
                    let help = format!("Before {{}} is written again, let the thread that issued the copy execute {wait}{then}.{why}");
                    return Some(Cure { labels: self.waits_of_others(warp as usize), ..Cure::new(STORE_RULE, help) });
                }
                let (wait, why) = Cluster::wait_for_group(race, commit, wait);
                cure(
                    STORE_RULE,
                    format!(
                        "Before the result is used, let the thread that issued the copy execute {wait} (without .read){then}.{why}"
                    ),
                )
            }
            (AsyncCopies(warp), kind) => {
                let told = self.cure_of_a_group_wait(race).or_else(|| self.cure_of_a_group_left(warp, first));
                let told = told.or_else(|| self.cure_of_a_plain_arrival(race, warp));
                if told.is_some() {
                    return told;
                }
                let fence = if second.asynchronous { ", fence.proxy.async" } else { "" };
                let barrier = if kind == Some(ActorKind::Warp(warp)) { "" } else { ", then a CTA barrier (bar.sync)" };
                let (wait, why) = Cluster::wait_for_group(race, "cp.async.commit_group", "cp.async.wait_group");
                cure(
                    ASYNC_RULE,
                    format!("After the copies, let every thread that issued some execute {wait}{fence}{barrier}.{why}"),
                )
            }
            (_, Some(Mbarrier)) if race.conflict.second_writes => self.cure_of_an_arrival_before(race).or_else(|| self.cure_of_a_missing_wait(race)).or_else(|| self.cure_of_a_reader_not_counted(race)).or_else(|| self.cure_of_a_relaxed_arrival(first)).or_else(|| cure(
                BEFORE_RULE,
                "Let all who use {} say that it is free, by an mbarrier.arrive each (or a CTA barrier), and let the thread that issues \
                 the copy wait for that first."
                    .into(),
            )),
            (_, Some(BulkReads { .. })) if self.cure_of_an_arrival_in_front(race).is_some() => {
                self.cure_of_an_arrival_in_front(race)
            }
            (_, Some(Mbarrier | BulkReads { .. } | BulkWrites { .. })) => {
                let space = if global { "global" } else { "shared::cta" };
                let fence = if race.conflict.first_writes { format!("fence.proxy.async.{space} and ") } else { "".into() };
                cure(
                    BEFORE_RULE,
                    format!(
                        "Let every thread that {} it execute {fence}a barrier (bar.sync) before the thread behind it issues the copy.",
                        if race.conflict.first_writes { "writes" } else { "reads" }
                    ),
                )
            }
            (_, Some(AsyncCopies(_))) => self.cure_of_a_missing_wait(race).or_else(|| cure(
                BEFORE_RULE,
                "Put a CTA barrier (bar.sync) between the accesses before and the cp.async that overwrites {}.".into(),
            )),
            _ => None,
        }
    }

    /// Two threads of a CTA store to the same place by one statement: one of them is enough, unless each takes bytes of its own there.
    fn cure_of_two_stores(&self, first: Stamp, second: Stamp) -> Cure {
        let from = |stamp: Stamp| {
            let warp = self.issuer(stamp)?;
            let of_stamp = |copy: &&Copy| {
                (copy.site, copy.writes.actor, copy.writes.epoch) == (stamp.site, stamp.actor, stamp.epoch)
            };
            let copy = self.copies.iter().find(of_stamp)?;
            Some((warp, copy.shared.first()?.offset))
        };
        match (from(first), from(second)) {
            (Some((one, a)), Some((other, b))) if a != b => {
                let (at, from) = (self.shared_name(a), self.shared_name(b));
                let (one, other) = (self.warp_name(one), self.warp_name(other));
                let text = match at == from {
                    true => format!("{one} and {other} copy two parts of {at} to one place"),
                    false => format!("{one} copies {at}, {other} copies {from}, to one place"),
                };
                let labels = vec![self.label(first.site, text)];
                let help = "Give each warp a destination of its own: check how the address, or the coordinates, depend on the warp.";
                Cure { labels, ..Cure::new(super::GLOBAL_RULE, help) }
            }
            _ => Cure::new(TWICE_RULE, "Let one thread of the CTA issue it: choose a warp before elect.sync."),
        }
    }

    /// Who comes second has waited for an mbarrier at which the warp of a cp.async arrives: by an arrival that does not wait for its copies, or in front of
    /// the copy.
    fn cure_of_a_plain_arrival(&self, race: &Race, warp: u32) -> Option<Cure> {
        let copy = race.conflict.first;
        let op = |site: u32| self.kernel.code.iter().find(|inst| inst.site == site).map(|inst| &inst.op);
        let waits = race.passed.iter().rev().filter(|passed| passed.fresh && !passed.lost);
        let mut arrivals = waits.flat_map(|passed| {
            let came = self.barriers[passed.barrier as usize].came.iter();
            came.filter(|came| came.warp == warp as usize && !came.bytes).map(|came| (came.site, passed.barrier))
        });
        arrivals.find_map(|(site, barrier)| {
            let (who, name) = (self.warp_name(warp as usize), self.barrier_name(barrier));
            let (text, help) = match op(site)? {
                Op::BarrierArrive { .. } if self.leads_straight(copy.site, site) => (
                    format!("{who} arrives at {name} here, whether its copies are complete or not"),
                    "Let the copies arrive themselves, by cp.async.mbarrier.arrive.noinc instead of this arrival; or let every thread execute \
                     cp.async.wait_all in front of it.",
                ),
                Op::AsyncArrive { .. } if !self.leads_straight(copy.site, site) && self.leads_straight(site, copy.site) => (
                    format!("this tells {name} of the copies that {who} has issued before it, and of none behind it"),
                    "Let cp.async.mbarrier.arrive come behind the copies that it is to tell of.",
                ),
                _ => return None,
            };
            Some(Cure { labels: vec![self.label(site, text)], ..Cure::new(TELLS_RULE, help) })
        })
    }

    /// A warp has never waited for a copy of its own by cp.async, and waits for groups so that some are left.
    fn cure_of_a_group_left(&self, warp: u32, copy: Stamp) -> Option<Cure> {
        self.warps.get(warp as usize).filter(|warp| warp.views.came_before(copy.actor) < copy.epoch)?;
        let left = |op: &Op| match op {
            Op::AsyncWait { pending } => pending.filter(|&groups| groups > 0),
            _ => None,
        };
        let (site, groups) = self.kernel.code.iter().rev().find_map(|inst| Some((inst.site, left(&inst.op)?)))?;
        let newest = if groups == 1 { "newest group".into() } else { format!("{groups} newest groups") };
        let text = format!("this leaves the {newest} of a thread pending, also an empty one");
        Some(Cure {
            rule: GROUP_RULE,
            help: format!(
                "Let {} wait for this copy's group: where no more copies follow, commit an empty group in place of each (cp.async.commit_group), or \
                 execute cp.async.wait_group 0.",
                self.warp_name(warp as usize)
            ),
            labels: vec![self.label(site, text)],
        })
    }

    /// Waits for bulk groups by warps of the same CTA that have issued no copy in the whole run.
    fn waits_of_others(&self, warp: usize) -> Vec<Label> {
        let cta = |w: usize| self.warps.get(w).map(|warp| warp.cta);
        let has_none = |w: usize| self.warps.get(w).is_some_and(|warp| warp.bulk.is_empty());
        let others = self.findings.bulk_waits_for_none.iter().filter(|&&(w, _)| cta(w) == cta(warp) && has_none(w));
        let text = |w| {
            format!("{} waits here for its own copies, and has issued none: this waits for nothing", self.warp_name(w))
        };
        others.take(1).map(|&(w, site)| self.label(site, text(w))).collect()
    }

    /// Whether the thread of a bulk store waits for its writes somewhere behind it.
    pub fn is_waited_for(&self, site: u32) -> bool {
        let waits = |op: &Op| matches!(op, Op::BulkWait { pending: 0, read: false });
        let mut code = self.kernel.code.iter();
        self.is_bulk_store(site) && code.any(|inst| waits(&inst.op) && self.comes_behind(inst.site, site))
    }

    fn is_bulk_store(&self, site: u32) -> bool {
        let stores = |op: &Op| matches!(op, Op::Tma(op) if matches!(op.kind, TmaKind::Store | TmaKind::Reduce(_)));
        self.kernel.code.iter().any(|inst| inst.site == site && stores(&inst.op))
    }

    /// Whether who reads bytes before a load writes them wants what the load brings: nothing was there before, or it knows of no
    /// phase of the load's mbarrier.
    fn meant_the_load(&self, race: &Race) -> bool {
        use ActorKind::{Mmas, Warp, Wgmmas};
        let (first, second) = (race.conflict.first, race.second);
        let (Some(Warp(w) | Mmas { warp: w, .. } | Wgmmas { warp: w }), false, true) =
            (self.kind(first), race.conflict.first_writes, race.conflict.second_writes)
        else {
            return false;
        };
        race.unwritten || self.warps.get(w as usize).is_some_and(|warp| warp.views.came_before(second.actor) == 0)
    }

    /// A load of the TMA engine, whose mbarrier was not waited for, or in the wrong phase.
    fn cure_of_load(&self, load: Stamp, other: Stamp, passed: &[Passed]) -> Cure {
        let barrier = self.barrier_of(load.actor);
        let Some((barrier, phase)) = barrier.and_then(|n| Some((n, self.barriers[n as usize].phase_of(load.epoch)?)))
        else {
            return Cure::new(LOAD_RULE, "Wait for the copy's mbarrier first (mbarrier.try_wait.parity).");
        };
        let name = self.barrier_name(barrier);
        let parity = phase % 2;
        let who = match self.kind(other) {
            Some(
                ActorKind::Warp(w)
                | ActorKind::Mmas { warp: w, .. }
                | ActorKind::Wgmmas { warp: w }
                | ActorKind::BulkReads { warp: w }
                | ActorKind::AsyncCopies(w),
            ) => self.warp_name(w as usize),
            _ => "the thread that issues the second".into(),
        };
        let passed = passed.iter().find(|p| p.barrier == barrier);
        if let Some(Passed { site, parity: waited, phase: seen, again, .. }) = passed
            && seen.is_none_or(|seen| seen < phase)
        {
            let b = &self.barriers[barrier as usize];
            // A response may still be on its way where the run stops.
            let on_its_way = if self.is_request(load.site) { 16 } else { 0 };
            let brought = sum(&b.traffic.brought).max(on_its_way);
            if let Some(seen) = seen
                && b.phase == phase
                && brought > 0
                && sum(&b.traffic.announced) == 0
            {
                // Nothing held the phase open until the copy was issued.
                let early = b.previous.last().filter(|_| seen + 1 == phase);
                let early = early.map(|&(site, _)| {
                    self.label(site, format!("this completes phase {seen} without the copy's bytes"))
                });
                return Cure {
                    rule: LOAD_RULE,
                    help: format!(
                        "Announce {brought} bytes with the arrival for phase {seen}: mbarrier.arrive.expect_tx with {brought}. Then the \
                         phase completes when the copies have brought them."
                    ),
                    labels: early.into_iter().collect(),
                };
            }
            if let Some(seen) = seen
                && (b.phase, seen + 1) == (phase, phase)
                && b.arrivals.is_empty()
                && let Some(announced) = b.traffic.announced.first()
            {
                // No arrival will complete the phase that the copy has come to.
                let late = format!("these bytes are announced when phase {seen} of {name} is complete");
                let passed = format!("this wait for parity {waited} of {name} passed on phase {seen}");
                return Cure {
                    rule: LOAD_RULE,
                    help: ANNOUNCE.into(),
                    labels: vec![self.label(announced.site, late), self.label(*site, passed)],
                };
            }
            let why = match seen {
                None => "at once: on a fresh mbarrier, parity 1 counts as complete".to_string(),
                Some(seen) => format!("on phase {seen}"),
            };
            // In a loop: neither the stage nor the parity has gone on.
            let (before, meaning) = passed_before(*again);
            let help = match again {
                true => format!(
                    "Let the mbarrier and the parity of this wait go on from round to round: {who} has seen this phase of {name} before, and \
                     the copy's bytes complete phase {phase}, which has parity {parity}."
                ),
                false => format!(
                    "Wait for parity {parity} of {name}: the copy's bytes complete phase {phase}, and phase n has parity n mod 2."
                ),
            };
            let passed = format!("this wait for parity {waited} of {name} passed {why}{before}");
            return Cure { rule: LOAD_RULE, help, labels: vec![self.label(*site, passed).that_means(meaning)] };
        }
        let whose = self.barriers[barrier as usize].cta;
        if self.cta_of(other).is_some_and(|cta| cta != whose) {
            return self.cure_from_afar(load, other, &who, (whose, &name, parity));
        }
        Cure::new(
            LOAD_RULE,
            format!(
                "Let {who} wait for {name} first: mbarrier.try_wait.parity with parity {parity}, until it says true; the copy's bytes \
                 complete its phase {phase}."
            ),
        )
    }

    /// A load whose mbarrier, of this CTA and name, waited for with this parity, lies where the other's threads cannot wait for it.
    fn cure_from_afar(&self, load: Stamp, other: Stamp, who: &str, barrier: (usize, &str, u64)) -> Cure {
        let (cta, name, parity) = barrier;
        let between = |op: &Op, site: u32| {
            matches!(op, Op::ClusterArrive { relaxed: true, .. }) && (load.site..other.site).contains(&site)
        };
        if let Some(arrival) = self.kernel.code.iter().find(|inst| between(&inst.op, inst.site)) {
            let help = "Let the arrival at the cluster barrier release: leave .relaxed out. It then tells the other CTAs what its thread has waited \
                        for.";
            let labels = vec![
                self.label(arrival.site, "relaxed: who waits behind this does not know that the copy is complete"),
            ];
            return Cure { labels, ..Cure::new(AFAR_RULE, help) };
        }
        Cure::new(
            AFAR_RULE,
            format!(
                "Let a thread of CTA {cta} wait for {name} with parity {parity}, and then tell {who}: by mbarrier.arrive.release.cluster at an \
                 mbarrier of its CTA, or at a cluster barrier."
            ),
        )
    }

    /// A warp says by arrivals that order nothing, and by no other, that what it has accessed is free.
    fn cure_of_a_relaxed_arrival(&self, first: Stamp) -> Option<Cure> {
        if !matches!(self.kind(first), Some(ActorKind::Warp(_))) || first.asynchronous {
            return None;
        }
        let code = self.kernel.code.iter();
        let arrivals = code.filter_map(|inst| match inst.op {
            Op::BarrierArrive { relaxed, expect: None, .. } if inst.site > first.site => Some((inst.site, relaxed)),
            _ => None,
        });
        let behind: Vec<_> = arrivals.filter(|&(site, _)| self.comes_behind(site, first.site)).collect();
        let all_relaxed = behind.iter().all(|&(_, relaxed)| relaxed);
        let &(site, _) = behind.first().filter(|_| all_relaxed)?;
        let help = "Let the arrival release: leave .relaxed out, and write .release.cluster where another CTA waits.";
        let labels = vec![self.label(site, "relaxed: this orders none of the accesses before it")];
        Some(Cure { labels, ..Cure::new(ARRIVAL_RULE, help) })
    }

    /// Warps that tell each other of shared memory by a relaxed arrival, or by a flag in it that orders nothing.
    pub fn cure_of_words(&self, first: Stamp, second: Stamp) -> Option<Cure> {
        let is_warp = |stamp| matches!(self.kind(stamp), Some(ActorKind::Warp(_)));
        if !is_warp(first) || !is_warp(second) || first.site == second.site {
            return None;
        }
        let apart = self.apart(first, second);
        let tells =
            |op: &Op| matches!(op, Op::BarrierArrive { relaxed: true, expect: None, remote, .. } if *remote || !apart);
        if let Some(arrival) = self.kernel.code.iter().find(|inst| inst.site > first.site && tells(&inst.op)) {
            let help =
                "Let the arrival release: leave .relaxed out, and write .release.cluster where another CTA waits.";
            let labels = vec![self.label(arrival.site, "relaxed: this orders none of the accesses before it")];
            return Some(Cure { labels, ..Cure::new(ARRIVAL_RULE, help) });
        }
        let (labels, scope) = (self.relaxed_flags(first, second, true), if apart { "cluster" } else { "cta" });
        // One that raises it, and one that looks: of them one may be as it should be.
        (labels.len() == 2 || labels.len() == 1 && self.has_half_a_flag(first, second)).then(|| Cure {
            rule: FLAG_RULE,
            help: format!(
                "Set the flag with st.release.{scope} (or atom.release.{scope}) after the data, and read it with ld.acquire.{scope} before the \
                 data; or put a fence.acq_rel.{scope} before the one and after the other."
            ),
            labels,
        })
    }
}
