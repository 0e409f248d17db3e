//! `wgmma`: each way to misuse registers, groups, warps and shared memory is found at the right line, and a twin that is right is
//! clean; targets and operands are refused as ptxas refuses them.

mod common;

use common::{launch, load, schedules, zeroes};
use emulator::{Diagnostic, Options, Report};

/// A kernel of one warpgroup around a body: `tile` holds ones, seen by the asynchronous proxy; `%rd0` and `%rd1` are descriptors of A
/// and B in it (K-major, 128-byte rows), `%f0` to `%f3` zero, `%r4` to `%r7` ones.
fn kernel(body: &str) -> String {
    format!(
        ".version 8.0\n.target sm_90a\n.address_size 64\n.visible .entry k(.param .u64 out)\n{{\n\
         .shared .align 1024 .b8 tile[24576];\n.reg .pred %p<8>;\n.reg .b32 %r<40>;\n.reg .b64 %rd<8>;\n.reg .f32 %f<40>;\n.reg .b32 %x<8>;\n\
         mov.u32 %r0, %tid.x;\nshr.u32 %r1, %r0, 5;\nld.param.u64 %rd7, [out];\nmul.wide.u32 %rd6, %r0, 4;\nadd.s64 %rd7, %rd7, %rd6;\n\
         mov.u32 %r2, tile;\nmov.u32 %r3, 0x3c003c00;\nshl.b32 %r8, %r0, 4;\nadd.u32 %r8, %r8, %r2;\nmov.u32 %r9, 0;\n\
         FILL:\nst.shared.v4.b32 [%r8], {{%r3, %r3, %r3, %r3}};\nadd.u32 %r8, %r8, 2048;\nadd.u32 %r9, %r9, 1;\nsetp.lt.u32 %p0, %r9, 8;\n@%p0 bra FILL;\n\
         fence.proxy.async.shared::cta;\nbar.sync 0;\n\
         bfe.u32 %r10, %r2, 4, 14;\ncvt.u64.u32 %rd0, %r10;\nor.b64 %rd0, %rd0, 0x4000004000010000;\nadd.s64 %rd1, %rd0, 512;\n\
         mov.f32 %f0, 0f00000000; mov.f32 %f1, %f0; mov.f32 %f2, %f0; mov.f32 %f3, %f0;\n\
         mov.b32 %r4, %r3; mov.b32 %r5, %r3; mov.b32 %r6, %r3; mov.b32 %r7, %r3;\n\
         setp.eq.u32 %p1, %r0, %r0;\n{body}\nret;\n}}\n"
    )
}

const FENCE: &str = "wgmma.fence.sync.aligned;\n";
const COMMIT: &str = "wgmma.commit_group.sync.aligned;\n";
const WAIT: &str = "wgmma.wait_group.sync.aligned 0;\n";
const MMA: &str =
    "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f0, %f1, %f2, %f3}, %rd0, %rd1, %p1, 1, 1, 0, 0;\n";
/// The same with A in registers.
const MMA_A: &str = "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f0, %f1, %f2, %f3}, {%r4, %r5, %r6, %r7}, %rd1, %p1, 1, 1, 0;\n";
/// Another accumulator.
const OTHER: &str =
    "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f4, %f5, %f6, %f7}, %rd0, %rd1, 0, 1, 1, 0, 0;\n";
/// Another shape in the same registers.
const HALF: &str = "wgmma.mma_async.sync.aligned.m64n8k16.f16.f16.f16 {%x0, %x1}, %rd0, %rd1, 0, 1, 1, 0, 0;\n";
const STORE: &str = "st.global.b32 [%rd7], %f0;\n";

fn run_with(body: &str, threads: u32, seed: Option<u64>) -> Report {
    common::run(&load(&kernel(body)), &launch("k", threads, vec![zeroes("out", 1024)]), seed, 200_000)
}

/// What is found, the same on all schedules: code and primary place of each.
#[track_caller]
fn found(body: &str, threads: u32) -> Vec<Diagnostic> {
    let mut first: Option<Vec<Diagnostic>> = None;
    for seed in schedules(5) {
        let report = run_with(body, threads, seed);
        let known = first.get_or_insert(report.findings.clone());
        let codes = |list: &[Diagnostic]| list.iter().map(|d| d.code).collect::<Vec<_>>();
        assert_eq!(codes(known), codes(&report.findings), "seed {seed:?}\n{body}\n{:#?}", report.findings);
    }
    first.unwrap_or_default()
}

