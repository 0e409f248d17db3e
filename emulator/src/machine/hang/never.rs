//! A wait for an mbarrier at which nothing has ever arrived: what should, and why it does not.

use super::{Blocked, barrier_of};
use crate::diagnostic::{Diagnostic, Label, Meaning};
use crate::machine::cluster::Cluster;
use crate::machine::warp::Passed;
use crate::program::op::Op;

/// What may be meant for an mbarrier at which nothing arrives.
#[derive(Clone, Copy, Debug)]
enum Hint {
    /// This statement arrives at that mbarrier, where it does not belong.
    Odd(u32, u32),
    /// This statement arrives here, and was never executed.
    Reached(u32),
    /// This one announces bytes here, and is no arrival.
    Announced(u32),
    /// This one may be meant for it, and arrives at that mbarrier.
    Astray(u32, u32),
    /// This one completes phases of that mbarrier, for which no statement waits.
    Unheard(u32, u32),
    /// This MMA has no commit behind it.
    NotCommitted(u32),
    Nothing,
}

const ANYTHING: &str = "Let a thread execute mbarrier.arrive on it (with expect_tx if copies bring their bytes to it) before others wait. If it waits \
                        for something to be free, as it is at the beginning, let it begin with parity 1.";

const ANNOUNCED: &str = "mbarrier.expect_tx announces bytes, and is no arrival: let its thread execute mbarrier.arrive.expect_tx in its place.";

/// What is said of an arrival that would complete the phase.
pub const NEVER_EXECUTED: &str = "this would arrive, but was never executed";

const NOT_COMMITTED: &str =
    "Let the MMAs' thread execute tcgen05.commit to it, or a thread mbarrier.arrive, before others wait.";

