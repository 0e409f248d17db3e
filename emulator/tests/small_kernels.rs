//! Small kernels, each at one edge of the model: what the GPU runs must pass on every schedule, what it does not must be
//! found. Each writes what it computes to a buffer of words.

mod common;
#[path = "small_kernels/copies.rs"]
mod copies;
#[path = "small_kernels/orders.rs"]
mod orders;
#[path = "small_kernels/parting.rs"]
mod parting;
#[path = "small_kernels/products.rs"]
mod products;
#[path = "small_kernels/stationary.rs"]
mod stationary;

use common::{load, schedules, word32 as word, zeroes};
use emulator::Report;

/// A kernel around a body. `%r0` is the thread's number, `%rd0` points to its own word of the buffer `out`.
fn kernel(body: &str) -> String {
    format!(
        ".version 8.6\n.target sm_100a\n.address_size 64\n.visible .entry k(.param .u64 out)\n{{\n\
         .shared .align 1024 .b8 tile[32768];\n.shared .align 8 .b64 bar_a;\n.shared .align 8 .b64 bar_b;\n\
         .shared .align 4 .b32 slot;\n\
         .reg .pred %p<16>;\n.reg .b16 %h<8>;\n.reg .b32 %r<64>;\n.reg .b64 %rd<16>;\n.reg .f32 %f<8>;\n\
         mov.u32 %r0, %tid.x;\nld.param.u64 %rd0, [out];\nmul.wide.u32 %rd1, %r0, 4;\nadd.s64 %rd0, %rd0, %rd1;\n\
         {body}\nret;\n}}\n"
    )
}

fn run(body: &str, threads: u32, seed: Option<u64>) -> Report {
    let launch = common::launch("k", threads, vec![zeroes("out", 4096)]);
    common::run(&load(&kernel(body)), &launch, seed, 5_000_000)
}

/// Runs on the default schedule and adversarial ones: clean on all, and the words are as said.
#[track_caller]
fn clean(body: &str, threads: u32, expected: impl Fn(usize) -> u32) {
    for seed in schedules(24) {
        let report = run(body, threads, seed);
        assert!(report.is_clean(), "seed {seed:?}: {:#?}", report.findings);
        for n in 0..threads as usize {
            assert_eq!(word(&report, n), expected(n), "seed {seed:?}, word {n}");
        }
    }
}

#[track_caller]
fn finds(body: &str, threads: u32, code: &str) {
    for seed in schedules(8) {
        let codes = common::codes(&run(body, threads, seed));
        assert!(codes.contains(&code), "seed {seed:?}: {codes:?}");
    }
}

