//! Kernels of several tiles whose roles do not agree where in D a tile lies, or whose operands are exchanged where M = N, which no size tells. Tiles are stored
//! by copies, or by threads.

use super::case::{Base::Ring, Result, edited, says, told};
use super::common::{self, hopper};
use emulator::{Diagnostic, Launch, Param, Report};

/// The ring with tiles of 128 x 128, two by two.
const SQUARE: &[(&str, &str)] = &[
    ("@barriers", "    add.u32 %r3, %r2, 98304;"),
    ("@stage_producer", "    shl.b32 %r16, %r11, 15;\n{}"),
    ("@stage_multiplier", "    shl.b32 %r16, %r11, 15;\n{}"),
    ("@tile_d", "    add.u32 %r25, %r25, 65536;"),
    ("@tile_d_store", "    add.u32 %r44, %r2, 65536;"),
    ("[%r15], 24576;", "[%r15], 32768;"),
    ("0x08100010", "0x08200010"),
    ("@acc_out", "    shl.b32 %r23, %r20, 7;"),
    ("@acc_mma", "    shl.b32 %r23, %r20, 7;"),
    ("[%r3+64], 128;", "[%r3+64], 256;"),
    ("%r6, 128;", "%r6, 256;"),
    ("%r29, 64;", "%r29, 128;"),
    (
        "@swizzle",
        "    shr.u32 %r51, %r43, 7;\n    shl.b32 %r51, %r51, 14;\n    and.b32 %r43, %r43, 127;\n    xor.b32 %r43, %r43, %r26;\n    add.u32 %r43, %r43, %r51;",
    ),
    (
        "    shl.b32 %r13, %r10, 7; // row of A\n    mov.u32 %r19, 0; // row of B",
        "    shr.u32 %r13, %r10, 1;\n    and.b32 %r19, %r10, 1;\n    // loads\n    shl.b32 %r13, %r13, 7;\n    shl.b32 %r19, %r19, 7;",
    ),
    (
        "    shl.b32 %r45, %r10, 7;\n    mov.u32 %r46, 0;",
        "    shr.u32 %r45, %r10, 1;\n    and.b32 %r46, %r10, 1;\n    // stores\n    shl.b32 %r45, %r45, 7;\n    shl.b32 %r46, %r46, 7;",
    ),
    (
        "@store",
        "{}\n    add.u32 %r47, %r44, 16384;\n    add.u32 %r48, %r46, 64;\n    cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%rd4, {%r48, %r45}], [%r47];",
    ),
];
const SNAKE_LOADS: (&str, &str) = ("    // loads\n", "    xor.b32 %r19, %r19, %r13;\n");
const SNAKE_STORES: (&str, &str) = ("    // stores\n", "    xor.b32 %r46, %r46, %r45;\n");
const DESCRIPTORS: (&str, &str) = ("%rd2, %rd3, 0x08200010", "%rd3, %rd2, 0x08200010");
const COORDINATES: (&str, &str) =
    ("    // stores\n", "    mov.u32 %r49, %r45;\n    mov.u32 %r45, %r46;\n    mov.u32 %r46, %r49;\n");
/// D's tiles lie in another order of rows, and of columns.
const PERMUTED: (&str, &str) = ("    // stores\n", "    xor.b32 %r45, %r45, 1;\n    xor.b32 %r46, %r46, 1;\n");

fn launch(launch: &mut Launch) {
    *launch = super::case::ring_launch(256, 192);
    launch.dynamic_shared = 98304 + 72;
    let bytes = common::matrix(256, 192, 2, 2)
        .iter()
        .flat_map(|&x| half::f16::from_f32(x as f32).to_bits().to_le_bytes())
        .collect::<Vec<u8>>();
    launch.buffers[1].content = emulator::Content::Bytes(bytes.into());
    launch.buffers[2].content = emulator::Content::Undefined { bytes: 256 * 512 };
    launch.buffers[2].row_bytes = Some(512);
    launch.params[1] = common::pair::map(1, 256, 192, 128);
    launch.params[2] = common::pair::map(2, 256, 256, 128);
    launch.params[4] = emulator::Param::U32(4);
}

fn four(to: &mut Launch) {
    launch(to);
    to.grid = [4, 1, 1];
}

fn of(edits: &[(&str, &str)], launch: fn(&mut Launch)) -> (Report, Result) {
    let text = edited(&edited(&Ring.text(), SQUARE), edits);
    let mut launched = Ring.launch();
    launch(&mut launched);
    let report = common::run(&common::load(&text), &launched, None, 1_000_000);
    let result = Ring.result(&launched, &report);
    (report, result)
}

fn all(report: &Report) -> Vec<Diagnostic> {
    report.findings.iter().chain(&report.notes).cloned().collect()
}

