//! What is nearly PTX: the message names the word that lacks, or what PTX calls it.

use crate::row::kernel;

/// What is PTX but for a word that the ISA demands says which.
#[test]
fn a_word_that_lacks_is_named() {
    for (statement, title, help) in [
        ("tcgen05.wait::ld;", "`tcgen05.wait::ld` lacks `.sync.aligned`", "Write `tcgen05.wait::ld.sync.aligned`."),
        ("add %r1, %r1, 1;", "`add` lacks its type", "Write `add.u32`; other types are "),
        ("add %d1, %d1, 1;", "`add` lacks its type", "Write `add.u64`; other types are "),
        (
            "setp.u32 %p1, %r1, 8;",
            "`setp.u32` lacks its comparison",
            "Write `setp.eq.u32`; other comparisons are `.ne`, `.lt`",
        ),
        (
            "setmaxnreg.inc.u32 168;",
            "`setmaxnreg.inc.u32` lacks `.sync.aligned`",
            "Write `setmaxnreg.inc.sync.aligned.u32`.",
        ),
        (
            "cp.reduce.async.bulk.global.shared::cta.bulk_group.add [%d1], [%r1], 128;",
            "`cp.reduce.async.bulk.global.shared::cta.bulk_group.add` lacks its type",
            "Write `cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32`; other types are ",
        ),
        ("cvt.f16x2.f32 %r1, %f1, %f0;", "`cvt.f16x2.f32` lacks its rounding", "Write `cvt.rn.f16x2.f32`, or `.rz`."),
        (
            "tcgen05.relinquish_alloc_permit.sync.aligned;",
            "`tcgen05.relinquish_alloc_permit.sync.aligned` lacks `.cta_group::1` or `.cta_group::2`",
            "Write `tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned`, or `.cta_group::2`.",
        ),
    ] {
        let errors = emulator::load(&kernel(statement)).expect_err(statement);
        assert_eq!((errors[0].code, errors[0].title.as_str()), ("ptx-syntax", title), "{statement}: {errors:#?}");
        assert!(errors[0].help.contains(help), "{statement}: {errors:#?}");
    }
}

/// What CUDA or another way of writing calls otherwise: the message says what PTX has.
#[test]
fn what_is_called_otherwise_in_ptx_is_named() {
    for (statement, code, says) in [
        ("mov.u32 %r0, %threadIdx.x;", "ptx-semantics", "PTX calls it `%tid.x`"),
        ("mov.u32 %r0, blockIdx.y;", "ptx-semantics", "PTX calls it `%ctaid.y`"),
        ("mov.u32 %r0, %blockDim.x;", "ptx-semantics", "PTX calls it `%ntid.x`"),
        ("mov.u32 %r0, %gridDim.z;", "ptx-semantics", "PTX calls it `%nctaid.z`"),
        ("mov.u32 %r0, %clusterIdx;", "ptx-semantics", "PTX calls it `%clusterid.x`"),
        ("mov.u32 %r0, %lane_id;", "ptx-semantics", "PTX calls it `%laneid`"),
        ("mov.u32 %r0, %warpId;", "ptx-semantics", "PTX calls it `%warpid`"),
        ("ST.SHARED.U32 [%r3], %r0;", "ptx-syntax", "in lower case: `st.shared.u32`"),
        ("st.SHARED.u32 [%r3], %r0;", "ptx-syntax", "in lower case: `st.shared.u32`"),
        ("__syncthreads();", "ptx-syntax", "is `bar.sync 0;` in PTX"),
        ("bra NEXT @%p1;\nNEXT:", "ptx-syntax", "in front of its instruction: `@%p1 bra NEXT;`"),
        ("bra NEXT @!%p1;\nNEXT:", "ptx-syntax", "in front of its instruction: `@!%p1 bra NEXT;`"),
        (".extern .shared .align 16 .b32 box[256];", "ptx-syntax", "without `.extern`"),
        ("mul.lo.u32 %d1, %r0, 4;", "ptx-semantics", "`mul.wide.u32`"),
        ("mad.lo.s32 %d1, %r0, 4, %d1;", "ptx-semantics", "`mad.wide.s32`"),
        ("mul.lo.u32 %d1, %d2, 4;", "ptx-semantics", "`mul.lo.u64`"),
        ("ld.global.u32 %r6, [%r5];", "ptx-semantics", "write `ld.shared.u32`"),
    ] {
        let errors = emulator::load(&kernel(statement)).expect_err(statement);
        assert_eq!(errors[0].code, code, "{statement}: {errors:#?}");
        assert!(errors[0].help.contains(says), "{statement}: {}", errors[0].help);
    }
}

/// A range that is declared too small is one error, however many registers of it are used.
#[test]
fn a_range_that_is_too_small_is_one_error() {
    let more = "add.u32 %few2, %few4, 1;\n".repeat(30);
    let body = format!("{{ .reg .b32 %few<3>;\nmov.u32 %few2, 1;\nmov.u32 %few3, 1;\n{more} }}\nfrobnicate;");
    let errors = emulator::load(&kernel(&body)).expect_err("two registers are not declared");
    let told: Vec<(&str, u64)> = errors.iter().map(|e| (e.title.as_str(), e.count)).collect();
    assert_eq!(told, [("`%few3` is not declared", 31), ("there is no instruction `frobnicate` in PTX", 1)]);
}

/// Where another target is needed, it is not asked for the version that knows this one.
#[test]
fn advice_on_target_and_version_does_not_contradict_itself() {
    let text = |body: &str| {
        format!(".version 8.6\n.target sm_120a\n.address_size 64\n.visible .entry k() {{\n{body}\nret;\n}}\n")
    };
    let errors = emulator::load(&text("tcgen05.wait::ld.sync.aligned;")).expect_err("there is no tensor memory");
    assert_eq!(errors.len(), 1, "{errors:#?}");
    assert!(errors[0].help.contains("Write `.target sm_100a`"), "{errors:#?}");
    let errors = emulator::load(&text("bar.sync 0;")).expect_err("the version is too early");
    assert_eq!((errors.len(), errors[0].help.as_str()), (1, "Write `.version 8.7` or later."));
}
