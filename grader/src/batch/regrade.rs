//! Grades a hand-in of a batch again, as it was graded then, and says whether the same comes out.

use super::child::Grader;
use super::store::{Outcome, Record, Store};
use super::{hand_ins, options, seed};
use crate::json::{Report, Sandbox, Step, render, visible};
use crate::versions::Versions;
use harness::{Cause, Part};
use similar::TextDiff;
use std::fmt::Write;
use std::path::Path;
use std::time::Duration;

/// The fewest digits that name a hash.
const DIGITS: usize = 8;

/// Grades it again. `hash` is the hand-in's, or how it begins. Gives what to print, and whether all is as it was.
///
/// # Errors
/// When there is no such hand-in, or what it was graded with is gone.
pub fn regrade(
    folder: &Path,
    hash: &str,
    program: &Path,
    limit: Duration,
    here: &Versions,
) -> Result<(String, bool), String> {
    let store = Store::existing(folder)?;
    let (mut text, mut same) = (String::new(), true);
    for record in records(&store, hash)? {
        options::allowed(&record.asked.options, here.grade_with.is_some())?;
        let Some(path) = store.kept_hand_in(&record.hand_in) else {
            let what = format!("{} was not kept: it could not be taken from the start", record.name);
            return Err(format!("{what}\n  try: Look at why it has no grade: its result says it."));
        };
        let path = hand_ins::unchanged(path, &record.hand_in)?;
        let rubric = store.kept_rubric(&record.rubric);
        if !rubric.is_file() {
            return Err(format!("{} is gone: by it {} was graded", rubric.display(), record.name));
        }
        let (seed, secret) = seed_of(&store, &record)?;
        let grader = Grader { program: program.to_path_buf(), rubric, seed, secret, limit, verdicts: None };
        let again = grader.grade(&path, &record.name, &record.asked);
        let difference = difference(&record.outcome, &again)?;
        let verdict = if difference.is_empty() { "identical" } else { "DIFFERENT" };
        // Writing to a string does not fail.
        let _ = writeln!(text, "{}: {verdict}", record.name);
        // They say why a grade may differ, and are no difference.
        for other in record.versions.others(here) {
            let _ = writeln!(text, "note: {other}");
        }
        if let (Outcome::Graded(then), Outcome::Graded(now)) = (&record.outcome, &again) {
            for other in Sandbox::others(then.sandbox.as_ref(), now.sandbox.as_ref()) {
                let _ = writeln!(text, "note: {other}");
            }
        }
        text += &difference;
        same &= difference.is_empty();
    }
    Ok((text, same))
}

/// The seed of a grade, and whether it was a secret one: then its words were taken out of what is stored.
fn seed_of(store: &Store, record: &Record) -> Result<(u64, bool), String> {
    let (seed, Some(commitment)) = (record.seed, &record.seed_commitment) else {
        let none = || format!("the result of {} names no seed", record.name);
        return record.seed.map(|seed| (seed, false)).ok_or_else(none);
    };
    let kept = seed::kept(store);
    match (&kept, seed) {
        (Ok(kept), Some(seed)) if kept.commitment() == *commitment && kept.seed != seed => Err(format!(
            "the result of {} names the seed {seed}, and its commitment is to another one: somebody has changed the result",
            record.name
        )),
        // Whoever has the results alone can grade them again.
        (_, Some(seed)) => Ok((seed, true)),
        (Ok(kept), None) if kept.commitment() != *commitment => Err(format!(
            "{} was graded with another secret seed than {} keeps: its commitment is {commitment}",
            record.name,
            store.folder.display()
        )),
        (Ok(kept), None) => Ok((kept.seed, true)),
        (Err(error), None) => Err(error.clone()),
    }
}

