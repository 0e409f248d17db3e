//! Plain and strong accesses, execution barriers, mbarriers.

use super::case::{CLUSTER, Case, GRID, PAIR, Shape, THREE, none, order};

/// Both CTAs of the cluster have started.
pub const STARTED: &str = "barrier.cluster.arrive.relaxed.aligned;\nbarrier.cluster.wait.aligned;";
/// Neither ends before the other has used its memory.
pub const OVER: &str = "barrier.cluster.arrive.relaxed.aligned;\nbarrier.cluster.wait.aligned;";
/// `%r1` is the address of the tile of CTA 0.
pub const TILE_0: &str = "mov.u32 %r1, tile;\nmapa.shared::cluster.u32 %r1, %r1, 0;";
/// A while.
pub const SLOW: &str = "mov.u32 %r9, 0;\nSLOW:\nadd.u32 %r9, %r9, 1;\nsetp.lt.u32 %p7, %r9, 3000;\n@%p7 bra SLOW;";

const SHARED: &[&str] = &["race-shared"];
const GLOBAL: &[&str] = &["race-global"];

/// Thread 0 of CTA 0 writes a word of its tile, CTA 1 reads it, with this between.
fn across_cluster(between: &str) -> String {
    format!(
        "{STARTED}\n{TILE_0}\n@%cta0 st.shared.u32 [tile], 7;\n{between}\n@!%cta0 ld.shared::cluster.u32 %r2, [%r1];\n{OVER}"
    )
}

/// Writer and reader of a word of global memory, and of a flag beside it: how the flag is set, and how it is read.
fn flag(apart: &str, set: &str, get: &str) -> String {
    format!(
        "@!%{apart} bra READ;\n@%first st.global.u32 [%out], 7;\n{set}\nbra END;\n\
         READ:\n{get}\nsetp.eq.u32 %p1, %r2, 0;\n@%p1 bra READ;\nld.global.u32 %r3, [%out];\nEND:"
    )
}

/// Warp 0 writes the tile and arrives at `bar_a`; warp 1 waits for it and reads.
fn phase(slow: &str, arrive: &str, wait: &str) -> String {
    format!(
        "@%first mbarrier.init.shared::cta.b64 [bar_a], 1;\nbar.sync 0;\n@%warp1 bra WAIT;\n{slow}\n\
         @%first st.shared.u32 [tile], 7;\n@%first {arrive}\nbra END;\n\
         WAIT:\n{wait}\nld.shared.u32 %r2, [tile];\nEND:"
    )
}

const SET: &str = "@%first st.relaxed.gpu.global.u32 [%out+64], 1;";
const GET: &str = "ld.relaxed.gpu.global.u32 %r2, [%out+64];";

/// Only warp 0 goes on.
const WARP_0: &str = "@!%warp0 bra END;\n";

/// Each lane stores 16 bytes at its own place of the tile, which it counts itself.
fn st(place: &str) -> String {
    format!(
        "shl.b32 %r4, {place}, 4;\nmov.u32 %r5, tile;\nadd.u32 %r4, %r4, %r5;\nst.shared.v4.b32 [%r4], {{%t, %t, %t, %t}};"
    )
}

/// Each lane loads from the place that this puts into `%r1`.
fn ld(place: &str) -> String {
    format!("{place};\nshl.b32 %r1, %r1, 4;\nmov.u32 %r5, tile;\nadd.u32 %r1, %r1, %r5;\nld.shared.u32 %r3, [%r1];")
}

