//! What is said of interleavings that get stuck, although this run came to its end.

use crate::diagnostic::{Diagnostic, Label, Severity};
use crate::machine::cluster::Cluster;
use crate::machine::counted;
use crate::protocol::{Doubt, Shape, Stuck, Timing, Verdict, Waiting, What, Why, judge};
use crate::report::Deadlock;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Why nothing is known of a cluster that did too much.
const TOO_LONG: &str = "a cluster has more barrier operations than are remembered";

/// Different records that are searched for interleavings that get stuck.
const MOST_SEARCHED: usize = 8;

const RULE: &str = "Warps and engines may be fast or slow: only barriers say what comes before what. A wait by parity tells a phase only from the \
                    one before it, and what arrives counts for whatever phase is the current one (PTX ISA 9.7.13.15.2, 9.7.13.15.16).";

/// The record of the first cluster that ends, judged on the thread that has run it, while others still run: most records are like it.
#[derive(Debug, Default)]
pub struct Ahead {
    begun: AtomicBool,
    judged: Mutex<Option<Judged>>,
}

/// What is said of a cluster's record, which has this fingerprint.
#[derive(Debug)]
struct Judged {
    cluster: u32,
    fingerprint: u128,
    verdict: Verdict,
}

impl Ahead {
    fn judged(&self) -> MutexGuard<'_, Option<Judged>> {
        self.judged.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is said of a cluster's record, once. That it cannot get stuck is true of all that did the same; what it can get stuck in is told by
    /// steps and statements of its own record, and which cluster was judged is the host's chance.
    fn take(&self, cluster: u32, fingerprint: u128) -> Option<Verdict> {
        let mut judged = self.judged();
        let own = judged.take_if(|it| {
            it.fingerprint == fingerprint && (it.cluster == cluster || matches!(it.verdict, Verdict::Proved))
        });
        own.map(|it| it.verdict)
    }
}

/// Of a request of launch control: why time decides.
pub const TAKES_OVER: &str = "which cluster it takes over depends on which have begun";

