//! The kernels of `tried_more.rs`, as they are right.

/// One thread fills 256 bytes with zeroes, which all read.
pub const FILL: &str = "\
mov.u32 %r3, tile;
shl.b32 %r4, %r0, 2;
add.u32 %r5, %r4, %r3;
mov.u64 %rd3, 256;
@%p0 st.bulk.weak.shared::cta [%r3], %rd3, 0; // @fill
bar.sync 0; // @b
ld.shared.u32 %r6, [%r5]; // @ld
add.u32 %r6, %r6, 3;
mul.wide.u32 %rd4, %r0, 4;
add.s64 %rd4, %rd4, %rd0;
st.global.u32 [%rd4], %r6;
END:";

/// A of an MMA is stored to tensor memory by the warps that read its product.
pub const A_IN_TENSOR_MEMORY: &str = "\
setp.ne.u32 %p1, %r1, 0;
@%p1 bra ALLOCATED;
tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [slot], 64; // @alloc
tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;
ALLOCATED:
@!%p0 bra MADE;
mbarrier.init.shared::cta.b64 [bar_a], 1;
mbarrier.init.shared::cta.b64 [bar_b], 1;
fence.mbarrier_init.release.cluster;
MADE:
tcgen05.fence::before_thread_sync;
bar.sync 0; // @met
tcgen05.fence::after_thread_sync;
ld.shared.b32 %r6, [slot];
mov.u32 %r4, tile;
shr.u32 %r8, %r4, 4;
cvt.u64.u32 %rd3, %r8;
and.b64 %rd3, %rd3, 0x3fff;
or.b64 %rd3, %rd3, 0x0000401000080000;
shl.b32 %r7, %r1, 21;
add.u32 %r7, %r7, %r6;

mov.u32 %r20, 0;
add.u32 %r21, %r7, 32;
tcgen05.st.sync.aligned.32x32b.x8.b32 [%r21], {%r20,%r20,%r20,%r20,%r20,%r20,%r20,%r20}; // @st
tcgen05.wait::st.sync.aligned; // @wst
tcgen05.fence::before_thread_sync; // @fb
bar.sync 1, 128; // @b1
@!%p0 bra ISSUED;
tcgen05.fence::after_thread_sync; // @fa
mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar_a], 1024; // @expect
cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [tile], [%rd1], 1024, [bar_a];
FULL:
mbarrier.try_wait.parity.shared::cta.b64 %p2, [bar_a], 0; // @full
@!%p2 bra FULL;
add.u32 %r22, %r6, 32; // @acol
tcgen05.mma.cta_group::1.kind::f16 [%r6], [%r22], %rd3, 0x08020010, 0; // @mma
tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [bar_b]; // @commit
ISSUED:
bar.warp.sync -1;
DONE:
mbarrier.try_wait.parity.shared::cta.b64 %p2, [bar_b], 0; // @wait
@!%p2 bra DONE;
tcgen05.fence::after_thread_sync; // @fa2
tcgen05.ld.sync.aligned.32x32b.x4.b32 {%r20, %r21, %r22, %r23}, [%r7]; // @load
tcgen05.wait::ld.sync.aligned; // @wld
mul.wide.u32 %rd5, %r0, 16;
add.s64 %rd5, %rd5, %rd0;
st.global.v4.u32 [%rd5], {%r20, %r21, %r22, %r23};
tcgen05.fence::before_thread_sync;
bar.sync 0; // @bend
@%p1 bra END;
tcgen05.fence::after_thread_sync;
tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r6, 64; // @free
END:";