/// What instructions compute, against values worked out by hand from the ISA.
#[test]
fn arithmetic_follows_the_isa() {
    for (code, expected) in [
        // The result of a conversion to a narrower signed type is extended to the register's width.
        ("mov.u32 %r8, 0x180; cvt.s8.s32 %r9, %r8;", 0xffff_ff80),
        ("mov.u32 %r8, 0x18000; cvt.s16.s32 %r9, %r8;", 0xffff_8000),
        ("mov.u32 %r8, 0x180; cvt.u8.u32 %r9, %r8;", 0x80),
        // 16-bit comparisons look at 16 bits.
        (
            "mov.u16 %h0, -1; mov.u32 %r8, 0xffff; cvt.u16.u32 %h1, %r8; setp.eq.b16 %p2, %h0, %h1; selp.u32 %r9, 1, 0, %p2;",
            1,
        ),
        ("mov.b16 %h0, 0x8000; mov.b16 %h1, 1; mov.b32 %r9, {%h1, %h0};", 0x8000_0001),
        ("mov.b32 %r8, 0x80000001; mov.b32 {%h0, %h1}, %r8; cvt.s32.s16 %r9, %h1;", 0xffff_8000),
        // `_` stands for either predicate.
        ("setp.lt.u32 _|%p2, %r0, 2000; selp.u32 %r9, 1, 0, %p2;", 0),
        ("setp.lt.u32 %p2|_, %r0, 2000; selp.u32 %r9, 1, 0, %p2;", 1),
        ("mov.f32 %f0, 0f7fc00000; setp.lt.f32 %p2|%p3, %f0, 0f00000000; selp.u32 %r9, 1, 0, %p3;", 1),
        ("setp.ge.and.u32 %p4|%p5, %r0, 2000, %p5; selp.u32 %r9, 1, 0, %p4;", 0),
        // What is not selected, or cancels, need not be defined.
        ("setp.lt.u32 %p2, %r0, 2000; selp.u32 %r9, 5, %r40, %p2;", 5),
        ("xor.b32 %r9, %r40, %r40;", 0),
        ("mov.u32 %r8, 0x12345678; prmt.b32 %r9, %r8, 0xaabbccdd, 0x7162;", 0xaa56_bb34),
        ("mov.u32 %r8, 0x12345680; prmt.b32 %r9, %r8, 0, 0x8888;", 0xffff_ffff),
        ("mov.u32 %r8, 0xf0; bfe.u32 %r9, %r8, 4, 40;", 0xf),
        ("mov.u32 %r8, -7; shr.s32 %r9, %r8, 40;", 0xffff_ffff),
        ("mov.u32 %r8, -7; rem.s32 %r9, %r8, 3;", 0xffff_ffff),
        ("mov.u32 %r8, -2147483648; div.s32 %r9, %r8, -1;", 0x8000_0000),
        ("mov.u32 %r8, -3; mul.hi.s32 %r9, %r8, 1073741824;", 0xffff_ffff),
        ("mov.f32 %f0, 0fffc00000; cvt.rzi.s32.f32 %r9, %f0;", 0),
        ("mov.f32 %f0, 0fc0200000; cvt.rzi.u32.f32 %r9, %f0;", 0),
        ("mov.f32 %f0, 0f477ff000; cvt.rn.f16x2.f32 %r9, %f0, 0f3f800000;", 0x7c00_3c00),
        ("mov.u32 %r8, 0xf; lop3.b32 %r9, %r8, 0x33, 0x55, 0xea;", 0x57),
        ("vote.sync.ballot.b32 %r9, %p6, 0xffffffff;", 0xaaaa_aaaa),
        ("shfl.sync.up.b32 %r9|%p2, %r0, 40, 0, 0xffffffff; setp.eq.u32 %p2, %r0, %r0; selp.u32 %r9, 3, 0, %p2;", 3),
        ("shfl.sync.bfly.b32 %r9, %r0, 1, 0x1f, 0xffffffff; xor.b32 %r9, %r9, %r0;", 1),
        (
            "shfl.sync.idx.b32 %r9, %r0, 2, 0x181c, 0xffffffff; and.b32 %r8, %r0, 28; and.b32 %r8, %r8, 24; or.b32 %r8, %r8, 2; sub.u32 %r9, %r9, %r8;",
            0,
        ),
    ] {
        let set_up = "and.b32 %r8, %r0, 1; setp.ne.u32 %p6, %r8, 0; setp.eq.u32 %p5, %r0, %r0;";
        let report = run(&format!("{set_up} {code} st.global.b32 [%rd0], %r9;"), 32, None);
        assert!(report.is_clean(), "{code}: {:#?}", report.findings);
        for n in 0..32 {
            assert_eq!(word(&report, n), expected, "{code}: word {n} is {:#x}", word(&report, n));
        }
    }
}

