//! Bytes, phases, barriers' beginnings, who issues, alignment.

use super::case::{Base, Case, Expect, Result, case};
use Base::{OneTile, Pair, Quad, Ring, Small};
use Expect::{Among, Finds, Notes};

const HANG: &str = "HANG";

/// Warp 0 makes two mbarriers; thread 0 arrives; warp 1 waits and reads what thread 0 wrote.
const HANDED: &str = "\
@!%p0 bra MADE;
mbarrier.init.shared::cta.b64 [bar_a], 1;
fence.mbarrier_init.release.cluster;
MADE:
bar.sync 0; // @made
setp.ne.u32 %p1, %r1, 0;
@%p1 bra READ;
@!%p0 bra END;
st.shared.u32 [tile], 7;
mbarrier.arrive.shared::cta.b64 _, [bar_a]; // @arrive
bra END;
READ:
mbarrier.try_wait.parity.shared::cta.b64 %p2, [bar_a], 0; // @wait
@!%p2 bra READ;
ld.shared.u32 %r3, [tile];
st.global.u32 [%rd0], %r3;
END:";

pub fn cases() -> Vec<Case> {
    let tilelang_2644 = ("tilelang#2644", HANG);
    let tilelang_2674 = ("tilelang#2674, #3087", "HANG or WRONG from the second tile on");
    let logic = ("common knowledge", HANG);
    let fuser_1552 = ("Fuser#1552, FlashKDA#24", "HANG, RACE or ULF");
    let triton_9498 = ("review of triton#9498", "HANG, or phases run ahead");
    let many = ("facebookexperimental/triton#26", "WRONG or HANG");
    let aligned = ("PTX ISA, .aligned", HANG);
    vec![
        // 1: the bytes announced are not the bytes that come.
        case(
            "1a",
            "one operand forgotten in expect_tx",
            ("tilelang#2644", "phases end too early, or never"),
            Ring,
            &[("@expect", "    mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r15], 16384;")],
            Finds(&[("phase-completed-early", "@load_b"), ("phase-completed-early", "@expect")]),
        ),
        case(
            "1b",
            "more bytes announced than loaded (an edge tile shrunk)",
            tilelang_2644,
            Ring,
            &[("@expect", "    mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r15], 32768;")],
            Finds(&[("hang", "@wait_full"), ("hang", "@expect")]),
        ),
        case(
            "1c",
            "bytes of another element type",
            ("tilelang#2644", "phases end too early, or never"),
            Ring,
            &[("@expect", "    mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r15], 12288;")],
            Finds(&[
                ("phase-completed-early", "@load_a"),
                ("phase-completed-early", "@load_b"),
                ("phase-completed-early", "@expect"),
                // More bytes come than were announced, and the sum is never 0 again.
                ("hang", "@expect"),
            ]),
        ),
        case(
            "1d",
            "bytes of a CTA times the CTAs of the cluster, not of the pair",
            tilelang_2644,
            Quad,
            &[("_, [%r13], 65536;", "_, [%r13], 131072;")],
            Finds(&[("hang", "%p4, [%r13], %r11"), ("hang", "_, [%r13], 131072;")]),
        ),
        case(
            "1e",
            "bytes of the leader only, where both CTAs count on its barrier",
            ("tilelang#2644", "phases end too early, or never"),
            Pair,
            &[("_, [%r13], 65536;", "_, [%r13], 32768;")],
            Finds(&[
                ("phase-completed-early", "[%r17], [%rd0"),
                ("phase-completed-early", "[%r18], [%rd1"),
                ("phase-completed-early", "_, [%r13], 32768;"),
            ]),
        ),
        // 2: phases that begin anew with each tile.
        case(
            "2a",
            "the consumer begins each tile with stage 0 and parity 0",
            tilelang_2674,
            Ring,
            &[("@multiplier_k", "{}\n    mov.u32 %r11, 0;\n    mov.u32 %r12, 0;")],
            // Each of the two waits for the other, as each would in a kernel whose producer is wrong.
            Finds(&[("hang", "@wait_full"), ("hang", "@wait_empty")]),
        ),
        case(
            "2b",
            "both compute stage and parity from k alone, with a depth that is no multiple of two laps",
            tilelang_2674,
            Ring,
            &[
                ("@multiplier_k", "{}\n    mov.u32 %r11, 0;\n    mov.u32 %r12, 0;"),
                ("@producer_k", "{}\n    mov.u32 %r11, 0;\n    mov.u32 %r12, 1;"),
            ],
            // The producer goes on before the stage has been used, too.
            Among(&[("operand-not-ready", "@mma")]),
        ),
        case(
            "2c",
            "the epilogue's parity never flips",
            tilelang_2674,
            Ring,
            &[("@flip_out", "")],
            // The third tile's wait passes on the first tile's phase, unless it comes late.
            Finds(&[("wrong-phase", "@wait_acc_full"), ("mma-not-awaited", "@ld"), ("hang", "@wait_acc_full")]),
        ),
        // 3
        case(
            "3",
            "a producer waits for parity 0 of empty barriers",
            logic,
            Ring,
            &[("@producer_parity", "    mov.u32 %r12, 0;")],
            Finds(&[("hang", "@wait_empty")]),
        ),
        // 4
        case(
            "4a",
            "try_wait without a loop",
            ("common knowledge", "RACE"),
            Ring,
            &[("@loop_full", "")],
            Finds(&[("wait-result-unread", "@wait_full")]),
        ),
        case(
            "4b",
            "the loop goes on while the wait succeeds",
            ("common knowledge", "RACE or HANG"),
            Ring,
            &[("@loop_full", "    @%p4 bra FULL_WAIT;")],
            Among(&[("hang", "@wait_full"), ("operand-not-ready", "@mma")]),
        ),
        // 5
        case(
            "5a",
            "no barrier between mbarrier.init and the first wait",
            fuser_1552,
            Small(1, 64, HANDED),
            &[("@made", "")],
            Finds(&[("mbarrier-init-unordered", "@wait"), ("mbarrier-not-initialised", "@wait")]),
        ),
        case(
            "5b",
            "no cluster barrier between mbarrier.init and the peer's first use",
            fuser_1552,
            Pair,
            &[
                (
                    "INIT_DONE:\n    barrier.cluster.arrive.aligned;\n    barrier.cluster.wait.aligned;",
                    "INIT_DONE:\n    bar.sync 0;",
                ),
                (
                    "    ld.param.u32 %r5, [k_tiles];",
                    "{}\n    barrier.cluster.arrive.aligned;\n    barrier.cluster.wait.aligned;",
                ),
            ],
            Finds(&[
                ("mbarrier-init-unordered", "[%r17], [%rd0"),
                ("mbarrier-not-initialised", "[%r17], [%rd0"),
                ("mbarrier-init-unordered", "multicast::cluster.b64 [%r14], %h0"),
            ]),
        ),
        case(
            "5c",
            "mbarrier.init and a relaxed arrival at the cluster barrier, without fence.mbarrier_init",
            fuser_1552,
            Pair,
            &[
                ("    fence.mbarrier_init.release.cluster;\n", ""),
                (
                    "INIT_DONE:\n    barrier.cluster.arrive.aligned;",
                    "INIT_DONE:\n    barrier.cluster.arrive.relaxed.aligned;",
                ),
            ],
            Finds(&[("mbarrier-init-unordered", "[%r17], [%rd0"), ("mbarrier-init-unordered", "_, [%r13], 65536;")]),
        ),
        // 6
        case(
            "6a",
            "mbarrier.init in the loop",
            triton_9498,
            Ring,
            &[("@expect", "    mbarrier.init.shared::cta.b64 [%r15], 1; // <- here\n{}")],
            Finds(&[("mbarrier-reinitialised", "// <- here")]),
        ),
        case(
            "6b",
            "128 threads arrive, initialised for one",
            triton_9498,
            Ring,
            &[
                ("@init_acc_empty_0", "    mbarrier.init.shared::cta.b64 [%r3+48], 1;"),
                ("@init_acc_empty_1", "    mbarrier.init.shared::cta.b64 [%r3+56], 1;"),
            ],
            Finds(&[
                ("phase-overtaken", "@arrive_acc_empty"),
                ("mbarrier-split", "@arrive_acc_empty"),
                ("mbarrier-overflow", "@arrive_acc_empty"),
                ("hang", "@wait_acc_empty"),
            ]),
        ),
        case(
            "6c",
            "one thread arrives, initialised for 128",
            triton_9498,
            Ring,
            &[("@arrive_acc_empty", "    @!%p8 mbarrier.arrive.shared::cta.b64 _, [%r22+48];")],
            Finds(&[("hang", "@init_acc_empty_0"), ("hang", "@wait_acc_empty")]),
        ),
        case(
            "6d",
            "32 threads of each of four warps arrive, initialised for four warps",
            triton_9498,
            Ring,
            &[
                ("@init_acc_empty_0", "    mbarrier.init.shared::cta.b64 [%r3+48], 4;"),
                ("@init_acc_empty_1", "    mbarrier.init.shared::cta.b64 [%r3+56], 4;"),
            ],
            Finds(&[
                ("phase-overtaken", "@arrive_acc_empty"),
                ("mbarrier-split", "@arrive_acc_empty"),
                ("mbarrier-overflow", "@arrive_acc_empty"),
                ("hang", "@wait_acc_empty"),
            ]),
        ),
        // 7
        case(
            "7a",
            "all lanes issue the MMAs and commits",
            many,
            Ring,
            &[("@one_multiplier", "")],
            Finds(&[("issued-by-many-lanes", "@mma")]),
        ),
        case(
            "7b",
            "all lanes announce the bytes and load",
            many,
            Ring,
            &[("@one_producer", "")],
            Finds(&[("issued-by-many-lanes", "@load_a"), ("mbarrier-overflow", "@expect")]),
        ),
        case(
            "7c",
            "one lane announces the bytes, all lanes load",
            many,
            Ring,
            &[
                ("@one_producer", ""),
                ("@expect", "    @%p2 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r15], 24576;"),
            ],
            // Legal as such: 32 loads, of which each brings its bytes.
            Finds(&[("issued-by-many-lanes", "@load_a"), ("hang", "@expect")]),
        ),
        case(
            "7d",
            "one lane issues the MMAs, all lanes commit",
            many,
            OneTile,
            &[("    @!%p1 bra ISSUED;\n", ""), ("    tcgen05.mma.cta_group::1", "    @%p1 tcgen05.mma.cta_group::1")],
            Finds(&[("issued-by-many-lanes", "tcgen05.commit")]),
        ),
        case(
            "7e",
            "all lanes store the tile by TMA",
            ("facebookexperimental/triton#26", "32 stores, ILL with some"),
            Ring,
            &[("@tile_written", "{}\n    setp.ge.u32 %p8, %r0, 32;")],
            // Legal as such, and kernels of CUTLASS 4 do it: 32 stores of the same bytes to the same place.
            Notes("issued-by-many-lanes", "@store", Result::Right),
        ),
        // 8
        case(
            "8a",
            "tcgen05.alloc by one lane",
            aligned,
            OneTile,
            &[("    @!%p1 bra INIT_DONE;\n", "    @!%p1 bra SETUP_DONE;\n")],
            Finds(&[("aligned-lanes-missing", "tcgen05.alloc")]),
        ),
        case(
            "8b",
            "tcgen05.ld by one lane",
            aligned,
            OneTile,
            &[("    tcgen05.ld.sync", "    elect.sync _|%p1, 0xffffffff;\n    @%p1 tcgen05.ld.sync")],
            Finds(&[("aligned-lanes-missing", "tcgen05.ld.sync")]),
        ),
        case(
            "8c",
            "bar.sync by the elected lane",
            aligned,
            OneTile,
            &[("    tcgen05.commit", "    bar.sync 2, 32; // <- here\n    tcgen05.commit")],
            Finds(&[("aligned-lanes-missing", "// <- here")]),
        ),
        case(
            "8d",
            "tcgen05.dealloc by one lane",
            aligned,
            Ring,
            &[(
                "@dealloc",
                "    elect.sync _|%p2, 0xffffffff;\n    @%p2 tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r6, 128;",
            )],
            Finds(&[("aligned-lanes-missing", "@dealloc")]),
        ),
        case(
            "8e",
            "tcgen05.wait::ld by the lanes of one half",
            aligned,
            Ring,
            &[(
                "@wait_ld",
                "    and.b32 %r50, %r0, 16;\n    setp.eq.u32 %p10, %r50, 0;\n    @%p10 tcgen05.wait::ld.sync.aligned;",
            )],
            Finds(&[("aligned-lanes-missing", "@wait_ld")]),
        ),
        // 9
        case(
            "9",
            "a tile's address is a multiple of 64 only",
            ("a blog; destination ended in 0x460", "ILL"),
            Ring,
            &[("@tile_b", "    add.u32 %r17, %r16, 16448;")],
            Finds(&[("bulk-shared-address", "@load_b")]),
        ),
        // 10
        case(
            "10a",
            "operand tiles at 128 bytes, not 1024: the descriptor says that the pattern begins there (base offset 0)",
            ("tilelang#2379, #2134, Fuser#4096", "WRONG"),
            Ring,
            &[
                ("@barriers", "    add.u32 %r3, %r2, 66560;"),
                ("@tile_d", "    add.u32 %r25, %r25, 50176;"),
                ("@tile_d_store", "    add.u32 %r44, %r2, 50176;"),
                ("@stage_producer", "    add.u32 %r16, %r16, %r2;\n    add.u32 %r16, %r16, 128;"),
                ("@stage_multiplier", "    add.u32 %r16, %r16, %r2;\n    add.u32 %r16, %r16, 128;"),
            ],
            Finds(&[("matrix-descriptor", "@mma")]),
        )
        .launched(|launch| launch.dynamic_shared += 1024),
        case(
            "10b",
            "a tile swizzled by hand, by its row, at 128 bytes; TMA swizzles by the address",
            ("tilelang#2379, #2134, Fuser#4096", "WRONG"),
            Ring,
            &[
                ("@barriers", "    add.u32 %r3, %r2, 66560;"),
                ("@tile_d", "    add.u32 %r25, %r25, 49280;"),
                ("@tile_d_store", "    add.u32 %r44, %r2, 49280;"),
            ],
            Finds(&[("swizzle-mismatch", "st.shared.v4.b32 [%r43]")]),
        )
        .launched(|launch| launch.dynamic_shared += 1024),
    ]
}
