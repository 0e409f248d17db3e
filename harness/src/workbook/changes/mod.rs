//! `diff`: what changes from one step to another. First what the kernels take and do, side by side; the source last.

mod barriers;
mod opcodes;
mod source;
mod table;

use super::workspace::{Workspace, name};
use crate::diagnostics::{self, Sources};
use crate::source::InProcess;
use crate::{BuildFailure, Built, Emitted, JudgeOptions, KernelSource, Problem, reference_kernels};
use colored::Colorize;
use emulator::syntax::ast::{Instruction, Statement};
use ptx::{Region, RegionKind, Space};
use std::fmt::Write;
use std::fs;
use table::{Row, table};

/// One of the two kernels.
struct Side {
    step: u8,
    kernel: Box<dyn KernelSource>,
    /// Its source, from the top folder.
    file: String,
}

/// What is compared of one kernel.
struct Looked {
    built: Built,
    instructions: Vec<Instruction>,
}

/// What changes from the kernel of one step to that of another: of the solutions, or of the student's own files. Without
/// a problem: one that both take.
///
/// # Errors
/// When a kernel cannot be built; the text says which and why.
pub fn changes(
    workspace: &Workspace,
    steps: [u8; 2],
    size: Option<Problem>,
    mine: bool,
    binary: impl Fn(u8) -> Result<std::path::PathBuf, String>,
) -> Result<String, String> {
    // Where there are no solutions, there are the student's own files alone.
    let mine = mine || !cfg!(feature = "solutions");
    let side = |step: u8| -> Result<Side, String> {
        if mine {
            return Ok(Side { step, kernel: Box::new(Emitted::new(binary(step)?)), file: Workspace::kernel(step) });
        }
        let kernel = reference_kernels::solution(step).ok_or_else(|| {
            format!(
                "{} has no solution in this program\n  try: `--mine` compares your own files: steps/*/src/kernel.rs.",
                name(step)
            )
        })?;
        Ok(Side { step, kernel: Box::new(InProcess(kernel)), file: Workspace::solution(step) })
    };
    let sides = [side(steps[0])?, side(steps[1])?];
    let sms = JudgeOptions::default().sms;
    let (problem, built) = build(workspace, &sides, size, sms)?;
    let texts = sides.each_ref().map(|side| {
        fs::read_to_string(workspace.root.join(&side.file))
            .map_err(|error| format!("cannot read {}: {error}", side.file))
    });
    let [old, new] = texts;
    let (old, new) = (old?, new?);
    let [first, second] = built;
    let looked = [look(first)?, look(second)?];
    let names = steps.map(name);
    let whose = if mine { "your own files" } else { "the solutions" };
    let mut text = format!("from {} to {}: {whose}, for {problem} on {sms} SMs", names[0], names[1]);
    text = format!("{}\n{}\n", text.bold(), "* marks what differs; of instructions, only those are shown".dimmed());
    text.push_str(&summary(&names, &looked));
    for (side, looked) in sides.iter().zip(&looked) {
        for todo in &looked.built.todos {
            let _ = writeln!(text, "\n{}: TODO {} is open, at {}", name(side.step), todo.id, todo.place);
        }
    }
    let files = [sides[0].file.as_str(), sides[1].file.as_str()];
    let _ = write!(text, "\n{}", source::differences(files, &old, &new));
    Ok(text)
}

/// Problems that steps take, from the one that shows most.
const PROBLEMS: [Problem; 3] =
    [Problem::f16(1024, 1024, 1024), Problem::f16(128, 128, 512), Problem::f16(128, 128, 64)];

fn build(
    workspace: &Workspace,
    sides: &[Side; 2],
    size: Option<Problem>,
    sms: u32,
) -> Result<(Problem, [Built; 2]), String> {
    let problems = size.map_or(PROBLEMS.to_vec(), |size| vec![size]);
    let mut failed = String::new();
    for problem in problems {
        let build = |side: &Side| side.kernel.build(&problem, sms).map_err(|failure| (side.step, failure));
        let failure = match build(&sides[0]).and_then(|first| Ok([first, build(&sides[1])?])) {
            Ok(built) => return Ok((problem, built)),
            Err(failure) => failure,
        };
        let (step, failure) = failure;
        let why = match &failure {
            BuildFailure::Rejected(errors) => {
                let sources = Sources::at(&workspace.root);
                diagnostics::first_few(errors.iter().map(|error| diagnostics::refused(error, &sources)).collect()).text
            }
            other => other.to_string(),
        };
        let why = crate::report::paint(why.trim_end());
        failed = format!("{} gives no kernel for {problem}\n\n{}", name(step), why.trim_end());
        // Another size helps only where this one is refused.
        if !matches!(failure, BuildFailure::Rejected(_)) {
            break;
        }
    }
    Err(failed)
}

