//! What a student wrote for each TODO: found by holding the file against the untouched one.

use super::super::tokens::{Kind, code, tokens};
use similar::{Algorithm, DiffOp, TextDiff};
use std::collections::BTreeMap;

/// A TODO of an untouched file.
#[derive(Clone, Debug)]
pub(crate) struct Todo {
    /// `4.5`.
    pub id: String,
    /// The line of its `todo` call, without white space around it.
    pub call: String,
    /// Its comment, line by line, without white space around it.
    comment: Vec<String>,
    /// The line where the comment begins, from 0.
    begin: usize,
    /// What stands between the call and the next TODO's comment (or the end), without white space and empty lines.
    rest: Vec<String>,
}

impl Todo {
    /// What the TODO asks for: its comment as one text.
    pub fn task(&self) -> String {
        let words: Vec<&str> = self.comment.iter().map(|line| line.trim_start_matches("//").trim()).collect();
        let text = words.join(" ");
        text.split_once(": ").map_or(text.clone(), |(_, task)| task.to_string())
    }
}

/// The TODOs of an untouched file, in order.
pub(crate) fn todos(untouched: &str) -> Vec<Todo> {
    let lines: Vec<&str> = untouched.lines().map(str::trim).collect();
    let mut todos: Vec<Todo> = Vec::new();
    let mut after = 0;
    for (index, line) in lines.iter().enumerate() {
        let Some(id) = called(line) else { continue };
        let comments = lines[..index].iter().rev().take_while(|line| line.starts_with("//")).count();
        let block = index - comments..index;
        let begin = block.clone().find(|at| heads(lines[*at], id)).unwrap_or(index);
        if let Some(before) = todos.last_mut() {
            before.rest = full(&lines[after..begin]);
        }
        after = index + 1;
        let comment = lines[begin..index].iter().map(ToString::to_string).collect();
        todos.push(Todo { id: id.to_string(), call: line.to_string(), comment, begin, rest: Vec::new() });
    }
    if let Some(last) = todos.last_mut() {
        last.rest = full(&lines[after..]);
    }
    todos
}

fn full(lines: &[&str]) -> Vec<String> {
    lines.iter().filter(|line| !line.is_empty()).map(ToString::to_string).collect()
}

/// `4.5` of `t.todo("4.5");`.
fn called(line: &str) -> Option<&str> {
    let (scope, rest) = line.split_once(".todo(\"")?;
    scope.chars().all(char::is_alphanumeric).then_some(())?;
    rest.strip_suffix("\");")
}

/// Whether a comment is the first line of this TODO's.
fn heads(line: &str, id: &str) -> bool {
    let rest = line.trim().strip_prefix("//").and_then(|rest| rest.trim_start().strip_prefix("TODO"));
    rest.and_then(|rest| rest.trim_start().strip_prefix(id))
        .is_some_and(|rest| !rest.starts_with(|c: char| c.is_ascii_digit() || c == '.'))
}

/// Lines of a student's file that stand where a TODO stood.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Body {
    /// The first of them, from 0.
    pub begin: usize,
    /// Those lines, without empty ones at the ends.
    pub lines: Vec<String>,
}

impl Body {
    /// Whether the `todo` call is still in it.
    pub fn is_open(&self, todo: &Todo) -> bool {
        let text = self.lines.join("\n");
        let pieces = code(&text);
        let name = format!("\"{}\"", todo.id);
        pieces.windows(3).any(|w| w[0].is("todo") && w[1].is("(") && w[2].text == name)
    }

    /// Whether it is as the untouched file has it.
    pub fn is_untouched(&self, todo: &Todo) -> bool {
        matches!(self.lines.as_slice(), [only] if only.trim() == todo.call)
    }

    /// Whether no code is in it.
    pub fn is_empty(&self) -> bool {
        code(&self.lines.join("\n")).is_empty()
    }
}

/// What stands in a student's file for each TODO of the untouched one, or why that cannot be told.
pub(crate) fn bodies(untouched: &str, file: &str) -> BTreeMap<String, Result<Body, String>> {
    let todos = todos(untouched);
    let lines: Vec<&str> = file.lines().collect();
    let same = same_lines(untouched, &lines);
    let places: Vec<Result<Place, String>> = todos.iter().map(|todo| place(todo, untouched, &lines, &same)).collect();
    let mut found = BTreeMap::new();
    for (index, (todo, at)) in todos.iter().zip(&places).enumerate() {
        let end = match places.get(index + 1) {
            None => Ok(lines.len()),
            Some(Ok(next)) => Ok(next.comment),
            Some(Err(reason)) => Err(format!("where it ends cannot be told: {reason}")),
        };
        let body = at.clone().and_then(|at| cut(todo, &lines, at.code, end?));
        found.insert(todo.id.clone(), body);
    }
    found
}

/// Where a TODO stands in a student's file; lines from 0.
#[derive(Clone, Copy, Debug)]
struct Place {
    /// Where its comment begins.
    comment: usize,
    /// Where the code for it begins.
    code: usize,
}

fn gone(todo: &Todo) -> String {
    format!("the comment `// TODO {}: …` above it is gone", todo.id)
}

