//! Bugs of which a run once said nothing, since something else that it said, or no more than noted, stood before them.

use super::case::{Base, Case, Expect, case};
use Base::Small;
use Expect::{Depends, Finds};

/// Four warps turn the columns from 32 on into A of an MMA that a fifth one issues behind `bar.sync 1`. They use what they have loaded, and
/// wait for no load, as compilers leave it.
const A_IN_TENSOR_MEMORY: &str = "\
setp.ne.u32 %p1, %r1, 0;
@%p1 bra ALLOCATED;
tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [slot], 64;
ALLOCATED:
@!%p0 bra MADE;
mbarrier.init.shared::cta.b64 [bar_a], 1;
fence.mbarrier_init.release.cluster;
MADE:
shl.b32 %r3, %r0, 4;
mov.u32 %r4, tile;
add.u32 %r3, %r3, %r4;
mov.u32 %r5, 0;
st.shared.v4.b32 [%r3], {%r5, %r5, %r5, %r5};
fence.proxy.async.shared::cta;
bar.sync 0;
ld.shared.b32 %r6, [slot];
shl.b32 %r7, %r1, 21;
add.u32 %r7, %r7, %r6;
setp.eq.u32 %p2, %r1, 4;
@%p2 bra MULTIPLY;
tcgen05.st.sync.aligned.32x32b.x8.b32 [%r7+32], {%r5, %r5, %r5, %r5, %r5, %r5, %r5, %r5};
tcgen05.wait::st.sync.aligned;
tcgen05.fence::before_thread_sync;
MULTIPLY:
bar.sync 0;
tcgen05.fence::after_thread_sync;
@%p2 bra ISSUE;
tcgen05.ld.sync.aligned.32x32b.x8.b32 {%r10, %r11, %r12, %r13, %r14, %r15, %r16, %r17}, [%r7+32];
add.u32 %r10, %r10, 1;
tcgen05.st.sync.aligned.32x32b.x8.b32 [%r7+32], {%r10, %r11, %r12, %r13, %r14, %r15, %r16, %r17}; // @store
tcgen05.wait::st.sync.aligned;
tcgen05.fence::before_thread_sync;
bar.sync 1, 160;
bra ISSUED;
ISSUE:
bar.sync 1, 160; // @meet
tcgen05.fence::after_thread_sync;
elect.sync _|%p3, 0xffffffff;
@!%p3 bra ISSUED;
shr.u32 %r8, %r4, 4;
cvt.u64.u32 %rd3, %r8;
or.b64 %rd3, %rd3, 0x0000400800080000;
tcgen05.mma.cta_group::1.kind::f16 [%r6], [%r6+32], %rd3, 0x08020010, 0; // @mma
tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [bar_a];
ISSUED:
WAIT:
mbarrier.try_wait.parity.shared::cta.b64 %p4, [bar_a], 0;
@!%p4 bra WAIT;
tcgen05.fence::after_thread_sync;
tcgen05.wait::ld.sync.aligned;
bar.sync 0; // @last
@%p1 bra END;
tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r6, 64; // @free
END:";

/// Two warps of one quarter of tensor memory: one loads the first columns and uses what comes, one stores the next.
const TWO_OF_A_QUARTER: &str = "\
setp.ne.u32 %p1, %r1, 0;
@%p1 bra ALLOCATED;
tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [slot], 32;
ld.shared.b32 %r6, [slot];
mov.u32 %r5, 7;
tcgen05.st.sync.aligned.32x32b.x1.b32 [%r6], {%r5};
tcgen05.wait::st.sync.aligned;
tcgen05.fence::before_thread_sync;
ALLOCATED:
bar.sync 0;
tcgen05.fence::after_thread_sync;
ld.shared.b32 %r6, [slot];
setp.ne.u32 %p2, %r1, 4;
@%p1 bra LOADED;
tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r10}, [%r6];
st.global.u32 [%rd0], %r10;
LOADED:
@%p2 bra STORED;
tcgen05.st.sync.aligned.32x32b.x1.b32 [%r6+16], {%r0};
tcgen05.wait::st.sync.aligned; // @wait_st
STORED:
tcgen05.fence::before_thread_sync;
bar.sync 0;
@%p1 bra END;
tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r6, 32; // @free
END:";

