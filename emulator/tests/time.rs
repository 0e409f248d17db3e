//! What costs time on the simulated clock. Each test compares two kernels, or one kernel in two places: which takes longer is known
//! from how the hardware works, whatever the exact numbers.

#[path = "gluon/case.rs"]
mod case;

use emulator::{Buffer, Content, EventKind, Gpu, Launch, Mode, Options, Param, Report};

/// A kernel around a body, with 32 KB of shared memory. `%tid` is the thread, `%line` its 16 bytes of a row of 128, `%in` and
/// `%out` point to two buffers.
fn kernel(body: &str) -> String {
    format!(
        ".version 8.7\n.target sm_100a\n.address_size 64\n.visible .entry k(.param .u64 in, .param .u64 out)\n{{\n\
         .shared .align 1024 .b8 tile[32768];\n.reg .pred %p<4>;\n.reg .b32 %r<32>;\n.reg .b64 %d<16>;\n\
         .reg .b32 %tid;\n.reg .b64 %in, %out;\nld.param.u64 %in, [in];\nld.param.u64 %out, [out];\n\
         mov.u32 %tid, %tid.x;\n{body}\nret;\n}}\n"
    )
}

fn run_on(gpu: Gpu, body: &str, ctas: u32, threads: u32) -> Report {
    let options = Options { gpu: Some(gpu), ..Default::default() };
    let report = run_with(&options, 64 << 20, body, ctas, threads);
    assert!(report.is_clean(), "{body}: {:#?}", report.findings);
    report
}

fn run_with(options: &Options, bytes: u64, body: &str, ctas: u32, threads: u32) -> Report {
    let program = emulator::load(&kernel(body)).unwrap_or_else(|errors| panic!("{body}: {errors:#?}"));
    let buffer =
        |name: &str| Buffer { name: name.into(), content: Content::Fill { bytes, value: 0 }, ..Default::default() };
    let pointer = |buffer| Param::Pointer { buffer, offset: 0 };
    let launch = Launch {
        entry: "k".into(),
        grid: [ctas, 1, 1],
        cluster: [1, 1, 1],
        block: [threads, 1, 1],
        buffers: vec![buffer("in"), buffer("out")],
        params: vec![pointer(0), pointer(1)],
        ..Default::default()
    };
    let report = emulator::run(&program, &launch, options);
    assert!(report.completed, "{body}: {:#?}", report.findings);
    report
}

fn cycles(body: &str, ctas: u32, threads: u32) -> u64 {
    run_on(Gpu::B200, body, ctas, threads).cycles
}

#[track_caller]
fn takes_longer(slow: u64, fast: u64, times: f64) {
    assert!(slow as f64 >= fast as f64 * times, "{slow} cycles against {fast}: not {times} times as long");
}

/// Rows of 128 bytes, 16 bytes a thread, the same column in all rows: without a swizzle all lanes of a warp meet in four banks.
#[test]
fn a_staging_tile_without_swizzle_is_slower() {
    let stores = |place: &str| {
        let mut body = format!("mov.u32 %r0, tile;\nshl.b32 %r1, %tid, 7;\nadd.u32 %r0, %r0, %r1;\n{place}");
        for chunk in 0..8 {
            body += &format!("xor.b32 %r3, %r2, {};\nadd.u32 %r4, %r0, %r3;\n", chunk * 16);
            body += "st.shared.v4.b32 [%r4], {%tid, %tid, %tid, %tid};\n";
        }
        cycles(&body, 1, 128)
    };
    // The 128-byte swizzle: bits 4 to 6 of the address, exclusive or bits 7 to 9.
    let swizzled = stores("and.b32 %r2, %tid, 7;\nshl.b32 %r2, %r2, 4;\n");
    let plain = stores("mov.u32 %r2, 0;\n");
    takes_longer(plain, swizzled, 2.0);
}

/// 32 lanes read 128 bytes in a row, which is four sectors, or one word of 32 sectors each.
#[test]
fn global_memory_moves_in_sectors_of_32_bytes() {
    let loads = |shift: u32| {
        let mut body = format!("shl.b32 %r0, %tid, {shift};\ncvt.u64.u32 %d0, %r0;\nadd.s64 %d0, %d0, %in;\n");
        for n in 0..16 {
            body += &format!("ld.global.u32 %r{}, [%d0+{}];\n", n + 1, n << 20);
        }
        for n in 0..16 {
            body += &format!("xor.b32 %r31, %r31, %r{};\n", n + 1);
        }
        cycles(
            &format!(
                "mov.u32 %r31, 0;\n{body}mul.wide.u32 %d1, %tid, 4;\nadd.s64 %d1, %d1, %out;\nst.global.u32 [%d1], %r31;\n"
            ),
            1,
            512,
        )
    };
    takes_longer(loads(7), loads(2), 2.0);
}

