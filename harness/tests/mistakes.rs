//! The mistakes of step 1: each gets the right explanation at the right line, never a panic, a hang or a bare mismatch.
//!
//! Those that the builder lets through are made in Rust, in a copy of the solution. Those that it refuses
//! (`ptx/tests/compile_fail`, and the leak below) are made by editing the PTX text of the solution. What the student reads is
//! in `mistakes/*.txt`; `UPDATE_EXPECT=1 cargo test -p harness --test mistakes` writes it again.

use expect_test::expect_file;
use harness::{BuildFailure, Built, InProcess, JudgeOptions, KernelSource, Outcome, Part, Problem, judge, step};
use ptx::prelude::*;

const NONE: u8 = 0;
const NO_FENCE: u8 = 1;
const NO_BARRIER: u8 = 2;
const NO_WAIT: u8 = 3;
const WRONG_PHASE: u8 = 4;
const COUNT_TWO: u8 = 5;
const PLAIN_B: u8 = 6;
const ACCUMULATE: u8 = 7;
const NO_WAIT_LOAD: u8 = 8;
const NO_COMMIT: u8 = 9;
const NEVER_FREED: u8 = 10;
const ONE_ELEMENT: u8 = 11;

/// The solution, with one mistake.
fn tile<const MISTAKE: u8>(k: &mut Cta, gemm: &Gemm) {
    k.threads(128);
    let a = k.tile("A", gemm.dtype, 128, 64, Swizzle::B128);
    let b = k.tile("B", gemm.dtype, 128, 64, Swizzle::B128);
    let mma_done = k.barrier("mma_done");
    let tmem = k.warp(0, |w| {
        w.elect_one(|t| {
            t.barrier_init(mma_done, if MISTAKE == COUNT_TWO { 2 } else { 1 }); // init
            t.fence_mbarrier_init();
        });
        w.tmem_alloc("accumulator", 128) // alloc
    });
    k.sync();
    let accumulator = tmem.address(k);

    let thread = k.thread_index();
    if MISTAKE == ONE_ELEMENT {
        k.repeat(64, |k, column| {
            let element = k.load_global_b16(gemm.a.at(thread, column));
            k.store_shared_b16(a.at(thread, column), element);
        });
        k.repeat(64, |k, column| {
            let element = k.load_global_b16(gemm.b.at(thread, column));
            k.store_shared_b16(b.at(thread, column), element);
        });
    } else {
        let (first_row, column) = (thread / 8, thread % 8 * 8);
        for pass in 0..8 {
            let row = first_row + pass * 16;
            let from_a = k.load_global_16(gemm.a.at(row, column));
            let from_b = k.load_global_16(gemm.b.at(row, column));
            k.store_shared_16(a.at(row, column), from_a); // store A
            let to_b = if MISTAKE == PLAIN_B { b.at_linear(row, column) } else { b.at(row, column) };
            k.store_shared_16(to_b, from_b); // store B
        }
    }
    if MISTAKE != NO_FENCE {
        k.fence_proxy_async();
    }
    if MISTAKE != NO_BARRIER {
        k.sync();
    }
    k.warp(0, |w| {
        w.elect_one(|t| {
            for s in 0..4 {
                let accumulate = s > 0 || MISTAKE == ACCUMULATE;
                t.mma(accumulator, a.k_slice(s * 16), b.k_slice(s * 16), accumulate); // mma
            }
            if MISTAKE != NO_COMMIT {
                t.commit(mma_done); // commit
            }
        });
    });
    if MISTAKE != NO_WAIT {
        k.wait(mma_done, if MISTAKE == WRONG_PHASE { 1 } else { 0 }); // wait
    }
    k.tcgen05_fence_after();
    let sums = k.tmem_load::<128>(accumulator.lane(thread / 32 * 32)); // load
    if MISTAKE != NO_WAIT_LOAD {
        k.tmem_wait_load();
    }
    let chunks = k.pack_chunks(gemm.dtype, &sums); // use
    for (chunk, column) in chunks.into_iter().zip((0..).step_by(8)) {
        k.store_global_16(gemm.d.at(thread, column), chunk);
    }
    k.tcgen05_fence_before();
    k.sync();
    if MISTAKE != NEVER_FREED {
        k.warp(0, |w| w.tmem_dealloc(tmem));
    }
}

/// The solution's PTX text with one passage replaced.
struct Edited {
    from: &'static str,
    to: &'static str,
}

impl KernelSource for Edited {
    fn build(&self, problem: &Problem, sms: u32) -> Result<Built, BuildFailure> {
        let mut built = InProcess(tile::<NONE>).build(problem, sms)?;
        assert_eq!(built.ptx.matches(self.from).count(), 1, "`{}` must occur once", self.from);
        built.ptx = built.ptx.replace(self.from, self.to);
        Ok(built)
    }
}

/// The line of this file that ends with a marker.
fn line_of(marker: &str) -> String {
    let at = include_str!("mistakes.rs").lines().position(|line| line.ends_with(&format!("// {marker}")));
    format!("harness/tests/mistakes.rs:{}:", at.expect("the marker stands above") + 1)
}

