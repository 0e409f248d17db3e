//! Values of chosen clusters only: what a run finds and how long it takes is as if all were computed, and nothing that was not
//! computed passes for a value.

mod common;
#[path = "gluon/case.rs"]
mod gluon;

use common::pair::{TEXT, d, launch, map, product};
use common::{load, schedules};
use emulator::{Buffer, Content, Launch, Options, Param, Program, Report, Values};

fn run(program: &Program, launch: &Launch, seed: Option<u64>, values: Values) -> Report {
    emulator::run(program, launch, &Options { seed, values, max_instructions: 10_000_000, ..Default::default() })
}

fn of(clusters: &[u32]) -> Values {
    Values::OfClusters(clusters.to_vec())
}

/// The text of the pair kernel with one place changed.
fn edited(from: &str, to: &str) -> String {
    assert!(TEXT.contains(from), "no {from:?}");
    TEXT.replacen(from, to, 1)
}

/// Two runs that differ only in which values they compute.
fn same_but_for_values(whole: &Report, sample: &Report, what: &str) {
    assert_eq!((sample.cycles, sample.instructions), (whole.cycles, whole.instructions), "{what}");
    assert_eq!(sample.completed, whole.completed, "{what}");
    assert_eq!(format!("{:#?}", sample.findings), format!("{:#?}", whole.findings), "{what}");
    assert_eq!(format!("{:#?}", sample.notes), format!("{:#?}", whole.notes), "{what}");
    for (sample, whole) in sample.buffers.iter().zip(&whole.buffers) {
        assert!(sample.defined == whole.defined, "{what}: other bytes are written");
        let differs = |&byte: &usize| sample.bytes[byte] != whole.bytes[byte] && !sample.is_blank(byte);
        let wrong: Vec<usize> = (0..whole.bytes.len()).filter(differs).take(5).collect();
        assert!(wrong.is_empty(), "{what}: bytes {wrong:?} are wrong and not blank");
    }
}

/// Right kernels and broken ones: each edit takes away something that orders accesses, or writes less, more or elsewhere.
#[test]
fn findings_and_cycles_are_those_of_the_whole_run() {
    let launch = launch(1024, 192);
    let edits = [
        ("ret;", "ret;"),
        ("    tcgen05.fence::after_thread_sync;\n    shl.b32 %r16", "    shl.b32 %r16"),
        ("    @!%p4 bra TILE_WAIT;\n", ""),
        ("    @!%p4 bra LOAD_WAIT;\n", ""),
        ("    @!%p4 bra DONE_WAIT;\n", ""),
        ("    fence.proxy.async.shared::cta;\n", ""),
        ("    bar.sync 1, 128;\n    setp.ne", "    setp.ne"),
        ("STORED:\n    bar.sync 1, 128;\n", "STORED:\n"),
        ("    tcgen05.wait::ld.sync.aligned;\n", ""),
        ("setp.ne.u32 %p7, %r21, 0;", "setp.ne.u32 %p7, %r21, 99;"),
        ("add.u32 %r18, %r17, 16384;", "add.u32 %r18, %r17, 16256;"),
        ("bfe.u32 %r18, %r17, 4, 14;", "add.u32 %r18, %r17, 81920;\nbfe.u32 %r18, %r18, 4, 14;"),
        ("tcgen05.dealloc.cta_group::2.sync.aligned.b32 %r6, 256;", ""),
        (
            "@%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r13], 65536;",
            "@%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r13], 65552;",
        ),
        ("shl.b32 %r27, %r27, 7;", "shl.b32 %r27, %r27, 6;"),
    ];
    let mut broken = 0;
    for (from, to) in edits {
        let program = load(&edited(from, to));
        for seed in schedules(2) {
            let whole = run(&program, &launch, seed, Values::All);
            broken += usize::from(!whole.findings.is_empty());
            for clusters in [&[][..], &[2], &[3, 0]] {
                let sample = run(&program, &launch, seed, of(clusters));
                let what = format!("{from:?} -> {to:?}, seed {seed:?}, values of {clusters:?}");
                same_but_for_values(&whole, &sample, &what);
                assert!(sample.incomplete.is_empty(), "{what}: {:?}", sample.incomplete);
            }
        }
    }
    assert!(broken > 20, "in {broken} runs there is something to find");
}