#[track_caller]
fn finds(body: &[&str], code: &str, primary: &str) {
    let body = body.concat();
    let list = found(&body, 128);
    let place = list.first().and_then(|d| d.labels.first()).map(|l| l.place.text.clone()).unwrap_or_default();
    assert!(
        list.len() == 1 && list[0].code == code && place.starts_with(primary),
        "expected `{code}` at `{primary}` for\n{body}\nfound {list:#?}"
    );
    assert!(emulator::CODES.iter().any(|(known, _)| *known == code), "`{code}` is not in CODES");
}

/// Nothing is found, and this is noted.
#[track_caller]
fn notes(body: &[&str], code: &str, primary: &str) {
    let body = body.concat();
    for seed in schedules(3) {
        let report = run_with(&body, 128, seed);
        let place =
            report.notes.first().and_then(|d| d.labels.first()).map(|l| l.place.text.clone()).unwrap_or_default();
        let codes: Vec<&str> = report.notes.iter().map(|note| note.code).collect();
        assert!(
            report.is_clean() && codes == [code] && place.starts_with(primary),
            "expected a note `{code}` at `{primary}` for\n{body}\nfound {report:#?}"
        );
    }
}

/// Nothing is found, and D is the sum of so many products of ones, 16 deep.
#[track_caller]
fn clean(body: &[&str], products: u32) {
    let body = body.concat();
    assert!(found(&body, 128).is_empty(), "{body}\n{:#?}", found(&body, 128));
    let report = run_with(&body, 128, Some(3));
    assert!(report.is_clean(), "{report:#?}");
    if products > 0 {
        for thread in 0..128 {
            assert_eq!(
                f32::from_bits(common::word32(&report, thread)),
                16.0 * products as f32,
                "thread {thread}\n{body}"
            );
        }
    }
}

#[test]
fn groups_are_waited_for_before_registers_are_touched() {
    clean(&[FENCE, MMA, COMMIT, WAIT, STORE], 1);
    clean(&[FENCE, MMA, MMA, COMMIT, WAIT, STORE], 2);
    // Two groups on one accumulator need no wait between them; the oldest of two is covered by `1`.
    clean(&[FENCE, MMA, COMMIT, MMA, COMMIT, WAIT, STORE], 2);
    clean(&[FENCE, MMA, COMMIT, OTHER, COMMIT, "wgmma.wait_group.sync.aligned 1;\n", STORE, WAIT], 1);
    // An empty group counts as one.
    clean(&[FENCE, MMA, COMMIT, COMMIT, "wgmma.wait_group.sync.aligned 1;\n", STORE], 1);
    // Nothing to wait for.
    clean(&[WAIT, "wgmma.wait_group.sync.aligned 8;\n", COMMIT, WAIT], 0);
    finds(&[FENCE, MMA, COMMIT, STORE, WAIT], "wgmma-not-awaited", "st.global");
    finds(
        &[FENCE, MMA, COMMIT, MMA, COMMIT, "wgmma.wait_group.sync.aligned 1;\n", STORE, WAIT],
        "wgmma-not-awaited",
        "st.global",
    );
    finds(
        &[FENCE, OTHER, COMMIT, MMA, COMMIT, "wgmma.wait_group.sync.aligned 1;\n", STORE, WAIT],
        "wgmma-not-awaited",
        "st.global",
    );
    finds(&[FENCE, MMA, WAIT, STORE, COMMIT, WAIT], "wgmma-not-awaited", "st.global");
    // A write is as bad as a read; of A's registers, too.
    finds(&[FENCE, MMA, COMMIT, "mov.f32 %f3, 0f3F800000;\n", WAIT], "wgmma-not-awaited", "mov.f32");
    finds(&[FENCE, MMA_A, COMMIT, "mov.b32 %r5, 0;\n", WAIT], "wgmma-not-awaited", "mov.b32");
    clean(&[FENCE, MMA_A, COMMIT, WAIT, "mov.b32 %r5, 0;\n", STORE], 1);
    // Other registers may be used meanwhile.
    clean(&[FENCE, MMA, COMMIT, "add.u32 %r20, %r0, 1;\nmov.f32 %f9, 0f3F800000;\n", WAIT, STORE], 1);
}

