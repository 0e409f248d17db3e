//! A grade as one web page that needs nothing else: no script, no font, no other file. It follows the reader's dark mode.

use super::{explanation, shown, step_name};
use crate::json::{Report, State, Step};
use maud::{DOCTYPE, Markup, PreEscaped, html};

/// The style of all pages. Colour never says anything alone.
const STYLE: &str = "\
:root{color-scheme:light dark;--line:#8886;--good:#1a7f37;--bad:#c62828;--open:#9a6700;--soft:#8881}\
@media(prefers-color-scheme:dark){:root{--good:#5cc274;--bad:#ff8a80;--open:#e3b341}}\
body{font:16px/1.5 system-ui,sans-serif;max-width:72rem;margin:2rem auto;padding:0 1rem}\
table{border-collapse:collapse;margin:1rem 0}th,td{padding:.25rem .75rem;border-bottom:1px solid var(--line);text-align:left}\
td.number,th.number{text-align:right;font-variant-numeric:tabular-nums}\
pre{background:var(--soft);padding:.75rem;overflow-x:auto;font-size:14px;line-height:1.35}\
.passed{color:var(--good)}.failed{color:var(--bad)}.not-checked,.not-reached{color:var(--open)}\
.next{border-left:4px solid var(--open);padding:.1rem 1rem;margin:1rem 0}\
summary{cursor:pointer}footer{margin-top:3rem;font-size:14px;opacity:.8}.bar{display:inline-block;height:.8em;background:currentColor;opacity:.6}";

/// A page. A browser is told that nothing but the page's own style may be loaded or run.
pub(crate) fn document(title: &str, body: &Markup) -> String {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'";
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { (title) }
                style { (PreEscaped(STYLE)) }
            }
            body { (body) }
        }
    };
    page.into_string() + "\n"
}

/// The page of a grade. `of`: whose it is, and what all steps of the course can give, also those that were not handed in.
pub(crate) fn page(report: &Report, of: Option<(&str, u32)>) -> String {
    let report = &shown(report);
    let name = of.map(|(name, _)| name);
    let title = name.map_or("Grade".to_string(), |name| format!("Grade of {name}"));
    let missing: u32 = report.not_handed_in.iter().map(|missing| missing.max_points).sum();
    let all = of.map_or(report.max_points + missing, |(_, all)| all);
    let body = html! {
        h1 { (title) }
        p {
            strong { (report.score) " of " (all) " points" }
            @if all != report.max_points {
                ", of which the steps that were handed in can give " (report.max_points)
            }
        }
        @if let Some(late) = &report.late {
            p {
                "Due " (late.due) ", handed in " (late.handed_in) "."
                @if late.days > 0 { " Day " (late.days) " after that costs " (late.points_lost) " points." }
            }
        }
        (overview(report))
        (stopped(report))
        @for step in &report.steps { (section(step)) }
        footer {
            "Rubric " code { (report.rubric) }
            @if let Some(versions) = &report.versions {
                "; workbook " (versions.workbook) "; grader " code { (versions.grader) }
                @if let Some(rustc) = &versions.rustc { "; " (rustc) }
                @if let Some(ptxas) = &versions.ptxas { "; ptxas: " (ptxas) }
            }
        }
    };
    document(&title, &body)
}

/// The page of a hand-in without a grade, and whose it is.
pub(crate) fn not_graded(name: Option<&str>, reason: &str) -> String {
    let title = name.map_or("Grade".to_string(), |name| format!("Grade of {name}"));
    let body = html! {
        h1 { (title) }
        p { strong class="failed" { "It could not be graded." } }
        pre { (reason) }
    };
    document(&title, &body)
}

/// What was refused or ended, of all steps; nothing where nothing was.
fn stopped(report: &Report) -> Markup {
    let all: Vec<_> = report.stopped().collect();
    html! {
        @if !all.is_empty() {
            section id="stopped" {
                h2 { "Refused or stopped" }
                p { (STOPPED) }
                ul { @for (step, one) in all { li { strong { (one.what.words()) } ", " (one.of_step(step)) } } }
            }
        }
    }
}

/// What the section says, and what it does not.
pub(crate) const STOPPED: &str =
    "What happened, and what stands in the text. Why it does is not said here, and no points depend on it.";

fn class(state: State) -> &'static str {
    match state {
        State::Passed => "passed",
        State::Failed => "failed",
        State::NotChecked => "not-checked",
        State::NotReached => "not-reached",
    }
}

fn overview(report: &Report) -> Markup {
    html! {
        table {
            thead {
                tr {
                    th { "step" }
                    th {}
                    @for part in harness::Part::ALL { th { (part) } }
                    th class="number" { "points" }
                }
            }
            tbody {
                @for step in &report.steps {
                    tr {
                        td { a href=(format!("#{}", step_name(step))) { (step_name(step)) } }
                        td { (step.title) }
                        @for part in &step.parts { td class=(class(part.outcome)) { (part.outcome.words()) } }
                        td class="number" { (step.points) " of " (step.max_points) }
                    }
                }
            }
        }
    }
}

fn section(step: &Step) -> Markup {
    html! {
        section id=(step_name(step)) {
            h2 { (step_name(step)) ": " (step.title) }
            @if let Some(next) = &step.next {
                div class="next" {
                    h3 { "What comes next" }
                    p {
                        @if let Some(todo) = &next.todo { "TODO " (todo) ": " }
                        strong { (next.title) }
                    }
                    @if let Some(place) = &next.place { p { "At " code { (place) } } }
                    @if let Some(task) = &next.task { p { "Try: " (task) } }
                    @if let Some(read) = &next.read {
                        p { "Read: " em { (read) } @if let Some(page) = &next.page { ", " code { (page) } } }
                    }
                }
            }
            @for part in &step.parts {
                details {
                    summary {
                        strong { (part.part) } ": "
                        span class=(class(part.outcome)) { (part.outcome.words()) }
                        @if let Some(title) = &part.title { ", " (title) }
                        " (" (part.points) " of " (part.max_points) " points)"
                    }
                    pre { (explanation(step, part)) }
                }
            }
            p { "Judged on: " (step.device) ", in " (step.seconds) " s." }
        }
    }
}
