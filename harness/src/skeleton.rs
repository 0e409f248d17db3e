//! Makes a student's file from a solution: each marked region becomes one `todo`.
//!
//! A region of `solutions/src/stepNN.rs` looks so (the anchors are also what the book includes):
//!
//! ```text
//!     // TODO 1.3: Multiply: four MMAs of depth 16. (book: the tensor core)
//!     // ANCHOR: todo_1_3
//!     t.mma(…);
//!     // ANCHOR_END: todo_1_3
//! ```
//!
//! The comment stays, the anchors go, and the code becomes `t.todo("1.3");`. The scope is the outermost one
//! (`k`, `wg`, `w`, `t`) that the region's code calls a method of, so the skeleton compiles wherever the region stood.

use std::fmt;

/// Scope variables from the outermost to the innermost.
const SCOPES: [&str; 4] = ["k", "wg", "w", "t"];

/// What is wrong with the regions of a solution.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SkeletonError {
    /// The solution's path, as given.
    pub file: String,
    /// Line in it, from 1.
    pub line: usize,
    /// What was found.
    pub message: String,
    /// What is allowed, and the way out.
    pub help: String,
}

impl fmt::Display for SkeletonError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}:{}: {}\n  try: {}", self.file, self.line, self.message, self.help)
    }
}

impl std::error::Error for SkeletonError {}

/// The skeleton of a step, from the text of its solution. `file` is the solution's path, for messages.
///
/// # Errors
/// All regions that are not well formed, in the order of their lines.
pub fn generate(step: u8, file: &str, solution: &str) -> Result<String, Vec<SkeletonError>> {
    let mut scan = Scan {
        step,
        file,
        lines: solution.lines().collect(),
        out: Vec::new(),
        errors: Vec::new(),
        region: None,
        skip_blank: false,
        others: Vec::new(),
        hints: Vec::new(),
        done: 0,
    };
    scan.run();
    if !scan.errors.is_empty() {
        scan.errors.sort_by_key(|error| error.line);
        return Err(scan.errors);
    }
    let mut text = header(step);
    for line in &scan.out {
        text.push_str(line);
        text.push('\n');
    }
    Ok(text)
}

/// What the student reads first.
fn header(step: u8) -> String {
    let name = format!("step{step:02}");
    format!(
        "// Your file for step {step}. Each `todo(\"{step}.n\")` below waits for your code: the comment above it says what it does\n\
         // and what to read in the book. Delete the `todo` when the code stands.\n\
         //\n\
         //     cargo test -p {name}           says what is done, what is wrong, and what comes next\n\
         //     cargo workbook inspect {name}  shows the PTX that each line here writes\n\
         //     cargo workbook reset {name}    starts again, and keeps a copy of your file\n\
         //     cargo doc -p ptx --open        all that you can call on `k`, `w` and `t`, and on tiles and matrices\n\
         \n"
    )
}

/// The file of a student whose step is done, and where each line of the text that it is made of stands in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Solved {
    /// The head of a skeleton, then the text without the marks of its regions.
    pub text: String,
    numbers: Vec<Option<u32>>,
}

impl Solved {
    /// The number in the student's file of a line of the solution, both from 1; none of a mark, and of a line that is not there.
    pub fn line(&self, line: u32) -> Option<u32> {
        *self.numbers.get(usize::try_from(line).ok()?.checked_sub(1)?)?
    }
}

/// What a student's file is when the step is done as a solution does it: the lines that a student sees and a person may quote.
///
/// The text may be a solution with something changed.
pub fn solved(step: u8, solution: &str) -> Solved {
    let mut text = header(step);
    let mut number = u32::try_from(text.lines().count()).unwrap_or(u32::MAX);
    let mut numbers = Vec::new();
    for line in solution.lines() {
        let is_mark = line.trim().strip_prefix("//").is_some_and(|comment| {
            let comment = comment.trim();
            comment.starts_with("ANCHOR:") || comment.starts_with("ANCHOR_END:")
        });
        if !is_mark {
            text.push_str(line);
            text.push('\n');
            number = number.saturating_add(1);
        }
        numbers.push((!is_mark).then_some(number));
    }
    Solved { text, numbers }
}

