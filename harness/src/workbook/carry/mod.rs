//! `carry`: the student's own finished code of one step into the untouched TODOs of a later one.
//!
//! The table in [`relation`] says what follows from what; [`body`] finds what the student wrote. Nothing that stands in
//! the later file is written over, and what cannot be carried is listed with the reason.

mod body;
mod items;
pub(crate) mod relation;

use super::files::{keep, read_kernel};
use super::tokens::{code, tokens};
use super::whole::write_whole;
use super::workspace::{Workspace, name};
use body::{Body, Todo, bodies, todos};
use items::Item;
use relation::{How, Relation};
use std::collections::BTreeMap;
use std::fmt::Write;

/// The TODO whose code stands on a line of a student's file, from 0, if the file can be held against the untouched one.
pub(crate) fn todo_of_line(untouched: &str, file: &str, line: usize) -> Option<String> {
    let holds = |body: &Body| (body.begin..body.begin + body.lines.len()).contains(&line);
    let found = bodies(untouched, file).into_iter().find(|(_, body)| body.as_ref().is_ok_and(holds));
    found.map(|(id, _)| id)
}

/// Whether a student's file has more code at a TODO than the call that marks it as open.
pub(crate) fn holds_code(untouched: &str, file: &str, id: &str) -> bool {
    // `k.todo("1.2");`
    const CALL: usize = 7;
    let open = todos(untouched).into_iter().find(|todo| todo.id == id);
    let body = bodies(untouched, file).remove(id).and_then(Result::ok);
    open.zip(body).is_some_and(|(todo, body)| body.is_open(&todo) && code(&body.lines.join("\n")).len() > CALL)
}

/// What became of a TODO of the later step.
enum Outcome {
    /// It holds the student's code of these TODOs.
    Filled { relation: Relation, lines: Vec<String> },
    /// The student's code of these TODOs stands above it, as a comment.
    Commented { relation: Relation, lines: Vec<String> },
    /// The student has written something there.
    Written,
    /// It stays as it is.
    Open { reason: String, way_out: String },
}

/// Carries what can be carried. Gives what to tell the user.
///
/// # Errors
/// When a file cannot be read or written; the student's file is then as it was.
pub fn carry(workspace: &Workspace, from: u8, to: u8, as_comments: bool) -> Result<String, String> {
    if from >= to {
        return Err(format!(
            "cannot carry from {} to {}: code is carried from a step to a later one\n  try: `cargo workbook carry {} {}`.",
            name(from),
            name(to),
            from.min(to),
            if from == to { to.saturating_add(1) } else { from.max(to) }
        ));
    }
    let table = workspace.relations()?;
    let (untouched, file) = (workspace.skeleton(from)?, read_kernel(workspace, from)?);
    let (target_untouched, target) = (workspace.skeleton(to)?, read_kernel(workspace, to)?);
    let step = Earlier { number: from, todos: todos(&untouched), bodies: bodies(&untouched, &file) };
    let there = items::items(&target);
    let known = |item: &Item| there.iter().any(|other| other.is_the_same_as(item));
    let missing: Vec<Item> = items::added(&untouched, &file).into_iter().filter(|item| !known(item)).collect();
    let there: Vec<String> = there.into_iter().filter(|item| !item.name.is_empty()).map(|item| item.title).collect();

    let places = bodies(&target_untouched, &target);
    let mut edits: Vec<(Body, Vec<String>)> = Vec::new();
    let mut outcomes: Vec<(Todo, Outcome)> = Vec::new();
    for todo in todos(&target_untouched) {
        let place = places.get(&todo.id);
        let outcome = match place {
            Some(Ok(place)) if place.is_untouched(&todo) => {
                let indent = &place.lines[0][..place.lines[0].len() - place.lines[0].trim_start().len()];
                let relation = table.iter().find(|relation| relation.to == todo.id && step.has(relation));
                let outcome = step.outcome(&todo, relation, indent, as_comments);
                match &outcome {
                    Outcome::Filled { lines, .. } => edits.push((place.clone(), lines.clone())),
                    Outcome::Commented { lines, .. } => {
                        let mut both = lines.clone();
                        both.extend(place.lines.iter().cloned());
                        edits.push((place.clone(), both));
                    }
                    Outcome::Written | Outcome::Open { .. } => {}
                }
                outcome
            }
            Some(Err(reason)) => Outcome::Open {
                reason: format!("in {}, {reason}", Workspace::kernel(to)),
                way_out: "Then give this command again.".to_string(),
            },
            Some(Ok(_)) | None => Outcome::Written,
        };
        outcomes.push((todo, outcome));
    }
    let mut kept = None;
    if !edits.is_empty() {
        kept = Some(keep(workspace, to, target.as_bytes())?);
        write_whole(&workspace.root.join(Workspace::kernel(to)), apply(&target, &edits).as_bytes())
            .map_err(|error| format!("cannot write {}: {error}; it is as it was", Workspace::kernel(to)))?;
    }
    Ok(tell([from, to], &outcomes, &missing, &there, kept.as_deref()))
}

