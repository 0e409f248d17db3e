//! Kernels of libraries with one idea wrong, which takes several statements. What should be said was written down before the emulator had seen them.

use super::case::told;
use emulator::{Launch, Options};

/// A kernel of `../libraries`, what is wrong with it, how its text becomes so, and what must be found first: the code, and a part of the line.
type Bug = (&'static str, &'static str, fn(&str) -> String, &'static str, &'static str);

const BUGS: &[Bug] = &[
    (
        "tilelang_mxfp8",
        "the columns of the scale factors begin within the accumulator",
        factors_in_the_accumulator,
        "operand-overlap",
        "tcgen05.mma",
    ),
    (
        "cutlass_mn_bf16",
        "along K, B by rows of N is stepped through as if it lay by rows of K",
        steps_of_another_order,
        "box-mismatch",
        "tcgen05.mma",
    ),
    // Its operands are four boxes of other depths, which is no mistake: what is wrong must be told as it is.
    (
        "flashinfer_tiny",
        "nobody waits for the zeroes that the accumulator begins with",
        |text| text.replace("tcgen05.wait::st.sync.aligned;", ""),
        "race-tensor",
        "tcgen05.st",
    ),
    (
        "flashinfer_tiny",
        "half of the accumulator's columns do not begin with zeroes",
        zeroes_for_half,
        "undefined-value-stored",
        "tcgen05.mma",
    ),
    (
        "flashinfer_tiny",
        "one of the four boxes of B is copied to where another one lies",
        |text| text.replacen("%r129, 4096;", "%r129, 2048;", 1),
        "race-shared",
        "cp.async.bulk",
    ),
    (
        "flashinfer_tiny",
        "A goes on from stage to stage by twice as much, and into the tiles of B",
        |text| text.replacen(", %r310, 11;", ", %r310, 12;", 1),
        "box-mismatch",
        "tcgen05.mma",
    ),
    (
        "flash_attention_causal",
        "one of the stores of P to tensor memory is left out, so that sums of Q K^T are multiplied for it",
        |text| without_store(text, text.find("tcgen05.st.sync").expect("a store")),
        "type-mismatch",
        "tcgen05.mma",
    ),
];

fn without_store(text: &str, at: usize) -> String {
    let end = at + text[at..].find(';').expect("its end") + 1;
    text[..at].to_string() + &text[end..]
}

/// Of two stores of 32 columns, the second one is left out.
fn zeroes_for_half(text: &str) -> String {
    without_store(text, text.rfind("tcgen05.st").expect("a store"))
}

/// The address of the factors' columns is the accumulator's, 240 columns on, but where they are freed.
fn factors_in_the_accumulator(text: &str) -> String {
    const FACTORS: &str = "[_ZZ29mxfp8_blockscaled_gemm_kernelE8sfb_data];";
    let (used, freed) = text.split_at(text.rfind("bar.sync").expect("a barrier before they are freed"));
    let moved =
        used.lines().map(|line| match line.trim().strip_prefix("ld.shared.b32").filter(|_| line.ends_with(FACTORS)) {
            Some(rest) => {
                let register = rest.split(',').next().unwrap_or_default().trim();
                format!("{}\nadd.s32 {register}, {register}, 240;", line.replace("8sfb_data", "6C_tmem"))
            }
            None => line.into(),
        });
    moved.collect::<Vec<String>>().join("\n") + freed
}

/// 16 rows of K are 128 × 16 bytes on in the descriptors of such a tile; 32 bytes are it where K is the row.
fn steps_of_another_order(text: &str) -> String {
    let end = text.rfind("tcgen05.mma").expect("an MMA");
    let (code, rest) = text.split_at(end);
    let begin = code.find("tcgen05.mma").expect("more than one");
    let step = |line: &str| match line.trim().strip_prefix("add.s64").and_then(|rest| rest.rsplit_once(", ")) {
        Some((_, by @ ("128;" | "256;" | "384;"))) => {
            line.replace(by, &format!("{};", by.trim_end_matches(';').parse::<u32>().unwrap_or(0) / 64))
        }
        _ => line.into(),
    };
    code[..begin].to_string() + &code[begin..].lines().map(step).collect::<Vec<String>>().join("\n") + rest
}

