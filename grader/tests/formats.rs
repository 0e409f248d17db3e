//! What the systems that courses use are sent: each format is read again and held against what its reader documents, by hand-written
//! checks of the structure (fields, types, values, counts), and what a student wrote stays text in all of them.

use grader::formats::not_graded::{self, NotGraded};
use grader::formats::{Format, of_report, render};
use grader::json::{self, About, Report};
use grader::rubric::{Moment, Rubric};
use grader::{Grade, Graded};
use harness::{
    Cause, Ending, MilestoneResult, MilestoneState, Outcome, Part, Place, Pointer, Says, Told, Unbuilt, Verdict, Whose,
};
use serde_json::Value;
use std::collections::BTreeMap;
use std::process::Command;

/// What a student may write into a kernel's messages: ends of elements, formulas, control characters, an end of a CDATA section.
const HOSTILE: &str = "=cmd|'/c calc'!A0 ;=1+1; \"@x </script><script>alert(1)</script> ]]> & \"quoted\" \u{1b}[31m \u{0} \u{202e} \u{fffe}";

fn verdict(step: u8, outcomes: [Outcome; 5], first: MilestoneState) -> Graded {
    let mut outcomes = outcomes.into_iter();
    let known = harness::step(step).expect("a step");
    let milestones = known.milestones.iter().enumerate().map(|(index, milestone)| MilestoneResult {
        id: milestone.id.to_string(),
        title: milestone.title.to_string(),
        state: if index == 0 { first.clone() } else { MilestoneState::Done },
    });
    let verdict = Verdict {
        step,
        title: known.title.to_string(),
        device: "emulator".to_string(),
        parts: Part::ALL.map(|part| (part, outcomes.next().expect("five"))),
        milestones: milestones.collect(),
        here: None,
        build_failure: None,
        ending: None,
        points: 0.0,
        max_points: known.points,
        seconds: 1.25,
    };
    Graded { file: Some(format!("{HOSTILE}/step.rs")), verdict }
}

/// Steps 1 to 3: race, open TODO, all right but for what could not be checked.
fn grade() -> Grade {
    let passed = || Outcome::Passed { detail: HOSTILE.to_string() };
    let waits = || Outcome::NotReached { reason: "TODO 2.1 is open".to_string() };
    let read = "book: proxies and fences (book/src/proxies.md)".to_string();
    let text = format!(
        "finding[race-shared]: {HOSTILE}\n  --> steps/step01/src/kernel.rs:61:9\n  = try: Fence.\n  TODO 1.2; read: {read}\n"
    );
    let says = Says {
        code: Some("race-shared".to_string()),
        place: Some(Place { file: "steps/step01/src/kernel.rs".to_string(), line: 61, column: 9 }),
        pointer: Some(Pointer { todo: "1.2".to_string(), read }),
        ..Says::help("Fence.")
    };
    let failed = Outcome::failed(format!("a race: {HOSTILE}"), Told { text, says });
    let unchecked = Outcome::not_checked("no ptxas");
    let place = Place { file: "steps/step02/src/kernel.rs".to_string(), line: 58, column: 9 };
    let mut grade = Grade {
        steps: vec![
            verdict(1, [passed(), failed, passed(), passed(), passed()], MilestoneState::Done),
            verdict(2, [waits(), waits(), waits(), waits(), waits()], MilestoneState::Open { place, there: false }),
            verdict(3, [passed(), passed(), passed(), unchecked, passed()], MilestoneState::Done),
        ],
        allow_unchecked: false,
        seed: Some(7),
    };
    Rubric::default().give_points(&mut grade);
    grade
}

fn report() -> Report {
    json::report(&grade(), &About::default())
}

fn written(format: Format) -> String {
    render(format, &grade(), &report()).expect("written")
}

