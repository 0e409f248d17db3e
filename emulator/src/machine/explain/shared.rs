//! Conflicts in shared memory: what is missing between the two accesses.

use super::copy::Cure;
use super::drafts::Draft;
use super::names::Name;
use super::{PROXY_RULE, RACE_RULE};
use crate::diagnostic::{Label, Meaning, Severity, Subject};
use crate::machine::cluster::Cluster;
use crate::machine::state::{ActorKind, Race, RaceMemory};
use crate::machine::warp::Warp;
use crate::order::{Reason, Stamp, Views};
use crate::program::facts::{Way, ways_lead};
use crate::program::op::{Inst, Op};
use crate::protocol::What;
use smallvec::SmallVec;

impl Cluster<'_> {
    pub fn explain_shared(&self, race: &Race) -> Draft {
        let (first, second) = (race.conflict.first, race.second);
        let name = self.shared_place(race.conflict.byte as u32);
        let is_mma = |s| matches!(self.kind(s), Some(ActorKind::Mmas { .. } | ActorKind::Wgmmas { .. }));
        let draft = Draft::of(race, Some(&name));
        if let Some(stages) = self.stages_overlap(race, &name).or_else(|| self.one_place_for_two_stages(race, &name)) {
            return stages;
        }
        // What overwrites does not see what it overwrites: production kernels leave this fence out, behind what they have read, and behind what they have
        // stored (Triton's, behind the stores of an epilogue).
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
            let by = self.issuer(second).map_or("the reader".to_string(), |w| self.warp_name(w));
            let (misplaced, other_side) = race.misplaced.map(|fence| self.tell_misplaced(fence, &by)).unzip();
            labels.extend(misplaced);
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
                match self.called_async(first.site) {
                    _ if copied => {
                        "Let every thread that copies execute fence.proxy.async.shared::cta after it has waited for its copies \
                         (cp.async.wait_group), before the barrier."
                    }
                    // Its own thread may be of another CTA, and does not know when it is over.
                    Some(_) => {
                        "Let a thread that has waited for the bytes at their mbarrier execute fence.proxy.async.shared::cta behind the wait, \
                         and only then, or behind a barrier with it, let the asynchronous proxy read them."
                    }
                    None => other_side.unwrap_or(
                        "Let every thread that stores execute fence.proxy.async.shared::cta after its stores, before the barrier.",
                    ),
                }
                .into(),
            );
            return Draft { severity, ..finding };
        }
        if is_mma(second) || is_mma(first) {
            let (mma, store) = if is_mma(second) { (second, first) } else { (first, second) };
            if let Some(draft) = self.explain_stage(race, &name) {
                return draft;
            }
            if is_mma(second) && !race.late || race.unwritten || self.passed_again_for_load(race).is_some() {
                let overrun = match race.memory {
                    RaceMemory::Shared(cta) => self.cure_of_an_overrun(cta, race.conflict.byte, mma.site),
                    _ => None,
                };
                let cure = overrun.or_else(|| self.cure_of_unheeded(race)).or_else(|| self.cure_of_copy(race, false));
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
                Some(ActorKind::Wgmmas { .. }) => (super::wgmma::OPERAND_RULE, super::wgmma::OPERAND_HELP),
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
            let alone = |(label, help): (Label, String)| (vec![label], help);
            let earlier = self.passed_earlier(race, mma).map(alone);
            let at_home = || self.cure_of_word_at_home(race).map(|cure| (cure.labels, cure.help));
            let (earlier, better) = self
                .told_by_another(race, mma)
                .or(earlier)
                .or_else(at_home)
                .or_else(|| self.told_by_the_issuer(race, mma))
                .or_else(|| self.own_commit(mma, &race.passed).map(alone))
                .or_else(|| self.awaited_counts_too_few(race).map(alone))
                .unzip();
            labels.extend(earlier.into_iter().flatten());
            // What is to be changed comes first, and is told once, whatever comes too early by it.
            labels.sort_by_key(|label| label.meaning != Meaning::CountsTooFew);
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
        // Who reads before a load writes, and wants what that brings, comes second by rights.
        let (first, second, [first_writes, second_writes]) = match self.passed_again_for_load(race) {
            Some(_) => (second, first, [true, false]),
            None => (first, second, [race.conflict.first_writes, race.conflict.second_writes]),
        };
        let verb = |writes| if writes { "writes" } else { "reads" };
        let cure = self.cure_of_unheeded(race).or_else(|| self.relaxed_cluster_barrier(race));
        let cure = cure.or_else(|| self.mixed_barrier(race)).or_else(|| self.cure_of_a_plain_flag(race));
        let cure = cure.or_else(|| self.bar_without_a_wait(race));
        let cure = cure.or_else(|| self.cure_of_copy(race, false));
        let cure = cure.or_else(|| self.cure_of_words(first, second)).or_else(|| self.cure_of_scope(race));
        let cure = cure.or_else(|| self.cure_of_an_arrival_before(race)).or_else(|| self.cure_of_a_missing_wait(race));
        let cure = cure.or_else(|| self.cure_of_an_arrival_in_front(race));
        let cure = cure.or_else(|| self.cure_of_a_reader_not_counted(race));
        let cure = cure.unwrap_or_else(|| {
            let are_warps = [first, second].iter().all(|&s| matches!(self.kind(s), Some(ActorKind::Warp(_))));
            let allocates = |inst: &Inst| inst.site == second.site && matches!(inst.op, Op::TensorAlloc { .. });
            let help = if first.site == second.site && self.kernel.code.iter().any(allocates) {
                "Let one warp of the CTA alone execute this tcgen05.alloc: each that does gets columns of its own, and stores where they begin."
            } else if first.site == second.site {
                "Let each byte be written by one warp: check how the address depends on the thread."
            } else if are_warps && self.apart(first, second) {
                "Put a cluster barrier between the two (barrier.cluster.arrive and barrier.cluster.wait), or an mbarrier.arrive.release.cluster \
                 behind the first and a wait with .acquire.cluster before the second."
            } else {
                "Put a CTA barrier (bar.sync) between the two."
            };
            match self.plain_beside_a_strong_one(race) {
                Some((label, otherwise)) => Cure {
                    labels: vec![label],
                    ..Cure::new(super::strong::PLAIN_RULE, format!("{help} {otherwise}"))
                },
                None => Cure::new(RACE_RULE, help),
            }
        });
        // A copy out of shared memory has read it when its bytes are complete: by then no write can change what it took.
        let has_read = race.in_time && !first_writes && matches!(self.kind(first), Some(ActorKind::Mbarrier));
        if has_read {
            return Draft {
                severity: Severity::Note,
                ..draft(
                    "race-shared",
                    format!(
                        "{} reads {{}}, {} writes it behind that in time, but nothing that orders accesses says so",
                        self.who(first),
                        self.who(second)
                    ),
                    cure.labels_behind([
                        self.label(second.site, format!("{} writes it here", self.who(second))),
                        self.label(first.site, format!("{} reads it here", self.who(first))),
                    ]),
                    cure.rule,
                    cure.help,
                )
            };
        }
        draft(
            "race-shared",
            format!(
                "{} {} {{}}, {} {} it, and nothing orders the two",
                self.who(first),
                verb(first_writes),
                self.who(second),
                verb(second_writes)
            ),
            cure.labels_behind([
                self.label(second.site, format!("{} {} it here", self.who(second), verb(second_writes)))
                    .that_means(if race.comes_late { Meaning::ComesLate } else { Meaning::Plain }),
                self.label(first.site, format!("{} {} it here", self.who(first), verb(first_writes))),
            ]),
            cure.rule,
            cure.help,
        )
    }

    /// One statement loads to the same bytes for two mbarriers, and nothing says between the two that the first bytes have been read: its mbarrier
    /// goes on with the stage, and its address does not.
    fn one_place_for_two_stages(&self, race: &Race, name: &Name) -> Option<Draft> {
        let (first, second) = (race.conflict.first, race.second);
        let loads = [first, second].iter().all(|&stamp| matches!(self.kind(stamp), Some(ActorKind::Mbarrier)));
        if !loads || first.site != second.site || race.conflict.reason != Reason::Unordered {
            return None;
        }
        let (one, other) = (self.barrier_of(first.actor)?, self.barrier_of(second.actor)?);
        if one == other || self.barriers[one as usize].cta != self.barriers[other as usize].cta {
            return None;
        }
        let (before, now) = (self.barrier_name(one), self.barrier_name(other));
        let text = format!("this tells {before} and {now} in turn, and writes the same bytes for both");
        let label = self.label(second.site, text).that_means(Meaning::OneForTwoStages);
        Some(Draft::of(race, Some(name))(
            "race-shared",
            format!("{{}} is loaded for {now} while what was loaded to it for {before} may not have been read"),
            vec![label],
            "A copy writes whenever it comes: only who has waited for all that read the bytes before may issue it (PTX ISA 8.9.5, cp.async.bulk).",
            "Let the address that it writes go on with the stage, as its mbarrier does. If one buffer is meant for both, let its readers say that they \
             are done, and wait for that before each copy."
                .into(),
        ))
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
            ActorKind::Warp(w) | ActorKind::BulkReads { warp: w } => Some(w as usize),
            _ => None,
        };
        let both = [warp(race.conflict.first)?, warp(race.second)?];
        let [first, second] = [self.warps.get(both[0])?, self.warps.get(both[1])?];
        let named = &self.ctas.get(first.cta).filter(|_| first.cta == second.cta)?.named;
        let comes = |mixed: &[(u32, u32); 2], warp: u32| mixed.iter().any(|(who, _)| who >> warp & 1 != 0);
        let all = (0..).zip(named.iter()).filter_map(|(id, named)| Some((id, named.mixed()?)));
        let mixed = all.into_iter().find(|(_, mixed)| comes(mixed, first.index) && comes(mixed, second.index));
        let (id, groups): (u32, _) = mixed.or_else(|| self.met_apart(race, both))?;
        let listed = |who: u32| {
            let all: Vec<String> = (0..32).filter(|w| who >> w & 1 != 0).map(|w| w.to_string()).collect();
            format!("warps {}", all.join(", "))
        };
        let all = 32 * groups.iter().fold(0, |all, (who, _)| all | who).count_ones();
        let labels = groups
            .map(|(who, site)| self.label(site, format!("{} met at barrier {id}, the last of them here", listed(who))))
            .map(|label| label.that_means(Meaning::Mixes).that_is_about(Subject::CtaBarrier { cta: first.cta, id }));
        let cure = Cure::new(
            "A barrier with a thread count is complete when so many threads have come, whichever they are (PTX ISA 9.7.13.1).",
            format!(
                "Give each group of warps a barrier number of its own: at barrier {id}, warps of different groups let each other go on. If these \
                 belong together, let the barrier count all of their {all} threads."
            ),
        );
        Some(Cure { labels: labels.into(), ..cure })
    }

    /// Two warps that would be ordered if they had met at a barrier with a thread count to which both come between their accesses, and each has met
    /// others there: its number, and both groups.
    fn met_apart(&self, race: &Race, [one, other]: [usize; 2]) -> Option<(u32, [(u32, u32); 2])> {
        let [first, second] = [one, other].map(|w| &self.warps[w]);
        // In the order in which it came to each first.
        let came = |w: usize| {
            let mut all: SmallVec<[(u32, u32); 8]> = SmallVec::new();
            for step in self.record.steps.iter().filter(|step| usize::from(step.warp) == w) {
                let What::Named { id, expected: Some(_), .. } = step.what else { continue };
                let here = (u32::from(id), step.site);
                if !all.contains(&here) {
                    all.push(here);
                }
            }
            all
        };
        let (before, behind) = (race.conflict.first.site, race.second.site);
        let of_other_warp = came(other);
        let mut behind_it = came(one).into_iter().filter(|&(_, site)| self.leads_past_no_meeting(before, site));
        behind_it.find_map(|(id, _)| {
            let groups = &self.ctas[first.cta].named.get(id as usize)?.groups;
            let has = |group: &&(u32, u32), warp: &Warp| group.0 >> warp.index & 1 != 0;
            let of_one = groups.iter().find(|group| has(group, first) && !has(group, second))?;
            let of_other = groups.iter().find(|group| has(group, second) && !has(group, first))?;
            let never_met = !groups.iter().any(|group| has(&group, first) && has(&group, second));
            let comes_to_it =
                of_other_warp.iter().any(|&(of, site)| of == id && self.leads_past_no_meeting(site, behind));
            (never_met && comes_to_it).then_some((id, [*of_one, *of_other]))
        })
    }

    /// The warp of the second access comes to a barrier at which that of the first arrives behind its access, by `bar.arrive`: it goes on to its own
    /// without waiting.
    fn bar_without_a_wait(&self, race: &Race) -> Option<Cure> {
        let (first, second) = (race.conflict.first, race.second);
        let warp = |stamp| match self.kind(stamp)? {
            ActorKind::Warp(w) => Some(w as usize),
            _ => None,
        };
        let (one, other) = (warp(first)?, warp(second)?);
        let came = |w: usize| {
            let steps = self.record.steps.iter().filter(move |step| usize::from(step.warp) == w);
            steps.filter_map(|step| match step.what {
                What::Named { cta, id, .. } => Some((cta, id, step.site)),
                _ => None,
            })
        };
        let meets = |barrier: (u8, u8)| {
            came(one).any(|(cta, id, site)| (cta, id) == barrier && self.comes_behind(site, first.site))
        };
        let (_, id, site) = came(other).find(|&(cta, id, site)| {
            self.is_bar_arrive(site) && self.leads_past_no_meeting(site, second.site) && meets((cta, id))
        })?;
        let (who, for_whom) = (self.warp_name(other), self.warp_name(one));
        let text = format!("{who} arrives at barrier {id} here, and does not wait for {for_whom}");
        let cure = Cure::new(
            "bar.arrive does not wait: who arrives by it knows nothing of what others do before they come to the barrier (PTX ISA 9.7.13.1).",
            format!("Let {who} wait at barrier {id}: bar.sync in place of bar.arrive."),
        );
        Some(Cure { labels: vec![self.label(site, text)], ..cure })
    }

    fn is_bar_arrive(&self, site: u32) -> bool {
        self.kernel.code.iter().any(|inst| inst.site == site && matches!(inst.op, Op::CtaBarrier { wait: false, .. }))
    }

    /// Whether a way leads from one statement to another past no wait for others.
    pub fn leads_past_no_meeting(&self, from: u32, to: u32) -> bool {
        let code = &self.kernel.code;
        let way = |_: usize, inst: &Inst| match inst.op {
            _ if inst.site == to => Way::Found,
            Op::CtaBarrier { wait: true, .. }
            | Op::BarrierReduce { .. }
            | Op::BarrierWait { .. }
            | Op::ClusterWait { .. } => Way::Ends,
            _ => Way::On,
        };
        (0..code.len()).any(|at| code[at].site == from && ways_lead(code, at, way))
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
}
