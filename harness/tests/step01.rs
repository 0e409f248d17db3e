//! Step 1 through the judge: the reference solution, half-done copies of it, and copies with a mistake.

use harness::{InProcess, JudgeOptions, MilestoneState, Outcome, Part, Verdict, judge, report, step};
use ptx::prelude::*;
use std::time::{Duration, Instant};

/// A copy of the solution in which TODOs can be left open and pieces replaced.
macro_rules! kernel {
    ($name:ident, |$k:ident, $gemm:ident, $a:ident, $b:ident, $accumulator:ident, $done:ident, $tmem:ident|
        copy: $copy:block fence: $fence:block mma: |$t:ident| $mma:block commit: |$c:ident| $commit:block
        wait: $wait:block store: $store:block free: $free:block) => {
        fn $name($k: &mut Cta, $gemm: &Gemm) {
            $k.threads(128);
            let $a = $k.tile("A", $gemm.dtype, 128, 64, Swizzle::B128);
            let $b = $k.tile("B", $gemm.dtype, 128, 64, Swizzle::B128);
            let $done = $k.barrier("mma_done");
            let $tmem = $k.warp(0, |w| {
                w.elect_one(|t| {
                    t.barrier_init($done, 1);
                    t.fence_mbarrier_init();
                });
                w.tmem_alloc("accumulator", 128)
            });
            $k.sync();
            let $accumulator = $tmem.address($k);
            $copy
            $fence
            $k.warp(0, |w| {
                w.elect_one(|t| {
                    {
                        let $t = &mut *t;
                        $mma
                    }
                    {
                        let $c = &mut *t;
                        $commit
                    }
                });
            });
            $wait
            $store
            $free
        }
    };
}

fn copy(k: &mut Cta, gemm: &Gemm, a: Tile, b: Tile, swizzled: bool) {
    let thread = k.thread_index();
    let (first_row, column) = (thread / 8, thread % 8 * 8);
    for pass in 0..8 {
        let row = first_row + pass * 16;
        let from_a = k.load_global_16(gemm.a.at(row, column));
        let from_b = k.load_global_16(gemm.b.at(row, column));
        k.store_shared_16(a.at(row, column), from_a);
        if swizzled {
            k.store_shared_16(b.at(row, column), from_b);
        } else {
            k.store_shared_16(b.at_linear(row, column), from_b); // the plain store
        }
    }
}

fn store(k: &mut Cta, gemm: &Gemm, accumulator: Accumulator) {
    let row = k.thread_index();
    let sums = k.tmem_load::<128>(accumulator.lane(row / 32 * 32));
    k.tmem_wait_load();
    for (chunk, column) in k.pack_chunks(gemm.dtype, &sums).into_iter().zip((0..).step_by(8)) {
        k.store_global_16(gemm.d.at(row, column), chunk);
    }
}

kernel!(plain_b, |k, gemm, a, b, accumulator, done, tmem|
    copy: { copy(k, gemm, a, b, false); }
    fence: { k.fence_proxy_async(); k.sync(); }
    mma: |t| { for s in 0..4 { t.mma(accumulator, a.k_slice(s * 16), b.k_slice(s * 16), s > 0); } }
    commit: |t| { t.commit(done); }
    wait: { k.wait(done, 0); k.tcgen05_fence_after(); }
    store: { store(k, gemm, accumulator); }
    free: { k.tcgen05_fence_before(); k.sync(); k.warp(0, |w| w.tmem_dealloc(tmem)); });

// 1.1 to 1.3 and 1.7 are done.
kernel!(half_done, |k, gemm, a, b, accumulator, done, tmem|
    copy: { copy(k, gemm, a, b, true); }
    fence: { k.fence_proxy_async(); k.sync(); }
    mma: |t| { for s in 0..4 { t.mma(accumulator, a.k_slice(s * 16), b.k_slice(s * 16), s > 0); } }
    commit: |t| { let _ = done; t.todo("1.4"); }
    wait: { k.todo("1.5"); }
    store: { k.todo("1.6"); }
    free: { k.tcgen05_fence_before(); k.sync(); k.warp(0, |w| w.tmem_dealloc(tmem)); });

kernel!(missing_slice, |k, gemm, a, b, accumulator, done, tmem|
    copy: { copy(k, gemm, a, b, true); }
    fence: { k.fence_proxy_async(); k.sync(); }
    mma: |t| { for s in 0..3 { t.mma(accumulator, a.k_slice(s * 16), b.k_slice(s * 16), s > 0); } }
    commit: |t| { t.commit(done); }
    wait: { k.wait(done, 0); k.tcgen05_fence_after(); }
    store: { store(k, gemm, accumulator); }
    free: { k.tcgen05_fence_before(); k.sync(); k.warp(0, |w| w.tmem_dealloc(tmem)); });

