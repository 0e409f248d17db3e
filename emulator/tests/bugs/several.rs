//! Bugs that take more than one changed statement, or another statement than the one that is wrong: what an engineer who ports or tunes such a
//! kernel gets wrong. What should be said was written down before the emulator had seen them.

use super::case::{Base, Case, Expect, Result, case, ring_launch};
use Base::{LaunchControl, Pair, Ring, Small};
use Expect::{Among, Finds, Notes, Wrong};

pub fn cases() -> Vec<Case> {
    let own = ("of our own", "not run on a GPU");
    vec![
        Case {
            launch: |launch| launch.grid = [2, 1, 1],
            ..case(
                "d1",
                "the tile scheduler steps by one CTA too few: two CTAs write the same tiles",
                own,
                Ring,
                &[("    mov.u32 %r7, %nctaid.x;\n", "    mov.u32 %r7, %nctaid.x;\n    sub.u32 %r7, %r7, 1;\n")],
                Notes("same-value-written-twice", "@store", Result::Right),
            )
        },
        case(
            "d2",
            "the multiplier has one stage, the producer two",
            own,
            Ring,
            &[("@next_stage_multiplier", ""), ("@flip_multiplier", "    xor.b32 %r12, %r12, 1;")],
            Finds(&[("hang", "@wait_empty")]),
        ),
        Case {
            launch: |launch| {
                *launch = ring_launch(384, 160);
                launch.params[3] = emulator::Param::U32(2);
            },
            ..case("d3", "the rest of K is left out: tiles of K rounded down", own, Ring, &[], Wrong)
        },
        Case {
            launch: |launch| *launch = crate::common::pair::launch(256, 320),
            ..case(
                "d4",
                "the commit of every second stage leaves the peer out",
                own,
                Pair,
                &[(
                    "    mov.b16 %h0, 3;\n",
                    "    mov.b16 %h0, 3;\n    setp.eq.u32 %p12, %r10, 1;\n    @%p12 mov.b16 %h0, 1;\n",
                )],
                Finds(&[("hang", "[%r14], %r11;"), ("hang", "[%r14], %h0;")]),
            )
        },
        case(
            "d5",
            "CTA 1 is taken for the leader, but its barriers are not",
            own,
            Pair,
            &[("    setp.eq.u32 %p1, %r2, 0; ", "    setp.eq.u32 %p1, %r2, 1; ")],
            Finds(&[("hang", "expect_tx")]),
        ),
        case(
            "d6",
            "one parity for the ring and for the accumulators",
            own,
            Ring,
            &[("@wait_acc_empty", "    xor.b32 %r21, %r12, 1;\n{}")],
            Finds(&[
                ("accumulator-overwritten", "@mma"),
                ("hang", "@wait_acc_empty"),
                ("hang", "@loop_acc_empty"),
                ("phase-overtaken", "@wait_acc_empty"),
            ]),
        ),
        case(
            "d7",
            "two tiles for the stores, and a wait that lets three be in flight",
            own,
            Pair,
            &[
                // The other tile lies in the ring, which is over by then.
                (
                    "    add.u32 %r25, %r25, 65536;          // this thread's row of the tile\n",
                    "    mov.u32 %r52, 65536;\n",
                ),
                ("    add.u32 %r43, %r43, %r25;\n", "    add.u32 %r43, %r43, %r25;\n    add.u32 %r43, %r43, %r52;\n"),
                ("    add.u32 %r44, %r3, 65536;\n", "    add.u32 %r44, %r3, %r52;\n"),
                ("    cp.async.bulk.wait_group.read 0;\n", "    cp.async.bulk.wait_group.read 2; // @wait\n"),
                ("    add.u32 %r28, %r28, 64;\n", "    add.u32 %r28, %r28, 64;\n    xor.b32 %r52, %r52, 65536;\n"),
            ],
            Finds(&[("race-shared", "st.shared.v4"), ("race-shared", "bulk_group [%rd4")]),
        ),
        case(
            "d8",
            "the response of launch control is read before its mbarrier was waited for",
            own,
            LaunchControl,
            &[
                ("	ld.shared.b128 %q, [response];\n", ""),
                ("	and.b32 %r5, %r2, 1;\n", "	and.b32 %r5, %r2, 1;\n	ld.shared.b128 %q, [response]; // @early\n"),
            ],
            Finds(&[("race-shared", "@early")]),
        ),
        case(
            "d9",
            "an instruction descriptor for tiles of 128 columns, of which 64 are there",
            own,
            Ring,
            &[("0x08100010", "0x08200010")],
            Finds(&[("instruction-descriptor", "@mma")]),
        ),
        case(
            "d10",
            "a commit of a pair without multicast: the peer's stage is never free",
            own,
            Pair,
            &[(
                "    tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 [%r14], %h0;\n",
                "    tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.b64 [%r14]; // @commit\n",
            )],
            Finds(&[("hang", "LOAD_WAIT;"), ("hang", "[%r14], %r11;")]),
        ),
        case(
            "d11",
            "the halves of B are exchanged between the CTAs of a pair",
            own,
            Pair,
            &[(
                "    shl.b32 %r8, %r2, 7;                // row of B: 128 * rank\n",
                "    xor.b32 %r8, %r2, 1;\n    shl.b32 %r8, %r8, 7;\n",
            )],
            Wrong,
        ),
        Case {
            launch: |launch| launch.dynamic_shared += 1024,
            ..case(
                "d12",
                "the tile that goes out begins one row into its swizzle pattern, the threads count from its first row",
                own,
                Ring,
                &[
                    ("@tile_d", "    add.u32 %r25, %r25, 49280;"),
                    ("@tile_d_store", "    add.u32 %r44, %r2, 49280;"),
                    ("@barriers", "    add.u32 %r3, %r2, 66560;"),
                ],
                Finds(&[("swizzle-mismatch", "st.shared.v4.b32 [%r43]")]),
            )
        },
        case(
            "d13",
            "one warp waits for the accumulator, and the others do not wait for it",
            own,
            Ring,
            &[
                ("@wait_acc_full", "    setp.ne.u32 %p4, %r1, 0;\n    @%p4 bra SEEN;\n{}"),
                ("@fence_after_acc", "SEEN:\n{}"),
            ],
            Finds(&[("mma-not-awaited", "@ld"), ("wrong-phase", "@ld")]),
        ),
        case(
            "d14",
            "each operand announces its own bytes at a barrier that one arrival completes",
            own,
            Ring,
            &[
                ("@expect", "    mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r15], 16384; // @expect_a"),
                ("@load_b", "    mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r15], 8192; // @expect_b\n{}"),
            ],
            Finds(&[
                ("mbarrier-overflow", "@expect_b"),
                ("phase-overtaken", "@wait_full"),
                ("operand-not-ready", "@mma"),
                ("phase-completed-early", "@expect_b"),
            ]),
        ),
        case(
            "d15",
            "two lanes share the steps of K: their MMAs add to one accumulator",
            own,
            Ring,
            &[
                (
                    "    elect.sync _|%p2, 0xffffffff;\n    @!%p2 bra END; // @one_multiplier",
                    "    and.b32 %r50, %r0, 31;\n    setp.lt.u32 %p2, %r50, 2;\n    @!%p2 bra END; // @one_multiplier",
                ),
                ("@mma", "    and.b32 %r51, %r18, 1;\n    setp.eq.u32 %p10, %r51, %r50;\n    @%p10 {}"),
                ("mbarrier.init.shared::cta.b64 [%r3+16], 1;", "mbarrier.init.shared::cta.b64 [%r3+16], 2;"),
                ("mbarrier.init.shared::cta.b64 [%r3+24], 1;", "mbarrier.init.shared::cta.b64 [%r3+24], 2;"),
                ("mbarrier.init.shared::cta.b64 [%r3+32], 1;", "mbarrier.init.shared::cta.b64 [%r3+32], 2;"),
                ("mbarrier.init.shared::cta.b64 [%r3+40], 1;", "mbarrier.init.shared::cta.b64 [%r3+40], 2;"),
            ],
            Among(&[("race-tensor", "@mma")]),
        ),
        case(
            "d16",
            "the ring is three stages deep on the producer's side, and the third lies on the tile that goes out",
            own,
            Ring,
            &[
                (
                    "@next_stage_producer",
                    "    add.u32 %r11, %r11, 1;\n    setp.eq.u32 %p5, %r11, 3;\n    @%p5 mov.u32 %r11, 0;",
                ),
                (
                    "    setp.eq.u32 %p5, %r11, 0;\n    @%p5 xor.b32 %r12, %r12, 1; // @flip_producer",
                    "    @%p5 xor.b32 %r12, %r12, 1;",
                ),
            ],
            Finds(&[("bulk-shared-address", "@load_b")]),
        ),
        case(
            "d17",
            "the epilogue frees the columns of its own warp's part: every warp of the CTA does",
            own,
            Ring,
            &[("    @%p0 bra FREED;\n", "    setp.gt.u32 %p9, %r1, 3;\n    @%p9 bra FREED;\n")],
            Finds(&[("tensor-free-mismatch", "@dealloc"), ("tensor-freed-in-use", "@dealloc")]),
        ),
        case(
            "d18",
            "a store of D, and the barrier that says so to the next tile's threads is passed by all but the storing warp",
            own,
            Ring,
            &[("@tile_free", "    setp.eq.u32 %p9, %r1, 0;\n    @%p9 bar.arrive 1, 128;\n    @!%p9 bar.sync 1, 128;")],
            Finds(&[
                ("can-hang", "@tile_free"),
                ("can-hang", "@tile_written"),
                ("hang", "@tile_free"),
                ("hang", "@tile_written"),
            ]),
        ),
        case(
            "d19",
            "rows of D are stored with the rows of another tile's accumulator: the epilogue's accumulator flips before its wait",
            own,
            Ring,
            &[(
                "    mov.u32 %r20, 0; // accumulator\n    mov.u32 %r21, 0; // its parity\n",
                "    mov.u32 %r20, 1; // accumulator\n    mov.u32 %r21, 0; // its parity\n",
            )],
            Finds(&[
                ("hang", "@loop_acc_full"),
                ("hang", "@wait_acc_full"),
                ("hang", "@loop_acc_empty"),
                ("hang", "@wait_acc_empty"),
            ]),
        ),
        case(
            "d20",
            "the peer's CTA ends while the leader still multiplies out of its shared memory",
            own,
            Pair,
            &[
                ("DONE_WAIT:\n", "    @!%p1 bra OVER;\nDONE_WAIT:\n"),
                ("FREED:\n", "FREED:\n    ret;\nOVER:\n"),
                (
                    "    barrier.cluster.arrive.aligned;\n    barrier.cluster.wait.aligned;\n    @!%p0 bra FREED;\n    tcgen05.dealloc.cta_group::2.sync.aligned.b32 %r6, 256;\n",
                    "",
                ),
            ],
            Finds(&[("tensor-memory-leak", "*"), ("mma-outlives-cta", "*"), ("remote-use-outlives-cta", "*")]),
        ),
        case(
            "d21",
            "D's rows go by the pair, not by the CTA: both CTAs write the same tiles",
            own,
            Pair,
            &[(
                "    shl.b32 %r27, %r50, 1;\n    add.u32 %r27, %r27, %r2;\n    shl.b32 %r27, %r27, 7; ",
                "    shl.b32 %r27, %r50, 8; ",
            )],
            Finds(&[("race-global", "bulk_group [%rd4")]),
        ),
        case(
            "d22",
            "both accumulators share the barrier that says that they are free",
            own,
            Ring,
            &[
                (
                    "@wait_acc_empty",
                    "    mbarrier.try_wait.parity.shared::cta.b64 %p4, [%r3+48], %r21; // @wait_acc_empty",
                ),
                ("@arrive_acc_empty", "    mbarrier.arrive.shared::cta.b64 _, [%r3+48]; // @arrive_acc_empty"),
            ],
            Finds(&[("phase-overtaken", "@arrive_acc_empty")]),
        ),
        case(
            "d23",
            "the accumulator is handed back behind the first of its pieces",
            own,
            Ring,
            &[
                (
                    "@wait_ld",
                    "{}\n    setp.ne.u32 %p10, %r29, 0;\n    tcgen05.fence::before_thread_sync;\n    @!%p10 mbarrier.arrive.shared::cta.b64 _, [%r22+48]; // @early",
                ),
                ("@arrive_acc_empty", ""),
            ],
            Finds(&[("accumulator-overwritten", "@mma"), ("accumulator-overwritten", "@ld")]),
        ),
        case(
            "d24",
            "the last tile of K is half a tile, and its bytes are announced as such: TMA brings whole boxes",
            own,
            Ring,
            &[(
                "@expect",
                "    mov.u32 %r50, 24576;\n    add.u32 %r51, %r14, 1;\n    setp.eq.u32 %p10, %r51, %r4;\n    @%p10 mov.u32 %r50, 12288;\n    \
                 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r15], %r50; // @expect",
            )],
            Finds(&[
                ("hang", "@expect"),
                ("hang", "@wait_full"),
                ("mbarrier-bytes", "@expect"),
                ("mbarrier-bytes", "@load_b"),
            ]),
        ),
        // A wait that comes when others have been told is none for them.
        case(
            "d25",
            "tcgen05.wait::ld comes behind the arrival that hands the accumulator back, the registers were used before",
            own,
            Ring,
            &[("@wait_ld", ""), ("@arrive_acc_empty", "{}\n    tcgen05.wait::ld.sync.aligned;")],
            Notes("missing-wait-ld", "@ld", Result::Right),
        ),
        case(
            "d26",
            "the producer frees tensor memory when it has nothing more to load",
            own,
            Ring,
            &[("    @%p0 bra FREED;\n", "    setp.ne.u32 %p9, %r1, 4;\n    @%p9 bra FREED;\n"), ("@all_done", "")],
            Finds(&[("tensor-freed-in-use", "@dealloc")]),
        ),
        case(
            "d27",
            "what a warp stored is read behind a cluster barrier whose arrival is relaxed",
            own,
            Small(
                2,
                64,
                "@%p0 st.shared.u32 [tile], 7; // @st
barrier.cluster.arrive.aligned; // @first_arrival
barrier.cluster.wait.aligned;
ld.shared.u32 %r3, [tile]; // @ld
barrier.cluster.arrive.aligned;
barrier.cluster.wait.aligned;",
            ),
            &[("@first_arrival", "barrier.cluster.arrive.relaxed.aligned;")],
            Finds(&[("race-shared", "@ld")]),
        ),
    ]
}
