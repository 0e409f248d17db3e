//! What single instructions compute, one row a form: values from the ISA's text or by hand.

use emulator::{Buffer, Content, Launch, Options, Param, Report};

/// A kernel around a body. `%d9` points to the thread's own 8 bytes of `out`, `%d8` to the start of `out`.
fn kernel(body: &str) -> String {
    format!(
        ".version 8.7\n.target sm_100a, debug\n.address_size 64\n\
         .global .align 8 .b32 table[3] = {{10, -1, 0x30}};\n.const .align 4 .f32 half[2] = {{0f3F000000, 2.5}};\n\
         .global .align 8 .u64 at_table = generic(table)+8;\n.global .align 4 .b32 counter;\n\
         .visible .entry k(.param .u64 out)\n{{\n.local .align 16 .b8 frame[32];\n.shared .align 16 .b8 smem[1024];\n\
         .reg .pred %p<8>;\n.reg .b16 %h<8>;\n.reg .b32 %r<16>;\n.reg .b64 %d<10>;\n.reg .f32 %f<8>;\n.reg .b128 %q<2>;\n\
         mov.u32 %r15, %tid.x;\nld.param.u64 %d8, [out];\nmul.wide.u32 %d9, %r15, 8;\nadd.s64 %d9, %d9, %d8;\n\
         {body}\nret;\n}}\n\0\0"
    )
}

fn run(body: &str, ctas: u32, threads: u32) -> Report {
    let program = emulator::load(&kernel(body)).unwrap_or_else(|errors| panic!("{body}: {errors:#?}"));
    let launch = Launch {
        entry: "k".into(),
        grid: [ctas, 1, 1],
        cluster: [1, 1, 1],
        block: [threads, 1, 1],
        buffers: vec![Buffer {
            name: "out".into(),
            content: Content::Fill { bytes: 4096, value: 0 },
            ..Default::default()
        }],
        params: vec![Param::Pointer { buffer: 0, offset: 0 }],
        ..Default::default()
    };
    emulator::run(&program, &launch, &Options { max_instructions: 1_000_000, ..Default::default() })
}

fn word(report: &Report, n: usize) -> u64 {
    let mut bytes = [0; 8];
    bytes.copy_from_slice(&report.buffers[0].bytes[8 * n..8 * n + 8]);
    u64::from_le_bytes(bytes)
}

/// The statements leave their result in `%d0`, or in `%r0`, which is widened.
#[track_caller]
fn gives(rows: &[(&str, u64)]) {
    for (body, expected) in rows {
        let wide = body.contains("%d0");
        let end = if wide { "st.global.b64 [%d9], %d0;" } else { "cvt.u64.u32 %d0, %r0;\nst.global.b64 [%d9], %d0;" };
        let report = run(&format!("{body}\n{end}"), 1, 1);
        assert!(report.is_clean(), "{body}: {:#?}", report.findings);
        assert_eq!(word(&report, 0), *expected, "{body}: {:#x}, expected {expected:#x}", word(&report, 0));
    }
}