#[test]
fn tiles_are_stored_where_their_product_belongs() {
    for launch in [launch as fn(&mut Launch), four] {
        for edits in [&[][..], &[SNAKE_LOADS, SNAKE_STORES]] {
            let (report, result) = of(edits, launch);
            assert!(all(&report).is_empty() && result == Result::Right, "{edits:?}: {}", told(&all(&report)));
        }
        let (report, _) = of(&[PERMUTED], launch);
        assert!(all(&report).is_empty(), "{}", told(&all(&report)));
        for (edit, what) in [
            (DESCRIPTORS, "its row and its column are exchanged"),
            (COORDINATES, "its row and its column are exchanged"),
            (SNAKE_LOADS, "is stored from row 128, column"),
            (SNAKE_STORES, "is stored from row 128, column"),
        ] {
            let (report, result) = of(&[edit], launch);
            assert!(result == Result::Wrong);
            let [found] = &report.findings[..] else { panic!("{edit:?}: {}", told(&all(&report))) };
            assert_eq!(found.code, "box-mismatch");
            says(found, &[what, "tile.bulk_group [%rd4, ", "[%r16], [%rd0, ", "[%r17], [%rd1, "]);
        }
    }
}

/// The square one with threads that store what they load from tensor memory to D.
fn direct() -> String {
    let text = edited(&Ring.text(), SQUARE);
    let (front, rest) = text.split_once("    add.u32 %r44, %r2, 65536;").expect("a copy");
    let (_, behind) = rest.split_once("STORED:\n").expect("behind it");
    edited(
        &format!("{front}STORED:\n{behind}"),
        &[
            ("    .param .align 64 .b8 map_d[128],", "    .param .u64 d,"),
            ("    mov.b64 %rd4, map_d;\n    cvta.param.u64 %rd4, %rd4;", "    ld.param.u64 %rd4, [d];"),
            (
                "@fence_after_acc",
                "{}\n    shr.u32 %r45, %r10, 1;\n    and.b32 %r46, %r10, 1;\n    // stores\n    shl.b32 %r45, %r45, 7;\n    \
                 shl.b32 %r46, %r46, 7;\n    add.u32 %r45, %r45, %r0;\n    shl.b32 %r45, %r45, 8;\n    \
                 add.u32 %r45, %r45, %r46;\n    mul.wide.u32 %rd5, %r45, 2;\n    add.s64 %rd5, %rd5, %rd4;",
            ),
            ("@st_tile", "    st.global.v4.b32 [%rd5], {%r39, %r40, %r41, %r42};\n    add.s64 %rd5, %rd5, 16;"),
        ],
    )
}

/// Each lane stores its row of the accumulator to global memory.
#[test]
fn threads_store_tiles_where_their_product_belongs() {
    let run = |edits: &[(&str, &str)], given: bool| {
        let mut launched = Ring.launch();
        launch(&mut launched);
        launched.params[2] = Param::Pointer { buffer: 2, offset: 0 };
        if !given {
            // The pitch of the lanes tells how long a row is.
            (launched.buffers[2].row_bytes, launched.buffers[2].element_bytes) = (None, None);
        }
        let report = common::run(&common::load(&edited(&direct(), edits)), &launched, None, 1_000_000);
        launched.buffers[2].row_bytes = Some(512);
        let result = Ring.result(&launched, &report);
        (report, result)
    };
    for given in [true, false] {
        for edits in [&[][..], &[SNAKE_LOADS, SNAKE_STORES]] {
            let (report, result) = run(edits, given);
            assert!(all(&report).is_empty() && result == Result::Right, "{edits:?}: {}", told(&all(&report)));
        }
        let (report, _) = run(&[PERMUTED], given);
        assert!(all(&report).is_empty(), "{}", told(&all(&report)));
        for (edit, what) in [
            (DESCRIPTORS, "its row and its column are exchanged"),
            (COORDINATES, "its row and its column are exchanged"),
            (SNAKE_LOADS, "is stored from row 128, column"),
            (SNAKE_STORES, "is stored from row 128, column"),
        ] {
            let (report, result) = run(&[edit], given);
            assert!(result == Result::Wrong);
            let [found] = &report.findings[..] else { panic!("{edit:?}: {}", told(&all(&report))) };
            assert_eq!(found.code, "box-mismatch");
            says(found, &[what, "st.global.v4.b32 [%rd5]", "[%r16], [%rd0, ", "[%r17], [%rd1, "]);
        }
    }
}

