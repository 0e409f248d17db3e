//! What the systems that courses use are sent: each format is read again and held against what its reader documents, by hand-written
//! checks of the structure (fields, types, values, counts), and what a student wrote stays text in all of them.

use grader::formats::{Format, of_report, render};
use grader::json::{self, About, Report};
use grader::rubric::{Moment, Rubric};
use grader::{Grade, Graded};
use harness::{MilestoneResult, MilestoneState, Outcome, Part, Place, Verdict};
use serde_json::Value;
use std::collections::BTreeMap;

/// What a student may write into a kernel's messages: ends of elements, formulas, control characters, an end of a CDATA section.
const HOSTILE: &str =
    "=cmd|'/c calc'!A0 </script><script>alert(1)</script> ]]> & \"quoted\" \u{1b}[31m \u{0} \u{202e} \u{fffe}";

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
        build_failure: None,
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
    let failed = Outcome::Failed {
        title: format!("a race: {HOSTILE}"),
        text: format!(
            "finding[race-shared]: {HOSTILE}\n  --> steps/step01/src/kernel.rs:61:9\n  = try: Fence.\n  TODO 1.2; read: book: proxies and fences (book/src/proxies.md)\n"
        ),
    };
    let unchecked = Outcome::NotChecked { reason: "no ptxas".to_string() };
    let place = Place { file: "steps/step02/src/kernel.rs".to_string(), line: 58, column: 9 };
    let mut grade = Grade {
        steps: vec![
            verdict(1, [passed(), failed, passed(), passed(), passed()], MilestoneState::Done),
            verdict(2, [waits(), waits(), waits(), waits(), waits()], MilestoneState::Open { place }),
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

/// The rules of Jenkins' junit-10.xsd for what is written here: attributes (with those that must be there) and children in order.
fn jenkins(node: roxmltree::Node) {
    let (attributes, required, children): (&[&str], &[&str], &[&str]) = match node.tag_name().name() {
        "testsuites" => (&["name", "time", "tests", "failures", "disabled", "errors"], &[], &["testsuite"]),
        "testsuite" => (
            &[
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
                "version",
            ],
            &["name", "tests", "failures", "errors"],
            &["properties", "testcase", "system-out", "system-err"],
        ),
        "properties" => (&[], &[], &["property"]),
        "property" => (&["name", "value"], &["name", "value"], &[]),
        "testcase" => (
            &["name", "assertions", "time", "classname", "status", "class", "file", "line", "log", "group", "url"],
            &["name"],
            &["skipped", "error", "failure", "system-out", "system-err"],
        ),
        "failure" | "error" => (&["type", "message"], &[], &[]),
        "skipped" | "system-out" => (&[], &[], &[]),
        other => panic!("{other} is not in the schema"),
    };
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
        assert!(!cell.starts_with(['=', '+', '-', '@', '\t', '\r']), "{cell:?}");
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
        About { rubric, handed_in: Some(Moment::parse("2026-12-02T11:00:00Z").expect("a moment")), versions: None };
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
fn a_terminal_is_not_moved_about_by_what_a_student_wrote() {
    colored::control::set_override(false);
    let text = written(Format::Text);
    assert!(text.contains("a race: =cmd"), "{text}");
    let moves: Vec<char> = text.chars().filter(|c| c.is_control() && *c != '\n').collect();
    assert!(moves.is_empty(), "{moves:?} in {text}");
}
