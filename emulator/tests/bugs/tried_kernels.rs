//! The kernels of `tried.rs`, as they are right.

/// Two warps store 1 to one place; the first of them stores it twice.
pub const SAME_VALUE: &str = "\
mov.u32 %r3, 1;
mov.u32 %r4, 1;
setp.eq.u32 %p1, %r0, 32;
@!%p0 bra SECOND;
st.shared.u32 [tile], %r4; // @five
st.shared.u32 [tile], %r3; // @one
SECOND:
@!%p1 bra END;
nanosleep.u32 3000;
st.shared.u32 [tile], %r3; // @other
END:";

/// The same of two CTAs.
pub const SAME_VALUE_OF_CTAS: &str = "\
mov.u32 %r3, %ctaid.x;
setp.eq.u32 %p1, %r3, 0;
mov.u32 %r4, 1;
@!%p0 bra END;
@%p1 bra FIRST;
nanosleep.u32 5000;
st.global.u32 [%rd0], 1; // @other
bra END;
FIRST:
st.global.u32 [%rd0], %r4; // @five
st.global.u32 [%rd0], 1; // @one
END:";

/// Each CTA of a pair gets all columns of its SM, and they meet.
pub const ALLOCATED_BY_BOTH: &str = "\
barrier.cluster.arrive.aligned;
barrier.cluster.wait.aligned;
tcgen05.alloc.cta_group::2.sync.aligned.shared::cta.b32 [slot], 512; // @alloc
barrier.cluster.arrive.aligned;
barrier.cluster.wait.aligned;
ld.shared.b32 %r3, [slot];
tcgen05.dealloc.cta_group::2.sync.aligned.b32 %r3, 512; // @free
barrier.cluster.arrive.aligned;
barrier.cluster.wait.aligned;";

/// D is added to in place: threads load it, and a bulk store writes it.
pub const IN_PLACE: &str = "\
shl.b32 %r4, %r0, 2;
mov.u32 %r5, tile;
add.u32 %r5, %r5, %r4;
cvt.u64.u32 %rd3, %r4;
add.s64 %rd3, %rd3, %rd0;
ld.global.u32 %r6, [%rd3]; // @load
add.u32 %r6, %r6, 1;
st.shared.u32 [%r5], %r6;
fence.proxy.async; // @fence
bar.sync 0; // @meet
@!%p0 bra END;
cp.async.bulk.global.shared::cta.bulk_group [%rd0], [tile], 512; // @store
cp.async.bulk.commit_group;
cp.async.bulk.wait_group 0;
END:";

/// Threads store zeroes, and a bulk reduction adds to them.
pub const ADDED_TO: &str = "\
shl.b32 %r4, %r0, 2;
mov.u32 %r5, tile;
add.u32 %r5, %r5, %r4;
cvt.u64.u32 %rd3, %r4;
add.s64 %rd3, %rd3, %rd0;
st.global.u32 [%rd3], %r0; // @zero
st.shared.u32 [%r5], %r0;
fence.proxy.async; // @fence
bar.sync 0;
@!%p0 bra END;
cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%rd0], [tile], 512; // @add
cp.async.bulk.commit_group;
cp.async.bulk.wait_group 0;
END:";

/// All threads of four CTAs store, the last CTA to come reads. As PyTorch's reductions do, all threads fence in front of the barrier behind
/// which one of them takes the ticket, and behind the barrier that tells the others of it.
pub const LAST_CTA: &str = "\
mov.u32 %r3, %ctaid.x;
mad.lo.u32 %r8, %r3, 64, %r0;
mul.wide.u32 %rd3, %r8, 4;
add.s64 %rd3, %rd3, %rd0;
st.global.u32 [%rd3+64], %r3; // @store
membar.gl; // @release
bar.sync 0; // @before
@!%p0 bra TOLD;
atom.global.add.u32 %r4, [%rd0], 1; // @ticket
st.shared.u32 [slot], %r4; // @tell
TOLD:
bar.sync 0; // @told
ld.shared.u32 %r4, [slot]; // @heard
setp.ne.u32 %p1, %r4, 3;
@%p1 bra END;
membar.gl; // @acquire
mul.wide.u32 %rd4, %r0, 4;
add.s64 %rd4, %rd4, %rd0;
ld.global.u32 %r5, [%rd4+64]; // @read
ld.global.u32 %r6, [%rd4+320]; // @read_second
add.u32 %r5, %r5, %r6;
st.global.u32 [%rd4+2048], %r5;
END:";