#[test]
fn kernels_of_libraries() {
    for (kernel, what, edit, code, place) in BUGS {
        let path = |ending: &str| format!("{}/tests/libraries/{kernel}.{ending}", env!("CARGO_MANIFEST_DIR"));
        let read =
            |ending: &str| std::fs::read_to_string(path(ending)).unwrap_or_else(|e| panic!("{}: {e}", path(ending)));
        let (right, launch): (String, Launch) = (read("ptx"), serde_json::from_str(&read("json")).expect("a launch"));
        let text = edit(&right);
        assert_ne!(text.lines().collect::<Vec<_>>(), right.lines().collect::<Vec<_>>(), "{kernel}");
        let program = emulator::load(&text).unwrap_or_else(|e| panic!("{kernel}: {e:#?}"));
        for seed in super::common::schedules(1) {
            let options = Options { seed, max_instructions: 10_000_000, ..Default::default() };
            let report = emulator::run(&program, &launch, &options);
            let first = report.findings.first();
            let found = first
                .is_some_and(|d| d.code == *code && d.labels.first().is_some_and(|l| l.place.text.contains(place)));
            // None of them is a matter of M or N.
            let of_the_shape = report.findings.iter().any(|d| d.code == "instruction-descriptor");
            assert!(
                found && !of_the_shape,
                "{kernel}, {what}, seed {seed:?}: {code} at {place} is not first, but\n{}",
                told(&report.findings)
            );
        }
    }
}

/// What lacks is told by what has no value: of scale factors, not of the accumulator that the product goes to.
#[test]
fn scale_factors_that_nobody_copies() {
    let path = |ending: &str| format!("{}/tests/libraries/tilelang_mxfp8.{ending}", env!("CARGO_MANIFEST_DIR"));
    let read = |ending: &str| std::fs::read_to_string(path(ending)).unwrap_or_else(|e| panic!("{}: {e}", path(ending)));
    let (right, launch): (String, Launch) = (read("ptx"), serde_json::from_str(&read("json")).expect("a launch"));
    let is_copy = |line: &&str| line.contains("tcgen05.cp.");
    assert!(right.lines().any(|line| is_copy(&line)), "no copy to leave out");
    let text: String = right.lines().filter(|line| !is_copy(line)).map(|line| format!("{line}\n")).collect();
    let program = emulator::load(&text).unwrap_or_else(|e| panic!("{e:#?}"));
    let report = emulator::run(&program, &launch, &Options::default());
    let finding = report.findings.iter().find(|d| d.code == "undefined-value-stored");
    let told_so = finding.is_some_and(|d| {
        let mma =
            d.labels.first().is_some_and(|l| l.place.text.contains("tcgen05.mma") && l.text.contains("scale factors"));
        mma && d.help.contains("scale factors")
    });
    assert!(told_so, "the MMA and its scale factors are not named, but\n{}", told(&report.findings));
}

/// A tile is stored as four boxes, from the last to the first: D has the columns of each box where another one's belong. Where it is stored as it should be, nothing is
/// said (`../libraries.rs`).
#[test]
fn boxes_in_each_others_places() {
    let path = |ending: &str| format!("{}/tests/libraries/cute_ext_dense.{ending}", env!("CARGO_MANIFEST_DIR"));
    let read = |ending: &str| std::fs::read_to_string(path(ending)).unwrap_or_else(|e| panic!("{}: {e}", path(ending)));
    let (right, launch): (String, Launch) = (read("ptx"), serde_json::from_str(&read("json")).expect("a launch"));
    let store = "cp.async.bulk.tensor.3d.global.shared::cta.tile.bulk_group.L2::cache_hint [%rd40, {%r226,";
    let mirrored = format!(
        "{{ .reg .b32 c; mov.u32 c, %ctaid.y; shl.b32 c, c, 8; add.s32 c, c, 96; sub.s32 c, c, %r226; {}",
        store.replace("%r226", "c")
    );
    let text = right.replacen(store, &mirrored, 1).replacen("[%r44+66560], %rd41;", "[%r44+66560], %rd41; }", 1);
    for seed in super::common::schedules(1) {
        let told_of = |text: &str| {
            let program = emulator::load(text).unwrap_or_else(|e| panic!("{e:#?}"));
            let report = emulator::run(&program, &launch, &Options { seed, ..Options::default() });
            assert!(report.findings.is_empty(), "{}", told(&report.findings));
            report.notes.into_iter().find(|note| note.code == "box-mismatch").map(|note| note.title)
        };
        assert_eq!(told_of(&right), None);
        let title = told_of(&text).expect("a note");
        assert!(title.contains("columns 96 to 127 of a product are stored from column"), "{title}");
        assert!(title.contains("where its columns 0 to 31 belong"), "{title}");
    }
}