/// CTA barriers count the threads of a warp that have ended, or never were, as there (PTX ISA 9.7.13.1).
#[test]
fn cta_barriers_count_warps_that_are_not_full() {
    clean("bar.sync 0; st.global.b32 [%rd0], 5;", 48, |_| 5);
    clean("barrier.sync 0; st.global.b32 [%rd0], 5;", 48, |_| 5);
    clean(
        "setp.ge.u32 %p1, %r0, 40; @%p1 ret; bar.sync 0; st.global.b32 [%rd0], 5;",
        64,
        |n| if n < 40 { 5 } else { 0 },
    );
    clean("setp.ge.u32 %p1, %r0, 40; @%p1 ret; barrier.sync 1, 64; st.global.b32 [%rd0], 5;", 64, |n| {
        if n < 40 { 5 } else { 0 }
    });
    // A branch to the end is an end; to anything else, it is none.
    clean("setp.ge.u32 %p1, %r0, 40; @%p1 bra OUT; bar.sync 0; st.global.b32 [%rd0], 5;\nOUT:", 64, |n| {
        if n < 40 { 5 } else { 0 }
    });
    finds(
        "setp.ge.u32 %p1, %r0, 40; @%p1 bra OUT; bar.sync 0;\nOUT: st.global.b32 [%rd0], 5;",
        64,
        "aligned-lanes-missing",
    );
}

/// A warp that polls while another computes for long is no hang.
#[test]
fn polling_beside_a_long_computation_is_no_hang() {
    let body = "
    setp.ne.u32 %p3, %r0, 0;
    @!%p3 mbarrier.init.shared::cta.b64 [bar_a], 1;
    bar.sync 0;
    setp.lt.u32 %p0, %r0, 32;
    @!%p0 bra POLL;
    mov.u32 %r5, 0;
LONG:
    ld.global.b32 %r6, [%rd0];
    add.u32 %r5, %r5, %r6;
    add.u32 %r5, %r5, 1;
    setp.lt.u32 %p1, %r5, 12000;
    @%p1 bra LONG;
    @!%p3 mbarrier.arrive.shared::cta.b64 _, [bar_a];
    bra DONE;
POLL:
    mbarrier.test_wait.parity.shared::cta.b64 %p2, [bar_a], 0;
    @!%p2 bra POLL;
DONE:
    st.global.b32 [%rd0], 5;";
    let report = run(body, 64, None);
    assert!(report.is_clean(), "{:#?}", report.findings);
    let endless = body.replace("    @!%p3 mbarrier.arrive.shared::cta.b64 _, [bar_a];\n", "");
    assert_eq!(run(&endless, 64, None).findings.first().map(|d| d.code), Some("hang"));
}

/// The top byte of a shared address is the rank of a CTA in its cluster: here there is only rank 0.
#[test]
fn shared_addresses_of_other_ctas_are_out_of_bounds() {
    finds("mov.u32 %r1, tile; xor.b32 %r1, %r1, 0x01000000; st.shared.b32 [%r1], %r0;", 1, "out-of-bounds");
    finds(
        "mov.u32 %r1, bar_a; xor.b32 %r1, %r1, 0x01000000; mbarrier.init.shared::cta.b64 [%r1], 1;",
        1,
        "mbarrier-address",
    );
    clean("mov.u32 %r1, tile; add.u32 %r1, %r1, 64; st.shared.b32 [%r1+-64], %r0; st.global.b32 [%rd0], 1;", 1, |_| 1);
}

/// As Halide addresses dynamic shared memory, from 0 on: that is the system's, and lies in front of what the CTA has, not behind it.
#[test]
fn a_shared_address_below_the_first_variable() {
    let place = |at: u32| format!("mov.b32 %r1, {at}; st.shared.b32 [%r1], 7; st.global.b32 [%rd0], 1;");
    let report = run(&place(0x3fc), 1, None);
    let finding = &report.findings[0];
    assert_eq!(finding.code, "out-of-bounds");
    assert!(finding.title.ends_with("outside of shared memory: the CTA's own begins at 0x400"), "{}", finding.title);
    assert!(finding.help.starts_with("Take the address of a variable"), "{}", finding.help);
    clean(&place(0x400), 1, |_| 1);
}

