//! Where tiles lie and whether all of them is used: descriptors that disagree with the boxes that were loaded, slices that are never
//! read, outputs that are never or twice written. Each as a small edit of a kernel that is right.

mod common;

use common::{one_tile, pair};
use emulator::{Buffer, Content, Launch, Report, Severity};

/// The codes of what was found and noted, on the default schedule and some others: the same on all.
#[track_caller]
fn said(text: &str, launch: &Launch) -> (Vec<&'static str>, Report) {
    let program = common::load(text);
    let mut first: Option<(Vec<&'static str>, Report)> = None;
    for seed in common::schedules(3) {
        let report = common::run(&program, launch, seed, 10_000_000);
        let codes = [common::codes(&report), common::notes(&report)].concat();
        match &first {
            Some((known, _)) => assert_eq!(known, &codes, "seed {seed:?}: {}", common::rendered(&report)),
            None => first = Some((codes, report)),
        }
    }
    first.expect("there is a default schedule")
}

/// A kernel is said to have this only, and its message has these parts.
#[track_caller]
fn expect(text: &str, launch: &Launch, severity: Severity, code: &str, parts: &[&str]) {
    let (codes, report) = said(text, launch);
    let shown = common::rendered(&report);
    assert_eq!(codes, [code], "{shown}");
    let only = report.findings.iter().chain(&report.notes).next().expect("one");
    assert_eq!(only.severity, severity, "{shown}");
    assert!(emulator::CODES.iter().any(|(known, _)| *known == code), "`{code}` is not in CODES");
    for part in parts {
        assert!(shown.contains(part), "`{part}` is not in\n{shown}");
    }
}

#[track_caller]
fn edited(text: &str, from: &str, to: &str) -> String {
    assert_eq!(text.matches(from).count(), 1, "`{from}` must occur once");
    text.replace(from, to)
}

const DESCRIPTOR: &str = "or.b64 %rd2, %rd2, 0x4000404000000000;";

/// The pair's kernel with another descriptor of A, B's as it was.
fn with_descriptor(bits: &str) -> String {
    let text = edited(
        pair::TEXT,
        DESCRIPTOR,
        &format!("or.b64 %rd3, %rd2, 0x4000404000000000;\n    or.b64 %rd2, %rd2, {bits};"),
    );
    edited(&text, "add.s64 %rd3, %rd2, 1024;", "add.s64 %rd3, %rd3, 1024;")
}

#[test]
fn the_descriptor_of_the_box() {
    let (codes, report) = said(&with_descriptor("0x4000404000000000"), &pair::launch(256, 128));
    assert!(codes.is_empty(), "{}", common::rendered(&report));
    // The leading offset means nothing here.
    let (codes, report) = said(&with_descriptor("0x4000404001230000"), &pair::launch(256, 128));
    assert!(codes.is_empty(), "{}", common::rendered(&report));
}

/// The ISA has base offsets for tiles that do not begin with their pattern: what is not modelled is no mistake. Where a tile does begin with it, there is
/// nothing to say, and who says something is wrong.
#[test]
fn a_base_offset() {
    let launch = pair::launch(256, 64);
    let (codes, report) = said(&with_descriptor("0x4002404000000008"), &launch);
    assert!(codes.is_empty() && !report.is_clean(), "{}", common::rendered(&report));
    let [said_so] = &report.incomplete[..] else { panic!("{:?}", report.incomplete) };
    assert!(said_so.contains("of A") && said_so.contains("a base offset of 1 (bits 49–51)"), "{said_so}");
    assert!(said_so.contains("is not modelled"), "{said_so}");
    // At the pattern, and 32 bytes further on, in its first row.
    for bits in ["0x4002404000000000", "0x4002404000000002"] {
        let (codes, report) = said(&with_descriptor(bits), &launch);
        assert_eq!(codes, ["matrix-descriptor"], "{}", common::rendered(&report));
        assert!(report.incomplete.is_empty() && report.findings[0].title.contains("a base offset of 1"), "{report:?}");
    }
    // The same of a tile that threads have stored, of its second slice alone; in the pattern's second row nothing is known.
    let second = |bits: &str| {
        let or = "or.b64 %rd3, %rd3, 0x4000404000000000;";
        let mma = "[%r2], %rd3, %rd4, 0x08200010, %p3;";
        assert!(one_tile::TEXT.contains(or) && one_tile::TEXT.contains(mma));
        let text = one_tile::TEXT.replace("tcgen05.mma.cta_group::1.kind::f16 [%r2], %rd3,", &format!("selp.b64 %rd9, {bits}, 0, %p3;\n    or.b64 %rd9, %rd9, %rd3;\n    tcgen05.mma.cta_group::1.kind::f16 [%r2], %rd9,"));
        said(&text, &one_tile::launch_of(&one_tile::operand(1), &one_tile::operand(2)))
    };
    let (codes, report) = second("0x0002000000000000");
    assert_eq!(codes, ["matrix-descriptor"], "{}", common::rendered(&report));
    let (codes, report) = second("0x0002000000000008");
    assert!(codes.is_empty() && report.incomplete.len() == 1, "{}", common::rendered(&report));
    let (codes, report) = second("0x0000000000000000");
    assert!(codes.is_empty() && report.is_clean(), "{}", common::rendered(&report));
}

#[test]
fn rows_of_an_operand_that_overlap() {
    let launch = pair::launch(256, 64);
    let overlaps = |bits: &str, severity, parts: &[&str]| {
        let (_, report) = said(&with_descriptor(bits), &launch);
        let shown = common::rendered(&report);
        let all = report.findings.iter().chain(&report.notes);
        let found = all.clone().find(|d| d.code == "operand-overlap").unwrap_or_else(|| panic!("{shown}"));
        assert_eq!(found.severity, severity, "{shown}");
        assert!(found.labels[0].place.text.starts_with("tcgen05.mma"), "{shown}");
        parts.iter().for_each(|part| assert!(shown.contains(part), "`{part}` is not in\n{shown}"));
    };
    let exchanged = ["row 0, depth 8 and from row 8, depth 0", "stride offset 16 bytes, leading offset 1024 bytes"];
    overlaps("0x4000400100400000", Severity::Finding, &exchanged);
    overlaps("0x4000402000000000", Severity::Finding, &["row 4, depth 0 and from row 8, depth 0"]);
    // With a stride of 0, the same eight rows again and again: that may be meant, but not where 128 were loaded.
    overlaps("0x4000400000000000", Severity::Finding, &["stride offset 0 bytes"]);
}

/// A stride of 1040 bytes: a chunk further in each eight rows. All that is read was loaded.
#[test]
fn rows_that_begin_elsewhere_in_the_rows_of_the_box() {
    let (codes, report) = said(&with_descriptor("0x4000404100000000"), &pair::launch(256, 64));
    let shown = common::rendered(&report);
    assert_eq!(codes.first(), Some(&"box-mismatch"), "{shown}");
    assert!(shown.contains("rows 0 to 7 at byte 0 of the rows of the box, rows 8 to 15 at byte 16"), "{shown}");
    assert!(report.findings[0].labels[1].place.text.starts_with("cp.async.bulk.tensor"), "{shown}");
}

/// Every other eight rows, of A and of what lies behind it: the box has all of them. That it leads into the tile of B is the same mistake.
#[test]
fn rows_of_the_box_that_are_left_out() {
    let (codes, report) = said(&with_descriptor("0x4000408000000000"), &pair::launch(256, 128));
    let shown = common::rendered(&report);
    assert_eq!(codes, ["box-mismatch"], "{shown}");
    let found = &report.findings[0];
    assert!(found.labels[0].text.contains("rows 0 to 7 in rows 0 to 7 of the box"), "{shown}");
    assert!(found.help.contains("to 1024 bytes") && found.help.contains("It is 2048 bytes now"), "{shown}");
}

/// The second step of depth begins 112 bytes into the rows, of which it wants 32.
#[test]
fn a_step_beyond_the_rows_of_the_box() {
    let text = edited(pair::TEXT, "add.s64 %rd2, %rd2, 2;", "add.s64 %rd2, %rd2, 7;");
    let (codes, report) = said(&text, &pair::launch(256, 64));
    let shown = common::rendered(&report);
    assert_eq!(codes.first(), Some(&"box-mismatch"), "{shown}");
    assert!(shown.contains("begins at byte 112 of a row of the box and goes on in the next row"), "{shown}");
}

#[test]
fn a_slice_of_depth_that_is_left_out() {
    let text = edited(pair::TEXT, "setp.lt.u32 %p8, %r20, 4;", "setp.lt.u32 %p8, %r20, 3;");
    let (codes, report) = said(&text, &pair::launch(256, 192));
    let shown = common::rendered(&report);
    // Of the two copies together.
    assert_eq!(codes, ["loaded-never-read"], "{shown}");
    assert!(
        shown.contains("bytes 96 to 127 of the 128 bytes of each row of A and of B are never multiplied"),
        "{shown}"
    );
    assert!(shown.contains("all 3 boxes have the gap"), "{shown}");
    assert_eq!(report.findings[0].count, 2, "in two CTAs");
    // Of one box each, which may hold more than is meant: once for each copy.
    let (codes, report) = said(&text, &pair::launch(256, 64));
    let shown = common::rendered(&report);
    assert_eq!(codes, ["loaded-never-read", "loaded-never-read"], "{shown}");
    assert!(shown.contains("4096 of the 16384 bytes"), "{shown}");
    assert!(shown.contains("row 0 of the box, and all of them lie between bytes 96 and 128 of their rows"), "{shown}");
    assert!(report.findings.is_empty() && report.notes.iter().all(|note| note.count == 2), "{shown}");
    // What is left out is zero in both.
    let mut launch = pair::launch(256, 192);
    for buffer in &mut launch.buffers[..2] {
        let Content::Bytes(bytes) = &buffer.content else { panic!("the matrices are given") };
        let kept = |(at, &byte): (usize, &u8)| if at % 128 < 96 { byte } else { 0 };
        buffer.content = Content::Bytes(bytes.iter().enumerate().map(kept).collect::<Vec<u8>>().into());
    }
    assert!(said(&text, &launch).1.findings.is_empty());
    // A box that hangs over the edge of its tensor is not asked about: who knows what is read of it in vain.
    let (codes, report) = said(&text, &pair::launch(256, 48));
    assert!(codes.is_empty(), "{}", common::rendered(&report));
}

/// A is multiplied by itself, and B is loaded in vain.
#[test]
fn a_box_that_nobody_reads() {
    let text = edited(pair::TEXT, "add.s64 %rd3, %rd2, 1024;", "mov.b64 %rd3, %rd2;");
    let parts =
        ["takes dynamic shared memory at byte 0 both for A and for B", "nobody reads anything of what is loaded here"];
    expect(&text, &pair::launch(256, 128), Severity::Finding, "operand-overlap", &parts);
}

/// D has room for a tile more.
#[test]
fn an_output_that_is_written_in_part() {
    let mut launch = pair::launch(256, 64);
    let larger = |content| Buffer { content, ..launch.buffers[2].clone() };
    let (undefined, zero) = (Content::Undefined { bytes: 160 * 1024 }, Content::Fill { bytes: 160 * 1024, value: 0 });
    let (undefined, zero) = (larger(undefined), larger(zero));
    launch.buffers[2] = undefined;
    let parts = [
        "`D` is written in part only: rows 256 to 319 (32768 of its 163840 bytes) are not",
        "131072 bytes between bytes 0 and 131071",
    ];
    expect(pair::TEXT, &launch, Severity::Note, "output-not-written", &parts);
    // What holds something may be meant to be replaced in part.
    launch.buffers[2] = zero;
    assert!(said(pair::TEXT, &launch).0.is_empty());
}

/// A compiler's kernel without one of its stores to a staged tile is found to have this only, with this in its message. (`libraries.rs` runs it whole.)
#[track_caller]
fn stores_old_bytes(text: &str, launch: &str, store: &str, part: &str) {
    let launch: Launch = serde_json::from_str(launch).expect("a launch");
    let report = common::run(&common::load(&edited(text, store, "")), &launch, None, 100_000_000);
    let shown = common::rendered(&report);
    assert_eq!(common::codes(&report), ["swizzle-mismatch"], "{shown}");
    assert!(shown.contains(part), "`{part}` is not in\n{shown}");
}

/// The epilogue stages its tile where operands lay: what it leaves out is stored as it was multiplied.
#[test]
fn operands_that_are_stored_beside_results() {
    stores_old_bytes(
        include_str!("libraries/tilelang_pair.ptx"),
        include_str!("libraries/tilelang_pair.json"),
        "st.shared.v4.b32 \t[%r786+49152], {%r715, %r718, %r721, %r724};",
        "which an MMA has multiplied, although other bytes of the tile are new",
    );
}

/// Of a box with planes: rows of all of them.
#[test]
fn old_bytes_of_a_box_of_four_dimensions() {
    stores_old_bytes(
        include_str!("libraries/mosaic_gpu.ptx"),
        include_str!("libraries/mosaic_gpu.json"),
        "st.shared.b32 \t[%rd6+1024], %r435;",
        "again, although other bytes of the tile are new",
    );
}

/// Both clusters compute the first tile, and nobody the second.
#[test]
fn a_tile_that_is_computed_twice() {
    let text = pair::TEXT.replace("mov.u32 %r50, %clusterid.x;", "mov.u32 %r50, 0;");
    assert_ne!(text, pair::TEXT);
    let (_, report) = said(&text, &pair::launch(512, 64));
    let note = report.notes.iter().find(|note| note.code == "output-not-written").expect("a tile is missing");
    assert!(note.title.contains("rows 256 to 511"), "{}", note.title);
    let twice = note.labels.iter().any(|label| label.text.contains("once more here, with the value that is there"));
    assert!(twice && note.help.contains("Tiles are computed twice"), "{note:#?}");
}

/// Each thread of a grid stores its number to `out`, which holds nothing before, then this.
fn stores(then: &str, ctas: u32) -> (String, Launch) {
    let text = format!(
        ".version 8.6\n.target sm_100a\n.address_size 64\n.visible .entry k(.param .u64 out)\n{{\n\
         .reg .b32 %r<8>;\n.reg .b64 %rd<8>;\n\
         mov.u32 %r0, %tid.x;\nmov.u32 %r1, %ctaid.x;\nld.param.u64 %rd0, [out];\nmul.wide.u32 %rd1, %r0, 4;\n\
         add.u64 %rd0, %rd0, %rd1;\nadd.u32 %r2, %r0, %r1;\nadd.u32 %r3, %r2, 1;\nst.global.b32 [%rd0], %r2;\n{then}\nret;\n}}\n"
    );
    let out = Buffer { name: "out".into(), content: Content::Undefined { bytes: 128 }, ..Buffer::default() };
    let mut launch = common::launch("k", 32, vec![out]);
    launch.grid[0] = ctas;
    (text, launch)
}

#[test]
fn an_output_that_is_written_twice() {
    let (text, launch) = stores("st.global.b32 [%rd0], %r3;", 1);
    let parts = [
        "`out` at byte 0 is written twice",
        "128 bytes in all",
        "%r3`: written again here",
        "%r2`: written before here",
    ];
    expect(&text, &launch, Severity::Note, "output-written-twice", &parts);
    // Once, and the same again.
    for then in ["", "st.global.b32 [%rd0], %r2;", "ld.global.b32 %r4, [%rd0];\nst.global.b32 [%rd0], %r3;"] {
        let (text, launch) = stores(then, 1);
        let (codes, report) = said(&text, &launch);
        assert!(codes.is_empty(), "{then}: {}", common::rendered(&report));
    }
}

/// Two CTAs write the same bytes: nothing orders them.
#[test]
fn an_output_that_two_ctas_write_is_a_race() {
    let (text, launch) = stores("", 2);
    let (codes, report) = said(&text, &launch);
    assert_eq!(codes, ["race-global"], "{}", common::rendered(&report));
}
