//! Collects what is wrong: one diagnostic for each root cause, with a count.

use super::follows::{FOLLOWS, Follows, TOO_EARLY, Then, UNDEFINED};
use super::statements::Statements;
use crate::diagnostic::{Diagnostic, Label, Place, Severity, join_labels};
use crate::machine::layout::suspected::{self, Suspicion};
use smallvec::SmallVec;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

#[path = "joined.rs"]
mod joined;

/// A line: of a source file if it is known, of the PTX text otherwise.
pub type Line = (Option<String>, u32);

/// What makes two diagnostics the same root cause.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Key {
    code: &'static str,
    severity: Severity,
    of: Of,
}

/// What two diagnostics of one root cause have in common.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Of {
    /// The line of the primary place.
    Line(Line),
    /// What is said of the primary place, and the line of the second one.
    Words { title: String, text: String, second: Option<Line> },
}

/// What names an mbarrier in its title: what is said of another one (the next stage of a ring, at the same line) would be false of it.
const OF_ONE_MBARRIER: &[&str] = &["mbarrier-init-unordered", "phase-completed-early"];

/// What one mistake, in a descriptor or an address that is computed once, leads to at many statements: those of which the same is said are told together.
const BY_WHAT_IS_SAID: &[&str] = &["operand-overlap", "tensor-lane-quarter"];

/// The diagnostics of a run.
#[derive(Debug, Default)]
pub struct Findings {
    list: Vec<Diagnostic>,
    keys: HashMap<Key, usize>,
    /// The lines of MMAs of which an operand lies in the accumulator.
    in_accumulator: HashSet<Line>,
    /// The lines of MMAs that read what nothing writes, sooner or later: no phase that completes early is to blame.
    never_written: HashSet<Line>,
    /// An arrival too many comes from others than those whose MMAs read what has not come.
    pub overflow_first: bool,
    /// Waits for the bulk groups of threads that have none so far: the warp, and where.
    pub bulk_waits_for_none: BTreeSet<(usize, u32)>,
    /// What may be a mistake.
    pub suspected: Vec<Suspicion>,
    /// The run hangs at an mbarrier to whose phase an earlier one has left bytes: the statements that bring bytes there.
    pub hangs_by_late_bytes: Vec<Place>,
}

fn line(place: &Place) -> Line {
    let (file, line) = place.shown();
    (file.map(str::to_string), line)
}

/// A note says nothing of what is a finding.
pub fn key(code: &'static str, severity: Severity, labels: &[Label]) -> Key {
    let line = labels.first().map(|label| line(&label.place)).unwrap_or_default();
    Key { code, severity, of: Of::Line(line) }
}

/// By its line, and by what is said of it where that makes a root cause, too.
fn keys_of(d: &Diagnostic) -> impl Iterator<Item = Key> {
    let said = d.labels.first().filter(|_| BY_WHAT_IS_SAID.contains(&d.code));
    // What is said of the statement alone is the same of A and of B.
    let words = |label: &Label| Of::Words {
        title: d.title.clone(),
        text: label.text.clone(),
        second: d.labels.get(1).map(|label| line(&label.place)),
    };
    let said = said.map(|label| Key { code: d.code, severity: d.severity, of: words(label) });
    said.into_iter().chain([key(d.code, d.severity, &d.labels)])
}

impl Findings {
    /// Adds a diagnostic, or counts it with the one that has the same root cause; its further places join that one's.
    pub fn add(&mut self, diagnostic: Diagnostic) {
        let keys: SmallVec<[Key; 2]> = keys_of(&diagnostic).collect();
        let known = keys.iter().find_map(|key| self.keys.get(key)).copied();
        let n = known.unwrap_or(self.list.len());
        for key in keys {
            self.keys.entry(key).or_insert(n);
        }
        if known.is_none() {
            return self.list.push(diagnostic);
        }
        let known = &mut self.list[n];
        known.count += diagnostic.count;
        if known.title == diagnostic.title || !OF_ONE_MBARRIER.contains(&known.code) {
            join_labels(&mut known.labels, diagnostic.labels);
        }
    }

