//! Conflicts in tensor memory: what is missing between an MMA, the loads of its result, and what overwrites or frees it.

use super::cluster::Cluster;
use super::explain::Draft;
use super::names::counted;
use super::state::{ActorKind, Commit, Heard, Race};
use super::warp::Passed;
use crate::diagnostic::{Label, Severity};
use crate::order::{Reason, Stamp};
use crate::program::facts::leads;

pub const WAIT_RULE: &str = "tcgen05.ld is asynchronous, and tcgen05.wait::ld is what waits for it (PTX ISA 9.7.16.8.5). Using a register waits \
                             for that register (9.7.16.6.4.5), but puts nothing else in order: neither what overwrites or frees the columns \
                             next, nor a barrier that says they were read.";
const IN_TIME_RULE: &str = "tcgen05.wait::ld is what waits for a tcgen05.ld (PTX ISA 9.7.16.8.5). Using one of its registers waits for the load as well \
                            (9.7.16.6.4.5): the columns have been read by then, as compilers rely on; the ISA says so of the register alone, and the assembler may move a use \
                            that is no store behind what tells others.";
pub const WAIT_HELP: &str = "Put tcgen05.wait::ld.sync.aligned between the load and the first use of its registers.";
pub const STORE_RULE: &str = "tcgen05.st is asynchronous, and tcgen05.wait::st is what waits for it (PTX ISA 9.7.16.8.5): without it, a barrier says \
                          nothing of what it writes (9.7.16.6.1).";
pub const FREE_RULE: &str = "Freed columns may go to another CTA at once, so every access to them must be complete and \
                             ordered before the tcgen05.dealloc (PTX ISA 9.7.16.6, 9.7.16.7.1).";
pub const FREE_HELP: &str =
    "Let every warp pass tcgen05.wait::ld and then a CTA barrier (bar.sync 0) before one warp frees it.";
const FREE_IN_PAIR_HELP: &str = "Let every warp of the cluster pass tcgen05.wait::ld and then a barrier of the cluster \
                                 (barrier.cluster.arrive and .wait) before one warp frees it.";

/// How a wait passes for which no phase is complete.
const AT_ONCE: &str = "at once: the barrier was fresh, and parity 1 counts as complete";

