//! What people see of a corpus.

use super::culprit::Culprit;
use super::kernels::Kernel;
use super::run::{Judged, Verdict};
use super::{Kind, equivalent};
use crate::workbook::name;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt::Write;

/// How many mutants came to what.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// All that were made.
    pub made: usize,
    /// The text does not load.
    pub refused: usize,
    /// Proved to be no bugs.
    pub equivalent: usize,
    /// Caught by a finding.
    pub finding: usize,
    /// Caught by a wrong result, of which is told where on its way it went astray.
    pub astray: usize,
    /// Caught by a hang.
    pub hang: usize,
    /// Caught by a launch that is refused.
    pub launch: usize,
    /// Caught by a wrong result alone.
    pub wrong: usize,
    /// Seen by a note alone.
    pub note: usize,
    /// Missed.
    pub missed: usize,
    /// Proved to be no bugs, and caught: a rule or the emulator is wrong.
    pub contradicted: usize,
    /// Caught, with a changed line among those that are named.
    pub line: usize,
    /// Caught by a finding, and the assembler makes the same of it as of the solution.
    pub harmless: usize,
}

impl Counts {
    /// Counts one more.
    pub fn add(&mut self, judged: &Judged) {
        self.made += 1;
        if judged.verdict == Verdict::Refused {
            self.refused += 1;
            return;
        }
        if judged.rule.is_some() {
            self.equivalent += 1;
            self.contradicted += usize::from(judged.is_contradicted());
            return;
        }
        self.contradicted += usize::from(judged.is_contradicted());
        self.harmless += usize::from(judged.is_harmless_here());
        *match judged.verdict {
            Verdict::Finding => &mut self.finding,
            Verdict::Astray => &mut self.astray,
            Verdict::Hang => &mut self.hang,
            Verdict::Launch => &mut self.launch,
            Verdict::WrongResult => &mut self.wrong,
            Verdict::Note => &mut self.note,
            Verdict::Nothing | Verdict::Refused => &mut self.missed,
        } += 1;
        self.line += usize::from(
            judged.verdict < Verdict::WrongResult && judged.verdict != Verdict::Astray && judged.names_the_line(),
        );
    }

    /// Mutants that are bugs, as far as is known: those that load and are not proved to be none.
    pub fn bugs(&self) -> usize {
        self.made - self.refused - self.equivalent
    }

    /// Those of which is told what is wrong, and where. A launch that is refused is: its finding names the tensor map and the rule.
    pub fn found(&self) -> usize {
        self.finding + self.astray + self.launch
    }

    /// Those that are caught, by whatever.
    pub fn caught(&self) -> usize {
        self.finding + self.astray + self.hang + self.launch + self.wrong
    }
}

/// Counts of all, and of each step and kind.
pub fn counts(all: &[Judged]) -> (Counts, BTreeMap<(u8, Kind), Counts>) {
    let (mut total, mut each) = (Counts::default(), BTreeMap::<(u8, Kind), Counts>::new());
    for judged in all {
        total.add(judged);
        each.entry((judged.mutant.step, judged.mutant.kind)).or_default().add(judged);
    }
    (total, each)
}

fn percent(part: usize, whole: usize) -> String {
    if whole == 0 { "-".to_string() } else { format!("{:.1} %", 100.0 * part as f64 / whole as f64) }
}

fn row(text: &mut String, label: &str, counts: &Counts) {
    let Counts { made, refused, equivalent, finding, astray, hang, launch, wrong, note, missed, .. } = counts;
    let (caught, found) = (percent(counts.caught(), counts.bugs()), percent(counts.found(), counts.bugs()));
    // Writing to a String cannot fail.
    let _ = writeln!(
        text,
        "{label:<20} {made:>6} {refused:>8} {equivalent:>11} {finding:>8} {astray:>7} {hang:>6} {launch:>7} {wrong:>6} {note:>6} {missed:>7} {caught:>8} {found:>8}"
    );
}

