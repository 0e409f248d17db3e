//! The mistakes, the mutants, and edited solutions.

use super::{BUDGET, Codes, Origin, Said, run};
use crate::site;
use emulator::{Diagnostic, Launch};
use harness::corpus::kernels::{Kernel, STEPS};
use harness::corpus::{Change, Kind, Mutant, maps, mutants};
use harness::diagnostics::Sources;
use harness::steps::hopper::HOPPER;
use harness::{InProcess, InputKind, Inputs, KernelSource, Problem, launch, skeleton};
use mistakes::ALL;
use std::cell::RefCell;
use std::fs;
use std::path::Path;
use std::rc::Rc;
use std::thread;

/// Sizes, each with the SMs of its GPU, that together show what goes wrong in a step: rounds fewer and more than stages, several tiles for a CTA,
/// parts of tiles at the edges.
fn problems(step: u8) -> Vec<(Problem, u32)> {
    let of = |sizes: &[([u32; 3], u32)]| sizes.iter().map(|&([m, n, k], sms)| (Problem::f16(m, n, k), sms)).collect();
    match step {
        1 => of(&[([128, 128, 64], 148)]),
        2 => of(&[([128, 128, 192], 148)]),
        3 => of(&[([128, 256, 192], 148), ([256, 128, 64], 148)]),
        4 => of(&[([128, 256, 192], 148), ([200, 136, 72], 148)]),
        5 => of(&[([128, 256, 320], 148), ([128, 128, 64], 148), ([200, 136, 640], 148)]),
        6..=8 => of(&[([640, 128, 320], 2), ([640, 128, 64], 2), ([200, 392, 328], 2)]),
        9 => of(&[([1280, 256, 384], 4), ([1280, 256, 64], 4), ([456, 520, 328], 4)]),
        _ => of(&[([2560, 256, 384], 4), ([2560, 256, 64], 4), ([712, 520, 328], 4)]),
    }
}

/// Edited solutions that get what neither a mistake nor a mutant does: name, step, and what it does.
const EDITED: [(&str, u8, &str); 5] = [
    ("columns_in_chunks_1", 1, "counts the columns of A and B in chunks, where elements are asked for"),
    ("parity_is_the_round_2", 2, "waits for the number of the round in place of its parity"),
    ("chunks_in_pairs_3", 3, "stores two chunks of eight elements each to the place of the first"),
    ("stores_to_a_tile_first_4", 4, "lets threads store to the tile of A before TMA fills it"),
    ("leader_is_rank_1_9", 9, "takes the CTA of rank 1 for the leader of the pair"),
];

/// What is said of a kernel of a step at the first size at which anything is, with that size.
fn judge(step: u8, kernel: &InProcess) -> Result<(Problem, Vec<Diagnostic>), String> {
    for (problem, sms) in problems(step) {
        // What the builder refuses has no finding.
        let Ok(built) = kernel.build(&problem, sms) else { continue };
        let inputs = Inputs::new(problem, InputKind::Normal, 0);
        let launch = launch::launch(&built, &inputs).map_err(|refused| refused.to_string())?;
        let said = run(&built.ptx, &launch, BUDGET);
        if !said.is_empty() {
            return Ok((problem, said));
        }
    }
    Ok((problems(step)[0].0, Vec::new()))
}

/// Findings at the lines of a step's file, as a student has it whose step is done like `solution`; and the folder that holds this file.
fn in_the_students_file(
    step: u8,
    solution: &str,
    diagnostics: &mut [Diagnostic],
) -> Result<(Sources, tempfile::TempDir), String> {
    let file = format!("steps/step{step:02}/src/kernel.rs");
    let solved = skeleton::solved(step, solution);
    // The compiler knows the text by where it stood when it was built.
    let sources = diagnostics.iter_mut().flat_map(|diagnostic| &mut diagnostic.labels);
    for source in sources.filter_map(|label| label.place.source.as_mut()) {
        let line = solved.line(source.line);
        source.line = line.ok_or_else(|| format!("{}:{} is no line of the kernel", source.file, source.line))?;
        source.file.clone_from(&file);
    }
    let folder = tempfile::tempdir().map_err(|error| format!("no folder for the lines of a kernel: {error}"))?;
    let path = folder.path().join(&file);
    let written = path.parent().map_or(Ok(()), fs::create_dir_all).and_then(|()| fs::write(&path, solved.text));
    written.map_err(|error| super::failed(&path, &error))?;
    Ok((Sources::at(folder.path()), folder))
}

/// A mistake, shown at the lines of the step's file as it is with the mistake.
pub fn mistake(name: &str) -> Result<Said, String> {
    let mistake = ALL.iter().find(|mistake| mistake.name == name);
    let mistake = mistake.ok_or_else(|| format!("there is no mistake `{name}`"))?;
    let (problem, mut diagnostics) = judge(mistake.step, &InProcess(mistake.kernel))?;
    let (sources, folder) = in_the_students_file(mistake.step, mistake.source, &mut diagnostics)?;
    let title = mistake.says("title").next().unwrap_or_default();
    Ok(Said { about: format!(" at {problem}: the kernel {title}"), diagnostics, sources, _folder: Some(folder) })
}

