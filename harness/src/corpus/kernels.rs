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
    pub reference: Reference,
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
        let (text, reference) = (Text::new(&built.ptx), Reference::new(&inputs));
        Ok(Kernel { step, problem, built, text, launch, inputs, reference })
    }
}
