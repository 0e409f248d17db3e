//! Turns conflicts into findings: which rule was broken, on which side something is missing, and what to try.
//!
//! Conflicts are explained at the end of the run. By then it is known which commit covers an MMA, and how each warp got past
//! the barrier that the commit arrives at: that tells a missing wait from a wrong phase.

use super::cluster::Cluster;
use super::explain_copy::Cure;
use super::findings::{Key, key};
use super::state::{ActorKind, Race, RaceMemory};
use super::warp::Warp;
use crate::diagnostic::{Diagnostic, Label, Severity, join_labels};
use crate::order::{Conflict, Reason, Stamp, Views};
use crate::program::op::{Op, TmaKind};
use rustc_hash::FxHashMap;

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

pub const GLOBAL_RULE: &str = race_rule!("; the launch itself does not order its CTAs.");

/// A finding whose title names all the buffers that the same mistake concerns.
pub struct Draft {
    pub code: &'static str,
    pub severity: Severity,
    /// `{}` stands for the names.
    pub title: String,
    pub names: Vec<String>,
    /// Tensor memory is used before an MMA or a load is complete: freeing it is then too early as well.
    pub early: bool,
    pub labels: Vec<Label>,
    pub rule: &'static str,
    pub help: String,
    pub count: u64,
}

impl Draft {
    /// Makes findings about this race of code, title, labels, rule and help.
    pub fn of(
        race: &Race,
        name: &str,
    ) -> impl Fn(&'static str, String, Vec<Label>, &'static str, String) -> Draft + use<> {
        let (count, name) = (race.count, name.to_string());
        move |code, title, labels, rule, help| Draft {
            code,
            severity: Severity::Finding,
            title,
            names: vec![name.clone()],
            early: false,
            labels,
            rule,
            help,
            count,
        }
    }
}

/// Findings, one for each code and line.
#[derive(Default)]
struct Drafts {
    list: Vec<Draft>,
    known: FxHashMap<Key, usize>,
}

impl Drafts {
    fn add(&mut self, new: Draft) {
        let n = *self.known.entry(key(new.code, new.severity, &new.labels)).or_insert(self.list.len());
        let Some(known) = self.list.get_mut(n) else {
            self.list.push(new);
            return;
        };
        known.count += new.count;
        for name in new.names {
            if !known.names.contains(&name) {
                known.names.push(name);
            }
        }
        join_labels(&mut known.labels, new.labels);
    }
}

/// Where an MMA reads bytes that nothing orders, neither after what stores them nor before what overwrites them, one thing is told if it was
/// too early first: the second is a label of that. Who overwrites too early first is the cause, and makes the MMA read too early in turn.
fn join_directions(drafts: &mut Vec<Draft>) {
    let place = |d: &Draft, n: usize| d.labels.get(n).map(|label| label.place.clone());
    let mut n = 0;
    while n < drafts.len() {
        let (store, mma) = (place(&drafts[n], 0), place(&drafts[n], 1));
        let is_pair = |d: &Draft| {
            let stores = d.labels.iter().skip(1).any(|label| Some(&label.place) == store.as_ref());
            (d.code, d.severity) == ("operand-not-ready", Severity::Finding) && place(d, 0) == mma && stores
        };
        let known = match drafts[n].code {
            "operand-overwritten" if drafts[n].severity == Severity::Finding => drafts[..n].iter().position(is_pair),
            _ => None,
        };
        let Some(known) = known else {
            n += 1;
            continue;
        };
        let other = drafts.remove(n);
        let known = &mut drafts[known];
        known.count += other.count;
        let label = known.labels.iter_mut().skip(1).find(|label| Some(&label.place) == store.as_ref());
        label.into_iter().for_each(|label| label.text += "; nor does the MMA come before the next time");
        let hint = " If its stage is waited for and released as it should be, the MMA's address is that of another.";
        if !known.help.ends_with(hint) {
            known.help += hint;
        }
    }
}

