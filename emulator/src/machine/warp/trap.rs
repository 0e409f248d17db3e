//! What ends a launch with an error: `trap`, `brkpt`, an assertion that does not hold.

use super::print::shown;
use crate::diagnostic::Diagnostic;
use crate::machine::cluster::Cluster;
use crate::machine::state::At;
use crate::program::op::Abort;

impl Cluster<'_> {
    pub fn trapped(&mut self, at: At, abort: Abort) -> Diagnostic {
        let At { w, mask, site, .. } = at;
        let lane = mask.trailing_zeros() as usize;
        let (title, rule, help) = match abort {
            Abort::Trap => (
                "the kernel executed `trap`".to_string(),
                "`trap` ends the launch with an error (PTX ISA 9.7.19.4).",
                "The kernel checks for something here, and the check failed.",
            ),
            Abort::Breakpoint => (
                "the kernel executed `brkpt`".to_string(),
                "`brkpt` stops the thread for a debugger (PTX ISA 9.7.19.1); without one the launch ends with an error.",
                "Compilers write it where control must never come: see which branch led here.",
            ),
            Abort::Assertion { expression, file, line, function } => {
                let [expression, file, function] =
                    [expression, file, function].map(|parameter| shown(&self.text_at(w, lane, parameter)));
                let line = self.parameter(w, lane, line, 4).map_or("?".to_string(), |line| line.to_string());
                (
                    format!("{}: the assertion `{expression}` does not hold", self.thread_name(w, lane)),
                    "An assertion that does not hold ends the launch with an error (CUDA C++ Programming Guide, Assertion).",
                    &*format!("It stands at {file}:{line}, in `{function}`: see which value makes it fail."),
                )
            }
        };
        self.problem("trap", site, title, rule, help.to_string())
    }
}
