//! What an MMA multiplies comes from where it should: the same depths of A and B, of one type, rows that begin together, sums that are
//! read. Each as a small edit of a kernel that is right, beside a twin that looks alike and is.

mod common;

use common::one_tile::{TEXT as ONE_TILE, launch_of, operand};
use common::pair;
use emulator::{Content, Distribution, Element, Launch, NumberType, Param, Random, Report, Severity};

fn one_tile() -> Launch {
    launch_of(&operand(1), &operand(2))
}

#[track_caller]
fn edited(text: &str, from: &str, to: &str) -> String {
    assert_eq!(text.matches(from).count(), 1, "`{from}` must occur once");
    text.replace(from, to)
}

fn run(text: &str, launch: &Launch, seed: Option<u64>) -> Report {
    common::run(&common::load(text), launch, seed, 10_000_000)
}

/// A kernel has this finding on each schedule, and what is shown of it has these parts.
#[track_caller]
fn found(text: &str, launch: &Launch, code: &str, parts: &[&str]) {
    assert!(emulator::CODES.iter().any(|(known, _)| *known == code), "`{code}` is not in CODES");
    for seed in common::schedules(3) {
        let report = run(text, launch, seed);
        let shown = common::rendered(&report);
        assert!(report.findings.iter().any(|found| found.code == code), "seed {seed:?}: no {code} in\n{shown}");
        for part in parts {
            assert!(shown.contains(part), "`{part}` is not in\n{shown}");
        }
    }
}

/// Nothing is found.
#[track_caller]
fn silent(text: &str, launch: &Launch) {
    for seed in common::schedules(3) {
        let report = run(text, launch, seed);
        assert!(report.is_clean(), "seed {seed:?}: {}", common::rendered(&report));
    }
}

#[test]
fn slices_of_b_that_run_ahead_of_those_of_a() {
    let text = edited(pair::TEXT, "add.s64 %rd3, %rd3, 2;", "add.s64 %rd3, %rd3, 1;");
    let parts = ["an MMA multiplies depths 16 to 31 of A with depths 8 to 23 of B", "the box of B is loaded here"];
    found(&text, &pair::launch(256, 192), "depth-mismatch", &parts);
    // The other way round through the tile: another order of the same products.
    let start = "or.b64 %rd2, %rd2, 0x4000404000000000;\n";
    let backwards = edited(pair::TEXT, start, &format!("{start}    add.s64 %rd2, %rd2, 6;\n"));
    let backwards = edited(&backwards, "add.s64 %rd2, %rd2, 2;", "add.s64 %rd2, %rd2, -2;");
    let backwards = edited(&backwards, "add.s64 %rd3, %rd3, 2;", "add.s64 %rd3, %rd3, -2;");
    silent(&backwards, &pair::launch(256, 192));
}

#[test]
fn an_operand_that_is_read_across() {
    // Bit 15: A is MN-major. Its depths are rows of the box then.
    let text = edited(pair::TEXT, "0x10400010", "0x10408010");
    let parts = ["the MMA reads A as a tile whose rows go along M", "Set bit 15 of the instruction descriptor to 0"];
    found(&text, &pair::launch(256, 192), "instruction-descriptor", &parts);
}

#[test]
fn a_box_that_begins_eight_depths_later() {
    let to = "add.u32 %r40, %r19, 8;\n    cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.cta_group::2 [%r18], [%rd1, {%r40, %r8}]";
    let from = "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.cta_group::2 [%r18], [%rd1, {%r19, %r8}]";
    let text = edited(pair::TEXT, from, to);
    let parts = ["the tensor of B has 192 depths: beyond them its box holds zeros, and the other one data"];
    found(&text, &pair::launch(256, 192), "depth-mismatch", &parts);
    // Both boxes hang over.
    silent(pair::TEXT, &pair::launch(256, 168));
}