/// Whoever reads too early gets what it would have got: the finding is the only trace.
#[test]
fn an_early_read_does_not_hide_what_else_is_wrong() {
    for seed in schedules(5) {
        let report = run_with(&[FENCE, MMA, COMMIT, STORE, WAIT].concat(), 128, seed);
        assert_eq!(f32::from_bits(common::word32(&report, 77)), 16.0, "seed {seed:?}");
    }
}

#[test]
fn registers_are_fenced_before_mmas() {
    let again = "add.f32 %f1, %f1, 0f3F800000;\n";
    finds(&[MMA, COMMIT, WAIT, STORE], "missing-wgmma-fence", "wgmma.mma_async");
    notes(&[FENCE, MMA, COMMIT, WAIT, again, MMA, COMMIT, WAIT, STORE], "missing-wgmma-fence", "wgmma.mma_async");
    clean(&[FENCE, MMA, COMMIT, WAIT, again, FENCE, MMA, COMMIT, WAIT, STORE], 2);
    // Without an access in between none is needed.
    clean(&[FENCE, MMA, COMMIT, WAIT, MMA, COMMIT, WAIT, STORE], 2);
    // Reading counts as well.
    notes(&[FENCE, MMA, COMMIT, WAIT, STORE, MMA, COMMIT, WAIT, STORE], "missing-wgmma-fence", "wgmma.mma_async");
    // A in registers that were written behind the fence.
    finds(&[FENCE, "mov.b32 %r6, %r3;\n", MMA_A, COMMIT, WAIT, STORE], "missing-wgmma-fence", "wgmma.mma_async");
    // Of the accumulator that is a note, which does not hide what A lacks.
    let both = "mov.f32 %f0, %f1;\nmov.b32 %r6, %r3;\n";
    finds(&[FENCE, both, MMA_A, COMMIT, WAIT, STORE], "missing-wgmma-fence", "wgmma.mma_async");
    clean(&["mov.b32 %r6, %r3;\n", FENCE, MMA_A, COMMIT, WAIT, STORE], 1);
    // Two MMAs may read the same A.
    let other_a = MMA_A.replace("%f0, %f1, %f2, %f3", "%f4, %f5, %f6, %f7").replace("%p1,", "0,");
    clean(&[FENCE, MMA_A, &other_a, COMMIT, WAIT, STORE], 1);
    // What one MMA leaves, another takes as its A.
    let from_d = OTHER.replace("%rd0,", "{%x0, %x1, %x2, %x3},").replace("0, 0;", "0;");
    let halves = HALF.replace("m64n8k16", "m64n16k16").replace("%x0, %x1", "%x0, %x1, %x2, %x3");
    finds(&[FENCE, &halves, &from_d, COMMIT, WAIT], "wgmma-not-awaited", "wgmma.mma_async");
    finds(&[FENCE, &halves, COMMIT, WAIT, &from_d, COMMIT, WAIT], "missing-wgmma-fence", "wgmma.mma_async");
    clean(&[FENCE, &halves, COMMIT, WAIT, FENCE, &from_d, COMMIT, WAIT], 0);
    // Another shape on the same accumulator.
    finds(&[FENCE, HALF, &halves, COMMIT, WAIT], "wgmma-not-awaited", "wgmma.mma_async");
}

#[test]
fn threads_wait_before_they_end() {
    finds(&[FENCE, MMA, COMMIT], "wgmma-outlives-thread", "wgmma.mma_async");
    finds(&[FENCE, MMA, WAIT], "wgmma-outlives-thread", "wgmma.mma_async");
    clean(&[FENCE, MMA, COMMIT, WAIT], 0);
}