/// The cluster has one CTA, so that rank 2 is none: the address does not lie behind anything, and more shared memory would not help.
#[test]
fn an_address_in_a_cta_that_the_cluster_has_not() {
    for body in [
        "mov.u32 %r1, bar_a; mapa.shared::cluster.u32 %r1, %r1, 2; mbarrier.arrive.shared::cluster.b64 _, [%r1];",
        "mov.u32 %r1, bar_a; mapa.shared::cluster.u32 %r1, %r1, 2; st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%r1], %r0, [%r1];",
    ] {
        let report = run(body, 1, None);
        let title = &report.findings[0].title;
        assert!(title.ends_with("lies in CTA 2 of the cluster, which has 1 CTA"), "{title}");
    }
}

/// CTA 1 arrives at the address that mapa gives for CTA 0, or waits there, in a form that reaches its own shared memory only. CTA 0 has rank 0,
/// so that the number is an offset, too; but the own window begins with the own rank. An H200 says `illegal instruction`.
#[test]
fn a_mapped_address_in_a_form_of_the_own_cta() {
    let launched = |with: &str, threads: u32| {
        let body = format!(
            "setp.eq.u32 %p2, %r0, 0; @%p2 mbarrier.init.shared::cta.b64 [bar_a], 1; fence.mbarrier_init.release.cluster;
             barrier.cluster.arrive; barrier.cluster.wait;
             mov.u32 %r1, %cluster_ctarank; setp.eq.u32 %p0, %r1, 0; mov.u32 %r2, bar_a;
             @%p0 bra LAST; {with}
             LAST: barrier.cluster.arrive; barrier.cluster.wait;"
        );
        let mut launch = common::launch("k", threads, vec![zeroes("out", 4096)]);
        (launch.grid, launch.cluster) = ([2, 1, 1], [2, 1, 1]);
        common::run(&load(&kernel(&body)), &launch, None, 1_000_000)
    };
    let run = |with: &str| launched(with, 1);
    let mapped = "mapa.shared::cluster.u32 %r2, %r2, 0;";
    let wait = "mbarrier.try_wait.parity.shared::cta.b64 %p1, [%r2], 1;";
    for (with, help) in [
        ("mbarrier.arrive.shared::cta.b64 _, [%r2];", "Use the `.shared::cluster` form (with `_` for the state)."),
        (wait, "Let a thread of CTA 0 wait for it: a wait has no form that reaches other CTAs."),
    ] {
        let found = &run(&format!("{mapped} {with}")).findings[0];
        assert_eq!((found.code, found.help.as_str()), ("mbarrier-address", help), "{found:#?}");
        assert!(run(with).findings.is_empty(), "its own");
        let offset = run(&format!("and.b32 %r2, %r2, 0xffffff; {with}"));
        assert_eq!(common::codes(&offset), ["mbarrier-address"], "{:#?}", offset.findings);
    }
    assert!(run(&format!("{mapped} mbarrier.arrive.shared::cluster.b64 _, [%r2];")).findings.is_empty());
    // The same of what loads, stores and copies.
    let tile =
        "mov.u32 %r2, tile; st.shared.v4.b32 [%r2], {%r1, %r1, %r1, %r1}; fence.proxy.async; ld.param.u64 %rd0, [out];";
    for (with, code) in [
        ("ld.shared.b32 %r3, [%r2];", "out-of-bounds"),
        ("st.shared::cta.b32 [%r2], 1;", "out-of-bounds"),
        ("atom.shared.add.u32 %r3, [%r2], 1;", "out-of-bounds"),
        ("cp.async.ca.shared.global [%r2], [%rd0], 16; cp.async.wait_all;", "bulk-shared-address"),
        (
            "cp.async.bulk.global.shared::cta.bulk_group [%rd0], [%r2], 16; cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;",
            "bulk-shared-address",
        ),
        (
            "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r2], 32;
             ld.shared.b32 %r4, [tile]; tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r4, 32;",
            "out-of-bounds",
        ),
    ] {
        for wrong in [mapped, "and.b32 %r2, %r2, 0xffffff;"] {
            let report = launched(&format!("{tile} {wrong} {with}"), 32);
            let found = report.findings.first().map(|found| (found.code, found.title.contains("CTA 0 of the cluster")));
            assert_eq!(found, Some((code, true)), "{with}: {:#?}", report.findings);
        }
        let right = launched(&format!("{tile} {with}"), 32);
        assert!(right.findings.is_empty(), "{with}: {:#?}", right.findings);
    }
}

