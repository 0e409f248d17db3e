//! Which hand-ins of a class are so similar that somebody should look at them.
//!
//! **Does:** compare what was written, per step, each kernel with each other; show pairs that stand out, with the lines that both have.
//! **Never does:** decide anything. Two who work together, or from one page of the book, write alike; and who has copied the
//! solution word by word is no pair here, since what the solution has weighs nothing.
//!
//! What everybody was given is known: statements of the untouched file are taken away first, whatever they are called now. So it does not
//! matter where in the file somebody wrote.

mod compare;
mod units;

pub use compare::{Found, Pair, compare};
pub use units::{Unit, Units, given, units};

use harness::skeleton;
use harness::workbook::{Workspace, name};
use std::fmt::Write;

/// The most lines of a pair that are shown.
const LINES: usize = 12;

/// A kernel of a class.
#[derive(Clone, Debug)]
pub struct Kernel {
    /// Whose it is.
    pub name: String,
    /// Its file, in the hand-in.
    pub file: String,
    /// Its text.
    pub text: String,
}

/// What everybody was given, or can read: the untouched file, and the solution that the book shows.
///
/// # Errors
/// When the checkout does not have them.
pub fn known(workspace: &Workspace, step: u8) -> Result<Units, String> {
    let mut known = given(&workspace.skeleton(step)?);
    let path = workspace.root.join("solutions/src").join(format!("{}.rs", name(step)));
    // A student edition has no solution: then it weighs what other kernels weigh.
    if let Ok(solution) = std::fs::read_to_string(path) {
        let solution = given(&solution);
        known.statements.extend(solution.statements);
        known.runs.extend(solution.runs);
    }
    Ok(known)
}

/// The same, from texts: for a step of that number.
///
/// # Errors
/// When the solution's regions are not well formed.
pub fn known_of(step: u8, solution: &str) -> Result<Units, String> {
    let untouched = skeleton::generate(step, "the solution", solution)
        .map_err(|errors| errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))?;
    let (mut known, solution) = (given(&untouched), given(solution));
    known.statements.extend(solution.statements);
    known.runs.extend(solution.runs);
    Ok(known)
}

/// Compares the kernels of one step. Gives what to print: nothing if no pair stands out.
pub fn step(step: u8, kernels: &[Kernel], known: &Units) -> (usize, String) {
    let class: Vec<Units> = kernels.iter().map(|kernel| units(&kernel.text, known)).collect();
    let found = compare(&class);
    let mut text = String::new();
    for pair in &found.pairs {
        let [a, b] = pair.who;
        // Writing to a string does not fail.
        let _ = writeln!(
            text,
            "{}: {} and {} share {:.0} % of what is rare (pairs of this class: {:.0} % in the middle; shown from {:.0} % on)",
            name(step),
            kernels[a].name,
            kernels[b].name,
            100.0 * pair.share,
            100.0 * found.median,
            100.0 * found.limit
        );
        let place = |who: usize, unit: &Unit| {
            let lines = class[who].statements[unit].clone();
            let first = kernels[who].text.lines().nth(lines.start() - 1).unwrap_or_default();
            (lines, clean(first.trim()))
        };
        let mut shared: Vec<_> =
            pair.statements.iter().take(LINES).map(|unit| (place(a, unit), place(b, unit))).collect();
        shared.sort_by_key(|((lines, _), _)| *lines.start());
        for ((here, first), (there, second)) in shared {
            let _ = writeln!(text, "  {}:{}  {first}", shown(&kernels[a]), here.start());
            let _ = writeln!(text, "  {}:{}  {second}\n", shown(&kernels[b]), there.start());
        }
        if pair.statements.len() > LINES {
            let _ = writeln!(text, "  and {} more statements\n", pair.statements.len() - LINES);
        }
    }
    (found.pairs.len(), text)
}

fn shown(kernel: &Kernel) -> String {
    format!("{}/{}", kernel.name, kernel.file)
}

/// A line of a stranger's, fit for a terminal.
fn clean(line: &str) -> String {
    const WIDTH: usize = 120;
    line.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).take(WIDTH).collect()
}
