//! Waits for mbarriers that said no, and whose warp went on: what it touches then races with what it should have waited for.

use super::copy::Cure;
use super::drafts::Draft;
use crate::diagnostic::{Label, Severity};
use crate::machine::barrier::mbarrier::Used;
use crate::machine::cluster::{Cluster, Stop};
use crate::machine::state::{ActorKind, Race};
use crate::machine::warp::Warp;
use crate::order::{Reason, Stamp};
use crate::program::facts::leads;
use crate::program::op::{Inst, Op};

const RULE: &str = "mbarrier.test_wait does not wait, and mbarrier.try_wait only for a time that the system sets: only where the predicate is true is \
                    the phase complete, and what came before it visible (PTX ISA 9.7.13.15.16).";

/// A wait that said that its phase is not complete, in code that does not ask again.
#[derive(Clone, Copy, Debug)]
pub struct Unheeded {
    pub warp: usize,
    pub barrier: u32,
    pub site: u32,
    /// Nothing reads the answer at all.
    pub unread: bool,
    /// The warp's epoch then.
    pub epoch: u32,
    /// The warp had got past this mbarrier never before, and past no mbarrier at all: it cannot ask ahead, for another phase than that of what it
    /// touches next.
    pub anew: bool,
    pub at_first: bool,
}

/// What to do about a wait that is not repeated.
pub fn repeat(name: &str) -> String {
    format!(
        "Repeat the wait for {name} until its predicate is true: branch back to it while the predicate is false, as in `@!%p bra WAIT;`."
    )
}