// Everything is copied eight times.
kernel!(slow, |k, gemm, a, b, accumulator, done, tmem|
    copy: { for _ in 0..8 { copy(k, gemm, a, b, true); } }
    fence: { k.fence_proxy_async(); k.sync(); }
    mma: |t| { for s in 0..4 { t.mma(accumulator, a.k_slice(s * 16), b.k_slice(s * 16), s > 0); } }
    commit: |t| { t.commit(done); }
    wait: { k.wait(done, 0); k.tcgen05_fence_after(); }
    store: { store(k, gemm, accumulator); }
    free: { k.tcgen05_fence_before(); k.sync(); k.warp(0, |w| w.tmem_dealloc(tmem)); });

// The fence stands behind the barrier: the emulator's memory model takes that, too.
kernel!(fenced_behind, |k, gemm, a, b, accumulator, done, tmem|
    copy: { copy(k, gemm, a, b, true); }
    fence: { k.sync(); k.fence_proxy_async(); }
    mma: |t| { let _ = (accumulator, a, b); t.todo("1.3"); }
    commit: |t| { let _ = done; t.todo("1.4"); }
    wait: { k.todo("1.5"); }
    store: { k.todo("1.6"); }
    free: { let _ = tmem; k.todo("1.7"); });

// One thread fences for all, one warp waits for all.
kernel!(one_for_all, |k, gemm, a, b, accumulator, done, tmem|
    copy: { copy(k, gemm, a, b, true); }
    fence: { k.sync(); }
    mma: |t| {
        t.fence_proxy_async();
        for s in 0..4 { t.mma(accumulator, a.k_slice(s * 16), b.k_slice(s * 16), s > 0); }
    }
    commit: |t| { t.commit(done); }
    wait: { k.warp(0, |w| w.wait(done, 0)); k.tcgen05_fence_before(); k.sync(); k.tcgen05_fence_after(); }
    store: { k.todo("1.6"); }
    free: { k.tcgen05_fence_before(); k.sync(); k.warp(0, |w| w.tmem_dealloc(tmem)); });

// The swizzle by hand, on top of that of the tile.
kernel!(swizzled_twice, |k, gemm, a, b, accumulator, done, tmem|
    copy: {
        let thread = k.thread_index();
        let (first_row, chunk) = (thread / 8, thread % 8);
        for pass in 0..8 {
            let row = first_row + pass * 16;
            let from_a = k.load_global_16(gemm.a.at(row, chunk * 8));
            let from_b = k.load_global_16(gemm.b.at(row, chunk * 8));
            k.store_shared_16(a.at(row, (chunk ^ (row % 8)) * 8), from_a);
            k.store_shared_16(b.at(row, (chunk ^ (row % 8)) * 8), from_b);
        }
    }
    fence: { k.fence_proxy_async(); k.sync(); }
    mma: |t| { let _ = accumulator; t.todo("1.3"); }
    commit: |t| { let _ = done; t.todo("1.4"); }
    wait: { k.todo("1.5"); }
    store: { k.todo("1.6"); }
    free: { let _ = tmem; k.todo("1.7"); });

// Bytes where elements are asked for.
kernel!(bytes_for_elements, |k, gemm, a, b, accumulator, done, tmem|
    copy: {
        let thread = k.thread_index();
        let (first_row, column) = (thread / 8, thread % 8 * 16);
        for pass in 0..8 {
            let row = first_row + pass * 16;
            let from_a = k.load_global_16(gemm.a.at(row, column));
            let from_b = k.load_global_16(gemm.b.at(row, column));
            k.store_shared_16(a.at(row, column), from_a);
            k.store_shared_16(b.at(row, column), from_b);
        }
    }
    fence: { k.todo("1.2"); }
    mma: |t| { let _ = accumulator; t.todo("1.3"); }
    commit: |t| { let _ = done; t.todo("1.4"); }
    wait: { k.todo("1.5"); }
    store: { k.todo("1.6"); }
    free: { let _ = tmem; k.todo("1.7"); });

// The commit stands in the loop.
kernel!(four_commits, |k, gemm, a, b, accumulator, done, tmem|
    copy: { copy(k, gemm, a, b, true); }
    fence: { k.fence_proxy_async(); k.sync(); }
    mma: |t| {
        for s in 0..4 {
            t.mma(accumulator, a.k_slice(s * 16), b.k_slice(s * 16), s > 0);
            t.commit(done);
        }
    }
    commit: |t| { let _ = (t, done); }
    wait: { k.todo("1.5"); }
    store: { k.todo("1.6"); }
    free: { let _ = tmem; k.todo("1.7"); });

