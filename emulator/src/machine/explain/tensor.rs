//! Conflicts in tensor memory: what is missing between an MMA, the loads of its result, and what overwrites or frees it.

use super::drafts::Draft;
use super::names::Name;
use crate::diagnostic::{Label, Severity};
use crate::machine::cluster::Cluster;
use crate::machine::hang::mbarrier::counts_too_few;
use crate::machine::state::{ActorKind, Commit, Heard, Race};
use crate::machine::warp::{Passed, Queue};
use crate::order::{Reason, Stamp};

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
const FREE_BEHIND_WORK_HELP: &str = "Let the thread that issued it commit it (tcgen05.commit), and let the warp that frees wait for the mbarrier, or for a barrier with who has.";
pub const FREE_IN_PAIR_HELP: &str = "Let every warp of the cluster pass tcgen05.wait::ld and then a barrier of the cluster \
                                 (barrier.cluster.arrive and .wait) before one warp frees it.";

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
    fn explain_missing_fence(&self, race: &Race, name: Name) -> Draft {
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
    fn explain_unwaited_load(&self, race: &Race, name: &Name) -> Draft {
        let (first, second) = (race.conflict.first, race.second);
        let what = if race.frees { "freed" } else { "overwritten" };
        let labels = vec![
            self.label(first.site, format!("{} reads it here, asynchronously", self.who(first))),
            self.label(second.site, format!("{what} here")),
        ];
        let draft = Draft::of(race, Some(name));
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

    /// Whether one warp reads or stores what another frees without having heard of it: what lacks is a barrier of the CTA, or (true) of the cluster.
    fn lacks_a_barrier(&self, race: &Race) -> Option<bool> {
        let (Some(ActorKind::TensorLoads(uses) | ActorKind::TensorStores(uses)), Some(ActorKind::Warp(frees))) =
            (self.kind(race.conflict.first), self.kind(race.second))
        else {
            return None;
        };
        let cta = |w: u32| self.warps.get(w as usize).map(|warp| warp.cta);
        (uses != frees).then(|| cta(uses) != cta(frees))
    }

    pub fn explain_tensor(&self, race: &Race) -> Draft {
        let (first, second) = (race.conflict.first, race.second);
        let column = (race.conflict.byte / 16) as u32 % crate::machine::tensor_memory::COLUMNS;
        let name = self.tensor_place(column);
        let is_mma = |s| matches!(self.kind(s), Some(ActorKind::Mmas { .. }));
        let draft = Draft::of(race, Some(&name));
        if matches!(race.conflict.reason, Reason::NoFenceBefore | Reason::NoFenceAfter) {
            return self.explain_missing_fence(race, name);
        }
        if race.same_value {
            return self.explain_same_value(race, name);
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
                    ("a tcgen05.cp may still be writing it", FREE_BEHIND_WORK_HELP.into())
                }
                Some(ActorKind::Mmas { .. }) => ("an MMA may still be writing it", FREE_BEHIND_WORK_HELP.into()),
                Some(ActorKind::TensorStores(_)) => {
                    ("a tcgen05.st may still be writing it", FREE_HELP.replace("wait::ld", "wait::st"))
                }
                _ => ("tcgen05.ld may still be reading it", FREE_HELP.into()),
            };
            if let Some(cluster) = self.lacks_a_barrier(race) {
                let (does, wait) = match self.kind(first) {
                    Some(ActorKind::TensorStores(_)) => ("stores to", "wait::st"),
                    _ => ("reads", "wait::ld"),
                };
                let (barrier, help) = match cluster {
                    false => ("CTA barrier", help),
                    true => ("barrier of the cluster", FREE_IN_PAIR_HELP.replace("wait::ld", wait)),
                };
                return draft(
                    "tensor-freed-in-use",
                    format!("{{}} is freed while {what}: no {barrier} stands between the two"),
                    vec![
                        self.label(second.site, format!("{} frees it here", self.who(second))),
                        self.label(
                            first.site,
                            format!(
                                "{} {does} it here, and {} does not wait for that",
                                self.who(first),
                                self.who(second)
                            ),
                        ),
                    ],
                    FREE_RULE,
                    help,
                );
            }
            if let Some(it) = is_mma(first).then(|| self.freed_before_its_phase(first, second)).flatten() {
                let own = [self.label(second.site, "freed here"), self.label(first.site, "used here")];
                return draft(
                    "tensor-freed-in-use",
                    format!("{{}} is freed while {what}: {}", it.why),
                    own.into_iter().chain(it.labels).collect(),
                    FREE_RULE,
                    it.help,
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
        let of_a_load = match (is_mma(first), is_mma(second)) {
            (true, false) if is_load(second) && race.heard != Heard::Whole => Some((first, second)),
            (false, true) if is_load(first) && race.unwritten => Some((second, first)),
            _ => None,
        };
        if let Some(told) = of_a_load.and_then(|(mma, load)| self.explain_other_accumulator(race, mma, load, &name)) {
            return told;
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
        if let Some(told) = self.explain_turns(race, &name).or_else(|| self.explain_stored_operand(race, &name)) {
            return told;
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
    fn explain_overwritten(&self, race: &Race, mma: Stamp, load: Stamp, name: &Name) -> Draft {
        let mut labels = vec![
            self.label(mma.site, "the tensor core writes it here"),
            self.label(load.site, "read here; its completion is not ordered before the MMA"),
        ];
        let (again, help) = self.waits_for_readers_again(mma, load).unzip();
        // A ring of accumulators that lie too close together: who waits for the one that is begun anew waits as it should.
        let shifted = self.issued.shifted.get(&mma.site).filter(|_| again.is_none());
        let told = self.tells_too_early(mma, load).filter(|_| again.is_none() && shifted.is_none());
        match again {
            Some(wait) => labels.push(wait),
            None => labels.extend(told.as_ref().map(|told| told.0.clone())),
        }
        let shifted = shifted.map(|[(before, ..), (column, m, n)]| {
            labels[0].text = format!(
                "this MMA writes an accumulator of {m} × {n} at column {column}, which begins within the one at column {before}"
            );
            format!(
                "Keep accumulators apart (with FP32, {n} columns each): these begin {} columns from each other.",
                before.abs_diff(*column)
            )
        });
        let help = help.or(shifted).or(told.and_then(|told| told.1));
        Draft::of(race, Some(name))(
            "accumulator-overwritten",
            format!("the {} overwrites {{}} while {} may still be reading it", self.tensor_work(mma), self.who(load)),
            labels,
            "An MMA is not ordered after a tcgen05.ld: the load must be complete (tcgen05.wait::ld) and its thread \
             must then have synchronised with the MMA's (PTX ISA 9.7.16.6.4.4).",
            help.unwrap_or_else(|| {
                "After tcgen05.wait::ld, arrive at a barrier that the MMA's thread waits on.".into()
            }),
        )
    }

    /// Where who reads a product arrives at an mbarrier that the MMA's thread waits for as it should: some of its loads come behind that, or the MMA's
    /// thread has waited for another phase than that of this arrival; and what to try then.
    fn tells_too_early(&self, mma: Stamp, load: Stamp) -> Option<(Label, Option<String>)> {
        let (Some(ActorKind::Mmas { warp, .. }), Some(ActorKind::TensorLoads(reader))) =
            (self.kind(mma), self.kind(load))
        else {
            return None;
        };
        let waits = self.warps.get(warp as usize)?.passed.iter().rev().filter(|passed| passed.fresh && !passed.lost);
        let (barrier, site) = waits
            .flat_map(|passed| {
                let came = self.comes_by_threads(&self.barriers[passed.barrier as usize]);
                came.map(|came| (passed.barrier, came))
            })
            .find(|(_, came)| came.warp == reader as usize)
            .map(|(barrier, came)| (barrier, came.site))?;
        let (who, name) = (self.who(load), self.barrier_name(barrier));
        if !self.leads_past_no_wait(load.site, site) {
            let text = format!(
                "{who} arrives at {name} here, for which the MMA's thread waits: not all of its loads come before"
            );
            return Some((self.label(site, text), None));
        }
        let b = &self.barriers[barrier as usize];
        let text = format!(
            "{who} arrives at {name} here, behind the load; the MMA's thread has waited for a phase before that"
        );
        let arrivers = self.warps_that_arrive(b);
        let help = match arrivers > b.expected {
            true => counts_too_few(&name, arrivers, b.expected),
            false => format!(
                "The arrival comes behind the load, and is waited for: check for how many arrivals {name} is initialised, the parity of the MMA thread's \
                 wait for it, and that of the wait for the product."
            ),
        };
        Some((self.label(site, text), Some(help)))
    }

    /// What the tensor core does for a statement: an MMA or a copy.
    pub fn tensor_work(&self, stamp: Stamp) -> &'static str {
        if self.is_tensor_copy(stamp.site) { "tcgen05.cp" } else { "MMA" }
    }

    /// Whether a warp has waited, as far as that is seen without clocks, for a commit behind the last MMA of a thread.
    fn seems_awaited(&self, (w, lane): (usize, usize), queue: Queue) -> bool {
        let passed = |commit: &Commit| {
            let seen = |passed: &Passed| passed.barrier == commit.barrier && passed.phase >= commit.phase;
            self.warps.iter().any(|warp| warp.passed.iter().any(seen))
        };
        let is_behind = |commit: &&Commit| (commit.warp, commit.epoch) == (w, queue.epoch) && commit.phase.is_some();
        self.covered.get(&(w, lane)) == Some(&queue.epoch) && self.commits.iter().rev().filter(is_behind).any(passed)
    }

    /// MMAs whose completion no warp has waited for when the CTA ends.
    pub fn unawaited_mmas(&mut self) {
        if !self.clocks {
            self.guessed |= self.mma_queues.iter().any(|(&thread, &queue)| !self.seems_awaited(thread, queue));
            return;
        }
        let mut queues: Vec<_> = self.mma_queues.iter().map(|(&(w, lane), &q)| (w, lane, q)).collect();
        queues.sort_unstable_by_key(|&(w, lane, _)| (w, lane));
        for (w, _, queue) in queues {
            if self.warps.iter().any(|warp| warp.live != 0)
                || self.warps.iter().any(|warp| warp.views.heard(queue.actor) >= queue.epoch)
            {
                continue;
            }
            let site = queue.site;
            // What many lanes issued is told, and needs no wait of each of them.
            if self.warps[w].multi_lane_sites.contains(&site) || self.findings.mentions(&self.place(site)) {
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
