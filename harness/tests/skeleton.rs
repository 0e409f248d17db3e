//! Skeletons from solutions: what a student gets, and what each mistake in a solution's regions is called.

use expect_test::{Expect, expect};
use harness::skeleton::generate;

/// A solution in small: a region per scope, one of several lines, one with a nested closure, and an anchor for the book.
const SOLUTION: &str = r#"//! Step 1: one tile.

use ptx::prelude::*;

// ANCHOR: kernel
pub fn kernel(k: &mut Cta, gemm: &Gemm) {
    // ANCHOR: setup

    let bar = k.mbarrier("done", 1);
    // ANCHOR_END: setup

    k.warpgroup(0, |wg| {
        // TODO 1.1: Copy the tiles.
        // All 128 threads take part. (book: shared memory and swizzles)
        // ANCHOR: todo_1_1
        let at = wg.thread(); // k.is not meant
        wg.copy(gemm, at);

        wg.copy(gemm, at);
        // ANCHOR_END: todo_1_1
        wg.warp(0, |w| {
            // TODO 1.2: Multiply.
            // ANCHOR: todo_1_2
            w
                .elect_one(|t| {
                    t.mma(bar);
                });
            // ANCHOR_END: todo_1_2
        });

        // TODO 1.3: Free what was taken.
        // ANCHOR: todo_1_3
        k.free(wg.all());
        // ANCHOR_END: todo_1_3
    });
}
// ANCHOR_END: kernel
"#;