/// The table: a row for each step and kind, and for each kind.
pub fn table(all: &[Judged]) -> String {
    let (total, each) = counts(all);
    let mut text = format!(
        "{:<20} {:>6} {:>8} {:>11} {:>8} {:>7} {:>6} {:>7} {:>6} {:>6} {:>7} {:>8} {:>8}\n",
        "",
        "made",
        "refused",
        "equivalent",
        "finding",
        "astray",
        "hang",
        "launch",
        "wrong",
        "note",
        "missed",
        "caught",
        "found"
    );
    for ((step, kind), counts) in &each {
        row(&mut text, &format!("{} {kind}", name(*step)), counts);
    }
    for kind in Kind::ALL {
        let mut sum = Counts::default();
        all.iter().filter(|judged| judged.mutant.kind == kind).for_each(|judged| sum.add(judged));
        if sum.made > 0 {
            row(&mut text, &format!("all {kind}"), &sum);
        }
    }
    row(&mut text, "all", &total);
    let people = of_people();
    if let Some(counts) = &people {
        row(&mut text, "people (kind 4)", counts);
    }
    text.push_str(
        "refused: the text does not load; astray: a wrong D, and the changed place is named at which the product went astray; wrong: a wrong D \
         and no more; found: by a finding, astray, or a refused launch; caught and found: of those that load and are not equivalent\n",
    );
    text.push_str(match people {
        Some(_) => {
            "people: mistakes in Rust source, of which the expectations were written first, as `cargo test -p mistakes` holds them; all of them, and \
             in no other row; refused: by the builder, too\n"
        }
        None => "people (kind 4): this program does not hold the list\n",
    });
    text
}

/// What `cargo test -p mistakes` writes: the name of a mistake, and what it came to.
#[cfg(feature = "solutions")]
const OUTCOMES: Option<&str> = Some(include_str!("../../../solutions/mistakes/outcomes.txt"));
/// The student edition has no mistakes.
#[cfg(not(feature = "solutions"))]
const OUTCOMES: Option<&str> = None;

/// Kind 4, counted from its list. The test that writes it judges; this crate knows nothing of the mistakes.
fn of_people() -> Option<Counts> {
    let mut counts = Counts::default();
    for line in OUTCOMES?.lines() {
        let (_, outcome) = line.split_once(": ")?;
        counts.made += 1;
        *match outcome.split(' ').next()? {
            "refused" => &mut counts.refused,
            "finding" => &mut counts.finding,
            "hang" => &mut counts.hang,
            "launch" => &mut counts.launch,
            "wrong" => &mut counts.wrong,
            "note" => &mut counts.note,
            _ => &mut counts.missed,
        } += 1;
    }
    Some(counts)
}

/// What follows the table: findings by their code, rules, times, and what the numbers rest on.
pub fn summary(all: &[Judged]) -> String {
    let (total, _) = counts(all);
    let mut codes: BTreeMap<&str, usize> = BTreeMap::new();
    let mut rules: BTreeMap<&str, usize> = BTreeMap::new();
    for judged in all {
        if judged.verdict < Verdict::Note && judged.rule.is_none() {
            let first = judged.codes.first().map_or("wrong result", |code| code.code.as_str());
            *codes.entry(first).or_default() += 1;
        }
        if let (Some(rule), true) = (judged.rule, judged.verdict != Verdict::Refused) {
            *rules.entry(rule.name).or_default() += 1;
        }
    }
    let mut codes: Vec<(&str, usize)> = codes.into_iter().collect();
    codes.sort_by_key(|(code, count)| (usize::MAX - count, *code));
    let mut text = String::from("\ncaught first by\n");
    for (code, count) in codes {
        let _ = writeln!(text, "  {count:>6} {code}");
    }
    text.push_str("equivalent by\n");
    for rule in equivalent::RULES {
        let count = rules.get(rule.name).copied().unwrap_or_default();
        let _ = writeln!(text, "  {count:>6} {}: {}", rule.name, rule.because);
    }
    text.push_str(&asked_of_the_assembler(all, &total));
    let mut times: Vec<u64> = all.iter().map(|judged| judged.milliseconds).collect();
    times.sort_unstable();
    let median = times.get(times.len() / 2).copied().unwrap_or_default();
    let _ = writeln!(text, "a verdict takes {median} ms at the median, {} ms at most", times.last().unwrap_or(&0));
    let hangs: Vec<&Judged> = all.iter().filter(|judged| judged.rule.is_none() && judged.culprit.is_some()).collect();
    let right = hangs.iter().filter(|judged| judged.culprit.as_ref().is_some_and(Culprit::is_told)).count();
    let _ = writeln!(
        text,
        "{right} of {} hangs ({}) are told of what was changed; by the report of another hang of the same kernel, {} would be",
        hangs.len(),
        percent(right, hangs.len()),
        by_another(&hangs)
    );
    let first = hangs.iter().filter(|judged| judged.culprit.as_ref().is_some_and(Culprit::is_told_first)).count();
    let longest = hangs.iter().map(|judged| judged.milliseconds).max().unwrap_or_default();
    let _ = writeln!(
        text,
        "  by the first line that is named, {first} ({}); the longest verdict on a hang takes {longest} ms",
        percent(first, hangs.len())
    );
    for judged in hangs.iter().filter(|judged| !judged.culprit.as_ref().is_some_and(Culprit::is_told)) {
        let _ = writeln!(text, "       not: {}", judged.mutant.id);
    }
    let idle = all.iter().filter(|judged| judged.idle && judged.rule.is_none() && judged.verdict < Verdict::Note);
    let _ = writeln!(text, "{} are caught only where a CTA, or a cluster, has no tile", idle.count());
    let told = total.found() + right;
    let _ = writeln!(
        text,
        "told: of {} that load and are not equivalent, {told} ({}) are told of what is wrong, and where: {} in the column found, and {right} of the hangs, \
         as above; a finding counts by the rule that it names, wherever it points",
        total.bugs(),
        percent(told, total.bugs()),
        total.found()
    );
    let named = total.finding + total.hang + total.launch;
    let _ = writeln!(
        text,
        "changed line: of {named} with a finding, a hang or a refused launch, {} name a line whose own text was changed; the others point elsewhere, as at \
         what the change leaves unordered, or waiting",
        total.line
    );
    if total.contradicted > 0 {
        let _ = writeln!(
            text,
            "{} are proved equivalent and caught, or have the solution's machine code and hang or compute another D: a rule or the emulator is wrong",
            total.contradicted
        );
    }
    text
}

