//! The kernel for Hopper: no step, and judged as one. It runs on GPUs that people own, so the verdict itself is tried on silicon.

use super::{Case, Copies, Shape, Step, structure};
use crate::observe::Observation;
use crate::problem::Problem;
use emulator::{CopyKind, EventKind};
use ptx::Dtype;

/// Its number: it stands before the ladder.
pub const HOPPER: u8 = 0;

/// What it is built for: an H100 SXM and an H200 have so many streaming multiprocessors.
pub const SMS: u32 = 132;

const SHAPE: Shape = Shape {
    tile: [256, 256],
    threads: 384,
    ctas: 2,
    copies: Copies::Tma,
    persistent: true,
    depth: 4,
    consumers: 2,
    specialised: true,
};

const fn on(m: u32, n: u32, k: u32, dtype: Dtype, sms: Option<u32>) -> Case {
    Case { problem: Problem { m, n, k, dtype }, sms }
}

/// Two tiles for a cluster that is alone, more rounds than stages; tiles cut off on every side; fewer rounds than stages.
pub const STEP: Step = Step {
    number: HOPPER,
    title: "two CTAs share B, wgmma",
    points: 0,
    shape: SHAPE,
    observed: on(512, 256, 512, Dtype::F16, Some(2)),
    sizes: &[Problem::f16(1024, 1024, 1024), Problem::f16(2048, 2048, 2048)],
    cases: &[
        on(512, 256, 64, Dtype::F16, Some(2)),
        on(256, 512, 192, Dtype::F16, Some(2)),
        on(512, 256, 320, Dtype::Bf16, Some(2)),
        on(1160, 264, 136, Dtype::F16, Some(6)),
        on(1, 8, 8, Dtype::Bf16, None),
        on(300, 520, 72, Dtype::F16, None),
    ],
    inputs_per_size: 3,
    timed: Problem::f16(2048, 2048, 2048),
    milestones: &[],
    structure: check,
};

fn check(run: &Observation) -> Result<String, Vec<String>> {
    let problem = &run.inputs.problem;
    let mut wrong: Vec<String> = SHAPE.launched_otherwise(&run.built, problem, run.sms).into_iter().collect();
    structure::only_tma(run, &mut wrong);
    let mut products = 0;
    for event in &run.report.trace {
        let EventKind::Wgmma(mma) = &event.kind else { continue };
        products += mma.shape.iter().map(|&extent| u64::from(extent)).product::<u64>();
        if mma.shape != [64, 256, 16] {
            let at = structure::at(event);
            wrong.push(format!("an MMA of a warpgroup is 64x256x16; this kernel has one of {:?} ({at})", mma.shape));
            break;
        }
    }
    let all = SHAPE.products(problem);
    if wrong.is_empty() && products != all {
        wrong
            .push(format!("the product takes {all} multiplications, whole tiles counted; this kernel does {products}"));
    }
    let shared = run.copies().any(|(_, copy)| copy.kind == CopyKind::Load && copy.ctas.len() == 2);
    if !shared {
        wrong.push("each CTA loads half of B, for both; in this kernel no load goes to two CTAs".to_string());
    }
    match wrong.is_empty() {
        true => {
            Ok("a cluster of two CTAs for each two SMs, TMA moves A, B and D, each half of B to both CTAs".to_string())
        }
        false => Err(wrong),
    }
}