#[test]
fn shared_memory_is_written_before_and_kept_until_the_wait() {
    let late = "setp.eq.u32 %p2, %r0, 0;\n@!%p2 bra OVER;\nst.shared.b32 [%r2+16], %r3;\nOVER:\n";
    finds(&[FENCE, MMA, COMMIT, late, WAIT], "operand-overwritten", "st.shared");
    // The wait of one warp tells of all four.
    clean(&[FENCE, MMA, COMMIT, WAIT, late], 0);
    let fence = "fence.proxy.async.shared::cta;\n";
    finds(
        &[&late.replace("OVER", "BEFORE"), "bar.sync 0;\n", FENCE, MMA, COMMIT, WAIT],
        "missing-proxy-fence",
        "wgmma.mma_async",
    );
    clean(&[&late.replace("OVER", "BEFORE"), fence, "bar.sync 0;\n", FENCE, MMA, COMMIT, WAIT], 0);
    finds(&[&late.replace("OVER", "BEFORE"), fence, FENCE, MMA, COMMIT, WAIT], "operand-not-ready", "wgmma.mma_async");
}

#[test]
fn a_warpgroup_executes_the_same_mmas() {
    // Two warps with other descriptors, another scale-d, another instruction; lanes that differ.
    let wg = "wgmma-warpgroup";
    finds(
        &["setp.eq.u32 %p2, %r1, 2;\n@%p2 add.s64 %rd1, %rd1, 64;\n", FENCE, MMA, COMMIT, WAIT],
        wg,
        "wgmma.mma_async",
    );
    finds(&["setp.ne.u32 %p1, %r1, 2;\n", FENCE, MMA, COMMIT, WAIT], wg, "wgmma.mma_async");
    finds(&["setp.ne.u32 %p1, %r0, 5;\n", FENCE, MMA, COMMIT, WAIT], wg, "wgmma.mma_async");
    let two_paths =
        format!("setp.eq.u32 %p2, %r1, 3;\n{FENCE}@%p2 bra ELSE;\n{MMA}bra BOTH;\nELSE:\n{MMA}BOTH:\n{COMMIT}{WAIT}");
    finds(&[&two_paths], wg, "wgmma.mma_async");
    // Only half of a warp.
    let half =
        format!("and.b32 %r20, %r0, 16;\nsetp.ne.u32 %p2, %r20, 0;\n{FENCE}@%p2 bra OVER;\n{MMA}OVER:\n{COMMIT}{WAIT}");
    finds(&[&half], "aligned-lanes-missing", "wgmma.mma_async");
    // One warp ends, or never comes.
    let ends = format!("setp.eq.u32 %p2, %r1, 3;\n@%p2 ret;\nbar.sync 0;\n{FENCE}{MMA}{COMMIT}{WAIT}");
    finds(&[&ends], wg, "wgmma.mma_async");
    let skips = format!("setp.eq.u32 %p2, %r1, 3;\n{FENCE}@%p2 bra OVER;\n{MMA}{COMMIT}{WAIT}OVER:\nbar.sync 0;\n");
    let list = found(&skips, 128);
    assert_eq!((list.len(), list[0].code), (1, "hang"), "{list:#?}");
    assert!(list[0].title.contains("waits for a wgmma that warp 3 of its warpgroup never executes"), "{list:#?}");
    // A CTA of three warps, and the second warpgroup of one of seven.
    let whole = [FENCE, MMA, COMMIT, WAIT].concat();
    assert_eq!(found(&whole, 96)[0].code, wg);
    assert_eq!(found(&whole, 224)[0].code, wg);
    assert!(found(&whole, 256).is_empty());
}

#[test]
fn descriptors_that_are_none() {
    let with = |bits: u64| format!("mov.b64 %rd1, {bits:#x};\n");
    for bits in [0x4000_4040_0001_0040, 0x4002_0040_0001_0040, 0x4010_0040_0001_0040] {
        finds(&[&with(bits), FENCE, MMA, COMMIT, WAIT], "matrix-descriptor", "wgmma.mma_async");
    }
    finds(&[&with(0x4000_0040_0001_3fc0), FENCE, MMA, COMMIT, WAIT], "out-of-bounds", "wgmma.mma_async");
    finds(&["mov.b64 %rd1, %rd5;\n", FENCE, MMA, COMMIT, WAIT], "undefined-operand", "");
}

