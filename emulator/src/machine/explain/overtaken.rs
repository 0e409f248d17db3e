//! A phase that may complete before somebody has seen the one before, and why.
//!
//! What to try depends on what is wrong: the wait, the arrival, or how many arrivals make a phase. Often only the whole run shows which of them,
//! so that it is told when the cluster has ended.

use super::names::counted;
use crate::diagnostic::{Diagnostic, Label, Meaning, Severity};
use crate::machine::barrier::mbarrier::Overtaken;
use crate::machine::cluster::Cluster;
use crate::machine::hang::mbarrier::counts_too_few_threads;
use crate::program::op::Op;
use crate::protocol::{Step, What};

const RULE: &str = "A wait by parity tells a phase only from the one before it: every waiter must have seen a phase complete before the next one \
                    does, or it waits for ever (PTX ISA 9.7.13.15.4, 9.7.13.15.16).";

/// What is told when the cluster has ended.
#[derive(Debug)]
pub struct Untold {
    /// All but what to try.
    diagnostic: Diagnostic,
    barrier: u32,
    overtaken: Overtaken,
    /// The statement of the arrival.
    arrival: u32,
    expected: u32,
    /// The phase waits for bytes.
    bytes: bool,
}

/// What a run has shown of the phases of an mbarrier, and of who waits for them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shown {
    /// Each phase is waited for, but perhaps the last.
    AllAwaited,
    /// There are more phases than are waited for.
    More { phases: u64, awaited: u64 },
    /// Neither is sure.
    Nothing,
}

impl Shown {
    fn of(phases: u64, awaited: u64) -> Shown {
        match (phases, awaited) {
            (0, _) | (_, 0) => Shown::Nothing,
            // Who has no need of the last phase, or of the first, does not wait for it.
            _ if phases > awaited + 1 && phases >= 2 * awaited => Shown::More { phases, awaited },
            _ if phases <= awaited || (phases == awaited + 1 && awaited > 1) => Shown::AllAwaited,
            _ => Shown::Nothing,
        }
    }
}

