//! JUnit's XML, as Jenkins' schema (junit-10.xsd) has it: a suite for each step, a case for each part; one more for when it was handed in,
//! where that is known and a rubric says when it was due.

use super::not_graded::{Fault, NotGraded};
use super::{comes_next, explanation, late, step_name};
use crate::json::{Lateness, PartReport, Report, State, Step};
use harness::Part;
use harness::answers::plain;
use quick_xml::Writer;
use quick_xml::events::{BytesDecl, BytesEnd, BytesStart, BytesText, Event};
use std::io;

/// The document.
pub(super) fn render(report: &Report) -> Result<String, String> {
    written(|writer| document(writer, report))
}

/// In place of a grade: one case that failed where the hand-in is refused, and that is an error where the machine or the course failed.
pub(super) fn not_graded(why: &NotGraded) -> Result<String, String> {
    let (failures, errors, child) = match why.fault {
        Fault::HandIn => ("1", "0", "failure"),
        Fault::Here => ("0", "1", "error"),
    };
    let counts = |name: &str| {
        let counts = [("name", name), ("tests", "1"), ("failures", failures), ("errors", errors), ("time", "0.00")];
        counts.map(|(name, value)| (name, value.to_string()))
    };
    let message = plain(why.reason.lines().next().unwrap_or_default());
    written(|writer| {
        declaration(writer)?;
        element(writer, "testsuites", &counts("grader"), |writer| {
            element(writer, "testsuite", &counts(HAND_IN), |writer| {
                let case = [("name", "graded"), ("classname", HAND_IN), ("time", "0.00")];
                element(writer, "testcase", &case.map(|(name, value)| (name, value.to_string())), |writer| {
                    let said = [("message", message), ("type", "not graded".to_string())];
                    element(writer, child, &said, |writer| text(writer, &why.text()))
                })
            })
        })
    })
}

/// The suite of what is of no step.
const HAND_IN: &str = "hand-in";

fn written(document: impl FnOnce(&mut Writer<Vec<u8>>) -> io::Result<()>) -> Result<String, String> {
    let mut writer = Writer::new_with_indent(Vec::new(), b' ', 2);
    document(&mut writer).map_err(|error| format!("cannot write XML: {error}"))?;
    let text = String::from_utf8(writer.into_inner()).map_err(|error| format!("cannot write XML: {error}"))?;
    Ok(text + "\n")
}

/// What JUnit calls a part's outcome.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Case {
    Passed,
    Failed,
    Skipped,
}

/// A kernel with an open TODO is not right yet, and who reads only counts must see that: `correct` fails. Else a part that something else
/// comes before was skipped, like one that could not be checked: neither says that it is wrong.
fn state(part: &PartReport) -> Case {
    match (part.outcome, part.part) {
        (State::Passed, _) => Case::Passed,
        (State::Failed, _) | (State::NotReached, Part::Correct) => Case::Failed,
        (State::NotReached | State::NotChecked, _) => Case::Skipped,
    }
}

fn count(step: &Step, wanted: Case) -> usize {
    step.parts.iter().filter(|part| state(part) == wanted).count()
}

fn declaration(writer: &mut Writer<Vec<u8>>) -> io::Result<()> {
    writer.write_event(Event::Decl(BytesDecl::new("1.0", Some("UTF-8"), None)))
}

fn document(writer: &mut Writer<Vec<u8>>, report: &Report) -> io::Result<()> {
    declaration(writer)?;
    let (one, lost) = (report.late.iter().count(), report.late.iter().filter(|late| costs(late)).count());
    let sum =
        |of: &dyn Fn(&Step) -> usize, more: usize| (report.steps.iter().map(of).sum::<usize>() + more).to_string();
    let seconds: f64 = report.steps.iter().map(|step| step.seconds).sum();
    let suites = [
        ("name", "grader".to_string()),
        ("tests", sum(&|step| step.parts.len(), one)),
        ("failures", sum(&|step| count(step, Case::Failed), lost)),
        ("errors", "0".to_string()),
        ("time", format!("{seconds:.2}")),
    ];
    element(writer, "testsuites", &suites, |writer| {
        report.steps.iter().try_for_each(|step| suite(writer, step))?;
        report.late.iter().try_for_each(|late| handed_in(writer, late, report.score))
    })
}

/// Points are lost, as by what fails.
fn costs(late: &Lateness) -> bool {
    late.points_lost > 0.0
}