// Tensor memory is not freed, though no TODO is open.
kernel!(never_freed, |k, gemm, a, b, accumulator, done, tmem|
    copy: { copy(k, gemm, a, b, true); }
    fence: { k.fence_proxy_async(); k.sync(); }
    mma: |t| { for s in 0..4 { t.mma(accumulator, a.k_slice(s * 16), b.k_slice(s * 16), s > 0); } }
    commit: |t| { t.commit(done); }
    wait: { k.wait(done, 0); k.tcgen05_fence_after(); }
    store: { store(k, gemm, accumulator); }
    free: { let _ = tmem; });

// The product is computed twice.
kernel!(twice, |k, gemm, a, b, accumulator, done, tmem|
    copy: { copy(k, gemm, a, b, true); }
    fence: { k.fence_proxy_async(); k.sync(); }
    mma: |t| { for s in 0..8 { t.mma(accumulator, a.k_slice(s % 4 * 16), b.k_slice(s % 4 * 16), s % 4 > 0); } }
    commit: |t| { t.commit(done); }
    wait: { k.wait(done, 0); k.tcgen05_fence_after(); }
    store: { store(k, gemm, accumulator); }
    free: { k.tcgen05_fence_before(); k.sync(); k.warp(0, |w| w.tmem_dealloc(tmem)); });

kernel!(endless, |k, gemm, a, b, accumulator, done, tmem|
    copy: { copy(k, gemm, a, b, true); }
    fence: { k.repeat(u32::MAX, |k, _| copy(k, gemm, a, b, true)); }
    mma: |t| { let _ = (&t, accumulator); }
    commit: |t| { let _ = (&t, done); }
    wait: {}
    store: {}
    free: { k.warp(0, |w| w.tmem_dealloc(tmem)); });

fn verdict(kernel: ptx::KernelFn) -> Verdict {
    judge(step(1).expect("step 1 exists"), &InProcess(kernel), &JudgeOptions::default())
}

fn correct(verdict: &Verdict) -> &str {
    match verdict.part(Part::Correct) {
        Outcome::Failed { text, .. } => text,
        other => panic!("correct is {other:?}"),
    }
}

/// The first line of this file that holds a text.
fn place_of(text: &str) -> String {
    let at = include_str!("step01.rs").lines().position(|line| line.contains(text));
    format!("harness/tests/step01.rs:{}", at.expect("it stands above") + 1)
}

#[test]
fn the_solution_passes() {
    colored::control::set_override(false);
    let verdict = verdict(solutions::step01::kernel);
    let text = report::render(&verdict);
    for (part, outcome) in &verdict.parts {
        let unchecked = *part == Part::Resources && matches!(outcome, Outcome::NotChecked { .. });
        assert!(outcome.passed() || unchecked, "{text}");
    }
    assert!(verdict.milestones.iter().all(|milestone| milestone.state == MilestoneState::Done), "{text}");
    assert_eq!(verdict.points, if verdict.passed() { 5.0 } else { 4.75 });
}

#[test]
fn a_half_done_kernel_shows_what_is_done() {
    let verdict = verdict(half_done);
    let done = |id: &str| verdict.milestones.iter().any(|m| m.id == id && m.state == MilestoneState::Done);
    let states: Vec<bool> = ["1.1", "1.2", "1.3", "1.4", "1.5", "1.6", "1.7"].into_iter().map(done).collect();
    assert_eq!(states, [true, true, true, false, false, false, true], "{}", report::render(&verdict));
    let (next, _) = verdict.next_todo().expect("some are open");
    assert_eq!(next.id, "1.4");
    // 4 of 7 milestones of at most 30 % of 5 points.
    assert_eq!(verdict.points, 0.86);
}

#[test]
fn what_orders_as_well_is_as_good() {
    let states = |kernel, count| {
        let verdict = verdict(kernel);
        let done = verdict.milestones.iter().map(|milestone| milestone.state == MilestoneState::Done);
        (done.take(count).collect::<Vec<bool>>(), report::render(&verdict))
    };
    let (done, text) = states(fenced_behind, 2);
    assert_eq!(done, [true; 2], "{text}");
    let (done, text) = states(one_for_all, 5);
    assert_eq!(done, [true; 5], "{text}");
}

/// What the first milestone that is not as it should be says, with its title and what to read.
fn wrong(verdict: &Verdict) -> String {
    let next = report::next_todo(verdict).expect("a TODO is open");
    assert!(next.contains("is not right yet: ") && next.contains("\n  read: book: "), "{next}");
    next
}