    /// Adds a diagnostic, or counts it with one that says the same of another statement, and names the same others.
    pub fn add_alike(&mut self, diagnostic: Diagnostic) {
        let rest = |d: &Diagnostic| d.labels.iter().skip(1).map(|label| line(&label.place)).collect::<Vec<Line>>();
        let what = |d: &Diagnostic| (d.code, d.severity);
        let alike = |known: &Diagnostic| {
            what(known) == what(&diagnostic)
                && known.title == diagnostic.title
                && rest(known).starts_with(&rest(&diagnostic))
        };
        let known = self.list.iter().position(alike);
        match known.and_then(|n| self.list.get_mut(n)) {
            Some(known) => {
                known.count += diagnostic.count;
                join_labels(&mut known.labels, diagnostic.labels.into_iter().take(1).collect());
            }
            None => self.add(diagnostic),
        }
    }

    /// Changes what is said with this code of this place.
    pub fn amend(&mut self, code: &str, place: &Place, change: impl FnOnce(&mut Diagnostic)) {
        let is_it = |d: &&mut Diagnostic| d.code == code && d.labels.first().is_some_and(|label| label.place == *place);
        self.list.iter_mut().find(is_it).map(change).unwrap_or_default()
    }

    /// Adds the finding that an operand of an MMA lies in its accumulator.
    pub fn add_in_accumulator(&mut self, diagnostic: Diagnostic) {
        self.in_accumulator.extend(diagnostic.labels.first().map(|label| line(&label.place)));
        self.add(diagnostic);
    }

    /// The MMA of this place reads what nothing writes in the whole run.
    pub fn reads_unwritten(&mut self, place: &Place) {
        self.never_written.insert(line(place));
    }

    /// Adds those of another part of the run.
    pub fn join(&mut self, mut other: Findings) {
        self.in_accumulator.extend(other.in_accumulator.drain());
        self.never_written.extend(other.never_written.drain());
        self.overflow_first |= other.overflow_first;
        self.hangs_by_late_bytes.append(&mut other.hangs_by_late_bytes);
        other.suspected.drain(..).for_each(|suspicion| self.suspect(suspicion));
        other.list.into_iter().for_each(|diagnostic| self.add(diagnostic));
    }

    /// Whether there is a note of this code.
    pub fn has_note(&self, code: &str) -> bool {
        self.list.iter().any(|d| d.severity == Severity::Note && d.code == code)
    }

    /// Nothing but notes.
    pub fn is_empty(&self) -> bool {
        self.list.iter().all(|d| d.severity == Severity::Note)
    }

    /// Whether a finding has a label on this line.
    pub fn mentions(&self, place: &Place) -> bool {
        self.list
            .iter()
            .any(|d| d.severity >= Severity::Finding && d.labels.iter().any(|l| l.place.shown() == place.shown()))
    }

    /// Whether a finding of one of these codes has a label on this line. A note does not: what it says changes no verdict.
    pub fn says(&self, codes: &[&str], place: &Place) -> bool {
        let told = |d: &Diagnostic| d.severity > Severity::Note && codes.contains(&d.code);
        self.list.iter().any(|d| told(d) && d.labels.iter().any(|l| l.place.shown() == place.shown()))
    }

    /// Whether what is at least so severe, of this code, has a label on this line.
    pub fn tells(&self, code: &str, least: Severity, place: &Place) -> bool {
        let told = |d: &Diagnostic| d.severity >= least && d.code == code;
        self.list.iter().any(|d| told(d) && d.labels.iter().any(|l| l.place.shown() == place.shown()))
    }

    /// Whether another finding of these says that a diagnostic follows from it. A note explains no finding.
    fn follows(&self, d: &Diagnostic, row: &Follows, statements: &Statements) -> bool {
        self.cause_of(d, row, statements).is_some()
    }

    /// Which one says so.
    fn cause_of(&self, d: &Diagnostic, row: &Follows, statements: &Statements) -> Option<usize> {
        let &Follows(what, from, belongs, _) = row;
        let unwritten = UNDEFINED.contains(&d.code)
            && d.labels.first().is_some_and(|label| self.never_written.contains(&line(&label.place)));
        let cause = |other: &Diagnostic| {
            let is_one = from.contains(&other.code) || from.is_empty() && other.code != d.code;
            // An arrival too many that somebody else made is the cause of what the MMA reads too early.
            let is_one =
                is_one && !(self.overflow_first && (d.code, other.code) == ("mbarrier-overflow", "operand-not-ready"));
            is_one
                && !(other.code == TOO_EARLY && unwritten)
                && (other.severity > Severity::Note || d.severity == Severity::Note)
                && belongs(d, other, statements)
        };
        what.contains(&d.code).then(|| self.list.iter().position(cause)).flatten()
    }