pub fn generic() -> Vec<Case> {
    let read_modify_write = "@%warp1 bra MIDDLE;\n@!%warp0 bra READ;\n@%first st.global.u32 [%out], 7;\n\
         @%first red.release.gpu.global.add.u32 [%out+64], 1;\nbra END;\n\
         MIDDLE:\nld.relaxed.gpu.global.u32 %r2, [%out+64];\nsetp.eq.u32 %p1, %r2, 0;\n@%p1 bra MIDDLE;\n\
         setp.eq.u32 %p2, %t, 32;\n\
         @%p2 red.relaxed.gpu.global.add.u32 [%out+64], 1; // rule: @%p2 st.relaxed.gpu.global.u32 [%out+64], 2;\n\
         bra END;\n\
         READ:\nld.relaxed.gpu.global.u32 %r2, [%out+64];\nsetp.ne.u32 %p1, %r2, 2;\n@%p1 bra READ;\n\
         ld.acquire.gpu.global.u32 %r2, [%out+64];\nld.global.u32 %r3, [%out];\nEND:";
    vec![
        order(
            "one-warp",
            PAIR,
            GLOBAL,
            "@%first st.global.u32 [%out], 7;\n\
             setp.eq.u32 %p0, %t, 1; // rule: setp.eq.u32 %p0, %t, 33;\n\
             @%p0 ld.global.u32 %r0, [%out];",
        ),
        order(
            "warp-sync",
            PAIR,
            &["missing-warp-sync"],
            format!("{WARP_0}{}\nbar.warp.sync -1; // rule\n{}\nEND:", st("%t"), ld("xor.b32 %r1, %t, 1")),
        ),
        order(
            "warp-sync",
            PAIR,
            &["missing-warp-sync"],
            format!(
                "{WARP_0}{}\nbar.warp.sync -1; // rule\nmov.u32 %r2, tile;\nshl.b32 %r1, %t, 4;\nadd.u32 %r2, %r2, %r1;\n\
                 ldmatrix.sync.aligned.m8n8.x1.shared.b16 {{%r3}}, [%r2];\nEND:",
                st("%t")
            ),
        ),
        order(
            "warp-sync",
            PAIR,
            SHARED,
            format!(
                "{WARP_0}setp.lt.u32 %p0, %t, 16;\n@%p0 bra STORE;\nbar.warp.sync -1; // rule\n{}\nbra END;\n\
                 STORE:\n{}\nbar.warp.sync -1; // rule\nEND:",
                ld("sub.u32 %r1, %t, 16"),
                st("%t")
            ),
        ),
        order(
            "release-acquire",
            GRID,
            GLOBAL,
            flag(
                "cluster0",
                "@%first st.release.gpu.global.u32 [%out+64], 1; // rule: @%first st.relaxed.gpu.global.u32 [%out+64], 1;",
                "ld.acquire.gpu.global.u32 %r2, [%out+64];",
            ),
        ),
        order(
            "release-acquire",
            PAIR,
            GLOBAL,
            flag(
                "warp0",
                "@%first st.release.cta.global.u32 [%out+64], 1;",
                "ld.acquire.cta.global.u32 %r2, [%out+64]; // rule: ld.relaxed.cta.global.u32 %r2, [%out+64];",
            ),
        ),
        order(
            "fence-and-relaxed",
            GRID,
            GLOBAL,
            flag("cluster0", &format!("fence.acq_rel.gpu; // rule\n{SET}"), &format!("{GET}\nfence.acq_rel.gpu;")),
        ),
        order(
            "fence-and-relaxed",
            GRID,
            GLOBAL,
            flag("cluster0", &format!("fence.acq_rel.gpu;\n{SET}"), &format!("{GET}\nfence.acq_rel.gpu; // rule")),
        ),
        order(
            "fence-and-relaxed",
            CLUSTER,
            SHARED,
            across_cluster(
                "fence.acq_rel.cluster; // rule\nbarrier.cluster.arrive.relaxed.aligned;\nbarrier.cluster.wait.aligned;",
            ),
        ),
        order("read-modify-write", THREE, GLOBAL, read_modify_write),
        order(
            "strong-accesses",
            PAIR,
            GLOBAL,
            "@%first st.relaxed.cta.global.u32 [%out], 7; // rule: @%first st.global.u32 [%out], 7;\n\
             @%warp1 ld.relaxed.cta.global.u32 %r2, [%out];",
        ),
        none(
            "scope-too-narrow",
            CLUSTER,
            SHARED,
            format!(
                "@%first st.shared.u32 [tile], 0;\nbarrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;\n{TILE_0}\n\
                 @%cta0 st.relaxed.cta.shared.u32 [tile], 7; // rule: @%cta0 st.relaxed.cluster.shared.u32 [tile], 7;\n\
                 @!%cta0 ld.relaxed.cta.shared::cluster.u32 %r2, [%r1]; // rule: @!%cta0 ld.relaxed.cluster.shared::cluster.u32 %r2, [%r1];\n\
                 {OVER}"
            ),
        ),
        none(
            "scope-too-narrow",
            GRID,
            GLOBAL,
            flag(
                "cluster0",
                "@%first st.release.cluster.global.u32 [%out+64], 1; // rule: @%first st.release.gpu.global.u32 [%out+64], 1;",
                "ld.acquire.cluster.global.u32 %r2, [%out+64]; // rule: ld.acquire.gpu.global.u32 %r2, [%out+64];",
            ),
        ),
        none(
            "non-coherent-load",
            PAIR,
            &["non-coherent-load"],
            "@%first st.global.u32 [%out], 7;\nbar.sync 0;\n\
             @%warp1 ld.global.nc.u32 %r2, [%out]; // rule: @%warp1 ld.global.u32 %r2, [%out];",
        ),
    ]
}

