//! Messages as values, findings of several seeds, and notes.

use crate::common::emulate_texts;
use crate::{kernel, launch, says};
use expect_test::expect;

/// Errors of kernels and of launch files, as values.
#[test]
fn json_has_errors_of_kernels_and_of_launch_files() {
    let json = |kernel: &str, launch: &str| {
        let said = emulate_texts(kernel, launch, &["--format", "json"]);
        assert_eq!((said.status, said.err.as_str()), (2, ""));
        said.out
    };
    expect![[r#"
        {
          "schema": 1,
          "kernel": "k.ptx",
          "launch": "k.json",
          "errors": [
            {
              "code": "ptx-semantics",
              "title": "`%r32` is not declared",
              "places": [
                {
                  "file": "k.ptx",
                  "line": 17,
                  "column": 1,
                  "text": "here"
                }
              ],
              "rule": "PTX instructions take the operands that chapter 9 of the PTX ISA gives them.",
              "help": "The highest of `%r<…>` that is declared is `%r31`: declare more, or correct the number."
            }
          ]
        }
    "#]]
    .assert_eq(&json(&kernel("mov.u32 %r1, %r32;"), &launch(32)));
    expect![[r#"
        {
          "schema": 1,
          "kernel": "k.ptx",
          "launch": "k.json",
          "errors": [
            {
              "code": "launch",
              "title": "a CTA of 2048 × 1 × 1 threads",
              "places": [
                {
                  "file": "k.json",
                  "line": 1,
                  "column": 44,
                  "text": "`block` of the launch description"
                },
                {
                  "file": "k.ptx",
                  "line": 4,
                  "column": 17,
                  "text": "this kernel"
                }
              ],
              "rule": "A launch must stay within what the kernel declares and the GPU has (PTX ISA 11.4; CUDA Programming Guide, compute capabilities 9.0 and 10.0).",
              "help": "1 to 1024 threads, z up to 64."
            }
          ]
        }
    "#]].assert_eq(&json(&kernel(""), &launch(2048)));
    expect![[r#"
        {
          "schema": 1,
          "kernel": "k.ptx",
          "launch": "k.json",
          "errors": [
            {
              "code": "launch",
              "title": "unknown field `gird`",
              "places": [
                {
                  "file": "k.json",
                  "line": 1,
                  "column": 16,
                  "text": "found here"
                }
              ],
              "rule": "",
              "help": "Allowed here: `entry`, `grid`, `cluster`, `block`, `dynamic_shared`, `buffers`, `params`, `param_block`, `regions`, `attributes`, `outputs`."
            }
          ]
        }
    "#]].assert_eq(&json(&kernel(""), &launch(32).replace("\"grid\"", "\"gird\"")));
}

/// Of several seeds, each finding says which ones it was seen under; notes are counted, and hidden if so wished.
#[test]
fn findings_of_several_seeds_and_notes() {
    let body = "mov.u32 %r1, 7; shr.u32 %r3, %r0, 5;\nst.shared.u32 [tile], %r1;\nst.shared.u32 [tile+128], %r3;\nld.shared.u32 %r2, [tile+128];";
    says(
        body,
        64,
        &["--seeds", "0..12"],
        expect![[r#"
            finding[race-shared]: warp 1 writes `tile`, warp 0 writes it, and nothing orders the two
              --> k.ptx:19:1
               |
            19 | st.shared.u32 [tile+128], %r3;
               | ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
               | |
               | warp 0 writes it here
               | warp 1 writes it here
               |
               = note: seen under all 12 seeds
               = rule: Plain accesses of different threads to the same bytes, one of them a write, are a data race unless synchronisation orders them (PTX ISA 8.7.1, 8.9.5).
               = try: Let each byte be written by one warp: check how the address depends on the thread.

            Notes: rules broken that no machine code would show, and what a right kernel seldom does. They change no exit status; `--notes hide` hides them.

            note[same-value-written-twice]: warp 1 and warp 0 store the same value to `tile`, and nothing orders the two
              --> k.ptx:18:1
               |
            18 | st.shared.u32 [tile], %r1;
               | ^^^^^^^^^^^^^^^^^^^^^^^^^^
               | |
               | stored here
               | stored here before
               |
               = note: seen under all 12 seeds
               = rule: Plain accesses of different threads to the same bytes, one of them a write, are a data race unless synchronisation orders them (PTX ISA 8.7.1, 8.9.5), also when the value does not depend on it.
               = try: Let one warp store it.

            `k`, seed 0: 1 finding, 1 note; N cycles, 20 warp instructions
            `k`, seed 1: 1 finding, 1 note; N cycles, 20 warp instructions
            `k`, seed 2: 1 finding, 1 note; N cycles, 20 warp instructions
            `k`, seed 3: 1 finding, 1 note; N cycles, 20 warp instructions
            `k`, seed 4: 1 finding, 1 note; N cycles, 20 warp instructions
            `k`, seed 5: 1 finding, 1 note; N cycles, 20 warp instructions
            `k`, seed 6: 1 finding, 1 note; N cycles, 20 warp instructions
            `k`, seed 7: 1 finding, 1 note; N cycles, 20 warp instructions
            `k`, seed 8: 1 finding, 1 note; N cycles, 20 warp instructions
            `k`, seed 9: 1 finding, 1 note; N cycles, 20 warp instructions
            `k`, seed 10: 1 finding, 1 note; N cycles, 20 warp instructions
            `k`, seed 11: 1 finding, 1 note; N cycles, 20 warp instructions
            `k`: 0 of 12 schedules are clean; 1 finding, 1 note
        "#]],
    );
    says(
        body,
        64,
        &["--notes", "hide"],
        expect![[r#"
            finding[race-shared]: warp 0 writes `tile`, warp 1 writes it, and nothing orders the two
              --> k.ptx:19:1
               |
            19 | st.shared.u32 [tile+128], %r3;
               | ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
               | |
               | warp 1 writes it here
               | warp 0 writes it here
            20 | ld.shared.u32 %r2, [tile+128];
               | ------------------------------ warp 0 reads it here
               |
               = note: seen 2 times
               = rule: Plain accesses of different threads to the same bytes, one of them a write, are a data race unless synchronisation orders them (PTX ISA 8.7.1, 8.9.5).
               = try: Let each byte be written by one warp: check how the address depends on the thread.

            `k`, default schedule: 1 finding, 1 note (hidden); N cycles, 20 warp instructions
        "#]],
    );
}

/// A run that did not end has no length; one of times only says so, also as a value.
#[test]
fn runs_that_are_no_whole_runs_say_so() {
    let stopped = emulate_texts(&kernel("trap;"), &launch(32), &[]).out;
    assert!(stopped.contains("did not end; ") && !stopped.contains("cycles"), "{stopped}");
    for (arguments, says) in [(&["--format", "json"][..], false), (&["--format", "json", "--timing-only"], true)] {
        let out = emulate_texts(&kernel(""), &launch(32), arguments).out;
        assert!(out.contains(&format!("\"timing_only\": {says}")), "{out}");
    }
}

/// A kernel that takes over clusters, where all of them run at once: no seed shows what it does with one, and the runs say so.
#[test]
fn requests_that_no_seed_grants_are_told() {
    let body = "@!%p0 bra WAIT;\nmbarrier.init.shared::cta.b64 [bar], 1;\nmbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 16;\n\
                clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.b128 [tile], [bar];\n\
                AGAIN:\nmbarrier.try_wait.parity.shared::cta.b64 %p1, [bar], 0;\n@!%p1 bra AGAIN;\nWAIT:";
    let refused = "here each request is refused, since all clusters run at once. With `resident_clusters` 1";
    let grid = launch(32).replace("\"grid\": [1, 1, 1]", "\"grid\": [3, 1, 1]");
    for (arguments, more) in [(&[][..], true), (&["--seed", "3"], false), (&["--seeds", "0..3"], false)] {
        let said = emulate_texts(&kernel(body), &grid, arguments).out;
        assert!(said.contains(refused), "{arguments:?}: {said}");
        assert_eq!(said.contains("`--seeds 0..50` tries some"), more, "{arguments:?}: {said}");
    }
    let one = grid.replace("\"block\"", "\"attributes\": {\"resident_clusters\": 1}, \"block\"");
    let said = emulate_texts(&kernel(body), &one, &["--seeds", "0..3"]).out;
    assert!(!said.contains("depends on time"), "{said}");
}
