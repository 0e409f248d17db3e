//! What clusters have to do with each other: work they take over, flags and sums in global memory, the tensor memory of an SM that
//! several CTAs share. Nothing of it depends on the number of host threads.

use emulator::{
    Buffer, Content, Deadlock, Distribution, Element, Launch, NumberType, Options, Param, Random, Report, Swizzle,
    TensorMap,
};
use std::num::NonZeroUsize;

fn buffer(name: &str, content: Content) -> Buffer {
    Buffer { name: name.into(), content, ..Default::default() }
}

fn pointer(buffer: usize) -> Param {
    Param::Pointer { buffer, offset: 0 }
}

fn one_warp(grid: [u32; 3], buffers: Vec<Buffer>, params: Vec<Param>) -> Launch {
    Launch { entry: "k".into(), grid, cluster: [1; 3], block: [32, 1, 1], buffers, params, ..Default::default() }
}

/// Runs on 1, 2 and 7 host threads, on the default schedule and an adversarial one: clean, and the same to the last cycle.
fn on_any_threads(text: &str, launch: &Launch, check: impl Fn(&Report)) {
    let program = emulator::load(text).unwrap_or_else(|errors| panic!("{errors:#?}"));
    for seed in [None, Some(1), Some(2)] {
        let run = |threads| {
            let threads = NonZeroUsize::new(threads);
            let options = Options { seed, threads, trace: true, max_instructions: 10_000_000, ..Default::default() };
            emulator::run(&program, launch, &options)
        };
        let one = run(1);
        assert!(one.is_clean(), "seed {seed:?}: {:#?}", one.findings);
        check(&one);
        for threads in [2, 7] {
            let many = run(threads);
            assert_eq!(
                (one.cycles, one.instructions),
                (many.cycles, many.instructions),
                "seed {seed:?}, {threads} threads"
            );
            assert!(one.buffers == many.buffers, "seed {seed:?}, {threads} threads: results differ");
            assert!(one.trace == many.trace, "seed {seed:?}, {threads} threads: traces differ");
        }
    }
}

fn words(report: &Report, buffer: usize) -> Vec<u32> {
    report.buffers[buffer].bytes.as_chunks().0.iter().map(|&word| u32::from_le_bytes(word)).collect()
}

#[test]
fn launch_control() {
    let out = buffer("out", Content::Undefined { bytes: 4 * 200 });
    let mut launch = one_warp([200, 1, 1], vec![out], vec![pointer(0)]);
    launch.attributes.resident_clusters = Some(8);
    on_any_threads(include_str!("kernels/launch_control.ptx"), &launch, |report| {
        let mut pieces = std::collections::BTreeMap::<u32, Vec<u32>>::new();
        for word in words(report, 0) {
            pieces.entry(word & 0xffff).or_default().push(word >> 16);
        }
        // Whoever began did its pieces one after the other, and some did several.
        for (cluster, order) in &mut pieces {
            order.sort_unstable();
            assert!(order.iter().copied().eq(0..order.len() as u32), "cluster {cluster}: pieces {order:?}");
        }
        assert!(pieces.len() >= 8 && pieces.len() < 100, "{} clusters shared the work", pieces.len());
    });
}

