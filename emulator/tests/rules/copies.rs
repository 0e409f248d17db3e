//! Proxies, bulk copies and `cp.async`.

use super::case::{CLUSTER, Case, GRID, PAIR, none, order};

const SHARED: &[&str] = &["race-shared"];
const GLOBAL: &[&str] = &["race-global"];

/// `bar_a` is ready to be used.
const INIT: &str =
    "@%first mbarrier.init.shared::cta.b64 [bar_a], 1;\n@%first fence.mbarrier_init.release.cluster;\nbar.sync 0;";
const ARRIVE: &str = "@%first mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar_a], 16;";
const LOAD: &str = "@%first cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [tile], [%out], 16, [bar_a];";
const CANCEL: &str =
    "@%first clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.b128 [tile], [bar_a];";
/// Warp 0 waits for `bar_a`.
const WAIT: &str = "WAIT:\nmbarrier.try_wait.parity.shared::cta.b64 %p1, [bar_a], 0;\n@!%p1 bra WAIT;";
/// The copy of the tile to `out`, and its group.
const STORE: &str = "@%first cp.async.bulk.global.shared::cta.bulk_group [%out], [tile], 128;";
const COMMIT: &str = "@%first cp.async.bulk.commit_group;";
const DONE: &str = "@%first cp.async.bulk.wait_group 0;";

/// Each lane of warp 0 stores a word of the tile; behind this, thread 0 has the tile copied to `out`.
fn stored(fence: &str) -> String {
    format!(
        "shl.b32 %r0, %t, 2;\nmov.u32 %r1, tile;\nadd.u32 %r0, %r0, %r1;\n@%warp0 st.shared.u32 [%r0], %t;\n{fence}\n\
         {STORE}\n{COMMIT}\n{DONE}"
    )
}

/// A word of global memory is stored by warp 1; behind this and a barrier, thread 0 loads it into the tile.
fn loaded(fence: &str) -> String {
    format!(
        "{INIT}\n@%warp1 st.global.u32 [%out], 7;\n{fence}\nbar.sync 0;\n@!%warp0 bra END;\n{ARRIVE}\n{LOAD}\n{WAIT}\nEND:"
    )
}

/// The tile, seen by the asynchronous proxy, is copied to `out`; with what follows.
fn copied(what: &str) -> String {
    let begin = "@%first st.shared.v4.u32 [tile], {1, 2, 3, 4};\nfence.proxy.async.shared::cta;\nbar.sync 0;";
    format!("{begin}\n{}\n{what}\n{DONE}", STORE.replace("128", "16"))
}

const OVERWRITE: &str = "bar.sync 0;\n@%warp1 st.shared.u32 [tile], 7;\nbar.sync 0;";

pub fn proxies() -> Vec<Case> {
    vec![
        order(
            "proxy-fence",
            PAIR,
            &["missing-proxy-fence"],
            stored("fence.proxy.async.shared::cta; // rule\nbar.sync 0;"),
        ),
        order(
            "proxy-fence",
            PAIR,
            &["missing-proxy-fence"],
            stored("bar.sync 0;\n@%first fence.proxy.async.shared::cta; // rule"),
        ),
        order(
            "proxy-fence",
            PAIR,
            &["missing-proxy-fence"],
            stored("fence.proxy.async::generic.release.sync_restrict::shared::cta.cluster; // rule\nbar.sync 0;"),
        ),
        none(
            "proxy-fence-acquire-alone",
            PAIR,
            &["missing-proxy-fence"],
            stored(
                "// rule: fence.proxy.async::generic.release.sync_restrict::shared::cta.cluster;\nbar.sync 0;\n\
                 fence.proxy.async::generic.acquire.sync_restrict::shared::cluster.cluster;",
            ),
        ),
        none(
            "proxy-fence-of-one-lane",
            PAIR,
            &["missing-proxy-fence"],
            stored(
                "@%first fence.proxy.async.shared::cta; // rule: fence.proxy.async.shared::cta;\nbar.warp.sync 0xffffffff;",
            ),
        ),
        none(
            "proxy-fence-of-one-lane",
            PAIR,
            &["missing-proxy-fence"],
            stored("// rule: bar.warp.sync 0xffffffff;\n@%first fence.proxy.async.shared::cta;"),
        ),
        none(
            "proxy-fence-of-other-memory",
            PAIR,
            &["missing-proxy-fence"],
            stored("fence.proxy.async.global; // rule: fence.proxy.async.shared::cta;\nbar.sync 0;"),
        ),
        // Of global memory.
        order("proxy-fence", PAIR, &["missing-proxy-fence"], loaded("fence.proxy.async.global; // rule")),
        none(
            "proxy-fence-of-other-memory",
            PAIR,
            &["missing-proxy-fence"],
            loaded("fence.proxy.async.shared::cta; // rule: fence.proxy.async.global;"),
        ),
        order(
            "proxy-fence-before-overwrite",
            PAIR,
            &["missing-proxy-fence-before-overwrite"],
            format!(
                "@%first st.shared.u32 [tile], 7;\n{INIT}\n@%warp1 ld.shared.u32 %r2, [tile];\n\
                 fence.proxy.async.shared::cta; // rule\nbar.sync 0;\n@!%warp0 bra END;\n{ARRIVE}\n{LOAD}\n{WAIT}\nEND:"
            ),
        ),
        order(
            "proxy-fence-and-relaxed",
            PAIR,
            SHARED,
            format!(
                "@%first st.shared.u32 [tile], 7;\nfence.proxy.async.shared::cta;\n{INIT}\n@%warp1 ld.shared.u32 %r2, [tile];\n\
                 fence.proxy.async.shared::cta; // rule\nbarrier.cluster.arrive.relaxed.aligned;\nbarrier.cluster.wait.acquire.aligned;\n\
                 @!%warp0 bra END;\n{ARRIVE}\n{LOAD}\n{WAIT}\nEND:"
            ),
        ),
    ]
}