impl Cluster<'_> {
    /// Explains all conflicts of the run.
    pub fn explain_races(&mut self) {
        let mut drafts = Drafts::default();
        let (certain, doubtful): (Vec<Race>, Vec<Race>) =
            std::mem::take(&mut self.races).into_iter().partition(|race| !race.frees);
        // What an instruction that many lanes issued leads to needs no explanation of its own.
        let repeated: Vec<u32> = self.warps.iter().flat_map(|w| w.multi_lane_sites.iter().copied()).collect();
        let consequence =
            |race: &Race| repeated.contains(&race.conflict.first.site) || repeated.contains(&race.second.site);
        for race in certain.iter().filter(|race| !consequence(race)) {
            let draft = self.explain(race);
            self.findings.overflow_first |= draft.code == "operand-not-ready" && self.overflows_otherwise(race.second);
            drafts.add(draft);
        }
        // Freeing too early is a finding of its own only where nothing else explains it.
        for race in doubtful.iter().filter(|race| !consequence(race)) {
            let site = self.place(race.conflict.first.site);
            // Nor where it is said of the same store that nothing waits for it.
            let unwaited =
                |d: &Draft| d.rule == super::explain_tensor::STORE_RULE && d.labels.iter().any(|l| l.place == site);
            if !drafts.list.iter().any(|d| d.early || unwaited(d)) && !self.findings.mentions(&site) {
                drafts.add(self.explain(race));
            }
        }
        let mut drafts = drafts.list;
        join_directions(&mut drafts);
        let early = drafts.iter().any(|d| d.early);
        for draft in drafts {
            let names = match draft.names.as_slice() {
                [] => String::new(),
                [one] => one.clone(),
                [a, b, c, rest @ ..] if rest.len() > 1 => format!("{a}, {b}, {c} and {} more", rest.len()),
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
            Some(ActorKind::NonCoherent) => "a warp".into(),
            Some(ActorKind::AsyncCopies(w)) => format!("cp.async of {}", self.warp_name(w as usize)),
            Some(ActorKind::Mmas { .. } | ActorKind::Wgmmas { .. } | ActorKind::Commits) => "the tensor core".into(),
            Some(ActorKind::Mbarrier) => self.called_async(stamp.site).unwrap_or("the TMA engine").into(),
            Some(ActorKind::BulkReads { .. } | ActorKind::BulkWrites { .. }) => "the TMA engine".into(),
            None => self.stranger(stamp),
        }
    }

    fn explain(&self, race: &Race) -> Draft {
        match race.memory {
            _ if race.conflict.reason == Reason::TooNarrow => self.explain_scope(race),
            _ if race.conflict.reason == Reason::NotAcquired => self.explain_relaxed(race),
            RaceMemory::Shared(_) => self.explain_shared(race),
            RaceMemory::Tensor(_) => self.explain_tensor(race),
            RaceMemory::Global(buffer) => self.explain_global(race, buffer),
        }
    }

    fn explain_shared(&self, race: &Race) -> Draft {
        let (first, second) = (race.conflict.first, race.second);
        let name = self.shared_name(race.conflict.byte as u32);
        let is_mma = |s| matches!(self.kind(s), Some(ActorKind::Mmas { .. } | ActorKind::Wgmmas { .. }));
        let draft = Draft::of(race, &name);
        // What overwrites does not see what it overwrites: production kernels leave this fence out.
        if race.conflict.reason == Reason::NotFenced
            && race.conflict.second_writes
            && !(race.conflict.first_writes && self.combines(second.site))
        {
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
            let reader = if is_mma(second) { format!("the {}", self.tensor_work(second)) } else { self.who(second) };
            let verb = if race.conflict.second_writes { "adds to" } else { "reads" };
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
                && let Some(fence) = race.narrow_fence
            {
                let fence = self.warps.get(warp as usize).and_then(|warp| warp.narrow_fences.get(fence));
                labels.extend(fence.map(|fence| self.label(fence.site, fence.why.as_str())));
            }
            let copied = matches!(self.kind(first), Some(ActorKind::AsyncCopies(_)));
            // CUTLASS and Tilus let MMAs read what cp.async wrote without this fence.
            let severity = if copied && is_mma(second) { Severity::Note } else { Severity::Finding };
            let finding = draft(
                "missing-proxy-fence",
                format!(
                    "{reader} {verb} {{}} through the asynchronous proxy, but no proxy fence follows the stores that wrote it"
                ),
                labels,
                PROXY_RULE,
                "Let every thread that stores execute fence.proxy.async.shared::cta after its stores, before the barrier."
                    .into(),
            );
            return Draft { severity, ..finding };
        }
        if is_mma(second) || is_mma(first) {
            let (mma, store) = if is_mma(second) { (second, first) } else { (first, second) };
            if is_mma(second) && !race.late || race.unwritten {
                let cure = self.cure_of_unheeded(race).or_else(|| self.cure_of_copy(race, false));
                let cure = cure.unwrap_or_else(|| {
                    Cure::new(
                        "Stores of other warps happen before an MMA only through synchronisation with the thread that issues it, by a \
                         CTA barrier or an mbarrier (PTX ISA 8.9.4, 8.9.5).",
                        "Put a CTA barrier (bar.sync) after the stores and their proxy fence, and before the MMA.",
                    )
                });
                return draft(
                    "operand-not-ready",
                    format!("the {} may read {{}} before {} has stored it", self.tensor_work(mma), self.who(store)),
                    cure.labels_behind([
                        self.label(mma.site, "the tensor core reads it here"),
                        self.label(
                            store.site,
                            format!("{} stores to it here; nothing orders this before the MMA", self.who(store)),
                        ),
                    ]),
                    cure.rule,
                    cure.help,
                );
            }
            let (rule, help) = match self.kind(mma) {
                Some(ActorKind::Wgmmas { .. }) => {
                    (super::explain_wgmma::OPERAND_RULE, super::explain_wgmma::OPERAND_HELP)
                }
                _ => (
                    "That an MMA has read its operands is known only when a tcgen05.commit after it has arrived at its \
                     mbarrier (PTX ISA 9.7.16.6.2.1.1).",
                    "Wait for the mbarrier that the MMA's commit arrives at before the tile is overwritten.",
                ),
            };
            let mut labels = vec![
                self.label(store.site, "stored to here"),
                self.label(mma.site, format!("the tensor core reads it for this {}", self.tensor_work(mma))),
            ];
            let earlier = self.passed_earlier(race, mma).map(|(label, help)| (vec![label], help));
            let (earlier, better) = self.told_by_another(race, mma).or(earlier).unzip();
            labels.extend(earlier.into_iter().flatten());
            let work = if self.is_tensor_copy(mma.site) { "a tcgen05.cp" } else { "an MMA" };
            return draft(
                "operand-overwritten",
                format!("{} stores to {{}} while {work} may still be reading it", self.who(store)),
                labels,
                rule,
                better.unwrap_or_else(|| help.into()),
            );
        }
        if race.same_value {
            return self.explain_same_value(race, name.clone());
        }
        let verb = |writes| if writes { "writes" } else { "reads" };
        let cure = self.cure_of_unheeded(race).or_else(|| self.relaxed_cluster_barrier(race));
        let cure = cure.or_else(|| self.mixed_barrier(race));
        let cure = cure.or_else(|| self.cure_of_copy(race, false));
        let cure = cure.or_else(|| self.cure_of_words(first, second)).unwrap_or_else(|| {
            let are_warps = [first, second].iter().all(|&s| matches!(self.kind(s), Some(ActorKind::Warp(_))));
            let help = if first.site == second.site {
                "Let each byte be written by one warp: check how the address depends on the thread."
            } else if are_warps && self.apart(first, second) {
                "Put a cluster barrier between the two (barrier.cluster.arrive and barrier.cluster.wait), or an mbarrier.arrive.release.cluster \
                 behind the first and a wait with .acquire.cluster before the second."
            } else {
                "Put a CTA barrier (bar.sync) between the two."
            };
            Cure::new(race_rule!("."), help)
        });
        draft(
            "race-shared",
            format!(
                "{} {} {{}}, {} {} it, and nothing orders the two",
                self.who(first),
                verb(race.conflict.first_writes),
                self.who(second),
                verb(race.conflict.second_writes)
            ),
            cure.labels_behind([
                self.label(second.site, format!("{} {} it here", self.who(second), verb(race.conflict.second_writes))),
                self.label(first.site, format!("{} {} it here", self.who(first), verb(race.conflict.first_writes))),
            ]),
            cure.rule,
            cure.help,
        )
    }

    /// The first access came before the second in time, by a relaxed arrival at the cluster barrier, which orders nothing.
    fn relaxed_cluster_barrier(&self, race: &Race) -> Option<Cure> {
        let site = race.relaxed_arrival?;
        let cure = Cure::new(
            "barrier.cluster.arrive.relaxed orders no accesses, not even of the own CTA's shared memory (PTX ISA, barrier.cluster).",
            "Let the arrival at the cluster barrier release: leave .relaxed out, or put fence.acq_rel.cluster in front of it.",
        );
        Some(Cure { labels: vec![self.label(site, "relaxed: this orders none of the accesses before it")], ..cure })
    }

    /// Both are of warps that meet at a barrier with a thread count, and so do others, as they come.
    fn mixed_barrier(&self, race: &Race) -> Option<Cure> {
        let warp = |stamp| match self.kind(stamp)? {
            ActorKind::Warp(w) | ActorKind::BulkReads { warp: w } => self.warps.get(w as usize),
            _ => None,
        };
        let (first, second) = (warp(race.conflict.first)?, warp(race.second)?);
        let named = &self.ctas.get(first.cta).filter(|_| first.cta == second.cta)?.named;
        let comes = |mixed: &[(u32, u32); 2], warp: u32| mixed.iter().any(|(who, _)| who >> warp & 1 != 0);
        let all = (0..).zip(named.iter()).filter_map(|(id, named)| Some((id, named.mixed()?)));
        let (id, groups): (u32, _) =
            all.into_iter().find(|(_, mixed)| comes(mixed, first.index) && comes(mixed, second.index))?;
        let listed = |who: u32| {
            let all: Vec<String> = (0..32).filter(|w| who >> w & 1 != 0).map(|w| w.to_string()).collect();
            format!("warps {}", all.join(", "))
        };
        let labels = groups
            .map(|(who, site)| self.label(site, format!("{} met at barrier {id}, the last of them here", listed(who))));
        let cure = Cure::new(
            "A barrier with a thread count is complete when so many threads have come, whichever they are (PTX ISA 9.7.13.1).",
            format!(
                "Give each group of warps a barrier number of its own: at barrier {id}, warps of different groups let each other go on."
            ),
        );
        Some(Cure { labels: labels.into(), ..cure })
    }

    /// A proxy fence behind an access that does not cover it, and of which this warp has heard: it stands where it might have served.
    pub fn narrow_fence_between(&self, first: Stamp, second: &Warp) -> Option<usize> {
        let Some(ActorKind::Warp(warp)) = self.kind(first) else { return None };
        let warp = self.warps.get(warp as usize)?;
        let heard = |epoch| warp.actor == second.actor || second.views.came_before(warp.actor) > epoch;
        warp.narrow_fences.iter().position(|fence| first.epoch <= fence.epoch && heard(fence.epoch))
    }

    /// The first relaxed arrival at the cluster barrier behind an access, of those that its warp has made and that came before to the eyes of who
    /// knows this.
    pub fn relaxed_arrival_behind(&self, first: Stamp, known: &Views) -> Option<u32> {
        let (warp, copied) = match self.kind(first)? {
            ActorKind::Warp(warp) => (warp, false),
            ActorKind::AsyncCopies(warp) => (warp, true),
            _ => return None,
        };
        let warp = self.warps.get(warp as usize)?;
        let heard = known.came_before(warp.actor);
        let behind = |&&(_, epoch, copies): &&(u32, u32, u32)| {
            epoch <= heard && first.epoch <= if copied { copies } else { epoch }
        };
        warp.relaxed_arrivals.iter().find(behind).map(|&(site, ..)| site)
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
            _ => None,
        };
        self.kernel.code.iter().filter(|inst| inst.site == site).find_map(|inst| called(&inst.op))
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
    pub fn explain_same_value(&self, race: &Race, name: String) -> Draft {
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