#[test]
fn split_k_with_flags() {
    const TILES: u32 = 6;
    const PARTS: u32 = 5;
    const DEPTH: u32 = 20;
    let numbers = |kind, count| {
        Content::Random(Random {
            seed: 3,
            count,
            number: kind,
            distribution: Distribution::Normal { mean: 0.0, deviation: 1.0 },
        })
    };
    let input = numbers(NumberType::F32, u64::from(TILES * PARTS * DEPTH * 32));
    let sums = Content::Fill { bytes: 4 * (1 + 32 * u64::from(TILES)), value: 0 };
    let flags = Content::Fill { bytes: 4 * u64::from(TILES), value: 0 };
    let buffers = vec![buffer("in", input), buffer("sums", sums), buffer("flags", flags)];
    let params = vec![pointer(0), pointer(1), pointer(2), Param::U32(DEPTH)];
    let launch = one_warp([TILES, PARTS, 1], buffers, params);
    on_any_threads(include_str!("kernels/split_k.ptx"), &launch, |report| {
        let input: Vec<f32> = words(report, 0).into_iter().map(f32::from_bits).collect();
        let sums: Vec<f32> = words(report, 1).into_iter().map(f32::from_bits).collect();
        let part = |tile: u32, part: u32, thread: u32| {
            let first = (tile * PARTS + part) * DEPTH * 32 + thread;
            (0..DEPTH).fold(0f32, |sum, k| sum + input[(first + 32 * k) as usize])
        };
        let mut all = 0f64;
        for tile in 0..TILES {
            for thread in 0..32 {
                // The flags give the order, so that the sum is exact.
                let expected = (0..PARTS).fold(0f32, |sum, p| sum + part(tile, p, thread));
                assert_eq!(sums[(1 + tile * 32 + thread) as usize], expected, "tile {tile}, thread {thread}");
                all += (0..PARTS).map(|p| f64::from(part(tile, p, thread))).sum::<f64>();
            }
        }
        assert!((f64::from(sums[0]) - all).abs() < 1e-2, "{} instead of {all}", sums[0]);
        assert!(words(report, 2).iter().all(|&flag| flag == PARTS));
    });
}

#[test]
fn tensor_memory_of_a_shared_sm() {
    const CTAS: u32 = 148 * 4;
    let out = buffer("out", Content::Undefined { bytes: u64::from(CTAS) * 128 });
    let launch = one_warp([CTAS, 1, 1], vec![out], vec![pointer(0)]);
    on_any_threads(include_str!("kernels/tensor_memory.ptx"), &launch, |report| {
        let mut columns = std::collections::BTreeSet::new();
        for (n, word) in words(report, 0).into_iter().enumerate() {
            assert_eq!(word & 0xf_ffff, n as u32, "what the CTA wrote to tensor memory");
            columns.insert(word >> 20);
        }
        // CTAs side by side hold different columns.
        assert_eq!(columns.into_iter().collect::<Vec<_>>(), [0, 256]);
    });
}

/// A barrier of the whole grid, twice: each CTA adds to a counter and waits for all others.
const GRID_BARRIER: &str = r#"
.version 8.7
.target sm_100a
.address_size 64
.visible .entry k(.param .u64 out, .param .u64 counter, .param .u32 wanted)
{
	.reg .pred %p;
	.reg .b32 %r<8>;
	.reg .b64 %d<6>;
	ld.param.u64 %d0, [out];
	ld.param.u64 %d1, [counter];
	ld.param.u32 %r0, [wanted];
	mov.u32 %r1, %ctaid.x;
	mul.wide.u32 %d2, %r1, 4;
	add.s64 %d2, %d2, %d0;
	st.global.u32 [%d2], %r1;
	atom.add.release.gpu.global.u32 %r2, [%d1], 1;
FIRST:
	ld.acquire.gpu.global.u32 %r2, [%d1];
	setp.lt.u32 %p, %r2, %r0;
	@%p bra FIRST;
	// What the neighbour stored: with the last, the first's.
	add.u32 %r3, %r1, 1;
	mov.u32 %r4, %nctaid.x;
	rem.u32 %r3, %r3, %r4;
	mul.wide.u32 %d3, %r3, 4;
	add.s64 %d3, %d3, %d0;
	ld.global.u32 %r5, [%d3];
	atom.add.acq_rel.gpu.global.u32 %r2, [%d1], 1;
	shl.b32 %r0, %r0, 1;
SECOND:
	ld.acquire.gpu.global.u32 %r2, [%d1];
	setp.lt.u32 %p, %r2, %r0;
	@%p bra SECOND;
	st.global.u32 [%d2], %r5;
	ret;
}
"#;

fn grid_barrier(wanted: u32) -> Launch {
    const CTAS: u32 = 40;
    let out = buffer("out", Content::Undefined { bytes: u64::from(CTAS) * 4 });
    let counter = buffer("counter", Content::Fill { bytes: 4, value: 0 });
    let params = vec![pointer(0), pointer(1), Param::U32(wanted)];
    Launch { block: [1, 1, 1], ..one_warp([CTAS, 1, 1], vec![out, counter], params) }
}