impl Cluster<'_> {
    /// A phase may complete before somebody has seen the one before.
    pub fn overtaken(&mut self, barrier: u32) {
        if self.barriers[barrier as usize].overtaken.is_empty() {
            return;
        }
        let name = self.barrier_name(barrier);
        let (init, expected) = (self.barriers[barrier as usize].init.site, self.barriers[barrier as usize].expected);
        let b = &mut self.barriers[barrier as usize];
        let arrival = b.previous.last().map(|&(site, _)| site);
        // What is known of the last phase that is complete.
        let last = b.phase.saturating_sub(1);
        let brought: Vec<u32> = b.traffic_before.brought.iter().map(|bytes| bytes.site).take(2).collect();
        for overtaken in std::mem::take(&mut b.overtaken) {
            let Overtaken { phase, site: wait, again, .. } = overtaken;
            // A wait that comes late may be overtaken by an earlier phase.
            let earlier = if phase == last { None } else { self.early_arrival(barrier, phase) };
            let site = earlier.or(arrival).unwrap_or(wait);
            let bytes = !brought.is_empty() && phase == last;
            // In a loop it comes to the same round after round.
            let same = |untold: &&mut Untold| {
                let Untold { barrier: b, overtaken: o, arrival, bytes: by_bytes, .. } = **untold;
                (b, arrival, by_bytes) == (barrier, site, bytes)
                    && (o.site, o.warp, o.again, o.phase == 0) == (wait, overtaken.warp, again, phase == 0)
            };
            if let Some(known) = self.untold.iter_mut().find(same) {
                known.diagnostic.count += 1;
                continue;
            }
            let title = match phase.checked_sub(1) {
                Some(seen) => format!("{name} may complete phase {phase} before a wait has seen phase {seen}"),
                None => format!("{name} may complete phase 0 before a wait that passes on a fresh mbarrier only"),
            };
            let mut diagnostic = self.problem("phase-overtaken", site, title, RULE, String::new());
            diagnostic.severity = Severity::Finding;
            diagnostic.labels[0].text =
                format!("this arrival completes phase {phase}; nothing orders it after the wait");
            let parity = (phase + 1) % 2;
            let text = match phase.checked_sub(1) {
                Some(seen) if again => {
                    format!("this wait is for phase {seen} twice running: both times it asks for parity {parity}")
                }
                Some(seen) => format!("this wait is for phase {seen}"),
                None if again => "this wait is for parity 1 twice running, before any phase is complete".to_string(),
                None => "this wait is for parity 1, before any phase is complete".to_string(),
            };
            diagnostic.labels.push(self.label(wait, text));
            for copy in brought.iter().filter(|_| phase == last) {
                diagnostic.labels.push(self.label(*copy, format!("this copy brings bytes of phase {phase}")));
            }
            let made = format!("{name} is initialised for {} a phase", counted(expected, "arrival"));
            diagnostic.labels.push(self.label(init, made));
            self.untold.push(Untold { diagnostic, barrier, overtaken, arrival: site, expected, bytes });
        }
    }

    /// Tells which phases may be overtaken, and what to try. `ended`: all warps have come to their end.
    pub fn tell_overtaken(&mut self, ended: bool) {
        for mut untold in std::mem::take(&mut self.untold) {
            if ended && self.passes_whenever_it_comes(&untold) {
                continue;
            }
            match self.more_arrive_than_it_counts(untold.barrier).filter(|_| ended && !untold.bytes) {
                Some(arrivals) => self.tell_too_few(&mut untold, arrivals),
                None => untold.diagnostic.help = self.way_out(&untold, ended),
            }
            self.findings.add(untold.diagnostic);
        }
    }

    /// The only wait of a warp, for parity 1 of a fresh mbarrier. It passes at once, since the phase in front of phase 0 counts as complete; in phase 1 it
    /// waits for the end of that (PTX ISA 9.7.13.15.4, 9.7.13.15.16). When it passes depends on time, and that is no mistake as long as nothing
    /// comes of it: the phases go on without its warp, the last one that completes is an odd one, and no byte is unordered where it has told nothing.
    fn passes_whenever_it_comes(&self, untold: &Untold) -> bool {
        let &Untold { barrier, overtaken: Overtaken { phase, warp, actor, epoch, again, .. }, .. } = untold;
        let b = &self.barriers[barrier as usize];
        let alone = || self.waits_at(barrier).filter(|(step, _)| usize::from(step.warp) == warp).count() == 1;
        let others_alone = b.came.iter().all(|came| came.warp != warp) && b.ends_even_without(actor, epoch);
        let all_come = phase == 0 && !again && others_alone;
        all_come && self.races.is_empty() && !self.record.is_off() && !self.record.is_full() && alone()
    }

    /// Where it is initialised is what is to be changed, and is told once for all that it leads to.
    fn tell_too_few(&self, untold: &mut Untold, arrivals: u32) {
        let Untold { diagnostic, barrier, expected, .. } = untold;
        diagnostic.help = counts_too_few_threads(&self.barrier_name(*barrier), arrivals, *expected);
        if let Some(init) = diagnostic.labels.pop() {
            let text = format!("{}, and {arrivals} arrive in a round", init.text);
            diagnostic.labels.insert(0, Label { text, ..init }.that_means(Meaning::CountsTooFew));
        }
    }

    fn way_out(&self, untold: &Untold, ended: bool) -> String {
        let &Untold {
            barrier, overtaken: Overtaken { phase, site, warp, again, .. }, arrival, expected, bytes, ..
        } = untold;
        if again {
            return self.goes_on(barrier, phase, warp, site);
        }
        if phase == 0 {
            return self.way_out_of_the_first(untold.barrier, warp, site, bytes);
        }
        let shown = if ended { self.shown(barrier, warp) } else { Shown::Nothing };
        self.kept_back(arrival, expected, shown)
    }

    /// A wait asks for one parity twice running.
    fn goes_on(&self, barrier: u32, phase: u64, warp: usize, site: u32) -> String {
        let name = self.barrier_name(barrier);
        let why = match phase {
            0 => "both times at once, since no phase is complete",
            _ => "the second time on the phase that it has seen",
        };
        let one = format!(
            "Let the parity of this wait for {name} go on with each phase: it asks for one parity twice running, and passes {why}."
        );
        // In a ring, each stage has one of its own already.
        let own = self.waits_by(warp).any(|(step, other)| step.site == site && other != barrier);
        if own { one } else { format!("{one} If it is for two stages in turn, give each an mbarrier of its own.") }
    }

    /// Phase 0 may complete before a wait that passes on a fresh mbarrier only: either the wait should be for that phase, or the arrival should
    /// come behind the wait.
    fn way_out_of_the_first(&self, barrier: u32, warp: usize, site: u32, bytes: bool) -> String {
        if bytes {
            return "Let this wait be for parity 0: phase 0 is complete when its bytes are there, and parity 1 lets a wait pass before.".into();
        }
        let mut others = self.barriers.iter().zip(0..).filter(|(_, n)| *n != barrier);
        if let Some((_, other)) = others.find(|(b, _)| b.behind_its_wait.contains(&site)) {
            let name = self.barrier_name(other);
            return format!(
                "Let this arrival come only behind the wait, which is for what is free at the beginning: for {name}, the arrival does."
            );
        }
        let mut others = self.first_waits(barrier).filter(|(step, _)| usize::from(step.warp) != warp);
        if let Some((other, _)) = others.find(|(_, parity)| *parity == 0) {
            let other = self.warp_name(other.warp.into());
            if self.arrives_twice_before(barrier, warp, site) {
                let who = self.warp_name(warp);
                return format!(
                    "Let {who} wait for parity 0, too, before it arrives for the second time: this wait is for the phase behind that, and parity \
                     1 lets it pass before anything has arrived."
                );
            }
            return format!(
                "Let this wait be for parity 0, as that of {other} is: parity 1 lets it pass before anything has arrived."
            );
        }
        "If the wait is for what this arrival tells, let it wait for parity 0; if it is for what is free at the beginning, let the arrival come \
         only behind it."
            .into()
    }

    /// A warp has arrived by two statements before it comes to this wait: the second arrival, and the wait, are for phase 1.
    fn arrives_twice_before(&self, barrier: u32, warp: usize, site: u32) -> bool {
        let own = self.record.steps.iter().filter(|step| usize::from(step.warp) == warp);
        let before = own.take_while(|step| step.site != site);
        let arrivals = before.filter_map(|step| match step.what {
            What::Arrive { barrier: b, count: 1.., .. } if b == barrier => Some(step.site),
            _ => None,
        });
        arrivals.collect::<std::collections::BTreeSet<_>>().len() == 2
    }

    /// What keeps an arrival back until all have seen the phase before, by its kind.
    fn kept_back(&self, site: u32, expected: u32, shown: Shown) -> String {
        let op = self.kernel.code.iter().find(|inst| inst.site == site).map(|inst| &inst.op);
        match (op, shown) {
            (Some(Op::BarrierArrive { expect: Some(_), .. }), _) => {
                "Let who announces the bytes wait before it until all have seen the phase before: by an mbarrier at which they arrive then, or \
                 at which the MMAs that have read its data are committed."
                    .into()
            }
            (Some(Op::BarrierArrive { .. }), Shown::AllAwaited) => {
                "Let this arrival come only after all have seen the phase before.".into()
            }
            (Some(Op::BarrierArrive { .. }), Shown::More { phases, awaited }) => format!(
                "Initialise the mbarrier for as many arrivals as belong to one phase: for {}, they complete {phases} phases, and this wait is \
                 for {awaited}.",
                counted(expected, "arrival")
            ),
            (Some(Op::BarrierArrive { .. }), Shown::Nothing) => format!(
                "Let this arrival come only after all have seen the phase before; or, if more than {} belong to one phase, initialise the \
                 mbarrier for as many.",
                counted(expected, "arrival")
            ),
            (_, Shown::AllAwaited) => "Let the next arrival come only after all have waited.".into(),
            (_, Shown::More { phases, awaited }) => format!(
                "Let one arrival complete one phase for each wait (a single tcgen05.commit, after the last MMA): {phases} phases are complete, and \
                 this wait is for {awaited}."
            ),
            (_, Shown::Nothing) => "Let one arrival complete one phase for each wait (a single tcgen05.commit, after the last MMA), or let the \
                                    next arrival come only after all have waited."
                .into(),
        }
    }

    /// What the run shows of an mbarrier for which a warp waits.
    fn shown(&self, barrier: u32, warp: usize) -> Shown {
        let inits = |step: &&Step| matches!(step.what, What::Init { barrier: b, .. } if b == barrier);
        if self.record.steps.iter().filter(inits).count() != 1 {
            return Shown::Nothing;
        }
        // Lanes may wait apart. One that asks for the same parity again has not gone on.
        let mut lanes = [(0, None); 32];
        for (step, parity) in self.waits_at(barrier).filter(|(step, _)| usize::from(step.warp) == warp) {
            let waiting = lanes.iter_mut().enumerate().filter(|(lane, _)| step.lanes >> lane & 1 == 1);
            for (_, (awaited, last)) in waiting {
                *awaited += u64::from(last.replace(parity) != Some(parity));
            }
        }
        let awaited = lanes.iter().map(|lane| lane.0).max().unwrap_or(0);
        Shown::of(self.barriers[barrier as usize].phase, awaited)
    }

    /// The run has shown more phases of an mbarrier than a warp has waited for.
    pub fn has_more_phases_than_waits(&self, barrier: u32, warp: usize) -> bool {
        matches!(self.shown(barrier, warp), Shown::More { .. })
    }

    /// The waits that a warp has passed, and for which mbarriers.
    fn waits_by(&self, warp: usize) -> impl Iterator<Item = (&Step, u32)> {
        self.record.steps.iter().filter(move |step| usize::from(step.warp) == warp).filter_map(|step| match step.what {
            What::Wait { barrier, .. } | What::Asked { barrier, .. } => Some((step, barrier)),
            _ => None,
        })
    }

    /// The waits for an mbarrier that have passed, and for which parity each was.
    pub fn waits_at(&self, barrier: u32) -> impl Iterator<Item = (&Step, u8)> {
        self.record.steps.iter().filter_map(move |step| match step.what {
            What::Wait { barrier: b, parity } | What::Asked { barrier: b, parity } if b == barrier => {
                Some((step, parity))
            }
            _ => None,
        })
    }

    /// The first of them of each warp.
    fn first_waits(&self, barrier: u32) -> impl Iterator<Item = (&Step, u8)> {
        let mut known = std::collections::BTreeSet::new();
        self.waits_at(barrier).filter(move |(step, _)| known.insert(step.warp))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A ring lets the last phase go by, and a loop without a wait in its first round one more; both stay doubtful where it is one of two.
    #[test]
    fn phases_are_awaited_or_there_are_more() {
        for (phases, awaited, shown) in [
            (4, 4, Shown::AllAwaited),
            (4, 3, Shown::AllAwaited),
            (2, 1, Shown::Nothing),
            (1, 0, Shown::Nothing),
            (5, 3, Shown::Nothing),
            (3, 1, Shown::More { phases: 3, awaited: 1 }),
            (8, 4, Shown::More { phases: 8, awaited: 4 }),
        ] {
            assert_eq!(Shown::of(phases, awaited), shown, "{phases} phases, {awaited} awaited");
        }
    }
}
