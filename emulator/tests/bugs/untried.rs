//! Instructions that judges had left out: a right kernel for each, as the ISA describes it, and the same with one mistake.

use super::case::{Base, Case, Expect, Result, case, edited, first, says};
use super::tried_more_kernels::FILL;
use super::untried_kernels::*;
use Base::{Clusters, Grid, Pair, Small};
use Expect::{Among, Finds, Notes, Refused};

type Edits = &'static [(&'static str, &'static str)];

fn of(row: &'static str, what: &'static str, base: Base, edits: Edits, expect: Expect) -> Case {
    case(row, what, ("of our own", "not run on a GPU"), base, edits, expect)
}

pub fn cases() -> Vec<Case> {
    [
        maps(),
        twice(),
        launch_control(),
        pairs(),
        factors(),
        sums(),
        sums_elsewhere(),
        sent(),
        counted(),
        lanes_and_registers(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Tensor maps that a kernel makes (PTX ISA, tensormap.replace, tensormap.cp_fenceproxy, 9.7.13.4).
fn maps() -> Vec<Case> {
    let made = Small(1, 64, MADE_MAP);
    let another = Small(2, 32, MAP_OF_ANOTHER);
    let far = Grid(2, 32, MAP_OF_ANOTHER_CLUSTER);
    let missing = || Finds(&[("tensor-map-not-acquired", "@copy")]);
    vec![
        of("u1", "nobody acquires the map", made, &[("@acquire", "")], missing()),
        of(
            "u2",
            "another warp than the copy's acquires the map, and tells nobody",
            made,
            &[("@acquire", ""), ("@met", "{}\n@%p0 fence.proxy.tensormap::generic.acquire.gpu [%rd5], 128;")],
            missing(),
        ),
        of(
            "u3",
            "the map is acquired before the barrier",
            made,
            &[("@acquire", ""), ("@met", "@%p1 fence.proxy.tensormap::generic.acquire.gpu [%rd5], 128;\n{}")],
            missing(),
        ),
        of(
            "u4",
            "the map is copied by plain stores",
            made,
            &[(
                "@publish",
                "ld.shared.u32 %r11, [%r7+4096];\nadd.s64 %rd7, %rd5, %rd3;\nsub.s64 %rd7, %rd7, %rd2;\nst.global.u32 [%rd7], %r11;",
            )],
            missing(),
        ),
        of(
            "u5",
            "a dimension of 64 bits",
            made,
            &[("@dim", "@%p0 tensormap.replace.tile.global_dim.shared::cta.b1024.b64 [tile+4096], 1, %rd4;")],
            Finds(&[("ptx-semantics", "@dim")]),
        ),
        of(
            "u6",
            "the rank itself, not one less",
            made,
            &[("@dim", "@%p0 tensormap.replace.tile.rank.shared::cta.b1024.b32 [tile+4096], 2;")],
            Finds(&[("tensor-map", "@copy")]),
        ),
        of(
            "u7",
            "the map is published again while a copy may be reading it",
            made,
            &[(
                "@met",
                "{}\n@%p1 bra USE;\ntensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%rd5], [%r8], 128; // @twice\nUSE:",
            )],
            Finds(&[("race-global", "@twice"), ("race-global", "@copy")]),
        ),
        of(
            "u8",
            "the warps do not meet",
            made,
            &[("@met", "")],
            Finds(&[("race-global", "@publish"), ("race-global", "@copy"), ("tensor-map", "@copy")]),
        ),
        of("u9", "the writer releases nothing", another, &[("@release", "")], missing()),
        of(
            "u10",
            "the writer's release reaches its own CTA",
            another,
            &[("@release", "fence.proxy.tensormap::generic.release.cta;")],
            missing(),
        ),
        of(
            "u11",
            "the reader acquires from its own CTA",
            another,
            &[("@acquire", "fence.proxy.tensormap::generic.acquire.cta [%rd5], 128;")],
            missing(),
        ),
        of(
            "u12",
            "the map is changed behind the release",
            another,
            &[
                ("@replace", ""),
                ("@release", "{}\n@%p0 tensormap.replace.tile.global_address.global.b1024.b64 [%rd5], %rd4;"),
            ],
            missing(),
        ),
        of(
            "u13",
            "a generic proxy fence in place of the map's release",
            another,
            &[("@release", "fence.proxy.async.global;")],
            missing(),
        ),
        of(
            "u14",
            "the reader acquires from its own CTA what another cluster has written",
            far,
            &[("@acquire", "fence.proxy.tensormap::generic.acquire.cta [%rd5], 128;")],
            missing(),
        ),
        of(
            "u15",
            "the reader acquires from its own cluster what another one has written",
            far,
            &[("@acquire", "fence.proxy.tensormap::generic.acquire.cluster [%rd5], 128;")],
            missing(),
        ),
    ]
}

/// More of them, and allocations (PTX ISA, tcgen05.alloc).
fn twice() -> Vec<Case> {
    let map = Small(1, 32, MADE_TWICE);
    let columns = Small(1, 32, ALLOCATED_TWICE);
    vec![
        of(
            "u110",
            "the map is acquired once, before it is changed",
            map,
            &[("@acquire", ""), ("NEXT:", "fence.proxy.tensormap::generic.acquire.cta [%rd5], 128;\nNEXT:")],
            Finds(&[("tensor-map-not-acquired", "@copy")]),
        ),
        of(
            "u111",
            "the map is changed before the copy is over, and the copies are waited for behind",
            map,
            &[("@wait", "mbarrier.test_wait.parity.shared::cta.b64 %p3, [bar_a], %r9;\nsetp.eq.u32 %p3, %r0, %r0;")],
            Finds(&[("race-global", "*"), ("race-shared", "*"), ("mbarrier-overflow", "*")]),
        ),
        of(
            "u112",
            "the map is changed through the generic proxy, in shared memory, by a copy that is not published",
            map,
            &[("@publish", "")],
            Finds(&[("tensor-map", "@copy")]),
        ),
        of(
            "u113",
            "the second allocation is larger",
            columns,
            &[
                ("@one", "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [slot], 32;"),
                ("@two", "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [response], 64;"),
                ("@free", "tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r4, 64;"),
                ("@free2", "tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r3, 32;"),
            ],
            Notes("tensor-columns", "@two", Result::Right),
        ),
        of(
            "u114",
            "one of two allocations is freed twice",
            columns,
            &[("@free", "tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r3, 64;")],
            Finds(&[("tensor-free-mismatch", "@free2")]),
        ),
    ]
}

/// Requests whose response goes to a whole cluster (PTX ISA, clusterlaunchcontrol.try_cancel).
fn launch_control() -> Vec<Case> {
    let taken = Clusters(12, 2, TAKEN_BY_TWO);
    vec![
        of(
            "u20",
            "no proxy fence between the reads of a response and the next request",
            taken,
            &[("@pf", "")],
            Finds(&[("race-shared", "@ask")]),
        ),
        of(
            "u29",
            "the same, where the arrival releases",
            taken,
            &[("@pf", ""), ("@arrive", "barrier.cluster.arrive.aligned;")],
            Notes("missing-proxy-fence-before-overwrite", "@ask", Result::Right),
        ),
        of(
            "u21",
            "the next request does not wait until both CTAs have read the response",
            taken,
            &[("@cwait", ""), ("NEXT:", "barrier.cluster.wait.acquire.aligned;\nNEXT:"), ("@arrive", "")],
            Finds(&[("race-shared", "@ask"), ("race-shared", "@ld")]),
        ),
        of(
            "u22",
            "twice the bytes of a response are expected",
            taken,
            &[("@expect", "@%p0 mbarrier.arrive.expect_tx.relaxed.cluster.shared::cta.b64 _, [bar_a], 32;")],
            Finds(&[("hang", "*")]),
        ),
        of(
            "u23",
            "only the CTA that asks expects a response",
            taken,
            &[("@expect", "@%p1 mbarrier.arrive.expect_tx.relaxed.cluster.shared::cta.b64 _, [bar_a], 16;")],
            Finds(&[("hang", "*")]),
        ),
        of(
            "u24",
            "the response goes to the CTA that asks alone",
            taken,
            &[(
                "@ask",
                "@%p1 clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.b128 [response], [bar_a];",
            )],
            Finds(&[("hang", "*")]),
        ),
        of(
            "u25",
            "both CTAs ask for both",
            taken,
            &[(
                "@ask",
                "@%p0 clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.multicast::cluster::all.b128 [response], [bar_a];",
            )],
            Finds(&[("race-shared", "@ask"), ("race-shared", "@ld"), ("phase-completed-early", "*"), ("hang", "*")]),
        ),
        of(
            "u26",
            "the parity of the wait never changes",
            taken,
            &[("@flip", "")],
            Finds(&[("mbarrier-overflow", "@expect"), ("race-shared", "@ld")]),
        ),
        of(
            "u27",
            "CTA 1 ends when it has its first response, CTA 0 asks on for both",
            taken,
            &[("@first", "{}\nsetp.eq.u32 %p4, %r2, 1;\n@%p4 bra END;")],
            Among(&[("*", "@ask"), ("*", "@arrive"), ("*", "@cwait")]),
        ),
        of(
            "u28",
            "nobody waits for the response",
            taken,
            &[("@wait", "setp.eq.u32 %p2, %r0, %r0;")],
            Finds(&[("race-shared", "@ld"), ("race-shared", "@ask"), ("undefined-value-stored", "*")]),
        ),
    ]
}

/// Pairs of CTAs (PTX ISA 9.7.16.1, 9.7.16.5, tcgen05.alloc).
fn pairs() -> Vec<Case> {
    const ALLOC: &str = "    tcgen05.alloc.cta_group::2.sync.aligned.shared::cta.b32 [%r4+40], 256;";
    const FREE: &str = "    tcgen05.dealloc.cta_group::2.sync.aligned.b32 %r6, 256;";
    const MMA: &str = "    tcgen05.mma.cta_group::2.kind::f16 [%r6], %rd2, %rd3, 0x10400010, %p7;";
    const RING: &str =
        "    tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 [%r14], %h0;";
    vec![
        of(
            "u30",
            "CTA 0 alone allocates for the pair",
            Pair,
            &[(ALLOC, "    @!%p1 bra ALLOCATED;\n{} // @alloc")],
            Finds(&[("hang", "@alloc"), ("pair-leader", "@alloc")]),
        ),
        of(
            "u31",
            "each CTA allocates for itself, the MMA is of the pair",
            Pair,
            &[(ALLOC, "    tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r4+40], 256; // @alloc")],
            Finds(&[
                ("pair-leader", "*"),
                ("ptx-semantics", "*"),
                ("tensor-address", "*"),
                ("tensor-free-mismatch", "*"),
            ]),
        ),
        of(
            "u32",
            "each CTA frees for itself what both have got",
            Pair,
            &[(FREE, "    tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r6, 256; // @free")],
            Finds(&[("pair-leader", "*"), ("ptx-semantics", "*"), ("tensor-free-mismatch", "*")]),
        ),
        of(
            "u33",
            "CTA 0 alone frees",
            Pair,
            &[(FREE, "    @%p1 bra FREE;\n    bra FREED;\nFREE:\n{} // @free")],
            Finds(&[("hang", "@free"), ("pair-leader", "@free"), ("tensor-memory-leak", "*")]),
        ),
        of(
            "u34",
            "the commit is of one CTA, the MMA of both",
            Pair,
            &[(
                RING,
                "    tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 [%r14], %h0; // @commit",
            )],
            Finds(&[("*", "*")]),
        ),
        of(
            "u35",
            "the MMA is of one CTA, the rest of both",
            Pair,
            &[(MMA, "    tcgen05.mma.cta_group::1.kind::f16 [%r6], %rd2, %rd3, 0x08400010, %p7; // @mma")],
            Finds(&[("*", "*")]),
        ),
        of(
            "u36",
            "the right to allocate is given back by one CTA",
            Pair,
            &[(
                "    tcgen05.relinquish_alloc_permit.cta_group::2.sync.aligned;",
                "    tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned; // @permit",
            )],
            Finds(&[("pair-leader", "*"), ("ptx-semantics", "*")]),
        ),
        of(
            "u37",
            "the leader expects its own half of the bytes: the peer's may not be there",
            Pair,
            &[("[%r13], 65536;", "[%r13], 32768; // @expect")],
            Finds(&[("phase-completed-early", "*"), ("operand-not-ready", "*"), ("hang", "*")]),
        ),
    ]
}

/// Copies to tensor memory (PTX ISA 9.7.16.6.2, 9.7.16.6.5, 9.7.16.9).
fn factors() -> Vec<Case> {
    let copied = Small(1, 128, COPIED_FACTORS);
    vec![
        of("u40", "no proxy fence before the copy", copied, &[("@pf", "")], Finds(&[("missing-proxy-fence", "@cp")])),
        of(
            "u41",
            "the tile is written again before the copy has read it",
            copied,
            &[("@again", ""), ("WAIT:", "st.shared.u32 [%r5], %r3; // @early\nWAIT:")],
            Finds(&[
                ("operand-overwritten", "@early"),
                ("operand-overwritten", "@cp"),
                ("race-shared", "@early"),
                ("race-shared", "@cp"),
            ]),
        ),
        of(
            "u42",
            "nobody waits for the copy",
            copied,
            &[("@wait", "setp.eq.u32 %p3, %r0, %r0;"), ("@again", "")],
            Finds(&[("race-tensor", "@load"), ("mma-not-awaited", "@load"), ("race-tensor", "@cp")]),
        ),
        of(
            "u43",
            "the commit stands before the copy",
            copied,
            &[
                ("@cp", ""),
                ("@commit", "{}\ntcgen05.cp.cta_group::1.32x128b.warpx4 [%r6], %rd3; // @late"),
                ("@again", ""),
            ],
            Finds(&[("race-tensor", "@load"), ("mma-not-committed", "@load"), ("mma-not-committed", "@late")]),
        ),
        of(
            "u44",
            "32 rows for two warps",
            copied,
            &[("@cp", "tcgen05.cp.cta_group::1.32x128b.warpx2::02_13 [%r6], %rd3;")],
            Refused("ptx-semantics", "warpx4"),
        ),
        of(
            "u45",
            "64 rows without a word on the warps",
            copied,
            &[("@cp", "tcgen05.cp.cta_group::1.64x128b [%r6], %rd3;")],
            Refused("ptx-semantics", "warpx2::02_13"),
        ),
        of(
            "u46",
            "all lanes of the warp copy",
            copied,
            &[("@one", "@%p1 bra WAIT;"), ("@commit", "@%p0 {}")],
            Among(&[("issued-by-many-lanes", "@cp")]),
        ),
        of(
            "u47",
            "beyond the columns that were allocated",
            copied,
            &[("@cp", "add.u32 %r9, %r6, 30;\ntcgen05.cp.cta_group::1.32x128b.warpx4 [%r9], %rd3;")],
            Finds(&[("tensor-address", "@cp")]),
        ),
        of(
            "u48",
            "a copy of the pair in a CTA alone",
            copied,
            &[("@cp", "tcgen05.cp.cta_group::2.32x128b.warpx4 [%r6], %rd3;")],
            Finds(&[("pair-leader", "@cp"), ("ptx-semantics", "@cp")]),
        ),
        of(
            "u49",
            "no fence of tensor memory behind the wait",
            copied,
            &[("@fa", "")],
            Notes("missing-tensor-fence", "@load", Result::Right),
        ),
    ]
}

/// Reductions by the TMA engine (PTX ISA, cp.reduce.async.bulk).
fn sums() -> Vec<Case> {
    let added = Grid(2, 64, ADDED_IN_BULK);
    vec![
        of("u50", "no proxy fence before the sum", added, &[("@pf", "")], Finds(&[("missing-proxy-fence", "@add")])),
        of(
            "u51",
            "the wait is for the reads of the source alone",
            added,
            &[("@done", "cp.async.bulk.wait_group.read 0;")],
            Finds(&[("race-global", "@ld"), ("race-global", "@add")]),
        ),
        of(
            "u52",
            "the group has no end: the wait is for nothing",
            added,
            &[("@group", "")],
            Finds(&[
                ("race-shared", "@again"),
                ("race-shared", "@add"),
                ("race-global", "@ld"),
                ("race-global", "@add"),
            ]),
        ),
        of(
            "u53",
            "the source is written again before it was read",
            added,
            &[("@group", "{}\nst.shared.u32 [tile], %r4; // @early")],
            Finds(&[("race-shared", "@early"), ("race-shared", "@add")]),
        ),
        of(
            "u54",
            "FP16 without .noftz",
            added,
            &[("@add", "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f16 [%rd0+1024], [tile], 256;")],
            Refused("ptx-semantics", ".add.noftz"),
        ),
        of(
            "u55",
            "eight bytes",
            added,
            &[("@add", "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.noftz.f16 [%rd0+1024], [tile], 8;")],
            Finds(&[("bulk-size", "@add")]),
        ),
        of(
            "u56",
            "the count is passed on without a release",
            added,
            &[("@release", "")],
            Finds(&[("race-global", "@ld"), ("race-global", "@add")]),
        ),
        of(
            "u57",
            "one of the CTAs stores where the other adds",
            added,
            &[("@group", "{}\nst.global.u32 [%rd0+1024], %r6; // @plain")],
            Finds(&[("race-global", "@plain"), ("race-global", "@add")]),
        ),
    ]
}

/// Reductions in the shared memory of another CTA (PTX ISA, cp.reduce.async.bulk).
fn sums_elsewhere() -> Vec<Case> {
    let base = Small(2, 32, ADDED_ELSEWHERE);
    vec![
        of("u100", "no proxy fence for the source", base, &[("@pf", "")], Finds(&[("missing-proxy-fence", "@add")])),
        of(
            "u101",
            "nobody waits for the sum",
            base,
            &[("@wait", "setp.eq.u32 %p2, %r0, %r0;")],
            Finds(&[("race-shared", "*")]),
        ),
        of(
            "u102",
            "half of the bytes are expected",
            base,
            &[("@expect", "mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar_a], 64;")],
            Finds(&[("hang", "*")]),
        ),
        of(
            "u103",
            "the mbarrier is the sender's",
            base,
            &[("@mapb", "mov.u32 %r8, %r5;")],
            Finds(&[("copy-barrier", "*")]),
        ),
        of(
            "u104",
            "a sum of 64-bit numbers with sign",
            base,
            &[(
                "@add",
                "@%p0 cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.add.s64 [%r7], [tile], 128, [%r8];",
            )],
            Refused("not-modelled", "add.s64"),
        ),
        of(
            "u105",
            "the source is written again before it was read",
            base,
            &[("@add", "{}\n@%p0 st.shared.u32 [tile], %r5; // @early")],
            Finds(&[("race-shared", "@early"), ("race-shared", "@add")]),
        ),
        of(
            "u106",
            "what the sums are added to is not told",
            base,
            &[("@carr", "barrier.cluster.arrive.relaxed.aligned;")],
            Finds(&[("race-shared", "@add"), ("race-shared", "@base"), ("missing-proxy-fence", "@add")]),
        ),
    ]
}

/// Stores and arrivals at another CTA (PTX ISA, st.async, red.async, mapa, mbarrier).
fn sent() -> Vec<Case> {
    let sent = Small(2, 32, SENT);
    let told = Small(2, 32, TOLD);
    let exchanged = Small(2, 32, EXCHANGED);
    vec![
        of(
            "u60",
            "the bytes of the stores alone are expected",
            sent,
            &[("@expect", "mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar_a], 128;")],
            Finds(&[
                ("phase-completed-early", "*"),
                ("race-shared", "@ld"),
                ("race-shared", "@ld2"),
                ("mbarrier-overflow", "*"),
            ]),
        ),
        of(
            "u61",
            "the mbarrier is that of the sender",
            sent,
            &[("@mapb", "mov.u32 %r8, %r5;")],
            Finds(&[("copy-barrier", "@send")]),
        ),
        of(
            "u62",
            "the CTAs do not meet before the stores",
            sent,
            &[("@carr", ""), ("@cwait", "")],
            Finds(&[
                ("mbarrier-init-unordered", "@send"),
                ("mbarrier-not-initialised", "@send"),
                ("race-shared", "*"),
                ("cta-not-started", "@send"),
            ]),
        ),
        of(
            "u63",
            "nobody waits for what is sent",
            sent,
            &[("@wait", "setp.eq.u32 %p2, %r0, %r0;")],
            Finds(&[("race-shared", "*")]),
        ),
        of(
            "u64",
            "the cluster barrier is relaxed, and what the sum begins with is not told",
            sent,
            &[("@carr", "barrier.cluster.arrive.relaxed.aligned;")],
            Finds(&[("race-shared", "@add"), ("race-shared", "@base")]),
        ),
        of(
            "u65",
            "the initialisation is not fenced, and the cluster barrier is relaxed",
            sent,
            &[("@fi", ""), ("@base", ""), ("@add", "{}"), ("@carr", "barrier.cluster.arrive.relaxed.aligned;")],
            Finds(&[("mbarrier-init-unordered", "*")]),
        ),
        of(
            "u66",
            "the wait is of the CTA, the stores come from another one",
            told,
            &[("@wait", "mbarrier.try_wait.parity.acquire.cta.shared::cta.b64 %p2, [bar_a], 0;")],
            Finds(&[("race-shared", "@ld"), ("race-shared", "@st")]),
        ),
        of(
            "u67",
            "the arrival is at the scope of the CTA",
            told,
            &[("@arrive", "mbarrier.arrive.release.cta.shared::cluster.b64 _, [%r8];")],
            Finds(&[("race-shared", "@ld"), ("race-shared", "@st")]),
        ),
        of(
            "u68",
            "the arrival is relaxed",
            told,
            &[("@arrive", "mbarrier.arrive.relaxed.cluster.shared::cluster.b64 _, [%r8];")],
            Finds(&[("race-shared", "@ld"), ("race-shared", "@st")]),
        ),
        of(
            "u69",
            "the arrivals of a warp are counted as one",
            told,
            &[("@init", "mbarrier.init.shared::cta.b64 [bar_a], 1;")],
            Finds(&[("mbarrier-overflow", "@arrive"), ("mbarrier-split", "@arrive")]),
        ),
        of(
            "u70",
            "a wait for an mbarrier of another CTA",
            told,
            &[("@wait", "mbarrier.try_wait.parity.acquire.cluster.shared::cluster.b64 %p2, [bar_a], 0;")],
            Finds(&[("ptx-semantics", "@wait")]),
        ),
        of(
            "u71",
            "no fence before the relaxed arrival",
            exchanged,
            &[("@fence", "")],
            Finds(&[("race-shared", "@ld"), ("race-shared", "@st")]),
        ),
        of(
            "u72",
            "the fence is of the CTA",
            exchanged,
            &[("@fence", "fence.acq_rel.cta;")],
            Finds(&[("race-shared", "@ld"), ("race-shared", "@st")]),
        ),
        of(
            "u73",
            "a CTA may end before the other has read its word",
            exchanged,
            &[("@arrive2", ""), ("@wait2", "")],
            Finds(&[("remote-use-outlives-cta", "@ld")]),
        ),
        of(
            "u74",
            "a CTA that the cluster has not",
            exchanged,
            &[("@mapa", "mapa.shared::cluster.u32 %r5, %r3, 2;")],
            Finds(&[("out-of-bounds", "*"), ("ptx-semantics", "@mapa")]),
        ),
        of(
            "u75",
            "the address of another CTA is taken for the own",
            exchanged,
            &[("@ld", "ld.shared::cta.u32 %r6, [%r5];")],
            Finds(&[("out-of-bounds", "@ld"), ("ptx-semantics", "@ld")]),
        ),
    ]
}

/// Copies that threads issue and mbarriers count (PTX ISA, cp.async.mbarrier.arrive, mbarrier.test_wait).
fn counted() -> Vec<Case> {
    let counted = Small(1, 64, COPIED_AND_COUNTED);
    let state = Small(1, 64, COUNTED_BY_STATE);
    vec![
        of(
            "u80",
            "one arrival is expected of 64 copies' own",
            counted,
            &[("@init", "@%p0 mbarrier.init.shared::cta.b64 [bar_a], 1;")],
            Finds(&[("mbarrier-overflow", "*"), ("mbarrier-split", "*"), ("race-shared", "*")]),
        ),
        of(
            "u81",
            "without .noinc, an arrival adds the one that it waits for",
            counted,
            &[("@arrive", "cp.async.mbarrier.arrive.shared::cta.b64 [bar_a];")],
            Finds(&[("hang", "*")]),
        ),
        of(
            "u82",
            "the arrival stands before the copy",
            counted,
            &[("@arrive", ""), ("@copy", "cp.async.mbarrier.arrive.noinc.shared::cta.b64 [bar_a];\n{}")],
            Finds(&[("race-shared", "*")]),
        ),
        of(
            "u83",
            "a plain arrival, which does not wait for the copies",
            counted,
            &[("@arrive", "mbarrier.arrive.shared::cta.b64 _, [bar_a];")],
            Finds(&[("race-shared", "*")]),
        ),
        of(
            "u84",
            "a test that is not repeated: who hears no goes on all the same",
            counted,
            &[("@again", "@!%p2 add.u32 %r4, %r4, 0;")],
            Finds(&[("race-shared", "*")]),
        ),
        of(
            "u85",
            "a test whose answer nobody hears",
            counted,
            &[("@again", "")],
            Finds(&[("race-shared", "*"), ("wait-result-unread", "@wait")]),
        ),
        of(
            "u86",
            "with .noinc, the threads' own arrivals are too many",
            state,
            &[("@arrive", "cp.async.mbarrier.arrive.noinc.shared::cta.b64 [bar_a];")],
            Finds(&[("mbarrier-overflow", "*"), ("race-shared", "*"), ("hang", "*"), ("mbarrier-split", "*")]),
        ),
        of("u87", "nothing ties the copies to the mbarrier", state, &[("@arrive", "")], Finds(&[("race-shared", "*")])),
        of(
            "u88",
            "the test is relaxed",
            state,
            &[("@wait", "mbarrier.test_wait.relaxed.cta.shared::cta.b64 %p2, [bar_a], %rd5;")],
            Notes("missing-acquire", "*", Result::Right),
        ),
    ]
}

/// elect.sync, setmaxnreg and griddepcontrol.
fn lanes_and_registers() -> Vec<Case> {
    let elected = Small(1, 32, TWO_ELECTED);
    let registers = Small(1, 256, REGISTERS);
    vec![
        of(
            "u90",
            "a mask of lanes that went elsewhere",
            elected,
            &[("@first", "elect.sync %r4|%p2, -1;")],
            Finds(&[("*", "@first"), ("*", "@second")]),
        ),
        of(
            "u91",
            "a mask of the other half",
            elected,
            &[("@second", "elect.sync %r4|%p2, %r3;")],
            Finds(&[("*", "@second")]),
        ),
        of("u92", "an empty mask", elected, &[("@second", "elect.sync %r4|%p2, 0;")], Finds(&[("*", "@second")])),
        of(
            "u93",
            "registers are given back with no synchronisation since they were taken",
            registers,
            &[("@between", "")],
            Notes("setmaxnreg-unordered", "@back", Result::Right),
        ),
        of(
            "u94",
            "a warp synchronises, the warpgroup does not",
            registers,
            &[("@between", "bar.warp.sync -1;")],
            Notes("setmaxnreg-unordered", "@back", Result::Right),
        ),
        of(
            "u95",
            "more registers than were given back",
            registers,
            &[("@inc", "setmaxnreg.inc.sync.aligned.u32 240;")],
            Finds(&[("hang", "@inc")]),
        ),
        of("u96", "half a warp gives registers away", registers, &[("@dec", "@%p0 {}")], Finds(&[("*", "@dec")])),
        of(
            "u97",
            "a warp of each warpgroup does not take part",
            registers,
            &[("setp.ge.u32 %p1, %r0, 128;", "setp.ge.u32 %p1, %r0, 96;")],
            Finds(&[("register-count", "*")]),
        ),
    ]
}

/// The kernel in front of which another one runs gives no finding: what that one writes cannot be seen here.
#[test]
fn a_dependent_grid() {
    let report = super::case::run(Small(1, 64, DEPENDENT), &[], |_| {}, 400_000);
    assert!(report.is_clean(), "{}", super::case::told(&report.findings));
}

/// A wait that is asked once is told where it stands, not only by the race that it leads to.
#[test]
fn a_test_that_is_not_repeated() {
    let base = Small(1, 64, COPIED_AND_COUNTED);
    let found = first(base, &[("@again", "@!%p2 add.u32 %r4, %r4, 0;")], |_| {});
    says(&found, &["the wait is not repeated", "Repeat the wait for `bar_a`", "9.7.13.15.16"]);
    let found = first(base, &[("@again", "")], |_| {});
    says(&found, &["nothing reads the answer", "Repeat the wait for `bar_a`"]);
}

/// Two CTAs add to a third's memory, or each to the other's: what comes of it; and where addresses lie.
#[test]
fn values() {
    let words = |base: Base| {
        let report = super::case::run(base, &[], |_| {}, 400_000);
        assert!(report.is_clean(), "{}", super::case::told(&report.findings));
        let bytes = report.buffers[0].bytes.as_chunks::<4>().0;
        bytes.iter().map(|word| u32::from_le_bytes(*word)).collect::<Vec<_>>()
    };
    // 7, and what two CTAs add: 1 + the number of the word.
    let sums = words(Small(2, 32, ADDED_ELSEWHERE));
    assert!((0..32).all(|n| sums[n] == 7 + n as u32), "{sums:?}");
    assert_eq!(words(Small(2, 32, SPACES))[..2], [SPACES_SEEN; 2]);
}

/// The size of `st.bulk` may have 32 bits from PTX 9.0 on.
#[test]
fn a_fill_by_32_bits() {
    let narrow = [("mov.u64 %rd3, 256;", "mov.u32 %r6, 256;"), ("[%r3], %rd3, 0;", "[%r3], %r6, 0;")];
    let text = edited(&Small(1, 64, FILL).text(), &narrow);
    let Err(errors) = emulator::load(&text) else { panic!("PTX 8.7 takes 32 bits") };
    says(&errors[0], &["is a 32-bit register", "version 9.0 or later, this module has 8.7"]);
    let text = edited(&text, &[(".version 8.7", ".version 9.0")]);
    let program = super::common::load(&text);
    let report = super::common::run(&program, &Small(1, 64, FILL).launch(), None, 100_000);
    assert!(report.is_clean(), "{}", super::case::told(&report.findings));
}