#[test]
fn a_barrier_of_the_grid() {
    on_any_threads(GRID_BARRIER, &grid_barrier(40), |report| {
        assert!(words(report, 0).into_iter().eq((1..40).chain([0])), "{:?}", words(report, 0));
    });
}

/// What waits for more than will come is a hang, found although every CTA goes on asking; so is a grid barrier of more CTAs than run
/// at once.
#[test]
fn a_flag_that_never_comes() {
    let program = emulator::load(GRID_BARRIER).unwrap_or_else(|errors| panic!("{errors:#?}"));
    let mut crowded = grid_barrier(40);
    crowded.attributes.resident_clusters = Some(39);
    for launch in [grid_barrier(41), crowded] {
        let report = emulator::run(&program, &launch, &Options::default());
        let codes: Vec<_> = report.findings.iter().map(|d| d.code).collect();
        assert_eq!((report.completed, codes), (false, vec!["hang"]));
        let place = &report.findings[0].labels[0].place;
        assert!(place.text.starts_with("ld.acquire"), "{place:?}");
    }
    let options = Options { max_instructions: 1_000, ..Default::default() };
    let report = emulator::run(&program, &grid_barrier(41), &options);
    assert_eq!(report.findings[0].code, "instruction-budget");
}

/// Where all go round, and find the same each time, that is known after a few rounds: long before the budget ends.
#[test]
fn a_flag_that_nobody_can_raise() {
    for (load, budget) in [("ld.acquire.gpu", 20_000), ("ld", 400_000)] {
        let program =
            emulator::load(&GRID_BARRIER.replace("ld.acquire.gpu", load)).unwrap_or_else(|e| panic!("{e:#?}"));
        let options = Options { max_instructions: budget, ..Default::default() };
        let report = emulator::run(&program, &grid_barrier(41), &options);
        let hang = report.findings.iter().find(|d| d.code == "hang");
        assert!(hang.is_some(), "{load}: {:#?}", report.findings);
    }
}

/// Who asks goes round for long, and finds the same each time; another cluster computes, or waits by itself, and raises the flag then.
#[test]
fn a_flag_that_comes_late() {
    let late = [
        "mov.u32 %r1, 0;\nCOUNT:\nadd.u32 %r1, %r1, 1;\nsetp.lt.u32 %p1, %r1, 30000;\n@%p1 bra COUNT;",
        "mov.u32 %r1, 0;\nCOUNT:\nadd.u32 %r1, %r1, 1;\nld.relaxed.gpu.global.u32 %r2, [%a+64];\nsetp.lt.u32 %p1, %r1, 300;\n@%p1 bra COUNT;",
        "mov.u32 %r1, 0;\nCOUNT:\nnanosleep.u32 1000;\nadd.u32 %r1, %r1, 1;\nsetp.lt.u32 %p1, %r1, 3000;\n@%p1 bra COUNT;",
        "setp.eq.u32 %p3, %tid, 0;\n@%p3 mbarrier.init.shared::cta.b64 [bar], 1;\nbar.warp.sync 0xffffffff;\n\
         mbarrier.try_wait.parity.shared::cta.b64 %p1, [bar], 0;\n@!%p1 add.u32 %r1, %r1, 0;",
    ];
    for late in late {
        let body = format!(
            "setp.eq.u32 %p0, %cta, 0;\nsetp.lt.and.u32 %p0, %tid, 32, %p0;\n@!%p0 bra ASK;\nmov.u32 %r1, 0;\n{late}\nst.release.gpu.global.u32 [%a], 1;\nbra END;\n\
             ASK:\nld.acquire.gpu.global.u32 %r3, [%a];\nsetp.eq.u32 %p2, %r3, 0;\n@%p2 bra ASK;"
        );
        let program = emulator::load(&kernel(&body)).unwrap_or_else(|e| panic!("{e:#?}"));
        let report = emulator::run(&program, &with_zeros(4, 64), &Options::default());
        assert!(report.completed && report.findings.is_empty(), "{late}: {:#?}", report.findings);
    }
}

