//! The sizes around the depth of the ring ([`Step::trips`]): which there are, and that a kernel which is wrong at one of them alone is told so.

use harness::steps::{BLK_K, Step};
use harness::{BuildFailure, Built, InProcess, JudgeOptions, KernelSource, Outcome, Part, Problem, judge, step};
use std::collections::BTreeSet;

/// Rounds over K, and tiles of the first worker of how many.
fn counts(step: &Step) -> BTreeSet<(u32, u32)> {
    let of = |problem: Problem, sms: Option<u32>| {
        let workers = sms.map_or(1, |sms| sms / step.shape.ctas);
        let tiles = problem.m / step.shape.tile[0];
        (problem.k / BLK_K, if workers > tiles { 0 } else { tiles })
    };
    step.trips().into_iter().map(|case| of(case.problem, case.sms)).collect()
}

#[test]
fn rounds_and_tiles_around_the_depth_are_among_the_sizes_of_every_step() {
    for number in 2..=10 {
        let step = step(number).expect("the step exists");
        let depth = step.shape.depth;
        let tiles = if step.shape.persistent { 0..=3 } else { 1..=1 };
        let rounds = [1, depth.saturating_sub(1), depth, depth + 1, 2 * depth + 1];
        let all = rounds.into_iter().filter(|&n| n > 0).flat_map(|n| tiles.clone().map(move |tiles| (n, tiles)));
        assert_eq!(counts(step), all.collect(), "step {number}");
    }
}

/// The solution, but for one size.
struct Wrong {
    kernel: InProcess,
    at: Problem,
}

impl KernelSource for Wrong {
    fn build(&self, problem: &Problem, sms: u32) -> Result<Built, BuildFailure> {
        let mut built = self.kernel.build(problem, sms)?;
        if *problem == self.at {
            let kept = |line: &&str| !line.contains("tcgen05.wait::ld");
            built.ptx = built.ptx.lines().filter(kept).map(|line| format!("{line}\n")).collect();
        }
        Ok(built)
    }
}

#[test]
fn a_kernel_that_is_wrong_one_round_behind_the_depth_is_told_so() {
    let step = step(5).expect("the step exists");
    let rounds = step.shape.depth + 1;
    let at = step.trips().into_iter().map(|case| case.problem).find(|problem| problem.k == rounds * BLK_K);
    let at = at.expect("it is among the sizes");
    let kernel = InProcess(solutions::step05::kernel);
    let options = JudgeOptions::default();
    let verdict = judge(step, &Wrong { kernel, at }, &options);
    let failed: Vec<String> = [Part::Correct, Part::RaceFree]
        .into_iter()
        .filter_map(|part| match verdict.part(part) {
            Outcome::Failed { title, text, .. } => Some(format!("{title}\n{text}")),
            _ => None,
        })
        .collect();
    let size = format!("{}x{}x{}", at.m, at.n, at.k);
    assert!(failed.iter().any(|said| said.contains(&size)), "{size} is not told: {failed:#?}");
}