/// An MMA warp and four warps that read its products, through two accumulators.
pub const TWO_ACCUMULATORS: &str = "\
setp.eq.u32 %p1, %r1, 4;
@!%p1 bra ALLOCATED;
tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [slot], 32;
ALLOCATED:
@!%p0 bra MADE;
mbarrier.init.shared::cta.b64 [bar_a], 1;
mbarrier.init.shared::cta.b64 [bar_b], 1;
mbarrier.init.shared::cta.b64 [response], 4; // @empty0
mbarrier.init.shared::cta.b64 [response+8], 4;
MADE:
shl.b32 %r10, %r0, 4;
mov.u32 %r4, tile;
add.u32 %r10, %r10, %r4;
mov.u32 %r11, 0;
setp.ge.u32 %p9, %r0, 64;
@!%p9 st.shared.v4.u32 [%r10], {%r11,%r11,%r11,%r11};
setp.ge.u32 %p9, %r0, 128;
@!%p9 st.shared.v4.u32 [%r10+4096], {%r11,%r11,%r11,%r11};
@!%p9 st.shared.v4.u32 [%r10+6144], {%r11,%r11,%r11,%r11}; // @second_half
fence.proxy.async.shared::cta; // @pf
tcgen05.fence::before_thread_sync;
bar.sync 0;
tcgen05.fence::after_thread_sync;
ld.shared.b32 %r6, [slot];
shr.u32 %r8, %r4, 4;
cvt.u64.u32 %rd3, %r8;
and.b64 %rd3, %rd3, 0x3fff;
or.b64 %rd3, %rd3, 0x0000401000080000;
add.s64 %rd4, %rd3, 256;
mov.u32 %r12, 0;
mov.u32 %r13, 0;
elect.sync _|%p5, -1;
@!%p1 bra EPI;
@!%p5 bra MDONE;
M:
and.b32 %r14, %r12, 1;
shl.b32 %r15, %r14, 3;
mov.u32 %r16, response;
add.u32 %r16, %r16, %r15;
shr.u32 %r17, %r12, 1;
and.b32 %r17, %r17, 1;
xor.b32 %r17, %r17, 1;
ME:
mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r16], %r17; // @mempty
@!%p2 bra ME;
tcgen05.fence::after_thread_sync;
shl.b32 %r18, %r14, 4; // @mcol
add.u32 %r18, %r18, %r6;
tcgen05.mma.cta_group::1.kind::f16 [%r18], %rd4, %rd3, 0x08020010, 0; // @mma
mov.u32 %r19, bar_a;
add.u32 %r19, %r19, %r15;
tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%r19]; // @commit
add.u32 %r12, %r12, 1;
setp.lt.u32 %p3, %r12, 5;
@%p3 bra M;
MDONE:
bra FIN;
EPI:
shl.b32 %r7, %r1, 21;
add.u32 %r7, %r7, %r6;
E:
and.b32 %r14, %r12, 1;
shl.b32 %r15, %r14, 3;
mov.u32 %r19, bar_a;
add.u32 %r19, %r19, %r15;
shr.u32 %r17, %r12, 1;
and.b32 %r17, %r17, 1; // @eparity
EF:
mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r19], %r17; // @efull
@!%p2 bra EF;
tcgen05.fence::after_thread_sync;
shl.b32 %r18, %r14, 4; // @ecol
add.u32 %r18, %r18, %r7;
tcgen05.ld.sync.aligned.32x32b.x8.b32 {%r20,%r21,%r22,%r23,%r24,%r25,%r26,%r27}, [%r18]; // @load
tcgen05.wait::ld.sync.aligned; // @wld
tcgen05.fence::before_thread_sync;
mov.u32 %r16, response;
add.u32 %r16, %r16, %r15;
@%p5 mbarrier.arrive.shared::cta.b64 _, [%r16]; // @release
add.u32 %r13, %r13, %r20;
add.u32 %r12, %r12, 1;
setp.lt.u32 %p3, %r12, 5; // @etiles
@%p3 bra E;
mul.wide.u32 %rd5, %r0, 4;
add.s64 %rd5, %rd5, %rd0;
st.global.u32 [%rd5], %r13;
FIN:
tcgen05.fence::before_thread_sync;
bar.sync 0; // @fin
@!%p1 bra END;
tcgen05.fence::after_thread_sync;
tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;
tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r6, 32; // @free
END:";

/// CTA 0 copies 256 bytes of its shared memory to CTA 1; both meet in the end.
pub const TO_ANOTHER_CTA: &str = "\
@!%p0 bra MADE;
mbarrier.init.shared::cta.b64 [bar_a], 1;
mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar_a], 256; // @expect
fence.mbarrier_init.release.cluster;
MADE:
mov.u32 %r3, tile;
shl.b32 %r4, %r0, 2;
add.u32 %r5, %r3, %r4;
st.shared.u32 [%r5], %r0; // @st
fence.proxy.async.shared::cta; // @pf
barrier.cluster.arrive.aligned; // @carr
barrier.cluster.wait.aligned;
setp.eq.u32 %p1, %r2, 1;
@%p1 bra RECV;
@!%p0 bra SENT;
add.u32 %r6, %r3, 1024;
mapa.shared::cluster.u32 %r6, %r6, 1;
mov.u32 %r7, bar_a;
mapa.shared::cluster.u32 %r8, %r7, 1;
cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%r6], [tile], 256, [%r8]; // @cp
SENT:
bra MEET;
RECV:
mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p2, [bar_a], 0; // @wait
@!%p2 bra RECV;
ld.shared.u32 %r10, [%r5+1024]; // @ld
mul.wide.u32 %rd3, %r0, 4;
add.s64 %rd3, %rd3, %rd0;
st.global.u32 [%rd3], %r10;
MEET:
barrier.cluster.arrive.aligned; // @xarr
barrier.cluster.wait.aligned; // @xwait
END:";