/// What L2 holds comes sooner.
#[test]
fn the_second_load_of_a_line_is_faster() {
    let loads = |between: u32| {
        let mut body = String::new();
        // One load after the other: the address depends on what was loaded (zero).
        body += "mov.u64 %d0, %in;\n";
        for n in 0..20 {
            body += &format!("ld.global.u64 %d1, [%d0+{}];\nadd.s64 %d0, %d0, %d1;\n", n * between);
        }
        cycles(&body, 1, 1)
    };
    takes_longer(loads(4096), loads(0), 2.0);
}

/// Two CTAs of 1024 threads fit an SM: 296 run at once, one more has to wait until there is room.
#[test]
fn a_launch_runs_in_waves() {
    // One thread counts; the others have ended, but their CTA holds its place.
    let body = "setp.ne.u32 %p0, %tid, 0;\n@%p0 ret;\nmov.u32 %r0, 2000;\nROUND:\nsub.u32 %r0, %r0, 1;\n\
                setp.ne.u32 %p0, %r0, 0;\n@%p0 bra ROUND;\n";
    let one = cycles(body, 1, 1024);
    takes_longer(one * 11 / 10, cycles(body, 2 * 148, 1024), 1.0);
    takes_longer(cycles(body, 2 * 148 + 1, 1024), one, 1.9);
}

/// Four schedulers issue an instruction a cycle each: 32 warps that compute take longer than 4, and two CTAs of 32 longer still.
#[test]
fn warps_share_issue_slots() {
    let body = "mov.u32 %r0, 500;\nROUND:\nsub.u32 %r0, %r0, 1;\nsetp.ne.u32 %p0, %r0, 0;\n@%p0 bra ROUND;\n";
    let one = cycles(body, 1, 1024);
    takes_longer(one, cycles(body, 1, 128), 2.0);
    takes_longer(cycles(body, 2 * 148, 1024), one, 1.7);
}

/// 148 SMs copy 128 KB each, from all over DRAM, or all the same. They cannot be faster than DRAM, and one alone is faster.
#[test]
fn sms_share_dram() {
    let copies = |ctas: u32, apart: u32| {
        let body = format!(
            ".shared .align 8 .b64 bar;\nmov.u32 %r0, tile;\nmov.u32 %r5, bar;\nsetp.ne.u32 %p0, %tid, 0;\n@%p0 bra END;\n\
             mbarrier.init.shared::cta.b64 [%r5], 1;\nfence.mbarrier_init.release.cluster;\n\
             mov.u32 %r1, %ctaid.x;\nmul.wide.u32 %d0, %r1, {apart};\nadd.s64 %d0, %d0, %in;\nmov.u32 %r2, 0;\n\
             ROUND:\nmbarrier.arrive.expect_tx.shared::cta.b64 _, [%r5], 32768;\n\
             cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%r0], [%d0], 32768, [%r5];\n\
             and.b32 %r3, %r2, 1;\nWAIT:\nmbarrier.try_wait.parity.shared::cta.b64 %p1, [%r5], %r3;\n@!%p1 bra WAIT;\n\
             add.s64 %d0, %d0, 32768;\nadd.u32 %r2, %r2, 1;\nsetp.lt.u32 %p1, %r2, 4;\n@%p1 bra ROUND;\nEND:\n"
        );
        cycles(&body, ctas, 32)
    };
    let all = copies(148, 131_072);
    let dram = 148 * 131_072 / 3838;
    assert!(all > dram, "{all} cycles for what DRAM needs {dram} for");
    takes_longer(all, copies(1, 131_072), 1.2);
    takes_longer(all, copies(148, 0), 1.2);
}