/// What a thread takes of a piece may be less than the piece, and the rest is zeros; more is undefined, by each lane's own number.
#[test]
fn an_asynchronous_copy_takes_no_more_than_it_copies() {
    let copy = |size: &str| {
        format!(
            "st.global.b32 [%rd0], 7; {size}
             mov.u32 %r1, tile; shl.b32 %r2, %r0, 2; add.u32 %r1, %r1, %r2;
             cp.async.ca.shared.global [%r1], [%rd0], 4, %r3; cp.async.wait_all;
             ld.shared.b32 %r4, [%r1]; st.global.b32 [%rd0], %r4;"
        )
    };
    clean(&copy("shl.b32 %r3, %r0, 2;"), 2, |n| 7 * n as u32);
    let report = run(&copy("shl.b32 %r3, %r0, 3;"), 2, None);
    assert_eq!(common::codes(&report), ["bulk-size"]);
    let title = &report.findings[0].title;
    assert_eq!(title, "thread (1, 0, 0) of CTA (0, 0, 0) would take 8 bytes of the 4 that its cp.async copies");
}

#[test]
fn operands_that_no_barrier_takes() {
    let init = "setp.eq.u32 %p3, %r0, 0; @%p3 mbarrier.init.shared::cta.b64 [bar_a], 1;";
    finds(
        &format!("{init} mov.u32 %r5, 0; @%p3 mbarrier.arrive.shared::cta.b64 _, [bar_a], %r5;"),
        32,
        "mbarrier-count",
    );
    finds("bar.warp.sync 0xffff0000;", 32, "lanes-missing");
    clean("setp.lt.u32 %p1, %r0, 8; @%p1 bar.warp.sync 0x000000ff; st.global.b32 [%rd0], 1;", 32, |_| 1);
}

/// Names are known in their block: two blocks may each have a label or a shared variable of the same name.
#[test]
fn names_of_separate_blocks_are_separate() {
    let block = |n: u32| {
        format!(
            "{{ .shared .align 4 .b32 x; .reg .pred p; .reg .b32 q; mov.u32 q, 0;
             L: add.u32 q, q, 1; setp.lt.u32 p, q, {n}; @p bra L;
             st.shared.b32 [x], q; mov.u32 %r{n}, x; }}"
        )
    };
    let body = format!(
        "{} {} ld.shared.b32 %r9, [%r5]; ld.shared.b32 %r10, [%r6]; mad.lo.u32 %r9, %r9, 10, %r10; st.global.b32 [%rd0], %r9;",
        block(5),
        block(6)
    );
    clean(&body, 1, |_| 56);
    for twice in ["L: mov.u32 %r5, 0;\nL: mov.u32 %r5, 1;", ".reg .b32 q;\n.reg .b64 q;", ".reg .b32 %r1;"] {
        let errors = emulator::load(&kernel(twice)).expect_err(twice);
        assert!(errors[0].code == "ptx-semantics" && errors[0].title.contains("twice"), "{errors:#?}");
    }
}

