//! Clusters: barriers, addresses of other CTAs, launch control; and what concerns the whole launch.

use crate::row::{Row, bare, check, each, one};

pub fn rows() -> Vec<Row> {
    let mut rows = barriers();
    rows.extend(addresses());
    rows.extend(launch_control());
    rows.extend([
        // Registers move between warps, and grids overlap: no value comes of it.
        each(128, "setmaxnreg.dec.sync.aligned.u32 64; setmaxnreg.inc.sync.aligned.u32 128; mov.u32 %r0, %r98;", |n| n),
        one("griddepcontrol.wait; griddepcontrol.launch_dependents; mov.u32 %r0, 4;", 4),
    ]);
    rows
}

/// Each CTA of two stores, both meet, each loads what the other has stored.
fn barriers() -> Vec<Row> {
    let mut rows = Vec::new();
    for (arrive, wait) in [
        ("barrier.cluster.arrive;", "barrier.cluster.wait;"),
        ("barrier.cluster.arrive.aligned;", "barrier.cluster.wait.aligned;"),
        ("barrier.cluster.arrive.release;", "barrier.cluster.wait.acquire;"),
        ("barrier.cluster.arrive.release.aligned;", "barrier.cluster.wait.acquire.aligned;"),
        ("fence.acq_rel.cluster;\nbarrier.cluster.arrive.relaxed;", "barrier.cluster.wait;"),
        ("fence.acq_rel.cluster;\nbarrier.cluster.arrive.relaxed.aligned;", "barrier.cluster.wait.aligned;"),
    ] {
        let body = format!(
            "mov.u32 %r1, smem;\nadd.u32 %r2, %r97, 40;\nst.shared.b32 [smem], %r2;\n{arrive}\n{wait}\nxor.b32 %r3, %r97, 1;\n\
             mapa.shared::cluster.u32 %r4, %r1, %r3;\nld.shared::cluster.b32 %r0, [%r4];"
        );
        let mut row = each(1, &body, |_| 41)
            .ctas(2, 2)
            .gives(1, &[40])
            .around("", "barrier.cluster.arrive; barrier.cluster.wait;");
        row = row.without(&format!("{arrive}\n{wait}\n"), "race-shared");
        if arrive.starts_with("fence") {
            row = row.without("fence.acq_rel.cluster;\n", "race-shared");
        }
        rows.push(row);
    }
    rows.push(
        // An mbarrier that another CTA uses: its initialisation is fenced, and the barrier may be relaxed.
        bare(1, "mbarrier.init.shared::cta.b64 [bar], 1;\nfence.mbarrier_init.release.cluster;\nbarrier.cluster.arrive.relaxed;\nbarrier.cluster.wait;\nmov.u32 %r1, bar;\nxor.b32 %r3, %r97, 1;\nmapa.shared::cluster.u32 %r2, %r1, %r3;\nmbarrier.arrive.shared::cluster.b64 _, [%r2];\nW:\nmbarrier.try_wait.parity.shared::cta.b64 %p1, [bar], 0;\n@!%p1 bra W;\nst.global.b32 [%d9], 6;")
            .ctas(2, 2)
            .gives(0, &[6, 6])
            .around("", "barrier.cluster.arrive; barrier.cluster.wait;")
            .without("fence.mbarrier_init.release.cluster;\n", "mbarrier-init-unordered"),
    );
    rows
}

/// The rank of a CTA stands in bits 24 to 31 of a shared address.
fn addresses() -> Vec<Row> {
    let rank = |body: &str| each(1, body, |n| n).ctas(4, 4).gives(1, &[1, 2, 3]);
    vec![
        each(1, "mov.u32 %r1, smem; mapa.shared::cluster.u32 %r2, %r1, 3; xor.b32 %r0, %r2, %r1;", |_| 3 << 24).ctas(4, 4).gives(1, &[2 << 24, 1 << 24, 0]),
        each(1, "mov.u64 %d1, smem; mapa.shared::cluster.u64 %d2, %d1, 3; shr.u64 %d2, %d2, 24; cvt.u32.u64 %r0, %d2;", |_| 3).ctas(4, 4),
        rank("mov.u32 %r1, smem; getctarank.shared::cluster.u32 %r0, %r1;"),
        rank("mov.u64 %d1, smem; getctarank.shared::cluster.u64 %r0, %d1;"),
        rank("mov.u64 %d1, smem; cvta.shared.u64 %d1, %d1; getctarank.u64 %r0, %d1;"),
        spaces("global", "%d8", 1),
        spaces("global", "%d11", 0),
        spaces("const", "%d8", 0),
        spaces("local", "%d8", 0),
        spaces("local", "%d11", 0),
        spaces("shared", "%d11", 1),
        spaces("shared", "%d12", 0),
        spaces("shared::cta", "%d11", 1),
        spaces("shared::cta", "%d12", 0),
        spaces("shared::cta", "%d8", 0),
        spaces("shared::cluster", "%d12", 1),
        spaces("shared::cluster", "%d8", 0),
        spaces("param", "%d8", 0),
        spaces("param::entry", "%d11", 0),
        // Of a generic address: what rank 1 stored there is what is loaded.
        each(1, "st.shared.b32 [smem], %r97; barrier.cluster.arrive; barrier.cluster.wait; mov.u64 %d1, smem; cvta.shared.u64 %d1, %d1; mapa.u64 %d2, %d1, 1; ld.b32 %r0, [%d2];", |_| 1)
            .ctas(4, 4)
            .gives(1, &[1, 1, 1])
            .around("", "barrier.cluster.arrive; barrier.cluster.wait;"),
        // The even CTA of a pair is the address without bit 24.
        each(1, "st.shared.b32 [smem], %r97; barrier.cluster.arrive; barrier.cluster.wait; mov.u32 %r1, smem; and.b32 %r1, %r1, 0xfeffffff; ld.shared::cluster.b32 %r0, [%r1];", |_| 0)
            .ctas(4, 4)
            .gives(1, &[0, 2, 2])
            .around("", "barrier.cluster.arrive; barrier.cluster.wait;"),
    ]
}