#[test]
fn regions_become_todos() {
    let skeleton = generate(1, "solutions/src/step01.rs", SOLUTION).expect("well formed");
    expect![[r#"
        // Your file for step 1. Each `todo("1.n")` below waits for your code: the comment above it says what it does
        // and what to read in the book. Delete the `todo` when the code stands.
        //
        //     cargo test -p step01           says what is done, what is wrong, and what comes next
        //     cargo workbook inspect step01  shows the PTX that each line here writes
        //     cargo workbook reset step01    starts again, and keeps a copy of your file
        //     cargo doc -p ptx --open        all that you can call on `k`, `w` and `t`, and on tiles and matrices

        //! Step 1: one tile.

        use ptx::prelude::*;

        pub fn kernel(k: &mut Cta, gemm: &Gemm) {
            let bar = k.mbarrier("done", 1);

            k.warpgroup(0, |wg| {
                // TODO 1.1: Copy the tiles.
                // All 128 threads take part. (book: shared memory and swizzles)
                wg.todo("1.1");
                wg.warp(0, |w| {
                    // TODO 1.2: Multiply.
                    w.todo("1.2");
                });

                // TODO 1.3: Free what was taken.
                k.todo("1.3");
            });
        }
    "#]]
    .assert_eq(&skeleton);
    assert_eq!(skeleton, generate(1, "elsewhere.rs", SOLUTION).expect("well formed"), "depends on the text alone");
}

fn fails(solution: &str, expected: Expect) {
    let errors = generate(1, "solutions/src/step01.rs", solution).expect_err("must be refused");
    let text: Vec<String> = errors.iter().map(|error| format!("{error}\n")).collect();
    expected.assert_eq(&text.concat());
}

#[test]
fn a_region_that_is_never_closed() {
    fails(
        "// TODO 1.1: A.\n// ANCHOR: todo_1_1\nk.a();\n",
        expect![[r#"
            solutions/src/step01.rs:2: region `todo_1_1` is never closed
              try: Put `// ANCHOR_END: todo_1_1` after its last line.
        "#]],
    );
    fails(
        "// ANCHOR: book\nk.a();\n",
        expect![[r#"
            solutions/src/step01.rs:1: anchor `book` is never closed
              try: Put `// ANCHOR_END: book` after its last line.
        "#]],
    );
    fails(
        "// TODO 1.1: A.\n// ANCHOR: todo_1_1\nk.a();\n// TODO 1.2: B.\n// ANCHOR: todo_1_2\nk.b();\n// ANCHOR_END: todo_1_2\n",
        expect![[r#"
            solutions/src/step01.rs:5: anchor `todo_1_2` begins inside region `todo_1_1`, which began on line 2
              try: Close the first one with `// ANCHOR_END: todo_1_1`; regions do not nest.
        "#]],
    );
}

#[test]
fn a_region_that_is_never_opened() {
    fails(
        "// TODO 1.1: A.\nk.a();\n// ANCHOR_END: todo_1_1\n",
        expect![[r#"
            solutions/src/step01.rs:1: TODO 1.1 has no region
              try: Put the code that the student writes between `// ANCHOR: todo_1_1` and `// ANCHOR_END: todo_1_1`.
            solutions/src/step01.rs:3: `ANCHOR_END: todo_1_1` without an `ANCHOR: todo_1_1` above it
              try: Put `// ANCHOR: todo_1_1` before the region's first line.
        "#]],
    );
    fails(
        "// TODO 1.1: A.\n// ANCHOR: todo_1_1\nk.a();\n// ANCHOR_END: todo_1_2\n",
        expect![[r#"
            solutions/src/step01.rs:2: region `todo_1_1` is never closed
              try: Put `// ANCHOR_END: todo_1_1` after its last line.
            solutions/src/step01.rs:4: `ANCHOR_END: todo_1_2` inside region `todo_1_1`, which began on line 2
              try: End a region with its own name: `// ANCHOR_END: todo_1_1`.
        "#]],
    );
}

#[test]
fn a_region_without_its_comment() {
    fails(
        "// ANCHOR: todo_1_1\nk.a();\n// ANCHOR_END: todo_1_1\n",
        expect![[r#"
            solutions/src/step01.rs:1: region `todo_1_1` has no TODO comment above it
              try: Directly above the anchor, write `// TODO 1.1: <what to do, and what to read>`.
        "#]],
    );
    fails(
        "// TODO 1.1: A.\n\n// ANCHOR: todo_1_1\nk.a();\n// ANCHOR_END: todo_1_1\n",
        expect![[r#"
            solutions/src/step01.rs:3: region `todo_1_1` has no TODO comment above it
              try: Directly above the anchor, write `// TODO 1.1: <what to do, and what to read>`.
        "#]],
    );
    fails(
        "// TODO 1.2: A.\n// ANCHOR: todo_1_1\nk.a();\n// ANCHOR_END: todo_1_1\n",
        expect![[r#"
            solutions/src/step01.rs:1: TODO 1.2 has no region
              try: Put the code that the student writes between `// ANCHOR: todo_1_2` and `// ANCHOR_END: todo_1_2`.
            solutions/src/step01.rs:2: region `todo_1_1` stands below the comment of TODO 1.2
              try: Directly above the anchor, write `// TODO 1.1: <what to do, and what to read>`.
        "#]],
    );
}

#[test]
fn numbers_that_do_not_count() {
    let region = |id: &str| {
        let anchor = id.replace('.', "_");
        format!("// TODO {id}: A.\n// ANCHOR: todo_{anchor}\nk.a();\n// ANCHOR_END: todo_{anchor}\n")
    };
    fails(
        &(region("1.1") + &region("1.3")),
        expect![[r#"
            solutions/src/step01.rs:6: TODO 1.3 stands where TODO 1.2 is expected
              try: Count TODOs from 1 in the order of their lines, without gaps and without repeats.
        "#]],
    );
    fails(
        &(region("1.1") + &region("1.1")),
        expect![[r#"
            solutions/src/step01.rs:6: TODO 1.1 stands where TODO 1.2 is expected
              try: Count TODOs from 1 in the order of their lines, without gaps and without repeats.
        "#]],
    );
    fails(
        &region("2.1"),
        expect![[r#"
            solutions/src/step01.rs:2: `todo_2_1` is a region of step 2 in the solution of step 1
              try: Name the regions of this file `todo_1_1`, `todo_1_2`, and so on.
        "#]],
    );
    fails(
        "// TODO 1.1: A.\n// ANCHOR: todo_one\nk.a();\n// ANCHOR_END: todo_one\n",
        expect![[r#"
            solutions/src/step01.rs:1: TODO 1.1 has no region
              try: Put the code that the student writes between `// ANCHOR: todo_1_1` and `// ANCHOR_END: todo_1_1`.
            solutions/src/step01.rs:2: `todo_one` does not name a TODO
              try: Name the anchor `todo_1_<number>`, e.g. `todo_1_1`.
            solutions/src/step01.rs:4: `ANCHOR_END: todo_one` without an `ANCHOR: todo_one` above it
              try: Put `// ANCHOR: todo_one` before the region's first line.
        "#]],
    );
}

#[test]
fn a_region_that_gives_no_todo() {
    fails(
        "// TODO 1.1: A.\n// ANCHOR: todo_1_1\nat.advance(); // t.x\n// ANCHOR_END: todo_1_1\n",
        expect![[r#"
            solutions/src/step01.rs:2: region `todo_1_1` uses no scope: its lines call no method of `k`, `wg`, `w` or `t`
              try: Name the closure's argument so: the skeleton needs one of them for `<scope>.todo("1.1")`.
        "#]],
    );
    fails(
        "// TODO 1.1: A.\n// ANCHOR: todo_1_1\n\n// k.a();\n// ANCHOR_END: todo_1_1\n",
        expect![[r#"
            solutions/src/step01.rs:2: region `todo_1_1` is empty
              try: Put the lines that the student writes into it, or remove it if there are none.
        "#]],
    );
    fails(
        "fn kernel() {}\n",
        expect![[r#"
            solutions/src/step01.rs:1: this solution has no TODO region
              try: Mark the lines that the student writes, beginning with `// ANCHOR: todo_1_1`.
        "#]],
    );
}

/// Opening lines of scopes that the TODOs of other steps stand in, and the barrier behind an allocation: they are no answers.
const SCOPES: &[&str] = &[
    "k.sync();",
    "k.cluster_sync();",
    "k.warp(0, |w| {",
    "w.elect_one(|t| {",
    "t.repeat(k_tiles, |t, round| {",
    "tiles.each(t, cluster, |t, tile_row, tile_column| {",
    "for consumer in 0..CONSUMERS {",
];

/// What one step asks for, no other step's skeleton shows: line by line.
#[test]
fn no_skeleton_gives_away_an_answer() {
    let (mut asked, mut given) = (Vec::new(), Vec::new());
    for step in 1..=10 {
        let file = format!("solutions/src/step{step:02}.rs");
        let solution =
            std::fs::read_to_string(format!("{}/../{file}", env!("CARGO_MANIFEST_DIR"))).expect("a solution");
        let mut region = None;
        for (number, line) in (1..).zip(solution.lines()) {
            if let Some(marker) = line.trim().strip_prefix("// ANCHOR") {
                region = marker.strip_prefix(": todo_").map(|id| id.replace('_', "."));
                continue;
            }
            let code = line.split("//").next().unwrap_or_default().trim();
            if !code.contains(char::is_alphabetic) || SCOPES.contains(&code) {
                continue;
            }
            match &region {
                Some(id) => asked.push((id.clone(), code.to_string())),
                None => given.push((format!("{file}:{number}"), code.to_string())),
            }
        }
    }
    assert!(asked.len() > 300 && given.len() > 300, "{} lines asked, {} given", asked.len(), given.len());
    let leaks: Vec<String> = given
        .iter()
        .flat_map(|(place, code)| {
            let same = asked.iter().filter(move |(_, wanted)| wanted == code);
            same.map(move |(id, _)| format!("{place}: `{code}` answers TODO {id}"))
        })
        .collect();
    assert!(leaks.is_empty(), "{}", leaks.join("\n"));
}