/// Of how many mutants the assembler makes what it makes of the solution, and what the figures are if all of these count as equivalent.
fn asked_of_the_assembler(all: &[Judged], total: &Counts) -> String {
    let asked = all.iter().filter(|judged| judged.same_code.is_some()).count();
    if asked == 0 {
        return "the assembler was not asked: there is none\n".to_string();
    }
    let same: Vec<&Judged> = all.iter().filter(|judged| judged.same_code == Some(true)).collect();
    let alone =
        same.iter().filter(|judged| judged.rule.is_some_and(|rule| rule.name == equivalent::SAME_MACHINE_CODE.name));
    let (alone, harmless) = (alone.count(), total.harmless);
    let by_rules = same.iter().filter(|judged| judged.rule.is_some()).count() - alone;
    let strict = total.bugs() - harmless;
    let mut text = format!(
        "ptxas was asked about {asked} mutants, and makes the solution of {}: {by_rules} that a rule proves, {alone} of which nothing is found, \
         {harmless} that break a rule of PTX, as a finding says\n",
        same.len()
    );
    let _ = writeln!(
        text,
        "proved equivalent: {} of {}; with these {harmless}, which are caught: {}, and of the others {} are caught, {} found",
        percent(total.equivalent, total.made),
        total.made,
        percent(total.equivalent + harmless, total.made),
        percent(total.caught() - harmless, strict),
        percent(total.found() - harmless, strict)
    );
    let without = total.bugs() + alone;
    let _ = writeln!(
        text,
        "by rules alone: {} proved equivalent, {} caught, {} found",
        percent(total.equivalent - alone, total.made),
        percent(total.caught(), without),
        percent(total.found(), without)
    );
    text
}

/// How many hangs would be told of what was changed by the report of another one, of the same kernel: how much chance is in that figure.
fn by_another(hangs: &[&Judged]) -> String {
    let (mut told, mut asked) = (0, 0);
    for (n, judged) in hangs.iter().enumerate() {
        let others = hangs.iter().enumerate().filter(|(m, other)| *m != n && other.mutant.step == judged.mutant.step);
        for culprit in others.filter_map(|(_, other)| other.culprit.as_ref()) {
            asked += 1;
            told += usize::from(judged.culprit.as_ref().is_some_and(|own| own.would_be_told(&culprit.named)));
        }
    }
    percent(told, asked)
}

/// One mutant in a line or two.
pub fn line(kernel: &Kernel, judged: &Judged) -> String {
    let mut said: Vec<&str> = judged.codes.iter().map(|code| code.code.as_str()).collect();
    said.dedup();
    let said = if said.is_empty() { String::new() } else { format!(" ({})", said.join(", ")) };
    format!("{}{said}\n    {}\n", judged.mutant.id, judged.mutant.diff(&kernel.text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_row_of_people_counts_every_line_of_their_list() {
        let Some(outcomes) = OUTCOMES else { return };
        let counts = of_people().expect("a name and an outcome in each line");
        assert_eq!(counts.made, outcomes.lines().count());
        assert!(counts.made > 80 && counts.refused > 0 && counts.hang > 0 && counts.wrong > 0, "{counts:?}");
        assert_eq!((counts.caught(), counts.missed), (counts.bugs(), 0), "{counts:?}");
        assert!(table(&[]).contains("people (kind 4)"));
    }
}