#[test]
fn operands_of_two_types() {
    let text = edited(pair::TEXT, "0x10400010", "0x10400090");
    let parts = ["an MMA takes A for BF16 and B for FP16, which are both FP16"];
    found(&text, &pair::launch(256, 128), "type-mismatch", &parts);
    let text = edited(pair::TEXT, "0x10400010", "0x10400490");
    let parts = ["an MMA takes A and B for BF16, which are FP16", "the box of B is loaded here: FP16"];
    found(&text, &pair::launch(256, 128), "type-mismatch", &parts);
    // Where the launch says that the buffers hold BF16, its maps of FP16 are there to move 16 bits.
    let mut launch = pair::launch(256, 128);
    for buffer in &mut launch.buffers[..2] {
        let count = buffer.content.size().expect("bytes") / 2;
        let distribution = Distribution::Uniform { low: -1.0, high: 1.0 };
        buffer.content = Content::Random(Random { seed: 1, count, number: NumberType::Bf16, distribution });
    }
    silent(&text, &launch);
}

/// One MMA of a sum, the third, takes slices of the same boxes for other numbers than those before and behind it.
#[test]
fn boxes_that_one_sum_takes_in_two_ways() {
    let one_of = |other: &str| {
        let from = "tcgen05.mma.cta_group::2.kind::f16 [%r6], %rd2, %rd3, 0x10400010, %p7;";
        let to = format!(
            "setp.eq.u32 %p12, %r20, 2;\n    selp.b32 %r40, {other}, 0x10400010, %p12;\n    {}",
            from.replace("0x10400010", "%r40")
        );
        edited(pair::TEXT, from, &to)
    };
    // Maps of 16 bits say nothing of their type.
    let mut launch = pair::launch(256, 192);
    for param in &mut launch.params {
        let Param::TensorMap { map, .. } = param else { continue };
        map.element = Element::U16;
    }
    for (other, code, parts) in [
        ("0x10400490", "type-mismatch", ["an MMA takes A for BF16, and another one of the same sum takes A for FP16"]),
        ("0x10408010", "instruction-descriptor", ["Set bit 15 of the instruction descriptor to 0"]),
        ("0x10410010", "instruction-descriptor", ["Set bit 16 of the instruction descriptor to 0"]),
    ] {
        found(&one_of(other), &launch, code, &parts);
    }
    // A box may hold real and imaginary parts.
    for (other, title) in [
        ("0x10402010", "an MMA negates A, and another one of the same sum does not negate A"),
        ("0x10404010", "an MMA negates B, and another one of the same sum does not negate B"),
    ] {
        let report = run(&one_of(other), &launch, None);
        assert!(
            report.is_clean() && report.notes.iter().any(|note| note.title == title),
            "{}",
            common::rendered(&report)
        );
    }
    silent(&one_of("0x10400010"), &launch);
    // A sum of its own: D is negated as a whole.
    silent(&edited(pair::TEXT, "0x10400010", "0x10402010"), &launch);
}

/// One MMA of each tile along K, or each second product of the same slices, takes A for B and B for A.
#[test]
fn operands_that_one_mma_of_a_sum_exchanges() {
    let mma = "tcgen05.mma.cta_group::2.kind::f16 [%r6], %rd2, %rd3, 0x10400010, %p7;";
    let exchanged = format!(
        "setp.eq.u32 %p12, %r20, 2;\n    selp.b64 %rd20, %rd3, %rd2, %p12;\n    selp.b64 %rd21, %rd2, %rd3, %p12;\n    {}",
        mma.replace("%rd2, %rd3", "%rd20, %rd21")
    );
    let parts = ["depths 32 to 47 of a sum are multiplied with A and B exchanged", "here A is what the other MMAs"];
    found(&edited(pair::TEXT, mma, &exchanged), &pair::launch(256, 192), "box-mismatch", &parts);
    // A times B, and B times A, of all depths.
    let both = format!("{mma}\n    {}", mma.replace("%rd2, %rd3", "%rd3, %rd2").replace("%p7", "1"));
    silent(&edited(pair::TEXT, mma, &both), &pair::launch(256, 192));
}