/// CTAs add to the same words one after the other.
pub const TURNSTILE: &str = "\
mov.u32 %r3, %ctaid.x;
mul.wide.u32 %rd3, %r0, 4;
add.s64 %rd3, %rd3, %rd0;
@!%p0 bra PASSED;
POLL:
ld.acquire.gpu.global.u32 %r4, [%rd0+4096]; // @poll
setp.ne.u32 %p1, %r4, %r3;
@%p1 bra POLL;
PASSED:
bar.sync 0; // @b1
ld.global.u32 %r5, [%rd3]; // @ld
add.u32 %r5, %r5, %r3;
st.global.u32 [%rd3], %r5; // @st
bar.sync 0; // @b2
@!%p0 bra END;
red.release.gpu.global.add.u32 [%rd0+4096], 1; // @next
END:";

/// Each CTA of a pair stores to the other one, which counts the bytes.
pub const PUSHED: &str = "\
@!%p0 bra MADE;
mbarrier.init.shared::cta.b64 [bar_a], 1; // @init
mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar_a], 128; // @expect
fence.mbarrier_init.release.cluster;
MADE:
barrier.cluster.arrive.release.aligned; // @carr
barrier.cluster.wait.acquire.aligned; // @cwait
mov.u32 %r3, tile;
mov.u32 %r4, bar_a;
xor.b32 %r5, %r2, 1;
mapa.shared::cluster.u32 %r6, %r3, %r5;
mapa.shared::cluster.u32 %r7, %r4, %r5;
shl.b32 %r8, %r0, 2;
add.u32 %r6, %r6, %r8;
add.u32 %r3, %r3, %r8;
shl.b32 %r9, %r2, 8;
add.u32 %r9, %r9, %r0;
st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.u32 [%r6], %r9, [%r7]; // @push
WAIT:
mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p2, [bar_a], 0; // @wait
@!%p2 bra WAIT;
ld.shared.u32 %r10, [%r3]; // @ld
mul.wide.u32 %rd3, %r9, 4;
add.s64 %rd3, %rd3, %rd0;
st.global.u32 [%rd3], %r10;
END:";

/// A thread arrives for two without completing the phase, and then for itself.
pub const NOT_COMPLETED: &str = "\
@!%p0 bra MADE;
mbarrier.init.shared::cta.b64 [bar_a], 3; // @init
MADE:
bar.sync 0;
setp.ne.u32 %p1, %r1, 0;
@%p1 bra READ;
@!%p0 bra END;
mbarrier.arrive.noComplete.release.cta.shared::cta.b64 %rd3, [bar_a], 2; // @no
st.shared.u32 [tile], 5; // @st
mbarrier.arrive.release.cta.shared::cta.b64 %rd3, [bar_a]; // @last
bra END;
READ:
mbarrier.try_wait.parity.acquire.cta.shared::cta.b64 %p2, [bar_a], 0, 1000; // @wait
@!%p2 bra READ;
ld.shared.u32 %r5, [tile]; // @ld
st.global.u32 [%rd0], %r5;
END:";

/// Two warps exchange words in rounds, and wait by the state that their arrival gave.
pub const TOKENS: &str = "\
@!%p0 bra MADE;
mbarrier.init.shared::cta.b64 [bar_a], 64; // @init
MADE:
bar.sync 0;
mov.u32 %r10, 0;
mov.u32 %r3, tile;
shl.b32 %r4, %r0, 2;
add.u32 %r4, %r4, %r3;
xor.b32 %r5, %r0, 32;
shl.b32 %r5, %r5, 2;
add.u32 %r5, %r5, %r3;
ROUND:
add.u32 %r6, %r10, %r0;
st.shared.u32 [%r4], %r6; // @st
mbarrier.arrive.shared::cta.b64 %rd3, [bar_a]; // @arrive
W1:
mbarrier.test_wait.shared::cta.b64 %p2, [bar_a], %rd3; // @wait
@%p2 bra GO;
nanosleep.u32 20;
bra W1;
GO:
ld.shared.u32 %r7, [%r5]; // @ld
mbarrier.arrive.shared::cta.b64 %rd4, [bar_a]; // @arrive2
W2:
mbarrier.try_wait.shared::cta.b64 %p2, [bar_a], %rd4; // @wait2
@!%p2 bra W2;
add.u32 %r10, %r10, 1;
setp.lt.u32 %p3, %r10, 3;
@%p3 bra ROUND;
mul.wide.u32 %rd5, %r0, 4;
add.s64 %rd5, %rd5, %rd0;
st.global.u32 [%rd5], %r7;
END:";
