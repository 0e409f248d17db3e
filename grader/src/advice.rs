//! What a student does next: one TODO or one finding, where it stands, what to try, which page of the book to read.

use crate::Graded;
use harness::judge::mended_elsewhere;
use harness::ptxas::TOOK_LONGER;
use harness::{MilestoneState, Outcome, Part, Place, Verdict};
use serde::{Deserialize, Serialize};

/// What comes next.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Next {
    /// What is open or wrong, in one sentence.
    pub title: String,
    /// The TODO that it is about, `step.n`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub todo: Option<String>,
    /// The line, `file:line`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<String>,
    /// What to try.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<String>,
    /// The title of the page to read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read: Option<String>,
    /// The page's file, from the top of the checkout.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub page: Option<String>,
}

impl Next {
    /// On one line: what, and where.
    pub fn short(&self) -> String {
        let todo = self.todo.as_ref().map(|todo| format!("TODO {todo}: ")).unwrap_or_default();
        let place = self.place.as_ref().map(|place| format!(", at {place}")).unwrap_or_default();
        format!("{todo}{}{place}", self.title)
    }

    /// On one line, all of it: what, where, what to try, what to read.
    pub fn line(&self) -> String {
        let task = self.task.as_ref().map(|task| format!("; try: {}", task.trim_end_matches('.'))).unwrap_or_default();
        let read = match (&self.read, &self.page) {
            (Some(read), Some(page)) => format!("; read: {read} ({page})"),
            (Some(read), None) => format!("; read: {read}"),
            (None, _) => String::new(),
        };
        format!("{}{task}{read}", self.short())
    }

    /// On several lines, the first of which says what.
    pub fn lines(&self) -> Vec<String> {
        let todo = self.todo.as_ref().map(|todo| format!("TODO {todo}: ")).unwrap_or_default();
        let mut lines = vec![format!("{todo}{}", self.title)];
        lines.extend(self.place.as_ref().map(|place| format!("--> {place}")));
        lines.extend(self.task.as_ref().map(|task| format!("try:  {task}")));
        lines.extend(self.read.as_ref().map(|read| match &self.page {
            Some(page) => format!("read: {read} ({page})"),
            None => format!("read: {read}"),
        }));
        lines
    }

    fn reading(mut self, known: &str) -> Next {
        // `book: mbarriers and phases (book/src/mbarriers.md)`.
        let text = known.trim().trim_start_matches("book:").trim();
        (self.read, self.page) = match text.strip_suffix(')').and_then(|text| text.rsplit_once(" (")) {
            Some((title, page)) => (Some(title.to_string()), Some(page.to_string())),
            None => (Some(text.to_string()), None),
        };
        self
    }
}

/// What comes next in a step. A solution that could not be checked waits for nobody's work.
pub fn in_step(graded: &Graded) -> Option<Next> {
    let Graded { file, verdict } = graded;
    next(verdict).filter(|_| file.is_some() || !verdict.only_unchecked())
}

/// What comes next; `None` when nothing is left. Where the machine that grades is why points are missing, that is said, and whose it is to mend.
pub fn next(verdict: &Verdict) -> Option<Next> {
    if verdict.passed() {
        return None;
    }
    if verdict.only_unchecked() {
        return not_the_kernel(verdict);
    }
    if let Some(failure) = &verdict.build_failure {
        return Some(build(verdict.step, failure));
    }
    // A TODO that is wrong comes before one that is open.
    if let Some(first) = verdict.first_undone() {
        // But what hangs behind an open TODO waits for what that would do.
        if let (MilestoneState::Wrong { text }, Some((open, at))) = (&first.state, verdict.next_todo())
            && text.trim_start().starts_with("error[hang]")
            && line_of(text).is_some_and(|line| at.line < line)
        {
            return Some(todo(verdict, &open.id, Some(shown(at)), None));
        }
        match &first.state {
            MilestoneState::Open { place, .. } => return Some(todo(verdict, &first.id, Some(shown(place)), None)),
            MilestoneState::Wrong { text } => {
                let next = todo(verdict, &first.id, place(text), task(text));
                return Some(by_what_mends(next, verdict.step, text));
            }
            _ => {}
        }
        let (first, place) = verdict.next_todo()?;
        return Some(todo(verdict, &first.id, Some(shown(place)), None));
    }
    let failed = |part| match verdict.part(part) {
        Outcome::Failed { title, text } => Some((title, text)),
        _ => None,
    };
    let (title, text) = Part::ALL.into_iter().find_map(failed)?;
    let next = Next { title: title.clone(), place: place(text), task: task(text), ..Next::default() };
    // `  TODO 1.2; read: book: …` stands below a finding whose TODO is known.
    let pointer = text.lines().find_map(|line| line.trim().strip_prefix("TODO ")?.split_once("; read: "));
    Some(match pointer {
        Some((id, read)) => {
            // The judge has found out which TODO mends it.
            Next { todo: Some(id.to_string()), ..next }.reading(read)
        }
        None => next.reading(&page_of(verdict.step)),
    })
}

