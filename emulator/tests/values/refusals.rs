//! What is refused: with the code that fits, at its line, and with the form that is nearest.

use crate::row::kernel;
use expect_test::expect;

#[test]
fn a_wrong_space_or_order_is_refused() {
    for (body, code) in [
        ("ld.global.b32 %r0, [frame];", "ptx-semantics"),
        ("ld.shared.b32 %r0, [table];", "ptx-semantics"),
        ("ld.acquire.b32 %r0, [%d8];", "ptx-semantics"),
        ("ld.release.gpu.b32 %r0, [%d8];", "not-modelled"),
        ("atom.global.add.b32 %r0, [%d8], 1;", "not-modelled"),
        ("mov.u32 %r0, table;", "ptx-semantics"),
        ("max.abs.f32 %f0, %f1, %f2;", "ptx-semantics"),
        ("add.f32 %f0, %f1, %f2, %f3;", "ptx-semantics"),
    ] {
        let errors = emulator::load(&kernel(body)).expect_err(body);
        assert_eq!(errors[0].code, code, "{body}: {errors:#?}");
    }
}

/// The message names the line, and an opcode that is modelled and says most of the same.
#[test]
fn a_refusal_names_the_nearest_form() {
    let mut said = String::new();
    for statement in [
        "atom.global.add.s16 %h0, [%d8], %h1;",
        "red.global.add.v2.f32 [%d8], {%f0, %f1};",
        "ld.mmio.sys.global.b32 %r0, [%d8];",
        "tcgen05.mma.cta_group::1.kind::tf32 [%r1], %d0, %d1, %r2, %p0;",
        "tcgen05.st.sync.aligned.16x96b.x2.b32 [%r1], {%r2, %r3};",
        "tcgen05.cp.cta_group::1.128x256b [%r1], %d0;",
        "mbarrier.arrive_drop.shared.b64 _, [bar];",
        "mbarrier.arrive.noComplete.shared.b64 %d0, [bar], 1;",
        "cp.async.bulk.tensor.2d.shared::cta.global.im2col.mbarrier::complete_tx::bytes [smem], [%d6, {0, 0}], [bar];",
        "cp.async.mbarrier.arrive.shared.b64 [bar];",
        "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%d8], [smem], 16;",
        "cvt.rna.tf32.f32 %r0, %f0;",
        "cvt.rn.satfinite.e4m3x2.f32 %h0, %f0, %f1;",
        "fma.rm.f64 %e0, %e1, %e2, %e3;",
        "shfl.up.b32 %r0, %r1, 1, 0;",
        "fence.acquire.gpu;",
        "ldmatrix.sync.aligned.m16n16.x1.trans.shared.b8 {%r0, %r1}, [%r2];",
        "barrier.red.popc.u32 %r0, 1, %p0;",
        "sqrt.approx.f64 %e0, %e1;",
    ] {
        let text = kernel(statement);
        let errors = emulator::load(&text).expect_err(statement);
        let d = &errors[0];
        let line = text.lines().position(|l| l == statement).map_or(0, |n| n + 1);
        assert!(d.code == "not-modelled" && d.labels[0].place.line as usize == line, "`{statement}`: {d:#?}");
        let opcode = statement.split(' ').next().unwrap_or("");
        said += &format!("{opcode}\n    {}\n", d.help);
    }
    expect![[r#"
        atom.global.add.s16
            The nearest form that is modelled: `atom.global.add.s32`. `emulate --list-instructions` lists all.
        red.global.add.v2.f32
            The nearest form that is modelled: `red.global.add.f32`. `emulate --list-instructions` lists all.
        ld.mmio.sys.global.b32
            The nearest form that is modelled: `ld.global.b32`. `emulate --list-instructions` lists all.
        tcgen05.mma.cta_group::1.kind::tf32
            The nearest form that is modelled: `tcgen05.mma.cta_group::1.kind::f16`. `emulate --list-instructions` lists all.
        tcgen05.st.sync.aligned.16x96b.x2.b32
            The nearest form that is modelled: `tcgen05.st.sync.aligned.16x64b.x2.b32`. `emulate --list-instructions` lists all.
        tcgen05.cp.cta_group::1.128x256b
            The nearest form that is modelled: `tcgen05.mma.cta_group::1.kind::f16`. `emulate --list-instructions` lists all.
        mbarrier.arrive_drop.shared.b64
            The nearest form that is modelled: `mbarrier.arrive.shared.b64`. `emulate --list-instructions` lists all.
        mbarrier.arrive.noComplete.shared.b64
            The nearest form that is modelled: `mbarrier.arrive.shared.b64`. `emulate --list-instructions` lists all.
        cp.async.bulk.tensor.2d.shared::cta.global.im2col.mbarrier::complete_tx::bytes
            The nearest form that is modelled: `cp.async.bulk.tensor.2d.shared::cta.global.mbarrier::complete_tx::bytes`. `emulate --list-instructions` lists all.
        cp.async.mbarrier.arrive.shared.b64
            The nearest form that is modelled: `cp.async.ca.shared.global`. `emulate --list-instructions` lists all.
        cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32
            The nearest form that is modelled: `cp.reduce.async.bulk.tensor.1d.global.shared::cta.add.bulk_group`. `emulate --list-instructions` lists all.
        cvt.rna.tf32.f32
            The nearest form that is modelled: `cvt.rni.f32.f32`. `emulate --list-instructions` lists all.
        cvt.rn.satfinite.e4m3x2.f32
            The nearest form that is modelled: `cvt.rn.satfinite.f16.f32`. `emulate --list-instructions` lists all.
        fma.rm.f64
            The nearest form that is modelled: `fma.rm.f32`. `emulate --list-instructions` lists all.
        shfl.up.b32
            The nearest form that is modelled: `shfl.sync.up.b32`. `emulate --list-instructions` lists all.
        fence.acquire.gpu;
            The nearest form that is modelled: `fence.acq_rel.gpu`. `emulate --list-instructions` lists all.
        ldmatrix.sync.aligned.m16n16.x1.trans.shared.b8
            The nearest form that is modelled: `ldmatrix.sync.aligned.m8n8.x1.trans.shared.b16`. `emulate --list-instructions` lists all.
        barrier.red.popc.u32
            The nearest form that is modelled: `barrier.sync`. `emulate --list-instructions` lists all.
        sqrt.approx.f64
            The nearest form that is modelled: `sqrt.approx.f32`. `emulate --list-instructions` lists all.
    "#]].assert_eq(&said);
    // An opcode of which there is no form at all.
    let errors = emulator::load(&kernel("wgmma.fence.sync.aligned;")).expect_err("wgmma");
    assert!(errors[0].help.contains("No form of this opcode"), "{errors:#?}");
}
