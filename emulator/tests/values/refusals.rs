//! What is refused: with the code that fits, at its line, and with the form that is nearest.

use crate::row::kernel;

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

/// The message names the line and the form that says most of the same.
#[test]
fn a_refusal_names_the_nearest_form() {
    for (statement, nearest) in [
        ("atom.global.add.s16 %h0, [%d8], %h1;", "atom{"),
        ("red.global.add.v2.f32 [%d8], {%f0, %f1};", "red{"),
        ("ld.mmio.sys.global.b32 %r0, [%d8];", "ld{.weak"),
        ("tcgen05.mma.cta_group::1.kind::tf32 [%r1], %d0, %d1, %r2, %p0;", "tcgen05.mma.cta_group"),
        ("tcgen05.st.sync.aligned.16x96b.x2.b32 [%r1], {%r2, %r3};", "tcgen05.st.sync"),
        ("tcgen05.cp.cta_group::1.128x256b [%r1], %d0;", "tcgen05."),
        ("mbarrier.arrive_drop.shared.b64 _, [bar];", "mbarrier."),
        ("mbarrier.arrive.noComplete.shared.b64 %d0, [bar], 1;", "mbarrier.arrive"),
        (
            "cp.async.bulk.tensor.2d.shared::cta.global.im2col.mbarrier::complete_tx::bytes [smem], [%d6, {0, 0}], [bar];",
            "cp.async.bulk.tensor.",
        ),
        ("cp.async.mbarrier.arrive.shared.b64 [bar];", "cp.async."),
        (
            "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%d8], [smem], 16;",
            "cp.reduce.async.bulk.tensor.",
        ),
        ("cvt.rna.tf32.f32 %r0, %f0;", "cvt."),
        ("cvt.rn.satfinite.e4m3x2.f32 %h0, %f0, %f1;", "cvt.{rn|rz}{.relu}?{.satfinite}?"),
        ("fma.rm.f64 %e0, %e1, %e2, %e3;", "{fma|mad}"),
        ("shfl.up.b32 %r0, %r1, 1, 0;", "shfl.sync."),
        ("fence.acquire.gpu;", "fence."),
        ("ldmatrix.sync.aligned.m16n16.x1.trans.shared.b8 {%r0, %r1}, [%r2];", "{ldmatrix|stmatrix}"),
        ("barrier.red.popc.u32 %r0, 1, %p0;", "barrier"),
        ("sqrt.approx.f64 %e0, %e1;", "{rcp|sqrt}.{rn|rz|rm|rp}.f64"),
    ] {
        let text = kernel(statement);
        let errors = emulator::load(&text).expect_err(statement);
        let d = &errors[0];
        let line = text.lines().position(|l| l == statement).map_or(0, |n| n + 1);
        let form = d.help.split('`').nth(1).unwrap_or("");
        assert!(
            d.code == "not-modelled" && d.labels[0].place.line as usize == line && form.starts_with(nearest),
            "`{statement}` (line {line}) should name `{nearest}…`: {d:#?}"
        );
    }
    // An opcode of which there is no form at all.
    let errors = emulator::load(&kernel("wgmma.fence.sync.aligned;")).expect_err("wgmma");
    assert!(errors[0].help.contains("No form of this opcode"), "{errors:#?}");
}