#[test]
fn sampled_tiles_are_right_and_the_others_blank() {
    let (launch, right) = (launch(1024, 320), product(1024, 320));
    let report = run(&load(TEXT), &launch, None, of(&[2]));
    assert!(report.is_clean(), "{:#?} {:?}", report.findings, report.incomplete);
    assert_eq!((report.clusters, report.computed_clusters), (4, 1));
    let (d, memory) = (d(&report), &report.buffers[2]);
    for n in 0..1024 * 256 {
        let computed = n / 256 / 256 == 2;
        assert_eq!(memory.is_blank(2 * n), !computed, "element {n}");
        assert!(memory.is_defined(2 * n), "element {n} was written");
        assert!(if computed { d[n] == right[n] } else { d[n].is_nan() }, "element {n}: {}", d[n]);
    }
}

/// The last columns are never stored: this shows in clusters that compute and in those that do not.
#[test]
fn what_is_never_written_is_not_blank() {
    let text = edited("setp.lt.u32 %p11, %r28, 256;", "setp.lt.u32 %p11, %r28, 192;");
    let report = run(&load(&text), &launch(512, 64), None, of(&[1]));
    let memory = &report.buffers[2];
    for n in 0..512 * 256 {
        let (row, column) = (n / 256, n % 256);
        let expected = (column < 192, column < 192 && row < 256);
        assert_eq!((memory.is_defined(2 * n), memory.is_blank(2 * n)), expected, "row {row}, column {column}");
    }
}

/// Kernels of a compiler: loads by threads, `cp.async`, TMA, launch control, A in tensor memory.
#[test]
fn kernels_of_a_compiler() {
    for name in gluon::names() {
        let mut case = gluon::case(&name, None);
        case.fill_with_small_integers(7);
        let program = load(&case.text);
        let whole = run(&program, &case.launch, None, Values::All);
        assert!(whole.is_clean(), "{name}: {:#?}", whole.findings);
        for clusters in [&[0][..], &[]] {
            let sample = run(&program, &case.launch, None, of(clusters));
            let depends = sample.incomplete.iter().any(|what| what.contains("depends on them"));
            // Here some warps take the branch of the forward kernels below: that takes other cycles, and the run says so.
            if name == "attention_small" {
                assert!(depends, "{name}: {:?}", sample.incomplete);
                continue;
            }
            same_but_for_values(&whole, &sample, &format!("{name}, values of {clusters:?}"));
            if name.starts_with("attention") && name != "attention_backward" {
                // The logarithm of the forward kernels branches where a sum is subnormal.
                assert!(depends, "{name}");
                continue;
            }
            assert!(sample.is_clean(), "{name}: {:?}", sample.incomplete);
            let d = &sample.buffers[case.output()];
            let blank: u32 = d.blank.iter().map(|word| word.count_ones()).sum();
            let part = blank as usize * sample.clusters as usize / d.bytes.len();
            assert!(!clusters.is_empty() || blank as usize == d.bytes.len(), "{name}: {blank} bytes of D are blank");
            assert!(part + 1 >= sample.clusters as usize - clusters.len(), "{name}: {blank} bytes of D are blank");
        }
    }
}

