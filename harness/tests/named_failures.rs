//! Kernels a few words away from a solution: `correct` fails, and its title names what is wrong.

use harness::{InProcess, JudgeOptions, MilestoneState, Outcome, Part, Problem, Step, Verdict, judge, report, step};

/// Multiplications of the largest size of a table that is judged here.
const LARGEST: u64 = 1 << 27;

/// The judgement of an edited solution. Without `cases` only the sizes of the table are tried.
fn judged(number: u8, name: &str, cases: bool) -> Verdict {
    colored::control::set_override(false);
    let whole = step(number).expect("the step exists");
    let sizes: Vec<Problem> = whole.sizes.iter().copied().filter(|size| size.products() <= LARGEST).collect();
    let step = Step {
        sizes: sizes.leak(),
        cases: if cases { whole.cases } else { &[] },
        timed: whole.observed.problem,
        inputs_per_size: 1,
        ..*whole
    };
    judge(&step, &InProcess(edited::kernel(name)), &JudgeOptions { seeds: 0, ..JudgeOptions::default() })
}

/// `correct` fails under a title with each of these.
#[track_caller]
fn named(number: u8, name: &str, title: &[&str]) {
    let verdict = judged(number, name, true);
    let Outcome::Failed { title: found, text, .. } = verdict.part(Part::Correct) else {
        panic!("`{name}`: correct should fail:\n{}", report::render(&verdict));
    };
    let missing: Vec<&&str> = title.iter().filter(|words| !found.contains(**words)).collect();
    assert!(missing.is_empty(), "`{name}` fails as \"{found}\", which lacks {missing:?}:\n{text}");
}

#[test]
fn phases_that_begin_anew_with_every_tile() {
    named(
        6,
        "phases_6",
        &["the wait for parity 0 of `mma_done` passes before the MMA that writes `accumulator` is complete"],
    );
    for name in ["phases_7", "phases_of_write_back_7"] {
        named(
            7,
            name,
            &["the wait for parity 0 of `mma2ld` passes before the MMA that writes `accumulator` is complete"],
        );
    }
}

#[test]
fn the_last_k_tile_left_out() {
    let missing = |last: u32| format!("a sum in which K columns {} to {last} are missing", last - 63);
    named(2, "last_k_2", &[&missing(511)]);
    // The milestone says what its tile shows of it.
    let milestones = judged(2, "last_k_2", true).milestones;
    let MilestoneState::Wrong { text, .. } = &milestones[0].state else { panic!("{:?}", milestones[0]) };
    let shows = "the tile of A in shared memory holds columns 384 to 447 at the end; the last round is that of columns 448 to 511";
    assert!(text.contains(shows), "{text}");
    named(4, "last_k_4", &[&missing(511)]);
    named(6, "last_k_6", &[&missing(1023)]);
    named(7, "last_k_7", &[&missing(1023)]);
    named(10, "last_k_10", &[&missing(2047)]);
}

/// They are right at the sizes of the table, and wrong at others.
#[test]
fn only_whole_tiles_computed() {
    let of_k = "a sum in which K columns 128 to 135 are missing";
    let edits: &[(u8, &str, &[&str])] = &[
        (4, "whole_k_4", &[of_k]),
        (6, "whole_k_6", &[of_k]),
        (9, "whole_k_9", &[of_k]),
        (4, "whole_rows_4", &["3 of 6 tiles of 128x128, the first at row 128, column 0, was never written"]),
        (5, "whole_columns_5", &["2 of 6 tiles of 128x128, the first at row 0, column 256, was never written"]),
        (6, "whole_rows_6", &["3 of 30 tiles of 128x128, the first at row 1152, column 0, was never written"]),
        (10, "whole_rows_10", &["3 of 111 tiles of 128x128, the first at row 4608, column 0, was never written"]),
    ];
    for (number, name, title) in edits {
        let verdict = judged(*number, name, false);
        assert!(verdict.part(Part::Correct).passed(), "`{name}` is right at:\n{}", report::render(&verdict));
        named(*number, name, title);
    }
}

#[test]
fn stores_outside_of_d() {
    let title = ["would store 16 bytes to", "outside of global memory: right behind the end of `D`"];
    named(2, "outside_2", &title);
    named(3, "outside_3", &title);
    for (number, name) in [(2, "outside_2"), (3, "outside_3")] {
        let verdict = judged(number, name, true);
        let Outcome::Failed { text, .. } = verdict.part(Part::Correct) else { unreachable!("it fails above") };
        assert!(text.starts_with("error[out-of-bounds]"), "{text}");
    }
}

#[test]
fn what_d_held_before() {
    named(2, "reads_d_2", &["the kernel reads D before it was written"]);
    named(4, "reads_d_4", &["the kernel reads D before it was written"]);
}

#[test]
fn a_constant() {
    named(2, "constant_2", &["all of D is constant: 1 everywhere"]);
    named(4, "constant_4", &["all of D is constant: 1 everywhere"]);
    named(7, "constant_7", &["all of D is constant: 1 everywhere"]);
}

/// Right results, and an end that comes too early: `race-free` says what may still be under way.
#[test]
fn an_end_that_comes_too_early() {
    let read = "the thread ends although this copy may still be reading shared memory";
    let ends = [
        (7, "end_before_read_7", read),
        (10, "end_before_read_10", read),
        (9, "end_without_pair_9", "CTA 0 may end before CTA 1 has used its shared memory"),
    ];
    for (number, name, title) in ends {
        let verdict = judged(number, name, false);
        let Outcome::Failed { title: found, .. } = verdict.part(Part::RaceFree) else {
            panic!("`{name}`: race-free should fail:\n{}", report::render(&verdict));
        };
        assert_eq!(found, title, "`{name}`:\n{}", report::render(&verdict));
        assert!(verdict.part(Part::Correct).passed(), "`{name}` is right at:\n{}", report::render(&verdict));
    }
}