/// Judges, and checks that `part` fails with this code at this line first. Paths and lines of this file are not part of the
/// snapshot: it would change with every edit.
#[track_caller]
fn explained(name: &str, source: &dyn KernelSource, part: Part, code: &str, marker: &str) {
    colored::control::set_override(false);
    let verdict = judge(step(1).expect("step 1 exists"), source, &JudgeOptions::default());
    let Outcome::Failed { text, .. } = verdict.part(part) else {
        panic!("{part} should fail:\n{}", harness::report::render(&verdict));
    };
    let first = text.lines().next().unwrap_or_default();
    assert!(first.contains(code), "`{code}` should come first:\n{text}");
    let primary = text.lines().find(|line| line.trim_start().starts_with("--> ")).unwrap_or_default();
    assert!(primary.contains(&line_of(marker)), "the primary place should be {}:\n{text}", line_of(marker));
    let digits = |c: char| c.is_ascii_digit();
    let mut shown = String::new();
    for line in text.lines() {
        let number = line.split_once(" |").map_or("", |(number, _)| number);
        let line = if !number.is_empty() && number.chars().all(digits) {
            line.replacen(number, &"L".repeat(number.len()), 1)
        } else if let Some(at) = line.find("mistakes.rs:") {
            format!("{}mistakes.rs", &line[..at])
        } else {
            line.to_string()
        };
        shown.push_str(line.trim_end());
        shown.push('\n');
    }
    expect_file![format!("mistakes/{name}.txt")].assert_eq(&shown);
}

#[test]
fn the_copy_without_a_mistake_passes() {
    let verdict = judge(step(1).expect("step 1 exists"), &InProcess(tile::<NONE>), &JudgeOptions::default());
    assert!(verdict.passed() || verdict.only_unchecked(), "{}", harness::report::render(&verdict));
}

#[test]
fn missing_fence_before_the_mma() {
    explained("no_fence", &InProcess(tile::<NO_FENCE>), Part::RaceFree, "missing-proxy-fence", "mma");
}

#[test]
fn missing_cta_barrier_before_the_mma() {
    explained("no_barrier", &InProcess(tile::<NO_BARRIER>), Part::RaceFree, "operand-not-ready", "mma");
}

#[test]
fn no_wait_for_the_mma() {
    explained("no_wait", &InProcess(tile::<NO_WAIT>), Part::Correct, "mma-not-awaited", "load");
}

#[test]
fn no_commit() {
    explained("no_commit", &InProcess(tile::<NO_COMMIT>), Part::Correct, "hang", "wait");
}

#[test]
fn wrong_phase() {
    explained("wrong_phase", &InProcess(tile::<WRONG_PHASE>), Part::Correct, "wrong-phase", "wait");
}

#[test]
fn barrier_count_two() {
    explained("count_two", &InProcess(tile::<COUNT_TWO>), Part::Correct, "hang", "init");
}

#[test]
fn b_tile_not_swizzled() {
    explained("plain_b", &InProcess(tile::<PLAIN_B>), Part::Correct, "without the 128-byte swizzle", "store B");
}

#[test]
fn accumulate_on_for_the_first_mma() {
    explained("accumulate", &InProcess(tile::<ACCUMULATE>), Part::Correct, "undefined-value-stored", "mma");
}

#[test]
fn no_wait_for_the_load() {
    explained("no_wait_load", &InProcess(tile::<NO_WAIT_LOAD>), Part::RaceFree, "missing-wait-ld", "load");
}

#[test]
fn tensor_memory_never_freed_is_refused_by_the_builder() {
    let source = InProcess(tile::<NEVER_FREED>);
    explained("never_freed_builder", &source, Part::Resources, "never freed", "alloc");
}

#[test]
fn tensor_memory_never_freed_in_ptx() {
    let text = edit_line("tcgen05.dealloc");
    let source = Edited { from: text, to: "" };
    explained("never_freed_ptx", &source, Part::Resources, "tensor-memory-leak", "alloc");
}

#[test]
fn thirty_two_threads_issue_the_mma_in_ptx() {
    // The second election's branch, which leads the other lanes past the MMAs.
    let text = edit_line("elected_end_2;");
    let source = Edited { from: text, to: "" };
    explained("many_lanes", &source, Part::Correct, "issued-by-many-lanes", "mma");
}

#[test]
fn alloc_under_one_lane_in_ptx() {
    let source = Edited { from: "@!%p2 bra $elected_end;", to: "@!%p2 bra $warp_0_end;" };
    explained("alloc_one_lane", &source, Part::Correct, "aligned-lanes-missing", "alloc");
}

#[test]
fn an_element_wise_copy_is_right_but_slow() {
    let verdict = judge(step(1).expect("step 1 exists"), &InProcess(tile::<ONE_ELEMENT>), &JudgeOptions::default());
    assert!(verdict.part(Part::Correct).passed(), "{}", harness::report::render(&verdict));
    let Outcome::Failed { title, text, .. } = verdict.part(Part::Fast) else {
        panic!("{}", harness::report::render(&verdict))
    };
    let times: f64 = title.split(' ').find_map(|word| word.parse().ok()).unwrap_or_default();
    assert!(times >= 10.0, "{title}");
    assert!(text.contains("\ntry: Load 16 bytes of a row at once (`k.load_global_16`), not 2: "), "{text}");
}

/// The whole line of the solution's PTX text that holds a passage.
fn edit_line(passage: &str) -> &'static str {
    let built = InProcess(tile::<NONE>).build(&Problem::f16(128, 128, 64), 148).expect("the copy builds");
    let line = built.ptx.lines().find(|line| line.contains(passage) && !line.trim_end().ends_with(':'));
    let line = line.unwrap_or_else(|| panic!("no line holds `{passage}`:\n{}", built.ptx));
    Box::leak(line.to_string().into_boxed_str())
}
