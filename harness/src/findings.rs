//! What the runs of a kernel broke, each root cause once.

use crate::observe::Observation;
use emulator::{Deadlock, Diagnostic, Report};

/// Findings of the emulator that are about resources, not about order: `resources` reports them.
const LEAKS: &[&str] = &["tensor-memory-leak"];

/// Findings about waits and what they wait for: why what follows them comes too early.
const WAITS: &[&str] = &["mbarrier-split", "wrong-phase", "phase-completed-early", "phase-overtaken", "early-arrival"];

/// What comes first when several things are found: causes before what follows from them. Those of the same rank keep their order.
pub fn rank(diagnostic: &Diagnostic) -> usize {
    WAITS.iter().position(|code| *code == diagnostic.code).unwrap_or(WAITS.len())
}

/// What the runs broke, with the seed of the schedule that showed it first (`None`: the default schedule).
#[derive(Default)]
pub(crate) struct Findings {
    pub(crate) found: Vec<(Option<u64>, Diagnostic)>,
    pub(crate) notes: Vec<(Option<u64>, Diagnostic)>,
    pub(crate) leaks: Vec<Diagnostic>,
    /// What could not be checked.
    pub(crate) incomplete: Vec<String>,
    /// Why it is not proved that no interleaving hangs.
    pub(crate) unproved: Vec<String>,
    /// Cycles of the longest run of the timed problem whose D was checked; 0: there was none.
    pub(crate) timed_cycles: u64,
}

impl Findings {
    pub(crate) fn add(&mut self, seed: Option<u64>, run: &Observation) {
        self.add_report(seed, &run.report);
    }

    pub(crate) fn add_report(&mut self, seed: Option<u64>, report: &Report) {
        // The same line of the kernel; the PTX of another size may have it elsewhere.
        let place = |diagnostic: &Diagnostic| {
            let place = &diagnostic.labels.first()?.place;
            Some(match &place.source {
                Some(source) => (source.file.clone(), source.line),
                None => (String::new(), place.line),
            })
        };
        let same = |a: &Diagnostic, b: &Diagnostic| a.code == b.code && place(a) == place(b);
        for diagnostic in &report.findings {
            if LEAKS.contains(&diagnostic.code) {
                if !self.leaks.iter().any(|known| same(known, diagnostic)) {
                    self.leaks.push(diagnostic.clone());
                }
            } else if !self.found.iter().any(|(_, known)| same(known, diagnostic)) {
                self.found.push((seed, diagnostic.clone()));
            }
        }
        self.found.sort_by_key(|(_, diagnostic)| rank(diagnostic));
        for note in &report.notes {
            if !self.notes.iter().any(|(_, known)| same(known, note)) {
                self.notes.push((seed, note.clone()));
            }
        }
        if let Deadlock::NotProved(reasons) = &report.deadlock {
            let new: Vec<String> = reasons.iter().filter(|reason| !self.unproved.contains(reason)).cloned().collect();
            self.unproved.extend(new);
        }
        for reason in &report.incomplete {
            if !self.incomplete.contains(reason) {
                self.incomplete.push(reason.clone());
            }
        }
    }
}