/// A field's name, and what its value must be.
type Field = (&'static str, fn(&Value) -> bool);

/// The fields of an object, each with what its value must be; no others.
fn fields(value: &Value, expected: &[Field]) {
    let object = value.as_object().unwrap_or_else(|| panic!("an object: {value}"));
    for (name, holds) in expected {
        let found = object.get(*name).unwrap_or_else(|| panic!("no {name:?} in {value}"));
        assert!(holds(found), "{name}: {found}");
    }
    let unknown: Vec<&String> = object.keys().filter(|key| expected.iter().all(|(name, _)| name != key)).collect();
    assert!(unknown.is_empty(), "not documented: {unknown:?}");
}

fn is_text_format(value: &Value) -> bool {
    ["text", "html", "simple_format", "md", "ansi"].iter().any(|allowed| value == allowed)
}
fn is_visibility(value: &Value) -> bool {
    ["hidden", "after_due_date", "after_published", "visible"].iter().any(|allowed| value == allowed)
}

#[test]
fn gradescope_gets_the_documented_results_and_each_part_its_points() {
    let results: Value = serde_json::from_str(&written(Format::Gradescope)).expect("JSON");
    fields(
        &results,
        &[
            ("score", Value::is_f64),
            ("execution_time", Value::is_f64),
            ("output", Value::is_string),
            ("output_format", is_text_format),
            ("test_output_format", is_text_format),
            ("test_name_format", is_text_format),
            ("visibility", is_visibility),
            ("stdout_visibility", is_visibility),
            ("extra_data", Value::is_object),
            ("tests", Value::is_array),
        ],
    );
    let tests = results["tests"].as_array().expect("an array");
    assert_eq!(tests.len(), 15);
    for test in tests {
        let mut test = test.clone();
        let status = test.as_object_mut().expect("an object").remove("status");
        assert!(status.is_none_or(|status| status == "passed" || status == "failed"));
        fields(
            &test,
            &[
                ("score", Value::is_f64),
                ("max_score", Value::is_f64),
                ("name", Value::is_string),
                ("name_format", is_text_format),
                ("number", Value::is_string),
                ("output", Value::is_string),
                ("output_format", |format| format == "text"),
                ("visibility", is_visibility),
                ("tags", |tags| tags.as_array().is_some_and(|tags| tags.iter().all(Value::is_string))),
            ],
        );
    }
    let sum = |field: &str| tests.iter().map(|test| test[field].as_f64().expect("a number")).sum::<f64>();
    assert_eq!(sum("max_score"), 20.0, "5 + 5 + 10");
    assert!((sum("score") - results["score"].as_f64().expect("a number")).abs() < 1e-9);
    assert_eq!(tests[1]["status"], "failed");
    assert_eq!(tests[13].get("status"), None, "what could not be checked is no failure");
    let output = results["output"].as_str().expect("a text");
    for needed in ["TODO 1.2", "steps/step01/src/kernel.rs:61", "book/src/proxies.md", "steps/step02/src/kernel.rs:58"]
    {
        assert!(output.contains(needed), "no {needed}: {output}");
    }
}

#[test]
fn autolab_gets_feedback_and_scores_on_the_last_two_lines() {
    let text = written(Format::Autolab);
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).expect("JSON on one line")).collect();
    let [feedback, scores] = lines.as_slice() else { panic!("two lines: {text}") };
    assert_eq!(feedback["_presentation"], "semantic");
    let stages: Vec<&str> = feedback["stages"].as_array().expect("stages").iter().filter_map(Value::as_str).collect();
    assert_eq!(stages, ["step01", "step02", "step03"]);
    for stage in &stages {
        for (name, test) in feedback[stage].as_object().expect("a stage has an object of its name") {
            let passed = test["passed"].as_bool().unwrap_or_else(|| panic!("{stage} {name}: {test}"));
            assert_eq!(passed, test.get("hint").is_none(), "a hint says what is wrong: {test}");
        }
    }
    assert_eq!(feedback.as_object().expect("an object").len(), 2 + stages.len());
    let scores = scores["scores"].as_object().expect("scores");
    assert_eq!(scores.keys().collect::<Vec<_>>(), stages);
    assert_eq!(scores["step01"], 4.25);
}

