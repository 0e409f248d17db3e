//! A verdict, for a human: reads as well without colour.

use crate::points;
use crate::steps::hopper::HOPPER;
use crate::verdict::{MilestoneResult, MilestoneState, Outcome, Part, Verdict};
use colored::Colorize;
use std::fmt::Write;

fn subject(step: u8) -> String {
    if step == HOPPER { "the kernel for Hopper".to_string() } else { format!("step {step}") }
}

/// The whole verdict: parts, milestones, explanations, points. Coloured as `colored` is set (a terminal, `NO_COLOR`).
pub fn render(verdict: &Verdict) -> String {
    let mut text = String::new();
    // Writing to a string does not fail.
    let _ = writeln!(text, "{}", format!("{}: {}", subject(verdict.step), verdict.title).bold());
    for (part, outcome) in &verdict.parts {
        let _ = writeln!(text, "  {} {}", format!("{part:<10}").bold(), line(outcome));
    }
    if !verdict.passed() && !verdict.milestones.is_empty() {
        let _ = writeln!(text, "  milestones:");
        for milestone in &verdict.milestones {
            let state = match &milestone.state {
                MilestoneState::Done => "done".green(),
                MilestoneState::Flagged { part } => format!("works here; see {part}").yellow(),
                MilestoneState::Open { .. } => "open".yellow(),
                MilestoneState::Wrong { .. } => "wrong".red(),
                MilestoneState::WaitsFor { id } => format!("waits for {id}").dimmed(),
                MilestoneState::NotReached { .. } => "not reached".dimmed(),
            };
            let _ = writeln!(text, "    {} {}: {state}", milestone.id, milestone.title);
        }
    }
    if let Some(todo) = next_todo(verdict) {
        let _ = write!(text, "\n{todo}");
    }
    for (part, outcome) in &verdict.parts {
        if let Outcome::Failed { text: explanation, .. } = outcome {
            let _ = write!(text, "\n{}\n{}", format!("{part}:").bold(), paint(explanation));
        }
    }
    if verdict.next_todo().is_none() {
        // What no part explains, the milestone does. What comes behind one that a part explains follows from that.
        for milestone in &verdict.milestones {
            let MilestoneState::Wrong { text: explanation, .. } = &milestone.state else { continue };
            if verdict.part_that_says(explanation).is_some() {
                break;
            }
            if !explanation.is_empty() {
                let _ = write!(text, "\n{}\n{}", format!("{}:", milestone.id).bold(), paint(explanation));
            }
        }
    }
    let how = format!("({}, {:.1} s)", verdict.device, verdict.seconds);
    let _ = match verdict.max_points {
        0 => writeln!(text, "\n{how}"),
        of => writeln!(text, "\n{} of {of} points {how}", number(verdict.points)),
    };
    text
}

/// A part's outcome in one line.
pub fn line(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Passed { detail } => format!("{}       {detail}", "passed".green()),
        Outcome::Failed { title, .. } => format!("{}       {title}", "FAILED".red().bold()),
        Outcome::NotChecked { reason, .. } => format!("{}  {reason}", "not checked".yellow()),
        Outcome::NotReached { reason } => format!("{}  {reason}", "not reached".dimmed()),
    }
}

/// What comes next, where, and what to read; `None` when no TODO is open. What is wrong comes before what is open.
pub fn next_todo(verdict: &Verdict) -> Option<String> {
    let (milestone, place) = verdict.next_todo()?;
    if let Some(MilestoneResult { id, state: MilestoneState::Wrong { text, .. }, .. }) = verdict.first_undone() {
        return wrong_todo(verdict, id, text);
    }
    let known = crate::step(verdict.step)?.milestones.iter().find(|known| known.id == milestone.id)?;
    let done = verdict.milestones.iter().filter(|milestone| milestone.state == MilestoneState::Done).count();
    let mut text = match done {
        0 => format!("TODO {} comes first: {}\n", milestone.id, known.title),
        _ => format!("TODO {} comes next: {}\n", milestone.id, known.title),
    };
    let _ = writeln!(text, "  --> {place}");
    let there = matches!(milestone.state, MilestoneState::Open { there: true, .. });
    let task = if there { "Its effect is there: delete this line, which marks it as open." } else { known.task };
    let _ = writeln!(text, "  do:   {task}");
    let _ = writeln!(text, "  read: {}", known.read);
    Some(paint(&text))
}

/// What is wrong with a TODO that is no longer open: its title, the explanation, what to read.
pub fn wrong_todo(verdict: &Verdict, id: &str, explanation: &str) -> Option<String> {
    let known = crate::step(verdict.step)?.milestones.iter().find(|known| known.id == id)?;
    let head = paint(&format!("TODO {id} is not right yet: {}\n", known.title));
    Some(format!("{head}{}  read: {}\n", paint(explanation), known.read))
}

