//! Which hand-ins of a class are so similar that somebody should look at them.
//!
//! **Does:** read the kernels of a class ([`Class`]); compare what was written, per step, each kernel with each other; show groups that
//! stand out, with the lines that they share. **Never does:** decide anything. Two who work together, or from one page of the book, write
//! alike; and who has copied the solution word by word is in no group, since what the solution has weighs nothing.
//!
//! What everybody was given is known: statements of the untouched file are taken away first, whatever they are called now. So it does not
//! matter where in the file somebody wrote.

mod class;
mod compare;
mod groups;
mod lines;
mod units;

pub use class::Class;
pub use compare::{Found, Group, compare};
pub use units::{Unit, Units, given, units};

use harness::answers::plain;
use harness::skeleton;
use harness::workbook::{Workspace, name};
use std::fmt::Write;
use units::{Written, written};

/// The most statements of a group that are shown, and the most lines: each statement has one for each kernel.
const STATEMENTS: usize = 12;
const LINES: usize = 30;

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

/// Compares the kernels of one step. Gives how many groups stand out, and what to print: nothing if none does.
pub fn step(step: u8, kernels: &[Kernel], known: &Units) -> (usize, String) {
    let class: Vec<Units> = kernels.iter().map(|kernel| units(&kernel.text, known)).collect();
    let found = compare(&class);
    let mut text = String::new();
    for group in &found.groups {
        let names: Vec<String> = group.who.iter().map(|who| clean(&kernels[*who].name)).collect();
        // Writing to a string does not fail.
        let _ = writeln!(
            text,
            "{}: {} share {} of what is rare (two of this class: {:.0} % in the middle; shown from {:.0} % on)",
            name(step),
            listed(&names),
            percent(group.share),
            100.0 * found.median,
            100.0 * found.limit
        );
        let most = (LINES / group.who.len()).clamp(2, STATEMENTS);
        let of_group: Vec<&Kernel> = group.who.iter().map(|who| &kernels[*who]).collect();
        let written: Vec<Vec<Written>> = of_group.iter().map(|kernel| written(&kernel.text, known)).collect();
        let written: Vec<&[Written]> = written.iter().map(Vec::as_slice).collect();
        let mut shared: Vec<_> =
            group.statements.iter().take(most).filter_map(|unit| lines::of(*unit, &written)).collect();
        shared.sort_by_key(|places| places.first().copied());
        // Several statements may stand on one line.
        shared.dedup();
        for places in shared {
            for (who, line) in places {
                let words = of_group[who].text.lines().nth(line - 1).unwrap_or_default();
                let _ = writeln!(text, "  {}:{line}  {}", shown(of_group[who]), clean(words));
            }
            text.push('\n');
        }
        if group.statements.len() > most {
            let _ = writeln!(text, "  and {} more statements\n", group.statements.len() - most);
        }
    }
    (found.groups.len(), text)
}

/// `a, b and c`.
fn listed(names: &[String]) -> String {
    match names {
        [rest @ .., last] if !rest.is_empty() => format!("{} and {last}", rest.join(", ")),
        _ => names.concat(),
    }
}

/// `85 %`, or `70 to 85 %`.
fn percent(share: [f64; 2]) -> String {
    let [least, most] = share.map(|share| format!("{:.0}", 100.0 * share));
    if least == most { format!("{most} %") } else { format!("{least} to {most} %") }
}

fn shown(kernel: &Kernel) -> String {
    format!("{}/{}", clean(&kernel.name), clean(&kernel.file))
}

/// A stranger's words on one line, fit for a terminal.
fn clean(line: &str) -> String {
    const WIDTH: usize = 120;
    let line: String = line.trim().chars().take(WIDTH).collect();
    plain(&line).replace(['\t', '\n'], " ")
}
