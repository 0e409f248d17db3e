//! A kernel that is timed, by its name: its builds, its sizes, and what is said of a size that it does not take.

use super::binary;
use super::workspace::{Workspace, name};
use crate::bench;
use crate::problem::Problem;
use crate::source::{Built, KernelSource};
use crate::steps::Step;
use crate::{BuildFailure, Emitted, InProcess, JudgeOptions, reference_kernels};
use ptx::Dtype;

/// The kernel beside the ladder.
pub const HOPPER: &str = "hopper";

/// A kernel that is timed.
pub struct Kernel {
    /// What it is called, in words.
    pub name: String,
    /// The step that it solves; `None`: the kernel for Hopper.
    pub step: Option<&'static Step>,
    source: Box<dyn KernelSource>,
}

impl Kernel {
    /// A kernel by its name: a step of the checkout, or a solution.
    ///
    /// # Errors
    /// When there is none of this name, or it does not compile.
    pub fn named(workspace: &Workspace, kernel: &str, solution: bool) -> Result<Kernel, String> {
        if kernel == HOPPER {
            let found = reference_kernels::hopper()
                .ok_or("the Hopper kernel is one of the solutions, and this program has none")?;
            return Ok(Kernel { name: HOPPER.to_string(), step: None, source: Box::new(InProcess(found)) });
        }
        let number = number(workspace, kernel)?;
        let step = crate::step(number);
        if solution {
            let kernel = reference_kernels::solution(number);
            let kernel = kernel.ok_or_else(|| format!("{} has no solution in this program", name(number)))?;
            let name = format!("{}, the solution", name(number));
            return Ok(Kernel { name, step, source: Box::new(InProcess(kernel)) });
        }
        Ok(Kernel { name: name(number), step, source: Box::new(Emitted::new(binary(workspace, number)?)) })
    }

    /// One for tests.
    #[cfg(test)]
    pub fn of_step(number: u8, kernel: ptx::KernelFn) -> Kernel {
        Kernel { name: name(number), step: crate::step(number), source: Box::new(InProcess(kernel)) }
    }

    /// What is timed: cubes of these edges; without any, those that cuBLAS is compared at, or the step's own sizes where none of them is
    /// a cube.
    pub fn sizes(&self, edges: &[u32]) -> Vec<Problem> {
        match self.step {
            Some(step) if edges.is_empty() && !step.sizes.iter().any(is_cube) => step.sizes.to_vec(),
            _ => cubes(if edges.is_empty() { &bench::SIZES } else { edges }),
        }
    }

    /// What a bundle carries to be timed: cubes of these edges; without any, the sizes of the step's table.
    pub fn carried(&self, edges: &[u32]) -> Vec<Problem> {
        match self.step {
            Some(step) if edges.is_empty() => step.sizes.to_vec(),
            _ => self.sizes(edges),
        }
    }

    /// The kernel for a problem.
    ///
    /// # Errors
    /// When a TODO is open, or there is none for this problem.
    pub fn build(&self, problem: &Problem, sms: u32) -> Result<Built, String> {
        let name = &self.name;
        let built = self.source.build(problem, sms).map_err(|failure| self.why_not(problem, sms, &failure))?;
        match built.todos.first() {
            Some(todo) => Err(format!(
                "{name} is not done yet: TODO {} is open ({})\n  try: Finish it first, or take `--solution` where the solutions are.",
                todo.id, todo.place
            )),
            None => Ok(built),
        }
    }

    /// Why there is no kernel for a problem: where one of the step's own sizes is built, the size is the reason.
    fn why_not(&self, problem: &Problem, sms: u32, failure: &BuildFailure) -> String {
        let name = &self.name;
        let own = self.step.map(|step| step.sizes).unwrap_or_default();
        let refused = match failure {
            BuildFailure::Rejected(errors) if !own.contains(problem) => errors.first(),
            _ => None,
        };
        let made_for = own.first().filter(|first| self.source.build(first, sms).is_ok());
        let (Some(refused), Some(_)) = (refused, made_for) else {
            return format!("{name} does not build for {problem}: {failure}");
        };
        let edges: Vec<u32> = own.iter().filter(|size| is_cube(size)).map(|size| size.m).collect();
        let out = match edges[..] {
            [] => format!("Leave `--sizes` out: it is timed at {} then.", list(own)),
            _ => format!("Give `--sizes` some that the step is made for, as {}.", list(edges)),
        };
        format!("{name} does not take {problem}: {}: {}\n  try: {out}", refused.place, refused.message)
    }
}