pub fn barriers() -> Vec<Case> {
    vec![
        order(
            "cta-barrier",
            PAIR,
            SHARED,
            "@%first st.shared.u32 [tile], 7;\nbar.sync 0; // rule\n@%warp1 ld.shared.u32 %r0, [tile];",
        ),
        order(
            "cta-barrier",
            PAIR,
            SHARED,
            "@%first st.shared.u32 [tile], 7;\n@%warp0 bar.arrive 1, 64; // rule\n@%warp1 bar.sync 1, 64; // rule\n\
             @%warp1 ld.shared.u32 %r0, [tile];",
        ),
        none(
            "barrier-arrive",
            PAIR,
            SHARED,
            "@%warp1 st.shared.u32 [tile], 7;\n@%warp1 bar.sync 1, 64;\n\
             @%warp0 bar.arrive 1, 64; // rule: @%warp0 bar.sync 1, 64;\n@%warp0 ld.shared.u32 %r0, [tile];",
        ),
        none(
            "behind-an-arrival",
            PAIR,
            SHARED,
            "// rule: @%first st.shared.u32 [tile], 7;\n@%warp0 bar.arrive 1, 64;\n@%first st.shared.u32 [tile], 7; // rule\n\
             @%warp1 bar.sync 1, 64;\n@%warp1 ld.shared.u32 %r0, [tile];",
        ),
        none(
            "behind-an-arrival",
            CLUSTER,
            SHARED,
            across_cluster(
                "barrier.cluster.arrive.release.aligned;\n@%cta0 st.shared.u32 [tile], 8; // rule\n\
                 barrier.cluster.wait.acquire.aligned;",
            ),
        ),
        order(
            "cluster-barrier",
            CLUSTER,
            SHARED,
            across_cluster(
                "barrier.cluster.arrive.release.aligned; // rule\nbarrier.cluster.wait.acquire.aligned; // rule",
            ),
        ),
        none(
            "cluster-arrive-relaxed",
            CLUSTER,
            SHARED,
            across_cluster(
                "barrier.cluster.arrive.relaxed.aligned; // rule: barrier.cluster.arrive.release.aligned;\n\
                 barrier.cluster.wait.acquire.aligned;",
            ),
        ),
        none(
            "cluster-arrive-behind-narrow-fence",
            CLUSTER,
            SHARED,
            across_cluster(
                "fence.acq_rel.cta; // rule: fence.acq_rel.cluster;\nbarrier.cluster.arrive.relaxed.aligned;\n\
                 barrier.cluster.wait.acquire.aligned;",
            ),
        ),
        // Within a CTA as well.
        none(
            "cluster-arrive-relaxed",
            PAIR,
            SHARED,
            "@%first st.shared.u32 [tile], 7;\n\
             barrier.cluster.arrive.relaxed.aligned; // rule: barrier.cluster.arrive.release.aligned;\n\
             barrier.cluster.wait.acquire.aligned;\n@%warp1 ld.shared.u32 %r2, [tile];",
        ),
        order(
            "end-of-a-cta",
            CLUSTER,
            &["remote-use-outlives-cta"],
            format!(
                "{STARTED}\n{TILE_0}\n@!%cta0 st.shared::cluster.u32 [%r1], 7;\n\
                 barrier.cluster.arrive.relaxed.aligned; // rule\nbarrier.cluster.wait.aligned; // rule"
            ),
        ),
    ]
}