/// Thread 0 of the CTAs for which `%p3` holds makes the map at `out`: 64 bytes from 1024 bytes on, in boxes of 16.
const MAKE: &str = "add.s64 %rd0, %out, 1024;\n@%p3 tensormap.replace.tile.global_address.global.b1024.b64 [%out], %rd0;\n\
                    @%p3 tensormap.replace.tile.global_dim.global.b1024.b32 [%out], 0, 64;\n\
                    @%p3 tensormap.replace.tile.box_dim.global.b1024.b32 [%out], 0, 16;";
const RELEASE: &str = "@%p3 fence.proxy.tensormap::generic.release.gpu;";
const ACQUIRE: &str = "fence.proxy.tensormap::generic.acquire.gpu [%out], 128;";
/// The thread for which `%p4` holds loads a box; its warp waits for it.
const USE: &str = "@%p4 mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar_a], 16;\n\
                   @%p4 cp.async.bulk.tensor.1d.shared::cluster.global.mbarrier::complete_tx::bytes [tile], [%out, {0}], [bar_a];";

pub fn maps() -> Vec<Case> {
    let codes = &["tensor-map-not-acquired"];
    // Warp 0 makes the map, warp 1 uses it.
    let pair = |release: &str, acquire: &str| {
        format!(
            "{INIT}\nmov.pred %p3, %first;\nsetp.eq.u32 %p4, %t, 32;\n{MAKE}\n{release}\nbar.sync 0;\n@!%warp1 bra END;\n{acquire}\n{USE}\n{WAIT}\nEND:"
        )
    };
    let cluster = |release: &str, acquire: &str| {
        format!(
            "{INIT}\nand.pred %p3, %first, %cta0;\nnot.pred %p5, %cta0;\nand.pred %p4, %first, %p5;\n{MAKE}\n{release}\n\
             barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;\n{acquire}\nbarrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;\n\
             @%cta0 bra END;\n{USE}\n{WAIT}\nEND:"
        )
    };
    // Cluster 0 makes the map and sets a flag; cluster 1 waits for the flag.
    let grid = |acquire: &str| {
        format!(
            "{INIT}\nand.pred %p3, %first, %cluster0;\nmov.pred %p4, %first;\n@!%cluster0 bra READ;\n{MAKE}\n{RELEASE}\n\
             @%p3 st.release.gpu.global.u32 [%out+2048], 1;\nbra END;\nREAD:\nld.acquire.gpu.global.u32 %r2, [%out+2048];\n\
             setp.eq.u32 %p5, %r2, 0;\n@%p5 bra READ;\n{acquire}\n{USE}\n{WAIT}\nEND:"
        )
    };
    let marked = |line: &str| format!("{line} // rule");
    // Thread 0 makes the map, uses it, and changes it again.
    let again = |used: &str, read: &str, done: &str| {
        format!(
            "{INIT}\n@%first st.shared.v4.u32 [tile], {{1, 2, 3, 4}};\nfence.proxy.async.shared::cta;\nmov.pred %p3, %first;\n\
             mov.pred %p4, %first;\n{MAKE}\n{RELEASE}\n@!%warp0 bra END;\n{ACQUIRE}\n{used}\n{read}\n\
             @%p3 tensormap.replace.tile.global_dim.global.b1024.b32 [%out], 0, 32;\n{done}\nEND:"
        )
    };
    let loaded =
        "READ: // rule\nmbarrier.try_wait.parity.shared::cta.b64 %p1, [bar_a], 0; // rule\n@!%p1 bra READ; // rule";
    let stored = "@%first cp.async.bulk.wait_group.read 0; // rule";
    let store = format!("@%p4 cp.async.bulk.tensor.1d.global.shared::cta.bulk_group [%out, {{0}}], [tile];\n{COMMIT}");
    vec![
        order("tensor-map-read", PAIR, GLOBAL, again(USE, loaded, WAIT)),
        order("tensor-map-read", PAIR, GLOBAL, again(&format!("{USE}\n{COMMIT}"), stored, WAIT)),
        order("bulk-group-read", PAIR, GLOBAL, again(&store, stored, DONE)),
        // By who has waited for the commit of who had waited for the load.
        order(
            "tensor-map-read",
            PAIR,
            GLOBAL,
            format!(
                "{INIT}\n@%first mbarrier.init.shared::cta.b64 [bar_b], 1;\nbar.sync 0;\nmov.pred %p3, %first;\nmov.pred %p4, %first;\n{MAKE}\n\
                 {RELEASE}\n@%warp1 bra OTHER;\n{ACQUIRE}\n{USE}\nREAD: // rule\n\
                 mbarrier.try_wait.parity.shared::cta.b64 %p1, [bar_b], 0; // rule\n@!%p1 bra READ; // rule\n\
                 @%p3 tensormap.replace.tile.global_dim.global.b1024.b32 [%out], 0, 32;\n{WAIT}\nbra END;\nOTHER:\n\
                 mbarrier.try_wait.parity.shared::cta.b64 %p1, [bar_a], 0;\n@!%p1 bra OTHER;\n\
                 elect.sync %r5|%p5, 0xffffffff;\n@%p5 tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [bar_b];\nEND:"
            ),
        ),
        // A prefetch reads a map as well.
        order(
            "tensor-map",
            PAIR,
            GLOBAL,
            format!(
                "mov.pred %p3, %first;\n{MAKE}\n{RELEASE}\nbar.sync 0;\n\
                 @%p3 tensormap.replace.tile.global_dim.global.b1024.b32 [%out], 0, 32;\n{RELEASE}\nbar.sync 0; // rule\n@!%warp1 bra END;\n\
                 {ACQUIRE}\nsetp.eq.u32 %p4, %t, 32;\n@%p4 cp.async.bulk.prefetch.tensor.1d.L2.global [%out, {{0}}];\nEND:"
            ),
        ),
        order("tensor-map", PAIR, codes, pair(&marked(RELEASE), ACQUIRE)),
        order("tensor-map", PAIR, codes, pair(RELEASE, &marked(ACQUIRE))),
        order("tensor-map", GRID, codes, grid(&marked(ACQUIRE))),
        none(
            "tensor-map-of-another-cta",
            CLUSTER,
            codes,
            cluster(RELEASE, &format!("@%cta0 {ACQUIRE} // rule: {ACQUIRE}")),
        ),
        none(
            "tensor-map-fence-too-narrow",
            CLUSTER,
            codes,
            cluster(&format!("{} // rule: {RELEASE}", RELEASE.replace("gpu", "cta")), ACQUIRE),
        ),
        none(
            "tensor-map-fence-too-narrow",
            CLUSTER,
            codes,
            cluster(RELEASE, &format!("{} // rule: {ACQUIRE}", ACQUIRE.replace("gpu", "cta"))),
        ),
        none(
            "tensor-map-is-another-proxy",
            PAIR,
            codes,
            pair(RELEASE, &format!("fence.proxy.async; // rule: {ACQUIRE}")),
        ),
        none(
            "tensor-map-is-another-proxy",
            PAIR,
            codes,
            pair(&format!("@%p3 fence.acq_rel.gpu; // rule: {RELEASE}"), ACQUIRE),
        ),
    ]
}