    /// Where findings of this code are told.
    fn told(&self, code: &str) -> Vec<Line> {
        let all = self.list.iter().filter(|d| d.severity > Severity::Note && d.code == code);
        all.filter_map(|d| d.labels.first()).map(|label| line(&label.place)).collect()
    }

    /// Leaves out what follows from what stays, or from what that is left out for: of two that follow from each other, one stays. What is joined stands there
    /// in its own words.
    fn drop_what_follows(&mut self, statements: &Statements) {
        for row in FOLLOWS.iter().filter(|row| row.3 != Then::Behind) {
            let mut n = 0;
            while n < self.list.len() {
                let Some(cause) = self.cause_of(&self.list[n], row, statements) else {
                    n += 1;
                    continue;
                };
                if row.3 == Then::Joined {
                    let one = &self.list[n];
                    let text = format!("in turn, {}", one.title);
                    let also = one.labels.first().map(|label| Label::new(label.place.clone(), &text));
                    let known = &mut self.list[cause].labels;
                    let is_new = !known.iter().any(|label| without_bytes(&label.text) == without_bytes(&text));
                    known.extend(also.filter(|_| is_new));
                }
                self.list.remove(n);
            }
        }
    }

    /// Copies that several lanes start for one are what is wrong where more bytes come than were announced: that stands there, too.
    fn raise_many_lanes(&mut self) {
        const MANY: &str = "issued-by-many-lanes";
        let is_note = |d: &Diagnostic| d.code == MANY && d.severity == Severity::Note;
        let of_bytes =
            |d: &Diagnostic| d.severity > Severity::Note && ["hang", "can-hang", TOO_EARLY].contains(&d.code);
        let first = |d: &Diagnostic| d.labels.first().map(|label| line(&label.place));
        let notes: Vec<Option<Line>> = self.list.iter().filter(|d| is_note(d)).map(first).collect();
        let copies = |label: &&Label| notes.contains(&Some(line(&label.place)));
        let early = self.list.iter().filter(|d| of_bytes(d) && d.labels.iter().any(|label| copies(&label)));
        // One that names what was announced, if there is one.
        let Some(early) = early.min_by_key(|d| notes.contains(&first(d))) else { return };
        let severity = early.severity;
        let told: Vec<Label> =
            early.labels.first().into_iter().chain(early.labels.iter().skip(1).filter(copies)).cloned().collect();
        let is_told = |d: &Diagnostic| is_note(d) && told.iter().any(|label| first(d) == Some(line(&label.place)));
        let Some(n) = self.list.iter().position(is_told) else { return };
        let mut cause = self.list.remove(n);
        let own = first(&cause);
        let others = told.into_iter().filter(|label| own != Some(line(&label.place)));
        join_labels(&mut cause.labels, others.collect());
        // Of one stage, or of others: they lack the same.
        for other in self.list.extract_if(.., |d| is_note(d)) {
            join_labels(&mut cause.labels, other.labels);
        }
        cause.severity = severity;
        self.list.push(cause);
    }