pub fn mbarriers() -> Vec<Case> {
    let arrive = "mbarrier.arrive.shared::cta.b64 _, [bar_a];";
    let wait = "mbarrier.try_wait.parity.shared::cta.b64 %p1, [bar_a], 0;\n@!%p1 bra WAIT;";
    let cluster_init = |fence: &str| {
        format!(
            "{STARTED}\nmov.u32 %r1, bar_a;\nmapa.shared::cluster.u32 %r1, %r1, 0;\nsetp.eq.and.u32 %p0, %t, 0, %cta0;\n\
             @%p0 mbarrier.init.shared::cta.b64 [bar_a], 1;\n{fence}\n\
             barrier.cluster.arrive.relaxed.aligned;\nbarrier.cluster.wait.aligned;\n{SLOW}\n@%cta0 bra OVER;\n\
             @%first mbarrier.arrive.shared::cluster.b64 _, [%r1];\nOVER:\n{OVER}"
        )
    };
    vec![
        order(
            "mbarrier-phase",
            PAIR,
            SHARED,
            phase(
                "",
                arrive,
                "mbarrier.try_wait.parity.shared::cta.b64 %p1, [bar_a], 0; // rule\n@!%p1 bra WAIT; // rule",
            ),
        ),
        none(
            "mbarrier-relaxed",
            PAIR,
            SHARED,
            phase(
                "",
                &format!("mbarrier.arrive.relaxed.cta.shared::cta.b64 _, [bar_a]; // rule: @%first {arrive}"),
                wait,
            ),
        ),
        none(
            "mbarrier-relaxed-wait",
            PAIR,
            &["missing-acquire"],
            phase(
                "",
                arrive,
                "mbarrier.try_wait.parity.relaxed.cta.shared::cta.b64 %p1, [bar_a], 0; \
                 // rule: mbarrier.try_wait.parity.acquire.cta.shared::cta.b64 %p1, [bar_a], 0;\n@!%p1 bra WAIT;",
            ),
        ),
        // What a relaxed wait has seen is passed on: to warp 2, through a barrier.
        none(
            "mbarrier-relaxed-wait",
            THREE,
            &["missing-acquire"],
            format!(
                "@%first mbarrier.init.shared::cta.b64 [bar_a], 1;\nbar.sync 0;\n@%warp1 bra WAIT;\n@!%warp0 bra LAST;\n\
                 @%first st.shared.u32 [tile], 7;\n@%first {arrive}\nbra END;\nWAIT:\n\
                 mbarrier.try_wait.parity.relaxed.cta.shared::cta.b64 %p1, [bar_a], 0; \
                 // rule: mbarrier.try_wait.parity.shared::cta.b64 %p1, [bar_a], 0;\n@!%p1 bra WAIT;\nbar.sync 1, 64;\nbra END;\n\
                 LAST:\nbar.sync 1, 64;\nld.shared.u32 %r2, [tile];\nEND:"
            ),
        ),
        // Global memory.
        none(
            "mbarrier-relaxed-wait",
            PAIR,
            GLOBAL,
            format!(
                "@%first mbarrier.init.shared::cta.b64 [bar_a], 1;\nbar.sync 0;\n@%warp1 bra WAIT;\n\
                 @%first st.global.u32 [%out], 7;\n@%first {arrive}\nbra END;\nWAIT:\n\
                 mbarrier.try_wait.parity.relaxed.cta.shared::cta.b64 %p1, [bar_a], 0; \
                 // rule: mbarrier.try_wait.parity.shared::cta.b64 %p1, [bar_a], 0;\n@!%p1 bra WAIT;\nld.global.u32 %r2, [%out];\nEND:"
            ),
        ),
        none(
            "mbarrier-fresh-parity",
            PAIR,
            &["phase-overtaken", "race-shared"],
            phase(
                SLOW,
                arrive,
                "mbarrier.try_wait.parity.shared::cta.b64 %p1, [bar_a], 1; \
                 // rule: mbarrier.try_wait.parity.shared::cta.b64 %p1, [bar_a], 0;\n@!%p1 bra WAIT;",
            ),
        ),
        // The arrival comes behind the announcement in time, also where nothing says so.
        order(
            "mbarrier-announcement",
            PAIR,
            &["phase-completed-early"],
            format!(
                "@%first mbarrier.init.shared::cta.b64 [bar_a], 1;\nbar.sync 0;\n@!%warp1 bra LOAD;\n{SLOW}\nbar.sync 1, 64; // rule\n\
                 setp.eq.u32 %p0, %t, 32;\n@%p0 {arrive}\nbra WAIT;\nLOAD:\n@!%first bra LOADED;\n\
                 mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [bar_a], 16;\n\
                 cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [tile], [%out], 16, [bar_a];\n\
                 LOADED:\nbar.sync 1, 64; // rule\nWAIT:\n{wait}"
            ),
        ),
        order(
            "mbarrier-init",
            PAIR,
            &["mbarrier-init-unordered"],
            format!(
                "@%first mbarrier.init.shared::cta.b64 [bar_a], 1;\nbar.sync 0; // rule\n@%warp0 bra END;\n{SLOW}\n\
                 setp.eq.u32 %p0, %t, 32;\n@%p0 mbarrier.arrive.shared::cta.b64 _, [bar_a];\nEND:"
            ),
        ),
        // An engine that completes bytes on it, for a thread of another warp: neither a proxy fence nor a fence.mbarrier_init stands between.
        order(
            "mbarrier-init",
            PAIR,
            &["mbarrier-init-unordered"],
            format!(
                "@%first mbarrier.init.shared::cta.b64 [bar_a], 1;\nbar.sync 0; // rule\n@%warp0 bra END;\n{SLOW}\n\
                 setp.eq.u32 %p0, %t, 32;\n@!%p0 bra END;\n\
                 mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar_a], 16;\n\
                 cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [tile], [%out], 16, [bar_a];\n\
                 WAIT:\nmbarrier.try_wait.parity.shared::cta.b64 %p1, [bar_a], 0;\n@!%p1 bra WAIT;\nld.shared.u32 %r2, [tile];\nEND:"
            ),
        ),
        order(
            "mbarrier-init-fence",
            CLUSTER,
            &["mbarrier-init-unordered"],
            cluster_init("fence.mbarrier_init.release.cluster; // rule"),
        ),
        none(
            "mbarrier-init-fence-covers-inits",
            CLUSTER,
            SHARED,
            across_cluster(
                "fence.mbarrier_init.release.cluster; // rule: fence.acq_rel.cluster;\n\
                 barrier.cluster.arrive.relaxed.aligned;\nbarrier.cluster.wait.aligned;",
            ),
        ),
    ]
}