/// A producer and three warps that read what it brings, one stage.
pub const ONE_STAGE: &str = "\
@!%p0 bra MADE;
mbarrier.init.shared::cta.b64 [bar_a], 1;
mbarrier.init.shared::cta.b64 [bar_b], 3; // @count
fence.mbarrier_init.release.cluster;
MADE:
bar.sync 0;
mov.u32 %r10, 0;
mov.u32 %r11, 0;
elect.sync _|%p5, 0xffffffff;
setp.ne.u32 %p1, %r1, 0;
@%p1 bra READ;
@!%p5 bra END;
BRING:
xor.b32 %r12, %r11, 1;
FREE:
mbarrier.try_wait.parity.shared::cta.b64 %p2, [bar_b], %r12; // @free
@!%p2 bra FREE;
mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar_a], 1024; // @announce
cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [tile], [%rd1], 1024, [bar_a]; // @copy
xor.b32 %r11, %r11, 1;
add.u32 %r10, %r10, 1;
setp.lt.u32 %p3, %r10, 4;
@%p3 bra BRING;
bra END;
READ:
mbarrier.try_wait.parity.shared::cta.b64 %p2, [bar_a], %r11; // @full
@!%p2 bra READ;
ld.shared.u32 %r15, [tile]; // @read
@%p5 mbarrier.arrive.shared::cta.b64 _, [bar_b];
xor.b32 %r11, %r11, 1; // @flip
add.u32 %r10, %r10, 1;
setp.lt.u32 %p3, %r10, 4;
@%p3 bra READ;
END:";

/// Three stages, whose mbarriers lie one behind the other in `response` and behind it, as variables of a structure do.
pub const THREE_STAGES: &str = "\
@!%p0 bra MADE;
mbarrier.init.shared::cta.b64 [tile+4096], 1;
mbarrier.init.shared::cta.b64 [tile+4104], 1;
mbarrier.init.shared::cta.b64 [tile+4112], 1;
mbarrier.init.shared::cta.b64 [tile+4128], 1;
mbarrier.init.shared::cta.b64 [tile+4136], 1;
mbarrier.init.shared::cta.b64 [tile+4144], 1;
fence.mbarrier_init.release.cluster;
MADE:
bar.sync 0;
mov.u32 %r10, 0;
mov.u32 %r11, 0;
mov.u32 %r12, 0;
mov.u32 %r3, tile;
elect.sync _|%p5, 0xffffffff;
setp.ne.u32 %p1, %r1, 0;
@%p1 bra READ;
@!%p5 bra END;
BRING:
shl.b32 %r13, %r11, 3;
add.u32 %r14, %r3, %r13;
shl.b32 %r17, %r11, 10;
add.u32 %r17, %r17, %r3;
xor.b32 %r19, %r12, 1;
FREE:
mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r14+4128], %r19;
@!%p2 bra FREE;
mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r14+4096], 1024;
cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%r17], [%rd1], 1024, [%r14+4096];
add.u32 %r11, %r11, 1;
setp.eq.u32 %p6, %r11, 3;
@%p6 mov.u32 %r11, 0;
@%p6 xor.b32 %r12, %r12, 1;
add.u32 %r10, %r10, 1;
setp.lt.u32 %p3, %r10, 8;
@%p3 bra BRING;
bra END;
READ:
shl.b32 %r13, %r11, 3;
add.u32 %r14, %r3, %r13;
shl.b32 %r17, %r11, 10;
add.u32 %r17, %r17, %r3;
FULL:
mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r14+4096], %r12; // @full
@!%p2 bra FULL;
ld.shared.u32 %r20, [%r17];
@%p5 mbarrier.arrive.shared::cta.b64 _, [%r14+4128]; // @release
add.u32 %r11, %r11, 1;
setp.eq.u32 %p6, %r11, 3; // @last_stage
@%p6 mov.u32 %r11, 0;
@%p6 xor.b32 %r12, %r12, 1; // @flip
add.u32 %r10, %r10, 1;
setp.lt.u32 %p3, %r10, 8;
@%p3 bra READ;
END:";

