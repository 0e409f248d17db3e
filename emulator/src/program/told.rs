//! What is told of a text that does not load: each error at its place, and of many the first.

use super::{Bad, place};
use crate::diagnostic::{Diagnostic, Label, Severity};
use crate::syntax::ast::{Module, SourceLine, Span};

/// Errors that are told of a function.
const MOST: usize = 100;

pub(super) fn at(text: &str, module: &Module, span: Span, source: Option<SourceLine>, bad: Bad) -> Diagnostic {
    Diagnostic {
        code: bad.code,
        severity: Severity::Error,
        title: bad.message,
        labels: vec![Label::new(place(text, span, source, &module.files), "here")],
        rule: bad.rule,
        help: bad.help,
        count: 1,
        confirmed: None,
    }
}

/// Whether so many errors are told that nothing more is looked at. The last one says so.
pub(super) fn enough(errors: &mut Vec<Diagnostic>) -> bool {
    let Some(last) = errors.get(MOST - 1) else { return false };
    let title = format!("there are {MOST} errors up to here: what follows was not looked at");
    if errors.get(MOST).is_none_or(|closing| closing.title != title) {
        let help = "Mend the first of them, and look at the text again.".into();
        let closing = Diagnostic { title, help, ..last.clone() };
        errors.truncate(MOST);
        errors.push(closing);
    }
    true
}
