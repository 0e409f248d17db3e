//! What a batch says of all hand-ins together: a table for a spreadsheet, a page, and a page for each hand-in.
//!
//! Results are read one after the other, so memory does not grow with their explanations.

use super::hand_ins::HandIn;
use super::store::{Outcome, Record, Store, write_whole};
use crate::formats::{harmless, html};
use crate::json::{Report, State, Step, rounded};
use crate::rubric::{Moment, Rubric};
use harness::answers::plain;
use harness::workbook::name;
use maud::{Markup, html};
use std::collections::{BTreeMap, BTreeSet};

/// The most findings that the page lists.
const FINDINGS: usize = 25;
/// Bins of a step's distribution: none of the points, four quarters, all.
const BINS: [&str; 6] = ["0", "to 25 %", "to 50 %", "to 75 %", "below all", "all"];

/// What is counted over all hand-ins.
#[derive(Default)]
struct Counts {
    /// For each step, hand-ins by the share of its points; without a kernel, hand-ins have no share.
    steps: BTreeMap<u8, [usize; 6]>,
    /// For each step, part and title: how many have it.
    findings: BTreeMap<(u8, String, String), usize>,
    scores: Vec<f64>,
    /// For each part and reason, hand-ins of which it could not be checked.
    unchecked: BTreeMap<(String, String), usize>,
}

/// A hand-in's row.
struct Row {
    id: String,
    name: String,
    score: Option<f64>,
    /// `None` where nothing says when it came.
    late_days: Option<u32>,
    points: BTreeMap<u8, f64>,
    /// What was refused or ended.
    stopped: Vec<String>,
    /// `refused` or `ended`, of a hand-in without a grade.
    ended: &'static str,
    /// What comes next, whole: for the table.
    note: String,
    /// The same for the page, on which the rest stands elsewhere: above, or a click away.
    short: String,
}

/// Writes `grades.csv`, `index.html` and `reports/`. `steps`: those that were asked for, all if empty. Gives what a person should know at once:
/// parts that could not be checked, and so gave no points.
///
/// # Errors
/// When results cannot be read, or these cannot be written.
pub fn write(store: &Store, hand_ins: &[HandIn], rubric: &Rubric, steps: &[u8]) -> Result<Vec<String>, String> {
    let (mut counts, mut rows) = (Counts::default(), Vec::new());
    let of = rubric.max_points(steps);
    for hand_in in hand_ins {
        let Some(record) = store.result(&hand_in.id)? else { continue };
        let page = match &record.outcome {
            Outcome::Graded(report) => html::page(report, Some((&record.name, of))),
            Outcome::NotGraded { reason, .. } => html::not_graded(Some(&record.name), reason),
        };
        let path = store.folder.join("reports").join(format!("{}.html", hand_in.id));
        write_whole(&path, page.as_bytes())?;
        rows.push(row(&hand_in.id, &record, rubric));
        counts.add(&record);
    }
    let columns: Vec<u8> =
        rubric.steps.keys().copied().filter(|step| steps.is_empty() || steps.contains(step)).collect();
    write_whole(&store.folder.join("grades.csv"), &table(&rows, &columns, of)?)?;
    let unchecked = counts.unchecked();
    write_whole(&store.folder.join("index.html"), index(&rows, &counts, &unchecked, of).as_bytes())?;
    Ok(unchecked)
}

impl Counts {
    fn add(&mut self, record: &Record) {
        let Outcome::Graded(report) = &record.outcome else { return };
        self.scores.push(report.score);
        let unchecked =
            report.steps.iter().flat_map(|step| &step.parts).filter(|part| part.outcome == State::NotChecked);
        // Each once, however many steps lack it.
        let reasons: BTreeSet<_> = unchecked.map(|part| (part.part.to_string(), on_one_line(&part.text))).collect();
        for reason in reasons {
            *self.unchecked.entry(reason).or_default() += 1;
        }
        for step in &report.steps {
            self.steps.entry(step.step).or_default()[bin(step)] += 1;
            for part in step.parts.iter().filter(|part| part.outcome == State::Failed) {
                let title = part.title.as_deref().unwrap_or_default();
                let key = (step.step, part.part.to_string(), without_names(title));
                *self.findings.entry(key).or_default() += 1;
            }
        }
    }

