//! Turns conflicts into findings: which rule was broken, on which side something is missing, and what to try.
//!
//! Conflicts are explained at the end of the run. By then it is known which commit covers an MMA, and how each warp got past
//! the barrier that the commit arrives at: that tells a missing wait from a wrong phase.

use super::cluster::Cluster;
use super::state::{ActorKind, Race, RaceMemory};
use super::warp::Passed;
use crate::diagnostic::{Diagnostic, Label, Severity};
use crate::order::{Reason, Stamp};

const PROXY_RULE: &str = "Loads and stores go through the generic proxy, the tensor core and TMA access memory through the asynchronous \
                          proxy; between the two, the same bytes need a fence.proxy.async (PTX ISA 8.6, 9.7.13.4, 9.7.16.6.5).";
pub const WAIT_RULE: &str = "tcgen05.ld is asynchronous, and tcgen05.wait::ld is what waits for it (PTX ISA 9.7.16.8.5). Using a register waits \
                             for that register (9.7.16.6.4.5), but puts nothing else in order: neither what overwrites or frees the columns \
                             next, nor a barrier that says they were read.";
pub const WAIT_HELP: &str = "Put tcgen05.wait::ld.sync.aligned between the load and the first use of its registers.";
pub const FREE_RULE: &str = "Freed columns may go to another CTA at once, so every access to them must be complete and \
                             ordered before the tcgen05.dealloc (PTX ISA 9.7.16.6, 9.7.16.7.1).";
pub const FREE_HELP: &str = "Let every warp pass tcgen05.wait::ld and then a CTA barrier before one warp frees it.";

/// A finding whose title names all the buffers that the same mistake concerns.
struct Draft {
    code: &'static str,
    severity: Severity,
    /// `{}` stands for the names.
    title: String,
    names: Vec<String>,
    /// Tensor memory is used before an MMA or a load is complete: freeing it is then too early as well.
    early: bool,
    labels: Vec<Label>,
    rule: &'static str,
    help: String,
    count: u64,
}

