//! What the runs of a kernel broke, each root cause once.

use crate::observe::Observation;
use crate::problem::Problem;
use emulator::{Deadlock, Diagnostic, Report};

/// Findings of the emulator that are about resources, not about order: `resources` reports them.
const LEAKS: &[&str] = &["tensor-memory-leak"];

/// Findings about waits and what they wait for: why what follows them comes too early.
const WAITS: &[&str] = &["mbarrier-split", "wrong-phase", "phase-completed-early", "phase-overtaken", "early-arrival"];

/// What comes first when several things are found: causes before what follows from them. Those of the same rank keep their order.
pub fn rank(diagnostic: &Diagnostic) -> usize {
    WAITS.iter().position(|code| *code == diagnostic.code).unwrap_or(WAITS.len())
}

/// A run: the seed of its schedule (`None`: the default schedule), and its problem.
pub(crate) type Run = (Option<u64>, Problem);

/// What the runs broke, with the run that showed it first.
#[derive(Default)]
pub(crate) struct Findings {
    pub(crate) found: Vec<(Run, Diagnostic)>,
    pub(crate) notes: Vec<(Run, Diagnostic)>,
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
        self.add_report((seed, run.inputs.problem), &run.report);
    }

    pub(crate) fn add_report(&mut self, run: Run, report: &Report) {
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
                self.found.push((run, diagnostic.clone()));
            }
        }
        self.found.sort_by_key(|(_, diagnostic)| rank(diagnostic));
        for note in &report.notes {
            if !self.notes.iter().any(|(_, known)| same(known, note)) {
                self.notes.push((run, note.clone()));
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
