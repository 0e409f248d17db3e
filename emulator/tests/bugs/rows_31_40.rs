//! Stores, roles, columns; and what no kernel can show.

use super::case::{Base, Case, Expect, Result, case};
use Base::{Ring, Small};
use Expect::{Finds, Notes, Sometimes};
use emulator::Param;

/// Two groups of 128 threads, each with a barrier of its own.
const GROUPS: &str = "\
shl.b32 %r5, %r0, 2;
mov.u32 %r6, tile;
add.u32 %r6, %r6, %r5;
st.shared.u32 [%r6], %r0; // @st
setp.ge.u32 %p1, %r0, 128;
@%p1 bra SECOND;
bar.sync 1, 128; // @first
bra READ;
SECOND:
bar.sync 2, 128; // @second
READ:
xor.b32 %r7, %r5, 128;
mov.u32 %r6, tile;
add.u32 %r6, %r6, %r7;
ld.shared.u32 %r8, [%r6]; // @ld
cvt.u64.u32 %rd3, %r5;
add.s64 %rd3, %rd3, %rd0;
st.global.u32 [%rd3], %r8;";

/// Warp 0 tells warp 1 to go on, and both meet the other CTA.
const ROLES: &str = "\
@!%p0 bra MADE;
mbarrier.init.shared::cta.b64 [bar_a], 1;
fence.mbarrier_init.release.cluster;
MADE:
barrier.cluster.arrive.aligned;
barrier.cluster.wait.aligned;
setp.ne.u32 %p1, %r1, 0;
@%p1 bra SECOND;
@%p0 mbarrier.arrive.shared::cta.b64 _, [bar_a]; // @arrive
barrier.cluster.arrive.aligned; // @arrive_first
barrier.cluster.wait.aligned; // @wait_first
bra END;
SECOND:
mbarrier.try_wait.parity.shared::cta.b64 %p2, [bar_a], 0; // @wait_second
@!%p2 bra SECOND;
barrier.cluster.arrive.aligned;
barrier.cluster.wait.aligned;
END:";

/// One warpgroup gives registers away, two take them.
const REGISTERS: &str = "\
setp.ge.u32 %p1, %r0, 128;
@%p1 bra TAKE;
setmaxnreg.dec.sync.aligned.u32 24; // @give
bra END;
TAKE:
setmaxnreg.inc.sync.aligned.u32 240; // @take
END:";

/// A grid that may begin before the one has ended that writes `src`.
const DEPENDENT: &str = "\
@%p0 mbarrier.init.shared::cta.b64 [bar_a], 1;
@%p0 fence.mbarrier_init.release.cluster;
griddepcontrol.wait; // @wait
mad.wide.u32 %rd3, %r0, 4, %rd1;
ld.global.u32 %r4, [%rd3]; // @ld
bar.sync 0; // @bar
@%p0 mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar_a], 1024;
@%p0 cp.async.bulk.tensor.2d.shared::cta.global.tile.mbarrier::complete_tx::bytes [tile], [%rd2, {0, 0}], [bar_a]; // @tma
FULL:
mbarrier.try_wait.parity.shared::cta.b64 %p1, [bar_a], 0;
@!%p1 bra FULL;
mov.u32 %r5, tile;
mad.lo.u32 %r5, %r0, 4, %r5;
ld.shared.u32 %r5, [%r5];
add.u32 %r5, %r5, %r4;
mad.wide.u32 %rd3, %r0, 4, %rd0;
st.global.u32 [%rd3], %r5;";

/// Rows that no kernel can show, each with the reason.
pub const NOT_IN_PTX: &[(&str, &str)] = &[
    ("38", "Right results of less precision than expected: nothing is wrong with the kernel."),
    ("39", "Which call of the host reports an error: there is no host."),
    ("40", "Messages of another tool."),
];