/// What could not be checked for want of an assembler is nothing that a kernel's author can do.
fn not_the_kernel(verdict: &Verdict) -> Option<Next> {
    let Outcome::NotChecked { reason } = verdict.part(Part::Resources) else { return None };
    // That is the text's doing, or a machine's that is busy, and nobody knows which.
    if reason.starts_with(TOOK_LONGER) {
        let title = "`resources` could not be checked: the assembler did not come to its end";
        let task = "Look for a text that is far longer than its kernel needs; `cargo workbook inspect` shows it. If it is short, tell the course.";
        return Some(Next { title: title.to_string(), task: Some(task.to_string()), ..Next::default() });
    }
    let title = "`resources` could not be checked, because of the machine that grades and not because of the kernel";
    let task = format!("Leave the kernel as it is, and tell the course, which can mend it there: {reason}.");
    Some(Next { title: title.to_string(), task: Some(task), ..Next::default() })
}

/// Why a part could not be checked, in words for a student: the assembler is the course's to install.
pub fn why_not_checked(part: Part, reason: &str) -> String {
    match part {
        Part::Resources if reason.starts_with(TOOK_LONGER) => reason.to_string(),
        Part::Resources => format!("the machine that grades could not look at it, and the kernel is not why: {reason}"),
        _ => reason.to_string(),
    }
}

/// Why there is no kernel: with the line of Rust where that is known, else in the words of who could not build it.
pub fn why_not_built<'a>(failure: &'a str, explanation: &'a str) -> &'a str {
    // What has no line is only quoted there.
    let first = failure.lines().next().unwrap_or_default();
    let quoted = explanation.strip_prefix("error: ").is_some_and(|quoted| quoted.starts_with(first));
    if quoted || place(explanation).is_none() { failure } else { explanation }
}

/// The page of a step.
fn page_of(step: u8) -> String {
    format!("step {step} (book/src/step{step:02}.md)")
}

/// What to do about a hand-in that gave no kernel.
fn build(step: u8, failure: &str) -> Next {
    let title = failure.lines().find(|line| !line.trim().is_empty()).unwrap_or("there is no kernel");
    // What it said stands below, and not in one sentence.
    let title = title.trim().trim_end_matches(':');
    let mut title = title.strip_suffix("; it said").unwrap_or(title).to_string();
    // The builder's errors begin with their line, `steps/step02/src/kernel.rs:72: `.
    let split = title.split_once(": ").map(|(place, what)| (place.to_string(), what.to_string()));
    if let Some((at, what)) = split.filter(|(at, _)| place(&format!("--> {at}")).is_some() && at.contains(".rs:")) {
        let next = Next { title: what, place: Some(at), task: task(failure), ..Next::default() };
        return next.reading(&page_of(step));
    }
    if let Some(error) = failure.lines().skip(1).map(str::trim).find(|line| line.starts_with("error")) {
        title += &format!(": {error}");
    }
    let check = || format!("Run `cargo check -p {}` until it compiles.", harness::workbook::name(step));
    let task = task(failure).or_else(|| failure.starts_with("it does not compile").then(check));
    Next { title, place: place(failure), task, ..Next::default() }.reading(&page_of(step))
}

/// The same, with the TODO that mends it and not the one that its line belongs to.
fn by_what_mends(next: Next, step: u8, text: &str) -> Next {
    let code = text.trim_start().strip_prefix("finding[").and_then(|text| text.split_once(']'));
    let (Some((code, _)), Some(step), Some(harmed)) = (code, harness::step(step), &next.todo) else { return next };
    match mended_elsewhere(step, code, harmed) {
        Some((mends, read)) => Next { todo: Some(mends.id.to_string()), ..next }.reading(read),
        None => next,
    }
}

/// A TODO of the step: what to do there, unless its explanation says so.
fn todo(verdict: &Verdict, id: &str, place: Option<String>, task: Option<String>) -> Next {
    let known = harness::step(verdict.step).and_then(|step| step.milestones.iter().find(|known| known.id == id));
    let title = verdict.milestones.iter().find(|milestone| milestone.id == id).map(|milestone| milestone.title.clone());
    let next = Next { title: title.unwrap_or_default(), todo: Some(id.to_string()), place, task, ..Next::default() };
    match known {
        Some(known) => Next { task: next.task.clone().or(Some(known.task.to_string())), ..next }.reading(known.read),
        None => next,
    }
}

fn shown(place: &Place) -> String {
    format!("{}:{}", place.file, place.line)
}