fn handed_in(writer: &mut Writer<Vec<u8>>, lateness: &Lateness, score: f64) -> io::Result<()> {
    let failures = u8::from(costs(lateness)).to_string();
    let counts = [("name", HAND_IN), ("tests", "1"), ("failures", &failures), ("errors", "0"), ("skipped", "0")];
    let counts = counts.map(|(name, value)| (name, value.to_string()));
    element(writer, "testsuite", &counts, |writer| {
        let values = [
            ("late_days", lateness.days.to_string()),
            ("late_points_lost", lateness.points_lost.to_string()),
            ("score", score.to_string()),
        ];
        properties(writer, values)?;
        let case = [("name", "handed in in time"), ("classname", HAND_IN), ("time", "0.00")];
        element(writer, "testcase", &case.map(|(name, value)| (name, value.to_string())), |writer| {
            let said = late(lateness);
            if costs(lateness) {
                let why = [("message", said.clone()), ("type", "late".to_string())];
                return element(writer, "failure", &why, |writer| text(writer, &said));
            }
            element(writer, "system-out", &[], |writer| text(writer, &said))
        })
    })
}

fn properties<const N: usize>(writer: &mut Writer<Vec<u8>>, values: [(&str, String); N]) -> io::Result<()> {
    element(writer, "properties", &[], |writer| {
        values.into_iter().try_for_each(|(name, value)| {
            // The schema allows nothing between its tags, not even a line break.
            writer.write_event(Event::Empty(start("property", &[("name", name.to_string()), ("value", value)])))
        })
    })
}

fn suite(writer: &mut Writer<Vec<u8>>, step: &Step) -> io::Result<()> {
    let attributes = [
        ("name", step_name(step)),
        ("tests", step.parts.len().to_string()),
        ("failures", count(step, Case::Failed).to_string()),
        ("errors", "0".to_string()),
        ("skipped", count(step, Case::Skipped).to_string()),
        ("time", format!("{:.2}", step.seconds)),
    ];
    element(writer, "testsuite", &attributes, |writer| {
        let values = [
            ("title", step.title.clone()),
            ("device", step.device.clone()),
            ("points", step.points.to_string()),
            ("max_points", step.max_points.to_string()),
        ];
        properties(writer, values)?;
        step.parts.iter().try_for_each(|part| case(writer, step, part))?;
        match comes_next(step) {
            Some(next) => element(writer, "system-out", &[], |writer| text(writer, &next)),
            None => Ok(()),
        }
    })
}

fn case(writer: &mut Writer<Vec<u8>>, step: &Step, part: &PartReport) -> io::Result<()> {
    // The judge measures a step, not a part: its time stands with the first, so that the sum is right.
    let time = if part.part == Part::Correct { step.seconds } else { 0.0 };
    let attributes = [("name", part.part.to_string()), ("classname", step_name(step)), ("time", format!("{time:.2}"))];
    let explained = |writer: &mut Writer<Vec<u8>>| text(writer, &explanation(step, part));
    element(writer, "testcase", &attributes, |writer| match state(part) {
        Case::Passed => element(writer, "system-out", &[], explained),
        Case::Failed => {
            let message = part.title.as_ref().unwrap_or(&part.text).clone();
            element(writer, "failure", &[("message", message), ("type", part.part.to_string())], explained)
        }
        Case::Skipped => element(writer, "skipped", &[], explained),
    })
}

fn element(
    writer: &mut Writer<Vec<u8>>,
    name: &str,
    attributes: &[(&str, String)],
    inside: impl FnOnce(&mut Writer<Vec<u8>>) -> io::Result<()>,
) -> io::Result<()> {
    writer.write_event(Event::Start(start(name, attributes)))?;
    inside(writer)?;
    writer.write_event(Event::End(BytesEnd::new(name)))
}

fn start<'a>(name: &'a str, attributes: &[(&str, String)]) -> BytesStart<'a> {
    let mut start = BytesStart::new(name);
    for (key, value) in attributes {
        start.push_attribute((*key, allowed(value).as_str()));
    }
    start
}

fn text(writer: &mut Writer<Vec<u8>>, text: &str) -> io::Result<()> {
    writer.write_event(Event::Text(BytesText::new(&allowed(text))))
}

/// XML 1.0 has no way to write most control characters, escaped or not.
fn allowed(text: &str) -> String {
    let fits = |c: char| matches!(c, '\t' | '\n' | '\r') || (c >= ' ' && !matches!(c, '\u{fffe}' | '\u{ffff}'));
    text.chars().map(|c| if fits(c) { c } else { '\u{fffd}' }).collect()
}