impl Cluster<'_> {
    /// A wait says no to a warp that goes on. `unread`: nothing reads what it says.
    pub fn goes_on_unheeding(&mut self, warp: usize, barrier: u32, site: u32, unread: bool) {
        let Warp { epoch, unheeded, passed, .. } = &mut self.warps[warp];
        unheeded.retain(|known| known.barrier != barrier);
        let (anew, at_first) = (passed.iter().all(|passed| passed.barrier != barrier), passed.is_empty());
        unheeded.push(Unheeded { warp, barrier, site, unread, epoch: *epoch, anew, at_first });
        // What it touches next is told apart from what it did before.
        self.warps[warp].advance();
    }

    /// What is missing between two accesses, if the warp of the second went on behind a wait that had said no, and that tells of the first: it
    /// is the mbarrier of the copy, or one at which the first one's warp arrives.
    pub fn cure_of_unheeded(&self, race: &Race) -> Option<Cure> {
        let unheeded = self.unheeded_before(race).or_else(|| self.unheeded_before_the_first(race))?;
        let (who, name) = (self.warp_name(unheeded.warp), self.barrier_name(unheeded.barrier));
        let text = format!(
            "this says to {who} that the phase of {name} is not complete, and it goes on: the wait is not repeated"
        );
        Some(Cure { labels: vec![self.label(unheeded.site, text)], ..Cure::new(RULE, repeat(&name)) })
    }

    /// A race of tensor memory, with the wait that said no to the warp of the second access, if that can have asked for nothing else.
    pub fn with_an_unheeded_wait(&self, race: &Race, mut draft: Draft) -> Draft {
        let alone = draft.severity > Severity::Note && race.conflict.reason == Reason::Unordered;
        let asked = self.unheeded_before(race).is_some_and(|wait| wait.anew);
        if alone
            && asked
            && let Some(cure) = self.cure_of_unheeded(race)
        {
            draft.labels.extend(cure.labels);
            (draft.rule, draft.help) = (cure.rule, cure.help);
        }
        draft
    }

    /// What is told of a race of which one access lies behind a wait that tells of the other, and nothing reads the answer of it: the wait, however
    /// many accesses race behind it.
    pub fn of_an_unread_wait(&self, race: &Race, draft: Draft) -> Draft {
        // On some schedules who should have waited comes first.
        let tells = |wait: &&Unheeded, of| self.tells_of(wait.barrier, of, wait.warp);
        let either = |wait: &&Unheeded| tells(wait, race.conflict.first) || tells(wait, race.second);
        let unread = race.unheeded.iter().rev().filter(|wait| wait.unread).find(either);
        // Where synchronisation is there, and lacks a fence or a scope, that is what lacks.
        let alone = draft.severity > Severity::Note && race.conflict.reason == Reason::Unordered;
        let Some(wait) = unread.filter(|_| alone) else { return draft };
        let (who, name) = (self.warp_name(wait.warp), self.barrier_name(wait.barrier));
        let asks = self.label(wait.site, format!("{who} asks here whether its phase is complete"));
        // Of each access what it is: of several races, what lacks between them is this wait alone.
        let accesses = draft.labels.into_iter().filter(|label| label.place != asks.place);
        let mut labels: Vec<Label> = std::iter::once(asks.clone()).chain(accesses).collect();
        // What would tell it names itself: others may read the same product without having heard of it.
        let commit = self.barriers[wait.barrier as usize].came.iter().find(|came| self.is_commit(came.site));
        let commit = commit.map(|came| self.label(came.site, format!("this commit arrives at {name}")));
        labels.extend(commit.filter(|commit| labels.iter().all(|known| known.place != commit.place)));
        Draft {
            code: "wait-result-unread",
            title: format!(
                "{who} goes on although its wait for {name} may not have passed: nothing reads what it says"
            ),
            names: vec![],
            labels,
            rule: RULE,
            help: repeat(&name),
            ..draft
        }
    }

    /// An arrival of a warp is one too many for its phase: it has gone on behind a wait that nothing reads the answer of.
    /// `before`: its last use of the mbarrier.
    pub fn behind_an_unread_wait(&self, w: usize, before: Option<Used>, stop: Stop) -> Stop {
        let mut diagnostic = stop?;
        let since = |wait: &&Unheeded| before.is_none_or(|before| wait.epoch >= before.epoch);
        let mut latest = self.warps[w].unheeded.iter().rev();
        let wait = latest.find(|wait| wait.unread && since(wait)).filter(|_| diagnostic.code == "mbarrier-overflow");
        if let Some(wait) = wait {
            let (who, name) = (self.warp_name(w), self.barrier_name(wait.barrier));
            diagnostic.title = format!(
                "{who} goes on although its wait for {name} may not have passed, and arrives too early: {}",
                diagnostic.title
            );
            diagnostic.help = repeat(&name);
            let text = format!("{who} asks here whether its phase is complete, and nothing reads the answer");
            diagnostic.labels.insert(0, self.label(wait.site, text));
        }
        Some(diagnostic)
    }

    /// A wait in a loop without an end of which nothing reads the answer: its mbarrier.
    pub fn unread_in_a_loop(&self, w: usize) -> Option<String> {
        let (site, _) = self.endless(w)?;
        let unread = |inst: &Inst| inst.site == site && matches!(inst.op, Op::BarrierWait { .. }) && inst.facts.unread;
        self.kernel.code.iter().find(|inst| unread(inst))?;
        let mut latest = self.warps[w].unheeded.iter().rev();
        latest.find(|wait| wait.site == site).map(|wait| self.barrier_name(wait.barrier))
    }

    /// The wait that the warp of the second access has gone on behind though it said no, and that tells of the first.
    fn unheeded_before(&self, race: &Race) -> Option<Unheeded> {
        let mut latest = race.unheeded.iter().rev();
        latest.find(|wait| self.tells_of(wait.barrier, race.conflict.first, wait.warp)).copied()
    }

    /// The same of the first access, where that comes too early for what the second brings.
    fn unheeded_before_the_first(&self, race: &Race) -> Option<Unheeded> {
        let (first, second) = (race.conflict.first, race.second);
        let Some(ActorKind::Warp(w)) = self.kind(first) else { return None };
        let sure = |wait: &Unheeded| match self.barriers[wait.barrier as usize].actor == second.actor {
            true => wait.anew,
            false => wait.at_first,
        };
        let before = |wait: &&Unheeded| {
            wait.warp == w as usize
                && wait.epoch < first.epoch
                && sure(wait)
                && self.tells_of(wait.barrier, second, wait.warp)
        };
        race.unheeded.iter().rev().find(before).copied()
    }

    /// The waits that said no to the warps of a race's accesses, those of the second's last.
    pub fn unheeded_by(&self, race: &Race) -> Vec<Unheeded> {
        let of_copy = |stamp: Stamp| {
            let by = |copy: &&crate::machine::tma::Copy| copy.site == stamp.site;
            self.copies.iter().rev().find(by).map(|copy| copy.warp)
        };
        let by = |stamp: Stamp| match self.kind(stamp) {
            Some(ActorKind::Mbarrier) => of_copy(stamp),
            _ => self.loads_or_issues(stamp),
        };
        let warps = [by(race.conflict.first), race.by.or_else(|| by(race.second))];
        let warps = warps.into_iter().flatten().filter_map(|w| self.warps.get(w));
        warps.flat_map(|warp| &warp.unheeded).copied().collect()
    }

    /// The warp that makes an access, also of tensor memory, or has issued what makes it.
    fn loads_or_issues(&self, stamp: Stamp) -> Option<usize> {
        match self.kind(stamp) {
            Some(ActorKind::TensorLoads(w) | ActorKind::TensorStores(w)) => Some(w as usize),
            _ => self.issuer(stamp),
        }
    }

    /// Whether a phase of an mbarrier tells this warp of an access: bytes that its copies bring, the commit behind an MMA, the arrival of copies of
    /// threads, or that of the access's thread behind it.
    fn tells_of(&self, barrier: u32, first: Stamp, w: usize) -> bool {
        let b = &self.barriers[barrier as usize];
        if b.actor == first.actor {
            return true;
        }
        let Some(by) = self.loads_or_issues(first) else { return false };
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