    /// A sentence on each part that could not be checked.
    fn unchecked(&self) -> Vec<String> {
        let of = self.scores.len();
        let say = |((part, why), count): (&(String, String), &usize)| {
            format!("`{part}` could not be checked in {count} of {of} hand-ins, and gave no points there: {why}")
        };
        self.unchecked.iter().map(say).collect()
    }

    fn findings(&self) -> Vec<(&(u8, String, String), usize)> {
        let mut all: Vec<_> = self.findings.iter().map(|(key, count)| (key, *count)).collect();
        all.sort_by_key(|(key, count)| (std::cmp::Reverse(*count), *key));
        all.truncate(FINDINGS);
        all
    }
}

fn bin(step: &Step) -> usize {
    let share = if step.max_points == 0 { 1.0 } else { step.points / f64::from(step.max_points) };
    match share {
        share if share <= 0.0 => 0,
        share if share >= 1.0 => 5,
        share if share > 0.75 => 4,
        share => (share * 4.0).ceil().max(1.0) as usize,
    }
}

/// A finding without what a student named, and without its numbers: the same mistake is then one line, whatever the tile is called and in
/// whichever round it shows.
fn without_names(title: &str) -> String {
    let pieces = title.split('`').enumerate();
    let text: String = pieces.map(|(index, piece)| if index % 2 == 1 { "`…`" } else { piece }).collect();
    let pieces = text.split('"').enumerate();
    let text: String = pieces.map(|(index, piece)| if index % 2 == 1 { "\"…\"" } else { piece }).collect();
    let word = |sign: char| sign.is_alphanumeric() || sign == '_';
    let words = text.split_inclusive(|sign| !word(sign)).map(|piece| {
        let bare = piece.trim_end_matches(|sign| !word(sign));
        // Also an address: 0x600000.
        if bare.starts_with(|sign: char| sign.is_ascii_digit()) {
            format!("…{}", &piece[bare.len()..])
        } else {
            piece.to_string()
        }
    });
    // The two halves of one with a point.
    words.collect::<String>().replace("….…", "…")
}

/// How late a hand-in is, graded or not: nothing is late where nothing was due.
fn late_days(record: &Record, rubric: &Rubric) -> Option<u32> {
    let handed_in = Moment::parse(record.asked.handed_in.as_deref()?).ok()?;
    Some(rubric.late.as_ref().map_or(0, |late| late.days(&handed_in)))
}

fn row(id: &str, record: &Record, rubric: &Rubric) -> Row {
    let mut row = Row {
        id: id.to_string(),
        name: record.name.clone(),
        score: None,
        late_days: late_days(record, rubric),
        points: BTreeMap::new(),
        stopped: Vec::new(),
        ended: "",
        note: String::new(),
        short: String::new(),
    };
    match &record.outcome {
        Outcome::Graded(report) => {
            row.score = Some(report.score);
            row.points = report.steps.iter().map(|step| (step.step, step.points)).collect();
            row.stopped = report.stopped().map(|(step, one)| on_one_line(&one.of_step(step))).collect();
            (row.note, row.short) = first_next(report).or_else(|| first_unchecked(report)).unwrap_or_default();
        }
        Outcome::NotGraded { reason, here, limit, no_kernel } => {
            row.short = on_one_line(reason);
            // A machine that failed has stopped nobody, and nothing was there to refuse where no kernel was.
            if !here && !no_kernel {
                row.ended = if limit.is_some() { "ended" } else { "refused" };
                row.stopped.push(format!("{}: {}", row.ended, row.short));
            }
            row.note = format!("not graded: {}", row.short);
            // Beside its name.
            for join in [": ", " ", "/"] {
                if let Some(rest) = row.short.strip_prefix(&format!("{}{join}", record.name)) {
                    row.short = rest.to_string();
                }
            }
        }
    }
    row
}

/// A reason whole, on one line; one of many lines, as a compiler's, up to the end of a line.
fn on_one_line(reason: &str) -> String {
    const LONG: usize = 600;
    let mut text = String::new();
    for line in reason.lines().map(str::trim).filter(|line| !line.is_empty()) {
        if !text.is_empty() && text.len() + line.len() > LONG {
            return text + " (the hand-in's page says more)";
        }
        if !text.is_empty() {
            text += if text.ends_with([':', '.', ';', ',']) { " " } else { "; " };
        }
        text += line;
    }
    text
}