/// Two groups meet three times.
pub const MEET_THRICE: &str = "\
setp.lt.u32 %p1, %r0, 128;
mov.u32 %r10, 0;
@%p1 bra COMPUTE;
LOAD:
bar.sync 1, 256; // @wait
add.u32 %r10, %r10, 1;
setp.lt.u32 %p2, %r10, 3;
@%p2 bra LOAD;
bra END;
COMPUTE:
bar.sync 1, 256; // @arrive
add.u32 %r10, %r10, 1;
setp.lt.u32 %p2, %r10, 3;
@%p2 bra COMPUTE;
END:";

/// The tile that an MMA has read holds its product in the end.
pub const PRODUCT_IN_ITS_OPERAND: &str = "\
setp.ne.u32 %p1, %r1, 0;
@%p1 bra ALLOCATED;
tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [slot], 32;
tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;
ALLOCATED:
@!%p0 bra MADE;
mbarrier.init.shared::cta.b64 [bar_a], 1;
mbarrier.init.shared::cta.b64 [bar_b], 1;
fence.mbarrier_init.release.cluster;
MADE:
bar.sync 0;
ld.shared.b32 %r6, [slot];
mov.u32 %r4, tile;
shr.u32 %r8, %r4, 4;
cvt.u64.u32 %rd3, %r8;
and.b64 %rd3, %rd3, 0x3fff;
or.b64 %rd3, %rd3, 0x0000401000080000;
add.s64 %rd4, %rd3, 256;
@!%p0 bra ISSUED;
mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar_a], 8192;
cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [tile], [%rd1], 8192, [bar_a];
FULL:
mbarrier.try_wait.parity.shared::cta.b64 %p2, [bar_a], 0;
@!%p2 bra FULL;
tcgen05.mma.cta_group::1.kind::f16 [%r6], %rd3, %rd4, 0x08020010, 0;
tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [bar_b];
ISSUED:
bar.warp.sync -1;
DONE:
mbarrier.try_wait.parity.shared::cta.b64 %p2, [bar_b], 0; // @wait
@!%p2 bra DONE;
tcgen05.fence::after_thread_sync;
shl.b32 %r7, %r1, 21;
add.u32 %r7, %r7, %r6;
tcgen05.ld.sync.aligned.32x32b.x4.b32 {%r20, %r21, %r22, %r23}, [%r7]; // @load
tcgen05.wait::ld.sync.aligned;
shl.b32 %r9, %r0, 4;
add.u32 %r9, %r9, %r4;
st.shared.v4.b32 [%r9], {%r20, %r21, %r22, %r23}; // @store
tcgen05.fence::before_thread_sync;
bar.sync 0;
@%p1 bra END;
tcgen05.fence::after_thread_sync;
tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r6, 32;
END:";

/// One of two warps takes part in the first phase only.
pub const ONE_DROPS_OUT: &str = "\
@!%p0 bra MADE;
mbarrier.init.shared::cta.b64 [bar_a], 2;
fence.mbarrier_init.release.cluster;
MADE:
bar.sync 0;
setp.eq.u32 %p1, %r1, 0;
elect.sync _|%p5, 0xffffffff;
@%p1 bra STAYS;
@%p5 mbarrier.arrive_drop.shared::cta.b64 _, [bar_a];
bra END;
STAYS:
@%p5 mbarrier.arrive.shared::cta.b64 _, [bar_a];
FIRST:
mbarrier.try_wait.parity.shared::cta.b64 %p2, [bar_a], 0;
@!%p2 bra FIRST;
@%p5 mbarrier.arrive.shared::cta.b64 _, [bar_a];
SECOND:
mbarrier.try_wait.parity.shared::cta.b64 %p2, [bar_a], 1;
@!%p2 bra SECOND;
END:";