#[test]
fn a_swizzle_that_was_applied_twice_is_named() {
    let text = wrong(&verdict(swizzled_twice));
    assert!(
        text.contains("A in shared memory is laid out row after row: the 128-byte swizzle was applied twice"),
        "{text}"
    );
    assert!(text.contains(&place_of("k.store_shared_16(a.at(row, (chunk")), "{text}");
}

#[test]
fn an_error_in_the_copy_is_shown_though_other_todos_are_open() {
    let text = wrong(&verdict(bytes_for_elements));
    assert!(text.contains("error[out-of-bounds]: ") || text.contains("finding[out-of-bounds]: "), "{text}");
}

#[test]
fn a_commit_in_the_loop_is_told_by_its_own_milestone() {
    let text = wrong(&verdict(four_commits));
    assert!(text.starts_with("TODO 1.4 is not right yet"), "{text}");
    assert!(text.contains("4 commits arrive at `mma_done`: they complete 4 phases of it (count 1)"), "{text}");
}

#[test]
fn a_leak_fails_resources_alone() {
    let verdict = verdict(never_freed);
    let text = report::render(&verdict);
    let failed: Vec<Part> = Part::ALL.into_iter().filter(|part| failed(&verdict, *part)).collect();
    assert_eq!(failed, [Part::Resources], "{text}");
    assert!(text.contains("taken here, and never freed") && text.contains("are never freed"), "{text}");
    let states: Vec<bool> = verdict.milestones.iter().map(|m| m.state == MilestoneState::Done).collect();
    assert_eq!(states, [true, true, true, true, true, true, false], "{text}");
    assert_eq!(verdict.points, 4.75);
}

#[test]
fn one_seed_is_judged_alone() {
    let one = JudgeOptions { seed: Some(3), ..JudgeOptions::default() };
    let verdict = judge(step(1).expect("step 1 exists"), &InProcess(solutions::step01::kernel), &one);
    let detail = "no finding under the default schedule and seed 3; no interleaving hangs".to_string();
    assert_eq!(*verdict.part(Part::RaceFree), Outcome::Passed { detail });
}

#[test]
fn a_tile_without_its_swizzle_is_named_with_its_lines() {
    let verdict = verdict(plain_b);
    let text = correct(&verdict);
    let title = "the MMA's operand B was stored without the 128-byte swizzle that its descriptor promises";
    assert!(text.contains(title), "{text}");
    assert!(text.contains(&place_of("// the plain store")), "{text}");
    assert!(text.contains("read here as a tile with the 128-byte swizzle"), "{text}");
    assert!(text.contains("D fits a product for which B was stored without the 128-byte swizzle"), "{text}");
}

#[test]
fn a_missing_k_slice_is_counted() {
    let verdict = verdict(missing_slice);
    let text = correct(&verdict);
    assert!(text.contains("3 MMAs were issued; K = 64 takes 4 of depth 16"), "{text}");
    assert!(text.contains("all of D fits a sum in which K columns 48 to 63 are missing"), "{text}");
}

#[test]
fn right_but_slow_fails_in_fast_alone() {
    let verdict = verdict(slow);
    let failed: Vec<Part> = Part::ALL.into_iter().filter(|part| failed(&verdict, *part)).collect();
    let text = report::render(&verdict);
    assert_eq!(failed, [Part::Fast], "{text}");
    assert!(text.contains("try: Load each element of A and B once: 32768 bytes, not 262144."), "{text}");
}

#[test]
fn right_but_otherwise_built_fails_in_structure() {
    let verdict = verdict(twice);
    assert!(verdict.part(Part::Correct).passed(), "{}", report::render(&verdict));
    let Outcome::Failed { text, .. } = verdict.part(Part::Structure) else { panic!("{}", report::render(&verdict)) };
    assert!(
        text.contains("takes 1048576 multiplications on the tensor core; this kernel's 8 MMAs do 2097152"),
        "{text}"
    );
}

fn failed(verdict: &Verdict, part: Part) -> bool {
    matches!(verdict.part(part), Outcome::Failed { .. })
}

#[test]
fn an_endless_loop_ends_soon_and_is_named() {
    let begin = Instant::now();
    let verdict = verdict(endless);
    assert!(begin.elapsed() < Duration::from_secs(10));
    let text = correct(&verdict);
    assert!(text.starts_with("error[instruction-budget]: "), "{text}");
    assert!(text.contains("\nThe run broke off: D was never written.\n"), "{text}");
}
