//! Bugs that nobody reported, of the kinds that people who learn to write such kernels make, and people who write compilers for them.

use super::case::{Base, Case, Expect, case, ring_launch};
use Base::{OneTile, Pair, Ring, Small};
use Expect::{Among, Finds, Refused, Wrong};
use emulator::{Launch, Param, TensorMap};

/// 1024 bytes by a plain bulk copy.
const BULK: &str = "\
@!%p0 bra MADE;
mbarrier.init.shared::cta.b64 [bar_a], 1;
fence.mbarrier_init.release.cluster;
mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar_a], 1024; // @expect
cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [tile], [%rd1], 1024, [bar_a]; // @copy
MADE:
bar.sync 0;
WAIT:
mbarrier.try_wait.parity.shared::cta.b64 %p2, [bar_a], 0;
@!%p2 bra WAIT;
ld.shared.u32 %r3, [tile];
mul.wide.u32 %rd3, %r0, 4;
add.s64 %rd3, %rd3, %rd0;
st.global.u32 [%rd3], %r3;";

/// Each thread copies 16 bytes, and reads what its neighbour copied.
const COPIED: &str = "\
shl.b32 %r3, %r0, 4;
mov.u32 %r4, tile;
add.u32 %r5, %r4, %r3;
cvt.u64.u32 %rd3, %r3;
add.s64 %rd3, %rd3, %rd1;
cp.async.cg.shared.global [%r5], [%rd3], 16; // @copy
cp.async.commit_group;
cp.async.wait_group 0; // @wait
bar.sync 0; // @meet
xor.b32 %r6, %r3, 512;
add.u32 %r6, %r6, %r4;
ld.shared.u32 %r7, [%r6]; // @ld
mul.wide.u32 %rd4, %r0, 4;
add.s64 %rd4, %rd4, %rd0;
st.global.u32 [%rd4], %r7;";

/// Twice all of tensor memory, one after the other.
const TWICE: &str = "\
setp.ne.u32 %p1, %r1, 0;
@%p1 bra END;
tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [slot], 512; // @alloc
ld.shared.b32 %r3, [slot];
tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r3, 512; // @free
tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [slot], 512; // @alloc_again
ld.shared.b32 %r3, [slot];
tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r3, 512;
END:";

/// CTA 1 writes a number and raises a flag; CTA 0 waits for it, and reads the number.
const FLAG: &str = "\
@!%p0 bra END;
setp.eq.u32 %p1, %r2, 0;
@%p1 bra LOOK;
st.global.u32 [%rd0], 7; // @st
st.release.gpu.global.u32 [%rd0+64], 1; // @raise
bra END;
LOOK:
ld.acquire.gpu.global.u32 %r3, [%rd0+64]; // @look
setp.eq.u32 %p2, %r3, 0;
@%p2 bra LOOK;
ld.global.u32 %r4, [%rd0]; // @ld
st.global.u32 [%rd0+128], %r4;
END:";

/// An accumulator that begins with what the threads store to it.
const BIAS: &[(&str, &str)] = &[
    (
        "    fence.proxy.async.shared::cta;\n    bar.sync 0;\n",
        "    fence.proxy.async.shared::cta;
    and.b32 %r40, %r1, 3;
    shl.b32 %r40, %r40, 21;
    add.u32 %r41, %r2, %r40;
    mov.u32 %r42, 0;
    mov.u32 %r43, 0;
BIAS:
    tcgen05.st.sync.aligned.32x32b.x8.b32 [%r41], {%r42, %r42, %r42, %r42, %r42, %r42, %r42, %r42}; // @bias
    add.u32 %r41, %r41, 8;
    add.u32 %r43, %r43, 1;
    setp.lt.u32 %p7, %r43, 16;
    @%p7 bra BIAS;
    tcgen05.wait::st.sync.aligned; // @wait_st
    tcgen05.fence::before_thread_sync;
    bar.sync 0; // @biased
    tcgen05.fence::after_thread_sync;
",
    ),
    ("    setp.ne.u32 %p3, %r21, 0;", "    setp.eq.u32 %p3, %r21, %r21;"),
];

fn map(launch: &mut Launch, n: usize) -> &mut TensorMap {
    match &mut launch.params[n] {
        Param::TensorMap { map, .. } => map,
        other => panic!("{other:?}"),
    }
}