impl Cluster<'_> {
    /// What is said of such a wait. `partner`: who should arrive, where it waits for this thread.
    pub fn never_told(
        &self,
        blocked: &[Blocked],
        root: &Blocked,
        (barrier, parity): (u32, u32),
        wait: Label,
        partner: Option<&Blocked>,
    ) -> Diagnostic {
        let b = &self.barriers[barrier as usize];
        let reached: Vec<u32> = self.arrival_sites_anywhere(b.offset);
        let odd = if reached.is_empty() { self.arrives_oddly(barrier) } else { None };
        // A commit that goes where it does not belong says more than that none comes here.
        if let Some(mma) = self.lacks_commit(blocked, root).filter(|mma| !mma.is_of_others() || odd.is_none()) {
            return self.not_committed(root, barrier, mma, wait);
        }
        if let Some(twin) = self.busy_twin(barrier) {
            return self.only_at_the_twin(blocked, barrier, twin, wait);
        }
        if let Some(other) = self.other_stage(blocked, root) {
            return self.only_at_another_stage(blocked, root, barrier, other, wait);
        }
        let name = self.barrier_name(barrier);
        let passed_before = self.warps[root.warp].passed.iter().any(|passed| passed.barrier == barrier);
        let by_threads = self.is_told_by_threads(b.offset);
        // It has begun well, at another mbarrier.
        let begun = |passed: &Passed| passed.site == root.site && passed.phase.is_none() && passed.barrier != barrier;
        let changed = parity == 0 && !passed_before && self.warps[root.warp].passed.iter().any(begun);
        let begins = parity == 0 && !passed_before && (self.loads_next(root.site) || by_threads);
        let hint = self.hint_of(blocked, barrier, odd, &reached);
        let help = match hint {
            Hint::Odd(site, _) => self.let_it_arrive_here(site).into(),
            Hint::Announced(_) => ANNOUNCED.into(),
            Hint::Unheard(_, other) => format!(
                "A phase of {} is complete, and no statement waits for it: if this wait is for what arrives there, let it name that mbarrier.",
                self.barrier_name(other)
            ),
            hint => match (self.awaits_readers(root, b.offset), hint) {
                (Some(readers), _) => readers.into(),
                _ if changed => "Its parity has changed too early: the wait has passed on another mbarrier with parity 1, for no phase yet, and this one has completed \
                                 none either. Let the parity change where the stage begins at 0 again."
                    .into(),
                _ if begins => self.begins_free(partner),
                (_, Hint::Astray(site, _)) => self.let_it_arrive_here(site).into(),
                (_, Hint::NotCommitted(_)) => NOT_COMMITTED.into(),
                _ => self.awaits_mmas(root.site).filter(|_| !by_threads).unwrap_or(ANYTHING).into(),
            },
        };
        let mut d = self.hang(root.site, format!("the wait for {name} never ends: nothing ever arrives at it"), help);
        d.labels = vec![wait];
        d.labels.extend(match hint {
            Hint::Odd(site, other) => Some(self.arrives_at(site, other).that_means(Meaning::Astray)),
            Hint::Astray(site, other) => {
                // Of the commits of two statements where one is counted, one is too many.
                let second = self.second_commit(&self.barriers[other as usize]) == Some(site);
                let meaning = if second { Meaning::Astray } else { Meaning::PerhapsAstray };
                Some(self.arrives_at(site, other).that_means(meaning))
            }
            Hint::Announced(site) => Some(self.label(site, "this announces bytes, and does not arrive")),
            Hint::Unheard(site, other) => {
                let other = self.barrier_name(other);
                Some(self.label(site, format!("this completes a phase of {other}, for which no statement waits")))
            }
            Hint::Reached(site) => return self.told_unexecuted(blocked, d, site),
            Hint::NotCommitted(site) => {
                let label = self.label(site, super::commit::NOT_COMMITTED);
                Some(label.that_means(Meaning::NotCommitted))
            }
            Hint::Nothing => None,
        });
        d
    }

    /// A hang whose arrival was never executed, and if it is known, what keeps all from it.
    fn told_unexecuted(&self, blocked: &[Blocked], mut d: Diagnostic, site: u32) -> Diagnostic {
        match self.barred(blocked, site, |_| true) {
            Some(barred) => self.add_barred(&mut d, site, NEVER_EXECUTED, &barred),
            None => d.labels.push(self.label(site, NEVER_EXECUTED)),
        }
        d
    }

    /// What the code and the run show of it, the surest first. `odd`, `reached`: what arrives where it does not belong, and what names this one.
    fn hint_of(&self, blocked: &[Blocked], barrier: u32, odd: Option<(u32, u32)>, reached: &[u32]) -> Hint {
        if let Some((site, other)) = odd {
            return Hint::Odd(site, other);
        }
        if let Some(&site) = reached.first() {
            return Hint::Reached(site);
        }
        if let Some(bytes) = self.barriers[barrier as usize].traffic.announced.first() {
            return Hint::Announced(bytes.site);
        }
        if let Some((site, other)) = self.arrives_astray(blocked, barrier) {
            return Hint::Astray(site, other);
        }
        if let Some((site, other)) = self.completes_unheard(blocked, barrier) {
            return Hint::Unheard(site, other);
        }
        // Its address is computed, and it has arrived nowhere.
        let offset = self.barriers[barrier as usize].offset;
        if let Some(site) = self.may_arrive(offset).into_iter().find(|&site| !self.has_arrived(site)) {
            return Hint::Reached(site);
        }
        let committed = |site| {
            let mut behind = self.kernel.code.iter().skip_while(move |inst| inst.site != site);
            behind.any(|inst| matches!(inst.op, Op::Commit { .. }))
        };
        let not_committed = self.issued.last.filter(|&site| !committed(site));
        not_committed.map_or(Hint::Nothing, Hint::NotCommitted)
    }

    fn arrives_at(&self, site: u32, other: u32) -> Label {
        let does = if self.is_commit(site) { "this commit tells" } else { "this arrives at" };
        self.label(site, format!("{does} {}", self.barrier_name(other)))
    }

    /// What to do about an arrival at another mbarrier.
    fn let_it_arrive_here(&self, site: u32) -> &'static str {
        match self.is_commit(site) {
            true => {
                "Let the commit arrive at it, where the wait is: the MMAs' thread and the one that waits go through the same mbarriers, in the same \
                 order."
            }
            false => {
                "Let the arrival be at it, where the wait is: both sides go through the same mbarriers, in the same order."
            }
        }
    }

    /// What to do about a wait that comes before all arrivals. `partner`: who should arrive, where it waits for this thread.
    fn begins_free(&self, partner: Option<&Blocked>) -> String {
        let arrives = partner.and_then(|partner| {
            let (who, its) = (self.warp_name(partner.warp), self.barrier_name(barrier_of(partner)?));
            Some(format!("{who} arrive at it before {who} waits for {its}"))
        });
        format!(
            "If it waits for a stage or an accumulator to be free, as all are at the beginning, let it begin with parity 1: that passes on a \
             fresh mbarrier. Otherwise let {}.",
            arrives.unwrap_or_else(|| "something arrive at it before".into())
        )
    }
}
