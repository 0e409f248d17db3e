//! A wrong D of a kernel that breaks no rule: the place is named at which its product went astray.

#![cfg(feature = "solutions")]

mod judged;

use emulator::{Diagnostic, Meaning};
use harness::astray::{Astray, Stage};
use harness::corpus::kernels::{Kernel, STEPS};
use harness::corpus::run::Bench;
use harness::corpus::{Kind, mutants};
use harness::{MilestoneState, Outcome, Part};
use judged::{judged, state};

/// What is changed, the stage that must be named, words of its title, and of the PTX instruction that is named first.
const WRONG: [(&str, Stage, &str, &str); 13] = [
    ("04/sign-of-A/178", Stage::Descriptor, "multiplies by −A", "tcgen05.mma"),
    ("02/swizzle/433.4", Stage::Operand, "row 0 of an operand is columns 32 to 47 of B, its row 1", "tcgen05.mma"),
    ("05/map-extents/0", Stage::Operand, "is zero, and should be 16 columns of a row of A", "tcgen05.mma"),
    (
        "04/coordinate/455.2",
        Stage::Store,
        "a CTA stores row 128 of D, and multiplies no such row of A",
        "cp.async.bulk.tensor",
    ),
    // Rounds and tiles, one too many and one too few; some of them hang.
    (
        "02/rounds/466.2",
        Stage::Product,
        "no MMA multiplies row 0 of A by row 0 of B at columns 128 to 143",
        "tcgen05.mma",
    ),
    (
        "06/rounds/568.2",
        Stage::Product,
        "no MMA multiplies row 512 of A by row 0 of B at columns 0 to 15",
        "tcgen05.mma",
    ),
    ("07/rounds/153", Stage::Operand, "is zero, and should be 16 columns of a row of A", "tcgen05.mma"),
    ("07/rounds/153.2", Stage::Sum, "adds to that at row", "tcgen05.mma"),
    ("07/rounds/316", Stage::Sum, "adds to that at row", "tcgen05.mma"),
    ("07/rounds/316.2", Stage::Sum, "begins the sum of the tile at row", "tcgen05.mma"),
    ("08/rounds/165", Stage::Operand, "is zero, and should be 16 columns of a row of A", "tcgen05.mma"),
    ("08/ring-depth/323.2", Stage::Sum, "adds to that at row", "tcgen05.mma"),
    ("10/rounds/582.2", Stage::Sum, "begins the sum of the tile at row", "tcgen05.mma"),
];

/// Of rounds and tiles, the end of the loop that is one too long or too short is named, and of another bug of that kind no loop.
const LOOPS: [(&str, Option<(&str, &str)>); 7] = [
    ("02/rounds/466.2", Some(("@%p10 bra $repeat;", "this loop ends here, behind column 127"))),
    ("06/rounds/568.2", Some(("@%p20 bra $tile;", "this loop ends here, and that tile is left out"))),
    ("07/rounds/153", Some(("@%p9 bra $repeat;", "this loop goes on here, beyond the last column"))),
    ("07/rounds/153.2", Some(("@%p9 bra $repeat;", "this loop ends here, with columns 256 and on to come"))),
    (
        "07/rounds/316",
        Some(("@%p21 bra $repeat_2;", "this loop goes on here, with all columns of that tile multiplied")),
    ),
    ("07/rounds/316.2", Some(("@%p21 bra $repeat_2;", "this loop ends here, with columns 256 and on to come"))),
    ("08/ring-depth/323.2", None),
];

/// Where the product of a mutant goes astray that breaks no rule, and may hang.
fn followed(id: &str) -> Astray {
    let kernel = Kernel::new(id[..2].parse().expect("a step")).expect("a solution");
    let bench = Bench::new(&kernel).expect("it runs");
    let mutant = mutants(&kernel, &Kind::ALL).into_iter().find(|mutant| mutant.id == id);
    let (ptx, launch) = bench.mutated(&mutant.unwrap_or_else(|| panic!("there is no {id}")));
    let (run, found) = bench.followed(&ptx, &launch).expect("it loads");
    // What the emulator guesses of tiles, the harness knows.
    let guessed = |found: &Diagnostic| found.labels.iter().any(|label| label.meaning == Meaning::BelongsElsewhere);
    let breaks = run.report.findings.iter().any(|found| found.code != "hang" && !guessed(found));
    assert!(!breaks && !run.comparison.is_right(), "{id}: {:?}", run.report.findings);
    found.unwrap_or_else(|| panic!("{id}: nothing is named"))
}

#[test]
fn the_loop_that_is_too_long_or_too_short_is_named() {
    for (id, expected) in LOOPS {
        let found = followed(id);
        let labels = &found.explanation.labels;
        let named = labels.iter().find(|label| label.text.starts_with("this loop"));
        let named = named.map(|label| (label.place.text.as_str(), label.text.as_str()));
        assert_eq!(named, expected, "{id}: {labels:#?}");
        assert!(labels.iter().all(|label| label.place.source.is_some()), "{id}: a place without its line of Rust");
    }
}