/// Whether an address lies in a space: `%d8` is one of `out`, `%d11` of the own shared memory, `%d12` of the other CTA's.
fn spaces(space: &str, address: &str, lies: u64) -> Row {
    let begin = "mov.u64 %d11, smem; cvta.shared.u64 %d11, %d11; xor.b32 %r3, %r97, 1; mapa.u64 %d12, %d11, %r3;";
    let body = format!("isspacep.{space} %p1, {address};\nselp.b32 %r0, 1, 0, %p1;");
    each(1, &body, move |_| lies).ctas(2, 2).gives(1, &[lies]).around(begin, "")
}

/// One cluster runs, the others wait: the first takes over the place of each, and then there is none.
fn launch_control() -> Vec<Row> {
    let ask = |form: &str| {
        format!(
            "{form} [response], [bar];\nmbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 16;\n\
             W:\nmbarrier.try_wait.parity.shared::cta.b64 %p1, [bar], %r5;\n@!%p1 bra W;\nxor.b32 %r5, %r5, 1;\n\
             ld.shared.b128 %q0, [response];\nclusterlaunchcontrol.query_cancel.is_canceled.pred.b128 %p2, %q0;\n"
        )
    };
    let mut rows = Vec::new();
    for form in [
        "clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.b128",
        "clusterlaunchcontrol.try_cancel.async.mbarrier::complete_tx::bytes.b128",
        "clusterlaunchcontrol.try_cancel.async.mbarrier::complete_tx::bytes.multicast::cluster::all.b128",
    ] {
        for read in [
            "clusterlaunchcontrol.query_cancel.get_first_ctaid::x.b32.b128 %r6, %q0;",
            "clusterlaunchcontrol.query_cancel.get_first_ctaid.v4.b32.b128 {%r6, %r7, %r8, _}, %q0;",
        ] {
            // Word n of `out` becomes 1 + the number of the CTA that did the work of CTA n: 0 does all.
            let body = format!(
                "mov.u32 %r5, 0;\nmov.u32 %r6, %r96;\nNEXT:\nmul.wide.u32 %d1, %r6, 8;\nadd.s64 %d1, %d1, %d8;\nadd.u32 %r7, %r96, 1;\n\
                 st.global.b32 [%d1], %r7;\n{}@!%p2 bra END;\n{read}\nbra NEXT;\nEND:",
                ask(form)
            );
            rows.push(
                bare(1, &body)
                    .ctas(4, 1)
                    .resident(1)
                    .gives(0, &[1, 1, 1, 1])
                    .around("mbarrier.init.shared::cta.b64 [bar], 1;", "fence.proxy.async.shared::cta;"),
            );
        }
    }
    // Along y and z, the grid of these rows has one CTA.
    for axis in ["y", "z"] {
        let body = format!(
            "setp.ne.u32 %p3, %r96, 0;\n@%p3 bra END;\nmov.u32 %r5, 0;\n{}mov.u32 %r0, 9;\n@%p2 clusterlaunchcontrol.query_cancel.get_first_ctaid::{axis}.b32.b128 %r0, %q0;\n\
             st.global.b32 [%d8], %r0;\nEND:",
            ask("clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.b128")
        );
        rows.push(
            bare(1, &body).ctas(2, 1).resident(1).gives(0, &[0]).around("mbarrier.init.shared::cta.b64 [bar], 1;", ""),
        );
    }
    // All CTAs of a cluster get the response: its second CTA reads it, too.
    let body = "setp.eq.u32 %p3, %r97, 0;\n\
                mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 16;\nbarrier.cluster.arrive; barrier.cluster.wait;\n\
                @%p3 clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.multicast::cluster::all.b128 [response], [bar];\n\
                W:\nmbarrier.try_wait.parity.shared::cta.b64 %p1, [bar], 0;\n@!%p1 bra W;\nld.shared.b128 %q0, [response];\n\
                clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 %p2, %q0;\nselp.b32 %r0, 1, 0, %p2;\n\
                @%p2 clusterlaunchcontrol.query_cancel.get_first_ctaid::x.b32.b128 %r0, %q0;\nst.global.b32 [%d9], %r0;";
    rows.push(
        bare(1, body)
            .ctas(4, 2)
            .resident(1)
            // The first CTA of the cluster whose place was taken.
            .gives(0, &[2, 2, 0, 0])
            .around(
                "mbarrier.init.shared::cta.b64 [bar], 1;\nfence.mbarrier_init.release.cluster;",
                "barrier.cluster.arrive; barrier.cluster.wait;",
            ),
    );
    rows
}

#[test]
fn values() {
    check(&rows());
}