#[test]
fn accumulators_that_are_taken_for_another_type() {
    let half = edited(ONE_TILE, "0x08200010", "0x08200000");
    let parts =
        ["the FP16 accumulator of an MMA in", "is taken for FP32 numbers", "FP32 numbers are computed with here"];
    found(&half, &one_tile(), "type-mismatch", &parts);
    // As two halves of 16 bits, of which the lower one is the number.
    let mut bits = half;
    for (n, [d, a, b]) in [[33, 1, 0], [34, 3, 2], [35, 5, 4], [36, 7, 6]].into_iter().enumerate() {
        let (low, high) = (25 + 2 * n, 26 + 2 * n);
        let to = format!(
            "shl.b32 %r{high}, %r{high}, 16;\n    and.b32 %r{low}, %r{low}, 0xffff;\n    or.b32 %r{d}, %r{low}, %r{high};"
        );
        bits = edited(&bits, &format!("cvt.rn.f16x2.f32 %r{d}, %f{a}, %f{b};"), &to);
    }
    silent(&bits, &one_tile());
}

#[test]
fn a_sum_that_changes_its_type() {
    let from = "tcgen05.mma.cta_group::1.kind::f16 [%r2], %rd3, %rd4, 0x08200010, %p3;";
    let to = "selp.b32 %r40, 0x08200010, 0x08200000, %p3;\n    tcgen05.mma.cta_group::1.kind::f16 [%r2], %rd3, %rd4, %r40, %p3;";
    let parts = ["an MMA adds in FP32 to the accumulator in", "which is FP16"];
    found(&edited(ONE_TILE, from, to), &one_tile(), "type-mismatch", &parts);
    silent(&edited(ONE_TILE, from, &to.replace("0x08200000", "0x08200010")), &one_tile());
}

#[test]
fn products_that_nobody_reads() {
    let text = edited(ONE_TILE, "setp.ne.u32 %p3, %r21, 0;", "setp.gt.u32 %p3, %r21, 9;");
    found(&text, &one_tile(), "product-overwritten", &["which nobody has read"]);
    silent(ONE_TILE, &one_tile());
    // The same product four times, as one does to measure. What is left is of the first slice alone.
    let again = edited(&text, "add.s64 %rd3, %rd3, 2;", "add.s64 %rd3, %rd3, 0;");
    silent(&edited(&again, "add.s64 %rd4, %rd4, 2;", "add.s64 %rd4, %rd4, 0;"), &one_tile());
}

#[test]
fn tiles_that_threads_store_by_another_swizzle() {
    let text = edited(ONE_TILE, "and.b32 %r4, %r3, 7;", "and.b32 %r4, %r3, 3;");
    let parts = ["has row 0 from byte 0 of a row of `A` on, row 4 from byte 64 of another", "row 4 was stored here"];
    found(&text, &one_tile(), "swizzle-mismatch", &parts);
    // Where each chunk holds the same number, nobody can tell where it came from.
    let mut launch = one_tile();
    launch.buffers[0].content = Content::Bytes([0, 0x3c].repeat(128 * 64).into());
    launch.buffers[1].content = Content::Bytes([0, 0x3c].repeat(128 * 64).into());
    silent(&text, &launch);
}

#[test]
fn an_operand_that_reaches_into_the_other_ones_tile() {
    let from = "cvt.u64.u32 %rd3, %r19;\n    or.b64 %rd3, %rd3, 0x4000404000000000;";
    let text = edited(ONE_TILE, from, &from.replace("0x40004040", "0x40004080"));
    found(&text, &one_tile(), "operand-overlap", &["both for A and for B", "stride offset 2048 bytes"]);
    // A times itself; but where B is brought in vain, that is not meant.
    let itself = edited(ONE_TILE, "mov.u32 %r20, tile_b;", "mov.u32 %r20, tile_a;");
    found(&itself, &one_tile(), "operand-overlap", &["both for A and for B", "nobody reads anything"]);
    silent(&edited(&itself, "st.shared.v4.b32 [%r9], {%r15, %r16, %r17, %r18};", ""), &one_tile());
}