/// Thread 0 of CTA 0 writes its tile and arrives at an mbarrier of CTA 1, which waits and reads: how the two are done, `[%r3]` being the
/// mbarrier for the arrival. Scopes are looked at whatever these say: a fence at `.cta` scope is there.
fn told_across(store: &str, arrive: &str, wait: &str, load: &str) -> String {
    format!(
        "@%first mbarrier.init.shared::cta.b64 [bar_a], 1;\n@%first fence.mbarrier_init.release.cluster;\n{STARTED}\nfence.acq_rel.cta;\n{TILE_0}\n\
         mov.u32 %r3, bar_a;\nmapa.shared::cluster.u32 %r3, %r3, 1;\n@!%cta0 bra WAIT;\n\
         {store}\n{arrive}\nbra OVER;\nWAIT:\n{wait}\n@!%p1 bra WAIT;\n{load}\nOVER:\n{OVER}"
    )
}

const STORE: &str = "@%first st.shared.u32 [tile], 7;";
const LOAD: &str = "ld.shared::cluster.u32 %r2, [%r1];";
const ARRIVE: &str = "@%first mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r3];";
const WAIT: &str = "mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p1, [bar_a], 0;";
const ARRIVE_CTA: &str = "@%first mbarrier.arrive.shared::cluster.b64 _, [%r3];";
const WAIT_CTA: &str = "mbarrier.try_wait.parity.shared::cta.b64 %p1, [bar_a], 0;";
const ARRIVE_RELAXED: &str = "@%first mbarrier.arrive.relaxed.cluster.shared::cluster.b64 _, [%r3];";
const WAIT_RELAXED: &str = "mbarrier.try_wait.parity.relaxed.cluster.shared::cta.b64 %p1, [bar_a], 0;";