#[test]
fn integers() {
    gives(&[
        ("mov.b32 %r1, 0x12345678; bfe.u32 %r0, %r1, 4, 8;", 0x67),
        ("mov.b32 %r1, 0x80; bfe.s32 %r0, %r1, 4, 4;", 0xffff_fff8),
        ("mul.hi.s32 %r0, -2, 3;", 0xffff_ffff),
        ("mul.hi.u32 %r0, 0xffffffff, 0xffffffff;", 0xffff_fffe),
        ("mov.b64 %d1, -1; mul.hi.u64 %d0, %d1, 2;", 1),
        ("mad.hi.u32 %r0, 0x80000000, 4, 5;", 7),
        ("mov.b16 %h1, -3; mov.b16 %h2, 2; max.s16 %h0, %h1, %h2; cvt.u32.u16 %r0, %h0;", 2),
        ("mov.b16 %h1, -3; mov.b16 %h2, 2; min.s16 %h0, %h1, %h2; cvt.u32.u16 %r0, %h0;", 0xfffd),
        ("mov.b16 %h1, -3; mov.b16 %h2, 2; max.u16 %h0, %h1, %h2; cvt.u32.u16 %r0, %h0;", 0xfffd),
        ("mov.b16 %h1, 0x12fe; cvt.s16.s8 %h0, %h1; cvt.u32.u16 %r0, %h0;", 0xfffe),
        ("mov.b16 %h1, 0x12fe; cvt.s32.s8 %r0, %h1;", 0xffff_fffe),
        ("mov.b32 %r1, 0x80000001; shf.l.wrap.b32 %r0, %r1, 3, 4;", 0x38),
        ("mov.b32 %r1, 0x80000001; shf.r.clamp.b32 %r0, %r1, 3, 40;", 3),
        ("setp.lt.s32 %p0, 1, 2; setp.lt.s32 %p1, 2, 1; xor.pred %p2, %p0, %p1; selp.b32 %r0, 7, 9, %p2;", 7),
        ("mov.b64 %d1, 0x1122334455667788; mov.b64 %d2, 5; mov.b128 %q0, {%d1, %d2}; mov.b128 {%d3, %d0}, %q0;", 5),
    ]);
}

#[test]
fn floats() {
    gives(&[
        // 1/3 rounded to nearest.
        ("div.full.f32 %f0, 0f3F800000, 0f40400000; mov.b32 %r0, %f0;", 0x3eaa_aaab),
        ("ex2.approx.ftz.f32 %f0, 0f40400000; mov.b32 %r0, %f0;", 0x4100_0000),
        // 3 and 0.5 plus 1 and 1.
        (
            "mov.b64 %d1, 0x3f00000040400000; mov.b64 %d2, 0x3f8000003f800000; add.f32x2 %d0, %d1, %d2;",
            0x3fc0_0000_4080_0000,
        ),
        // (1 + 2^-23)² = 1 + 2^-22 + 2^-46: towards zero, the last term is lost; −0.5 · 3 = −1.5 is exact.
        (
            "mov.b64 %d1, 0xbf0000003f800001; mov.b64 %d2, 0x404000003f800001; mul.rz.ftz.f32x2 %d0, %d1, %d2;",
            0xbfc0_0000_3f80_0002,
        ),
        // (1 + 2^-23)(1 − 2^-23) = 1 − 2^-46: nearest is 1, towards zero the number below.
        ("mov.b64 %d1, 0x3f800001; mov.b64 %d2, 0x3f7ffffe; mul.rz.f32x2 %d0, %d1, %d2;", 0x3f7f_ffff),
        // BF16: 1 + 2^-8 is halfway between 1 and 1 + 2^-7, and goes to the even 1; 3 + (−1) = 2.
        ("mov.b32 %r1, 0x40403f80; mov.b32 %r2, 0xbf803b80; add.bf16x2 %r0, %r1, %r2;", 0x4000_3f80),
        // BF16: 1.5 · −2.5 = −3.75.
        ("mov.b16 %h1, 0x3fc0; mov.b16 %h2, 0xc020; mul.bf16 %h0, %h1, %h2; cvt.u32.u16 %r0, %h0;", 0xc070),
        // FP16: 1 + 2^-10 + 2^-11 is halfway and goes to the even 1 + 2^-9; with a little less it goes down.
        ("mov.b32 %r1, 0x0fff1000; fma.rn.f16x2 %r0, %r1, 0x3c003c00, 0x3c013c01;", 0x3c01_3c02),
        // BF16: 3 · 89 = 267 is halfway between 266 and 268; 2^-100 decides, though FP64 cannot hold the sum.
        ("mov.b32 %r1, 0x40404040; fma.rn.bf16x2 %r0, %r1, 0x42b242b2, 0x8d800d80;", 0x4385_4386),
        ("cvt.rni.s32.f32 %r0, 0f40200000;", 2),
        ("cvt.rpi.s32.f32 %r0, 0fC0200000;", 0xffff_fffe),
        ("setp.ne.f32 %p0, 0f7FC00000, 0f3F800000; selp.b32 %r0, 1, 0, %p0;", 0),
        ("setp.neu.f32 %p0, 0f7FC00000, 0f3F800000; selp.b32 %r0, 1, 0, %p0;", 1),
    ]);
}

