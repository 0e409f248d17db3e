//! Turns conflicts into findings: which rule was broken, on which side something is missing, and what to try.
//!
//! Conflicts are explained at the end of the run. By then it is known which commit covers an MMA, and how each warp got past
//! the barrier that the commit arrives at: that tells a missing wait from a wrong phase.

pub mod alike;
pub mod arrival;
pub mod behind;
pub mod belongs;
pub mod bytes;
pub mod copy;
pub mod count;
pub mod drafts;
pub mod elsewhere;
pub mod findings;
pub mod flag;
pub mod follows;
pub mod forks;
pub mod free;
pub mod freed;
pub mod global;
pub mod groups;
pub mod init_order;
pub mod issued_by_warps;
pub mod misplaced_fence;
pub mod names;
pub mod other_accumulator;
pub mod overlap;
pub mod overtaken;
pub mod phase;
pub mod promises;
pub mod protocol;
pub mod shared;
pub mod short_launch;
pub mod started;
pub mod statements;
pub mod stored_operand;
pub mod stores;
pub mod strong;
pub mod tensor;
pub mod unheeded;
pub mod unused;
pub mod wgmma;

use crate::diagnostic::{Diagnostic, Severity};
use crate::machine::cluster::Cluster;
use crate::machine::state::{ActorKind, Race, RaceMemory};
use crate::machine::tensor_memory::{CELL, COLUMNS};
use crate::order::{Conflict, Reason, Stamp};
use crate::program::op::{Op, TmaKind};
use drafts::{Draft, Drafts, join_alike, join_directions, join_readers};
use names::{Name, listed};

pub const PROXY_RULE: &str = "Loads and stores go through the generic proxy, the tensor core and TMA access memory through the asynchronous \
                          proxy; between the two, the same bytes need a fence.proxy.async (PTX ISA 8.6, 9.7.13.4, 9.7.16.6.5).";

/// The rule of races, and what is to be added to it.
macro_rules! race_rule {
    ($more:literal) => {
        concat!(
            "Plain accesses of different threads to the same bytes, one of them a write, are a data race unless synchronisation orders \
             them (PTX ISA 8.7.1, 8.9.5)",
            $more
        )
    };
}

pub const RACE_RULE: &str = race_rule!(".");
pub const GLOBAL_RULE: &str = race_rule!("; the launch itself does not order its CTAs.");
pub const UNUSED_RULE: &str = race_rule!(", also when nothing depends on the value.");

/// Advice for threads of one CTA, made one for those of two CTAs of a cluster: no CTA barrier is for both.
fn across_ctas(help: &str) -> String {
    const BARRIER: &str = "a cluster barrier (barrier.cluster.arrive, then barrier.cluster.wait)";
    const INSTEAD: &[(&str, &str)] = &[
        ("a CTA barrier (bar.sync 0)", BARRIER),
        ("a CTA barrier (bar.sync)", BARRIER),
        ("a barrier (bar.sync)", BARRIER),
        ("(bar.sync)", "(at a cluster barrier)"),
        ("(or a CTA barrier)", "(or a cluster barrier)"),
        ("(CTA barrier, or the mbarrier)", "(cluster barrier, or the mbarrier)"),
    ];
    INSTEAD.iter().fold(help.to_string(), |help, (one, other)| help.replace(one, other))
}

