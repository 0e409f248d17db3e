//! Somebody reads or overwrites what an MMA works on before it is known to be complete: no commit, no wait, or a wait for another phase than that
//! of the MMA's commit.

use super::drafts::Draft;
use super::names::{Name, counted};
use crate::diagnostic::{Label, Meaning};
use crate::machine::barrier::mbarrier::Came;
use crate::machine::cluster::Cluster;
use crate::machine::state::{ActorKind, Commit, Heard, Race};
use crate::machine::warp::Passed;
use crate::order::Stamp;
use crate::program::facts::{Way, leads, ways_lead};
use crate::program::op::Inst;

/// How a wait passes for which no phase is complete.
const AT_ONCE: &str = "at once: the barrier was fresh, and parity 1 counts as complete";

/// How a label of a wait for another phase ends, and what it means: whether it has passed on one which had let its warp pass before.
pub fn passed_before(again: bool) -> (&'static str, Meaning) {
    if again { (" a second time", Meaning::PassedAgain) } else { ("", Meaning::PassedEarlier) }
}

impl Cluster<'_> {
    /// Tensor memory is read before the MMA that writes it is known to be complete: no commit, no wait, or a wait for the
    /// wrong phase.
    pub fn explain_early_read(&self, race: &Race, mma: Stamp, load: Stamp, name: &Name) -> Draft {
        const RULE: &str = "What an MMA writes may be read only after a tcgen05.commit that follows it has arrived at \
                            an mbarrier and the reader has waited for that phase (PTX ISA 9.7.16.6.2.1.1, \
                            9.7.16.6.4.4). A wait for parity P passes when the phase before the current one has \
                            parity P (9.7.13.15.16): on a fresh mbarrier, P = 1 passes at once.";
        let draft = Draft::of(race, Some(name));
        let base = |code, title, labels, help| Draft { early: true, ..draft(code, title, labels, RULE, help) };
        let read = self.label(load.site, format!("{} reads it here", self.who(load)));
        let work = self.tensor_work(mma);
        let written = self.label(mma.site, format!("the {work} that writes it"));
        // Of several that follow it, the one to whose mbarrier the reader has listened, though it heard of nothing new there; or at least
        // somebody else who reads tensor memory.
        let commits = || self.commits.iter().filter(|c| c.queue == mma.actor && c.epoch >= mma.epoch);
        let heard = commits().find(|c| race.passed.iter().any(|passed| passed.barrier == c.barrier && !passed.fresh));
        // Or which has told it of an MMA before, of the same product.
        let told_before = || {
            let told = |c: &&Commit| race.passed.iter().any(|passed| passed.barrier == c.barrier);
            commits().filter(|_| race.heard == Heard::Part).find(told)
        };
        let readers = || self.warps.iter().filter(|warp| warp.loads.is_used());
        let knows = |all: &[Passed], c: &Commit| all.iter().any(|passed| passed.barrier == c.barrier);
        let by_others = || commits().find(|c| !knows(&race.passed, c) && readers().any(|warp| knows(&warp.passed, c)));
        // Where nobody who reads waits at all: one that no other role waits for, to use its stage again.
        let other_role = |c: &Commit| self.warps.iter().any(|warp| !warp.loads.is_used() && knows(&warp.passed, c));
        let for_nobody = || commits().find(|c| !other_role(c) && !knows(&race.passed, c));
        let heard = heard.or_else(told_before);
        if heard.is_none()
            && let Some((wait, ahead)) = self.passed_before_all(race, mma)
        {
            let barrier = self.barrier_name(wait.barrier);
            let ahead = self.label(ahead, format!("this would arrive at {barrier}, and is not executed yet"));
            return base(
                "wrong-phase",
                format!(
                    "the wait for parity {} of {barrier} passes before the {work} that writes {{}} is complete",
                    wait.parity
                ),
                vec![self.label(wait.site, format!("this wait passed {AT_ONCE}")), read, written, ahead],
                format!(
                    "Wait for parity {} here: phase 0 has parity 0, and nothing has arrived so far.",
                    1 - wait.parity
                ),
            );
        }
        let Some(commit) = heard.or_else(by_others).or_else(for_nobody).or_else(|| commits().next()) else {
            let (mut labels, mut whose) = (vec![written, read], "");
            // Another thread's, behind this in the kernel, for which the reader has waited.
            let behind = |c: &&Commit| c.queue != mma.actor && c.site > mma.site && knows(&race.passed, c);
            if let Some(other) = self.commits.iter().find(behind) {
                let text =
                    format!("this commit is of another thread: it waits for no {work} of the one that has issued this");
                labels.push(self.label(other.site, text));
                whose = " of its thread";
            }
            return base(
                "mma-not-committed",
                format!("{{}} is read before the {work} is complete: no tcgen05.commit{whose} follows the {work}"),
                labels,
                format!(
                    "After the last {work}, let the same thread execute tcgen05.commit to an mbarrier, and let the readers wait for it."
                ),
            );
        };
        let barrier = self.barrier_name(commit.barrier);
        let phase = commit.phase.unwrap_or(self.barriers[commit.barrier as usize].phase);
        let arrival = self.label(commit.site, format!("its completion arrives at {barrier}, in phase {phase}"));
        let passed: Option<&Passed> = race.passed.iter().find(|p| p.barrier == commit.barrier);
        // The wait was for the right phase, but something else completed that phase before.
        if let Some(Passed { site, phase: Some(n), fresh: true, lost: false, .. }) = passed
            && *n < phase
            && let Some(early) = self.early_arrival(commit.barrier, *n)
        {
            let waiter = self.second_warp(race).filter(|_| !race.late);
            let counts = waiter.and_then(|waiter| self.counts_too_few_commits(commit.barrier, waiter));
            let (init, counts) = counts.unzip();
            let labels = init.into_iter().chain([
                self.label(early, format!("an arrival from here completes phase {n}")),
                self.label(*site, format!("this wait passed on phase {n}")),
                read,
                self.label(commit.site, format!("the {work}'s completion arrives in phase {phase}")),
            ]);
            return base(
                "early-arrival",
                format!("{barrier} completes phase {n} before the {work} that writes {{}} is complete"),
                labels.collect(),
                counts.unwrap_or_else(|| format!(
                    "Let one arrival complete one phase for each wait: a single tcgen05.commit, after the last {work}."
                )),
            );
        }
        match passed {
            Some(p) if p.phase.is_none_or(|passed| passed < phase) => {
                let why = match p.phase {
                    None => AT_ONCE.to_string(),
                    Some(n) => format!("on phase {n}"),
                };
                base(
                    "wrong-phase",
                    format!(
                        "the wait for parity {} of {barrier} passes before the {work} that writes {{}} is complete",
                        p.parity
                    ),
                    vec![self.label(p.site, format!("this wait passed {why}")), read, arrival],
                    match p.again || p.lost {
                        // In a loop, one parity is right for every second round at most.
                        true => format!(
                            "Let the parity of this wait go on with each phase: phase n has parity n mod 2, and here it is phase {phase}."
                        ),
                        false => format!("Wait for parity {} here: phase {phase} has that parity.", phase % 2),
                    },
                )
            }
            _ => base(
                "mma-not-awaited",
                format!("{} reads {{}} without waiting for the {work} that writes it", self.who(load)),
                [read, written, arrival].into_iter().chain(self.waits_instead(race, commit.barrier)).collect(),
                format!(
                    "Let every warp that reads it wait for {barrier} (mbarrier.try_wait.parity, parity {}) first.",
                    phase % 2
                ),
            ),
        }
    }

    /// The last wait that the reader has passed, if it passed on a fresh mbarrier at which nothing has arrived so far, and a commit behind the MMA
    /// would: that wait, and that commit.
    fn passed_before_all(&self, race: &Race, mma: Stamp) -> Option<(Passed, u32)> {
        let last = race.passed.last().filter(|passed| passed.phase.is_none())?;
        let b = &self.barriers[last.barrier as usize];
        if self.at_offset(b).any(|twin| !twin.came.is_empty()) {
            return None;
        }
        let code = &self.kernel.code;
        let begins = code.iter().position(|inst| inst.site == mma.site)?;
        let sites = self.sure_to_arrive(b.offset);
        let commits =
            sites.into_iter().filter(|&site| self.is_commit(site) && !self.commits.iter().any(|c| c.site == site));
        let near = commits.filter_map(|site| Some((leads(code, begins, &[], |inst| inst.site == site)?, site)));
        near.min().map(|(_, site)| (*last, site))
    }

    /// The last wait that the reader has passed, if it was for another mbarrier than this one.
    fn waits_instead(&self, race: &Race, barrier: u32) -> Option<Label> {
        let last = race.passed.last().filter(|passed| passed.barrier != barrier)?;
        Some(self.label(last.site, format!("the last wait before it is for {}", self.barrier_name(last.barrier))))
    }

    /// The wait by which the warp of the first access had last got past the mbarrier of the second, if that is a copy's.
    pub fn passed_for_second(&self, race: &Race) -> Option<Passed> {
        let copy = self.kind(race.second).filter(|kind| matches!(kind, ActorKind::Mbarrier));
        let barrier = copy.and_then(|_| self.barrier_of(race.second.actor))?;
        let by = self.issuer(race.conflict.first)?;
        self.warps[by].passed.iter().find(|passed| passed.barrier == barrier).copied()
    }

    /// Who reads before a load writes has waited for the load's mbarrier, by a wait that passes twice on one phase: it wants what the load brings.
    pub fn passed_again_for_load(&self, race: &Race) -> Option<Passed> {
        let reads = !race.conflict.first_writes && race.conflict.second_writes;
        let passed = race.first_passed.filter(|passed| reads && passed.again)?;
        let phase = self.barriers[passed.barrier as usize].phase_of(race.second.epoch)?;
        passed.phase.is_none_or(|seen| seen < phase).then_some(passed)
    }

    /// Who comes second has waited for the mbarrier that a commit behind the MMA arrives at, but has passed on an earlier phase: that
    /// wait, and what to wait for.
    pub fn passed_earlier(&self, race: &Race, mma: Stamp) -> Option<(Label, String)> {
        let behind = self.commits.iter().filter(|c| c.queue == mma.actor && c.epoch >= mma.epoch);
        let mut waits =
            behind.filter_map(|c| Some((c, race.passed.iter().find(|passed| passed.barrier == c.barrier)?)));
        let (commit, passed) = waits.next()?;
        let phase = commit.phase.unwrap_or(self.barriers[commit.barrier as usize].phase);
        let name = self.barrier_name(commit.barrier);
        let on = match passed.phase {
            Some(seen) if seen >= phase => return None,
            Some(seen) => format!("passed on phase {seen}"),
            None => "passed at once, on a fresh mbarrier".to_string(),
        };
        // Who waits for one phase after the other meets them late where each arrival completes one.
        let counts = |waiter: usize| self.counts_too_few_that_come(commit.barrier, waiter);
        if let Some(told) = self.second_warp(race).filter(|_| !passed.again).and_then(counts) {
            return Some(told);
        }
        let (before, meaning) = passed_before(passed.again);
        let label = self.label(passed.site, format!("this wait for parity {} of {name} {on}{before}", passed.parity));
        let label = label.that_means(meaning);
        let help = match passed.again {
            // In a loop, one parity is right for every second round at most.
            true => format!(
                "Let the parity of this wait go on with each phase: phase n has parity n mod 2, and the MMA's commit completes phase {phase}."
            ),
            false => format!(
                "Wait for parity {} of {name}: the MMA's commit completes phase {phase}, and phase n has parity n mod 2.",
                phase % 2
            ),
        };
        Some((label, help))
    }

    /// Who comes second has waited as it should, and the phase is complete by a commit that does not follow the MMA: that commit, and where
    /// it should be, or how many belong to a phase.
    pub fn told_by_another(&self, race: &Race, mma: Stamp) -> Option<(Vec<Label>, String)> {
        let passed = race.passed.last().filter(|passed| passed.fresh && !passed.lost)?;
        let (barrier, phase) = (passed.barrier, passed.phase?);
        let Some(ActorKind::Mmas { warp, .. }) = self.kind(mma) else { return None };
        let mut of_phase = self.commits.iter().filter(|c| (c.barrier, c.phase) == (barrier, Some(phase)));
        let commit = of_phase.next()?;
        let others = of_phase.all(|c| c.warp != warp as usize) && commit.warp != warp as usize;
        let (name, b) = (self.barrier_name(barrier), &self.barriers[barrier as usize]);
        let completes = format!("this commit completes phase {phase} of {name}");
        let wait = self.label(passed.site, format!("this wait passed on phase {phase}"));
        let comes = if others { "the MMA is another warp's" } else { "this MMA comes behind it" };
        let counts = self.second_warp(race).and_then(|waiter| self.counts_too_few_commits(barrier, waiter));
        if let Some((init, help)) = counts {
            return Some((vec![init, self.label(commit.site, format!("{completes}; {comes}")), wait], help));
        }
        if others {
            let arrivals = counted(b.expected, "arrival");
            let labels = vec![
                self.label(commit.site, format!("{completes}; {comes}")),
                wait,
                self.label(b.init.site, format!("{name} is initialised for {arrivals} a phase")),
            ];
            let help = format!(
                "Initialise {name} for as many arrivals as there are commits by all who read it: with {}, a phase is complete before the last.",
                b.expected
            );
            return Some((labels, help));
        }
        let follows = |c: &&Commit| (c.barrier, c.queue) == (barrier, mma.actor) && c.epoch >= mma.epoch;
        let later = self.commits.iter().find(follows).and_then(|c| c.phase);
        let otherwise = later.map(|later| {
            format!(" If it is meant for those before, the wait has to be for phase {later}, of which the commit follows this MMA.")
        });
        let labels = vec![self.label(commit.site, format!("{completes}; {comes}")), wait];
        let help = format!("Let the commit at {name} follow the MMAs that read it.{}", otherwise.unwrap_or_default());
        Some((labels, help))
    }

    /// The first commit behind an MMA, if who comes second has waited for no mbarrier of such a commit, as far as is known of that: it tells that the MMA has
    /// read its operands.
    pub fn own_commit(&self, mma: Stamp, passed: &[Passed]) -> Option<(Label, String)> {
        let behind = || self.commits.iter().filter(|c| c.queue == mma.actor && c.epoch >= mma.epoch);
        if behind().any(|c| passed.iter().any(|passed| passed.barrier == c.barrier && passed.phase.is_some())) {
            return None;
        }
        let commit = behind().min_by_key(|c| c.epoch)?;
        // One that comes behind several rounds of the MMA tells too late.
        let code = &self.kernel.code;
        let again = |_: usize, inst: &Inst| match inst.site {
            site if site == commit.site => Way::Ends,
            site if site == mma.site => Way::Found,
            _ => Way::On,
        };
        if code.iter().position(|inst| inst.site == mma.site).is_none_or(|at| ways_lead(code, at, again)) {
            return None;
        }
        let name = self.barrier_name(commit.barrier);
        let phase = commit.phase.unwrap_or(self.barriers[commit.barrier as usize].phase);
        let label = self.label(commit.site, format!("that it is complete arrives at {name}, in phase {phase}"));
        let help = format!(
            "Wait for {name}, at which the MMA's commit arrives, before its operand is overwritten: here for parity {}, as phase {phase} has.",
            phase % 2
        );
        Some((label, help))
    }

    /// Who comes second has waited for a phase that the MMA's own thread completes by an arrival, as if its MMAs were complete when it has issued them.
    pub fn told_by_the_issuer(&self, race: &Race, mma: Stamp) -> Option<(Vec<Label>, String)> {
        let passed = race.passed.last().filter(|passed| passed.fresh && !passed.lost)?;
        let (barrier, phase) = (passed.barrier, passed.phase?);
        let Some(ActorKind::Mmas { warp, .. }) = self.kind(mma) else { return None };
        let b = &self.barriers[barrier as usize];
        let arrives = |came: &&Came| came.warp == warp as usize && !came.bytes && !self.is_commit(came.site);
        // Who announces the bytes of a copy says nothing of MMAs: what its thread lacks is a wait for them.
        let other = |came: &Came| came.bytes || self.is_commit(came.site);
        let arrival = b.came.iter().find(arrives).filter(|_| !b.came.iter().any(other))?;
        let (who, name) = (self.warp_name(warp as usize), self.barrier_name(barrier));
        let labels = vec![
            self.label(arrival.site, format!("{who} arrives at {name} here: its MMAs are issued then, not complete")),
            self.label(passed.site, format!("this wait passed on phase {phase}")),
        ];
        let help = format!(
            "Let {who} execute tcgen05.commit to {name} in place of this arrival: it comes when the MMAs before it are complete."
        );
        Some((labels, help))
    }

    /// The statement of the last arrival in a phase.
    pub fn early_arrival(&self, barrier: u32, phase: u64) -> Option<u32> {
        let history = &self.barriers[barrier as usize].history;
        history.iter().rev().find(|(n, _)| *n == phase).map(|&(_, site)| site)
    }
}