/// Colours an explanation: heads, gutters, what to try. Without colour it is the text itself.
pub fn paint(text: &str) -> String {
    let mut painted = String::new();
    for line in text.lines() {
        let start = line.trim_start();
        let line = match start {
            _ if starts(line, "error") || starts(line, "finding") => line.red().bold().to_string(),
            _ if starts(line, "note") || line.starts_with("TODO ") => line.yellow().bold().to_string(),
            _ if start.starts_with("--> ") || start.starts_with("::: ") => line.blue().to_string(),
            _ if start.starts_with("= try") || start.starts_with("try:") || start.starts_with("do:   ") => {
                line.cyan().to_string()
            }
            _ if start.starts_with("| ") && start.contains(['^', '-']) => line.blue().to_string(),
            _ => line.to_string(),
        };
        painted.push_str(&line);
        painted.push('\n');
    }
    painted
}

/// Whether a line is the head of a diagnostic: `error: …`, `finding[code]: …`.
fn starts(line: &str, word: &str) -> bool {
    line.strip_prefix(word).is_some_and(|rest| rest.starts_with([':', '[']))
}

/// Points without needless decimals.
pub fn number(points: f64) -> String {
    let text = format!("{points:.2}");
    text.trim_end_matches('0').trim_end_matches('.').to_string()
}

/// What each part is worth, for tables.
pub fn worth(part: Part, max_points: u32) -> f64 {
    f64::from(points::share(part)) / 100.0 * f64::from(max_points)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::Place;
    use expect_test::expect;

    fn verdict(correct: Outcome, states: [MilestoneState; 2]) -> Verdict {
        let later = || Outcome::NotReached { reason: "`correct` comes first".to_string() };
        let ids = ["1.1", "1.2"].into_iter().zip(["A and B arrive", "the stores are fenced"]).zip(states);
        Verdict {
            step: 1,
            title: "one tile".to_string(),
            device: "emulator".to_string(),
            parts: [
                (Part::Correct, correct),
                (Part::RaceFree, later()),
                (Part::Structure, later()),
                (Part::Resources, Outcome::not_checked("no ptxas")),
                (Part::Fast, Outcome::Passed { detail: "1.00 times".to_string() }),
            ],
            milestones: ids
                .map(|((id, title), state)| MilestoneResult { id: id.to_string(), title: title.to_string(), state })
                .collect(),
            build_failure: None,
            ending: None,
            here: None,
            points: 0.75,
            max_points: 5,
            seconds: 0.25,
        }
    }

    #[test]
    fn a_failed_verdict() {
        colored::control::set_override(false);
        let text = "row 5 of D was never written.\n  D[5][0]: expected 1, found never written\n".to_string();
        let failed = Outcome::failed("row 5 of D was never written", text);
        let wrong = MilestoneState::from(crate::told::Told::default());
        expect![[r#"
            step 1: one tile
              correct    FAILED       row 5 of D was never written
              race-free  not reached  `correct` comes first
              structure  not reached  `correct` comes first
              resources  not checked  no ptxas
              fast       passed       1.00 times
              milestones:
                1.1 A and B arrive: done
                1.2 the stores are fenced: wrong

            correct:
            row 5 of D was never written.
              D[5][0]: expected 1, found never written

            0.75 of 5 points (emulator, 0.2 s)
        "#]]
        .assert_eq(&render(&verdict(failed, [MilestoneState::Done, wrong])));
    }

    #[test]
    fn a_half_done_verdict() {
        colored::control::set_override(false);
        let place = Place { file: "steps/k.rs".to_string(), line: 7, column: 5 };
        let open = MilestoneState::Open { place, there: false };
        let waits = Outcome::NotReached { reason: "TODO 1.2 is open".to_string() };
        expect![[r#"
            step 1: one tile
              correct    not reached  TODO 1.2 is open
              race-free  not reached  `correct` comes first
              structure  not reached  `correct` comes first
              resources  not checked  no ptxas
              fast       passed       1.00 times
              milestones:
                1.1 A and B arrive: done
                1.2 the stores are fenced: open

            TODO 1.2 comes next: the tensor core may see what the threads stored
              --> steps/k.rs:7
              do:   After the stores let the tensor core's path to memory see what each thread stored, then let all threads meet.
              read: book: proxies and fences (book/src/proxies.md)

            0.75 of 5 points (emulator, 0.2 s)
        "#]]
        .assert_eq(&render(&verdict(waits, [MilestoneState::Done, open])));
    }

    #[test]
    fn colour_adds_nothing_to_the_words() {
        let text =
            "error: it is wrong\n --> k.rs:4:7\n  |\n4 |     t.mma(d, a, b);\n  |       ^^^ here\n  = try: this\n";
        colored::control::set_override(false);
        assert_eq!(paint(text), text);
    }

    #[test]
    fn points_are_written_short() {
        assert_eq!([5.0, 4.25, 0.0, 1.5].map(number), ["5", "4.25", "0", "1.5"]);
    }
}
