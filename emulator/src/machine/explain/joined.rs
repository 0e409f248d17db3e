//! Which diagnostics are of one cause, by what they are about: they become one.

use super::{Findings, Line, line};
use crate::diagnostic::{Diagnostic, Label, Meaning, Severity, Subject, join_labels};
use crate::machine::explain::statements::{Does, Statements};
use crate::machine::explain::{
    belongs::{has_line, is_at},
    follows::TOO_EARLY,
};

impl Findings {
    pub(super) fn join_causes(&mut self, statements: &Statements) {
        self.join_initialisations();
        self.join_halves();
        self.join_both_ways();
        self.join_one_cause();
        self.join_one_stretch(statements);
        self.join_counts(statements);
        self.join_mixed(statements);
        self.join_waits();
        self.join_late_bytes();
    }

    /// One mbarrier is used that nothing initialises, and another is initialised by two statements: one of them may be meant for the first.
    fn join_initialisations(&mut self) {
        let forgotten = self.list.iter().position(|d| d.code == "mbarrier-not-initialised");
        let by_two = |d: &Diagnostic| d.labels.len() > 1 && d.labels[0].place.shown() != d.labels[1].place.shown();
        let twice = self.list.iter().position(|d| d.code == "mbarrier-reinitialised" && by_two(d));
        let (Some(forgotten), Some(twice)) = (forgotten, twice) else { return };
        let mut labels = std::mem::take(&mut self.list[twice].labels);
        labels[0].text = format!("{}: this may be meant for the other", self.list[twice].title);
        self.list[forgotten].labels.extend(labels);
        self.list.remove(twice);
    }

    /// A wait passes for some warps on an earlier phase than was meant, and others, too late for that, wait there for ever: one cause. So it is where an
    /// arrival completes phases that somebody who waits has not seen.
    pub(super) fn join_waits(&mut self) {
        let begin = |d: &Diagnostic| d.labels.first().map(|label| line(&label.place));
        let hang = self.list.iter().position(|d| d.code == "hang");
        let Some(hang) = hang else { return };
        // The mbarrier that a split arrival comes to is the one that is waited for.
        let is_waited_for = |d: &Diagnostic| {
            let made = |label: &Label| label.meaning == Meaning::CountsTooFew && has_line(&self.list[hang], label);
            d.subjects().any(|one| self.list[hang].subjects().any(|other| one == other)) || d.labels.iter().any(made)
        };
        let early = |d: &Diagnostic| match d.code {
            "wrong-phase" => begin(d) == begin(&self.list[hang]),
            "mbarrier-split" => {
                // Where the arrival is meant for what is waited for, that is said by the hang.
                let mut plain = self.list[hang].labels.iter().filter(|label| label.meaning == Meaning::Plain);
                let astray = |label: &Label| matches!(label.meaning, Meaning::Astray | Meaning::PerhapsAstray);
                let counts = d.labels.iter().any(|label| label.meaning == Meaning::CountsTooFew);
                let mut named = || begin(d).is_some_and(|arrival| plain.any(|label| line(&label.place) == arrival));
                match counts {
                    true => is_waited_for(d) && (!self.list[hang].labels.iter().any(astray) || named()),
                    false => named(),
                }
            }
            _ => false,
        };
        let Some(early) = self.list.iter().position(early) else { return };
        self.list[early].severity = Severity::Error;
        let text = match self.list[early].code {
            "wrong-phase" => "; who comes too late for that waits here for ever",
            _ => "; who has not seen one of these phases waits for ever",
        };
        if let Some(label) = self.list[early].labels.first_mut() {
            label.text += text;
        }
        self.list.remove(hang);
    }