/// Sums and flags that no MMA has part in are computed everywhere, whoever asks for them.
#[test]
fn values_of_threads_are_computed_in_all_clusters() {
    let fill = |name: &str, words: u64, value| Buffer {
        name: name.into(),
        content: Content::Fill { bytes: 4 * words, value },
        ..Default::default()
    };
    let launch = Launch {
        entry: "k".into(),
        grid: [6, 5, 1],
        cluster: [1; 3],
        block: [32, 1, 1],
        buffers: vec![fill("in", 6 * 5 * 20 * 32, 0x3f), fill("sums", 1 + 32 * 6, 0), fill("flags", 6, 0)],
        params: (0..3).map(|buffer| Param::Pointer { buffer, offset: 0 }).chain([Param::U32(20)]).collect(),
        ..Default::default()
    };
    let program = load(include_str!("kernels/split_k.ptx"));
    let (whole, sample) = (run(&program, &launch, None, Values::All), run(&program, &launch, None, of(&[7])));
    same_but_for_values(&whole, &sample, "split K");
    assert!(sample.is_clean(), "{:?}", sample.incomplete);
    assert!(sample.buffers.iter().all(|buffer| buffer.blank.iter().all(|&word| word == 0)), "nothing is blank");
}

/// What is computed with such values may not decide anything: a branch, a trap, an address.
#[test]
fn decisions_on_what_was_not_computed_are_said() {
    let from = "mov.b32 %f4, %r35; mov.b32 %f5, %r36; mov.b32 %f6, %r37; mov.b32 %f7, %r38;\n";
    let launch = launch(512, 64);
    for (more, decides) in [
        ("max.f32 %f0, %f0, %f1;", false),
        ("setp.gt.f32 %p12, %f0, %f1;\n@%p12 mov.f32 %f0, %f1;", false),
        ("shfl.sync.bfly.b32 %r60, %r31, 1, 31, 0xffffffff;\nmov.b32 %f0, %r60;", false),
        ("setp.gt.f32 %p12, %f0, 0f7f000000;\n@%p12 trap;", true),
        ("setp.gt.f32 %p12, %f0, 0f7f000000;\n@%p12 bra STORED;", true),
        ("and.b32 %r60, %r31, 0;\nadd.u32 %r25, %r25, %r60;", true),
        // Through shared memory.
        ("st.shared.b32 [%r25], %r31;\nld.shared.b32 %r60, [%r25];\nsetp.eq.u32 %p12, %r60, 99;\n@%p12 trap;", true),
        ("st.shared.b32 [%r25], %r29;\nld.shared.b32 %r60, [%r25];\nsetp.eq.u32 %p12, %r60, 99;\n@%p12 trap;", false),
    ] {
        let program = load(&edited(from, &format!("{from}{more}\n")));
        let sample = run(&program, &launch, None, of(&[1]));
        assert!(sample.completed, "{more}: {:#?}", sample.findings);
        let said = sample.incomplete.iter().any(|what| what.contains("depends on them"));
        assert_eq!(said, decides, "{more}: {:?}", sample.incomplete);
        assert!(run(&program, &launch, None, Values::All).incomplete.is_empty(), "{more}");
        assert!(run(&program, &launch, None, of(&[0, 1])).incomplete.is_empty(), "{more}");
    }
}

/// Cluster 1 multiplies rows of D that cluster 0 has written.
#[test]
fn reading_what_was_not_computed_is_said() {
    let text = edited("shl.b32 %r7, %r7, 7; ", "shl.b32 %r7, %r7, 7; xor.b32 %r7, %r7, 256; ");
    let mut launch = launch(512, 256);
    launch.buffers[2].content = Content::Fill { bytes: 512 * 256 * 2, value: 0 };
    launch.params[0] = map(2, 512, 256, 128);
    launch.attributes.resident_clusters = Some(1);
    let program = load(&text);
    let read = |values| {
        let report = run(&program, &launch, None, values);
        report.incomplete.iter().any(|what| what.contains("reads at"))
    };
    assert!(read(of(&[1])));
    assert!(!read(of(&[0])) && !read(Values::All));
}

#[test]
fn a_cluster_that_never_runs_is_said() {
    let report = run(&load(TEXT), &launch(512, 64), None, of(&[1, 2]));
    assert!(report.incomplete.iter().any(|what| what.contains("cluster 2")), "{:?}", report.incomplete);
}