    /// Findings and errors, then notes; without those that follow from others, or with them behind those.
    pub fn finish(mut self, statements: &Statements) -> (Vec<Diagnostic>, Vec<Diagnostic>) {
        self.join_causes(statements);
        // A wait whose answer nothing reads is a note where nothing depends on it.
        let unread: Vec<Line> = self.told("wait-result-unread");
        let is_told = |d: &Diagnostic| d.labels.first().is_some_and(|label| unread.contains(&line(&label.place)));
        self.list.retain(|d| d.severity > Severity::Note || d.code != "wait-result-unread" || !is_told(d));
        // What stands in the accumulator of an MMA that has put it there is no scale factor of another.
        let put = |label: &Label| self.in_accumulator.contains(&line(&label.place));
        self.list.retain(|d| d.code != "scale-factors-apart" || !d.labels.iter().any(put));
        suspected::tell(&mut self.list, std::mem::take(&mut self.suspected), statements);
        self.raise_many_lanes();
        self.drop_what_follows(statements);
        super::alike::join(&mut self.list);
        // A phase is overtaken where something is not waited for: what that does to data says more.
        let behind = |d: &Diagnostic| {
            FOLLOWS.iter().filter(|row| row.3 == Then::Behind).any(|row| self.follows(d, row, statements))
        };
        let late = |d: &Diagnostic| d.code == "phase-overtaken" || behind(d);
        let late: Vec<bool> = self.list.iter().map(late).collect();
        let (late, first): (Vec<_>, Vec<_>) = self.list.into_iter().zip(late).partition(|(_, late)| *late);
        let parts = [first, late].map(|part| {
            part.into_iter().map(|(d, _)| d).partition::<Vec<Diagnostic>, _>(|d| d.severity > Severity::Note)
        });
        let [(first, notes), (late, last)] = parts;
        let notes = one_of_each_first(notes).into_iter().chain(one_of_each_first(last));
        (first.into_iter().chain(late).collect(), notes.collect())
    }
}

/// A text without the numbers of the bytes and elements that it names.
pub fn without_bytes(text: &str) -> String {
    let mut parts = text.split(" byte ").flat_map(|part| part.split(" (element "));
    let first = parts.next().unwrap_or_default().to_string();
    parts.fold(first, |all, part| all + " " + part.trim_start_matches(|c: char| c.is_ascii_digit()))
}