/// D of registers that nothing has written: fine if scale-d is false, otherwise it is said where the sum is stored.
#[test]
fn values_that_were_never_written() {
    let body = |scale: &str| {
        let mma = OTHER.replace("%rd1, 0,", &format!("%rd1, {scale},"));
        format!("{FENCE}{mma}{COMMIT}{WAIT}st.global.b32 [%rd7], %f4;\n")
    };
    clean(&[&body("0")], 1);
    let list = found(&body("1"), 128);
    assert_eq!(list[0].code, "undefined-value-stored", "{list:#?}");
    assert!(list[0].labels[0].text.contains("adds to registers that hold no defined value"), "{list:#?}");
    let a = [FENCE, &MMA_A.replace("%r6", "%r30"), COMMIT, WAIT, STORE].concat();
    let list = found(&a, 128);
    assert!(list[0].code == "undefined-value-stored" && list[0].labels[0].text.contains("registers of A"), "{list:#?}");
}

fn refusal(body: &str, version: &str, target: &str) -> Diagnostic {
    let text = kernel(body).replace(".version 8.0", &format!(".version {version}")).replace("sm_90a", target);
    emulator::load(&text).expect_err(body).remove(0)
}

/// What ptxas 13.5 says of targets, versions and operands.
#[test]
fn what_ptxas_refuses_is_refused() {
    for target in ["sm_90", "sm_100a", "sm_100f", "sm_103a", "sm_120a"] {
        let error = refusal(FENCE, "9.0", target);
        assert_eq!(error.code, "ptx-target", "{target}: {error:#?}");
        assert!(error.title.contains("`sm_90a` and no other target"), "{error:#?}");
    }
    assert_eq!(refusal("setmaxnreg.inc.sync.aligned.u32 100;", "8.0", "sm_90a").code, "ptx-semantics");
    assert_eq!(refusal("setmaxnreg.dec.sync.aligned.u32 16;", "8.0", "sm_90a").code, "ptx-semantics");
    let d = "{%f0, %f1, %f2, %f3}";
    for (from, to) in [
        ("%p1,", "2,"),
        ("%p1,", "%r0,"),
        ("1, 1, 0, 0", "0, 1, 0, 0"),
        ("1, 1, 0, 0", "1, 2, 0, 0"),
        ("1, 1, 0, 0", "%r0, 1, 0, 0"),
        ("1, 1, 0, 0", "1, 1, 2, 0"),
        ("1, 1, 0, 0", "1, 1, 0"),
        ("1, 1, 0, 0", "1, 1"),
        (d, "{%f0, %f1, %f2}"),
        (d, "{%f0, %f1, %f2, _}"),
        (d, "%f0"),
        (d, "{%rd2, %rd3, %rd4, %rd5}"),
        ("%rd0,", "%r0,"),
        ("%rd0,", "{%r4, %r5, %r6, %r7},"),
    ] {
        assert!(MMA.contains(from), "{from}");
        let error = refusal(&MMA.replace(from, to), "8.0", "sm_90a");
        assert_eq!(error.code, "ptx-semantics", "{to}: {error:#?}");
    }
    for (from, to) in [("%r7}", "%f7}"), (", %r7}", "}"), ("{%r4, %r5, %r6, %r7}", "{0, 0, 0, 0, 0}")] {
        let error = refusal(&MMA_A.replace(from, to), "8.0", "sm_90a");
        assert_eq!(error.code, "ptx-semantics", "{to}: {error:#?}");
    }
    for operand in ["-1", "%r0", ""] {
        let error = refusal(&format!("wgmma.wait_group.sync.aligned {operand};"), "8.0", "sm_90a");
        assert_eq!(error.code, "ptx-semantics", "{operand}: {error:#?}");
    }
    // The types that are not 16 bits wide: no direction, and integers no signs.
    let (a, bytes) = ("{%r4, %r5, %r6, %r7}", "wgmma.mma_async.sync.aligned.m64n8k32");
    for statement in [
        format!("{bytes}.f32.e4m3.e4m3 {d}, %rd0, %rd1, %p1, 1, 1, 0, 0;"),
        format!("{bytes}.f32.e4m3.e4m3 {d}, %rd0, %rd1, %p1;"),
        format!("{bytes}.f32.e4m3.e5m2 {d}, {{%f4, %f5, %f6, %f7}}, %rd1, %p1, 1, 1;"),
        format!("{bytes}.f16.e4m3.e5m2 {d}, %rd0, %rd1, %p1, 1, 1;"),
        format!("{bytes}.f16.e4m3.e5m2 {{%f0, %f1}}, %rd0, %rd1, %p1, 1, 1;"),
        format!("{bytes}.s32.s8.s8 {a}, %rd0, %rd1, %p1, 1, 1;"),
        format!("{bytes}.s32.s8.s8 {d}, %rd0, %rd1, %p1;"),
        format!("wgmma.mma_async.sync.aligned.m64n8k8.f32.tf32.tf32 {d}, %rd0, %rd1, %p1, 1, 0;"),
        format!("wgmma.mma_async.sync.aligned.m64n8k8.f32.tf32.tf32 {d}, {d}, %rd1, %p1, 1, 1;"),
    ] {
        let error = refusal(&statement, "8.0", "sm_90a");
        assert_eq!(error.code, "ptx-semantics", "{statement}: {error:#?}");
    }
    for (types, taken) in [("s8.s8", true), ("u8.u8", true), ("s8.u8", false), ("u8.s8", false)] {
        let statement = format!("{bytes}.s32.{types} {a}, %rd0, %rd1, %p1;");
        assert_eq!(emulator::load(&kernel(&statement)).is_ok(), taken, "{types} with version 8.0");
        assert!(emulator::load(&kernel(&statement).replace("n 8.0", "n 8.4")).is_ok(), "{types} with version 8.4");
    }
    // The rest of the family comes later.
    for opcode in [
        "wgmma.mma_async.sync.aligned.m64n8k16.f32.tf32.tf32",
        "wgmma.mma_async.sync.aligned.m64n8k8.f16.tf32.tf32",
        "wgmma.mma_async.sync.aligned.m64n8k16.f32.e4m3.e5m2",
        "wgmma.mma_async.sync.aligned.m64n8k32.f32.e4m3.f16",
        "wgmma.mma_async.sync.aligned.m64n40k32.s32.s8.s8",
        "wgmma.mma_async.sync.aligned.m64n8k32.f32.s8.s8",
        "wgmma.mma_async.sync.aligned.m64n8k32.satfinite.satfinite.s32.s8.s8",
        "wgmma.mma_async.sync.aligned.m64n8k32.satfinite.f32.e4m3.e4m3",
        "wgmma.mma_async.sync.aligned.m64n08k32.s32.s8.s8",
        "wgmma.mma_async.sync.aligned.m64n8k256.s32.b1.b1.and.popc",
        "wgmma.mma_async.sp.sync.aligned.m64n8k32.f32.f16.f16",
        "wgmma.mma_async.sync.aligned.m64n12k16.f32.f16.f16",
        "wgmma.mma_async.sync.aligned.m64n264k16.f32.f16.f16",
        "wgmma.mma_async.sync.aligned.m64n8k16.f16.bf16.bf16",
    ] {
        let error = refusal(&format!("{opcode} {d}, %rd0, %rd1, %p1, 1, 1, 0, 0;"), "8.0", "sm_90a");
        assert!(error.code == "not-modelled" && error.title.contains(opcode), "{error:#?}");
        assert!(error.help.contains("wgmma.mma_async.sync.aligned.m64n"), "{error:#?}");
    }
}