#[test]
fn memories() {
    gives(&[
        ("st.local.v2.b32 [frame+8], {5, 6}; ld.local.b32 %r0, [frame+12];", 6),
        ("mov.b64 %d1, frame; cvta.local.u64 %d1, %d1; st.b32 [%d1+4], 9; ld.local.b32 %r0, [frame+4];", 9),
        ("ld.global.b32 %r0, [table+4];", 0xffff_ffff),
        ("ld.global.b64 %d1, [at_table]; ld.b32 %r0, [%d1];", 0x30),
        ("ld.const.f32 %f0, [half+4]; mov.b32 %r0, %f0;", 0x4020_0000),
        ("ld.global.b32 %r0, [counter];", 0),
        ("st.shared.b32 [smem], 12; atom.shared.add.u32 %r1, [smem], 30; ld.shared.b32 %r0, [smem];", 42),
        (
            "st.shared.b32 [smem], 12; atom.shared.cas.b32 %r0, [smem], 12, 30; ld.shared.b32 %r1, [smem]; add.u32 %r0, %r0, %r1;",
            42,
        ),
        ("atom.relaxed.gpu.global.exch.b32 %r1, [counter], 8; atom.global.max.s32 %r0, [counter], -5;", 8),
        ("atom.global.min.u32 %r1, [table+4], 3; ld.global.b32 %r0, [table+4];", 3),
        ("st.global.v4.b64 [%d8+64], {1, 2, 3, 4}; ld.global.v4.b64 {%d1, %d2, %d3, %d0}, [%d8+64];", 4),
        (
            "st.relaxed.cta.global.L1::no_allocate.v8.b32 [%d8+64], {1, 2, 3, 4, 5, 6, 7, 8}; ld.acquire.gpu.global.b32 %r0, [%d8+92];",
            8,
        ),
    ]);
    // Constants are not written.
    let report = run("mov.u64 %d1, half; red.global.add.f32 [%d1], 0f3F800000;", 1, 1);
    assert_eq!(report.findings[0].code, "out-of-bounds", "{:#?}", report.findings);
}

/// 96 threads of three CTAs add to one word; each gets another old value.
#[test]
fn atomics_of_all_threads_add_up() {
    let report = run(
        "red.relaxed.gpu.global.add.s32 [counter], 1;\nld.relaxed.gpu.global.b32 %r0, [counter];\nst.relaxed.gpu.global.b32 [%d8], %r0;",
        3,
        32,
    );
    assert!(report.is_clean(), "{:#?}", report.findings);
    assert_eq!(word(&report, 0), 96);
}

/// Split-K: each CTA stores a part, counts itself, and the last adds the parts up.
fn split_k(count: &str, see: &str) -> Report {
    run(
        &format!(
            "mov.u32 %r1, %ctaid.x;\nmul.wide.u32 %d1, %r1, 8;\nadd.s64 %d1, %d1, %d8;\nadd.u32 %r2, %r1, 1;\n\
             st.global.b32 [%d1+64], %r2;\n{count}\nsetp.ne.u32 %p0, %r3, 3;\n@%p0 ret;\n{see}\n\
             ld.global.b32 %r4, [%d8+64];\nld.global.b32 %r5, [%d8+72];\nld.global.b32 %r6, [%d8+80];\n\
             ld.global.b32 %r7, [%d8+88];\nadd.u32 %r4, %r4, %r5;\nadd.u32 %r4, %r4, %r6;\nadd.u32 %r4, %r4, %r7;\n\
             st.global.b32 [%d8], %r4;"
        ),
        4,
        1,
    )
}