/// An edited solution, shown in the same way.
pub fn edit(name: &str) -> Result<Said, String> {
    let known = EDITED.iter().find(|(known, ..)| *known == name);
    let (name, step, title) = known.ok_or_else(|| format!("there is no edit `{name}` for these pages"))?;
    let (problem, mut diagnostics) = judge(*step, &InProcess(edited::kernel(name)))?;
    let path = Path::new(edited::FOLDER).join(format!("{name}.rs"));
    let text = fs::read_to_string(&path).map_err(|error| super::failed(&path, &error))?;
    let (sources, folder) = in_the_students_file(*step, &text, &mut diagnostics)?;
    Ok(Said {
        about: format!(", step {step} at {problem}: the kernel {title}"),
        diagnostics,
        sources,
        _folder: Some(folder),
    })
}

/// The codes of the edited solutions.
pub fn edits() -> Result<Vec<(Origin, Codes)>, String> {
    let codes = |said: &[Diagnostic]| said.iter().map(|diagnostic| diagnostic.code).collect();
    let of = |(name, step, _): &(&str, u8, &str)| {
        Ok((Origin::Edit((*name).to_string()), codes(&judge(*step, &InProcess(edited::kernel(name)))?.1)))
    };
    EDITED.iter().map(of).collect()
}

/// A kernel with its mutants.
type Made = Rc<(Kernel, Vec<Mutant>)>;

thread_local! {
    /// Those that were asked for: outputs come in any order, and kernels take time to make.
    static MADE: RefCell<Vec<Made>> = const { RefCell::new(Vec::new()) };
}

fn kernel(step: u8) -> Result<Made, String> {
    if let Some(known) = MADE.with_borrow(|all| all.iter().find(|known| known.0.step == step).cloned()) {
        return Ok(known);
    }
    let kernel = Kernel::new(step)?;
    let mutants = mutants(&kernel, &Kind::ALL);
    let made = Rc::new((kernel, mutants));
    MADE.with_borrow_mut(|all| all.push(made.clone()));
    Ok(made)
}

/// The text and the launch of a mutant.
fn mutated(kernel: &Kernel, mutant: &Mutant) -> (String, Launch) {
    match &mutant.change {
        Change::Lines(lines) => (kernel.text.with(lines), kernel.launch.clone()),
        Change::Map(param, change) => (kernel.built.ptx.clone(), maps::with(&kernel.launch, *param, *change)),
    }
}

/// A mutant, by its number.
pub fn mutant(id: &str) -> Result<Said, String> {
    let unknown = || format!("there is no mutant `{id}` any more");
    let step: u8 = id.split('/').next().and_then(|step| step.parse().ok()).ok_or_else(unknown)?;
    let made = kernel(step)?;
    let (kernel, mutants) = (&made.0, &made.1);
    let mutant = mutants.iter().find(|mutant| mutant.id == id).ok_or_else(unknown)?;
    let (ptx, launch) = mutated(kernel, mutant);
    let mut diagnostics = run(&ptx, &launch, BUDGET);
    let root = site::folder().join("..");
    let (of, sources, folder) = if step == HOPPER {
        // No student's file has this kernel: its own is shown.
        ("the kernel for Hopper".to_string(), Sources::at(root), None)
    } else {
        let path = root.join(format!("solutions/src/step{step:02}.rs"));
        let solution = fs::read_to_string(&path).map_err(|error| super::failed(&path, &error))?;
        let (sources, folder) = in_the_students_file(step, &solution, &mut diagnostics)?;
        (format!("step {step}"), sources, Some(folder))
    };
    let about = format!(", {of} at {}: {}", kernel.problem, mutant.diff(&kernel.text));
    Ok(Said { about, diagnostics, sources, _folder: folder })
}

/// The codes of every mutant of a step.
fn of_step(step: u8) -> Result<Vec<(Origin, Codes)>, String> {
    let made = kernel(step)?;
    let said = |mutant: &Mutant| {
        let (ptx, launch) = mutated(&made.0, mutant);
        let codes = run(&ptx, &launch, BUDGET).iter().map(|diagnostic| diagnostic.code).collect();
        (Origin::Mutant(mutant.id.clone()), codes)
    };
    Ok(made.1.iter().map(said).collect())
}

/// The codes of every mistake and every mutant, in the order in which they are taken.
pub fn all() -> Result<Vec<(Origin, Codes)>, String> {
    let mut order = Vec::new();
    // The kernel for Hopper is no step's file, which the pages show.
    for mistake in ALL.iter().filter(|mistake| mistake.step != HOPPER) {
        let codes =
            judge(mistake.step, &InProcess(mistake.kernel))?.1.iter().map(|diagnostic| diagnostic.code).collect();
        order.push((Origin::Mistake(mistake.name.to_string()), codes));
    }
    let mut steps = STEPS.to_vec();
    steps.sort_by_key(|step| (*step == HOPPER, *step));
    let all: Vec<Result<_, String>> = thread::scope(|scope| {
        // Odd and even ones: the later a step, the longer it takes.
        let halves: Vec<_> = (0..2)
            .map(|half| {
                let own: Vec<u8> = steps.iter().copied().skip(half).step_by(2).collect();
                scope.spawn(move || own.into_iter().map(|step| (step, of_step(step))).collect::<Vec<_>>())
            })
            .collect();
        let mut all: Vec<_> = halves.into_iter().flat_map(|half| half.join().unwrap_or_default()).collect();
        all.sort_by_key(|(step, _)| steps.iter().position(|known| known == step));
        all.into_iter().map(|(_, result)| result).collect()
    });
    for of_step in all {
        order.extend(of_step?);
    }
    Ok(order)
}