/// Autolab would keep an earlier score of a problem without one.
#[test]
fn a_step_that_is_not_handed_in_has_a_score_of_0_and_the_total_says_of_what_it_is() {
    let report = json::report(&grade(), &About { all_steps: true, ..About::default() });
    let text = render(Format::Autolab, &grade(), &report).expect("written");
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).expect("JSON on one line")).collect();
    let scores = lines[1]["scores"].as_object().expect("scores");
    let names: Vec<String> = (1..=10).map(harness::workbook::name).collect();
    assert_eq!(scores.keys().collect::<Vec<_>>(), names.iter().collect::<Vec<_>>());
    assert!(scores["step01"] == 4.25 && scores["step10"] == 0.0, "{scores:?}");
    assert_eq!(lines[0]["stages"].as_array().expect("stages").len(), 10);
    assert_eq!(lines[0]["step10"]["handed in"]["passed"], false);
    let (table, all) = (render(Format::Text, &grade(), &report).expect("written"), Rubric::default().max_points(&[]));
    assert!(
        table.contains("not handed in, with 0 of 80 points: step04 to step10\n")
            && table.contains(&format!("of the whole rubric it is 15 of {all}")),
        "{table}"
    );
    assert!(!written(Format::Text).contains("not handed in"));
    // Two that follow one another are named, more are a range.
    let mut two = report.clone();
    two.not_handed_in.retain(|missing| [4, 5, 7, 9, 10].contains(&missing.step));
    let table = render(Format::Text, &grade(), &two).expect("written");
    assert!(table.contains(" points: step04 and step05, step07, step09 and step10\n"), "{table}");
}

/// The rules of Jenkins' junit-10.xsd: attributes (with those that must be there) and children. Stricter than it in one thing: children
/// stand in one order.
fn jenkins(node: roxmltree::Node) {
    const SUITE: [&str; 14] = [
        "name",
        "tests",
        "failures",
        "errors",
        "group",
        "time",
        "skipped",
        "timestamp",
        "hostname",
        "id",
        "package",
        "file",
        "log",
        "url",
    ];
    let (attributes, required, children): (&[&str], &[&str], &[&str]) = match node.tag_name().name() {
        "testsuites" => (&["name", "time", "tests", "failures", "errors"], &[], &["testsuite"]),
        "testsuite" => (&SUITE, &SUITE[..4], &["properties", "testcase", "system-out", "system-err"]),
        "properties" => (&[], &[], &["property"]),
        "property" => (&["name", "value"], &["name", "value"], &[]),
        "testcase" => (
            &["name", "time", "classname", "group"],
            &["name"],
            &["skipped", "error", "failure", "system-out", "system-err"],
        ),
        "failure" | "error" | "skipped" => (&["type", "message"], &[], &[]),
        "system-out" | "system-err" => (&[], &[], &[]),
        other => panic!("{other} is not in the schema"),
    };
    if let Some(time) = node.attribute("time") {
        assert!(
            time.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.') && time.matches('.').count() < 2,
            "{time}"
        );
    }
    let name = node.tag_name().name();
    for attribute in node.attributes() {
        assert!(attributes.contains(&attribute.name()), "{name} has no {}", attribute.name());
    }
    for attribute in required {
        assert!(node.has_attribute(*attribute), "{name} lacks {attribute}");
    }
    let places: Vec<usize> = node
        .children()
        .filter(roxmltree::Node::is_element)
        .map(|child| {
            let found = child.tag_name().name();
            jenkins(child);
            children.iter().position(|known| *known == found).unwrap_or_else(|| panic!("{found} in {name}"))
        })
        .collect();
    assert!(places.is_sorted(), "children of {name} in the schema's order: {places:?}");
    if name == "property" {
        assert!(!node.has_children(), "a property is empty, without white space");
    }
    if !children.is_empty() {
        let stray =
            node.children().find(|child| child.is_text() && !child.text().unwrap_or_default().trim().is_empty());
        assert_eq!(stray, None, "text in {name}");
    }
}

