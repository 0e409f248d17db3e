//! The solutions, each at a small size at which all of it is used.

use super::text::Text;
use crate::inputs::{InputKind, Inputs};
use crate::launch;
use crate::problem::Problem;
use crate::reference::Reference;
use crate::reference_kernels;
use crate::source::{Built, InProcess, KernelSource};
use crate::steps::hopper::HOPPER;
use crate::workbook::name;
use emulator::Launch;
use std::sync::Arc;

/// A solution, and what it is run on.
#[derive(Clone, Debug)]
pub struct Kernel {
    /// The step.
    pub step: u8,
    /// The problem.
    pub problem: Problem,
    /// The kernel.
    pub built: Built,
    /// Its text.
    pub text: Text,
    /// The launch.
    pub launch: Launch,
    /// A and B.
    pub inputs: Inputs,
    /// What D must be.
    pub reference: Arc<Reference>,
    /// The same solution of the same problem on a GPU with more SMs, where that makes a difference.
    pub idle: Option<Idle>,
}

/// A launch in which one CTA, or cluster, has no tile. It exists of kernels that stay on their SM: others have a CTA for each tile.
#[derive(Clone, Debug)]
pub struct Idle {
    /// The text. Line by line it is the kernel's, but for numbers of tiles and SMs.
    pub text: Text,
    /// The launch.
    pub launch: Launch,
}

/// All steps, the kernel for Hopper among them.
pub const STEPS: [u8; 11] = [HOPPER, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10];

/// The problem of a step, and the SMs of its GPU: more rounds over K than a ring has stages, and not a multiple of them; several
/// CTAs or clusters, and of kernels that stay on their SM one with two or three tiles.
fn case(step: u8) -> (Problem, u32) {
    match step {
        HOPPER => (Problem::f16(768, 256, 768), 4),
        1 => (Problem::f16(128, 128, 64), 148),
        2 => (Problem::f16(128, 128, 192), 148),
        3 | 4 => (Problem::f16(128, 256, 192), 148),
        5 => (Problem::f16(128, 256, 320), 148),
        6 | 7 => (Problem::f16(640, 128, 320), 2),
        8 => (Problem::f16(640, 128, 384), 2),
        9 => (Problem::f16(1280, 256, 384), 4),
        _ => (Problem::f16(2560, 256, 384), 4),
    }
}

impl Kernel {
    /// The solution of a step.
    ///
    /// # Errors
    /// When there is none in this program.
    pub fn new(step: u8) -> Result<Kernel, String> {
        let label = name(step);
        let kernel = reference_kernels::solution(step);
        let kernel = kernel.ok_or_else(|| format!("{label} has no solution in this program"))?;
        let (problem, sms) = case(step);
        let built = InProcess(kernel)
            .build(&problem, sms)
            .map_err(|error| format!("the solution of {label} does not build for {problem}: {error}"))?;
        let inputs = Inputs::new(problem, InputKind::Normal, 0);
        let launch = launch::launch(&built, &inputs).map_err(|refused| refused.to_string())?;
        let shape = crate::step(step).map(|step| step.shape).filter(|shape| shape.persistent);
        let idle = shape.map(|shape| {
            let workers = shape.tiles(&problem).iter().product::<u32>() + 1;
            let built = InProcess(kernel).build(&problem, workers * shape.ctas);
            let built = built.map_err(|error| format!("the solution of {label} does not build: {error}"))?;
            let launch = launch::launch(&built, &inputs).map_err(|refused| refused.to_string())?;
            Ok::<Idle, String>(Idle { text: Text::new(&built.ptx), launch })
        });
        let (text, reference) = (Text::new(&built.ptx), Arc::new(Reference::new(&inputs)));
        Ok(Kernel { step, problem, built, text, launch, inputs, reference, idle: idle.transpose()? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A mutant is the same change of both texts, by lines: they may differ in numbers alone, and in few lines.
    #[test]
    fn with_idle_ctas_a_kernel_is_the_same_but_for_numbers() {
        let letters = |line: &str| line.chars().filter(|c| !c.is_ascii_digit()).collect::<String>();
        for step in STEPS {
            let kernel = Kernel::new(step).unwrap();
            let Some(idle) = &kernel.idle else {
                assert!((1..=5).contains(&step), "step {step} stays on its SM");
                continue;
            };
            let (lines, others) = (&kernel.text.lines, &idle.text.lines);
            assert_eq!(lines.len(), others.len(), "step {step}");
            let differ: Vec<(&String, &String)> = lines.iter().zip(others).filter(|(a, b)| a != b).collect();
            assert!(
                differ.iter().all(|(a, b)| letters(a) == letters(b)) && differ.len() <= 24,
                "step {step}: {differ:#?}"
            );
            let ctas = |launch: &Launch| launch.grid.iter().product::<u32>();
            assert!(ctas(&idle.launch) > ctas(&kernel.launch), "step {step}");
        }
    }
}