fn look(built: Built) -> Result<Looked, String> {
    let module = emulator::syntax::parse(&built.ptx).map_err(|errors| {
        let errors: Vec<String> = errors.iter().map(ToString::to_string).collect();
        format!("the PTX cannot be read: {}", errors.join("\n"))
    })?;
    let mut instructions = Vec::new();
    for body in module.functions.iter().filter_map(|function| function.body.as_ref()) {
        collect(body, &mut instructions);
    }
    Ok(Looked { built, instructions })
}

fn collect(statements: &[Statement], into: &mut Vec<Instruction>) {
    for statement in statements {
        match statement {
            Statement::Instruction(instruction) => into.push((**instruction).clone()),
            Statement::Block(statements) => collect(statements, into),
            _ => {}
        }
    }
}

/// All but the source.
fn summary(names: &[String; 2], looked: &[Looked; 2]) -> String {
    let both = |of: &dyn Fn(&Looked) -> String| looked.each_ref().map(|looked| Some(of(looked)));
    let extents = |[x, y, z]: [u32; 3]| format!("{x} x {y} x {z}");
    let row = |label: &str, cells| Row { label: label.to_string(), cells };
    let launch = vec![
        row("grid, CTAs", both(&|looked| extents(looked.built.grid))),
        row("cluster, CTAs", both(&|looked| extents(looked.built.cluster))),
        row("block, threads", both(&|looked| extents(looked.built.block))),
        row("shared memory, bytes", both(&|looked| looked.built.dynamic_shared.to_string())),
    ];
    let maps = |wanted: fn(&Region) -> bool, unit| {
        table::joined(looked.each_ref().map(|looked| memory(&looked.built.regions, wanted, unit)))
    };
    let barriers = table::joined(looked.each_ref().map(|looked| barriers::rows(&looked.built, &looked.instructions)));
    let shared = maps(|region| region.space == Space::DynamicShared && region.kind != RegionKind::Barrier, "bytes");
    let tensor = maps(|region| region.space == Space::Tensor, "columns");
    let mut text = table("launch", names, &launch);
    text.push_str(&table("barriers: stages x arrivals", names, &barriers));
    text.push_str(&table("shared memory", names, &shared));
    text.push_str(&table("tensor memory", names, &tensor));
    let counts = looked.each_ref().map(|looked| opcodes::counts(&looked.instructions));
    text.push_str(&table("instructions of the PTX text", names, &opcodes::rows(&counts)));
    text
}

/// Regions by name: `4 x 16384 bytes at 0`.
fn memory(regions: &[Region], wanted: fn(&Region) -> bool, unit: &str) -> Vec<(String, String)> {
    let mut regions: Vec<&Region> = regions.iter().filter(|region| wanted(region)).collect();
    regions.sort_by_key(|region| region.offset);
    let mut rows: Vec<(String, String)> = Vec::new();
    for region in &regions {
        if rows.iter().any(|(name, _)| *name == region.name) {
            continue;
        }
        let stages: Vec<&&Region> = regions.iter().filter(|other| other.name == region.name).collect();
        let times = if region.stage.is_some() { format!("{} x ", stages.len()) } else { String::new() };
        // Stages lie one behind the other; where they do not, each says where it lies.
        let packed = stages.windows(2).all(|pair| pair[0].offset + pair[0].bytes == pair[1].offset);
        let offsets: Vec<String> = stages.iter().map(|stage| stage.offset.to_string()).collect();
        let at = if packed { region.offset.to_string() } else { offsets.join(", ") };
        rows.push((region.name.clone(), format!("{times}{} {unit} at {at}", region.bytes)));
    }
    rows
}