pub fn cases() -> Vec<Case> {
    let stores = ("common knowledge", "RACE in tiles of the output");
    let barriers = ("common knowledge", "HANG");
    let dependent = ("cccl#3131", "RACE");
    let dependent = |row, what, edits, expect| {
        case(row, what, dependent, Small(1, 64, DEPENDENT), edits, expect)
            .launched(|launch| launch.attributes.prerequisite_writes = vec![1])
    };
    let columns = ("facebookexperimental/triton#1993, #2024", "RACE or WRONG");
    vec![
        case(
            "31a",
            "no wait before the tile of a TMA store is written again",
            stores,
            Ring,
            &[("@wait_read", "")],
            Finds(&[("race-shared", "@st_tile"), ("race-shared", "@store")]),
        ),
        case(
            "31b",
            "no barrier behind the wait of the thread that stores",
            stores,
            Ring,
            &[("@tile_free", "")],
            Finds(&[("race-shared", "@st_tile"), ("race-shared", "@store")]),
        ),
        case(
            "31c",
            "a thread waits that has not issued the store",
            stores,
            Ring,
            &[
                ("@wait_read", ""),
                ("@tile_free", "    setp.eq.u32 %p10, %r0, 32;\n    @%p10 cp.async.bulk.wait_group.read 0;\n{}"),
            ],
            Finds(&[("race-shared", "@st_tile"), ("race-shared", "@store")]),
        ),
        case(
            "31d",
            "a thread ends before its last store has read the tile",
            stores,
            Ring,
            &[("@wait_read", "")],
            // It is launched for the first tile alone.
            Notes("bulk-store-outlives-thread", "@store", Result::Wrong),
        )
        .launched(|launch| launch.params[4] = Param::U32(1)),
        case(
            "31e",
            "a store that was not committed to a group",
            stores,
            Ring,
            &[("@commit_group", "")],
            Finds(&[("race-shared", "@st_tile"), ("race-shared", "@store")]),
        ),
        case(
            "32",
            "the tile that goes out lies over a stage of the ring",
            ("common knowledge", "RACE with few stages a tile"),
            Ring,
            &[("@tile_d", "    add.u32 %r25, %r25, 0;"), ("@tile_d_store", "    add.u32 %r44, %r2, 0;")],
            Finds(&[("*", "@st_tile"), ("*", "@load_a"), ("*", "@mma"), ("*", "@store")]),
        ),
        dependent(
            "33a",
            "no griddepcontrol.wait",
            &[("@wait", "")],
            Finds(&[("race-global", "@ld"), ("race-global", "@tma")]),
        ),
        dependent(
            "33b",
            "griddepcontrol.wait behind the first load",
            &[("@wait", ""), ("@ld", "{}\ngriddepcontrol.wait;")],
            Finds(&[("race-global", "@ld")]),
        ),
        dependent(
            "33c",
            "one warp waits, and the other loads without a barrier between",
            &[("@wait", "    setp.eq.u32 %p2, %r1, 0;\n@%p2 {}")],
            Finds(&[("race-global", "@ld")]),
        ),
        dependent(
            "33d",
            "another warp than the one that copies waits, behind the barrier",
            &[
                ("@wait", ""),
                ("@ld", "    mov.u32 %r4, 0;"),
                ("@bar", "{}\nsetp.eq.u32 %p2, %r1, 1;\n@%p2 griddepcontrol.wait;"),
            ],
            Finds(&[("race-global", "@tma")]),
        ),
        case(
            "34",
            "three warpgroups ask for more registers than the CTA has",
            ("PTX ISA", "HANG"),
            Small(1, 384, REGISTERS),
            &[("@give", "setmaxnreg.inc.sync.aligned.u32 240;")],
            Finds(&[("hang", "@take"), ("hang", "@give")]),
        ),
        case(
            "35a",
            "two groups of threads use one barrier",
            ("common knowledge", "RACE or HANG"),
            Small(1, 256, GROUPS),
            &[("@second", "bar.sync 1, 128;")],
            Sometimes(&[("race-shared", "@ld"), ("race-shared", "@st")]),
        ),
        case(
            "35b",
            "two groups use one barrier, with two counts",
            barriers,
            Small(1, 256, GROUPS),
            &[("@second", "bar.sync 1, 256;")],
            Finds(&[("named-barrier", "@second"), ("named-barrier", "@first")]),
        ),
        case(
            "35c",
            "a barrier counts more threads than come",
            barriers,
            Small(1, 256, GROUPS),
            &[("@second", "bar.sync 2, 160;")],
            Finds(&[("hang", "@second")]),
        ),
        case(
            "35d",
            "a role uses barrier 0, which the whole CTA uses at its end",
            barriers,
            Ring,
            &[("@tile_written", "    bar.sync 0, 128;"), ("@tile_free", "    bar.sync 0, 128;")],
            Finds(&[
                ("named-barrier", "@tile_written"),
                ("named-barrier", "@tile_free"),
                ("named-barrier", "@all_done"),
                ("hang", "*"),
            ]),
        ),
        case(
            "36",
            "one role waits at the cluster barrier, and the other for an arrival behind it",
            ("triton#10656", "HANG"),
            Small(2, 64, ROLES),
            &[("@arrive", ""), ("@wait_first", "{}\n@%p0 mbarrier.arrive.shared::cta.b64 _, [bar_a];")],
            Finds(&[("hang", "@wait_first"), ("hang", "@wait_second")]),
        ),
        case(
            "37a",
            "two accumulators overlap by half",
            columns,
            Ring,
            &[("@acc_mma", "    shl.b32 %r23, %r20, 5;"), ("@acc_out", "    shl.b32 %r23, %r20, 5;")],
            Finds(&[
                ("accumulator-overwritten", "@mma"),
                ("race-tensor", "@mma"),
                ("race-tensor", "@ld"),
                ("mma-not-awaited", "@ld"),
            ]),
        ),
        case(
            "37b",
            "the second accumulator lies beyond the allocation",
            columns,
            Ring,
            &[
                ("@alloc", "    tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r3+64], 64;"),
                ("@dealloc", "    tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r6, 64;"),
            ],
            Finds(&[("tensor-address", "@mma")]),
        ),
        case(
            "37c",
            "the epilogue reads half of each accumulator",
            columns,
            Ring,
            &[("@acc_out", "    shl.b32 %r23, %r20, 5;")],
            Finds(&[
                ("accumulator-overwritten", "@mma"),
                ("race-tensor", "@mma"),
                ("race-tensor", "@ld"),
                ("mma-not-awaited", "@ld"),
            ]),
        ),
    ]
}