impl Cluster<'_> {
    /// Explains all conflicts of the run.
    pub fn explain_races(&mut self) {
        let mut drafts: Vec<Draft> = Vec::new();
        let (certain, doubtful): (Vec<Race>, Vec<Race>) =
            std::mem::take(&mut self.races).into_iter().partition(|race| !race.frees);
        // What an instruction that many lanes issued leads to needs no explanation of its own.
        let repeated: Vec<u32> = self.warps.iter().flat_map(|w| w.multi_lane_sites.iter().copied()).collect();
        let consequence =
            |race: &Race| repeated.contains(&race.conflict.first.site) || repeated.contains(&race.second.site);
        for race in certain.iter().filter(|race| !consequence(race)) {
            self.merge(&mut drafts, self.explain(race));
        }
        // Freeing too early is a finding of its own only where nothing else explains it.
        for race in doubtful.iter().filter(|race| !consequence(race)) {
            let site = self.place(race.conflict.first.site);
            if !drafts.iter().any(|d| d.early) && !self.findings.mentions(&site) {
                self.merge(&mut drafts, self.explain(race));
            }
        }
        let early = drafts.iter().any(|d| d.early);
        for draft in drafts {
            let names = match draft.names.as_slice() {
                [] => String::new(),
                [one] => one.clone(),
                [most @ .., last] => format!("{} and {last}", most.join(", ")),
            };
            self.findings.add(Diagnostic {
                code: draft.code,
                severity: draft.severity,
                title: draft.title.replace("{}", &names),
                labels: draft.labels,
                rule: draft.rule.into(),
                help: draft.help.replace("{}", &names),
                count: draft.count,
            });
        }
        if !early {
            self.unawaited_mmas();
        }
    }

    fn merge(&self, drafts: &mut Vec<Draft>, new: Draft) {
        let line = |l: Option<&Label>| {
            l.map(|l| l.place.source.as_ref().map_or((String::new(), l.place.line), |s| (s.file.clone(), s.line)))
        };
        let same = drafts.iter_mut().find(|d| d.code == new.code && line(d.labels.first()) == line(new.labels.first()));
        let Some(known) = same else {
            drafts.push(new);
            return;
        };
        known.count += new.count;
        for name in new.names {
            if !known.names.contains(&name) {
                known.names.push(name);
            }
        }
        for label in new.labels {
            let seen = known.labels.iter().any(|k| line(Some(k)) == line(Some(&label)));
            if !seen && known.labels.len() < 5 {
                known.labels.push(label);
            }
        }
    }

    fn kind(&self, stamp: Stamp) -> Option<ActorKind> {
        if stamp.cluster != self.index {
            return None;
        }
        self.actors.get(stamp.actor as usize).copied()
    }

    fn who(&self, stamp: Stamp) -> String {
        match self.kind(stamp) {
            Some(
                ActorKind::Warp(w) | ActorKind::TensorLoads(w) | ActorKind::TensorStores(w) | ActorKind::AsyncCopies(w),
            ) => self.warp_name(w as usize),
            Some(ActorKind::Mmas { .. }) => "the tensor core".into(),
            Some(ActorKind::Mbarrier | ActorKind::BulkReads { .. } | ActorKind::BulkWrites { .. }) => {
                "the TMA engine".into()
            }
            None => "another CTA".into(),
        }
    }

    fn explain(&self, race: &Race) -> Draft {
        match race.memory {
            RaceMemory::Shared(_) => self.explain_shared(race),
            RaceMemory::Tensor(_) => self.explain_tensor(race),
            RaceMemory::Global(buffer) => self.explain_global(race, buffer),
        }
    }

    fn explain_shared(&self, race: &Race) -> Draft {
        let (first, second) = (race.conflict.first, race.second);
        let name = self.shared_name(race.conflict.byte as u32);
        let is_mma = |s| matches!(self.kind(s), Some(ActorKind::Mmas { .. }));
        let draft = |code, title: String, labels, rule, help: String| Draft {
            code,
            severity: Severity::Finding,
            title,
            names: vec![name.clone()],
            early: false,
            labels,
            rule,
            help,
            count: race.count,
        };
        // What overwrites does not see what it overwrites: production kernels leave this fence out.
        if race.conflict.reason == Reason::NotFenced && race.conflict.second_writes {
            let did = if race.conflict.first_writes { "writes" } else { "reads" };
            return Draft {
                severity: Severity::Note,
                ..draft(
                    "missing-proxy-fence-before-overwrite",
                    format!("{} overwrites {{}} through the asynchronous proxy, but no proxy fence follows the earlier accesses", self.who(second)),
                    vec![
                        self.label(second.site, "overwritten by this copy"),
                        self.label(first.site, format!("{} {did} it here, through the generic proxy", self.who(first))),
                    ],
                    PROXY_RULE,
                    "Let every thread that accesses the buffer execute fence.proxy.async.shared::cta before it says that it is free.".into(),
                )
            };
        }
        if race.conflict.reason == Reason::NotFenced {
            let reader = if is_mma(second) { "the MMA".to_string() } else { self.who(second) };
            let verb = if race.conflict.second_writes { "writes" } else { "reads" };
            let by = if is_mma(second) {
                "the tensor core reads it here".into()
            } else {
                format!("{reader} {verb} it here")
            };
            let mut labels = vec![
                self.label(second.site, by),
                self.label(first.site, format!("{} stores to it here, through the generic proxy", self.who(first))),
            ];
            if let Some(ActorKind::Warp(warp)) = self.kind(first)
                && let Some(warp) = self.warps.get(warp as usize)
            {
                labels.extend(warp.narrow_fences.first().map(|(site, why)| self.label(*site, why.as_str())));
            }
            return draft(
                "missing-proxy-fence",
                format!(
                    "{reader} {verb} {{}} through the asynchronous proxy, but no proxy fence follows the stores that wrote it"
                ),
                labels,
                PROXY_RULE,
                "Let every thread that stores execute fence.proxy.async.shared::cta after its stores, before the barrier."
                    .into(),
            );
        }
        if is_mma(second) || is_mma(first) {
            let (mma, store) = if is_mma(second) { (second, first) } else { (first, second) };
            if is_mma(second) || race.unwritten {
                return draft(
                    "operand-not-ready",
                    format!("the MMA may read {{}} before {} has stored it", self.who(store)),
                    vec![
                        self.label(mma.site, "the tensor core reads it here"),
                        self.label(
                            store.site,
                            format!("{} stores to it here; nothing orders this before the MMA", self.who(store)),
                        ),
                    ],
                    "Stores of other warps happen before an MMA only through synchronisation with the thread that \
                     issues it, by a CTA barrier or an mbarrier (PTX ISA 8.9.4, 8.9.5).",
                    "Put a CTA barrier (bar.sync) after the stores and their proxy fence, and before the MMA.".into(),
                );
            }
            return draft(
                "operand-overwritten",
                format!("{} stores to {{}} while an MMA may still be reading it", self.who(store)),
                vec![
                    self.label(store.site, "stored to here"),
                    self.label(mma.site, "the tensor core reads it for this MMA"),
                ],
                "That an MMA has read its operands is known only when a tcgen05.commit after it has arrived at its \
                 mbarrier (PTX ISA 9.7.16.6.2.1.1).",
                "Wait for the mbarrier that the MMA's commit arrives at before the tile is overwritten.".into(),
            );
        }
        if race.same_value {
            return self.explain_same_value(race, name.clone());
        }
        let verb = |writes| if writes { "writes" } else { "reads" };
        draft(
            "race-shared",
            format!(
                "{} {} {{}}, {} {} it, and nothing orders the two",
                self.who(first),
                verb(race.conflict.first_writes),
                self.who(second),
                verb(race.conflict.second_writes)
            ),
            vec![
                self.label(second.site, format!("{} {} it here", self.who(second), verb(race.conflict.second_writes))),
                self.label(first.site, format!("{} {} it here", self.who(first), verb(race.conflict.first_writes))),
            ],
            "Plain accesses of different threads to the same bytes, one of them a write, are a data race unless \
             synchronisation orders them (PTX ISA 8.7.1, 8.9.5).",
            if first.site == second.site {
                "Let each byte be written by one warp: check how the address depends on the thread.".into()
            } else {
                "Put a CTA barrier (bar.sync) between the two.".into()
            },
        )
    }

    /// Two warps store the same value to the same place: a race to the letter, without effect on the value.
    fn explain_same_value(&self, race: &Race, name: String) -> Draft {
        let (first, second) = (race.conflict.first, race.second);
        Draft {
            code: "same-value-written-twice",
            severity: Severity::Note,
            title: format!(
                "{} and {} store the same value to {{}}, and nothing orders the two",
                self.who(first),
                self.who(second)
            ),
            names: vec![name],
            early: false,
            labels: vec![self.label(second.site, "stored here"), self.label(first.site, "stored here before")],
            rule: "Plain accesses of different threads to the same bytes, one of them a write, are a data race unless \
                   synchronisation orders them (PTX ISA 8.7.1, 8.9.5), also when the value does not depend on it.",
            help: "Let one warp store it.".into(),
            count: race.count,
        }
    }

    fn explain_global(&self, race: &Race, buffer: usize) -> Draft {
        let (first, second) = (race.conflict.first, race.second);
        let b = &self.global.buffers[buffer];
        if race.same_value {
            return self.explain_same_value(race, b.describe(race.conflict.byte));
        }
        let verb = |writes| if writes { "writes" } else { "reads" };
        Draft {
            code: "race-global",
            severity: Severity::Finding,
            title: format!(
                "{} {} {}, {} {} it, and nothing orders the two",
                self.who(first),
                verb(race.conflict.first_writes),
                b.describe(race.conflict.byte),
                self.who(second),
                verb(race.conflict.second_writes)
            ),
            names: vec![],
            early: false,
            labels: vec![
                self.label(second.site, format!("{} {} it here", self.who(second), verb(race.conflict.second_writes))),
                self.label(first.site, format!("{} {} it here", self.who(first), verb(race.conflict.first_writes))),
            ],
            rule: "Plain accesses of different threads to the same bytes, one of them a write, are a data race unless \
                   synchronisation orders them (PTX ISA 8.7.1, 8.9.5); the launch itself does not order its CTAs.",
            help: "Let each element be written by one thread, and read by others only after synchronisation.".into(),
            count: race.count,
        }
    }

    /// The order is there, but not the fences that the ISA asks for: a note.
    fn explain_missing_fence(&self, race: &Race, name: String) -> Draft {
        let (first, second) = (race.conflict.first, race.second);
        let before = race.conflict.reason == Reason::NoFenceBefore;
        let (fence, place) = if before { ("before", "behind") } else { ("after", "in front of") };
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
            help: format!("Put tcgen05.fence::{fence}_thread_sync {place} the access, next to the synchronisation."),
            count: race.count,
        }
    }

    fn explain_tensor(&self, race: &Race) -> Draft {
        let (first, second) = (race.conflict.first, race.second);
        let column = (race.conflict.byte / 16) as u32 % super::tensor::COLUMNS;
        let name = self.tensor_name(column);
        let is_mma = |s| matches!(self.kind(s), Some(ActorKind::Mmas { .. }));
        let draft = |code, title: String, labels, rule, help: String| Draft {
            code,
            severity: Severity::Finding,
            title,
            names: vec![name.clone()],
            early: false,
            labels,
            rule,
            help,
            count: race.count,
        };
        if matches!(race.conflict.reason, Reason::NoFenceBefore | Reason::NoFenceAfter) {
            return self.explain_missing_fence(race, name);
        }
        if let Some(ActorKind::TensorLoads(reader)) = self.kind(first)
            && self.warps.get(reader as usize).is_some_and(|warp| first.epoch > warp.loads_waited)
            && (race.frees || is_mma(second) && !race.unwritten)
        {
            let what = if race.frees { "freed" } else { "overwritten" };
            return draft(
                "missing-wait-ld",
                format!("{{}} is {what} although nothing waited for the tcgen05.ld that reads it"),
                vec![
                    self.label(first.site, format!("{} reads it here, asynchronously", self.who(first))),
                    self.label(second.site, format!("{what} here")),
                ],
                WAIT_RULE,
                WAIT_HELP.into(),
            );
        }
        if race.frees {
            let what =
                if is_mma(first) { "an MMA may still be writing it" } else { "tcgen05.ld may still be reading it" };
            return draft(
                "tensor-freed-in-use",
                format!("{{}} is freed while {what}"),
                vec![
                    self.label(second.site, "freed here"),
                    self.label(first.site, "used here; nothing orders its completion before"),
                ],
                FREE_RULE,
                FREE_HELP.into(),
            );
        }
        let is_load = |s| matches!(self.kind(s), Some(ActorKind::TensorLoads(_)));
        let pair = match (is_mma(first), is_mma(second)) {
            (true, false) if is_load(second) => Some((first, second)),
            (false, true) if is_load(first) && race.unwritten => Some((second, first)),
            _ => None,
        };
        if let Some((mma, load)) = pair {
            return self.explain_early_read(race, mma, load, &name);
        }
        if is_mma(second) && is_load(first) {
            return draft(
                "accumulator-overwritten",
                format!("the MMA overwrites {{}} while {} may still be reading it", self.who(first)),
                vec![
                    self.label(second.site, "the tensor core writes it here"),
                    self.label(first.site, "read here; its completion is not ordered before the MMA"),
                ],
                "An MMA is not ordered after a tcgen05.ld: the load must be complete (tcgen05.wait::ld) and its thread \
                 must then have synchronised with the MMA's (PTX ISA 9.7.16.6.4.4).",
                "After tcgen05.wait::ld, arrive at a barrier that the MMA's thread waits on.".into(),
            );
        }
        draft(
            "race-tensor",
            format!("two accesses of {{}} ({} and {}) are not ordered", self.who(first), self.who(second)),
            vec![self.label(second.site, "accessed here"), self.label(first.site, "accessed here before")],
            "Asynchronous accesses of tensor memory, other than the pairs that run as a pipeline, are ordered only by \
             waiting for completion and by synchronisation (PTX ISA 9.7.16.6.1, 9.7.16.6.2).",
            "Wait for the first (tcgen05.wait::ld, ::st, or commit and mbarrier) before the second.".into(),
        )
    }

    /// Tensor memory is read before the MMA that writes it is known to be complete: no commit, no wait, or a wait for the
    /// wrong phase.
    fn explain_early_read(&self, race: &Race, mma: Stamp, load: Stamp, name: &str) -> Draft {
        let base = |code, title: String, labels, help: String| Draft {
            code,
            severity: Severity::Finding,
            title,
            names: vec![name.to_string()],
            early: true,
            labels,
            rule: "What an MMA writes may be read only after a tcgen05.commit that follows it has arrived at an \
                   mbarrier and the reader has waited for that phase (PTX ISA 9.7.16.6.2.1.1, 9.7.16.6.4.4). A wait \
                   for parity P passes when the phase before the current one has parity P (9.7.13.15.16): on a fresh \
                   mbarrier, P = 1 passes at once.",
            help,
            count: race.count,
        };
        let read = self.label(load.site, format!("{} reads it here", self.who(load)));
        let written = self.label(mma.site, "the MMA that writes it");
        let commit = self.commits.iter().find(|c| c.queue == mma.actor && c.epoch >= mma.epoch);
        let Some(commit) = commit else {
            return base(
                "mma-not-committed",
                "{} is read before the MMA is complete: no tcgen05.commit follows the MMA".into(),
                vec![written, read],
                "After the last MMA, let the same thread execute tcgen05.commit to an mbarrier, and let the readers wait for it."
                    .into(),
            );
        };
        let barrier = self.barrier_name(commit.barrier);
        let phase = commit.phase.unwrap_or(self.barriers[commit.barrier as usize].phase);
        let arrival = self.label(commit.site, format!("its completion arrives at {barrier}, in phase {phase}"));
        let passed: Option<&Passed> = race.passed.iter().find(|p| p.barrier == commit.barrier);
        // The wait was for the right phase, but something else completed that phase before.
        if let Some(Passed { site, phase: Some(n), fresh: true, .. }) = passed
            && *n < phase
            && let Some(early) = self.early_arrival(commit.barrier, *n)
        {
            return base(
                "early-arrival",
                format!("{barrier} completes phase {n} before the MMA that writes {{}} is complete"),
                vec![
                    self.label(early, format!("an arrival from here completes phase {n}")),
                    self.label(*site, format!("this wait passed on phase {n}")),
                    read,
                    self.label(commit.site, format!("the MMA's completion arrives in phase {phase}")),
                ],
                "Let one arrival complete one phase for each wait: a single tcgen05.commit, after the last MMA.".into(),
            );
        }
        match passed {
            Some(p) if p.phase.is_none_or(|passed| passed < phase) => {
                let why = match p.phase {
                    None => "at once: the barrier was fresh, and parity 1 counts as complete".to_string(),
                    Some(n) => format!("on phase {n}"),
                };
                base(
                    "wrong-phase",
                    format!(
                        "the wait for parity {} of {barrier} passes before the MMA that writes {{}} is complete",
                        p.parity
                    ),
                    vec![self.label(p.site, format!("this wait passed {why}")), read, arrival],
                    format!("Wait for parity {} here: phase {phase} has that parity.", phase % 2),
                )
            }
            _ => base(
                "mma-not-awaited",
                format!("{} reads {{}} without waiting for the MMA that writes it", self.who(load)),
                vec![read, written, arrival],
                format!(
                    "Let every warp that reads it wait for {barrier} (mbarrier.try_wait.parity, parity {}) first.",
                    phase % 2
                ),
            ),
        }
    }

    /// The statement of the last arrival in a phase.
    fn early_arrival(&self, barrier: u32, phase: u64) -> Option<u32> {
        let history = &self.barriers[barrier as usize].history;
        history.iter().rev().find(|(n, _)| *n == phase).map(|&(_, site)| site)
    }

    /// MMAs whose completion no warp has waited for when the CTA ends.
    fn unawaited_mmas(&mut self) {
        let mut queues: Vec<_> = self.mma_queues.iter().map(|(&(w, lane), &q)| (w, lane, q)).collect();
        queues.sort_unstable_by_key(|&(w, lane, _)| (w, lane));
        for (w, _, queue) in queues {
            if self.warps.iter().any(|warp| warp.live != 0)
                || self.warps.iter().any(|warp| warp.views.hb.get(queue.actor) >= queue.epoch)
            {
                continue;
            }
            let Some(last) = self.mmas.iter().rev().find(|m| m.warp == w) else { continue };
            let site = last.site;
            if self.findings.mentions(&self.place(site)) {
                continue;
            }
            let mut diagnostic = self.problem(
                "mma-outlives-cta",
                site,
                "the CTA ends although nobody has waited for this MMA".into(),
                "An MMA is known to be complete only after a tcgen05.commit and a wait for its mbarrier (PTX ISA \
                 9.7.16.6.2.1.1); the memory that it works on is the CTA's, and goes with the CTA.",
                "Commit the last MMA to an mbarrier and wait for it before the CTA ends.".into(),
            );
            diagnostic.severity = Severity::Finding;
            self.findings.add(diagnostic);
        }
    }
}
