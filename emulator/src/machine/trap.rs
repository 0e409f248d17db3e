//! What ends a launch with an error: `trap`, `brkpt`, an assertion that does not hold.

use super::access::Target;
use super::cluster::Cluster;
use super::state::At;
use crate::diagnostic::Diagnostic;
use crate::program::op::Trap;

/// Characters of a string of the kernel that are shown.
const SHOWN: usize = 200;

impl Cluster<'_> {
    pub fn trapped(&mut self, at: At, trap: Trap) -> Diagnostic {
        let At { w, mask, site, .. } = at;
        let lane = mask.trailing_zeros() as usize;
        let (title, rule, help) = match trap {
            Trap::Trap => (
                "the kernel executed `trap`".to_string(),
                "`trap` ends the launch with an error (PTX ISA 9.7.19.4).",
                "The kernel checks for something here, and the check failed.",
            ),
            Trap::Breakpoint => (
                "the kernel executed `brkpt`".to_string(),
                "`brkpt` stops the thread for a debugger (PTX ISA 9.7.19.1); without one the launch ends with an error.",
                "Compilers write it where control must never come: see which branch led here.",
            ),
            Trap::Assertion { expression, file, line, function } => {
                let [expression, file, function] =
                    [expression, file, function].map(|parameter| self.text_at(w, lane, parameter));
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

    /// A parameter of a call, if it was stored.
    fn parameter(&mut self, w: usize, lane: usize, parameter: u32, bytes: usize) -> Option<u64> {
        let Target::Local(at) = self.local_target(w, lane, parameter.into(), bytes as u64)? else { return None };
        let (value, defined) = self.warps[w].local.load(at as usize, bytes);
        defined.then_some(value as u64)
    }

    /// The string that a parameter of a call points to.
    fn text_at(&mut self, w: usize, lane: usize, parameter: u32) -> String {
        let Some(address) = self.parameter(w, lane, parameter, 8) else { return "?".to_string() };
        let character = |n: usize| {
            let (buffer, offset) = self.global.find(address.checked_add(n as u64)?, 1)?;
            let (byte, _) = self.outbox.load(&self.global, buffer, offset, 1);
            u8::try_from(byte).ok().filter(|byte| *byte != 0)
        };
        let bytes: Vec<u8> = (0..SHOWN).map_while(character).collect();
        String::from_utf8_lossy(&bytes).chars().map(|c| if c.is_control() { '?' } else { c }).collect()
    }
}