fn records(store: &Store, hash: &str) -> Result<Vec<Record>, String> {
    let wanted = hash.to_ascii_lowercase();
    if wanted.len() < DIGITS || !wanted.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Err(format!(
            "{hash:?} is no hash\n  try: Give at least {DIGITS} of the 64 hexadecimal digits of `hand_in` in results/*.json."
        ));
    }
    let (mut found, mut others): (Vec<Record>, Vec<(String, String)>) = (Vec::new(), Vec::new());
    let mut unread: Vec<String> = Vec::new();
    for id in store.ids()? {
        match store.result(&id) {
            Ok(Some(record)) if record.hand_in.starts_with(&wanted) => found.push(record),
            Ok(Some(record)) => others.push((record.hand_in, record.name)),
            Ok(None) => {}
            // Another hand-in's may stand in nobody's way; it may be this one's, too.
            Err(error) => unread.push(error),
        }
    }
    match found.first() {
        None if !unread.is_empty() => Err(super::unread(&unread)),
        None => {
            Err(format!("no result in {} is of a hand-in {hash}\n  {}", store.folder.display(), near(&wanted, others)))
        }
        Some(first) if found.iter().any(|record| record.hand_in != first.hand_in) => {
            let names: Vec<String> =
                found.iter().map(|record| format!("{} ({})", record.hand_in, record.name)).collect();
            Err(format!("{hash} begins several hashes\n  try: Give more digits of one: {}.", names.join(", ")))
        }
        Some(_) => Ok(found),
    }
}

/// What is there instead: the hashes that are nearest.
fn near(wanted: &str, mut others: Vec<(String, String)>) -> String {
    const SHOWN: usize = 5;
    const SHORT: usize = 12;
    if others.is_empty() {
        return "try: Grade something first: the folder has no result.".to_string();
    }
    let same = |hash: &str| wanted.bytes().zip(hash.bytes()).filter(|(a, b)| a == b).count();
    let begins = |hash: &str| wanted.bytes().zip(hash.bytes()).take_while(|(a, b)| a == b).count();
    others
        .sort_by_cached_key(|(hash, name)| (std::cmp::Reverse((begins(hash), same(hash))), name.clone(), hash.clone()));
    let shown =
        others.iter().take(SHOWN).map(|(hash, name)| format!("\n    {} ({name})", hash.get(..SHORT).unwrap_or(hash)));
    let more = others.len().saturating_sub(SHOWN);
    let more = if more == 0 { String::new() } else { format!("\n    and {more} more, `hand_in` in results/*.json") };
    format!("try: Give digits of one that is there:{}{more}", shown.collect::<String>())
}

/// Line by line; empty when it is the same.
fn difference(then: &Outcome, now: &Outcome) -> Result<String, String> {
    let (then, now) = (text(then)?, text(now)?);
    if then == now {
        return Ok(String::new());
    }
    let diff = TextDiff::from_lines(&then, &now);
    Ok(visible(&diff.unified_diff().context_radius(2).header("the stored grade", "the grade now").to_string()))
}

/// A grade without what no two runs have in common: times, and what is compared beside it, versions and sandbox.
fn text(outcome: &Outcome) -> Result<String, String> {
    match outcome {
        Outcome::Graded(report) => {
            let mut report = Report::clone(report);
            report.versions = None;
            report.sandbox = None;
            // It stands in the result, and is what both were graded with.
            report.seed = None;
            // It follows from the rubric and from what was asked, and earlier graders did not say it.
            report.not_handed_in.clear();
            report.steps.iter_mut().for_each(without_chance);
            report.steps.iter_mut().for_each(|step| step.seconds = 0.0);
            // It is no part of the grade, and earlier graders did not say it.
            report.steps.iter_mut().for_each(|step| step.stopped.clear());
            render(&report).map(|text| without_addresses(&text))
        }
        Outcome::NotGraded { reason, .. } => Ok(without_addresses(&format!("not graded: {reason}\n"))),
    }
}