/// A kernel of this body. `%a` and `%out` point to the first and the second buffer, `%tid` is a thread's number, `%cta` its CTA's.
fn kernel(body: &str) -> String {
    format!(
        ".version 8.7\n.target sm_100a\n.address_size 64\n\
         .visible .entry k(.param .u64 a, .param .u64 out, .param .align 64 .b8 map[128])\n{{\n\
         .shared .align 128 .b8 tile[4096];\n.shared .align 8 .b64 bar;\n.shared .align 4 .b32 slots[2];\n\
         .reg .pred %p<4>;\n.reg .b32 %r<10>;\n.reg .b64 %d<6>;\n.reg .b32 %tid, %cta;\n.reg .b64 %a, %out, %map;\n\
         ld.param.u64 %a, [a];\nld.param.u64 %out, [out];\nmov.u64 %map, map;\ncvta.param.u64 %map, %map;\n\
         mov.u32 %tid, %tid.x;\nmov.u32 %cta, %ctaid.x;\n{body}\nEND:\nret;\n}}\n"
    )
}

/// Launches it: 4096 bytes of zeros in each buffer; a tensor map of 32 × 8 numbers in the first.
fn with_zeros(ctas: u32, threads: u32) -> Launch {
    let zeros = || Content::Fill { bytes: 4096, value: 0 };
    let map = Param::TensorMap {
        buffer: 0,
        map: TensorMap {
            address: 0,
            element: Element::U32,
            dims: vec![32, 8],
            strides: vec![128],
            box_dims: vec![32, 8],
            element_strides: vec![],
            swizzle: Swizzle::None,
            fill_nan: false,
        },
    };
    let buffers = vec![buffer("a", zeros()), buffer("out", zeros())];
    Launch { block: [threads, 1, 1], ..one_warp([ctas, 1, 1], buffers, vec![pointer(0), pointer(1), map]) }
}

/// Who asks once in vain and then computes for two million cycles does not hang; neither does who waits for it, nor who does one
/// atomic operation after the other.
#[test]
fn long_work_is_no_hang() {
    let asks = [
        "mbarrier.init.shared::cta.b64 [bar], 1;\nmov.u32 %r1, 0;\nmbarrier.test_wait.parity.shared::cta.b64 %p1, [bar], %r1;\n",
        "ld.relaxed.gpu.global.u32 %r1, [%a];\nld.relaxed.gpu.global.u32 %r1, [%a];\n",
        "mov.u32 %r2, 0;\nLOOK:\nld.relaxed.gpu.global.u32 %r1, [%a];\nadd.u32 %r2, %r2, 1;\nsetp.lt.u32 %p1, %r2, 2;\n@%p1 bra LOOK;\n",
    ];
    for ask in asks {
        let body = format!(
            "setp.ne.u32 %p0, %tid, 0;\n@%p0 bra END;\nsetp.ne.u32 %p0, %cta, 0;\n@%p0 bra WAIT;\n{ask}mov.u32 %r3, 0;\n\
             ROUND:\nadd.u32 %r3, %r3, 1;\nsetp.lt.u32 %p1, %r3, 400000;\n@%p1 bra ROUND;\nst.release.gpu.global.u32 [%a], %r3;\n\
             bra END;\nWAIT:\nld.acquire.gpu.global.u32 %r4, [%a];\nsetp.eq.u32 %p1, %r4, 0;\n@%p1 bra WAIT;\n"
        );
        let program = emulator::load(&kernel(&body)).unwrap_or_else(|errors| panic!("{errors:#?}"));
        for ctas in [1, 2] {
            let report = emulator::run(&program, &with_zeros(ctas, 32), &Options::default());
            assert!(report.is_clean() && words(&report, 0)[0] == 400_000, "{ask}{ctas}: {:#?}", report.findings);
        }
    }
    let body = "setp.ne.u32 %p0, %tid, 0;\n@%p0 bra END;\nmov.u32 %r1, 0;\nROUND:\natom.global.add.u32 %r2, [%a], 1;\n\
        add.u32 %r1, %r1, 1;\nsetp.lt.u32 %p1, %r1, 4000;\n@%p1 bra ROUND;\n";
    let program = emulator::load(&kernel(body)).unwrap_or_else(|errors| panic!("{errors:#?}"));
    let report = emulator::run(&program, &with_zeros(2, 32), &Options::default());
    assert!(report.is_clean() && words(&report, 0)[0] == 8000, "{:#?}", report.findings);
}