pub fn copies() -> Vec<Case> {
    let mut list: Vec<Case> = [LOAD, CANCEL]
        .map(|asked| {
            order(
                "asynchronous-write",
                PAIR,
                SHARED,
                format!(
                    "{INIT}\n{ARRIVE}\n{asked}\n@%warp1 bra READ;\n{WAIT}\nbra END;\n\
                     READ:\nmbarrier.try_wait.parity.shared::cta.b64 %p1, [bar_a], 0; // rule\n@!%p1 bra READ; // rule\n\
                     ld.shared.u32 %r2, [tile];\nEND:"
                ),
            )
        })
        .into();
    list.extend([
        none(
            "complete-tx",
            PAIR,
            SHARED,
            format!(
                "{INIT}\n{ARRIVE} // rule\n@%first st.shared.u32 [tile+64], 7;\n// rule: {ARRIVE}\n{LOAD}\n{WAIT}\n\
                 @%warp1 ld.shared.u32 %r2, [tile+64];"
            ),
        ),
        order(
            "bulk-group-read",
            PAIR,
            SHARED,
            copied(&format!("{COMMIT}\n@%first cp.async.bulk.wait_group.read 0; // rule\n{OVERWRITE}")),
        ),
        order(
            "bulk-group-read",
            PAIR,
            SHARED,
            copied(&format!("{COMMIT} // rule\n@%first cp.async.bulk.wait_group.read 0;\n{OVERWRITE}\n{COMMIT}")),
        ),
        order(
            "bulk-group",
            PAIR,
            GLOBAL,
            copied(&format!(
                "{COMMIT}\n@%first cp.async.bulk.wait_group 0; // rule\nbar.sync 0;\n@%warp1 ld.global.u32 %r2, [%out];"
            )),
        ),
        none(
            "bulk-group-read-is-no-write",
            PAIR,
            GLOBAL,
            copied(&format!(
                "{COMMIT}\n@%first cp.async.bulk.wait_group.read 0; // rule: {DONE}\nbar.sync 0;\n\
                 @%warp1 ld.global.u32 %r2, [%out];"
            )),
        ),
        none(
            "bulk-group-of-another-thread",
            PAIR,
            SHARED,
            copied(&format!(
                "{COMMIT}\nbar.sync 0;\nsetp.eq.u32 %p0, %t, 32; // rule: setp.eq.u32 %p0, %t, 0;\n\
                 @%p0 cp.async.bulk.wait_group.read 0;\n{OVERWRITE}"
            )),
        ),
        none(
            "copies-of-one-thread",
            PAIR,
            SHARED,
            "@%first cp.async.ca.shared.global [tile], [%out], 16;\ncp.async.commit_group; // rule: cp.async.wait_all;\n\
             @%first cp.async.ca.shared.global [tile], [%out+16], 16;\ncp.async.wait_all;\n@%first ld.shared.u32 %r2, [tile];",
        ),
        order(
            "cp-async-group",
            PAIR,
            SHARED,
            "@%first cp.async.ca.shared.global [tile], [%out], 16;\ncp.async.commit_group;\n\
             cp.async.wait_group 0; // rule\nbar.sync 0;\n@%warp1 ld.shared.u32 %r2, [tile];",
        ),
        order(
            "cp-async-group",
            PAIR,
            SHARED,
            "@%first cp.async.ca.shared.global [tile], [%out], 16;\ncp.async.wait_all;\n\
             bar.sync 0; // rule\n@%warp1 ld.shared.u32 %r2, [tile];",
        ),
        order(
            "cp-async-arrive",
            PAIR,
            SHARED,
            arrives(
                "@%first cp.async.mbarrier.arrive.noinc.shared::cta.b64 [bar_a]; // rule: @%first mbarrier.arrive.shared::cta.b64 _, [bar_a];",
                "ld.shared.u32 %r2, [tile];",
            ),
        ),
        // Not counted: the phase takes one more.
        order(
            "cp-async-arrive",
            PAIR,
            SHARED,
            arrives(
                "@%first cp.async.mbarrier.arrive.shared::cta.b64 [bar_a]; // rule\n@%first mbarrier.arrive.shared::cta.b64 _, [bar_a];",
                "ld.shared.u32 %r2, [tile];",
            ),
        ),
        // It tells of the copies only.
        none(
            "cp-async-arrive-tells-of-copies-only",
            PAIR,
            SHARED,
            arrives(
                "@%first st.shared.u32 [tile+64], 7;\n\
                 @%first cp.async.mbarrier.arrive.noinc.shared::cta.b64 [bar_a]; // rule: @%first mbarrier.arrive.shared::cta.b64 _, [bar_a];",
                "ld.shared.u32 %r2, [tile+64];",
            ),
        ),
    ]);
    list
}

/// Thread 0 copies, and arrives at an mbarrier of one arrival; warp 1 waits for it, and does this.
fn arrives(arrive: &str, then: &str) -> String {
    format!(
        "@%first mbarrier.init.shared::cta.b64 [bar_a], 1;\nbar.sync 0;\n@%warp1 bra WAIT;\n\
         @%first cp.async.ca.shared.global [tile], [%out], 16;\n{arrive}\nbra END;\nWAIT:\n\
         mbarrier.try_wait.parity.shared::cta.b64 %p1, [bar_a], 0;\n@!%p1 bra WAIT;\n{then}\nEND:"
    )
}
