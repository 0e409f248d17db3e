//! Whether a kernel is the same each time it is built for one problem.
//!
//! A kernel function is a program on the CPU: it can read a clock, draw random numbers, or go through a `HashMap`, whose order is another in
//! each process. Then a verdict says nothing of the kernel that is built the next time, and nobody can repeat it.

use crate::ptxas;
use crate::source::{BuildFailure, Built};

/// What is said of a kernel that is not the same when it is built again.
const CHANCE: &str = "the kernel is another each time it is built";

/// What is shown of a line of PTX.
const SHOWN: usize = 80;

/// What to build a kernel from.
const HELP: &str = "Build it from what `Gemm` says alone: no clock, no random number, and no order of a `HashMap` (that of a `BTreeMap` is \
                    always the same).";

/// Builds a kernel, and once more.
///
/// # Errors
/// That it cannot be built; or is not the same the second time, or built only once.
pub(super) fn twice(build: impl Fn() -> Result<Built, BuildFailure>) -> Result<Built, BuildFailure> {
    let first = build();
    // What takes too long takes as long again, and what this machine does not give is nobody's.
    if let Err(BuildFailure::NoAnswer { .. } | BuildFailure::Here { .. }) = first {
        return first;
    }
    match (first, build()) {
        (Ok(first), Ok(again)) => varies(&first, &again).map_or(Ok(first), Err),
        (Err(failure), Err(_)) | (Ok(_), Err(failure @ BuildFailure::Here { .. })) => Err(failure),
        (Ok(_), Err(failure)) | (Err(failure), Ok(_)) => {
            let message = format!("{CHANCE}: once there is one, and once there is none:\n{failure}");
            Err(BuildFailure::Varies { message, place: None, help: HELP.to_string() })
        }
    }
}

/// That two kernels for one problem are not the same: where they part.
fn varies(first: &Built, again: &Built) -> Option<BuildFailure> {
    if first == again {
        return None;
    }
    let (what, place) = match parting(&first.ptx, &again.ptx) {
        Some((line, [was, is])) => (format!("`{was}` became `{is}`"), ptxas::source(&first.ptx, line)),
        None => ("its launch is another, and its PTX the same".to_string(), None),
    };
    Some(BuildFailure::Varies { message: format!("{CHANCE}: {what}"), place, help: HELP.to_string() })
}

/// The first line in which two texts differ: its number, and the line of each.
fn parting(first: &str, again: &str) -> Option<(u32, [String; 2])> {
    let (mut first, mut again) = (first.lines(), again.lines());
    let mut number = 1;
    loop {
        let lines = [first.next(), again.next()];
        match lines {
            [None, None] => return None,
            [was, is] if was == is => number += 1,
            lines => return Some((number, lines.map(|line| line.map_or("nothing".to_string(), short)))),
        }
    }
}

fn short(line: &str) -> String {
    let line = line.trim();
    let mut short: String = line.chars().take(SHOWN).collect();
    if short.len() < line.len() {
        short.push('…');
    }
    short
}

#[cfg(test)]
mod tests {
    use super::*;

    const PTX: &str =
        ".file 1 \"steps/step01/src/kernel.rs\"\n.loc 1 39 18\nmov.u32 %r1, 4;\n.loc 1 40 11\nmov.u32 %r2, 5;\nret;\n";

    fn said(change: impl FnOnce(&mut Built)) -> Option<String> {
        let first = Built { ptx: PTX.to_string(), grid: [1, 1, 1], ..Built::default() };
        let mut again = first.clone();
        change(&mut again);
        varies(&first, &again).map(|failure| failure.to_string())
    }

    #[test]
    fn kernels_part_at_a_line_of_rust() {
        assert_eq!(said(|_| ()), None);
        let number = said(|again| again.ptx = PTX.replace("%r2, 5", "%r2, 6")).expect("it is another");
        let line = "steps/step01/src/kernel.rs:40: the kernel is another each time it is built: `mov.u32 %r2, 5;` became `mov.u32 %r2, 6;`";
        assert!(number.starts_with(line) && number.contains("\n  try: "), "{number}");
        let shorter = said(|again| again.ptx = PTX.replace("ret;\n", "")).expect("it is another");
        assert!(shorter.contains("rs:40: ") && shorter.contains("`ret;` became `nothing`"), "{shorter}");
    }

    #[test]
    fn a_kernel_that_is_built_only_once_is_another_each_time() {
        use std::cell::Cell;
        let panicked = || BuildFailure::Panicked { message: "coin".to_string(), place: None };
        let said = |answers: [Result<Built, BuildFailure>; 2]| {
            let count = Cell::new(0);
            let all = twice(|| answers[count.replace(count.get() + 1)].clone());
            (all.map_err(|failure| failure.to_string()), count.get())
        };
        let built = Built::default;
        assert_eq!(said([Ok(built()), Ok(built())]), (Ok(built()), 2));
        for answers in [[Ok(built()), Err(panicked())], [Err(panicked()), Ok(built())]] {
            let why = said(answers).0.expect_err("it is drawn");
            assert!(why.starts_with("the kernel is another each time it is built: ") && why.contains("coin"), "{why}");
        }
        assert_eq!(said([Err(panicked()), Err(panicked())]), (Err(panicked().to_string()), 2));
        let late = || BuildFailure::no_answer("it took longer");
        assert_eq!(
            said([Err(late()), Ok(built())]),
            (Err("it took longer".to_string()), 1),
            "it is not waited for twice"
        );
        let here = || BuildFailure::Here { message: "no room".to_string() };
        assert_eq!(said([Ok(built()), Err(here())]), (Err("no room".to_string()), 2));
    }

    #[test]
    fn what_has_no_line_is_said_without_one() {
        let grid = said(|again| again.grid = [2, 1, 1]).expect("it is another");
        assert!(grid.starts_with("the kernel is another each time") && grid.contains("its launch"), "{grid}");
        let head = said(|again| again.ptx = format!("// {}\n{PTX}", "é".repeat(500))).expect("it is another");
        assert!(head.len() < 700 && head.contains("…`"), "{head}");
        // A place that is none: the text may be anybody's.
        let odd = |loc: &str| {
            let first = Built { ptx: format!("{loc}\na\n"), ..Built::default() };
            let again = Built { ptx: format!("{loc}\nb\n"), ..Built::default() };
            varies(&first, &again).expect("it is another")
        };
        for loc in [".loc 1", ".loc 1 x 2", ".file 1 \"x\n.loc 1 99999999999 1", ".loc 7 1 1 1", ""] {
            assert!(matches!(odd(loc), BuildFailure::Varies { place: None, .. }), "{loc}");
        }
    }
}