/// Scopes of mbarrier operations between the CTAs of a cluster.
pub fn scopes() -> Vec<Case> {
    let (arrive, wait) = (format!("{ARRIVE_CTA} // rule: {ARRIVE}"), format!("{WAIT_CTA} // rule: {WAIT}"));
    let fence = "fence.acq_rel.cluster; // rule: fence.acq_rel.cta;";
    let row = |codes, body| none("mbarrier-scope", CLUSTER, codes, body);
    let global = ("@%first st.global.u32 [%out], 7;", "ld.global.u32 %r2, [%out];");
    let remote = "@%first st.shared::cluster.u32 [%r4], 7;";
    let tile_1 = "mov.u32 %r4, tile;\nmapa.shared::cluster.u32 %r4, %r4, 1;";
    vec![
        row(SHARED, told_across(STORE, &arrive, WAIT, LOAD)),
        row(SHARED, told_across(STORE, ARRIVE, &wait, LOAD)),
        row(SHARED, told_across(STORE, &arrive, &wait, LOAD)),
        row(SHARED, told_across(STORE, &arrive.replacen("arrive.", "arrive.release.cta.", 1), WAIT, LOAD)),
        row(SHARED, told_across(STORE, ARRIVE, &wait.replacen("parity.", "parity.acquire.cta.", 1), LOAD)),
        row(SHARED, told_across(&format!("{tile_1}\n{remote}"), &arrive, WAIT, "ld.shared.u32 %r2, [tile];")),
        row(GLOBAL, told_across(global.0, &arrive, WAIT, global.1)),
        row(GLOBAL, told_across(global.0, ARRIVE, &wait, global.1)),
        // What others of its CTA did, the thread that arrives passes on.
        none(
            "mbarrier-scope",
            Shape { threads: 64, ..CLUSTER },
            SHARED,
            told_across(
                "@%first st.shared.u32 [tile], 7;\nbar.sync 0;\nsetp.eq.u32 %first, %t, 32;",
                &arrive,
                WAIT,
                &format!("bar.sync 0;\n@%warp1 {LOAD}"),
            ),
        ),
        order(
            "fence-and-relaxed",
            CLUSTER,
            SHARED,
            told_across(STORE, &format!("{fence}\n{ARRIVE_RELAXED}"), WAIT, LOAD),
        ),
        order(
            "fence-and-relaxed",
            CLUSTER,
            SHARED,
            told_across(STORE, ARRIVE, WAIT_RELAXED, &format!("{fence}\n{LOAD}")),
        ),
        // The halves of a fence that are of shared memory alone.
        order(
            "fence-and-relaxed",
            CLUSTER,
            SHARED,
            told_across(
                STORE,
                &format!("fence.release.sync_restrict::shared::cta.cluster; // rule\n{ARRIVE_RELAXED}"),
                WAIT_RELAXED,
                &format!("fence.acquire.sync_restrict::shared::cluster.cluster;\n{LOAD}"),
            ),
        ),
        none(
            "mbarrier-relaxed-wait",
            CLUSTER,
            SHARED,
            told_across(STORE, ARRIVE, &format!("{WAIT_RELAXED} // rule: {WAIT}"), LOAD),
        ),
    ]
}

/// Kernels with a scope that is too narrow: which statement is to blame, and what helps.
pub fn too_narrow() -> Vec<(String, &'static str, &'static str)> {
    let narrow = "fence.acq_rel.cta;";
    let fenced = format!("{narrow}\n{ARRIVE_RELAXED}");
    vec![
        (told_across(STORE, ARRIVE_CTA, WAIT, LOAD), ARRIVE_CTA, "mbarrier.arrive.release.cluster"),
        (told_across(STORE, ARRIVE_CTA, WAIT_CTA, LOAD), ARRIVE_CTA, "mbarrier.try_wait.acquire.cluster"),
        (told_across(STORE, ARRIVE, WAIT_CTA, LOAD), WAIT_CTA, "the wait as mbarrier.try_wait.acquire.cluster"),
        (told_across(STORE, &fenced, WAIT, LOAD), ARRIVE_RELAXED, "fence.acq_rel.cluster"),
        (told_across(STORE, ARRIVE, WAIT_RELAXED, &format!("{narrow}\n{LOAD}")), WAIT_RELAXED, "fence.acq_rel.cluster"),
        (
            told_across("@%first st.global.u32 [%out], 7;", ARRIVE_CTA, WAIT, "ld.global.u32 %r2, [%out];"),
            ARRIVE_CTA,
            "arrive",
        ),
    ]
}

