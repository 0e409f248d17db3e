//! What a student does next: one TODO or one finding, where it stands, what to try, which page of the book to read.

use crate::Graded;
use harness::judge::mended_elsewhere;
use harness::{Cause, MilestoneState, Outcome, Part, Place, Pointer, Says, Unbuilt, Verdict};
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
        if let (MilestoneState::Wrong { says, .. }, Some((open, at))) = (&first.state, verdict.next_todo())
            && says.code.as_deref() == Some("hang")
            && says.place.as_ref().is_some_and(|place| at.line < place.line)
        {
            return Some(todo(verdict, &open.id, Some(at), None));
        }
        match &first.state {
            MilestoneState::Open { place, .. } => return Some(todo(verdict, &first.id, Some(place), None)),
            MilestoneState::Wrong { says, .. } => {
                let next = todo(verdict, &first.id, says.place.as_ref(), says.help.clone());
                return Some(by_what_mends(next, verdict.step, says));
            }
            _ => {}
        }
        let (first, place) = verdict.next_todo()?;
        return Some(todo(verdict, &first.id, Some(place), None));
    }
    let failed = |part| match verdict.part(part) {
        Outcome::Failed { title, says, .. } => Some((title, says)),
        _ => None,
    };
    let (title, says) = Part::ALL.into_iter().find_map(failed)?;
    let place = says.place.as_ref().map(Place::to_string);
    let next = Next { title: title.clone(), place, task: says.help.clone(), ..Next::default() };
    Some(match &says.pointer {
        // The judge has found out which TODO mends it.
        Some(Pointer { todo, read }) => Next { todo: Some(todo.clone()), ..next }.reading(read),
        None => next.reading(&page_of(verdict.step)),
    })
}

/// What could not be checked for want of an assembler is nothing that a kernel's author can do.
fn not_the_kernel(verdict: &Verdict) -> Option<Next> {
    let Outcome::NotChecked { reason, late } = verdict.part(Part::Resources) else { return None };
    // That is the text's doing, or a machine's that is busy, and nobody knows which.
    if *late {
        let title = "`resources` could not be checked: the assembler did not come to its end";
        let task = "Look for a text that is far longer than its kernel needs; `cargo workbook inspect` shows it. If it is short, tell the course.";
        return Some(Next { title: title.to_string(), task: Some(task.to_string()), ..Next::default() });
    }
    let title = "`resources` could not be checked, because of the machine that grades and not because of the kernel";
    let task = format!("Leave the kernel as it is, and tell the course, which can mend it there: {reason}.");
    Some(Next { title: title.to_string(), task: Some(task), ..Next::default() })
}

/// Why a part could not be checked, in words for a student: the assembler is the course's to install. `late`: it did not come to its end.
pub fn why_not_checked(part: Part, reason: &str, late: bool) -> String {
    match part {
        Part::Resources if !late => {
            format!("the machine that grades could not look at it, and the kernel is not why: {reason}")
        }
        _ => reason.to_string(),
    }
}

/// Why there is no kernel: with the line of Rust where that is known and the explanation shows it, else in the words of who could not build
/// it. `cause`: `None` of a grade that does not tell.
pub fn why_not_built<'a>(cause: Option<Cause>, failure: &'a str, explanation: &'a str, shows_line: bool) -> &'a str {
    // What the others say is only quoted there.
    let explained = matches!(cause, Some(Cause::Refused | Cause::Panicked | Cause::AnotherEachTime));
    if explained && shows_line { explanation } else { failure }
}

/// The page of a step.
fn page_of(step: u8) -> String {
    format!("step {step} (book/src/step{step:02}.md)")
}

/// What to do about a hand-in that gave no kernel.
fn build(step: u8, why: &Unbuilt) -> Next {
    let place = why.place.as_ref().map(Place::to_string);
    Next { title: why.title.clone(), place, task: why.help.clone(), ..Next::default() }.reading(&page_of(step))
}

/// The same, with the TODO that mends it and not the one that its line belongs to.
fn by_what_mends(next: Next, step: u8, says: &Says) -> Next {
    let (Some(code), Some(step), Some(harmed)) = (&says.code, harness::step(step), &next.todo) else { return next };
    match mended_elsewhere(step, code, harmed) {
        Some((mends, read)) => Next { todo: Some(mends.id.to_string()), ..next }.reading(read),
        None => next,
    }
}

