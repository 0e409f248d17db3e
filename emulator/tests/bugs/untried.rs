//! Instructions that judges had left out: a right kernel for each, as the ISA describes it, and the same with one mistake. Here those of maps,
//! launches, pairs of CTAs and scale factors; what CTAs, threads and warps give each other is in `untried_exchange.rs`.

use super::case::{Base, Case, Expect, Result, case};
use super::untried_exchange;
use super::untried_kernels::*;
use super::untried_maps::*;
use Base::{Clusters, Grid, Pair, Small};
use Expect::{Among, Finds, Notes, Refused};

type Edits = &'static [(&'static str, &'static str)];

pub fn of(row: &'static str, what: &'static str, base: Base, edits: Edits, expect: Expect) -> Case {
    case(row, what, ("of our own", "not run on a GPU"), base, edits, expect)
}

pub fn cases() -> Vec<Case> {
    [maps(), twice(), launch_control(), pairs(), factors(), untried_exchange::cases()].into_iter().flatten().collect()
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
            Finds(&[("race-global", "*"), ("wait-result-unread", "*"), ("mbarrier-overflow", "*")]),
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