pub fn cases() -> Vec<Case> {
    let own = ("of our own", "not run on a GPU");
    vec![
        case(
            "c1",
            "accumulation is off for the first MMA of the kernel, not of each tile",
            own,
            Ring,
            &[("@first", "    or.b32 %r19, %r14, %r18;\n    or.b32 %r19, %r19, %r10;")],
            Finds(&[("undefined-value-stored", "@mma")]),
        ),
        case(
            "c2",
            "the accumulator is committed before the last MMAs",
            own,
            Ring,
            &[
                ("@commit_acc", ""),
                (
                    "STEP:\n",
                    "    add.u32 %r50, %r14, 1;\n    setp.eq.u32 %p10, %r50, %r4;\n    @%p10 tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%r22+32]; // <- here\nSTEP:\n",
                ),
            ],
            Finds(&[("mma-not-awaited", "@ld"), ("early-arrival", "// <- here")]),
        ),
        case(
            "c3",
            "the epilogue hands back the other accumulator",
            own,
            Ring,
            &[("@arrive_acc_empty", "    xor.b32 %r50, %r22, 8;\n    mbarrier.arrive.shared::cta.b64 _, [%r50+48];")],
            Among(&[("phase-overtaken", "@arrive_acc_empty"), ("hang", "@wait_acc_empty")]),
        ),
        case(
            "c4",
            "the epilogue does one tile more than there are",
            own,
            Ring,
            &[("OUT:\n    setp.ge.u32", "OUT:\n    setp.gt.u32")],
            Finds(&[("hang", "@wait_acc_full")]),
        ),
        case(
            "c5",
            "the multiplier uses one stage less of each tile than the producer loads",
            own,
            Ring,
            &[("@multiplier_more", "    sub.u32 %r50, %r4, 1;\n    setp.lt.u32 %p6, %r14, %r50;")],
            Finds(&[("hang", "@wait_empty")]),
        ),
        case(
            "c6",
            "M of one CTA in the instruction descriptor of a pair: half of the accumulator's columns stay empty",
            own,
            Pair,
            &[("0x10400010", "0x08400010")],
            Finds(&[("instruction-descriptor", "tcgen05.mma.cta_group::2")]),
        ),
        case(
            "c7",
            "a swizzle of four rows by hand",
            own,
            Ring,
            &[("    and.b32 %r26, %r0, 7;", "    and.b32 %r26, %r0, 3;")],
            Finds(&[("swizzle-mismatch", "st.shared.v4.b32 [%r43]")]),
        ),
        case(
            "c8",
            "a swizzle of 8-byte chunks by hand",
            own,
            Ring,
            &[("    shl.b32 %r26, %r26, 4;", "    shl.b32 %r26, %r26, 3;")],
            Finds(&[("misaligned-address", "@st_tile")]),
        ),
        case(
            "c9",
            "a bulk copy of 1000 bytes",
            own,
            Small(1, 64, BULK),
            &[(
                "@copy",
                "cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [tile], [%rd1], 1000, [bar_a];",
            )],
            Finds(&[("bulk-size", "@copy")]),
        ),
        case(
            "c10",
            "a bulk copy from an address that is a multiple of 8",
            own,
            Small(1, 64, BULK),
            &[(
                "@copy",
                "cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [tile], [%rd1+8], 1024, [bar_a];",
            )],
            Finds(&[("misaligned-address", "@copy")]),
        ),
        case(
            "c11",
            "cp.async without a wait",
            own,
            Small(1, 64, COPIED),
            &[("@wait", "")],
            Finds(&[("race-shared", "@ld"), ("race-shared", "@copy")]),
        ),
        case(
            "c12",
            "cp.async, and the wait behind the barrier",
            own,
            Small(1, 64, COPIED),
            &[("@wait", ""), ("@meet", "{}\ncp.async.wait_group 0;")],
            Finds(&[("race-shared", "@ld"), ("race-shared", "@copy")]),
        ),
        case(
            "c13",
            "the proxy fence before the stores, not behind them",
            own,
            OneTile,
            &[("    fence.proxy.async.shared::cta;\n", ""), ("COPY:\n", "    fence.proxy.async.shared::cta;\nCOPY:\n")],
            Finds(&[("missing-proxy-fence", "tcgen05.mma")]),
        ),
        case(
            "c14",
            "elect.sync with a mask that lacks some of the lanes that execute it",
            own,
            OneTile,
            &[(
                "elect.sync _|%p1, 0xffffffff;\n    @!%p1 bra ISSUED;",
                "elect.sync _|%p1, 0x0000ffff;\n    @!%p1 bra ISSUED;",
            )],
            Finds(&[("*", "elect.sync _|%p1, 0x0000ffff;")]),
        ),
        case(
            "c15",
            "no room for the barriers",
            own,
            Ring,
            &[],
            Finds(&[("mbarrier-address", "@init_full_0"), ("out-of-bounds", "@alloc")]),
        )
        .launched(|launch| launch.dynamic_shared = 65536),
        case(
            "c16",
            "a branch on a predicate that nobody set",
            own,
            Ring,
            &[("    setp.ne.u32 %p8, %r0, 0;\n", "")],
            Finds(&[("undefined-operand", "%p8 bra STORED;")]),
        ),
        case(
            "c17",
            "tensor memory allocated in a loop and not freed in it",
            own,
            Small(1, 64, TWICE),
            &[("@free", "")],
            Finds(&[("hang", "@alloc_again")]),
        ),
        case(
            "c18",
            "96 columns of tensor memory",
            own,
            Ring,
            &[("@alloc", "    tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r3+64], 96;")],
            Finds(&[("tensor-columns", "@alloc")]),
        ),
        Case {
            first: BIAS.to_vec(),
            ..case(
                "c19",
                "an accumulator's first value stored without tcgen05.wait::st",
                own,
                OneTile,
                &[("@wait_st", "")],
                Finds(&[("race-tensor", "tcgen05.mma"), ("race-tensor", "@bias")]),
            )
        },
        case(
            "c20",
            "a flag raised without release",
            own,
            Small(2, 32, FLAG),
            &[("@raise", "st.relaxed.gpu.global.u32 [%rd0+64], 1;")],
            Finds(&[("race-global", "@ld"), ("race-global", "@st")]),
        ),
        case(
            "c21",
            "a flag of CTA scope between two CTAs",
            own,
            Small(2, 32, FLAG),
            &[
                ("@raise", "st.release.cta.global.u32 [%rd0+64], 1;"),
                ("@look", "ld.acquire.cta.global.u32 %r3, [%rd0+64];"),
            ],
            Finds(&[
                ("race-global", "@ld"),
                ("race-global", "@st"),
                ("race-global", "@look"),
                ("race-global", "@raise"),
            ]),
        ),
        case(
            "c22",
            "a role waits at the barrier of the whole CTA",
            own,
            Ring,
            &[("@tile_free", "    bar.sync 0;")],
            Finds(&[("hang", "@tile_free"), ("hang", "@wait_acc_empty"), ("hang", "@all_done")]),
        )
        .launched(|launch| *launch = ring_launch(640, 192)),
        case(
            "c23",
            "the MMA thread arrives at the stage's barrier itself, without a commit",
            own,
            Ring,
            &[("@commit_empty", "    mbarrier.arrive.shared::cta.b64 _, [%r15+16];")],
            Finds(&[("operand-overwritten", "@load_a"), ("early-arrival", "@commit_empty")]),
        ),
        case(
            "c24",
            "a wait for the other stage",
            own,
            Ring,
            &[(
                "@wait_full",
                "    xor.b32 %r50, %r15, 8;\n    mbarrier.try_wait.parity.shared::cta.b64 %p4, [%r50], %r12;",
            )],
            Among(&[("operand-not-ready", "@mma"), ("hang", "@wait_full")]),
        ),
        case(
            "c25",
            "the bytes of B count on the other stage's barrier",
            own,
            Ring,
            &[(
                "@load_b",
                "    xor.b32 %r50, %r15, 8;\n    cp.async.bulk.tensor.2d.shared::cta.global.tile.mbarrier::complete_tx::bytes [%r17], [%rd1, {%r18, %r19}], [%r50];",
            )],
            Among(&[
                ("operand-not-ready", "@mma"),
                ("hang", "@wait_full"),
                ("hang", "@expect"),
                ("phase-completed-early", "*"),
            ]),
        ),
        case(
            "c26",
            "both CTAs of a pair multiply",
            own,
            Pair,
            &[("MULTIPLIER:\n    @!%p1 bra EPILOGUE;", "MULTIPLIER:")],
            Finds(&[("hang", "%p4, [%r13], %r11"), ("pair-leader", "tcgen05.mma.cta_group::2")]),
        ),
        case(
            "c27",
            "more bytes announced than a barrier can count",
            own,
            Ring,
            &[("@expect", "    mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r15], 1048576;")],
            Finds(&[("mbarrier-bytes", "@expect")]),
        ),
        case(
            "c28",
            "a role for one warp, taken by two",
            own,
            Ring,
            &[("    setp.eq.u32 %p3, %r1, 4;", "    setp.ge.u32 %p3, %r1, 4;")],
            Finds(&[("mbarrier-overflow", "@expect")]),
        ),
        case(
            "c29",
            "a box of half a tile's rows, the bytes announced for it",
            own,
            Ring,
            &[("@expect", "    mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r15], 16384;")],
            Finds(&[("undefined-value-stored", "@mma")]),
        )
        .launched(|launch| map(launch, 0).box_dims = vec![64, 64]),
        case("c30", "a store's box of half a tile's rows", own, Ring, &[], Wrong)
            .launched(|launch| map(launch, 2).box_dims = vec![64, 64]),
        case(
            "c31",
            "the producer's step to its next tile is in threads",
            own,
            Ring,
            &[("    add.u32 %r10, %r10, %r7;\n    bra LOAD_TILE;", "    add.u32 %r10, %r10, 192;\n    bra LOAD_TILE;")],
            Finds(&[("hang", "@wait_full")]),
        ),
        case("c32", "a kernel of pairs launched in clusters of four", own, Pair, &[], Refused("launch", "cluster"))
            .launched(|launch| (launch.grid, launch.cluster) = ([4, 1, 1], [4, 1, 1])),
    ]
}