/// A TODO of the step: what to do there, unless its explanation says so.
fn todo(verdict: &Verdict, id: &str, place: Option<&Place>, task: Option<String>) -> Next {
    let place = place.map(Place::to_string);
    let known = harness::step(verdict.step).and_then(|step| step.milestones.iter().find(|known| known.id == id));
    let title = verdict.milestones.iter().find(|milestone| milestone.id == id).map(|milestone| milestone.title.clone());
    let next = Next { title: title.unwrap_or_default(), todo: Some(id.to_string()), place, task, ..Next::default() };
    match known {
        Some(known) => Next { task: next.task.clone().or(Some(known.task.to_string())), ..next }.reading(known.read),
        None => next,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_assembler_that_does_not_end_is_not_said_to_be_the_machines_fault() {
        let passed = || Outcome::Passed { detail: String::new() };
        let verdict = |reason: &str, late: bool| {
            let resources = Outcome::NotChecked { reason: reason.to_string(), late };
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
        let late = next(&verdict("ptxas took longer than 120 s and was ended", true)).unwrap();
        assert!(late.title.contains("did not come to its end") && !late.line().contains("because of the machine"));
        assert!(next(&verdict("no ptxas", false)).unwrap().title.contains("because of the machine that grades"));
        assert_eq!(why_not_checked(Part::Resources, "ptxas took longer", true), "ptxas took longer");
        assert!(why_not_checked(Part::Resources, "no ptxas", false).starts_with("the machine that grades"));
    }

    #[test]
    fn what_comes_next_is_what_is_said_and_the_todo_that_mends_it() {
        let place = |line| Some(Place { file: "steps/step02/src/kernel.rs".to_string(), line, column: 1 });
        let why = Unbuilt {
            title: "an MMA too wide".to_string(),
            place: place(72),
            help: Some("Give it 128 columns.".to_string()),
            ..Unbuilt::new(
                Cause::Refused,
                "steps/step02/src/kernel.rs:72: an MMA too wide\n  try: Give it 128 columns.\n",
            )
        };
        let next = build(2, &why);
        assert_eq!(
            next.line(),
            "an MMA too wide, at steps/step02/src/kernel.rs:72; try: Give it 128 columns; read: step 2 (book/src/step02.md)"
        );
        assert_eq!(next.task.as_deref(), Some("Give it 128 columns."));
        // The words of the text do not count: a hand-in may print these.
        let prints = "it does not compile; it said:\n--> step02.rs:7\nerror[hang]: x\n";
        let next = build(2, &Unbuilt { title: "it failed".to_string(), ..Unbuilt::new(Cause::NoAnswer, prints) });
        assert_eq!(next.line(), "it failed; read: step 2 (book/src/step02.md)");
        let next = Next::default().reading("book: mbarriers and phases (book/src/mbarriers.md)");
        assert_eq!(next.read.as_deref(), Some("mbarriers and phases"));
        let harmed = |todo: &str| Next { todo: Some(todo.to_string()), ..Next::default() };
        let mended = |step, todo, code: &str| {
            let next = by_what_mends(harmed(todo), step, &Says { code: Some(code.to_string()), ..Says::default() });
            [next.todo, next.read].map(Option::unwrap_or_default).join(": ")
        };
        assert_eq!(mended(1, "1.3", "missing-proxy-fence"), "1.2: proxies and fences");
        assert_eq!(mended(2, "2.2", "missing-proxy-fence"), "2.1: proxies and fences");
        assert_eq!(mended(2, "2.5", "mma-not-awaited"), "2.4: mbarriers and phases");
        assert_eq!(mended(2, "2.1", "operand-overwritten"), "2.4: mbarriers and phases");
        assert_eq!(mended(4, "4.2", "operand-overwritten"), "4.4: mbarriers and phases");
        // Who fills a stage again too early stands behind the wait.
        assert_eq!(mended(5, "5.5", "operand-overwritten"), "5.5: ");
        assert_eq!(mended(2, "2.5", "race-shared"), "2.5: ");
        assert_eq!(next.page.as_deref(), Some("book/src/mbarriers.md"));
    }

    #[test]
    fn a_kernel_that_is_not_built_is_explained_at_its_line_where_it_has_one() {
        let told = |cause, shows_line| why_not_built(cause, "failure", "explanation", shows_line);
        assert_eq!(told(Some(Cause::Refused), true), "explanation");
        assert_eq!(told(Some(Cause::AnotherEachTime), false), "failure");
        assert_eq!(told(Some(Cause::NotCompiled), true), "failure", "the compiler's words stand there once more");
        assert_eq!(told(None, true), "failure");
    }
}