/// Notes in an order in which the first of each code come first: of a few that are shown, each is about something else.
fn one_of_each_first(notes: Vec<Diagnostic>) -> Vec<Diagnostic> {
    let mut seen: BTreeMap<&str, u32> = BTreeMap::new();
    let ranked = notes.into_iter().map(|note| {
        let rank = seen.entry(note.code).or_default();
        *rank += 1;
        (*rank, note)
    });
    let mut ranked: Vec<(u32, Diagnostic)> = ranked.collect();
    ranked.sort_by_key(|(rank, _)| *rank);
    ranked.into_iter().map(|(_, note)| note).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnostic::{Meaning, Subject};

    fn finding(code: &'static str, line: u32) -> Diagnostic {
        let place = Place { line, column: 1, text: String::new(), source: None };
        Diagnostic {
            code,
            severity: Severity::Finding,
            title: String::new(),
            labels: vec![Label::new(place, "")],
            rule: String::new(),
            help: String::new(),
            count: 1,
            confirmed: None,
        }
    }

    /// Whatever two things are wrong on a line: the verdict is not clean.
    #[test]
    fn no_two_findings_make_each_other_vanish() {
        let codes: Vec<&str> = crate::CODES.iter().map(|code| code.0).collect();
        for a in &codes {
            for b in &codes {
                let mut findings = Findings::default();
                findings.add(finding(a, 7));
                findings.add(finding(b, 7));
                let (told, _) = findings.finish(&Statements::default());
                assert!(!told.is_empty(), "{a} and {b} are both dropped");
            }
        }
    }

    /// Of two phases that are complete too early, the one whose copies are named is what a later phase suffers from.
    #[test]
    fn late_bytes_join_the_phase_that_they_belong_to() {
        for by_hang in [false, true] {
            let mut findings = Findings::default();
            findings.add(finding("phase-completed-early", 10));
            findings.add(finding("phase-completed-early", 20));
            findings.add(finding(if by_hang { "hang" } else { "mbarrier-bytes" }, if by_hang { 30 } else { 20 }));
            if by_hang {
                findings.hangs_by_late_bytes.push(Place { line: 20, ..Place::default() });
            }
            findings.join_late_bytes();
            let left: Vec<(u32, Severity)> =
                findings.list.iter().map(|d| (d.labels[0].place.line, d.severity)).collect();
            assert_eq!(left, [(10, Severity::Finding), (20, Severity::Error)]);
        }
    }

    /// Races at a barrier that mixes warps explain who waits there for ever, and not who waits at another one.
    #[test]
    fn a_mixed_barrier_explains_no_hang_at_another() {
        let program = crate::load(
            ".version 8.8\n.target sm_100a\n.address_size 64\n.entry kernel() {\nbarrier.sync 3, 64;\nbarrier.sync 1, 64;\nret;\n}\n",
        )
        .expect("it loads");
        let kernel = &program.kernels[0];
        // That of another CTA is another one.
        for (cta, id, left) in [(0, 1, 2), (0, 3, 1), (1, 3, 2)] {
            let place =
                kernel.sites.iter().find(|place| place.text.contains(&format!("sync {id}"))).expect("it is there");
            let mut race = finding("race-shared", 90);
            let mixes = Label::new(
                Place { line: 91, ..Place::default() },
                "warps 0, 1 met at barrier 3, the last of them here",
            );
            race.labels.push(mixes.that_means(Meaning::Mixes).that_is_about(Subject::CtaBarrier { cta: 0, id: 3 }));
            let mut hang = finding("hang", 0);
            hang.title = format!("CTA barrier {id} waits for 64 threads and gets 32");
            hang.labels[0].place = place.clone();
            hang.labels[0].concerns(Subject::CtaBarrier { cta, id });
            let mut findings = Findings::default();
            [race, hang].into_iter().for_each(|d| findings.add(d));
            findings.join_mixed(&Statements::of(&kernel.code, &kernel.sites));
            assert_eq!(findings.list.len(), left, "barrier {id} of CTA {cta}");
        }
    }

    /// An arrival that completes a phase too early explains who waits for that mbarrier, and not who waits for one of the same name; what another CTA
    /// was told of the same line counts as well.
    #[test]
    fn a_split_arrival_explains_the_waits_for_its_own_mbarrier() {
        for (waited, left) in [(0, 1), (1, 1), (2, 2)] {
            let mut findings = Findings::default();
            for cta in [0, 1] {
                let mut split = finding("mbarrier-split", 10);
                split.title = "`full` gets 32 arrivals".into();
                split.labels[0].concerns(Subject::Mbarrier { cta, offset: 64 });
                let made = Label::new(Place { line: 11, ..Place::default() }, "initialised for 1 arrival a phase");
                split.labels.push(made.that_means(Meaning::CountsTooFew));
                findings.add(split);
            }
            let mut hang = finding("hang", 20);
            hang.title = "the wait for `full` never ends".into();
            hang.labels[0].concerns(Subject::Mbarrier { cta: waited, offset: 64 });
            findings.add(hang);
            findings.join_waits();
            assert_eq!(findings.list.len(), left, "CTA {waited}");
        }
    }

    /// Of A and of B the same may be said.
    #[test]
    fn what_is_said_of_one_operand_is_not_told_of_the_other() {
        let mut findings = Findings::default();
        for (line, which) in [(10, "A"), (20, "A"), (30, "B")] {
            let mut overlap = finding("operand-overlap", line);
            overlap.title = format!("{which} is read twice");
            overlap.labels[0].text = "multiplied here".into();
            findings.add(overlap);
        }
        assert_eq!(findings.list.iter().map(|d| d.count).collect::<Vec<_>>(), [2, 1]);
    }

    /// Only what is behind a wait for an mbarrier that counts too few follows from that.
    #[test]
    fn a_count_explains_what_is_behind_its_wait() {
        let program = crate::load(
            ".version 8.8\n.target sm_100a\n.address_size 64\n.entry kernel() {\n.reg .b32 %r<4>;\n.reg .pred %p0;\n\
             st.shared.b32 [%r3], %r2;\nWAIT:\nmbarrier.try_wait.parity.shared.b64 %p0, [%r0], 0;\n@!%p0 bra WAIT;\n\
             st.shared.b32 [%r1], %r2;\nret;\n}\n",
        )
        .expect("it loads");
        let kernel = &program.kernels[0];
        let place = |text: &str| kernel.sites.iter().find(|place| place.text.contains(text)).expect("it is there");
        let told = |store: &str| -> Vec<&'static str> {
            let mut hang = finding("hang", 90);
            hang.labels[0].meaning = Meaning::CountsTooFew;
            hang.labels.push(Label::new(place("try_wait").clone(), ""));
            let mut race = finding("race-shared", 0);
            race.labels[0].place = place(store).clone();
            let mut findings = Findings::default();
            [race, hang].into_iter().for_each(|d| findings.add(d));
            findings.finish(&Statements::of(&kernel.code, &kernel.sites)).0.iter().map(|d| d.code).collect()
        };
        assert_eq!(told("[%r1]"), ["hang"]);
        assert_eq!(told("[%r3]"), ["hang", "race-shared"]);
    }

    /// An accumulator that is overwritten follows from a wait for another phase where who reads it says so behind the load; in front of it, that is a
    /// mistake of its own.
    #[test]
    fn a_product_that_is_handed_back_in_front_of_its_load_is_told() {
        let program = crate::load(
            ".version 8.8\n.target sm_100a\n.address_size 64\n.entry kernel() {\n.reg .b32 %r<4>;\n.reg .b64 %d0;\n.reg .pred %p0;\n\
             WAIT:\nmbarrier.try_wait.parity.shared.b64 %p0, [%r0], 0;\n@!%p0 bra WAIT;\nmbarrier.arrive.shared.b64 %d0, [%r1];\n\
             tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r2}, [%r3];\nmbarrier.arrive.shared.b64 %d0, [%r2];\nret;\n}\n",
        )
        .expect("it loads");
        let kernel = &program.kernels[0];
        let place = |text: &str| kernel.sites.iter().find(|place| place.text.contains(text)).expect("it is there");
        let told = |arrival: &str| -> Vec<&'static str> {
            let mut findings = Findings::default();
            for (code, texts) in
                [("wrong-phase", ["try_wait", "tcgen05.ld"]), ("accumulator-overwritten", ["tcgen05.ld", arrival])]
            {
                let mut finding = finding(code, 0);
                finding.labels = texts.map(|text| Label::new(place(text).clone(), "")).into();
                findings.add(finding);
            }
            findings.finish(&Statements::of(&kernel.code, &kernel.sites)).0.iter().map(|d| d.code).collect()
        };
        assert_eq!(told("[%r2]"), ["wrong-phase"]);
        assert_eq!(told("[%r1]"), ["wrong-phase", "accumulator-overwritten"]);
    }

    /// Which of two comes further down is asked of the kernel, and not of the text: there a function stands where it was written.
    #[test]
    fn what_a_function_does_is_behind_what_stands_before_its_call() {
        let program = crate::load(
            ".version 8.8\n.target sm_100a\n.address_size 64\n\
             .func arrives(.param .b32 bar) {\n.reg .b32 %r0;\n.reg .b64 %d0;\nld.param.b32 %r0, [bar];\n\
             mbarrier.arrive.shared.b64 %d0, [%r0];\nret;\n}\n\
             .entry kernel() {\n.reg .b32 %r<4>;\n.param .b32 bar;\n\
             st.shared.b32 [%r3], %r2;\ntcgen05.ld.sync.aligned.32x32b.x1.b32 {%r1}, [%r0];\nst.param.b32 [bar], %r2;\ncall arrives, (bar);\n\
             st.shared.b32 [%r2], %r1;\nret;\n}\n",
        )
        .expect("it loads");
        let kernel = &program.kernels[0];
        let place = |text: &str| kernel.sites.iter().find(|place| place.text.contains(text)).expect("it is there");
        let first = |of: [(&'static str, &str); 2]| {
            let mut findings = Findings::default();
            for (code, text) in of {
                let mut finding = finding(code, 0);
                finding.labels[0].place = place(text).clone();
                findings.add(finding);
            }
            let (told, _) = findings.finish(&Statements::of(&kernel.code, &kernel.sites));
            told[0].code
        };
        assert!(place("mbarrier.arrive").line < place("tcgen05.ld").line, "the text has them the other way round");
        assert_eq!(first([("hang", "mbarrier.arrive"), ("mma-not-awaited", "tcgen05.ld")]), "mma-not-awaited");
        assert_eq!(first([("race-shared", "[%r2], %r1"), ("mma-not-awaited", "tcgen05.ld")]), "mma-not-awaited");
        assert_eq!(first([("race-shared", "[%r3]"), ("mma-not-awaited", "tcgen05.ld")]), "race-shared", "it is before");
    }
}