fn place(todo: &Todo, untouched: &str, lines: &[&str], same: &BTreeMap<usize, usize>) -> Result<Place, String> {
    let heads: Vec<usize> = (0..lines.len()).filter(|at| heads(lines[*at], &todo.id)).collect();
    match heads.as_slice() {
        [comment] => {
            // What follows in the comment is the TODO's own as far as it is what it was; more is the student's.
            let rest = todo.comment.iter().skip(1).zip(&lines[comment + 1..]);
            let own = rest.take_while(|(expected, found)| found.trim() == *expected).count();
            Ok(Place { comment: *comment, code: comment + 1 + own })
        }
        [] => {
            // Without its comment, it stands behind the line that stood before it.
            let before: Vec<&str> = untouched.lines().take(todo.begin).collect();
            let above = before.iter().rposition(|line| !line.trim().is_empty());
            let above =
                above.filter(|at| before[*at].contains(char::is_alphanumeric) && called(before[*at].trim()).is_none());
            let at = above.and_then(|at| same.get(&at)).map(|at| at + 1).ok_or_else(|| gone(todo))?;
            Ok(Place { comment: at, code: at })
        }
        many => {
            let numbers: Vec<String> = many.iter().map(|at| (at + 1).to_string()).collect();
            Err(format!("the comment `// TODO {}: …` stands there on lines {}", todo.id, numbers.join(", ")))
        }
    }
}

/// Lines of the untouched file that are still there: line in it, line in the student's file.
fn same_lines(untouched: &str, lines: &[&str]) -> BTreeMap<usize, usize> {
    let old: Vec<&str> = untouched.lines().map(str::trim).collect();
    let new: Vec<&str> = lines.iter().map(|line| line.trim()).collect();
    let diff = TextDiff::configure().algorithm(Algorithm::Patience).diff_slices(&old, &new);
    let mut same = BTreeMap::new();
    for op in diff.ops() {
        if let DiffOp::Equal { old_index, new_index, len } = *op {
            same.extend((0..len).map(|at| (old_index + at, new_index + at)));
        }
    }
    same
}

/// The lines for a TODO out of all that stands between it and the next one.
fn cut(todo: &Todo, lines: &[&str], begin: usize, end: usize) -> Result<Body, String> {
    if begin > end {
        return Err(format!("the TODOs stand in another order: {} comes after the next one", todo.id));
    }
    let segment = &lines[begin..end];
    let untouched = untouched_rest(todo, segment).filter(|length| balanced(&segment[..*length]));
    let length = match untouched {
        Some(length) => length,
        None => edited_rest(todo, segment, begin)?,
    };
    let own = &segment[..length];
    if !balanced(own) {
        let line = begin + 1;
        return Err(format!("from line {line} on it is too different from the untouched file: brackets do not match"));
    }
    let first = own.iter().position(|line| !line.trim().is_empty()).unwrap_or(length);
    let last = own.iter().rposition(|line| !line.trim().is_empty()).map_or(first, |at| at + 1);
    Ok(Body { begin: begin + first, lines: own[first..last].iter().map(ToString::to_string).collect() })
}

/// Whether each bracket has its other half in these lines.
fn balanced(lines: &[&str]) -> bool {
    let mut depth = 0;
    code(&lines.join("\n")).iter().all(|token| {
        depth += token.nests();
        depth >= 0
    }) && depth == 0
}

/// How many lines stand before the rest of the untouched file, if the segment ends with it.
fn untouched_rest(todo: &Todo, segment: &[&str]) -> Option<usize> {
    let mut length = segment.len();
    for expected in todo.rest.iter().rev() {
        length = segment[..length].iter().rposition(|line| !line.trim().is_empty())?;
        (segment[length].trim() == expected).then_some(())?;
    }
    Some(length)
}

/// The same where the student has changed the rest, too: the code for the TODO ends where its block ends, or before the
/// line that came next.
fn edited_rest(todo: &Todo, segment: &[&str], begin: usize) -> Result<usize, String> {
    let text = segment.join("\n");
    let starts: Vec<usize> = segment
        .iter()
        .scan(0, |at, line| {
            let start = *at;
            *at += line.len() + 1;
            Some(start)
        })
        .collect();
    // Depth before each line, and the line in which the block ends.
    let mut depths = vec![0; segment.len()];
    let mut ends = segment.len();
    let mut depth = 0;
    let all = tokens(&text);
    let mut pieces = all.iter().filter(|token| token.kind != Kind::Comment).peekable();
    for (line, start) in starts.iter().enumerate() {
        depths[line] = depth;
        let stop = start + segment[line].len();
        let mut lowest = depth;
        while let Some(token) = pieces.next_if(|token| token.at < stop) {
            depth += token.nests();
            lowest = lowest.min(depth);
        }
        if lowest < 0 {
            ends = line;
            break;
        }
    }
    let closes = |line: &String| code(line).first().is_some_and(|first| first.nests() < 0);
    match todo.rest.first() {
        None => Ok(ends),
        Some(first) if closes(first) => Ok(ends),
        Some(first) => {
            let stands = |line: &usize| depths[*line] == 0 && segment[*line].trim() == first;
            (0..ends).find(stands).ok_or_else(|| {
                format!(
                    "from line {} on it is too different from the untouched file: `{first}` is not there",
                    begin + 1
                )
            })
        }
    }
}