/// The step that code is carried from.
struct Earlier {
    number: u8,
    todos: Vec<Todo>,
    bodies: BTreeMap<String, Result<Body, String>>,
}

impl Earlier {
    fn has(&self, relation: &Relation) -> bool {
        !relation.from.is_empty() && relation.from.iter().all(|id| self.todos.iter().any(|todo| todo.id == *id))
    }

    fn outcome(&self, todo: &Todo, relation: Option<&Relation>, indent: &str, as_comments: bool) -> Outcome {
        let open = |reason: String, way_out: &str| Outcome::Open { reason, way_out: way_out.to_string() };
        let Some(relation) = relation else {
            return open(format!("step {} has no code that fits as it is: {}", self.number, short(&todo.task())), "");
        };
        let mut lines = Vec::new();
        for id in &relation.from {
            match self.finished(id) {
                Ok(body) => lines.extend(indented(&body.lines, indent)),
                Err((reason, way_out)) => {
                    let from = list(&relation.from);
                    return open(format!("it follows from {from}\n        {reason}"), way_out);
                }
            }
        }
        let relation = relation.clone();
        if relation.how != How::Changed {
            return Outcome::Filled { relation, lines };
        }
        if as_comments {
            let lines = commented(&lines, indent, &relation);
            return Outcome::Commented { relation, lines };
        }
        open(format!("it is like {}, and not the same", list(&relation.from)), AS_COMMENTS)
    }

    /// The student's code for a TODO, or why there is none, and what to do.
    fn finished(&self, id: &str) -> Result<&Body, (String, &'static str)> {
        const FINISH: &str = "Finish it there, then give this command again.";
        let file = Workspace::kernel(self.number);
        let todo = self.todos.iter().find(|todo| todo.id == id);
        match (todo, self.bodies.get(id)) {
            (Some(todo), Some(Ok(body))) if body.is_open(todo) => {
                Err((format!("TODO {id} is still open, at {file}:{}", body.begin + 1), FINISH))
            }
            (_, Some(Ok(body))) if body.is_empty() => {
                Err((format!("no code stands at TODO {id}, {file}:{}", body.begin + 1), FINISH))
            }
            (_, Some(Ok(body))) => Ok(body),
            (_, Some(Err(reason))) => Err((
                format!("your code for TODO {id} cannot be told from the rest of {file}:\n        {reason}"),
                "Put that right and give this command again, or copy your lines by hand.",
            )),
            (_, None) => Err((format!("step {} has no TODO {id}", self.number), "Get the workbook's files again.")),
        }
    }
}

/// The way out for code that must change.
const AS_COMMENTS: &str = "Write it anew; `--as-comments` puts your earlier lines there, as a comment.";

/// `4.5`, `4.5 and 4.6`.
fn list(ids: &[String]) -> String {
    ids.join(" and ")
}

/// The first sentence of a task.
fn short(task: &str) -> &str {
    let end = task.find(". ").or_else(|| task.find("; ")).or_else(|| task.find(": "));
    task[..end.unwrap_or(task.len())].trim_end_matches('.')
}

/// Lines with another indentation. What lies inside a string or a block comment stays as it is.
fn indented(lines: &[String], indent: &str) -> Vec<String> {
    let text = lines.join("\n");
    let mut inside = vec![false; lines.len()];
    for token in tokens(&text) {
        let first = text[..token.at].matches('\n').count();
        let last = first + token.text.matches('\n').count();
        inside[first + 1..last + 1].fill(true);
    }
    let free = || lines.iter().zip(&inside).filter(|(line, inside)| !**inside && !line.trim().is_empty());
    let width = |line: &str| line.len() - line.trim_start().len();
    let least = free().map(|(line, _)| width(line)).min().unwrap_or(0);
    let moved = |(line, inside): (&String, &bool)| match line.get(least..) {
        _ if *inside => line.clone(),
        Some(rest) if !line.trim().is_empty() => format!("{indent}{rest}"),
        _ => String::new(),
    };
    lines.iter().zip(&inside).map(moved).collect()
}