/// However a flag that never comes is asked for, and whenever the answers come.
#[test]
fn any_way_of_asking_in_vain_is_a_hang() {
    let asks = [
        "ld.volatile.global.u32 %r2, [%a];\n",
        "ld.acquire.gpu.global.u32 %r2, [%a];\nnanosleep.u32 100;\n",
        "atom.or.b32 %r2, [%a], 0;\n",
        "atom.acquire.gpu.global.cas.b32 %r2, [%a], 1, 0;\n",
        // The value's place is used again in each round.
        "ld.acquire.gpu.global.u32 %r3, [%a];\nadd.u32 %r4, %r3, 1;\nadd.u32 %r5, %r4, 1;\nadd.u32 %r6, %r5, 1;\nsub.u32 %r2, %r6, 3;\n",
    ];
    for ask in asks {
        let body =
            format!("setp.ne.u32 %p0, %tid, 0;\n@%p0 bra END;\nLOOK:\n{ask}setp.ne.u32 %p1, %r2, 1;\n@%p1 bra LOOK;\n");
        let program = emulator::load(&kernel(&body)).unwrap_or_else(|errors| panic!("{errors:#?}"));
        for seed in [None, Some(1), Some(2)] {
            for ctas in [1, 3] {
                let options = Options { seed, max_instructions: 200_000, ..Default::default() };
                let report = emulator::run(&program, &with_zeros(ctas, 32), &options);
                assert_eq!(report.findings[0].code, "hang", "seed {seed:?}, {ctas} CTAs:\n{ask}");
            }
        }
    }
}

/// Two warps of a CTA ask for tensor memory at the same time: each gets the columns that it asked for, and nobody else has them.
#[test]
fn two_warps_allocate_at_once() {
    for (first, second) in [(256, 256), (32, 256), (64, 128), (128, 32)] {
        let body = format!(
            "shr.u32 %r0, %tid, 5;\nsetp.eq.u32 %p0, %r0, 0;\nselp.b32 %r3, {first}, {second}, %p0;\nmov.u32 %r4, slots;\n\
             mad.lo.u32 %r4, %r0, 4, %r4;\ntcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r4], %r3;\n\
             ld.shared.u32 %r5, [%r4];\nshl.b32 %r6, %r0, 21;\nadd.u32 %r6, %r6, %r5;\n\
             tcgen05.st.sync.aligned.32x32b.x1.b32 [%r6], {{%tid}};\ntcgen05.wait::st.sync.aligned;\n\
             tcgen05.ld.sync.aligned.32x32b.x1.b32 {{%r8}}, [%r6];\ntcgen05.wait::ld.sync.aligned;\nbar.sync 0;\n\
             tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r5, %r3;\n"
        );
        for ctas in [1, 148] {
            on_any_threads(&kernel(&body), &with_zeros(ctas, 64), |_| {});
        }
    }
}

/// `red` of lanes in shared and in global memory: what the thread reads next is changed.
#[test]
fn red_in_shared_and_global_memory() {
    let body = "mov.u32 %r1, tile;\nmad.lo.u32 %r1, %tid, 4, %r1;\nmov.u32 %r2, 5;\nst.shared.u32 [%r1], %r2;\ncvt.u64.u32 %d0, %r1;\n\
        cvta.shared.u64 %d0, %d0;\nmul.wide.u32 %d1, %tid, 4;\nadd.s64 %d2, %d1, %a;\nand.b32 %r3, %tid, 1;\nsetp.eq.u32 %p0, %r3, 0;\n\
        selp.b64 %d3, %d0, %d2, %p0;\nred.add.u32 [%d3], 3;\nld.u32 %r4, [%d3];\nadd.s64 %d4, %d1, %out;\nst.global.u32 [%d4], %r4;\n";
    on_any_threads(&kernel(body), &with_zeros(1, 32), |report| assert_eq!(words(report, 1)[..4], [8, 3, 8, 3]));
}