/// What orders the CTAs of a cluster beside mbarriers at `.cta` scope, or needs no more than these.
pub fn wide_enough() -> Vec<(&'static str, Shape, String)> {
    let barrier = "barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;";
    let over = format!("OVER:\n{OVER}");
    let behind = told_across(STORE, ARRIVE_CTA, WAIT_CTA, "")
        .replace(&over, &format!("OVER:\n{barrier}\n@!%cta0 {LOAD}\n{OVER}"));
    let before = told_across("", ARRIVE_CTA, WAIT_CTA, LOAD)
        .replace("@!%cta0 bra WAIT;", &format!("@%cta0 st.shared.u32 [tile], 7;\n{barrier}\n@!%cta0 bra WAIT;"));
    let strong = told_across(
        "@%first st.relaxed.cluster.shared.u32 [tile], 7;",
        ARRIVE_CTA,
        WAIT_CTA,
        "ld.relaxed.cluster.shared::cluster.u32 %r2, [%r1];",
    );
    // A narrower fence behind a wide one does not take back what that one told.
    let fences = told_across(STORE, &format!("fence.acq_rel.gpu;\nfence.acq_rel.cta;\n{ARRIVE_RELAXED}"), WAIT, LOAD);
    let own_tile = "mov.u32 %r1, tile;\nmapa.shared::cluster.u32 %r1, %r1, 1;";
    // Warp 0 of CTA 1 tells warp 1, through an address of the cluster that is its own.
    let own = told_across("", "", WAIT_CTA, &format!("{own_tile}\n@%warp1 {LOAD}"))
        .replace("WAIT:", &format!("@%warp1 bra WAIT;\n{STORE}\n{ARRIVE_CTA}\nbra OVER;\nWAIT:"))
        .replace("@!%cta0 bra WAIT;", "@%cta0 bra OVER;")
        .replacen("bra OVER;\n@%warp1 bra WAIT", "@%warp1 bra WAIT", 1);
    vec![
        ("barrier.cluster behind an arrival at .cta scope", CLUSTER, behind),
        ("barrier.cluster before an arrival at .cta scope", CLUSTER, before),
        ("strong accesses", CLUSTER, strong),
        ("fences", CLUSTER, fences),
        ("an mbarrier of the own CTA at .cta scope", Shape { threads: 64, ..CLUSTER }, own),
    ]
}

/// CTA 1 has read the tile of CTA 0 and says so at `.cta` scope, the default: CTA 0 overwrites it.
pub fn handed_back_at_cta_scope() -> String {
    format!(
        "@%first mbarrier.init.shared::cta.b64 [bar_a], 1;\n@%first fence.mbarrier_init.release.cluster;\n\
         @%first st.shared.u32 [tile], 7;\nbarrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;\n{TILE_0}\n\
         mov.u32 %r3, bar_a;\nmapa.shared::cluster.u32 %r3, %r3, 0;\n@%cta0 bra WAIT;\n\
         {LOAD}\nbar.warp.sync 0xffffffff;\n{ARRIVE_CTA}\nbra OVER;\n\
         WAIT:\n{WAIT_CTA}\n@!%p1 bra WAIT;\n@%first st.shared.u32 [tile], 8;\nOVER:\n{OVER}"
    )
}

/// The mbarrier is at `.cta` scope on both sides, and a fence at `.cluster` scope stands beside each.
pub fn fence_beside_cta_scope() -> String {
    let fence = "fence.acq_rel.cluster;";
    told_across(STORE, &format!("{fence}\n{ARRIVE_CTA}"), WAIT_CTA, &format!("{fence}\n{LOAD}"))
}

/// Cluster 0's second warp stores and fences, its first one sets the flag behind a CTA barrier; cluster 1's first warp sees it, and its second one
/// fences and loads behind one.
pub fn fenced_by_others() -> String {
    "setp.eq.u32 %p2, %t, 32;\n@!%cluster0 bra READ;\n@%p2 st.global.u32 [%out], 7;\nfence.acq_rel.gpu;\nbar.sync 0;\n\
     @%first st.relaxed.gpu.global.u32 [%out+64], 1;\nbra END;\n\
     READ:\n@%warp1 bra MEET;\nGET:\nld.relaxed.gpu.global.u32 %r2, [%out+64];\nsetp.eq.u32 %p1, %r2, 0;\n@%p1 bra GET;\n\
     MEET:\nbar.sync 0;\n@!%p2 bra END;\nfence.acq_rel.gpu;\nld.global.u32 %r3, [%out];\nEND:"
        .into()
}