impl Cluster<'_> {
    /// Whether two accesses of tensor memory are of one warp, or of an MMA that it issues.
    fn same_warp(&self, first: Stamp, second: Stamp) -> bool {
        let warp = |stamp: Stamp| match self.kind(stamp)? {
            ActorKind::TensorLoads(warp) | ActorKind::TensorStores(warp) | ActorKind::Warp(warp) => Some(warp),
            ActorKind::Mmas { warp, .. } => Some(warp),
            _ => None,
        };
        warp(first).is_some() && warp(first) == warp(second)
    }

    /// The order is there, but not the fences that the ISA asks for: a note.
    fn explain_missing_fence(&self, race: &Race, name: String) -> Draft {
        let (first, second) = (race.conflict.first, race.second);
        let before = race.conflict.reason == Reason::NoFenceBefore;
        let (fence, place, elsewhere) = if before {
            ("before", "between the access and the synchronisation", "behind")
        } else {
            ("after", "between the synchronisation and the access", "in front of")
        };
        let mut labels = vec![
            self.label(second.site, format!("{} accesses it here", self.who(second))),
            self.label(first.site, format!("accessed before by {}", self.who(first))),
        ];
        if before {
            labels.swap(0, 1);
        } else if let Some(wait) = race.passed.last() {
            labels.insert(1, self.label(wait.site, "synchronised here"));
        }
        Draft {
            code: "missing-tensor-fence",
            severity: Severity::Note,
            title: format!("two accesses of {{}} are synchronised, but without tcgen05.fence::{fence}_thread_sync"),
            names: vec![name],
            early: false,
            labels,
            rule: "Accesses of tensor memory by different threads are ordered by synchronisation together with \
                   tcgen05.fence::before_thread_sync on the first thread's side (a commit implies it) and \
                   tcgen05.fence::after_thread_sync on the second's (PTX ISA 9.7.16.6.3). ptxas makes no instruction \
                   of these fences, but without them it may move accesses across the synchronisation (9.7.16.11.1).",
            help: format!(
                "Put tcgen05.fence::{fence}_thread_sync {place}: one {elsewhere} the synchronisation orders nothing here."
            ),
            count: race.count,
        }
    }

    /// Where the wait for an asynchronous load or store belongs: between the two, or in front of what tells others of the first.
    fn wait_between(&self, race: &Race, kind: &str, first_and_telling: &str) -> String {
        let both = if self.same_warp(race.conflict.first, race.second) { "the two" } else { first_and_telling };
        format!("Put tcgen05.wait::{kind}.sync.aligned between {both}.")
    }

    /// What a load reads is overwritten or freed, and no wait for loads stands between: a note where its registers were used in time.
    fn explain_unwaited_load(&self, race: &Race, name: &str) -> Draft {
        let (first, second) = (race.conflict.first, race.second);
        let what = if race.frees { "freed" } else { "overwritten" };
        let labels = vec![
            self.label(first.site, format!("{} reads it here, asynchronously", self.who(first))),
            self.label(second.site, format!("{what} here")),
        ];
        let draft = Draft::of(race, name);
        if race.in_time {
            let title = format!(
                "{{}} is {what} after the registers of the tcgen05.ld that reads it were used, but without tcgen05.wait::ld, or with one that comes too late"
            );
            let note = draft("missing-wait-ld", title, labels, IN_TIME_RULE, WAIT_HELP.into());
            return Draft { severity: Severity::Note, ..note };
        }
        draft(
            "missing-wait-ld",
            format!("{{}} is {what} although nothing waited in time for the tcgen05.ld that reads it"),
            labels,
            WAIT_RULE,
            self.wait_between(
                race,
                "ld",
                "the load and the barrier or arrival that tells others that the columns were read",
            ),
        )
    }

    /// Whether one warp reads what another frees without having heard of it: what lacks is a barrier of the CTA, or (true) of the cluster.
    fn lacks_a_barrier(&self, race: &Race) -> Option<bool> {
        let (Some(ActorKind::TensorLoads(reads)), Some(ActorKind::Warp(frees))) =
            (self.kind(race.conflict.first), self.kind(race.second))
        else {
            return None;
        };
        let cta = |w: u32| self.warps.get(w as usize).map(|warp| warp.cta);
        (reads != frees).then(|| cta(reads) != cta(frees))
    }

    pub fn explain_tensor(&self, race: &Race) -> Draft {
        let (first, second) = (race.conflict.first, race.second);
        let column = (race.conflict.byte / 16) as u32 % super::tensor::COLUMNS;
        let name = self.tensor_name(column);
        let is_mma = |s| matches!(self.kind(s), Some(ActorKind::Mmas { .. }));
        let draft = Draft::of(race, &name);
        if matches!(race.conflict.reason, Reason::NoFenceBefore | Reason::NoFenceAfter) {
            return self.explain_missing_fence(race, name);
        }
        let unwaited_load = race.unwaited && matches!(self.kind(first), Some(ActorKind::TensorLoads(_)));
        if unwaited_load && (race.in_time || race.frees || !is_mma(second) || !race.unwritten) {
            return self.explain_unwaited_load(race, &name);
        }
        if race.frees && race.in_time {
            let note = draft(
                "tensor-freed-in-use",
                "{} is freed after its use in time, but only by way of threads that have ended or of relaxed synchronisation".to_string(),
                vec![self.label(second.site, "freed here"), self.label(first.site, "used here")],
                FREE_RULE,
                FREE_HELP.into(),
            );
            return Draft { severity: Severity::Note, ..note };
        }
        if race.frees {
            let (what, help) = match self.kind(first) {
                Some(ActorKind::Mmas { .. }) if self.is_tensor_copy(first.site) => {
                    ("a tcgen05.cp may still be writing it", FREE_HELP.into())
                }
                Some(ActorKind::Mmas { .. }) => ("an MMA may still be writing it", FREE_HELP.into()),
                Some(ActorKind::TensorStores(_)) => {
                    ("a tcgen05.st may still be writing it", FREE_HELP.replace("wait::ld", "wait::st"))
                }
                _ => ("tcgen05.ld may still be reading it", FREE_HELP.into()),
            };
            if let Some(cluster) = self.lacks_a_barrier(race) {
                let (barrier, help) = match cluster {
                    false => ("CTA barrier", help),
                    true => ("barrier of the cluster", FREE_IN_PAIR_HELP.into()),
                };
                return draft(
                    "tensor-freed-in-use",
                    format!("{{}} is freed while {what}: no {barrier} stands between the two"),
                    vec![
                        self.label(second.site, format!("{} frees it here", self.who(second))),
                        self.label(
                            first.site,
                            format!(
                                "{} reads it here, and {} does not wait for that",
                                self.who(first),
                                self.who(second)
                            ),
                        ),
                    ],
                    FREE_RULE,
                    help,
                );
            }
            return draft(
                "tensor-freed-in-use",
                format!("{{}} is freed while {what}"),
                vec![
                    self.label(second.site, "freed here"),
                    self.label(first.site, "used here; nothing orders its completion before"),
                ],
                FREE_RULE,
                help,
            );
        }
        let is_load = |s| matches!(self.kind(s), Some(ActorKind::TensorLoads(_)));
        if race.unwaited {
            let (what, verb) = if is_load(second) { ("read", "reads it") } else { ("accessed", "accesses it") };
            return draft(
                "race-tensor",
                format!("{{}} is {what} although nothing waited in time for the tcgen05.st that writes it"),
                vec![
                    self.label(first.site, format!("{} writes it here, asynchronously", self.who(first))),
                    self.label(second.site, format!("{} {verb} here", self.who(second))),
                ],
                STORE_RULE,
                self.wait_between(race, "st", "the store and the barrier or arrival that tells others of it"),
            );
        }
        let pair = match (is_mma(first), is_mma(second)) {
            // It reads the product that it has waited for, when another one is begun.
            (true, false) if is_load(second) && race.heard == Heard::Whole => {
                return self.explain_overwritten(race, first, second, &name);
            }
            (true, false) if is_load(second) => Some((first, second)),
            (false, true) if is_load(first) && race.unwritten => Some((second, first)),
            _ => None,
        };
        if let Some((mma, load)) = pair {
            return self.explain_early_read(race, mma, load, &name);
        }
        if is_mma(second) && is_load(first) {
            return self.explain_overwritten(race, second, first, &name);
        }
        draft(
            "race-tensor",
            format!("two accesses of {{}} ({} and {}) are not ordered", self.who(first), self.who(second)),
            vec![self.label(second.site, "accessed here"), self.label(first.site, "accessed here before")],
            "Asynchronous accesses of tensor memory, other than the pairs that run as a pipeline, are ordered only by \
             waiting for completion and by synchronisation (PTX ISA 9.7.16.6.1, 9.7.16.6.2).",
            "Let whoever did the first wait for it (tcgen05.wait::ld, ::st, or commit and mbarrier), then let both meet (CTA barrier, or \
             the mbarrier) before the second.".into(),
        )
    }

    /// A product is read while another MMA writes over it.
    fn explain_overwritten(&self, race: &Race, mma: Stamp, load: Stamp, name: &str) -> Draft {
        let mut labels = vec![
            self.label(mma.site, "the tensor core writes it here"),
            self.label(load.site, "read here; its completion is not ordered before the MMA"),
        ];
        labels.extend(self.tells_too_early(mma, load));
        Draft::of(race, name)(
            "accumulator-overwritten",
            format!("the {} overwrites {{}} while {} may still be reading it", self.tensor_work(mma), self.who(load)),
            labels,
            "An MMA is not ordered after a tcgen05.ld: the load must be complete (tcgen05.wait::ld) and its thread \
             must then have synchronised with the MMA's (PTX ISA 9.7.16.6.4.4).",
            "After tcgen05.wait::ld, arrive at a barrier that the MMA's thread waits on.".into(),
        )
    }

    /// Where who reads a product arrives at an mbarrier that the MMA's thread waits for as it should: some of its loads come behind that.
    fn tells_too_early(&self, mma: Stamp, load: Stamp) -> Option<Label> {
        let (Some(ActorKind::Mmas { warp, .. }), Some(ActorKind::TensorLoads(reader))) =
            (self.kind(mma), self.kind(load))
        else {
            return None;
        };
        let waits = self.warps.get(warp as usize)?.passed.iter().rev().filter(|passed| passed.fresh && !passed.lost);
        let (barrier, site) = waits
            .flat_map(|passed| self.barriers[passed.barrier as usize].came.iter().map(|came| (passed.barrier, came)))
            .find(|(_, came)| came.warp == reader as usize && !came.bytes && !self.is_commit(came.site))
            .map(|(barrier, came)| (barrier, came.site))?;
        let text = format!(
            "{} arrives at {} here, for which the MMA's thread waits: not all of its loads come before",
            self.who(load),
            self.barrier_name(barrier)
        );
        Some(self.label(site, text))
    }

    /// Tensor memory is read before the MMA that writes it is known to be complete: no commit, no wait, or a wait for the
    /// wrong phase.
    fn explain_early_read(&self, race: &Race, mma: Stamp, load: Stamp, name: &str) -> Draft {
        const RULE: &str = "What an MMA writes may be read only after a tcgen05.commit that follows it has arrived at \
                            an mbarrier and the reader has waited for that phase (PTX ISA 9.7.16.6.2.1.1, \
                            9.7.16.6.4.4). A wait for parity P passes when the phase before the current one has \
                            parity P (9.7.13.15.16): on a fresh mbarrier, P = 1 passes at once.";
        let draft = Draft::of(race, name);
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
            return base(
                "mma-not-committed",
                format!("{{}} is read before the {work} is complete: no tcgen05.commit follows the {work}"),
                vec![written, read],
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
            return base(
                "early-arrival",
                format!("{barrier} completes phase {n} before the {work} that writes {{}} is complete"),
                vec![
                    self.label(early, format!("an arrival from here completes phase {n}")),
                    self.label(*site, format!("this wait passed on phase {n}")),
                    read,
                    self.label(commit.site, format!("the {work}'s completion arrives in phase {phase}")),
                ],
                format!(
                    "Let one arrival complete one phase for each wait: a single tcgen05.commit, after the last {work}."
                ),
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
        let label = self.label(passed.site, format!("this wait for parity {} of {name} {on}", passed.parity));
        let help = format!(
            "Wait for parity {} of {name}: the MMA's commit completes phase {phase}, and phase n has parity n mod 2.",
            phase % 2
        );
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
        if others {
            let arrivals = counted(b.expected, "arrival");
            let labels = vec![
                self.label(commit.site, format!("{completes}; the MMA is another warp's")),
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
        let labels = vec![self.label(commit.site, format!("{completes}; this MMA comes behind it")), wait];
        let help = format!("Let the commit at {name} follow the MMAs that read it.{}", otherwise.unwrap_or_default());
        Some((labels, help))
    }

    /// What the tensor core does for a statement: an MMA or a copy.
    pub fn tensor_work(&self, stamp: Stamp) -> &'static str {
        if self.is_tensor_copy(stamp.site) { "tcgen05.cp" } else { "MMA" }
    }

    /// The statement of the last arrival in a phase.
    fn early_arrival(&self, barrier: u32, phase: u64) -> Option<u32> {
        let history = &self.barriers[barrier as usize].history;
        history.iter().rev().find(|(n, _)| *n == phase).map(|&(_, site)| site)
    }

    /// MMAs whose completion no warp has waited for when the CTA ends.
    pub fn unawaited_mmas(&mut self) {
        let mut queues: Vec<_> = self.mma_queues.iter().map(|(&(w, lane), &q)| (w, lane, q)).collect();
        queues.sort_unstable_by_key(|&(w, lane, _)| (w, lane));
        for (w, _, queue) in queues {
            if self.warps.iter().any(|warp| warp.live != 0)
                || self.warps.iter().any(|warp| warp.views.heard(queue.actor) >= queue.epoch)
            {
                continue;
            }
            let Some(&site) = self.issued.sites.get(&w) else { continue };
            if self.findings.mentions(&self.place(site)) {
                continue;
            }
            let work = if self.is_tensor_copy(site) { "tcgen05.cp" } else { "MMA" };
            let mut diagnostic = self.problem(
                "mma-outlives-cta",
                site,
                format!("the CTA ends although nobody has waited for this {work}"),
                "An MMA is known to be complete only after a tcgen05.commit and a wait for its mbarrier (PTX ISA \
                 9.7.16.6.2.1.1); the memory that it works on is the CTA's, and goes with the CTA.",
                "Commit the last MMA to an mbarrier and wait for it before the CTA ends.".into(),
            );
            diagnostic.severity = Severity::Finding;
            self.findings.add(diagnostic);
        }
    }
}