#[test]
fn junit_follows_the_schema_of_jenkins_and_counts_right() {
    let text = written(Format::Junit);
    let document = roxmltree::Document::parse(&text).unwrap_or_else(|error| panic!("{error}: {text}"));
    let root = document.root_element();
    jenkins(root);
    let number =
        |node: roxmltree::Node, name: &str| node.attribute(name).expect(name).parse::<usize>().expect("a number");
    let cases = |node: roxmltree::Node, with: &str| {
        let has = |case: &roxmltree::Node| with.is_empty() || case.children().any(|child| child.has_tag_name(with));
        node.descendants().filter(|node| node.has_tag_name("testcase")).filter(has).count()
    };
    assert_eq!((number(root, "tests"), number(root, "failures")), (cases(root, ""), cases(root, "failure")));
    for suite in root.children().filter(|node| node.has_tag_name("testsuite")) {
        assert_eq!((number(suite, "tests"), number(suite, "failures")), (cases(suite, ""), cases(suite, "failure")));
        assert_eq!(
            (number(suite, "skipped"), number(suite, "errors")),
            (cases(suite, "skipped"), cases(suite, "error"))
        );
    }
    assert!(root.descendants().all(|node| !node.has_tag_name("script")));
    let failed = |node: &roxmltree::Node| node.children().any(|child| child.has_tag_name("failure"));
    let open = root.descendants().find(|node| node.attribute("classname") == Some("step02")).expect("a case");
    assert!(failed(&open), "an open TODO is not right yet: {text}");
}

#[test]
fn csv_is_a_row_for_each_step_and_no_formula() {
    let text = written(Format::Csv);
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    let rows: Vec<BTreeMap<String, String>> =
        reader.deserialize().collect::<Result<_, _>>().unwrap_or_else(|error| panic!("{error}: {text}"));
    let points: Vec<&str> = rows.iter().map(|row| row["points"].as_str()).collect();
    assert_eq!(points, ["4.25", "1.25", "9.5"]);
    assert_eq!((rows[0]["race-free"].as_str(), rows[2]["resources"].as_str()), ("failed", "not checked"));
    for cell in rows.iter().flat_map(BTreeMap::values) {
        let pieces = cell.split(';').map(|piece| piece.trim_start_matches([' ', '"']));
        assert!(pieces.into_iter().all(|piece| !piece.starts_with(['=', '+', '-', '@'])), "{cell:?}");
        assert!(!cell.chars().any(char::is_control), "{cell:?}");
    }
}

#[test]
fn a_page_needs_nothing_else_and_runs_nothing_of_a_student() {
    let page = written(Format::Html);
    assert!(!page.contains("<script") && page.contains("&lt;script&gt;alert(1)"), "{page}");
    for outside in ["http://", "https://", "src=", "url(", "@import", "<link", "<img", "<iframe"] {
        assert!(!page.contains(outside), "{outside} in {page}");
    }
    assert!(page.contains("default-src 'none'") && page.contains("color-scheme:light dark"));
    for needed in ["TODO 2.1: ", "steps/step02/src/kernel.rs:58", "a loop over K", "Try: Fence.", "4.25 of 5"] {
        assert!(page.contains(needed), "no {needed}: {page}");
    }
}

/// The report says what a kernel names and what happened, in the table, the page, the JSON and the CSV; and nothing where nothing is.
#[test]
fn what_was_refused_or_stopped_is_told_and_costs_nothing() {
    let named = grader::stopped::named("pub fn kernel() { std::net::TcpStream::connect(\"x\"); }");
    let mut grade = grade();
    let plain = json::report(&grade, &About::default());
    let build = "building the kernel for 128 x 128 x 64 took longer than 20 s of CPU time and was ended\ntry: Look.";
    grade.steps[1].verdict.build_failure = Some(Unbuilt::new(Cause::NoAnswer, build));
    grade.steps[1].verdict.ending = Some(Ending::TooLong(Whose::Kernel, "20 s of CPU time".to_string()));
    let report = json::report(&grade, &About { named: BTreeMap::from([(1, named)]), ..About::default() });
    assert_eq!(report.points, plain.points);
    let says = [
        "step01: the kernel names `std::net` (line 1); there is no network where a hand-in runs",
        "step02: the program was ended after 20 s of CPU time; it gets no points",
    ];
    for format in [Format::Text, Format::Html] {
        let written = render(format, &grade, &report).expect("written");
        for says in says {
            assert!(written.contains(says), "{format:?}: no {says}\n{written}");
        }
        let without = render(format, &self::grade(), &plain).expect("written").to_lowercase();
        assert!(!without.contains("refused or stopped"), "{without}");
    }
    let json: Value = serde_json::from_str(&render(Format::Json, &grade, &report).expect("JSON")).expect("JSON");
    assert_eq!(json["steps"][0]["stopped"][0]["what"], "network");
    assert_eq!(
        (&json["steps"][0]["stopped"][0]["line"], &json["steps"][1]["stopped"][0]["what"]),
        (&1.into(), &"time".into())
    );
    assert!(json["steps"][2].get("stopped").is_none());
    let csv = render(Format::Csv, &grade, &report).expect("CSV");
    let rows: Vec<BTreeMap<String, String>> =
        csv::Reader::from_reader(csv.as_bytes()).deserialize().collect::<Result<_, _>>().expect("rows");
    assert!(rows[0]["stopped"].contains("std::net") && rows[2]["stopped"].is_empty(), "{csv}");
}