impl Cluster<'_> {
    /// It has ended, with others: its record may be judged at once.
    pub fn judge_ahead(&self, ahead: &Ahead) {
        let judged = !self.record.is_off() && !self.record.is_full();
        if !judged || ahead.begun.swap(true, Ordering::Relaxed) || self.reads_of_others().next().is_some() {
            return;
        }
        let verdict = judge(&self.record, &self.shape());
        let (cluster, fingerprint) = (self.index, self.record.fingerprint());
        *ahead.judged() = Some(Judged { cluster, fingerprint, verdict });
    }

    /// Statements that read what others store meanwhile.
    fn reads_of_others(&self) -> impl Iterator<Item = u32> {
        self.record.timing().into_iter().filter(|&(_, why)| why == Timing::Memory).map(|(site, _)| site)
    }

    fn shape(&self) -> Shape {
        let threads = self.launch.block.iter().product();
        Shape { ctas: self.ctas.len(), threads, room: self.room, sharing: self.sharing }
    }

    /// Whether another interleaving of a cluster that ran to its end can get stuck; `judged`: what was said of records by their fingerprints.
    pub fn judge_protocol(&mut self, judged: &mut BTreeMap<u128, Deadlock>, ahead: &Ahead) -> Deadlock {
        if self.record.is_off() {
            return Deadlock::NotJudged;
        }
        let memory: Vec<String> = self
            .reads_of_others()
            .map(|site| format!("{}: this reads what others store meanwhile, and may wait for it", self.at(site)))
            .collect();
        if !memory.is_empty() {
            return Deadlock::NotProved(memory);
        }
        if self.record.is_full() {
            return Deadlock::NotProved(vec![TOO_LONG.into()]);
        }
        let fingerprint = self.record.fingerprint();
        if let Some(known) = judged.get(&fingerprint) {
            return known.clone();
        }
        let searched = judged.values().filter(|verdict| **verdict != Deadlock::Impossible).count();
        if searched >= MOST_SEARCHED {
            return Deadlock::NotProved(vec!["further clusters do otherwise, and were not looked at".into()]);
        }
        let verdict = ahead.take(self.index, fingerprint).unwrap_or_else(|| judge(&self.record, &self.shape()));
        match &verdict {
            // What it gets stuck in tells of the announcement already.
            Verdict::Refuted(stuck, _) if stuck.by.is_some_and(|by| matches!(by.why, Why::AnnouncedLate { .. })) => {}
            Verdict::Refuted(_, doubts) | Verdict::Doubtful(doubts) => self.announced_late(doubts),
            _ => {}
        }
        if let Verdict::Doubtful(doubts) = &verdict {
            self.counts_early(doubts);
        }
        let verdict = match verdict {
            Verdict::Proved => Deadlock::Impossible,
            Verdict::Refuted(stuck, doubts) => {
                self.explain_stuck(&stuck, &doubts);
                Deadlock::Possible
            }
            Verdict::Doubtful(doubts) => {
                let mut reasons: Vec<String> = Vec::new();
                for doubt in &doubts {
                    let reason = format!("{}: {}", self.at(doubt.site), self.doubt_text(doubt));
                    if !reasons.contains(&reason) {
                        reasons.push(reason);
                    }
                }
                Deadlock::NotProved(reasons)
            }
            Verdict::NotModelled => {
                Deadlock::NotProved(vec!["a cluster waits for something that is not modelled".into()])
            }
            Verdict::TooLong => Deadlock::NotProved(vec![TOO_LONG.into()]),
        };
        judged.insert(fingerprint, verdict.clone());
        verdict
    }

    /// Where a statement stands, for a sentence.
    pub fn at(&self, site: u32) -> String {
        let place = self.place(site);
        match &place.source {
            Some(source) => format!("{}:{}", source.file, source.line),
            None => format!("line {}", place.line),
        }
    }

    /// The statements by which time decides what warps do.
    pub fn timing_labels(&self) -> Vec<Label> {
        let text = |why| match why {
            Timing::Polled => "asks an mbarrier and goes on whatever the answer is",
            Timing::LaunchControl => TAKES_OVER,
            Timing::Memory => "reads what others store meanwhile",
            Timing::Clock => "asks for the time or the SM, and what the kernel does depends on the answer",
        };
        self.record.timing().into_iter().map(|(site, why)| self.label(site, text(why))).collect()
    }

    /// What the recorded run did not order, as a sentence's part.
    fn doubt_text(&self, doubt: &Doubt) -> String {
        match doubt.why {
            Why::Overtaken { barrier, phase, .. } => {
                let name = self.barrier_name(barrier);
                let (wanted, next) = (wanted(phase), phase.wrapping_add(1));
                format!("this wait is for {wanted} of {name}, and phase {next} may complete before it looks")
            }
            Why::CountsEarly { barrier, phase, .. } => {
                let (name, before) = (self.barrier_name(barrier), phase.saturating_sub(1));
                format!("this is meant for phase {phase} of {name}, and may come before phase {before} is complete")
            }
            Why::AnnouncedLate { barrier, phase, .. } => {
                let name = self.barrier_name(barrier);
                format!("these bytes may be announced after phase {phase} of {name} has completed without them")
            }
            Why::BeforeInit { barrier } => {
                format!("this may come before {} is initialised", self.barrier_name(barrier))
            }
            Why::EndsInUse { barrier } => {
                format!("{} may still be in use when this ends its phases", self.barrier_name(barrier))
            }
            Why::NamedEarly { cta, id } => {
                let of = if self.ctas.len() > 1 { format!(" of CTA {cta}") } else { String::new() };
                format!("this may come to barrier {id}{of} before its phase before is complete")
            }
            Why::NotModelled => "why this wait passed is not modelled".into(),
            Why::Registers => "these registers may be what a warp waits for that this one waits for".into(),
            Why::Columns => "this may wait for tensor memory that is given back only behind what waits for this".into(),
            Why::Permit => {
                "a CTA of another cluster may have the right to allocate on its SM, and wait for this one's".into()
            }
        }
    }

    /// Arrivals that count for an earlier phase in an interleaving that was found: who waits for that phase may go on before all have arrived that it
    /// waits for, and what this run ordered, that one does not. A note, since whether anybody relies on that is not known; told where nothing else is, which
    /// may be its cause.
    fn counts_early(&mut self, doubts: &[Doubt]) {
        let mut told: Vec<u32> = Vec::new();
        for doubt in doubts {
            let Why::CountsEarly { barrier, phase, sure: true, wait: Some(wait) } = doubt.why else { continue };
            let arrives = |what| matches!(what, What::Arrive { count: 1.., .. } | What::Done { count: 1.., .. });
            let Some(step) = self.record.steps.get(doubt.step as usize).filter(|step| arrives(step.what)) else {
                continue;
            };
            if told.contains(&doubt.site) {
                continue;
            }
            told.push(doubt.site);
            let (who, name, before) =
                (self.warp_name(step.warp.into()), self.barrier_name(barrier), phase.saturating_sub(1));
            let title = format!("an arrival of {who} for phase {phase} of {name} may count for phase {before}");
            let mut d = self.problem("early-arrival", doubt.site, title, RULE, help(Some(*doubt)));
            d.severity = Severity::Note;
            let init = &self.barriers[barrier as usize];
            d.labels = vec![
                self.label(doubt.site, format!("nothing orders this behind the end of phase {before}")),
                self.label(init.init.site, format!("initialised for {} a phase", counted(init.expected, "arrival"))),
                self.label(wait, format!("who waits here for phase {before} may then go on before all have arrived")),
            ];
            self.if_clean.push(d);
        }
    }

    fn explain_stuck(&mut self, stuck: &Stuck, doubts: &[Doubt]) {
        let rank = |waiting: &&Waiting| match waiting.what {
            What::Wait { .. } => 0,
            What::NamedPassed { .. } | What::ClusterPassed => 1,
            _ => 2,
        };
        let guilty = stuck.by;
        // The wait that the doubt is about, or else the first that nobody will end.
        let own = guilty.and_then(|doubt| stuck.waiting.iter().find(|w| w.site == doubt.site));
        let Some(waiting) = stuck.overflow.as_ref().or(own).or(stuck.waiting.iter().min_by_key(rank)) else { return };
        let who = self.warp_name(waiting.warp.into());
        let title = match waiting.what {
            _ if stuck.overflow.is_some() => {
                let (What::Arrive { barrier, .. } | What::Done { barrier, .. }) = waiting.what else { return };
                let name = self.barrier_name(barrier);
                format!("in another interleaving, {name} gets more arrivals than phase {} takes", waiting.phase)
            }
            What::Wait { barrier, .. } => {
                format!("in another interleaving, {who} waits at {} for ever", self.barrier_name(barrier))
            }
            What::NamedPassed { id, .. } => format!("in another interleaving, {who} waits at barrier {id} for ever"),
            What::ClusterPassed => format!("in another interleaving, {who} waits at the cluster barrier for ever"),
            What::Alloc { .. } => format!(
                "in another interleaving, {who} waits in tcgen05.alloc for ever: clusters that share SMs wait for each other's tensor memory"
            ),
            _ => format!("in another interleaving, {who} waits for ever"),
        };
        let mut diagnostic = self.problem("can-hang", waiting.site, title, RULE, help(guilty));
        diagnostic.severity = Severity::Finding;
        diagnostic.labels.clear();
        if let Some(doubt) = guilty {
            diagnostic.labels.push(self.label(doubt.site, self.doubt_text(&doubt)));
            if let Why::Overtaken { phase, by, .. } = doubt.why
                && let Some(step) = self.record.steps.get(by as usize).filter(|_| by != doubt.step)
            {
                let text = format!("this completes phase {}; nothing orders it after the wait", phase.wrapping_add(1));
                diagnostic.labels.push(self.label(step.site, text));
            }
        }
        if guilty.is_none_or(|doubt| doubt.site != waiting.site) {
            let text = match waiting.what {
                _ if stuck.overflow.is_some() => "this arrival is one too many then".to_string(),
                What::Wait { .. } => format!("this waits for ever then: {} phases are complete", waiting.phase),
                _ => "this waits for ever then".into(),
            };
            diagnostic.labels.push(self.label(waiting.site, text));
        }
        if guilty.is_none() {
            // A random interleaving: what is not ordered may have to do with it.
            for doubt in doubts.iter().take(2) {
                diagnostic.labels.push(self.label(doubt.site, format!("not ordered: {}", self.doubt_text(doubt))));
            }
        }
        if !self.explained_already(&diagnostic) {
            self.findings.add(diagnostic);
        }
    }

    /// A finding about one of these statements says the same of its waits.
    fn explained_already(&self, diagnostic: &Diagnostic) -> bool {
        diagnostic
            .labels
            .iter()
            .any(|label| self.findings.says(&["phase-overtaken", "mbarrier-init-unordered"], &label.place))
    }
}

