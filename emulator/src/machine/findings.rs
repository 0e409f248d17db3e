//! Collects what is wrong: one diagnostic for each root cause, with a count.

use crate::diagnostic::{Diagnostic, Label, Place, Severity};
use std::collections::{HashMap, HashSet};

/// A line: of a source file if it is known, of the PTX text otherwise.
type Line = (Option<String>, u32);

/// What makes two diagnostics the same root cause: code and severity, and the line of the primary place.
type Key = (&'static str, Severity, Option<String>, u32);

/// Codes of what keeps a product from being read in time: waits that do not wait, phases that are mixed up, runs that do not come to their end.
const LEAVES_UNREAD: [&str; 17] = [
    "accumulator-overwritten",
    "aligned-lanes-missing",
    "can-hang",
    "early-arrival",
    "hang",
    "instruction-budget",
    "issued-by-many-lanes",
    "mbarrier-init-unordered",
    "mbarrier-overflow",
    "mbarrier-split",
    "missing-wait-ld",
    "mma-not-awaited",
    "mma-not-committed",
    "phase-completed-early",
    "phase-overtaken",
    "race-tensor",
    "wrong-phase",
];

/// Codes of operands that are read otherwise than they were loaded, or when they are not there.
const READ_OTHERWISE: [&str; 6] =
    ["box-mismatch", "depth-mismatch", "operand-not-ready", "operand-overwritten", "race-shared", "swizzle-mismatch"];

/// Whether a statement's text is that of a store.
fn stores(text: &str) -> bool {
    let opcode = text.split_whitespace().find(|word| !word.starts_with('@')).unwrap_or_default();
    opcode.starts_with("st.") || opcode.starts_with("stmatrix.")
}

fn shares_a_line(one: &Diagnostic, other: &Diagnostic) -> bool {
    one.labels.iter().any(|label| other.labels.iter().any(|l| line(&l.place) == line(&label.place)))
}

/// The diagnostics of a run.
#[derive(Debug, Default)]
pub struct Findings {
    list: Vec<Diagnostic>,
    keys: HashMap<Key, usize>,
    /// The lines of MMAs of which an operand lies in the accumulator.
    in_accumulator: HashSet<Line>,
    /// An arrival too many comes from others than those whose MMAs read what has not come.
    pub overflow_first: bool,
}

fn line(place: &Place) -> Line {
    match &place.source {
        Some(source) => (Some(source.file.clone()), source.line),
        None => (None, place.line),
    }
}

impl Findings {
    /// Adds a diagnostic, or counts it with the one that has the same root cause; its further places join that one's.
    pub fn add(&mut self, diagnostic: Diagnostic) {
        let (file, at) = diagnostic.labels.first().map(|l| line(&l.place)).unwrap_or_default();
        match self.keys.get(&(diagnostic.code, diagnostic.severity, file.clone(), at)) {
            Some(&n) => {
                let known = &mut self.list[n];
                known.count += diagnostic.count;
                for label in diagnostic.labels {
                    let seen = known.labels.iter().any(|l| line(&l.place) == line(&label.place));
                    if !seen && known.labels.len() < 5 {
                        known.labels.push(label);
                    }
                }
            }
            None => {
                self.keys.insert((diagnostic.code, diagnostic.severity, file, at), self.list.len());
                self.list.push(diagnostic);
            }
        }
    }

    /// Adds the finding that an operand of an MMA lies in its accumulator.
    pub fn add_in_accumulator(&mut self, diagnostic: Diagnostic) {
        self.in_accumulator.extend(diagnostic.labels.first().map(|label| line(&label.place)));
        self.add(diagnostic);
    }

    /// Adds those of another part of the run.
    pub fn join(&mut self, mut other: Findings) {
        self.in_accumulator.extend(other.in_accumulator.drain());
        self.overflow_first |= other.overflow_first;
        other.list.into_iter().for_each(|diagnostic| self.add(diagnostic));
    }

    /// Nothing but notes.
    pub fn is_empty(&self) -> bool {
        self.list.iter().all(|d| d.severity == Severity::Note)
    }

    /// Whether a finding has a label on this line.
    pub fn mentions(&self, place: &Place) -> bool {
        self.list
            .iter()
            .any(|d| d.severity >= Severity::Finding && d.labels.iter().any(|l| line(&l.place) == line(place)))
    }

    /// Whether a finding of one of these codes has a label on this line. A note does not: what it says changes no verdict.
    pub fn says(&self, codes: &[&str], place: &Place) -> bool {
        let told = |d: &Diagnostic| d.severity > Severity::Note && codes.contains(&d.code);
        self.list.iter().any(|d| told(d) && d.labels.iter().any(|l| line(&l.place) == line(place)))
    }

    /// An undefined value that another finding may explain: it has a label on the line where the value comes from, or says that somebody
    /// reads tensor memory too early.
    fn is_explained(&self, d: &Diagnostic) -> bool {
        let reads_early = ["mma-not-awaited", "mma-not-committed", "wrong-phase", "early-arrival"];
        let explains = |other: &Diagnostic, origin: &Label| {
            let other_line = other.labels.iter().any(|l| line(&l.place) == line(&origin.place));
            other.severity > Severity::Note && other.code != d.code && (reads_early.contains(&other.code) || other_line)
        };
        matches!(d.code, "undefined-value-stored" | "undefined-operand")
            && d.labels.first().is_some_and(|origin| self.list.iter().any(|other| explains(other, origin)))
    }

    /// Whether something that is no note has one of these codes, and fits.
    fn finds(&self, codes: &[&str], fits: impl Fn(&Diagnostic) -> bool) -> bool {
        let one = |other: &Diagnostic| other.severity > Severity::Note && codes.contains(&other.code);
        self.list.iter().any(|other| one(other) && fits(other))
    }

    /// One mbarrier is used that nothing initialises, and another is initialised by two statements: one of them may be meant for the first.
    fn join_initialisations(&mut self) {
        let forgotten = self.list.iter().position(|d| d.code == "mbarrier-not-initialised");
        let by_two = |d: &Diagnostic| d.labels.len() > 1 && line(&d.labels[0].place) != line(&d.labels[1].place);
        let twice = self.list.iter().position(|d| d.code == "mbarrier-reinitialised" && by_two(d));
        let (Some(forgotten), Some(twice)) = (forgotten, twice) else { return };
        let mut labels = std::mem::take(&mut self.list[twice].labels);
        labels[0].text = format!("{}: this may be meant for the other", self.list[twice].title);
        self.list[forgotten].labels.extend(labels);
        self.list.remove(twice);
    }

    /// A wait passes for some warps on an earlier phase than was meant, and others, too late for that, wait there for ever: one cause.
    fn join_waits(&mut self) {
        let wait = |d: &Diagnostic| d.labels.first().map(|label| line(&label.place));
        let hang = self.list.iter().position(|d| d.code == "hang");
        let Some(hang) = hang else { return };
        let same = |d: &Diagnostic| d.code == "wrong-phase" && wait(d) == wait(&self.list[hang]);
        let Some(early) = self.list.iter().position(same) else { return };
        self.list[early].severity = Severity::Error;
        if let Some(label) = self.list[early].labels.first_mut() {
            label.text += "; who comes too late for that waits here for ever";
        }
        self.list.remove(hang);
    }

    /// Findings and errors, then notes. An undefined value whose origin another finding explains is a
    /// consequence of it, and so are a phase that comes too early and a product that nobody has read. A note explains no finding away.
    pub fn finish(mut self) -> (Vec<Diagnostic>, Vec<Diagnostic>) {
        self.join_initialisations();
        self.join_waits();
        let explained: Vec<bool> = self
            .list
            .iter()
            .map(|d| {
                let nearer = ["hang", "issued-by-many-lanes", "wrong-phase", "mbarrier-overflow", "mbarrier-split"];
                if d.code == "phase-overtaken" {
                    // So is one that completes because a stage is released before the warpgroup's MMAs have read it.
                    let released = |d: &Diagnostic| {
                        d.code == "operand-overwritten" && d.labels.iter().any(|l| l.place.text.contains("wgmma."))
                    };
                    // And one of the same mbarrier as an arrival that comes before its time.
                    let early = |other: &Diagnostic| other.code == "early-arrival" && shares_a_line(d, other);
                    let nearer = |other: &Diagnostic| {
                        let nearer = nearer.contains(&other.code) || released(other) || early(other);
                        nearer && (other.severity > Severity::Note || d.severity == Severity::Note)
                    };
                    return self.list.iter().any(nearer);
                }
                if d.code == "loaded-never-read" {
                    // What reads the bytes of a box, but otherwise than they lie there, or at the wrong time, leaves out others.
                    return self.finds(&READ_OTHERWISE, |other| shares_a_line(d, other))
                        || self.finds(&["operand-overlap"], |_| true);
                }
                if d.code == "scale-factors-apart" {
                    // They are what that MMA has put there.
                    return d.labels.iter().any(|label| self.in_accumulator.contains(&line(&label.place)));
                }
                if d.code == "product-overwritten" {
                    // Who reads too early, or another phase, has not read what he should have.
                    let unread = |other: &Diagnostic| LEAVES_UNREAD.contains(&other.code) || shares_a_line(d, other);
                    let other = |other: &&Diagnostic| other.code != d.code && other.severity > Severity::Note;
                    return self.list.iter().filter(other).any(unread);
                }
                d.code == "undefined-value-stored"
                    && d.labels.first().is_some_and(|origin| {
                        self.list.iter().any(|other| {
                            other.code != d.code
                                && other.severity > Severity::Note
                                && other.labels.iter().any(|l| line(&l.place) == line(&origin.place))
                        })
                    })
            })
            .collect();
        let mut explained = explained.into_iter();
        self.list.retain(|_| !explained.next().unwrap_or(false));
        // A phase is overtaken where something is not waited for: what that does to data says more. What is undefined because of it comes
        // behind the finding that says why.
        // So are races of what a warp stores behind a load of a product that it has not waited for. And an arrival too many where an MMA reads what has not come, and its warp frees the stage too early; and a piece of a tile that was not
        // written anew where its store races.
        let comes_behind = |d: &Diagnostic| match d.code {
            "phase-overtaken" => true,
            "mbarrier-overflow" => !self.overflow_first && self.finds(&["operand-not-ready"], |_| true),
            "race-shared" | "operand-not-ready" | "operand-overwritten" => self.finds(&["mma-not-awaited"], |other| {
                let load = other.labels.first().map_or(u32::MAX, |label| label.place.line);
                d.labels.iter().any(|label| label.place.line > load && stores(&label.place.text))
            }),
            "swizzle-mismatch" => self.finds(&["race-shared"], |other| {
                d.labels.iter().take(2).all(|label| other.labels.iter().any(|l| line(&l.place) == line(&label.place)))
            }),
            _ => self.is_explained(d),
        };
        let late: Vec<bool> = self.list.iter().map(comes_behind).collect();
        let (late, first): (Vec<_>, Vec<_>) = self.list.into_iter().zip(late).partition(|(_, late)| *late);
        let all = first.into_iter().chain(late).map(|(d, _)| d);
        all.partition(|d| d.severity > Severity::Note)
    }
}