/// The first thing to do, whole and short.
fn first_next(report: &Report) -> Option<(String, String)> {
    // What the machine could not check is said with its reason, where nothing else is left.
    let is_the_kernels =
        |step: &&Step| step.parts.iter().any(|part| !matches!(part.outcome, State::Passed | State::NotChecked));
    let step = report.steps.iter().filter(is_the_kernels).find(|step| step.next.is_some())?;
    let (step, next) = (name(step.step), step.next.as_ref()?);
    Some((format!("{step}: {}", next.line()), format!("{step}: {}", next.short())))
}

/// Why all points are not there where nothing is left to do, whole and short.
fn first_unchecked(report: &Report) -> Option<(String, String)> {
    report.steps.iter().find_map(|step| {
        let part = step.parts.iter().find(|part| part.outcome == State::NotChecked)?;
        let short = format!("{}: {} could not be checked by the machine that grades", name(step.step), part.part);
        Some((format!("{short}: {}", on_one_line(&part.text)), short))
    })
}

fn table(rows: &[Row], steps: &[u8], of: u32) -> Result<Vec<u8>, String> {
    let failed = |error: csv::Error| format!("cannot write CSV: {error}");
    let mut writer = csv::Writer::from_writer(Vec::new());
    let head = ["name", "score", "max_points", "late_days"].into_iter().map(str::to_string);
    let head =
        head.chain(steps.iter().map(|step| name(*step))).chain(["next", "stopped", "report"].map(str::to_string));
    writer.write_record(head).map_err(failed)?;
    for row in rows {
        // No score is not the score 0: somebody has to look at it.
        let number = |points: Option<&f64>| points.map(f64::to_string).unwrap_or_default();
        let late_days = row.late_days.map(|days| days.to_string()).unwrap_or_default();
        let mut cells = vec![harmless(&row.name), number(row.score.as_ref()), of.to_string(), late_days];
        cells.extend(steps.iter().map(|step| number(row.points.get(step))));
        cells.extend([harmless(&row.note), harmless(&row.stopped.join("; ")), format!("reports/{}.html", row.id)]);
        writer.write_record(cells).map_err(failed)?;
    }
    writer.into_inner().map_err(|error| format!("cannot write CSV: {}", error.error()))
}

fn index(rows: &[Row], counts: &Counts, unchecked: &[String], of: u32) -> String {
    let without: Vec<&Row> = rows.iter().filter(|row| row.score.is_none()).collect();
    let mut scores = counts.scores.clone();
    scores.sort_by(f64::total_cmp);
    let body = html! {
        h1 { "Grades" }
        p {
            (rows.len()) " hand-ins, " (scores.len()) " graded, " (without.len()) " not graded."
            @if let (Some(low), Some(middle), Some(high)) = (scores.first(), scores.get(scores.len() / 2), scores.last()) {
                @let mean = rounded(scores.iter().sum::<f64>() / scores.len() as f64);
                " Scores of " (of) ": from " (low) " to " (high) ", median " (middle) ", mean " (mean) "."
            }
        }
        @for sentence in unchecked { p { (sentence) } }
        (distribution(counts))
        (findings(counts))
        @if !without.is_empty() {
            h2 { "Not graded" }
            ul { @for row in &without { li { (link(row)) ": " (row.short) } } }
        }
        (stopped(rows))
        h2 { "Hand-ins" }
        table {
            thead { tr { th { "name" } th class="number" { "score" } th class="number" { "days late" } th { "what comes next" } } }
            tbody {
                @for row in rows {
                    tr {
                        td { (link(row)) }
                        td class="number" { @if let Some(score) = row.score { (score) } @else { "–" } }
                        td class="number" { @if let Some(days) = row.late_days { (days) } @else { "–" } }
                        td { @if row.score.is_some() { (row.short) } @else { "not graded" } }
                    }
                }
            }
        }
    };
    html::document("Grades", &body)
}