/// What writes shared memory for a whole warp must spare the barriers in it as plain stores must.
#[test]
fn stmatrix_and_alloc_over_a_live_mbarrier() {
    let init = "setp.eq.u32 %p1, %r0, 0;\n@%p1 mbarrier.init.shared::cta.b64 [tile+32], 1;\nbar.sync 0;\n";
    let stmatrix = |at: u32| {
        format!(
            "{init}and.b32 %r1, %r0, 7;\nshl.b32 %r1, %r1, 4;\nmov.u32 %r2, tile;\nadd.u32 %r1, %r1, %r2;\nmov.b32 %r3, 0;\n\
             stmatrix.sync.aligned.m8n8.x1.shared.b16 [%r1+{at}], {{%r3}};"
        )
    };
    let alloc = |at: u32| {
        format!(
            "{init}tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [tile+{at}], 32;\nbar.sync 0;\n\
             ld.shared.b32 %r1, [tile+{at}];\ntcgen05.dealloc.cta_group::1.sync.aligned.b32 %r1, 32;"
        )
    };
    for (over, beside) in [(stmatrix(0), stmatrix(48)), (alloc(36), alloc(40)), (alloc(32), alloc(28))] {
        finds(&over, 32, "mbarrier-overwritten");
        let help = &run(&over, 32, None).findings[0].help;
        assert!(help.contains("end it with mbarrier.inval first"), "{help}");
        let report = run(&beside, 32, None);
        assert!(report.is_clean(), "{beside}: {:#?}", report.findings);
    }
}

/// A word is filled field by field, each time from what is there: bits that nobody has written are in it until the last one, and nobody reads
/// them. One that is read all the same has no value, also where the word had one before, and where all of it comes from nowhere since.
#[test]
fn fields_of_a_word_are_written_one_by_one() {
    let fill = |at: &str, mask: i32, value: &str| {
        format!("ld.b32 %r1, [{at}];\nand.b32 %r1, %r1, {mask};\nor.b32 %r1, %r1, {value};\nst.b32 [{at}], %r1;\n")
    };
    let place = "mov.u32 %r3, tile;\ncvt.u64.u32 %rd3, %r3;\ncvta.shared.u64 %rd3, %rd3;\nmul.wide.u32 %rd4, %r0, 4;\nadd.s64 %rd3, %rd3, %rd4;\n";
    let depot = ".local .align 4 .b8 depot[8];\nmov.u64 %rd3, depot;\ncvta.local.u64 %rd3, %rd3;\n";
    let field = |shift: u32, bits: u32| {
        format!(
            "ld.b32 %r2, [%rd3];\nshl.b32 %r2, %r2, {};\nshr.u32 %r2, %r2, {};\nst.global.u32 [%rd0], %r2;\n",
            32 - shift - bits,
            32 - bits
        )
    };
    // Bits 0 to 2 are the thread's number, bits 3 to 9 are 5, and bits 10 to 31 nothing.
    let low = "and.b32 %r4, %r0, 7;\n".to_string() + &fill("%rd3", -8, "%r4");
    let fields = low.clone() + &fill("%rd3", !0x3f8, "40");
    for begin in [place, depot] {
        clean(&format!("{begin}{fields}{}", field(0, 3)), 32, |n| n as u32 & 7);
        clean(&format!("{begin}{fields}{}", field(3, 7)), 32, |_| 5);
        clean(&format!("{begin}{fields}{}", field(0, 10)), 32, |n| 40 | n as u32 & 7);
        for unwritten in [field(3, 8), field(10, 1), field(0, 32)] {
            finds(&format!("{begin}{fields}{unwritten}"), 32, "undefined-value-stored");
        }
        finds(&format!("{begin}{low}{}", field(3, 7)), 32, "undefined-value-stored");
        // Of a word of which two bytes have a value, each byte is known by itself.
        let bytes = fill("%rd3", !0xffff, "0x1234");
        clean(&format!("{begin}{bytes}ld.u8 %r2, [%rd3+1];\nst.global.u32 [%rd0], %r2;\n"), 32, |_| 0x12);
        finds(
            &format!("{begin}{bytes}ld.u8 %r2, [%rd3+2];\nst.global.u32 [%rd0], %r2;\n"),
            32,
            "undefined-value-stored",
        );
        for before in [&fields, "st.b32 [%rd3], 0;\n"] {
            let lost = format!("{begin}{before}st.b32 [%rd3], %r9;\n");
            finds(&format!("{lost}{}", field(0, 3)), 32, "undefined-value-stored");
            clean(&format!("{lost}{fields}{}", field(3, 7)), 32, |_| 5);
        }
    }
}