/// Bit for bit after the model of MMA-Sim: a term far below the largest is cut off, and sums are cut, not rounded.
#[test]
fn exact_sums_are_cut_off() {
    let of = |d: f32| {
        let mma = MMA.replace("1, 1, 0, 0", "1, -1, 0, 0");
        let body = format!("mov.b32 %f0, 0f{:08X};\n{FENCE}{mma}{COMMIT}{WAIT}{STORE}", d.to_bits());
        let options = Options { numerics: emulator::Numerics::Exact, ..Default::default() };
        let report = emulator::run(&load(&kernel(&body)), &launch("k", 128, vec![zeroes("out", 1024)]), &options);
        f32::from_bits(common::word32(&report, 0))
    };
    // D less sixteen ones. 25 bits below 2^25 the ones are still there, below 2^26 they are not.
    assert_eq!(of(33_554_432.0), 33_554_416.0);
    assert_eq!(of(67_108_864.0), 67_108_864.0);
}

/// FP8 keeps 13 bits of each term below the largest exponent, and 13 of an FP32 result's fraction (silicon/wgmma_fp8).
#[test]
fn exact_sums_of_fp8_keep_fewer_bits() {
    // Ones in FP16 are pairs of 0x00 and 0x3c, which is 1 in E5M2: sixteen products of 1.
    let mma = MMA.replace("k16.f32.f16.f16", "k32.f32.e5m2.e5m2").replace("1, 1, 0, 0", "1, -1");
    let of = |d: f32, numerics| {
        let body = format!("mov.b32 %f0, 0f{:08X};\n{FENCE}{mma}{COMMIT}{WAIT}{STORE}", d.to_bits());
        let options = Options { numerics, ..Default::default() };
        let report = emulator::run(&load(&kernel(&body)), &launch("k", 128, vec![zeroes("out", 1024)]), &options);
        assert!(report.is_clean(), "{report:#?}");
        f32::from_bits(common::word32(&report, 0))
    };
    let (exact, fast) = (emulator::Numerics::Exact, emulator::Numerics::Fast);
    // The unit is 2^(13 - 13): the ones are there. With 2^14 they are cut off, each by itself.
    assert_eq!((of(8192.0, exact), of(8192.0, fast)), (8176.0, 8176.0));
    assert_eq!((of(16384.0, exact), of(16384.0, fast)), (16384.0, 16368.0));
    // 32 and 1023 · 2^-18 more: nothing of it is left in units of 2^(5 - 13); with 1024 · 2^-18, one.
    assert_eq!(of(f32::from_bits(0x4200_03ff), exact), 16.0);
    assert_eq!(of(f32::from_bits(0x4200_0400), exact), 16.0 + 2f32.powi(-8));
}