/// The epilogue of one tile packs two columns into each register by shifts, as compilers do that know no conversion of two.
fn packed_by_shifts() -> String {
    let mut text = edited(ONE_TILE, ".reg .f32 %f<32>;", ".reg .f32 %f<32>;\n    .reg .b16 %h<16>;");
    for (n, [d, a, b]) in [[33, 1, 0], [34, 3, 2], [35, 5, 4], [36, 7, 6]].into_iter().enumerate() {
        let (low, high) = (40 + 2 * n, 41 + 2 * n);
        let to = format!(
            "cvt.rn.f16.f32 %h{b}, %f{b};\n    cvt.rn.f16.f32 %h{a}, %f{a};\n    cvt.u32.u16 %r{low}, %h{b};\n    cvt.u32.u16 %r{high}, %h{a};\n    \
             shl.b32 %r{high}, %r{high}, 16;\n    or.b32 %r{d}, %r{low}, %r{high};"
        );
        text = edited(&text, &format!("cvt.rn.f16x2.f32 %r{d}, %f{a}, %f{b};"), &to);
    }
    text
}

/// The code and the severity of the only thing that is said, on each schedule.
#[track_caller]
fn only(text: &str, (code, severity): (&str, Severity), parts: &[&str]) {
    for seed in common::schedules(3) {
        let report = run(text, &one_tile(), seed);
        let shown = common::rendered(&report);
        let all: Vec<_> = report.findings.iter().chain(&report.notes).collect();
        assert!(matches!(all[..], [only] if (only.code, only.severity) == (code, severity)), "seed {seed:?}: {shown}");
        parts.iter().for_each(|part| assert!(shown.contains(part), "`{part}` is not in\n{shown}"));
    }
}

#[test]
fn columns_that_change_places_in_a_register() {
    let cvt = "cvt.rn.f16x2.f32 %r34, %f3, %f2;";
    let exchanged = edited(ONE_TILE, cvt, "cvt.rn.f16x2.f32 %r34, %f2, %f3;");
    let parts = ["in this order: 0, 1, 3, 2, 4, 5, 6, 7", "column 2 belongs in place 2 here"];
    only(&exchanged, ("box-mismatch", Severity::Finding), &parts);
    // Two registers.
    let store = "st.global.v4.b32 [%rd5], {%r33, %r34, %r35, %r36};";
    let words = edited(ONE_TILE, store, "st.global.v4.b32 [%rd5], {%r33, %r35, %r34, %r36};");
    let parts = ["in this order: 0, 1, 4, 5, 2, 3, 6, 7", "Where the columns of D are to lie in another order"];
    only(&words, ("box-mismatch", Severity::Note), &parts);
    silent(&packed_by_shifts(), &one_tile());
    let shifted = edited(
        &packed_by_shifts(),
        "or.b32 %r35, %r44, %r45;",
        "shl.b32 %r44, %r44, 16;\n    shr.u32 %r45, %r45, 16;\n    or.b32 %r35, %r44, %r45;",
    );
    only(&shifted, ("box-mismatch", Severity::Finding), &["in this order: 0, 1, 2, 3, 5, 4, 6, 7"]);
    // All of them may be meant.
    let all =
        [[33, 1, 0], [34, 3, 2], [35, 5, 4], [36, 7, 6]].into_iter().fold(ONE_TILE.to_string(), |text, [d, a, b]| {
            edited(
                &text,
                &format!("cvt.rn.f16x2.f32 %r{d}, %f{a}, %f{b};"),
                &format!("cvt.rn.f16x2.f32 %r{d}, %f{b}, %f{a};"),
            )
        });
    only(&all, ("box-mismatch", Severity::Note), &["in this order: 1, 0, 3, 2, 5, 4, 7, 6"]);
}