#[test]
fn the_first_wrong_place_is_named() {
    for (id, stage, words, instruction) in WRONG {
        let found = followed(id);
        assert_eq!(found.stage, stage, "{id}: {:#?}", found.explanation);
        assert!(found.explanation.title.contains(words), "{id}: {}", found.explanation.title);
        let first = &found.explanation.labels[0].place.text;
        assert!(first.contains(instruction), "{id} names {first}");
    }
}

/// Of the solutions, nothing in front of the stores is wrong: each stage of the way finds all as it should be.
#[test]
fn nothing_is_astray_in_a_right_kernel() {
    for step in STEPS {
        let kernel = Kernel::new(step).expect("a solution");
        let bench = Bench::new(&kernel).expect("it runs");
        let (run, found) = bench.followed(&kernel.built.ptx, &kernel.launch).expect("it loads");
        assert!(run.comparison.is_right());
        let found = found.unwrap_or_else(|| panic!("step {step}: its way is not followed"));
        assert_eq!(found.stage, Stage::Epilogue, "step {step}: {:#?}", found.explanation);
    }
}

/// What `correct` says, and what a milestone says. Both must be so.
#[track_caller]
fn said(name: &'static str, milestone: &str) -> [String; 2] {
    let verdict = judged(name, 0);
    let Outcome::Failed { text, .. } = verdict.part(Part::Correct) else { panic!("`{name}`: correct should fail") };
    let MilestoneState::Wrong { text: of_milestone, .. } = state(&verdict, milestone) else {
        panic!("`{name}`: {:?}", state(&verdict, milestone));
    };
    [text.clone(), of_milestone.clone()]
}

/// The wrong columns of tensor memory are read: the first place is the load, and not the store behind it, which is right.
#[test]
fn the_load_that_reads_the_wrong_columns_is_named() {
    let cases = [
        (
            "first_columns_4",
            "4.6",
            "columns 64 to 127 of the accumulator are never read, its columns 0 to 63 are read twice",
        ),
        (
            "first_columns_5",
            "5.7",
            "columns 64 to 127 of the accumulator are never read, its columns 0 to 63 are read twice",
        ),
        (
            "first_columns_7",
            "7.6",
            "columns 64 to 127 of the accumulator are never read, its columns 0 to 63 are read twice for each tile",
        ),
    ];
    for (name, milestone, title) in cases {
        for text in said(name, milestone) {
            let lines: Vec<&str> = text.lines().collect();
            assert_eq!(lines[0], format!("error: {title}"), "`{name}`: {text}");
            let marked = lines.iter().position(|line| line.contains("^")).unwrap_or_else(|| panic!("{text}"));
            assert!(lines[marked - 1].contains("tmem_load"), "`{name}` does not name the load: {text}");
            assert!(text.contains("try: Check which columns each load of tensor memory is given"), "`{name}`: {text}");
            assert!(!text.contains("swizzle") && !text.contains("gemm.d.at"), "`{name}`: {text}");
        }
    }
    // Four times the same ones are a finding by themselves, at the load as well.
    let verdict = judged("first_columns_10", 0);
    let Outcome::Failed { text, .. } = verdict.part(Part::Correct) else { panic!("correct should fail") };
    assert!(text.starts_with("finding[product-never-read]: columns 64 to 255 of the product"), "{text}");
    let lines: Vec<&str> = text.lines().collect();
    let marked = lines.iter().position(|line| line.contains("^")).unwrap_or_else(|| panic!("{text}"));
    assert!(lines[marked - 1].contains("tmem_load") && text.contains("\n  TODO 10.5;"), "{text}");
}

/// A and B exchanged: that is said, and not that D is transposed as a whole, which has another shape then.
#[test]
fn exchanged_operands_are_named() {
    for (name, milestone) in [("operands_exchanged_5", "5.4"), ("operands_exchanged_7", "7.4")] {
        let [text, of_milestone] = said(name, milestone);
        for text in [&text, &of_milestone] {
            assert!(
                text.starts_with(
                    "error: MMA 0 (round 0, slice 0) has its operands the other way round: first B's tile, then A's\n"
                ),
                "`{name}`: {text}"
            );
            assert!(text.contains("try: Give `t.mma` a slice of A's tile first"), "`{name}`: {text}");
        }
        assert!(!text.contains("holds at (i, j) what belongs at (j, i)"), "`{name}`: {text}");
    }
    let [text, _] = said("operands_exchanged_5", "5.4");
    assert!(
        text.contains("all of D is transposed tile by tile: each holds at its (i, j) what belongs at its (j, i)"),
        "{text}"
    );
}

/// The fence stands one line too early: the TODO is that of the wait, and the text says where a fence does not count.
#[test]
fn a_fence_in_front_of_the_wait() {
    let verdict = judged("fence_before_the_wait_7", 0);
    let Outcome::Failed { text, .. } = verdict.part(Part::RaceFree) else {
        panic!("{}", harness::report::render(&verdict))
    };
    assert!(text.starts_with("note[missing-tensor-fence]"), "{text}");
    assert!(text.contains("TODO 7.5;"), "{text}");
    assert!(text.contains("one in front of the synchronisation orders nothing here"), "{text}");
}