/// The place that an explanation shows first, `file:line`: of Rust, if it shows any.
pub fn place(text: &str) -> Option<String> {
    let shown = |line: &str| {
        let place = line.trim_start().strip_prefix("--> ")?.trim();
        let mut pieces = place.splitn(3, ':');
        let (file, line) = (pieces.next()?, pieces.next()?);
        line.bytes().all(|byte| byte.is_ascii_digit()).then(|| format!("{file}:{line}"))
    };
    let mut places: Vec<String> = text.lines().filter_map(shown).collect();
    let rust = places.iter().position(|place| place.contains(".rs:")).unwrap_or(0);
    (!places.is_empty()).then(|| places.swap_remove(rust))
}

/// The line of that place.
fn line_of(text: &str) -> Option<u32> {
    place(text)?.rsplit_once(':')?.1.parse().ok()
}

/// What an explanation says to try first.
fn task(text: &str) -> Option<String> {
    let tried = |line: &str| {
        let line = line.trim_start().trim_start_matches("= ");
        ["try: ", "help: "].into_iter().find_map(|word| line.strip_prefix(word)).map(str::to_string)
    };
    text.lines().find_map(tried)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_assembler_that_does_not_end_is_not_said_to_be_the_machines_fault() {
        let passed = || Outcome::Passed { detail: String::new() };
        let verdict = |reason: &str| {
            let resources = Outcome::NotChecked { reason: reason.to_string() };
            let outcomes = [passed(), passed(), passed(), resources, passed()];
            let mut outcomes = outcomes.into_iter();
            Verdict {
                step: 1,
                title: String::new(),
                device: String::new(),
                parts: Part::ALL.map(|part| (part, outcomes.next().unwrap())),
                milestones: Vec::new(),
                build_failure: None,
                ending: None,
                here: None,
                points: 0.0,
                max_points: 5,
                seconds: 0.0,
            }
        };
        let late = next(&verdict("ptxas took longer than 120 s and was ended")).unwrap();
        assert!(late.title.contains("did not come to its end") && !late.line().contains("because of the machine"));
        assert!(next(&verdict("no ptxas")).unwrap().title.contains("because of the machine that grades"));
        assert_eq!(why_not_checked(Part::Resources, "ptxas took longer than 1 s"), "ptxas took longer than 1 s");
    }

    #[test]
    fn places_and_what_to_try_are_found_in_explanations() {
        let text = "error: the MMA reads `tile A` too early\n --> k.ptx:9\n ::: \n  --> steps/step01/src/kernel.rs:61:9\n  |\n  = try: Call `k.fence_proxy_async()`.\n";
        assert_eq!(place(text).as_deref(), Some("steps/step01/src/kernel.rs:61"));
        assert_eq!(task(text).as_deref(), Some("Call `k.fence_proxy_async()`."));
        assert_eq!(place("a --> b\n --> c"), None);
        let next = build(2, "steps/step02/src/kernel.rs:72: an MMA too wide\n  try: Give it 128 columns.\n");
        assert_eq!(
            next.line(),
            "an MMA too wide, at steps/step02/src/kernel.rs:72; try: Give it 128 columns; read: step 2 (book/src/step02.md)"
        );
        assert_eq!(next.task.as_deref(), Some("Give it 128 columns."));
        let next = build(
            2,
            "the program that builds the kernel failed (exit status: 3); it said:\nout of cheese\n  try: Look.\n",
        );
        assert_eq!(
            next.line(),
            "the program that builds the kernel failed (exit status: 3); try: Look; read: step 2 (book/src/step02.md)"
        );
        let next = Next::default().reading("book: mbarriers and phases (book/src/mbarriers.md)");
        assert_eq!(next.read.as_deref(), Some("mbarriers and phases"));
        let harmed = |todo: &str| Next { todo: Some(todo.to_string()), ..Next::default() };
        let mended = |step, todo, text| {
            let next = by_what_mends(harmed(todo), step, text);
            [next.todo, next.read].map(Option::unwrap_or_default).join(": ")
        };
        assert_eq!(mended(1, "1.3", "finding[missing-proxy-fence]: x"), "1.2: proxies and fences");
        assert_eq!(mended(2, "2.2", "finding[missing-proxy-fence]: x"), "2.1: proxies and fences");
        assert_eq!(mended(2, "2.5", "finding[mma-not-awaited]: x"), "2.4: mbarriers and phases");
        assert_eq!(mended(2, "2.1", "finding[operand-overwritten]: x"), "2.4: mbarriers and phases");
        assert_eq!(mended(4, "4.2", "finding[operand-overwritten]: x"), "4.4: mbarriers and phases");
        // Who fills a stage again too early stands behind the wait.
        assert_eq!(mended(5, "5.5", "finding[operand-overwritten]: x"), "5.5: ");
        assert_eq!(mended(2, "2.5", "finding[race-shared]: x"), "2.5: ");
        assert_eq!(next.page.as_deref(), Some("book/src/mbarriers.md"));
    }
}
