//! What is said of interleavings that get stuck, although this run came to its end.

use super::cluster::Cluster;
use crate::diagnostic::{Diagnostic, Label, Severity};
use crate::protocol::{Doubt, Shape, Stuck, Timing, Verdict, Waiting, What, Why, judge};
use crate::report::Deadlock;

const RULE: &str = "Warps and engines may be fast or slow: only barriers say what comes before what. A wait by parity tells a phase only from the \
                    one before it, and what arrives counts for whatever phase is the current one (PTX ISA 9.7.13.15.2, 9.7.13.15.16).";

impl Cluster<'_> {
    /// Whether another interleaving of a cluster that ran to its end can get stuck; `proved`: the fingerprints of those that cannot.
    pub fn judge_protocol(&mut self, proved: &mut std::collections::BTreeSet<u128>) -> Deadlock {
        if self.record.is_off() {
            return Deadlock::NotJudged;
        }
        let fingerprint = self.record.fingerprint();
        if !self.record.is_full() && proved.contains(&fingerprint) {
            return Deadlock::Impossible;
        }
        let threads = self.launch.block.iter().product();
        let shape = Shape { ctas: self.ctas.len(), threads, shares_sm: self.shares_sm };
        match judge(&self.record, &shape) {
            Verdict::Proved => {
                proved.insert(fingerprint);
                Deadlock::Impossible
            }
            Verdict::Refuted(stuck, doubts) => {
                self.explain_stuck(&stuck, &doubts);
                Deadlock::Possible
            }
            Verdict::Doubtful(doubts) => {
                let mut reasons: Vec<String> = Vec::new();
                for doubt in &doubts {
                    let place = self.place(doubt.site);
                    let at = match &place.source {
                        Some(source) => format!("{}:{}", source.file, source.line),
                        None => format!("line {}", place.line),
                    };
                    let reason = format!("{at}: {}", self.doubt_text(doubt));
                    if !reasons.contains(&reason) {
                        reasons.push(reason);
                    }
                }
                Deadlock::NotProved(reasons)
            }
            Verdict::TooLong => {
                Deadlock::NotProved(vec!["a cluster has more barrier operations than are remembered".into()])
            }
        }
    }

    /// The statements by which time decides what warps do.
    pub fn timing_labels(&self) -> Vec<Label> {
        let text = |why| match why {
            Timing::Polled => "asks an mbarrier in vain and goes on without waiting for it",
            Timing::LaunchControl => "which cluster it takes over depends on which have begun",
            Timing::Memory => "reads what others store meanwhile",
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
            Why::CountsEarly { barrier, phase } => {
                let (name, before) = (self.barrier_name(barrier), phase.saturating_sub(1));
                format!("this is meant for phase {phase} of {name}, and may come before phase {before} is complete")
            }
            Why::AnnouncedLate { barrier, phase } => {
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
            Why::Registers => "these registers may be what a warp waits for that this one waits for".into(),
            Why::Columns => "this may wait for tensor memory that is not given back before".into(),
        }
    }

    fn explain_stuck(&mut self, stuck: &Stuck, doubts: &[Doubt]) {
        let rank = |waiting: &&Waiting| match waiting.what {
            What::Wait { .. } => 0,
            What::NamedPassed { .. } | What::ClusterPassed => 1,
            _ => 2,
        };
        let guilty = stuck.by.or(doubts.first().copied());
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
        if !self.explained_already(&diagnostic) {
            self.findings.add(diagnostic);
        }
    }

    /// Another finding is about the same waits and arrivals.
    fn explained_already(&self, diagnostic: &Diagnostic) -> bool {
        diagnostic.labels.iter().any(|label| self.findings.mentions(&label.place))
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
        Some(Why::Columns) => "Free tensor memory before more is allocated, or allocate all of it at once.",
        None => "Look at the order of the barrier operations of this warp and of those that should arrive.",
    }
    .into()
}