/// One thread copies the same bytes from L2 again and again, one copy after the other. Meta measured on a B200 what one takes.
#[test]
fn a_load_by_tma_takes_what_was_measured() {
    for (bytes, measured) in [(16_384, 530), (32_768, 659)] {
        let copies = |count: u32| {
            let body = format!(
                ".shared .align 8 .b64 bar;\nmov.u32 %r0, tile;\nmov.u32 %r5, bar;\nsetp.ne.u32 %p0, %tid, 0;\n@%p0 bra END;\n\
                 mbarrier.init.shared::cta.b64 [%r5], 1;\nfence.mbarrier_init.release.cluster;\nmov.u32 %r2, 0;\n\
                 ROUND:\nmbarrier.arrive.expect_tx.shared::cta.b64 _, [%r5], {bytes};\n\
                 cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%r0], [%in], {bytes}, [%r5];\n\
                 and.b32 %r3, %r2, 1;\nWAIT:\nmbarrier.try_wait.parity.shared::cta.b64 %p1, [%r5], %r3;\n@!%p1 bra WAIT;\n\
                 add.u32 %r2, %r2, 1;\nsetp.lt.u32 %p1, %r2, {count};\n@%p1 bra ROUND;\nEND:\n"
            );
            cycles(&body, 1, 32)
        };
        // The first comes from DRAM.
        let each = (copies(20) - copies(10)) / 10;
        assert!((measured..measured * 6 / 5).contains(&each), "{bytes} bytes: {each} cycles, measured {measured}");
    }
}

/// L2 may hold a buffer before the launch begins, if it has room for it.
#[test]
fn l2_may_be_warm() {
    let mut body = "mov.u64 %d0, %in;\n".to_string();
    for n in 0..20 {
        body += &format!("ld.global.u64 %d1, [%d0+{}];\nadd.s64 %d0, %d0, %d1;\n", n * 4096);
    }
    let run = |warm_l2, bytes| run_with(&Options { warm_l2, ..Default::default() }, bytes, &body, 1, 1).cycles;
    takes_longer(run(false, 1 << 20), run(true, 1 << 20), 2.0);
    assert_eq!(run(false, 64 << 20), run(true, 64 << 20), "128 MB do not stay in L2");
}

/// Who has allocated tensor memory and does not give up the right to do so again keeps other CTAs of the SM waiting.
#[test]
fn the_right_to_allocate_is_one_for_an_sm() {
    let run = |relinquish: &str| {
        let body = format!(
            ".shared .align 4 .b32 slot;\ntcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [slot], 128;\n{relinquish}\n\
             ld.shared.b32 %r1, [slot];\nmov.u32 %r0, 4000;\nROUND:\nsub.u32 %r0, %r0, 1;\nsetp.ne.u32 %p0, %r0, 0;\n\
             @%p0 bra ROUND;\ntcgen05.dealloc.cta_group::1.sync.aligned.b32 %r1, 128;\n"
        );
        cycles(&body, 2 * 148, 32)
    };
    takes_longer(run(""), run("tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;"), 1.7);
}

/// MMAs of one SM take what the tensor core takes; those of all SMs take more, for want of power.
#[test]
fn mmas_on_all_sms_take_longer() {
    let body = "\
        .shared .align 4 .b32 slot;\n.shared .align 8 .b64 bar;\n\
        tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [slot], 128;\nld.shared.b32 %r1, [slot];\n\
        mov.u32 %r2, bar;\nelect.sync _|%p0, 0xffffffff;\n@!%p0 bra END;\n\
        mbarrier.init.shared::cta.b64 [%r2], 1;\nmov.u32 %r4, tile;\nshr.u32 %r4, %r4, 4;\ncvt.u64.u32 %d1, %r4;\n\
        or.b64 %d1, %d1, 0x4000404000010000;\nmov.u32 %r5, 0;\nmov.u32 %r6, 0x8200010;\nROUND:\n\
        setp.ne.u32 %p1, %r5, 0;\ntcgen05.mma.cta_group::1.kind::f16 [%r1], %d1, %d1, %r6, %p1;\n\
        add.u32 %r5, %r5, 1;\nsetp.lt.u32 %p2, %r5, 2000;\n@%p2 bra ROUND;\n\
        tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%r2];\n\
        WAIT:\nmbarrier.try_wait.parity.shared::cta.b64 %p1, [%r2], 0;\n@!%p1 bra WAIT;\nEND:\n\
        bar.warp.sync 0xffffffff;\ntcgen05.dealloc.cta_group::1.sync.aligned.b32 %r1, 128;\n";
    let run = |ctas| run_with(&Options { mode: Mode::Time, ..Default::default() }, 64, body, ctas, 32);
    let [one, all] = [run(1), run(148)];
    assert!((128_000..130_000).contains(&one.cycles), "2000 MMAs of 64 cycles: {}", one.cycles);
    takes_longer(all.cycles, one.cycles, 1.15);
    takes_longer(one.cycles * 5 / 4, all.cycles, 1.0);
    assert!(one.usage.tensor_cores < 0.01 && all.usage.tensor_cores > 0.9, "{:?}, {:?}", one.usage, all.usage);
}

