//! Bulk copies: when a load reads its source, and what is used again without anybody seeing it.

use emulator::{Buffer, Content, Launch, Options, Param, Report};

/// Thread 0 of each cluster's warp runs a body. `%cta` is the cluster; `%src`, `%mark` and `%out` point to memory, `%delay` and
/// `%writer` are numbers, `[bar]` is an mbarrier for one arrival.
fn kernel(body: &str) -> String {
    format!(
        ".version 8.7\n.target sm_100a\n.address_size 64\n\
         .visible .entry k(.param .u64 src, .param .u64 mark, .param .u64 out, .param .u32 delay, .param .u32 writer)\n{{\n\
         .shared .align 128 .b8 tile[8192];\n.shared .align 8 .b64 bar;\n.reg .pred %p<4>;\n.reg .b32 %r<16>;\n\
         .reg .b64 %d<8>;\n.reg .b32 %cta, %delay, %writer;\n.reg .b64 %src, %mark, %out;\n\
         ld.param.u64 %src, [src];\nld.param.u64 %mark, [mark];\nld.param.u64 %out, [out];\n\
         ld.param.u32 %delay, [delay];\nld.param.u32 %writer, [writer];\nmov.u32 %cta, %ctaid.x;\nmov.u32 %r0, %tid.x;\n\
         setp.ne.u32 %p0, %r0, 0;\n@%p0 bra END;\nmbarrier.init.shared::cta.b64 [bar], 1;\n\
         fence.mbarrier_init.release.cluster;\n{body}\nEND:\nret;\n}}\n"
    )
}

fn launch(clusters: u32, source: Vec<u8>, mark: Param, delay: u32, writer: u32) -> Launch {
    let buffer = |name: &str, content| Buffer { name: name.into(), content, ..Default::default() };
    let bytes = source.len() as u64;
    Launch {
        entry: "k".into(),
        grid: [clusters, 1, 1],
        cluster: [1; 3],
        block: [32, 1, 1],
        buffers: vec![
            buffer("src", Content::Bytes(source.into())),
            buffer("other", Content::Fill { bytes, value: 0 }),
            buffer("out", Content::Fill { bytes, value: 0 }),
        ],
        params: vec![pointer(0, 0), mark, pointer(2, 0), Param::U32(delay), Param::U32(writer)],
        ..Default::default()
    }
}

fn pointer(buffer: usize, offset: u64) -> Param {
    Param::Pointer { buffer, offset }
}

fn run(body: &str, launch: &Launch, seed: Option<u64>) -> Report {
    let program = emulator::load(&kernel(body)).unwrap_or_else(|errors| panic!("{errors:#?}"));
    emulator::run(&program, launch, &Options { seed, ..Default::default() })
}

fn word(report: &Report, buffer: usize, at: usize) -> u32 {
    u32::from_le_bytes(*report.buffers[buffer].bytes[at..].first_chunk().unwrap())
}

/// Cluster 0 loads; itself or the other one overwrites the source, sooner or later. A load whose cluster has written elsewhere to
/// the same buffer reads its source at once; any other must give the same, whenever it does so.
#[test]
fn a_load_gives_what_its_source_held_when_it_was_read() {
    let body = "setp.ne.u32 %p1, %cta, 0;\nsetp.eq.u32 %p2, %cta, %writer;\nmov.u32 %r2, 7;\n@%p1 bra COUNT;\n\
        st.global.u32 [%mark], %r2;\n\
        mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 8192;\n\
        cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [tile], [%src], 8192, [bar];\n\
        COUNT:\nmov.u32 %r3, 0;\nROUND:\nsetp.ge.u32 %p3, %r3, %delay;\n@%p3 bra STORE;\nadd.u32 %r3, %r3, 1;\nbra ROUND;\n\
        STORE:\n@%p2 st.global.u32 [%src], %r2;\n@%p1 bra END;\nmov.u32 %r3, 0;\n\
        WAIT:\nmbarrier.try_wait.parity.shared::cta.b64 %p3, [bar], %r3;\n@!%p3 bra WAIT;\n\
        ld.shared.u32 %r4, [tile];\nst.global.u32 [%out], %r4;\n";
    for writer in [0, 1] {
        let mut seen = [0; 2];
        for seed in [None, Some(1), Some(2), Some(3), Some(4), Some(5)] {
            for delay in (0..120).step_by(6) {
                let [at_once, late] = [pointer(0, 12_288), pointer(1, 12_288)].map(|mark| {
                    let report = run(body, &launch(2, vec![1; 16_384], mark, delay, writer), seed);
                    assert!(report.completed);
                    (word(&report, 2, 0), report.cycles, word(&report, 0, 0))
                });
                assert_eq!(at_once, late, "cluster {writer} writes after {delay} rounds, seed {seed:?}");
                assert_eq!(late.2, 7);
                seen[usize::from(late.0 == 7)] += 1;
            }
        }
        assert!(seen.iter().all(|&n| n > 3), "cluster {writer} writes: old and new values were loaded {seen:?} times");
    }
}

