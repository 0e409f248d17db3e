//! Arrivals that a phase does not take, and why: the lanes of a warp of which some count to the next phase, and one too many, behind a wait that
//! has passed when it should not have.

use super::names::{counted, distinct};
use crate::diagnostic::{Meaning, Severity};
use crate::machine::barrier::mbarrier::Used;
use crate::machine::cluster::{Cluster, Stop};
use crate::machine::state::At;
use crate::machine::warp::{Passed, State};
use crate::program;
use crate::program::op::Op;

impl Cluster<'_> {
    /// A warp has stopped at an arrival. If the wait that it passed last has let it pass for the same phase before, that is told first: the
    /// arrival comes too early, and there is none too many.
    pub fn behind_a_wait_that_passed_again(&self, w: usize, stop: Stop) -> Stop {
        let mut diagnostic = stop?;
        let passed =
            self.warps[w].passed.last().filter(|passed| passed.again && diagnostic.code == "mbarrier-overflow");
        if let Some(&Passed { barrier, site, parity, phase, .. }) = passed {
            let (who, name) = (self.warp_name(w), self.barrier_name(barrier));
            let on = match phase {
                Some(phase) => format!("for phase {phase}"),
                None => "on the fresh mbarrier".to_string(),
            };
            diagnostic.title = format!(
                "{who} passes its wait for {name} {on} a second time, and arrives too early: {}",
                diagnostic.title
            );
            diagnostic.rule = "A wait by parity passes as long as the phase of that parity is the last one that is complete, also for who has seen \
                               it (PTX ISA 9.7.13.15.16); and the pending count of a phase cannot fall below 0 (9.7.13.15.2)."
                .into();
            diagnostic.help = format!(
                "Let the parity of the wait for {name} change with each phase: in a ring, where the stage begins at 0 again, there alone, and \
                 on from one tile to the next."
            );
            let wait = format!("{who} passes here {on}, by parity {parity}, as it did before");
            diagnostic
                .labels
                .insert(1.min(diagnostic.labels.len()), self.label(site, wait).that_means(Meaning::PassedAgain));
        }
        Some(diagnostic)
    }

    /// Several lanes of a warp arrive together where fewer are counted: one elected lane may be meant. `pending`: before they arrived.
    pub fn behind_its_own_lanes(&self, w: usize, who: u32, pending: u32, stop: Stop) -> Stop {
        let mut diagnostic = stop?;
        let lanes = who.count_ones();
        if diagnostic.code == "mbarrier-overflow" && lanes > 1 && pending < lanes {
            let who = self.warp_name(w);
            diagnostic.title = format!("{lanes} lanes of {who} arrive together: {}", diagnostic.title);
            if let Some(here) = diagnostic.labels.first_mut() {
                here.text = format!("{lanes} lanes of {who} execute this, and each arrives");
            }
            diagnostic.help = format!(
                "Let one elected lane execute it (elect.sync), and what belongs to it; if each lane is meant to arrive, initialise the mbarrier for all \
                 {lanes}."
            );
        }
        Some(diagnostic)
    }

    /// A warp has stopped at an arrival. If it has arrived by the same statement in the same phase, or by another one of the same line of a source, of
    /// which a loop is written out, and has waited for nothing since, the wait is missing: that is told, and no arrival is one too many. `before`: its last
    /// use of the mbarrier.
    pub fn behind_no_wait(&self, w: usize, before: Option<Used>, site: u32, stop: Stop) -> Stop {
        let mut diagnostic = stop?;
        let waits = |site: u32| {
            self.kernel.code.iter().any(|inst| inst.site == site && matches!(inst.op, Op::BarrierWait { .. }))
        };
        let since = |before: &Used| {
            let mut uses = self.barriers.iter().flat_map(|b| &b.uses);
            uses.any(|used| used.warp == w && used.epoch > before.epoch && waits(used.site))
        };
        let place = |site: u32| self.kernel.sites.get(site as usize);
        let written_out = |other: u32| {
            let (Some(one), Some(other)) = (place(site), place(other)) else { return false };
            one.source.is_some()
                && one.source == other.source
                && program::opcode(&one.text) == program::opcode(&other.text)
        };
        let same = |before: &Used| before.site == site || written_out(before.site);
        let again = before.filter(|before| same(before) && !since(before));
        if diagnostic.code == "mbarrier-overflow" && again.is_some() {
            let who = self.warp_name(w);
            diagnostic.title = format!("{who} arrives again and has not waited in between: {}", diagnostic.title);
            if let Some(here) = diagnostic.labels.first_mut() {
                here.text = format!("{who} comes here a second time; no wait for an mbarrier lies between");
            }
            diagnostic.help = "Let the thread wait, before it arrives again, for the mbarrier that tells that the last round is over (the stage \
                               is free). If several arrivals belong to one phase, initialise the mbarrier for all of them."
                .into();
        }
        Some(diagnostic)
    }

    /// A warp has stopped at an arrival that it has made in the same phase before; since then a wait for another mbarrier has let it pass. That one
    /// tells too early that the round is over: by a warp that has passed its own wait twice for one phase, or since more warps arrive
    /// there than it counts.
    pub fn behind_a_wait_that_passed_early(&mut self, w: usize, before: Option<Used>, site: u32, stop: Stop) -> Stop {
        let mut diagnostic = stop?;
        let passed = self.warps[w].passed.last().filter(|passed| passed.phase.is_some() && !passed.again);
        let same = before.is_some_and(|before| before.site == site) && diagnostic.code == "mbarrier-overflow";
        let Some(&Passed { barrier, site: wait, .. }) = passed.filter(|_| same) else { return Some(diagnostic) };
        let b = &self.barriers[barrier as usize];
        let comes = |w: usize| b.came.iter().any(|came| came.warp == w && !came.bytes);
        let waited_since = before.is_some_and(|before| {
            b.uses.iter().any(|used| used.warp == w && used.site == wait && used.epoch >= before.epoch)
        });
        let arrivers = (0..self.warps.len()).filter(|&w| comes(w)).count();
        // One warp by several statements: that is as many arrivals where the same variable of another CTA gets none.
        let arrivals = b.came.iter().filter(|came| !came.bytes).count();
        let twin = self.barriers.iter().position(|other| {
            other.valid && other.cta != b.cta && other.offset == b.offset && other.came.iter().all(|came| came.bytes)
        });
        let twin = twin.filter(|_| arrivals > b.expected as usize);
        let twice = (0..self.warps.len()).filter(|&w| comes(w)).find_map(|w| {
            let mut passed = self.warps[w].passed.iter().rev();
            passed.find(|passed| passed.again && passed.barrier != barrier).map(|passed| (w, *passed))
        });
        // Or the commits of two statements come where one is counted, and somebody waits where none comes.
        let in_vain = self.waits_in_vain();
        let odd = self.second_commit(b).filter(|_| in_vain.is_some()).zip(in_vain);
        if !waited_since || twice.is_none() && twin.is_none() && odd.is_none() && arrivers <= b.expected as usize {
            return Some(diagnostic);
        }
        let (who, name) = (self.warp_name(w), self.barrier_name(barrier));
        diagnostic.title =
            format!("{who} passes its wait for {name} too early and arrives a second time: {}", diagnostic.title);
        let label = self.label(wait, format!("{who} passes its wait for {name} here"));
        diagnostic.labels.insert(1.min(diagnostic.labels.len()), label);
        match (twice, twin, odd) {
            (None, None, Some((commit, other))) => {
                let other = self.barrier_name(other);
                let text = format!(
                    "this commit arrives at {name}, which another statement's commits complete; nothing arrives at {other}"
                );
                diagnostic.labels.insert(0, self.label(commit, text));
                diagnostic.help =
                    format!("Let this commit arrive at {other}: it is waited for, and no statement arrives at it.");
            }
            (Some((other, passed)), ..) => {
                let (other, there) = (self.warp_name(other), self.barrier_name(passed.barrier));
                let on = passed.phase.map_or("on the fresh mbarrier".to_string(), |phase| format!("for phase {phase}"));
                let text =
                    format!("{other} passes its wait for {there} {on} a second time here, by parity {}", passed.parity);
                // Before any phase, it is as likely that the wait is not what should let it pass.
                let meaning = if passed.phase.is_some() { Meaning::PassedAgain } else { Meaning::Plain };
                diagnostic.labels.insert(1, self.label(passed.site, text).that_means(meaning));
                diagnostic.help = format!(
                    "Let the parity of the wait for {there} change with each phase: in a ring, where the stage begins at 0 again, there alone, \
                     and on from one tile to the next."
                );
            }
            (None, Some(twin), _) => {
                let there = self.barrier_name(twin as u32);
                let text = format!(
                    "{name} is initialised for {} a phase, and gets {arrivals}; {there} gets none",
                    counted(b.expected, "arrival")
                );
                diagnostic.labels.push(self.label(b.init.site, text));
                let sites = distinct(b.came.iter().filter(|came| !came.bytes).map(|came| came.site));
                let text = format!("this arrives at {name}");
                diagnostic.labels.extend(sites.iter().take(2).map(|&site| self.label(site, text.as_str())));
                diagnostic.help = format!("Let some of these arrive at {there}: check the rank that mapa gets for it.");
            }
            (None, None, None) => {
                let text = format!(
                    "{name} is initialised for {} a phase, and {arrivers} warps arrive at it",
                    counted(b.expected, "arrival")
                );
                diagnostic.labels.push(self.label(b.init.site, text));
                diagnostic.help = format!("Initialise {name} for as many arrivals as come in one phase.");
            }
        }
        Some(diagnostic)
    }

    /// An mbarrier that somebody waits for, and at which no statement arrives.
    fn waits_in_vain(&self) -> Option<u32> {
        let waits = self.warps.iter().flat_map(|warp| warp.fragments.iter()).filter_map(|f| match f.state {
            State::Mbarrier { barrier, .. } => Some(barrier),
            _ => None,
        });
        waits.into_iter().find(|&barrier| self.is_never_told(barrier))
    }

    /// The lanes of a warp arrive together. If the phase is complete before the last of them has arrived, whoever waits for it
    /// does not wait for that lane, and each round leaves the next phase short of more. `phase`, `pending`: before they arrived.
    pub fn check_split(&mut self, at: At, barrier: u32, phase: u64, pending: u32, who: u32) {
        let b = &self.barriers[barrier as usize];
        let (lanes, init, expected) = (who.count_ones(), b.init.site, b.expected);
        let phases = b.phase - phase;
        if phases == 0 {
            // More than are expected may be pending here: cp.async.mbarrier.arrive adds to the current phase what it will take away.
            return;
        }
        let early = b.expected - b.pending;
        let count = match phases {
            1 if early == 0 => return,
            1 if early == 1 => {
                format!("phase {phase} with {pending} of them: the last one counts to phase {}", phase + 1)
            }
            1 => format!("phase {phase} with {pending} of them: the other {early} count to phase {}", phase + 1),
            many => format!("{many} phases with them"),
        };
        let mut diagnostic = self.problem(
            "mbarrier-split",
            at.site,
            format!("{} gets {} that {} makes together, and completes {count}", self.barrier_name(barrier), counted(lanes, "arrival"), self.warp_name(at.w)),
            "An arrival counts for the phase that is current when it comes, and a wait waits for no other (PTX ISA 9.7.13.15.4, \
             9.7.13.15.7).",
            "Initialise the mbarrier for as many threads as arrive in a round, or let as many arrive as it is initialised for.".into(),
        );
        diagnostic.severity = Severity::Finding;
        let meaning = if phases > 1 { Meaning::CountsTooFew } else { Meaning::Plain };
        let made = self.label(init, format!("initialised for {} a phase", counted(expected, "arrival")));
        diagnostic.labels[0].concerns(self.subject(barrier));
        diagnostic.labels.push(made.that_means(meaning));
        self.findings.add(diagnostic);
    }
}