/// Two warps load, by one statement, what each overwrites by one of its own; the second loads in time only if it uses what it loads.
const LOADED_BY_ALL: &str = "\
setp.ne.u32 %p1, %r1, 0;
@%p1 bra ALLOCATED;
tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [slot], 32;
ALLOCATED:
bar.sync 0;
ld.shared.b32 %r6, [slot];
shl.b32 %r7, %r1, 21;
add.u32 %r6, %r6, %r7;
tcgen05.st.sync.aligned.32x32b.x1.b32 [%r6], {%r0};
tcgen05.wait::st.sync.aligned;
tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r10}, [%r6]; // @load
@%p1 bra SECOND;
add.u32 %r11, %r10, 1;
tcgen05.st.sync.aligned.32x32b.x1.b32 [%r6], {%r0}; // @first
bra STORED;
SECOND:
add.u32 %r12, %r10, 1; // @use
nanosleep.u32 2000;
tcgen05.st.sync.aligned.32x32b.x1.b32 [%r6], {%r0}; // @second
STORED:
tcgen05.wait::ld.sync.aligned;
tcgen05.wait::st.sync.aligned;
tcgen05.fence::before_thread_sync;
bar.sync 0;
tcgen05.fence::after_thread_sync;
@%p1 bra END;
tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r6, 32;
END:";

/// Two numbers of each CTA.
const TWICE_A_CTA: &str = "\
@!%p0 bra END;
mov.u32 %r3, %ctaid.x;
mul.wide.u32 %rd3, %r3, 8;
add.s64 %rd3, %rd3, %rd0; // @address
mov.u32 %r4, 0;
mov.u32 %r5, 7;
AGAIN:
st.global.u32 [%rd3], %r5; // @store
add.s64 %rd3, %rd3, 4;
mov.u32 %r5, %r3;
add.u32 %r4, %r4, 1;
setp.lt.u32 %p1, %r4, 2;
@%p1 bra AGAIN;
END:";

/// Two numbers of each warp.
const TWICE_A_WARP: &str = "\
elect.sync _|%p1, 0xffffffff;
@!%p1 bra END;
shl.b32 %r3, %r1, 3;
mov.u32 %r4, tile;
add.u32 %r3, %r3, %r4; // @address
mov.u32 %r4, 0;
mov.u32 %r5, 7;
AGAIN:
st.shared.u32 [%r3], %r5; // @store
add.u32 %r3, %r3, 4;
mov.u32 %r5, %r1;
add.u32 %r4, %r4, 1;
setp.lt.u32 %p1, %r4, 2;
@%p1 bra AGAIN;
END:";

/// Half of the MMA's B comes by `cp.async`, and half of it by stores, eight bytes each.
const HALF_COPIED: &str = "\
setp.ne.u32 %p1, %r1, 0;
@%p1 bra ALLOCATED;
tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [slot], 32;
ALLOCATED:
@!%p0 bra MADE;
mbarrier.init.shared::cta.b64 [bar_a], 1;
fence.mbarrier_init.release.cluster;
MADE:
mov.u32 %r4, tile;
mov.u32 %r5, 0;
shl.b32 %r3, %r0, 4;
add.u32 %r3, %r3, %r4;
cp.async.ca.shared.global [%r3], [%rd1], 8;
cp.async.ca.shared.global [%r3+2048], [%rd1], 8;
cp.async.ca.shared.global [%r3+4096], [%rd1], 8;
st.shared.v2.b32 [%r3+8], {%r5, %r5};
st.shared.v2.b32 [%r3+2056], {%r5, %r5};
st.shared.v2.b32 [%r3+4104], {%r5, %r5};
fence.proxy.async.shared::cta; // @fence
cp.async.wait_all;
bar.sync 0;
ld.shared.b32 %r6, [slot];
@!%p0 bra ISSUED;
shr.u32 %r8, %r4, 4;
cvt.u64.u32 %rd3, %r8;
or.b64 %rd3, %rd3, 0x0000400800080000;
add.s64 %rd4, %rd3, 128;
tcgen05.mma.cta_group::1.kind::f16 [%r6], %rd4, %rd3, 0x08020010, 0; // @mma
tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [bar_a];
ISSUED:
WAIT:
mbarrier.try_wait.parity.shared::cta.b64 %p4, [bar_a], 0;
@!%p4 bra WAIT;
bar.sync 0;
@%p1 bra END;
tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r6, 32;
END:";