/// Sums in registers: of `wgmma`, through `stmatrix` and a copy.
#[test]
fn products_of_warpgroups_are_stored_where_they_belong() {
    let run = |edits: &[(&str, &str)]| {
        let text = edited(hopper::TEXT, edits);
        let report = common::run(&common::load(&text), &hopper::launch(512, 512, 192), None, 10_000_000);
        let right = common::pair::d(&report) == hopper::product(512, 512, 192);
        (report, right)
    };
    let (report, right) = run(&[]);
    assert!(all(&report).is_empty() && right, "{}", told(&all(&report)));
    // Tiles of D in another order of rows, and of columns.
    let permuted = "    add.u32 %r38, %r38, %r8;\n    xor.b32 %r38, %r38, 256;\n    xor.b32 %r9, %r9, 128;\n";
    let (report, _) = run(&[("    add.u32 %r38, %r38, %r8;\n", permuted)]);
    assert!(all(&report).is_empty(), "{}", told(&all(&report)));
    for edits in [
        [("[%rd2, {%r9, %r38}]", "[%rd2, {%r38, %r9}]"), ("[%rd2, {%r39, %r38}]", "[%rd2, {%r38, %r39}]")],
        [
            (
                "    add.u32 %r38, %r38, %r8;\n",
                "    add.u32 %r38, %r38, %r8;\n    shr.u32 %r50, %r9, 1;\n    and.b32 %r50, %r50, 128;\n    xor.b32 %r38, %r38, %r50;\n",
            ),
            ("griddepcontrol.launch_dependents;", "griddepcontrol.launch_dependents;"),
        ],
    ] {
        let (report, right) = run(&edits);
        let [found] = &report.findings[..] else { panic!("{edits:?}: {}", told(&all(&report))) };
        assert!(found.code == "box-mismatch" && !right);
        says(found, &["cp.async.bulk.tensor.2d.global", "wgmma.mma_async", "[%r18], [%rd0, ", "[%r19], [%rd1, "]);
    }
}

/// Warps whose rows of D are not those of their lanes.
#[test]
fn warps_store_the_rows_of_their_lanes() {
    const OTHER_ROWS: (&str, &str) = ("@row", "    xor.b32 %r25, %r0, 32;\n    shl.b32 %r25, %r25, 7;");
    let noted = |report: &Report, store: &str| {
        assert!(report.findings.is_empty(), "{}", told(&report.findings));
        let [note] = &report.notes[..] else { panic!("{}", told(&report.notes)) };
        assert_eq!(note.code, "box-mismatch");
        says(note, &["of a product are stored from row", "by those of another warp", store, "[%r16], [%rd0, "]);
    };
    let (report, result) = of(&[OTHER_ROWS], launch);
    assert!(result == Result::Wrong);
    noted(&report, "tile.bulk_group [%rd4, ");
    let report = super::case::run(Ring, &[OTHER_ROWS], |_| {}, 400_000);
    noted(&report, "tile.bulk_group [%rd4, ");
    let text = edited(
        &direct(),
        &[("    add.u32 %r45, %r45, %r0;", "    xor.b32 %r50, %r0, 64;\n    add.u32 %r45, %r45, %r50;")],
    );
    let mut launched = Ring.launch();
    launch(&mut launched);
    launched.params[2] = Param::Pointer { buffer: 2, offset: 0 };
    noted(&common::run(&common::load(&text), &launched, None, 1_000_000), "st.global.v4.b32 [%rd5]");
}

/// Tiles of B of which some begin eight rows further on than those of others that are stored in the same columns.
#[test]
fn columns_of_b_have_one_place() {
    let shifted = |by: &str| {
        let to = format!("    shl.b32 %r19, %r19, 7;\n    shr.u32 %r90, %r13, {by};\n    add.u32 %r19, %r19, %r90;");
        of(&[("    shl.b32 %r19, %r19, 7;", to.as_str())], launch)
    };
    let (report, result) = shifted("8");
    assert!(all(&report).is_empty() && result == Result::Right, "{}", told(&all(&report)));
    let (report, result) = shifted("4");
    let [found] = &report.findings[..] else { panic!("{}", told(&all(&report))) };
    assert!(found.code == "box-mismatch" && result == Result::Wrong);
    says(found, &["columns 8 to 135 of B is stored from row 128, column 0 of D on", "[%r17], [%rd1, "]);
}

/// Of a tile that lies in two boxes, both copies take the first box, or the second one begins in its middle: what threads have staged behind it is
/// stored nowhere.
#[test]
fn each_box_is_stored_from_its_own_place() {
    const SECOND: &str = "    add.u32 %r47, %r44, 16384;";
    for (place, part) in
        [("    mov.u32 %r47, %r44;", "the tile"), ("    add.u32 %r47, %r44, 8192;", "a part of the tile")]
    {
        let (report, result) = of(&[(SECOND, place)], launch);
        assert!(result == Result::Wrong);
        let [found] = &report.findings[..] else { panic!("{place}: {}", told(&all(&report))) };
        assert_eq!(found.code, "box-mismatch");
        assert!(found.title.starts_with(&format!("{part} in ")), "{}", found.title);
        says(found, &["to none", "{%r48, %r45}], [%r47]", "{%r46, %r45}], [%r44]", "st.shared.v4.b32"]);
    }
    // What is staged once may be stored to several places, where nothing else was meant for them.
    let (report, _) = of(
        &[
            (SECOND, "    mov.u32 %r47, %r44;"),
            ("    xor.b32 %r43, %r43, %r26;\n    add.u32 %r43, %r43, %r51;", "    xor.b32 %r43, %r43, %r26;"),
        ],
        launch,
    );
    let told_so = |found: &Diagnostic| found.title.contains("to two places");
    assert!(!all(&report).iter().any(told_so), "{}", told(&all(&report)));
}
