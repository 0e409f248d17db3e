//! Kernels whose D is right and that are wrong nevertheless; and what costs nothing.

use harness::{InProcess, JudgeOptions, Outcome, Part, Problem, Step, Verdict, judge, report, step};
use ptx::prelude::*;

const NONE: u8 = 0;
const DECOY: u8 = 1;
const OVERWRITES_A: u8 = 2;
const NO_TENSOR_FENCE: u8 = 3;
const TURNED: u8 = 4;

/// The solution, and what else it does.
fn tile<const TRICK: u8>(k: &mut Cta, gemm: &Gemm) {
    k.threads(128);
    let a = k.tile("A", gemm.dtype, 128, 64, Swizzle::B128);
    let b = k.tile("B", gemm.dtype, 128, 64, Swizzle::B128);
    let mma_done = k.barrier("mma_done");
    let tmem = k.warp(0, |w| {
        w.elect_one(|t| {
            t.barrier_init(mma_done, 1);
            t.fence_mbarrier_init();
        });
        w.tmem_alloc("accumulator", 128)
    });
    k.sync();
    let accumulator = tmem.address(k);
    let thread = k.thread_index();
    let (first_row, column) = (thread / 8, thread % 8 * 8);
    let zero = k.variable::<U32>(0).as_b32();
    for pass in 0..8 {
        let row = first_row + pass * 16;
        let from_a = k.load_global_16(gemm.a.at(row, column));
        let from_b = k.load_global_16(gemm.b.at(row, column));
        k.store_shared_16(a.at(row, column), if TRICK == DECOY { [zero; 4] } else { from_a });
        k.store_shared_16(b.at(row, column), from_b);
        if TRICK == OVERWRITES_A {
            k.store_global_16(gemm.a.at(row, column), from_b); // overwrites A
        }
    }
    k.fence_proxy_async();
    k.sync();
    k.warp(0, |w| {
        w.elect_one(|t| {
            for step in 0..4 {
                let (of_a, of_b) = (a.k_slice(step * 16), b.k_slice(step * 16));
                let (left, right) = if TRICK == TURNED { (of_b, of_a) } else { (of_a, of_b) };
                t.mma(accumulator, left, right, step > 0);
            }
            t.commit(mma_done);
        });
    });
    k.wait(mma_done, 0);
    if TRICK != NO_TENSOR_FENCE {
        k.tcgen05_fence_after();
    }
    let sums = k.tmem_load::<128>(accumulator.lane(thread / 32 * 32));
    k.tmem_wait_load();
    match TRICK {
        DECOY => product_by_threads(k, gemm, thread),
        TURNED => {
            for (row, sum) in (0..).zip(sums) {
                let element = k.round(gemm.dtype, sum);
                k.store_global_b16(gemm.d.at(row, thread), element);
            }
        }
        _ => {
            let chunks = k.pack_chunks(gemm.dtype, &sums);
            for (chunk, column) in chunks.into_iter().zip((0..).step_by(8)) {
                k.store_global_16(gemm.d.at(thread, column), chunk);
            }
        }
    }
    k.tcgen05_fence_before();
    k.sync();
    k.warp(0, |w| w.tmem_dealloc(tmem));
}

/// D without the tensor core: each thread a row.
fn product_by_threads(k: &mut Cta, gemm: &Gemm, row: U32) {
    let widen = format!("cvt.f32.{}", gemm.dtype);
    k.repeat(gemm.n, |k, column| {
        let sum = k.variable::<F32>(0.0);
        k.repeat(gemm.k, |k, i| {
            let halves = [gemm.a.at(row, i), gemm.b.at(column, i)].map(|at| k.load_global_b16(at));
            let [left, right] = halves.map(|half| {
                let number: F32 = k.register();
                k.raw(&widen, &[&number, &half]);
                number
            });
            k.assign(sum, sum + left * right);
        });
        let element = k.round(gemm.dtype, sum);
        k.store_global_b16(gemm.d.at(row, column), element);
    });
}

fn verdict(kernel: ptx::KernelFn, options: JudgeOptions) -> Verdict {
    colored::control::set_override(false);
    judge(step(1).expect("step 1 exists"), &InProcess(kernel), &options)
}

#[track_caller]
fn text_of(verdict: &Verdict, part: Part) -> &str {
    match verdict.part(part) {
        Outcome::Failed { text, .. } => text,
        _ => panic!("{part} should fail:\n{}", report::render(verdict)),
    }
}

/// All parts but `resources`, which may not be checked here.
#[track_caller]
fn passes(verdict: &Verdict) {
    assert!(verdict.passed() || verdict.only_unchecked(), "{}", report::render(verdict));
}

#[test]
fn mmas_that_do_not_make_d_are_no_structure() {
    // One input is enough: this kernel takes its time.
    const SIZES: &[Problem] = &[Problem::f16(128, 128, 64)];
    let one = Step { sizes: SIZES, inputs_per_size: 1, ..*step(1).expect("step 1 exists") };
    let options = JudgeOptions { seeds: 0, ..JudgeOptions::default() };
    let verdict = judge(&one, &InProcess(tile::<DECOY>), &options);
    assert!(verdict.part(Part::Correct).passed(), "{}", report::render(&verdict));
    let text = text_of(&verdict, Part::Structure);
    assert!(
        text.contains("this kernel's accumulator does not hold A·Bᵀ at the end (harness/tests/honesty.rs:"),
        "{text}"
    );
}

#[test]
fn a_kernel_that_overwrites_an_input_is_not_correct() {
    let verdict = verdict(tile::<OVERWRITES_A>, JudgeOptions::default());
    let text = text_of(&verdict, Part::Correct);
    let line = include_str!("honesty.rs").lines().position(|line| line.ends_with("// overwrites A")).unwrap_or(0) + 1;
    assert!(text.starts_with("error: the kernel writes to A, which holds something else after it"), "{text}");
    assert!(text.contains(&format!("honesty.rs:{line}:")), "line {line}: {text}");
}

#[test]
fn operands_the_other_way_round_are_as_good() {
    let verdict = verdict(tile::<TURNED>, JudgeOptions { seeds: 1, ..JudgeOptions::default() });
    assert!(verdict.part(Part::Correct).passed(), "{}", report::render(&verdict));
    assert!(verdict.part(Part::Structure).passed(), "{}", report::render(&verdict));
}

#[test]
fn a_note_fails_race_free() {
    let verdict = verdict(tile::<NO_TENSOR_FENCE>, JudgeOptions::default());
    assert!(verdict.part(Part::Correct).passed(), "{}", report::render(&verdict));
    let text = text_of(&verdict, Part::RaceFree);
    assert!(text.starts_with("note[missing-tensor-fence]"), "{text}");
}

/// `--seed` takes any number.
#[test]
fn the_last_seed_is_a_seed() {
    passes(&verdict(tile::<NONE>, JudgeOptions { input_seed: u64::MAX, ..JudgeOptions::default() }));
}