/// Whether all of these are kernels that there are: before the first is built, which takes a while.
///
/// # Errors
/// The first name that is none.
pub fn are_known(workspace: &Workspace, kernels: &[String]) -> Result<(), String> {
    kernels.iter().filter(|kernel| *kernel != HOPPER).try_for_each(|kernel| number(workspace, kernel).map(drop))
}

fn number(workspace: &Workspace, kernel: &str) -> Result<u8, String> {
    let named = workspace.named(kernel);
    named.map_err(|error| format!("{error}\n  `{HOPPER}` is the kernel for an H100 or H200."))
}

/// Streaming multiprocessors that a kernel is built for where no GPU says it: those of the GPU that runs its PTX.
pub fn sms_for(kernel: &str) -> u32 {
    if kernel == HOPPER { crate::steps::hopper::SMS } else { JudgeOptions::default().sms }
}

fn is_cube(problem: &Problem) -> bool {
    problem.m == problem.n && problem.n == problem.k
}

fn cubes(edges: &[u32]) -> Vec<Problem> {
    edges.iter().map(|&n| Problem { m: n, n, k: n, dtype: Dtype::F16 }).collect()
}

/// `1024, 2048`.
pub fn list<T: std::fmt::Display>(all: impl IntoIterator<Item = T>) -> String {
    all.into_iter().map(|one| one.to_string()).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;

    fn one_tile(k: &mut ptx::Cta, gemm: &ptx::Gemm) {
        k.threads(32);
        k.require((gemm.m, gemm.n) == (128, 128), "this solves 128x128");
    }

    fn whole_tiles(k: &mut ptx::Cta, gemm: &ptx::Gemm) {
        k.threads(32);
        k.require(gemm.m.is_multiple_of(128), "this solves multiples of 128");
    }

    fn nothing(k: &mut ptx::Cta, _: &ptx::Gemm) {
        k.threads(32);
        k.require(false, "this solves nothing");
    }

    /// Without `--sizes`, every step is timed at sizes that it takes; `bench step01` once asked it for a cube of 1024.
    #[test]
    fn each_step_has_sizes_to_be_timed_at() {
        for step in crate::STEPS {
            let Some(kernel) = reference_kernels::solution(step.number) else { continue };
            let kernel = Kernel::of_step(step.number, kernel);
            let sizes = kernel.sizes(&[]);
            assert!(!sizes.is_empty(), "step {}", step.number);
            for problem in sizes {
                kernel.build(&problem, sms_for("")).unwrap_or_else(|error| panic!("step {}: {error}", step.number));
            }
        }
        assert_eq!(Kernel::of_step(1, one_tile).sizes(&[]), crate::step(1).expect("step 1").sizes);
        assert_eq!(Kernel::of_step(7, one_tile).sizes(&[]).len(), bench::SIZES.len());
        assert_eq!(Kernel::of_step(1, one_tile).sizes(&[256]), [Problem::f16(256, 256, 256)]);
        assert_eq!(Kernel::of_step(3, one_tile).carried(&[]), crate::step(3).expect("step 3").sizes);
    }

    #[test]
    fn a_size_that_a_step_does_not_take_is_named_with_those_that_it_takes() {
        let refused = |number, kernel, edge| {
            let failed = Kernel::of_step(number, kernel).build(&Problem::f16(edge, edge, edge), 148).map(|_| ());
            let text = failed.expect_err("it is not solved");
            // The line is this file's.
            let (before, rest) = text.split_once("kernel.rs:").expect("a place");
            let rest = rest.trim_start_matches(|c: char| c.is_ascii_digit());
            format!("{}{rest}\n", before.replace("harness/src/workbook/", "…"))
        };
        expect![[r#"
            step01 does not take 1024x1024x1024 f16: …: this solves 128x128; this problem is 1024x1024x1024 f16
              try: Leave `--sizes` out: it is timed at 128x128x64 f16, 128x128x64 bf16 then.
            step03 does not take 1000x1000x1000 f16: …: this solves multiples of 128; this problem is 1000x1000x1000 f16
              try: Give `--sizes` some that the step is made for, as 256, 512, 1024, 2048.
            step03 does not build for 1024x1024x1024 f16: …: this solves nothing; this problem is 1024x1024x1024 f16
              try: Build the kernel for a problem that it can solve, or correct this condition.
            step03 does not build for 1000x1000x1000 f16: …: this solves nothing; this problem is 1000x1000x1000 f16
              try: Build the kernel for a problem that it can solve, or correct this condition.
        "#]]
        .assert_eq(
            &[
                refused(1, one_tile, 1024),
                refused(3, whole_tiles, 1000),
                refused(3, nothing, 1024),
                refused(3, nothing, 1000),
            ]
            .concat(),
        );
    }
}