#[test]
fn columns_that_are_lost_in_a_register() {
    let cvt = "cvt.rn.f16x2.f32 %r34, %f3, %f2;";
    let twice = edited(ONE_TILE, cvt, "cvt.rn.f16x2.f32 %r34, %f2, %f2;");
    let parts = ["column 2 in the place of column 3", "0, 1, 2, 2, 4, 5, 6, 7"];
    only(&twice, ("product-never-read", Severity::Finding), &parts);
    let half = edited(&packed_by_shifts(), "or.b32 %r35, %r44, %r45;", "mov.b32 %r35, %r44;");
    only(
        &half,
        ("product-never-read", Severity::Finding),
        &["a constant in the place of column 5", "0, 1, 2, 3, 4, –, 6, 7"],
    );
    // At the end of a row it may be there to fill that up.
    let end = edited(&packed_by_shifts(), "or.b32 %r36, %r46, %r47;", "mov.b32 %r36, %r46;");
    only(&end, ("product-never-read", Severity::Note), &["0, 1, 2, 3, 4, 5, 6, –"]);
    // The shift is lost: the halves lie one upon the other.
    let upon = edited(&packed_by_shifts(), "shl.b32 %r45, %r45, 16;", "shl.b32 %r45, %r45, 15;");
    assert!(run(&upon, &one_tile(), None).is_clean(), "what a number of bits means is not known");
    // Each second one is stored in both halves, on purpose perhaps.
    let all =
        [[33, 1, 0], [34, 3, 2], [35, 5, 4], [36, 7, 6]].into_iter().fold(ONE_TILE.to_string(), |text, [d, a, b]| {
            edited(
                &text,
                &format!("cvt.rn.f16x2.f32 %r{d}, %f{a}, %f{b};"),
                &format!("cvt.rn.f16x2.f32 %r{d}, %f{b}, %f{b};"),
            )
        });
    only(&all, ("product-never-read", Severity::Note), &["0, 0, 2, 2, 4, 4, 6, 6"]);
}

#[test]
fn lanes_that_store_each_others_rows() {
    let row = "mul.wide.u32 %rd6, %r0, 256;";
    let moved = |how: &str| edited(ONE_TILE, row, &format!("{how}\n    mul.wide.u32 %rd6, %r50, 256;"));
    // Who has gathered the rows of A so puts them back.
    silent(&moved("xor.b32 %r50, %r0, 1;"), &one_tile());
    let two = "and.b32 %r50, %r0, 30;\n    setp.eq.u32 %p7, %r50, 4;\n    xor.b32 %r50, %r0, 1;\n    selp.b32 %r50, %r50, %r0, %p7;";
    let parts = ["lane 4 of a warp stores its row of a product as row 5 of 32", "2 lanes of a warp"];
    only(&moved(two), ("box-mismatch", Severity::Note), &parts);
    // Of the last warp alone.
    let last = two.replace("%r0, 30;", "%r0, 126;").replace("%r50, 4;", "%r50, 100;");
    only(&moved(&last), ("box-mismatch", Severity::Note), &parts);
    silent(&moved("add.u32 %r50, %r0, 0;"), &one_tile());
    // Through a tile that a copy stores.
    let staged = |how: &str| {
        let text = edited(pair::TEXT, "shl.b32 %r25, %r0, 7;", &format!("{how}\n    shl.b32 %r25, %r60, 7;"));
        edited(&text, "and.b32 %r26, %r0, 7;", "and.b32 %r26, %r60, 7;")
    };
    let parts = ["lane 0 of a warp stores its row of a product as row 2 of 32", "copied from there"];
    let launch = pair::launch(256, 192);
    let said = |text: &str| {
        let report = run(text, &launch, None);
        let shown = common::rendered(&report);
        parts.iter().for_each(|part| assert!(shown.contains(part), "`{part}` is not in\n{shown}"));
        report.findings.iter().chain(&report.notes).map(|said| (said.code, said.severity)).collect::<Vec<_>>()
    };
    assert_eq!(said(&staged("xor.b32 %r60, %r0, 2;")), [("box-mismatch", Severity::Note)]);
    let first = "and.b32 %r60, %r0, 29;\n    setp.eq.u32 %p12, %r60, 0;\n    xor.b32 %r60, %r0, 2;\n    selp.b32 %r60, %r60, %r0, %p12;";
    assert_eq!(said(&staged(first)), [("box-mismatch", Severity::Note)]);
    silent(&staged("add.u32 %r60, %r0, 0;"), &launch);
    // Rows of four heads that are computed together, each head in its own place: bits of the lane change places.
    let heads = "and.b32 %r50, %r0, 3;\n    shl.b32 %r50, %r50, 3;\n    shr.u32 %r51, %r0, 2;\n    and.b32 %r51, %r51, 7;\n    or.b32 %r50, %r50, %r51;\n    \
                 and.b32 %r51, %r0, 96;\n    or.b32 %r50, %r50, %r51;";
    silent(&moved(heads), &one_tile());
}