/// A region that is open while lines are read.
struct Region {
    /// Number of the TODO within the step.
    number: u32,
    /// The anchor's name.
    anchor: String,
    /// Line of the `ANCHOR` comment, from 1.
    line: usize,
    /// White space before the `ANCHOR` comment.
    indent: String,
    /// Its lines, without comments.
    code: String,
}

struct Scan<'a> {
    step: u8,
    file: &'a str,
    lines: Vec<&'a str>,
    out: Vec<String>,
    errors: Vec<SkeletonError>,
    region: Option<Region>,
    /// The line just removed stood between two blank lines (or after an opening brace): rustfmt keeps one of them.
    skip_blank: bool,
    /// Open anchors that are no TODOs: the book's own.
    others: Vec<(String, usize)>,
    /// `TODO` comments that no anchor has followed yet: id, line.
    hints: Vec<(String, usize)>,
    /// TODOs closed so far.
    done: u32,
}

impl Scan<'_> {
    fn run(&mut self) {
        for index in 0..self.lines.len() {
            let line = self.lines[index];
            let comment = line.trim().strip_prefix("//").map(str::trim);
            if let Some(name) = comment.and_then(|text| text.strip_prefix("ANCHOR:")) {
                self.open(index, name.trim());
            } else if let Some(name) = comment.and_then(|text| text.strip_prefix("ANCHOR_END:")) {
                self.close(index, name.trim());
            } else if let Some(region) = &mut self.region {
                region.code.push_str(line.split("//").next().unwrap_or_default());
                region.code.push('\n');
            } else {
                if let Some(id) = comment.and_then(todo_id) {
                    self.hints.push((id.to_string(), index + 1));
                }
                self.keep(line);
            }
        }
        if let Some(region) = self.region.take() {
            let anchor = region.anchor;
            self.error(
                region.line,
                format!("region `{anchor}` is never closed"),
                format!("Put `// ANCHOR_END: {anchor}` after its last line."),
            );
        }
        for (name, line) in std::mem::take(&mut self.others) {
            self.error(
                line,
                format!("anchor `{name}` is never closed"),
                format!("Put `// ANCHOR_END: {name}` after its last line."),
            );
        }
        for (id, line) in std::mem::take(&mut self.hints) {
            let anchor = format!("todo_{}", id.replace('.', "_"));
            self.error(
                line,
                format!("TODO {id} has no region"),
                format!(
                    "Put the code that the student writes between `// ANCHOR: {anchor}` and `// ANCHOR_END: {anchor}`."
                ),
            );
        }
        if self.done == 0 && self.errors.is_empty() {
            let step = self.step;
            self.error(
                1,
                "this solution has no TODO region".to_string(),
                format!("Mark the lines that the student writes, beginning with `// ANCHOR: todo_{step}_1`."),
            );
        }
    }

    fn open(&mut self, index: usize, name: &str) {
        let line = index + 1;
        if let Some(region) = self.region.take() {
            let open = &region.anchor;
            self.error(
                line,
                format!("anchor `{name}` begins inside region `{open}`, which began on line {}", region.line),
                format!("Close the first one with `// ANCHOR_END: {open}`; regions do not nest."),
            );
        }
        let Some(rest) = name.strip_prefix("todo_") else {
            self.others.push((name.to_string(), line));
            return self.removed();
        };
        let number: Option<(u32, u32)> =
            rest.split_once('_').and_then(|(step, number)| Some((step.parse().ok()?, number.parse().ok()?)));
        let Some((step, number)) = number else {
            return self.error(
                line,
                format!("`{name}` does not name a TODO"),
                format!("Name the anchor `todo_{}_<number>`, e.g. `todo_{}_1`.", self.step, self.step),
            );
        };
        if step != u32::from(self.step) {
            let help =
                format!("Name the regions of this file `todo_{}_1`, `todo_{}_2`, and so on.", self.step, self.step);
            self.error(
                line,
                format!("`{name}` is a region of step {step} in the solution of step {}", self.step),
                help,
            );
        }
        let expected = self.done + 1;
        if step == u32::from(self.step) && number != expected {
            self.error(
                line,
                format!("TODO {step}.{number} stands where TODO {step}.{expected} is expected"),
                "Count TODOs from 1 in the order of their lines, without gaps and without repeats.".to_string(),
            );
        }
        self.done = number;
        let id = format!("{step}.{number}");
        match self.hint_above(index) {
            Some(hint) if hint == id => {}
            found => {
                let message = match found {
                    Some(other) => format!("region `{name}` stands below the comment of TODO {other}"),
                    None => format!("region `{name}` has no TODO comment above it"),
                };
                let help = format!("Directly above the anchor, write `// TODO {id}: <what to do, and what to read>`.");
                self.error(line, message, help);
            }
        }
        self.hints.retain(|(hint, _)| *hint != id);
        let text = self.lines[index];
        let indent = text[..text.len() - text.trim_start().len()].to_string();
        self.region = Some(Region { number, anchor: name.to_string(), line, indent, code: String::new() });
    }

    fn close(&mut self, index: usize, name: &str) {
        let line = index + 1;
        if let Some(at) = self.others.iter().position(|(other, _)| other == name) {
            self.others.remove(at);
            return self.removed();
        }
        let Some(region) = self.region.take_if(|region| region.anchor == name) else {
            let (message, help) = match &self.region {
                Some(region) => (
                    format!(
                        "`ANCHOR_END: {name}` inside region `{}`, which began on line {}",
                        region.anchor, region.line
                    ),
                    format!("End a region with its own name: `// ANCHOR_END: {}`.", region.anchor),
                ),
                None => (
                    format!("`ANCHOR_END: {name}` without an `ANCHOR: {name}` above it"),
                    format!("Put `// ANCHOR: {name}` before the region's first line."),
                ),
            };
            return self.error(line, message, help);
        };
        let id = format!("{}.{}", self.step, region.number);
        if region.code.trim().is_empty() {
            return self.error(
                region.line,
                format!("region `{name}` is empty"),
                "Put the lines that the student writes into it, or remove it if there are none.".to_string(),
            );
        }
        let Some(scope) = SCOPES.iter().find(|scope| calls_method(&region.code, scope)) else {
            return self.error(
                region.line,
                format!("region `{name}` uses no scope: its lines call no method of `k`, `wg`, `w` or `t`"),
                format!("Name the closure's argument so: the skeleton needs one of them for `<scope>.todo(\"{id}\")`."),
            );
        };
        self.keep(&format!("{}{scope}.todo(\"{id}\");", region.indent));
    }

    /// The id of the TODO comment in the block of comments directly above a line.
    fn hint_above(&self, index: usize) -> Option<String> {
        self.lines[..index]
            .iter()
            .rev()
            .map_while(|line| line.trim().strip_prefix("//"))
            .find_map(|text| todo_id(text.trim()))
            .map(str::to_string)
    }

    fn keep(&mut self, line: &str) {
        let blank = line.trim().is_empty();
        if blank && self.skip_blank {
            return;
        }
        let closes = line.trim_start().starts_with(['}', ')']);
        if self.skip_blank && closes && self.out.last().is_some_and(String::is_empty) {
            self.out.pop();
        }
        self.skip_blank = false;
        self.out.push(line.trim_end().to_string());
    }

    /// An anchor line was left out: blank lines around it must not add up.
    fn removed(&mut self) {
        self.skip_blank = self.out.last().is_none_or(|line| line.is_empty() || line.ends_with('{'));
    }

    fn error(&mut self, line: usize, message: String, help: String) {
        self.errors.push(SkeletonError { file: self.file.to_string(), line, message, help });
    }
}

/// `1.3` of the comment `TODO 1.3: …`.
pub(crate) fn todo_id(comment: &str) -> Option<&str> {
    let (id, _) = comment.strip_prefix("TODO ")?.split_once(':')?;
    let (step, number) = id.split_once('.')?;
    let numeric = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    (numeric(step) && numeric(number)).then_some(id)
}

/// Whether code calls a method of a variable (or reads a field): `name.` where `name` is a whole identifier.
fn calls_method(code: &str, name: &str) -> bool {
    code.match_indices(name).any(|(at, _)| {
        let before = code[..at].chars().next_back();
        let alone = !before.is_some_and(|last| last.is_alphanumeric() || last == '_' || last == '.');
        let after = code[at + name.len()..].trim_start();
        alone && after.starts_with('.') && !after.starts_with("..")
    })
}