/// The hand-ins of which something was refused or ended.
fn stopped(rows: &[Row]) -> Markup {
    let those: Vec<&Row> = rows.iter().filter(|row| !row.stopped.is_empty()).collect();
    html! {
        @if !those.is_empty() {
            h2 id="stopped" { "Refused or stopped" }
            p { (those.len()) " of " (rows.len()) " hand-ins. " (html::STOPPED) }
            table {
                thead { tr { th { "name" } th { "what happened, or stands in the text" } } }
                tbody {
                    @for row in those {
                        tr {
                            td { (link(row)) }
                            td {
                                // Why there is no grade is said above.
                                @if row.score.is_none() { (row.ended) ", for the reason above" } @else {
                                    ul { @for text in &row.stopped { li { (plain(text)) } } }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn link(row: &Row) -> Markup {
    html! { a href=(format!("reports/{}.html", row.id)) { (row.name) } }
}

fn distribution(counts: &Counts) -> Markup {
    let most = counts.steps.values().flatten().copied().max().unwrap_or(0).max(1);
    html! {
        h2 { "Points of each step" }
        table {
            thead { tr { th { "step" } @for bin in BINS { th { (bin) } } } }
            tbody {
                @for (step, bins) in &counts.steps {
                    tr {
                        td { (name(*step)) }
                        @for count in bins {
                            @let width = (6 * count).div_ceil(most);
                            td { (count) " " span class="bar" style=(format!("width:{width}em")) {} }
                        }
                    }
                }
            }
        }
    }
}

fn findings(counts: &Counts) -> Markup {
    let all = counts.findings();
    html! {
        h2 { "Common findings" }
        @if all.is_empty() { p { "None." } } @else {
            table {
                thead { tr { th class="number" { "hand-ins" } th { "step" } th { "part" } th { "finding" } } }
                tbody {
                    @for ((step, part, title), count) in all {
                        tr { td class="number" { (count) } td { (name(*step)) } td { (part) } td { (title) } }
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::store::Asked;

    #[test]
    fn a_mistake_is_one_line_whatever_is_called_how_and_in_whichever_round() {
        assert_eq!(
            without_names("MMA 128 (round 0, slice 0) adds to what `acc` held before"),
            "MMA … (round …, slice …) adds to what `…` held before"
        );
        assert_eq!(without_names("0x600000 holds 20.828125; D has -9.25"), "… holds …; D has -…");
        let tile = r#"tile "D" of 128 x 64 f16 needs 16384 bytes, and 3072 of the CTA's 232448 are left"#;
        assert_eq!(without_names(tile), r#"tile "…" of … x … f16 needs … bytes, and … of the CTA's … are left"#);
    }

    /// By what the result says of it, and not by its words: a name may hold them.
    #[test]
    fn where_no_kernel_was_nothing_was_refused() {
        let stopped = |reason: &str, no_kernel: bool| {
            let outcome = Outcome::NotGraded { reason: reason.to_string(), here: false, limit: None, no_kernel };
            let record = Record {
                schema: 1,
                name: "anna".to_string(),
                hand_in: String::new(),
                identity: String::new(),
                rubric: String::new(),
                seed: None,
                seed_commitment: None,
                versions: crate::versions::tests::known(),
                asked: Asked::default(),
                seconds: 0.0,
                outcome,
            };
            row("0", &record, &Rubric::default()).stopped
        };
        assert!(stopped("anna holds no kernel for step01", true).is_empty());
        assert_eq!(
            stopped("refused (link): `x holds no kernel` is a link", false),
            ["refused: refused (link): `x holds no kernel` is a link"]
        );
    }

    /// What a grader wrote that did not tell it yet.
    #[test]
    fn a_result_without_the_word_is_read() {
        let old = r#"{"not_graded": {"reason": "anna holds no kernel for step01"}}"#;
        let read: Outcome = serde_json::from_str(old).unwrap();
        assert_eq!(read, Outcome::not_graded("anna holds no kernel for step01".to_string()));
    }

    #[test]
    fn a_reason_stands_on_one_line_and_ends_where_a_line_ends() {
        let reason = "anna holds no kernel for step01\n  looked for:\n    step01.rs\n  try: Put it there.";
        assert_eq!(on_one_line(reason), "anna holds no kernel for step01; looked for: step01.rs; try: Put it there.");
        let long = format!("it ended:\n{}", "one line of many\n".repeat(100));
        let short = on_one_line(&long);
        assert!(short.ends_with("one line of many (the hand-in's page says more)") && short.len() < 700, "{short}");
    }
}