/// Many loads and stores one after the other, stores in groups that are waited for in fours.
#[test]
fn copies_one_after_the_other_do_not_disturb_each_other() {
    let body = "mov.u32 %r1, 0;\nmov.u32 %r5, tile;\nROUND:\nand.b32 %r2, %r1, 3;\nshl.b32 %r2, %r2, 10;\nadd.u32 %r2, %r2, %r5;\n\
        mul.wide.u32 %d0, %r1, 1024;\nadd.s64 %d1, %d0, %src;\nadd.s64 %d2, %d0, %out;\n\
        mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 1024;\n\
        cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%r2], [%d1], 1024, [bar];\n\
        and.b32 %r3, %r1, 1;\nWAIT:\nmbarrier.try_wait.parity.shared::cta.b64 %p1, [bar], %r3;\n@!%p1 bra WAIT;\n\
        cp.async.bulk.global.shared::cta.bulk_group [%d2], [%r2], 1024;\ncp.async.bulk.commit_group;\n\
        and.b32 %r3, %r1, 3;\nsetp.ne.u32 %p1, %r3, 3;\n@%p1 bra NEXT;\ncp.async.bulk.wait_group 0;\n\
        NEXT:\nadd.u32 %r1, %r1, 1;\nsetp.lt.u32 %p1, %r1, 48;\n@%p1 bra ROUND;\n";
    let source: Vec<u8> = (0..48 * 1024u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    for seed in [None, Some(1), Some(2), Some(3), Some(4), Some(5)] {
        let report = run(body, &launch(1, source.clone(), pointer(1, 0), 0, 0), seed);
        assert!(report.is_clean(), "{:#?}", report.findings);
        assert!(report.buffers[2].bytes == source, "seed {seed:?}");
    }
}

/// The first of several clusters writes its shared memory; the others read theirs. Whether they run side by side or one after the
/// other, in memory that others have left: they find nothing in it.
#[test]
fn memory_of_an_ended_cluster_holds_nothing_for_the_next() {
    let body = "setp.ne.u32 %p1, %cta, 0;\nmov.u32 %r1, 77;\n@!%p1 st.shared.u32 [tile], %r1;\n\
        ld.shared.u32 %r2, [tile];\nmul.wide.u32 %d0, %cta, 4;\nadd.s64 %d0, %d0, %out;\nst.global.u32 [%d0], %r2;\n";
    let runs = [None, Some(1)].map(|resident| {
        let mut launch = launch(4, vec![0; 64], pointer(1, 0), 0, 0);
        launch.attributes.resident_clusters = resident;
        let report = run(body, &launch, None);
        assert!(report.findings.iter().any(|f| f.code == "undefined-value-stored"), "{:#?}", report.findings);
        report
    });
    let words = runs.each_ref().map(|report| [0, 4, 8, 12].map(|at| word(report, 2, at)));
    assert_eq!(words, [[77, u32::MAX, u32::MAX, u32::MAX]; 2]);
    assert!(runs[0].buffers == runs[1].buffers);
    assert_eq!(runs[0].findings.len(), runs[1].findings.len());
}