/// What else kernels for Hopper use, on the target that has it; and what only Blackwell has.
#[test]
fn the_rest_of_a_hopper_kernel_loads() {
    let multicast = "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster [%r2], [%rd0, {%r3, %r3}], [%r2], %h0;";
    for statement in [
        multicast,
        &multicast.replace("2d", "3d").replace("{%r3,", "{%r3, %r3,"),
        &multicast.replace(".multicast::cluster", "").replace(", %h0", ""),
        "cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%rd0, {%r3, %r3}], [%r2];",
        "cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.tile.bulk_group [%rd0, {%r3, %r3}], [%r2];",
        "cp.async.bulk.commit_group; cp.async.bulk.wait_group.read 0; cp.async.bulk.wait_group 1;",
        "setmaxnreg.inc.sync.aligned.u32 240; setmaxnreg.dec.sync.aligned.u32 24;",
        "mapa.shared::cluster.u32 %r3, %r2, 1; mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r3];",
        "mbarrier.arrive.shared::cluster.b64 _, [%r3], 2; mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r2], 64;",
        "mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p2, [%r2], 0;",
        "fence.proxy.async; fence.proxy.async.shared::cta; fence.proxy.async.global; fence.mbarrier_init.release.cluster;",
        "stmatrix.sync.aligned.m8n8.x4.shared.b16 [%r2], {%r4, %r5, %r6, %r7};",
        "stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%r2], {%r4, %r5, %r6, %r7};",
        "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%r4, %r5, %r6, %r7}, [%r2];",
        "barrier.cluster.arrive.relaxed.aligned; barrier.cluster.wait.acquire.aligned;",
        "griddepcontrol.wait; griddepcontrol.launch_dependents; elect.sync _|%p2, -1;",
        "createpolicy.fractional.L2::evict_last.b64 %rd2; prefetch.tensormap [%rd0];",
    ] {
        load(&kernel(&format!(".reg .b16 %h<2>;\n{statement}")).replace(".version 8.0", ".version 8.6"));
    }
    let pair = multicast.replace(".multicast", ".cta_group::1.multicast");
    let statement = pair.replace(".cta_group::1.multicast::cluster", ".multicast::cluster.cta_group::1");
    assert_eq!(refusal(&format!(".reg .b16 %h<2>;\n{statement}"), "8.6", "sm_90a").code, "ptx-target");
    assert_eq!(
        refusal(
            "clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.b128 [%r2], [%r2];",
            "8.6",
            "sm_90a"
        )
        .code,
        "ptx-target"
    );
}