impl Cluster<'_> {
    /// Explains all conflicts of the run.
    pub fn explain_races(&mut self) {
        self.tell_who_runs_ahead();
        let mut drafts = Drafts::default();
        let (certain, doubtful): (Vec<Race>, Vec<Race>) =
            std::mem::take(&mut self.races).into_iter().partition(|race| !race.frees);
        // What an instruction that many lanes issued leads to needs no explanation of its own.
        let mut repeated: Vec<u32> = self.warps.iter().flat_map(|w| w.multi_lane_sites.iter().copied()).collect();
        if repeated.is_empty() {
            repeated = self.tell_mmas_of_several_warps(&certain);
        }
        let consequence =
            |race: &Race| repeated.contains(&race.conflict.first.site) || repeated.contains(&race.second.site);
        // Nor does it where accumulators overlap: who reads the one races with the MMAs of the other.
        let astray = |race: &Race| {
            let column = (race.conflict.byte / CELL) as u32 % COLUMNS;
            let is_it = |&(site, first, end): &(u32, u32, u32), stamp: Stamp| {
                site == stamp.site && (first..end).contains(&column)
            };
            let of_mma = |stamp: Stamp| self.issued.astray.iter().any(|astray| is_it(astray, stamp));
            matches!(race.memory, RaceMemory::Tensor(_)) && (of_mma(race.conflict.first) || of_mma(race.second))
        };
        let (certain, astray): (Vec<Race>, Vec<Race>) = certain.into_iter().partition(|race| !astray(race));
        let early = !astray.is_empty();
        for race in certain.iter().filter(|race| !consequence(race)) {
            let draft = self.explain(race);
            self.findings.overflow_first |= draft.code == "operand-not-ready" && self.overflows_otherwise(race.second);
            drafts.add(draft);
        }
        // Freeing too early is a finding of its own only where nothing else explains it.
        for race in doubtful.iter().filter(|race| !consequence(race)) {
            let site = self.place(race.conflict.first.site);
            // Nor where it is said of the same store that nothing waits for it.
            let unwaited = |d: &Draft| d.rule == tensor::STORE_RULE && d.labels.iter().any(|l| l.place == site);
            if !early && !drafts.list.iter().any(|d| d.early || unwaited(d)) && !self.findings.mentions(&site) {
                drafts.add(self.explain(race));
            }
        }
        let mut drafts = drafts.list;
        join_directions(&mut drafts);
        join_alike(&mut drafts);
        join_readers(&mut drafts);
        let early = early || drafts.iter().any(|d| d.early);
        for draft in drafts {
            let names = listed(&draft.names);
            self.findings.add(Diagnostic {
                code: draft.code,
                severity: draft.severity,
                title: draft.title.replace("{}", &names),
                labels: draft.labels,
                rule: draft.rule.into(),
                help: draft.help.replace("{}", &names),
                count: draft.count,
                confirmed: None,
            });
        }
        if !early {
            self.unawaited_mmas();
        }
    }

    pub fn kind(&self, stamp: Stamp) -> Option<ActorKind> {
        if stamp.cluster != self.index {
            return None;
        }
        self.actors.get(stamp.actor as usize).copied()
    }

    pub fn who(&self, stamp: Stamp) -> String {
        match self.kind(stamp) {
            Some(ActorKind::Warp(w) | ActorKind::TensorLoads(w) | ActorKind::TensorStores(w)) => {
                self.warp_name(w as usize)
            }
            Some(ActorKind::Prerequisite) => "the grid before".into(),
            Some(ActorKind::NonCoherent | ActorKind::ClusterBarrier) => "a warp".into(),
            Some(ActorKind::AsyncCopies(w)) => format!("cp.async of {}", self.warp_name(w as usize)),
            Some(ActorKind::Mmas { .. } | ActorKind::Wgmmas { .. } | ActorKind::Commits) => "the tensor core".into(),
            Some(ActorKind::Mbarrier) => self.called_async(stamp.site).unwrap_or("the TMA engine").into(),
            Some(ActorKind::BulkReads { .. } | ActorKind::BulkWrites { .. } | ActorKind::MapReads { .. }) => {
                "the TMA engine".into()
            }
            None => self.stranger(stamp),
        }
    }

    fn explain(&self, race: &Race) -> Draft {
        let draft = match race.memory {
            _ if race.conflict.reason == Reason::TooNarrow => self.explain_scope(race),
            _ if race.conflict.reason == Reason::NotAcquired => self.explain_relaxed(race),
            RaceMemory::Shared(_) => self.explain_shared(race),
            RaceMemory::Tensor(_) => self.with_an_unheeded_wait(race, self.explain_tensor(race)),
            RaceMemory::Global(buffer) => self.explain_global(race, buffer),
        };
        let draft = self.of_an_unread_wait(race, draft);
        match self.ctas_of(race.conflict.first, race.second) {
            Some(_) => Draft { help: across_ctas(&draft.help), ..draft },
            None => draft,
        }
    }

    /// An arrival was one too many, made by others than who issues this MMA, at an mbarrier that the MMA has waited for: that the MMA reads too
    /// early is a consequence. Else its commit, or what comes behind it, may be what arrives too early.
    fn overflows_otherwise(&self, mma: Stamp) -> bool {
        let (Some((barrier, by)), Some(ActorKind::Mmas { warp, .. } | ActorKind::Wgmmas { warp })) =
            (self.overflowed, self.kind(mma))
        else {
            return false;
        };
        let warpgroup = |w: usize| self.warps.get(w).map(|warp| (warp.cta, warp.index / 4));
        let own = match self.kind(mma) {
            Some(ActorKind::Wgmmas { .. }) => warpgroup(by) == warpgroup(warp as usize),
            _ => by == warp as usize,
        };
        let passed = self.warps.get(warp as usize).map_or(&[][..], |warp| &warp.passed[..]);
        !own && passed.iter().any(|passed| passed.barrier == barrier && passed.phase.is_some())
    }

    /// What a statement is called that has an mbarrier count what threads store.
    pub fn called_async(&self, site: u32) -> Option<&'static str> {
        let called = |op: &Op| match op {
            Op::AsyncStore(op) => Some(if op.update.is_some() { "a red.async" } else { "an st.async" }),
            Op::TryCancel { .. } => Some("launch control"),
            _ => None,
        };
        self.kernel.code.iter().filter(|inst| inst.site == site).find_map(|inst| called(&inst.op))
    }

    /// What a statement is called that writes shared memory.
    pub fn called_writer(&self, site: u32) -> &'static str {
        let copies = |op: &Op| matches!(op, Op::Tma(_));
        match self.called_async(site) {
            Some(name) => name,
            None if self.kernel.code.iter().any(|inst| inst.site == site && copies(&inst.op)) => "a bulk copy",
            None => "a plain store",
        }
    }

    /// Whether the first access of a conflict writes what it writes whatever was there before. What an atomic operation or a reduction leaves
    /// depends on who came before it: a store of the same value behind it is harmless in this order only.
    pub fn overwrites(&self, conflict: &Conflict) -> bool {
        conflict.first_writes && !self.combines(conflict.first.site)
    }

    /// Whether what a statement leaves in memory depends on what was there.
    pub fn combines(&self, site: u32) -> bool {
        let combines = |op: &Op| match op {
            Op::Atomic(_) => true,
            Op::Tma(op) => matches!(op.kind, TmaKind::Reduce(_)),
            Op::AsyncStore(op) => op.update.is_some(),
            _ => false,
        };
        self.kernel.code.iter().any(|inst| inst.site == site && combines(&inst.op))
    }

    /// Two warps store the same value to the same place: a race to the letter, without effect on the value.
    pub fn explain_same_value(&self, race: &Race, name: Name) -> Draft {
        let (first, second) = (race.conflict.first, race.second);
        let in_global = matches!(race.memory, RaceMemory::Global(_));
        let who = |stamp| if in_global { self.who_of_grid(stamp) } else { self.who(stamp) };
        Draft {
            code: "same-value-written-twice",
            severity: Severity::Note,
            title: format!(
                "{} and {} store the same value to {{}}, and nothing orders the two",
                who(first),
                who(second)
            ),
            names: vec![name],
            early: false,
            labels: vec![self.label(second.site, "stored here"), self.label(first.site, "stored here before")],
            rule: race_rule!(", also when the value does not depend on it."),
            help: "Let one warp store it.".into(),
            count: race.count,
        }
    }

    /// Whether a statement loads with `.nc`.
    pub fn is_non_coherent(&self, site: u32) -> bool {
        self.kernel.code.iter().any(|i| i.site == site && matches!(&i.op, Op::Load(load) if load.non_coherent))
    }

    /// Whether they are of different CTAs.
    pub fn apart(&self, first: Stamp, second: Stamp) -> bool {
        let cta = |stamp| match self.kind(stamp) {
            Some(ActorKind::Warp(w)) => self.warps.get(w as usize).map(|warp| warp.cta),
            _ => None,
        };
        first.cluster != second.cluster || cta(first) != cta(second)
    }
}