/// The phase that a wait is for; the one before the first is none.
fn wanted(phase: u32) -> String {
    if phase == u32::MAX { "a fresh mbarrier".into() } else { format!("phase {phase}") }
}

fn help(guilty: Option<Doubt>) -> String {
    match guilty.map(|doubt| doubt.why) {
        Some(Why::Overtaken { .. }) => {
            "Let what completes the next phase come behind this wait: its warp should tell by an arrival of its own that it has seen \
             the phase."
        }
        Some(Why::CountsEarly { .. }) => {
            "Let this arrival come only behind a wait for the phase before, or initialise the mbarrier for as many arrivals as come \
             in one phase."
        }
        Some(Why::AnnouncedLate { .. }) => {
            "Announce the bytes with the arrival itself (mbarrier.arrive.expect_tx), or before it in the same thread."
        }
        Some(Why::BeforeInit { .. }) => "Put a CTA or cluster barrier between mbarrier.init and the first use.",
        Some(Why::EndsInUse { .. }) => "Wait for all uses, and put a barrier, before the mbarrier's memory is used again.",
        Some(Why::NamedEarly { .. }) => "Give each group of warps a barrier number of its own.",
        Some(Why::Registers) => "Let warps give back registers before they wait for those that take some.",
        Some(Why::NotModelled) => "Look at what completes the phase that this waits for.",
        Some(Why::Permit) => "Execute tcgen05.relinquish_alloc_permit before anything that waits for other CTAs.",
        Some(Why::Columns) => {
            "Free tensor memory before more is allocated, or allocate all of it at once, and no more than all CTAs that an SM has room for \
             can have together."
        }
        None => "Look at the order of the barrier operations of this warp and of those that should arrive.",
    }
    .into()
}