/// A step whose kernel is another each time it is built: that it is so is the verdict, and what was drawn is another each time.
fn without_chance(step: &mut Step) {
    if step.no_kernel != Some(Cause::AnotherEachTime) {
        return;
    }
    let drawn = "another each time";
    step.build_failure = Some(drawn.to_string());
    step.next = None;
    for part in step.parts.iter_mut().filter(|part| part.part == Part::Correct) {
        (part.title, part.place, part.text) = (None, None, drawn.to_string());
    }
}

/// A text in which one address of memory is as good as another: where a process lies is drawn each time, and a hand-in may print it.
fn without_addresses(text: &str) -> String {
    // Addresses have more digits; a shorter number may be a grade's.
    const DIGITS: usize = 8;
    let mut parts = text.split("0x");
    let mut out = parts.next().unwrap_or_default().to_string();
    for part in parts {
        let digits = part.bytes().take_while(u8::is_ascii_hexdigit).count();
        let ends = !part[digits..].starts_with(|next: char| next.is_alphanumeric() || next == '_');
        out += "0x";
        out += if digits >= DIGITS && ends { "(address)" } else { &part[..digits] };
        out += &part[digits..];
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_kernel_of_chance_the_verdict_counts_and_not_what_was_drawn() {
        let step = |cause: Option<Cause>, failure: &str, points: f64| -> Step {
            let correct = serde_json::json!({"part": "correct", "outcome": "failed", "title": failure, "text": failure, "points": points,
                "max_points": 2.5});
            let step = serde_json::json!({"step": 1, "title": "one tile", "file": null, "device": "emulator", "passed": false,
                "points": points, "max_points": 5, "build_failure": failure, "no_kernel": cause, "next": null, "parts": [correct], "milestones": [], "seconds": 0});
            serde_json::from_value(step).unwrap()
        };
        let mended = |mut step: Step| {
            without_chance(&mut step);
            step
        };
        let drawn = |what: &str| step(Some(Cause::AnotherEachTime), what, 0.0);
        assert_eq!(mended(drawn("`0` became `1`")), mended(drawn("`1` became `0`")));
        let panicked = |what: &str| step(Some(Cause::Panicked), what, 0.0);
        // What a kernel may say of itself.
        for words in ["it panicked", "the kernel is another each time it is built"] {
            assert_ne!(mended(panicked(&format!("{words}: 0"))), mended(panicked(&format!("{words}: 1"))));
        }
        assert_ne!(mended(drawn("a")), mended(Step { points: 1.0, ..drawn("a") }));
        // A grade of an earlier grader, which did not say why: it is read, and each word counts.
        assert_ne!(mended(step(None, "a", 0.0)), mended(step(None, "b", 0.0)));
    }

    #[test]
    fn a_difference_moves_no_cursor() {
        let outcome = |reason: &str| Outcome::not_graded(reason.to_string());
        let shown = difference(&outcome("a"), &outcome("a \u{1b}[2J\u{9b}2J \u{202e}b\n\tü")).unwrap();
        assert!(shown.ends_with("-not graded: a\n+not graded: a \\u001b[2J\\u009b2J \\u202eb\n+\tü\n"), "{shown}");
    }

    #[test]
    fn only_addresses_are_as_good_as_another() {
        let same = |a: &str, b: &str| without_addresses(a) == without_addresses(b);
        assert!(same("panicked: 0x7ffd1a2b3c4d, 0x7ffd1a2b3c4e", "panicked: 0x56aa1a2b3c40, 0x56aa1a2b3c40"));
        for (a, b) in [
            ("0x1234567", "0x1234568"),
            ("D is 12345678901", "D is 12345678902"),
            ("x 0x", "x 0x1"),
            ("0x12345678_u", "0x12345679_u"),
        ] {
            assert!(!same(a, b), "{a}");
        }
        assert_eq!(without_addresses("0x 0x1 ü0xü"), "0x 0x1 ü0xü");
    }
}