#[test]
fn each_cta_of_a_cluster_has_an_sm_of_its_own() {
    let body = "setp.ne.u32 %p0, %tid, 0;\n@%p0 bra END;\nmov.u32 %r0, %smid;\nmul.wide.u32 %d0, %cta, 4;\nadd.s64 %d0, %d0, %out;\n\
        st.global.u32 [%d0], %r0;\n";
    for ctas in [1, 2, 4, 8, 16] {
        let launch = Launch { cluster: [ctas, 1, 1], ..with_zeros(16, 32) };
        on_any_threads(&kernel(body), &launch, |report| {
            assert_eq!(words(report, 1)[..16].iter().collect::<std::collections::BTreeSet<_>>().len(), 16);
        });
    }
}

/// Reductions of the TMA engine are atomic, element by element: those of all CTAs add up. A plain store beside them is a race.
#[test]
fn reductions_of_many_ctas() {
    let body = |store: &str| {
        format!(
            "setp.ne.u32 %p0, %tid, 0;\nmov.u32 %r1, tile;\nmad.lo.u32 %r2, %tid, 4, %r1;\nmov.u32 %r3, 0;\nmov.u32 %r4, 1;\n\
             FILL:\nst.shared.u32 [%r2], %r4;\nadd.u32 %r2, %r2, 128;\nadd.u32 %r3, %r3, 1;\nsetp.lt.u32 %p1, %r3, 8;\n@%p1 bra FILL;\n\
             fence.proxy.async.shared::cta;\nbar.sync 0;\n@%p0 bra END;\nmov.u32 %r5, 0;\n{store}\
             cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.tile.bulk_group [%map, {{%r5, %r5}}], [%r1];\n\
             cp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;\n"
        )
    };
    for cluster in [1, 2] {
        let launch = Launch { cluster: [cluster, 1, 1], ..with_zeros(6, 32) };
        on_any_threads(&kernel(&body("")), &launch, |report| {
            assert!(words(report, 0)[..256].iter().all(|&sum| sum == 6));
        });
        for beside in ["st.global.u32 [%a], %r4;\n", "red.global.add.u32 [%a], %r4;\n"] {
            let program = emulator::load(&kernel(&body(beside))).unwrap_or_else(|errors| panic!("{errors:#?}"));
            let report = emulator::run(&program, &launch, &Options::default());
            assert!(report.findings.iter().any(|f| f.code == "race-global"), "{beside}");
        }
    }
}

#[test]
fn one_coordinate_of_a_response_is_one_register() {
    let query = |form: &str, d: &str| {
        let body = format!(
            ".reg .b128 %q;\nmov.b128 %q, {{%a, %a}};\nclusterlaunchcontrol.query_cancel.{form}.b32.b128 {d}, %q;\n"
        );
        emulator::load(&kernel(&body)).map(|program| emulator::run(&program, &with_zeros(1, 32), &Options::default()))
    };
    for (form, d) in [("get_first_ctaid::z", "%r1"), ("get_first_ctaid.v4", "{%r1, %r2, %r3, _}")] {
        assert!(query(form, d).is_ok_and(|report| report.is_clean()));
    }
    for (form, d) in [("get_first_ctaid::z", "{%r1, %r2, %r3}"), ("get_first_ctaid.v4", "{%r1, %r2}")] {
        assert_eq!(query(form, d).unwrap_err()[0].code, "ptx-semantics");
    }
}

/// Both CTAs can get stuck in the same way, each in statements of its own, and a finding names those of each. That one of them can is told by
/// its own steps and lines, whichever the host was done with first: here it is what the finding says already.
#[test]
fn what_can_get_stuck() {
    let program = emulator::load(include_str!("kernels/same_but_elsewhere.ptx")).expect("it loads");
    let launch = Launch { block: [1024, 1, 1], ..one_warp([2, 1, 1], vec![], vec![]) };
    let run = |threads| {
        let options = Options { threads: NonZeroUsize::new(threads), ..Default::default() };
        emulator::run(&program, &launch, &options)
    };
    for threads in [1, 2, 7, 2, 7] {
        let report = run(threads);
        let codes: Vec<&str> = report.findings.iter().map(|finding| finding.code).collect();
        assert_eq!(report.deadlock, Deadlock::Possible, "{threads} threads");
        assert_eq!(codes, ["phase-overtaken"], "{threads} threads: {:#?}", report.findings);
        let said = &report.findings[0].labels[0].text;
        assert!(said.ends_with("the same at another statement, in line 57"), "{threads} threads: {said}");
    }
}