    /// Two statements race, and each has come first: their pair is told once.
    fn join_both_ways(&mut self) {
        let pair = |d: &Diagnostic| Some((line(&d.labels.first()?.place), line(&d.labels.get(1)?.place)));
        let names = |d: &Diagnostic| d.title.split('`').skip(1).step_by(2).map(str::to_string).collect::<Vec<_>>();
        let is_turned = |known: &Diagnostic, new: &Diagnostic| {
            let turned = pair(new).is_some_and(|(one, other)| one != other && pair(known) == Some((other, one)));
            turned
                && known.code.starts_with("race-")
                && (known.code, known.severity, &known.rule) == (new.code, new.severity, &new.rule)
                && names(known) == names(new)
        };
        self.join_each_as(is_turned, |known, new| {
            known.labels[0].text += "; they came in both orders";
            if known.help == new.help && known.help.starts_with("Put ") {
                known.help += " If they come again, as in a loop, another one belongs before the next time.";
            }
            join_labels(&mut known.labels, new.labels.split_off(2));
        });
    }

    /// Accesses race for one reason, which their labels name: it is told once.
    fn join_one_cause(&mut self) {
        let causes = |d: &Diagnostic| -> Vec<Line> {
            let is_cause = |label: &&Label| {
                use Meaning::*;
                matches!(label.meaning, OrdersNothing | Mixes | PassedAgain | PassedEarlier | Uncommitted)
            };
            d.labels.iter().filter(is_cause).map(|label| line(&label.place)).collect()
        };
        self.join_each(|known, new| {
            let of_new = causes(new);
            (known.code, known.severity, &known.help) == (new.code, new.severity, &new.help)
                && !of_new.is_empty()
                && of_new == causes(known)
        });
    }

    /// Accesses of one stretch of code race with the same statement, or with those of another stretch, which comes first: what puts the first of them in
    /// order does so for all.
    fn join_one_stretch(&mut self, statements: &Statements) {
        self.join_each(|known, new| {
            let alike = (known.code, known.severity) == (new.code, new.severity) && known.code == "race-shared";
            let names_more = |d: &Diagnostic| {
                d.labels.iter().any(|label| !matches!(label.meaning, Meaning::Plain | Meaning::LeavesGroups))
            };
            let ([second, first, ..], [later, other, ..]) = (&known.labels[..], &new.labels[..]) else { return false };
            let leads = |from: &Label, to: &Label| statements.lead_straight(&from.place, &to.place);
            let between = || {
                (known.rule == new.rule && known.help == new.help)
                    && leads(first, other)
                    && leads(first, later)
                    && leads(other, second)
            };
            alike
                && !names_more(known)
                && !names_more(new)
                && (first.place == other.place || between())
                && leads(second, later)
        });
    }

    /// Warps of two groups have let each other go on at a CTA barrier, and in the end some of them wait at one for ever.
    pub(super) fn join_mixed(&mut self, statements: &Statements) {
        let hang = self.list.iter().position(|d| {
            let first = d.labels.first().filter(|label| statements.are(&label.place, Does::Meets));
            d.code == "hang" && first.is_some_and(|label| label.meaning != Meaning::Mixes)
        });
        let Some(hang) = hang else { return };
        // At another barrier, or in another CTA, those who hang do so for another reason.
        let waits = &self.list[hang];
        let barrier = waits.subjects().find(|subject| matches!(subject, Subject::CtaBarrier { .. }));
        let at_it =
            |label: &Label| barrier.is_some_and(|barrier| label.about.contains(&barrier)) || has_line(waits, label);
        let mixed = |d: &Diagnostic| d.labels.iter().any(|label| label.meaning == Meaning::Mixes && at_it(label));
        let Some(race) = self.list.iter().position(mixed) else { return };
        self.list[race].severity = Severity::Error;
        if let Some(label) = self.list[race].labels.iter_mut().find(|label| label.meaning == Meaning::Mixes) {
            label.text += "; in the end some wait at a CTA barrier for ever";
        }
        self.list.remove(hang);
    }