#[test]
fn gpus_differ() {
    let body = "ld.global.u32 %r0, [%in];\nst.global.u32 [%out], %r0;\n";
    let [b200, h200] = [Gpu::B200, Gpu::H200].map(|gpu| run_on(gpu, body, 1, 1));
    assert_ne!(b200.cycles, h200.cycles);
    assert!(b200.buffers == h200.buffers, "what is computed does not depend on time");
}

/// Who looks for results alone is told of MMAs that nobody has waited for at the end, with a commit or without one, and of none that somebody has.
#[test]
fn results_alone_say_that_nobody_has_waited_for_an_mma() {
    let found = |behind: &str| {
        let body = format!(
            ".shared .align 4 .b32 slot;\n.shared .align 8 .b64 bar;\n\
             tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [slot], 128;\nld.shared.b32 %r1, [slot];\nmov.u32 %r2, bar;\n\
             elect.sync _|%p0, 0xffffffff;\n@!%p0 bra END;\nmbarrier.init.shared::cta.b64 [%r2], 1;\nmov.u32 %r4, tile;\nshr.u32 %r4, %r4, 4;\n\
             cvt.u64.u32 %d1, %r4;\nor.b64 %d1, %d1, 0x4000404000010000;\nmov.u32 %r6, 0x8200010;\nsetp.ne.u32 %p1, %r1, %r1;\n\
             {MMA}{behind}END:\nbar.warp.sync 0xffffffff;\ntcgen05.dealloc.cta_group::1.sync.aligned.b32 %r1, 128;\n"
        );
        let report = run_with(&Options { mode: Mode::Compute, ..Default::default() }, 64, &body, 1, 32);
        report.findings.iter().map(|found| found.code).collect::<Vec<_>>()
    };
    const MMA: &str = "tcgen05.mma.cta_group::1.kind::f16 [%r1], %d1, %d1, %r6, %p1;\n";
    const COMMIT: &str = "tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%r2];\n";
    let wait = |n: u32| format!("W{n}:\nmbarrier.try_wait.parity.shared::cta.b64 %p2, [%r2], {n};\n@!%p2 bra W{n};\n");
    assert_eq!(found(""), ["mma-outlives-cta"]);
    assert_eq!(found(COMMIT), ["mma-outlives-cta"]);
    assert_eq!(found(&[COMMIT, &wait(0)].concat()), [""; 0]);
    assert_eq!(found(&[COMMIT, &wait(0), MMA, COMMIT].concat()), ["mma-outlives-cta"], "for the first alone");
    assert_eq!(found(&[COMMIT, &wait(0), MMA, COMMIT, &wait(1)].concat()), [""; 0]);
}

/// A run for results or for times only takes the same cycles as one that judges, gives the same results if any, and says that it
/// checked nothing.
#[test]
fn results_and_times_only() {
    for name in ["ws_two_cta", "clc", "multicast"] {
        let case = case::case(name, None);
        let program = emulator::load(&case.text).unwrap_or_else(|errors| panic!("{errors:#?}"));
        let run = |mode| emulator::run(&program, &case.launch, &Options { mode, ..Default::default() });
        let whole = run(Mode::Judge);
        assert!(whole.is_clean(), "{name}: {:#?}", whole.findings);
        for (mode, says) in [(Mode::Compute, "only results and times"), (Mode::Time, "only times")] {
            let part = run(mode);
            assert_eq!((part.cycles, part.instructions), (whole.cycles, whole.instructions), "{name}, {mode:?}");
            assert!(part.completed && part.findings.is_empty(), "{name}, {mode:?}: {:#?}", part.findings);
            assert!(!part.is_clean() && part.incomplete[0].contains(says), "{name}, {mode:?}: {:?}", part.incomplete);
            assert!(mode == Mode::Time || part.buffers == whole.buffers, "{name}: the results are others");
        }
        // Which phase a wait has passed on is part of what happened, too.
        let waits = |mode| {
            let options = Options { mode, trace: true, ..Default::default() };
            let mut trace = emulator::run(&program, &case.launch, &options).trace;
            trace.retain(|event| matches!(event.kind, EventKind::BarrierWait { .. }));
            trace
        };
        let judged = waits(Mode::Judge);
        assert!(!judged.is_empty(), "{name}");
        assert!(waits(Mode::Compute) == judged, "{name}, results only: other phases");
        assert!(waits(Mode::Time) == judged, "{name}, times only: other phases");
    }
}