#[test]
fn split_k_is_ordered_by_release_and_acquire_or_by_fences() {
    for (count, see) in [
        ("atom.acq_rel.gpu.global.add.u32 %r3, [counter], 1;", ""),
        ("fence.acq_rel.gpu;\natom.relaxed.gpu.global.add.u32 %r3, [counter], 1;", "fence.acq_rel.gpu;"),
        ("membar.gl;\natom.global.add.u32 %r3, [counter], 1;", "membar.gl;"),
    ] {
        let report = split_k(count, see);
        assert!(report.is_clean(), "{count}: {:#?}", report.findings);
        assert_eq!(word(&report, 0), 1 + 2 + 3 + 4);
    }
    for (count, see) in [
        ("atom.relaxed.gpu.global.add.u32 %r3, [counter], 1;", ""),
        ("atom.release.gpu.global.add.u32 %r3, [counter], 1;", ""),
        ("atom.relaxed.gpu.global.add.u32 %r3, [counter], 1;", "fence.acq_rel.gpu;"),
        ("fence.acq_rel.cta;\natom.relaxed.gpu.global.add.u32 %r3, [counter], 1;", "fence.acq_rel.gpu;"),
        ("atom.acq_rel.cta.global.add.u32 %r3, [counter], 1;", ""),
    ] {
        let report = split_k(count, see);
        assert!(!report.is_clean(), "`{count}` and `{see}` order nothing");
    }
}

#[test]
fn a_wrong_space_or_order_is_refused() {
    for (body, code) in [
        ("ld.global.b32 %r0, [frame];", "ptx-semantics"),
        ("ld.shared.b32 %r0, [table];", "ptx-semantics"),
        ("ld.acquire.b32 %r0, [%d8];", "ptx-semantics"),
        ("ld.release.gpu.b32 %r0, [%d8];", "not-modelled"),
        ("atom.global.add.b32 %r0, [%d8], 1;", "not-modelled"),
        ("mov.u32 %r0, table;", "ptx-semantics"),
    ] {
        let errors = emulator::load(&kernel(body)).expect_err(body);
        assert_eq!(errors[0].code, code, "{body}: {errors:#?}");
    }
}

/// A device function, put in place of its two calls, with a branch to its return; recursion is refused.
#[test]
fn device_functions_are_put_in_place_of_their_calls() {
    let text = |recursive: &str| {
        format!(
            ".version 8.7\n.target sm_100a\n.address_size 64\n\
             .func (.param .b32 result) twice(.param .b32 value)\n{{\n.reg .b32 %r<3>;\n.reg .pred %p;\n\
             ld.param.b32 %r1, [value];\nsetp.gt.u32 %p, %r1, 100;\nst.param.b32 [result], %r1;\n@%p ret;\n{recursive}\
             add.u32 %r1, %r1, %r1;\nst.param.b32 [result], %r1;\nret;\n}}\n\
             .visible .entry k(.param .u64 out)\n{{\n.reg .b32 %r<4>;\n.reg .b64 %d<4>;\nmov.u32 %r1, %tid.x;\n\
             ld.param.u64 %d1, [out];\nmul.wide.u32 %d2, %r1, 8;\nadd.s64 %d1, %d1, %d2;\nmul.lo.u32 %r1, %r1, 40;\n\
             {{ .param .b32 a; .param .b32 b; st.param.b32 [a], %r1; call.uni (b), twice, (a); ld.param.b32 %r2, [b]; }}\n\
             {{ .param .b32 a; .param .b32 b; st.param.b32 [a], %r2; call (b), twice, (a); ld.param.b32 %r2, [b]; }}\n\
             st.global.b32 [%d1], %r2;\nret;\n}}\n"
        )
    };
    let program = emulator::load(&text("")).unwrap_or_else(|errors| panic!("{errors:#?}"));
    let buffers =
        vec![Buffer { name: "out".into(), content: Content::Fill { bytes: 256, value: 0 }, ..Default::default() }];
    let launch = Launch {
        entry: "k".into(),
        grid: [1, 1, 1],
        cluster: [1, 1, 1],
        block: [32, 1, 1],
        buffers,
        params: vec![Param::Pointer { buffer: 0, offset: 0 }],
        ..Default::default()
    };
    let report = emulator::run(&program, &launch, &Options::default());
    assert!(report.is_clean(), "{:#?}", report.findings);
    for (n, expected) in [(0, 0), (1, 160), (2, 160), (3, 120), (31, 1240)] {
        assert_eq!(word(&report, n), expected, "thread {n}");
    }
    let errors = emulator::load(&text("call (result), twice, (value);\n")).expect_err("recursion");
    assert!(errors[0].title.contains("recursive"), "{errors:#?}");
}