#[test]
fn a_report_that_was_stored_is_the_same_when_it_is_read_again() {
    let report = report();
    let text = json::render(&report).expect("JSON");
    let again: Report = serde_json::from_str(&text).expect("read again");
    assert_eq!(again, report);
    assert_eq!(of_report(Format::Html, &again), Ok(written(Format::Html)));
}

#[test]
fn a_rubric_changes_points_and_lateness_takes_some_away() {
    let text = "[shares]\ncorrect = 40\nrace-free = 30\nstructure = 10\nresources = 10\nfast = 10\nmilestones = 40\n\
                [late]\ndue = 2026-11-30T12:00:00Z\npoints-per-day = 2.5\nlatest-day = 3\n[steps.step01]\npoints = 20\n";
    let rubric = Rubric::parse("r.toml", text).expect("a rubric");
    let mut grade = grade();
    rubric.give_points(&mut grade);
    let about =
        About { rubric, handed_in: Some(Moment::parse("2026-12-02T11:00:00Z").expect("a moment")), ..About::default() };
    let report = json::report(&grade, &about);
    let points: Vec<f64> = report.steps.iter().map(|step| step.points).collect();
    // 70 % of 20; five of six milestones of 40 % of 5; 90 % of 10.
    assert_eq!(points, [14.0, 1.67, 9.0]);
    assert_eq!((report.points, report.score), (24.67, 19.67));
    assert_eq!(report.late.as_ref().map(|late| late.days), Some(2));
    let said = render(Format::Text, &grade, &report).expect("text");
    assert!(said.contains("day 2 costs 5 points\n      19.67 of 35 points are left"), "{said}");
}

#[test]
fn lateness_stands_in_tables_and_test_reports_too() {
    let late = |handed_in: &str, per_day: &str| {
        let text = format!("[late]\ndue = 2026-11-30T12:00:00Z\npoints-per-day = {per_day}\nlatest-day = 3\n");
        let rubric = Rubric::parse("r.toml", &text).expect("a rubric");
        let handed_in = Some(Moment::parse(handed_in).expect("a moment"));
        json::report(&grade(), &About { rubric, handed_in, ..About::default() })
    };
    let cells = |report: &Report| {
        let text = of_report(Format::Csv, report).expect("written");
        let mut reader = csv::Reader::from_reader(text.as_bytes());
        let rows: Vec<BTreeMap<String, String>> = reader.deserialize().map(|row| row.expect("a row")).collect();
        assert_eq!(rows.len(), 3);
        let cells =
            |row: &BTreeMap<String, String>| ["late_days", "late_points_lost", "score"].map(|name| row[name].clone());
        assert!(rows.iter().all(|row| cells(row) == cells(&rows[0])), "all rows say the same: {text}");
        cells(&rows[0])
    };
    let case = |report: &Report| {
        let text = of_report(Format::Junit, report).expect("written");
        let document = roxmltree::Document::parse(&text).unwrap_or_else(|error| panic!("{error}: {text}"));
        jenkins(document.root_element());
        let failures = document.descendants().filter(|node| node.has_tag_name("failure")).count().to_string();
        assert_eq!(document.root_element().attribute("failures"), Some(failures.as_str()), "{text}");
        let tests = document.descendants().filter(|node| node.has_tag_name("testcase")).count().to_string();
        assert_eq!(document.root_element().attribute("tests"), Some(tests.as_str()), "{text}");
        let case = document.descendants().find(|node| node.attribute("name") == Some("handed in in time"));
        case.map(|case| {
            case.first_element_child()
                .map(|said| (said.tag_name().name().to_string(), said.text().unwrap_or_default().to_string()))
                .expect("it says why")
        })
    };
    let said = |kind: &str, text: &str| Some((kind.to_string(), text.to_string()));
    let report = late("2026-12-02T11:00:00Z", "2.5");
    assert_eq!(cells(&report), ["2", "5", "10"]);
    let text = "late: due 2026-11-30T12:00:00Z, handed in 2026-12-02T11:00:00Z; day 2 costs 5 points";
    assert_eq!(case(&report), said("failure", text));
    let report = late("2026-11-30T12:00:00Z", "2.5");
    assert_eq!(cells(&report), ["0", "0", "15"]);
    assert_eq!(case(&report), said("system-out", "in time: due 2026-11-30T12:00:00Z, handed in 2026-11-30T12:00:00Z"));
    assert_eq!(
        case(&late("2026-12-01T12:00:00Z", "0.0")).expect("a case").0,
        "system-out",
        "late, and it costs nothing"
    );
    assert_eq!(cells(&self::report()), ["", "", "15"]);
    assert_eq!(case(&self::report()), None, "without a due date there is nothing to be late for");
}