/// A warp asks for its next box of four beforehand, and waits for it where the answer was no; as CUTLASS does. Another warp copies them.
const ASKED_BEFOREHAND: &str = "\
@!%p0 bra MADE;
mbarrier.init.shared::cta.b64 [bar_a], 1;
mbarrier.init.shared::cta.b64 [bar_b], 1;
fence.mbarrier_init.release.cluster;
MADE:
bar.sync 0;
mov.u32 %r20, 0;
mov.u32 %r21, 0;
mov.u32 %r22, bar_a;
mov.u32 %r23, bar_b;
elect.sync _|%p5, 0xffffffff;
setp.eq.u32 %p1, %r1, 0;
@%p1 bra READ;
COPY:
setp.eq.u32 %p6, %r20, 0;
@%p6 bra FREE;
xor.b32 %r24, %r21, 1;
FREED:
mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r23], %r24;
@!%p2 bra FREED;
FREE:
@!%p5 bra COPIED;
mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r22], 1024;
cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [tile], [%rd1], 1024, [%r22]; // @copy
COPIED:
xor.b32 %r21, %r21, 1;
add.u32 %r20, %r20, 1;
setp.lt.u32 %p3, %r20, 4;
@%p3 bra COPY;
bra END;
READ:
mbarrier.try_wait.parity.shared::cta.b64 %p7, [%r22], %r21; // @first
NEXT:
@%p7 bra THERE;
LATER:
mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r22], %r21; // @wait
@!%p2 bra LATER;
THERE:
@!%p5 bra ADDED;
ld.shared.u32 %r25, [tile]; // @read
add.u32 %r26, %r26, %r25;
mbarrier.arrive.shared::cta.b64 _, [%r23];
ADDED:
xor.b32 %r21, %r21, 1;
add.u32 %r20, %r20, 1;
setp.ge.u32 %p4, %r20, 4;
@%p4 bra END;
mbarrier.try_wait.parity.shared::cta.b64 %p7, [%r22], %r21; // @ask
bra NEXT;
END:";

/// A warp asks two mbarriers in turn which is complete first, and reads both boxes.
const ONE_OF_TWO: &str = "\
@!%p0 bra MADE;
mbarrier.init.shared::cta.b64 [bar_a], 1;
mbarrier.init.shared::cta.b64 [bar_b], 1;
fence.mbarrier_init.release.cluster;
mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar_a], 1024;
cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [tile], [%rd1], 1024, [bar_a]; // @copy
mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar_b], 1024;
cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [tile+1024], [%rd1], 1024, [bar_b];
MADE:
bar.sync 0;
mov.u32 %r22, bar_a;
mov.u32 %r23, bar_b;
xor.b32 %r24, %r22, %r23;
mov.u32 %r20, %r23;
EITHER:
xor.b32 %r20, %r20, %r24; // @turn
mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r20], 0; // @either
@!%p2 bra EITHER;
W1:
mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r22], 0; // @a
@!%p2 bra W1;
ld.shared.u32 %r25, [tile]; // @read
W2:
mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r23], 0;
@!%p2 bra W2;
ld.shared.u32 %r25, [tile+1024];";

pub fn cases() -> Vec<Case> {
    let own = ("of our own", "not run on a GPU");
    vec![
        case(
            "e1",
            "an MMA reads A from tensor memory before it is stored there, where loads came before that are over in time",
            own,
            Small(1, 160, A_IN_TENSOR_MEMORY),
            &[("bar.sync 1, 160; // @meet", "bar.arrive 1, 160;")],
            Finds(&[("race-tensor", "@store"), ("race-tensor", "@mma")]),
        ),
        case(
            "e2",
            "columns are freed while a tcgen05.st may still write some, and a tcgen05.ld of others is over in time",
            own,
            Small(1, 160, TWO_OF_A_QUARTER),
            &[("@wait_st", "")],
            Finds(&[("tensor-freed-in-use", "@free")]),
        ),
        case(
            "e3",
            "of two warps that overwrite what they have loaded, one has not used it",
            own,
            Small(1, 64, LOADED_BY_ALL),
            &[("@use", "")],
            Finds(&[("missing-wait-ld", "@load")]),
        ),
        case(
            "e4",
            "two CTAs store to the same places, first the same and then something else",
            own,
            Small(1, 32, TWICE_A_CTA),
            &[("@address", "mov.b64 %rd3, %rd0;")],
            Finds(&[("race-global", "@store")]),
        )
        .launched(|launch| launch.grid = [2, 1, 1]),
        case(
            "e5",
            "two warps store to the same places, first the same and then something else",
            own,
            Small(1, 64, TWICE_A_WARP),
            &[("@address", "mov.u32 %r3, %r4;")],
            Finds(&[("race-shared", "@store")]),
        ),
        case(
            "e6",
            "no proxy fence follows what is stored beside what cp.async brings",
            own,
            Small(1, 128, HALF_COPIED),
            &[("@fence", "")],
            Finds(&[("missing-proxy-fence", "@mma")]),
        ),
        case(
            "e7",
            "an mbarrier is asked beforehand, and not waited for where it says no",
            own,
            Small(1, 64, ASKED_BEFOREHAND),
            &[("@wait", "setp.eq.u32 %p2, 0, 0;")],
            Depends(
                "@ask",
                &[("race-shared", "@read"), ("race-shared", "@copy"), ("mbarrier-overflow", "*"), ("hang", "*")],
            ),
        ),
        case(
            "e8",
            "one of two mbarriers is complete, and taken for the first",
            own,
            Small(1, 32, ONE_OF_TWO),
            &[("@a", "setp.eq.u32 %p2, 0, 0;")],
            Depends("@either", &[("race-shared", "@read")]),
        ),
    ]
}