/// `.pack::16b`: the low halves of two neighbouring columns make one register (PTX ISA, tcgen05.ld).
#[test]
fn packed_tensor_loads_take_the_low_halves_of_two_columns() {
    let report = run(
        "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [smem], 32;\nbar.sync 0;\nld.shared.b32 %r1, [smem];\n\
         tcgen05.st.sync.aligned.32x32b.x4.b32 [%r1], {0xaaaa0001, 0xbbbb0002, 0xcccc0003, 0xdddd0004};\n\
         tcgen05.wait::st.sync.aligned;\n\
         tcgen05.ld.sync.aligned.32x32b.x2.pack::16b.b32 {%r2, %r3}, [%r1];\ntcgen05.wait::ld.sync.aligned;\n\
         mov.b64 %d0, {%r2, %r3};\nst.global.b64 [%d9], %d0;\n\
         tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r1, 32;",
        1,
        32,
    );
    assert!(report.is_clean(), "{:#?}", report.findings);
    assert_eq!(word(&report, 5), 0x0004_0003_0002_0001);
}

/// What writes shared memory for a whole warp must spare the barriers in it as plain stores must.
#[test]
fn stmatrix_and_alloc_over_a_live_mbarrier() {
    let init = "setp.eq.u32 %p1, %r15, 0;\n@%p1 mbarrier.init.shared::cta.b64 [smem+32], 1;\nbar.sync 0;\n";
    let stmatrix = |at: u32| {
        format!(
            "{init}and.b32 %r1, %r15, 7;\nshl.b32 %r1, %r1, 4;\nmov.u32 %r2, smem;\nadd.u32 %r1, %r1, %r2;\nmov.b32 %r3, 0;\n\
             stmatrix.sync.aligned.m8n8.x1.shared.b16 [%r1+{at}], {{%r3}};"
        )
    };
    let alloc = |at: u32| {
        format!(
            "{init}tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [smem+{at}], 32;\nbar.sync 0;\n\
             ld.shared.b32 %r1, [smem+{at}];\ntcgen05.dealloc.cta_group::1.sync.aligned.b32 %r1, 32;"
        )
    };
    for (over, beside, statement) in
        [(stmatrix(0), stmatrix(48), "stmatrix"), (alloc(36), alloc(40), "alloc"), (alloc(32), alloc(28), "alloc")]
    {
        let report = run(&over, 1, 32);
        let codes: Vec<_> = report.findings.iter().map(|d| d.code).collect();
        assert_eq!(codes, ["mbarrier-overwritten"], "{over}");
        let place = &report.findings[0].labels[0].place;
        assert!(place.text.contains(statement), "{place:?}");
        let report = run(&beside, 1, 32);
        assert!(report.is_clean(), "{beside}: {:#?}", report.findings);
    }
}