#[test]
fn each_format_is_a_whole_document_also_without_a_grade() {
    for (why, child, counts) in [
        (NotGraded::hand_in(format!("{HOSTILE}\n  try: this")), "failure", ("1", "0")),
        (NotGraded::from(format!("{HOSTILE}\n  try: this")), "error", ("0", "1")),
    ] {
        let written = |format| not_graded::render(format, &why, &[1, 2]).expect("written");
        let junit = written(Format::Junit);
        let document = roxmltree::Document::parse(&junit).unwrap_or_else(|error| panic!("{error}: {junit}"));
        jenkins(document.root_element());
        let root = document.root_element();
        assert_eq!((root.attribute("failures"), root.attribute("errors")), (Some(counts.0), Some(counts.1)), "{junit}");
        let found = document.descendants().find(|node| node.has_tag_name(child)).expect("it says why");
        assert!(found.text().is_some_and(|text| text.contains("try: this")), "{junit}");
        let csv = written(Format::Csv);
        let mut reader = csv::Reader::from_reader(csv.as_bytes());
        let columns = reader.headers().expect("a head").clone();
        let graded = of_report(Format::Csv, &report()).expect("written");
        assert_eq!(
            Some(columns.iter().collect::<Vec<_>>().join(",").as_str()),
            graded.lines().next(),
            "the same columns"
        );
        let rows: Vec<BTreeMap<String, String>> = reader.deserialize().map(|row| row.expect("a row")).collect();
        let [row] = rows.as_slice() else { panic!("one row: {csv}") };
        assert_eq!((row["title"].as_str(), row["points"].as_str(), row["score"].as_str()), ("not graded", "", ""));
        assert!(row["next"].contains("try: this"), "{csv}");
        let page = written(Format::Html);
        assert!(
            page.starts_with("<!DOCTYPE html>")
                && page.contains("It could not be graded.")
                && page.contains("try: this")
        );
        assert!(!page.contains("<script"), "{page}");
        for text in [junit, csv, page] {
            assert!(!text.chars().any(|c| c.is_control() && c != '\n' || c == '\u{202e}'), "{text}");
        }
    }
    // The command writes them, too.
    let mut command = Command::new(env!("CARGO_BIN_EXE_grader"));
    let ended = command.args(["grade", "/no/such/folder", "--format", "junit"]).output().expect("started");
    let text = String::from_utf8_lossy(&ended.stdout).into_owned();
    jenkins(roxmltree::Document::parse(&text).unwrap_or_else(|error| panic!("{error}: {text}")).root_element());
    assert!(ended.status.code() == Some(2) && text.contains("/no/such/folder does not exist"), "{text}");
}

#[test]
fn a_terminal_is_not_moved_about_by_what_a_student_wrote() {
    colored::control::set_override(false);
    let text = written(Format::Text);
    assert!(text.contains("a race: =cmd"), "{text}");
    for text in [text, written(Format::Html), written(Format::Junit), written(Format::Csv)] {
        let hidden =
            |c: &char| (c.is_control() && *c != '\n') || matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}');
        let moves: Vec<char> = text.chars().filter(hidden).collect();
        assert!(moves.is_empty(), "{moves:?} in {text}");
    }
}