    /// Both CTAs of a pair bring the same half of an operand, and nobody the other half: neither is meant.
    fn join_halves(&mut self) {
        let is_of = |halves: &Diagnostic, d: &Diagnostic| {
            d.code == "input-not-loaded" && d.labels.iter().any(|label| has_line(halves, label))
        };
        for n in 0..self.list.len() {
            let same = self.list[n].labels.first().is_some_and(|label| label.meaning == Meaning::SameHalves);
            let missing = (0..self.list.len()).find(|&at| same && is_of(&self.list[n], &self.list[at]));
            if let Some(missing) = missing {
                let Diagnostic { title, labels, .. } = self.list[missing].clone();
                let halves = &mut self.list[n];
                halves.severity = Severity::Finding;
                halves.labels.extend(labels.into_iter().next().map(|label| Label { text: title, ..label }));
                // Where they are brought is the place to mend.
                halves.labels[0].meaning = Meaning::Plain;
                halves.labels.swap(0, 1);
                halves.labels[0].meaning = Meaning::SameHalves;
            }
        }
        let told = |d: &Diagnostic| {
            d.severity > Severity::Note && d.labels.first().is_some_and(|label| label.meaning == Meaning::SameHalves)
        };
        let halves: Vec<Diagnostic> = self.list.iter().filter(|d| told(d)).cloned().collect();
        self.list.retain(|d| !halves.iter().any(|halves| is_of(halves, d)));
    }

    /// Mbarriers are made for too few arrivals by one number: all that arrives there completes phases too early.
    fn join_counts(&mut self, statements: &Statements) {
        let made = |d: &Diagnostic| {
            let counts = |label: &&Label| label.meaning == Meaning::CountsTooFew;
            let second = d.labels.get(1).filter(|_| d.code == "mbarrier-split");
            let init = &d.labels.iter().find(counts).or(second)?.place;
            // A register may hold another number for another mbarrier.
            Some(statements.writer_of_count(init).ok_or_else(|| line(init)))
        };
        self.join_each(|known, new| {
            ["mbarrier-split", "phase-overtaken"].contains(&new.code)
                && (known.code, known.severity) == (new.code, new.severity)
                && made(new).is_some()
                && made(known) == made(new)
        });
    }

    /// Counts each finding with the first one before it that it belongs to, and shows its places there, too.
    fn join_each(&mut self, belongs: impl Fn(&Diagnostic, &Diagnostic) -> bool) {
        self.join_each_as(belongs, |known, other| join_labels(&mut known.labels, std::mem::take(&mut other.labels)));
    }

    /// Counts each finding with the first one before it that it belongs to: `merge` gets that, and it.
    fn join_each_as(
        &mut self,
        belongs: impl Fn(&Diagnostic, &Diagnostic) -> bool,
        merge: impl Fn(&mut Diagnostic, &mut Diagnostic),
    ) {
        let mut n = 0;
        while n < self.list.len() {
            match self.list[..n].iter().position(|known| belongs(known, &self.list[n])) {
                Some(at) => {
                    let mut other = self.list.remove(n);
                    self.list[at].count += other.count;
                    merge(&mut self.list[at], &mut other);
                }
                None => n += 1,
            }
        }
    }

    /// Bytes that a phase has not waited for count in the next ones: that such a phase never completes, or gets too many bytes, is no mistake of its own.
    pub(super) fn join_late_bytes(&mut self) {
        let belongs = |early: &Diagnostic, end: &Diagnostic| match end.code {
            "hang" if end.labels.iter().any(|label| label.meaning == Meaning::LeavesOut) => false,
            "hang" => self.hangs_by_late_bytes.iter().any(|place| is_at(early, place)),
            "mbarrier-bytes" => end.labels.iter().any(|label| has_line(early, label)),
            _ => false,
        };
        let is_early = |d: &Diagnostic| d.code == TOO_EARLY;
        let pairs = (0..self.list.len()).filter(|&early| is_early(&self.list[early])).find_map(|early| {
            let end = self.list.iter().position(|end| belongs(&self.list[early], end))?;
            Some((early, end))
        });
        let Some((early, end)) = pairs else { return };
        let text = match self.list[end].code {
            "hang" => "; a later phase, to which bytes are left so, never completes",
            _ => "; so many bytes are left to later phases in the end that the run stops",
        };
        self.list[early].severity = Severity::Error;
        if let Some(label) = self.list[early].labels.first_mut() {
            label.text += text;
        }
        self.list.remove(end);
    }
}