/// Lines as a comment, with a word on where they come from.
fn commented(lines: &[String], indent: &str, relation: &Relation) -> Vec<String> {
    let from = list(&relation.from);
    let head = format!("{indent}// Your lines for TODO {from}. Here something must change:");
    let line = |line: &String| {
        let text = line.strip_prefix(indent).unwrap_or(line);
        format!("{indent}//     {text}").trim_end().to_string()
    };
    std::iter::once(head).chain(lines.iter().map(line)).collect()
}

/// A text with lines put in the place of others.
fn apply(text: &str, edits: &[(Body, Vec<String>)]) -> String {
    let end = if text.contains("\r\n") { "\r\n" } else { "\n" };
    let mut lines: Vec<String> = text.lines().map(str::to_string).collect();
    let mut edits: Vec<_> = edits.iter().collect();
    // From the end, so that numbers of lines stay what they are.
    edits.sort_by_key(|(body, _)| std::cmp::Reverse(body.begin));
    for (body, new) in edits {
        lines.splice(body.begin..body.begin + body.lines.len(), new.iter().cloned());
    }
    let mut changed = lines.join(end);
    if text.ends_with('\n') {
        changed.push_str(end);
    }
    changed
}

/// What to tell the user. Writing to a `String` cannot fail, so results of `write!` are dropped.
///
/// `there` are the titles of what stands in the later file beside its kernel function.
fn tell(
    [from, to]: [u8; 2],
    outcomes: &[(Todo, Outcome)],
    missing: &[Item],
    there: &[String],
    kept: Option<&str>,
) -> String {
    let mut text = String::new();
    let mut section = |title: &str, line: &dyn Fn(&Todo, &Outcome) -> Option<String>| {
        let lines: Vec<String> = outcomes.iter().filter_map(|(todo, outcome)| line(todo, outcome)).collect();
        if !lines.is_empty() {
            let _ = writeln!(text, "{title}");
            lines.iter().for_each(|line| text.push_str(line));
        }
    };
    section(&format!("carried to {}", Workspace::kernel(to)), &|todo, outcome| {
        let Outcome::Filled { relation, .. } = outcome else { return None };
        Some(format!("  {:<5} your {}\n", todo.id, list(&relation.from)))
    });
    section("put there as comments, to be changed", &|todo, outcome| {
        let Outcome::Commented { relation, .. } = outcome else { return None };
        Some(format!("  {:<5} your {}\n", todo.id, list(&relation.from)))
    });
    section("left alone, since you have begun there", &|todo, outcome| {
        matches!(outcome, Outcome::Written).then(|| format!("  {}\n", todo.id))
    });
    let open = |outcome: &Outcome| match outcome {
        Outcome::Open { way_out, .. } => Some(way_out.clone()),
        _ => None,
    };
    let ways: Vec<Option<String>> = outcomes.iter().map(|(_, outcome)| open(outcome)).collect();
    section("not carried", &|todo, outcome| {
        let Outcome::Open { reason, way_out } = outcome else { return None };
        // Said once for all that have the same.
        let at = outcomes.iter().position(|(other, _)| other.id == todo.id)?;
        let next = ways[at + 1..].iter().flatten().next();
        let last = !way_out.is_empty() && next != Some(way_out);
        let way_out = if last { format!("        try: {way_out}\n") } else { String::new() };
        Some(format!("  {:<5} {reason}\n{way_out}", todo.id))
    });
    if !missing.is_empty() {
        let _ = writeln!(text, "beside the kernel function, your {} has what {} has not", name(from), name(to));
        for item in missing {
            let uses = |outcome: &Outcome| match outcome {
                Outcome::Filled { lines, .. } => {
                    !item.name.is_empty() && code(&lines.join("\n")).iter().any(|piece| piece.is(&item.name))
                }
                _ => false,
            };
            let users: Vec<String> =
                outcomes.iter().filter(|(_, outcome)| uses(outcome)).map(|(todo, _)| todo.id.clone()).collect();
            let used = if users.is_empty() { String::new() } else { format!("; {} needs it", list(&users)) };
            let other = if there.contains(&item.title) { ", another one there" } else { "" };
            let _ = writeln!(text, "  {} (line {}){other}{used}", item.title, item.line);
        }
        let _ = writeln!(text, "        try: Copy what you need.");
    }
    match kept {
        Some(backup) => {
            let _ = writeln!(text, "your file as it was is kept: {backup}\nnext: cargo test -p {}", name(to));
        }
        None => {
            let _ = writeln!(text, "{} is as it was", Workspace::kernel(to));
        }
    }
    text
}
