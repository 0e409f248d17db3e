//! The kernels of `engines.rs`, as they are right.

/// Two warps take work over from CTAs that have not begun; an mbarrier says when both have read the response.
pub const REQUESTED: &str = "\
@!%p0 bra MADE;
mbarrier.init.shared::cta.b64 [bar_a], 1;
mbarrier.init.shared::cta.b64 [bar_b], 2; // @ib
MADE:
bar.sync 0;
mov.u32 %r3, %ctaid.x;
mov.u32 %r4, 0; // @par
mov.u32 %r6, 1;
mov.u32 %r9, 0;
and.b32 %r7, %r0, 31;
setp.eq.u32 %p4, %r7, 0;
NEXT:
@!%p0 bra WORK; // @who
EW:
mbarrier.try_wait.parity.shared::cta.b64 %p2, [bar_b], %r6; // @ew
@!%p2 bra EW;
mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar_a], 16; // @exp
clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.b128 [response], [bar_a]; // @ask
WORK:
mul.wide.u32 %rd3, %r3, 8;
mul.wide.u32 %rd4, %r1, 4;
add.s64 %rd3, %rd3, %rd4;
add.s64 %rd3, %rd3, %rd0;
add.u32 %r5, %r3, 1;
@%p4 st.global.u32 [%rd3], %r5; // @work
WAIT:
mbarrier.try_wait.parity.shared::cta.b64 %p2, [bar_a], %r4; // @wait
@!%p2 bra WAIT;
xor.b32 %r4, %r4, 1; // @flip
xor.b32 %r6, %r6, 1;
ld.shared.b128 %q0, [response]; // @ld
fence.proxy.async.shared::cta; // @pf
bar.warp.sync -1;
@%p4 mbarrier.arrive.shared::cta.b64 _, [bar_b]; // @arr
clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 %p3, %q0; // @q
@!%p3 bra END; // @end
clusterlaunchcontrol.query_cancel.get_first_ctaid.v4.b32.b128 {%r3, _, _, _}, %q0; // @first
add.u32 %r9, %r9, 1;
bra NEXT;
END:";

/// Warp 1 brings the scale factors of A to tensor memory, warp 0 those of B, and multiplies.
pub const FACTORS_OF_ANOTHER: &str = "\
setp.ne.u32 %p1, %r1, 0;
@%p1 bra ALLOCATED;
tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [slot], 64; // @alloc
tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;
ALLOCATED:
@%p0 mbarrier.init.shared::cta.b64 [bar_a], 1;
@%p0 mbarrier.init.shared::cta.b64 [bar_b], 1;
shl.b32 %r3, %r0, 2;
mov.u32 %r4, tile;
add.u32 %r5, %r3, %r4;
mov.u32 %r8, 0x38383838;
mov.u32 %r9, 0;
FILL:
st.shared.u32 [%r5], %r8;
add.u32 %r5, %r5, 512;
add.u32 %r9, %r9, 1;
setp.lt.u32 %p2, %r9, 10;
@%p2 bra FILL;
mov.u32 %r8, 0x7f7f7f7f;
st.shared.u32 [%r5], %r8;
mov.u32 %r10, 0x80808080;
st.shared.u32 [%r5+512], %r10;
fence.proxy.async.shared::cta; // @pf
tcgen05.fence::before_thread_sync; // @fb
bar.sync 0; // @bar
tcgen05.fence::after_thread_sync; // @fa0
ld.shared.b32 %r6, [slot];
add.u32 %r30, %r6, 16; // @colA
add.u32 %r31, %r6, 20; // @colB
shr.u32 %r8, %r4, 4;
cvt.u64.u32 %rd3, %r8;
and.b64 %rd3, %rd3, 0x3fff;
or.b64 %rd3, %rd3, 0x0000401000080000;
add.s64 %rd4, %rd3, 256;
sub.s64 %rd8, %rd3, 0x800000000;
add.s64 %rd6, %rd8, 320;
add.s64 %rd7, %rd8, 352;
mov.u32 %r32, 0x08840000; // @idesc
setp.ne.u32 %p5, %r0, %r0;
setp.eq.u32 %p6, %r0, 32;
@%p6 tcgen05.cp.cta_group::1.32x128b.warpx4 [%r30], %rd6; // @cpA
@%p6 tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [bar_b]; // @commitA
tcgen05.fence::before_thread_sync; // @fb2
bar.sync 0; // @met
tcgen05.fence::after_thread_sync; // @fa2
@!%p0 bra WAIT; // @one
tcgen05.cp.cta_group::1.32x128b.warpx4 [%r31], %rd7; // @cpB
tcgen05.mma.cta_group::1.kind::mxf8f6f4.block_scale.scale_vec::1X [%r6], %rd3, %rd4, %r32, [%r30], [%r31], %p5; // @mma
tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [bar_a]; // @commit
WAIT:
mbarrier.try_wait.parity.shared::cta.b64 %p3, [bar_a], 0; // @wait
@!%p3 bra WAIT;
WAIT_A:
mbarrier.try_wait.parity.shared::cta.b64 %p3, [bar_b], 0; // @waitA
@!%p3 bra WAIT_A;
tcgen05.fence::after_thread_sync; // @fa
shl.b32 %r7, %r1, 21;
add.u32 %r7, %r7, %r6;
tcgen05.ld.sync.aligned.32x32b.x16.b32 {%r40, %r41, %r42, %r43, %r44, %r45, %r46, %r47, %r48, %r49, %r50, %r51, %r52, %r53, %r54, %r55}, [%r7]; // @load
tcgen05.wait::ld.sync.aligned; // @wl
mul.wide.u32 %rd5, %r0, 16;
add.s64 %rd5, %rd5, %rd0;
st.global.v4.u32 [%rd5], {%r40, %r45, %r50, %r55};
tcgen05.fence::before_thread_sync;
bar.sync 0; // @bar2
@%p1 bra END; // @freer
tcgen05.fence::after_thread_sync;
tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r6, 64; // @free
END:";

/// A warpgroup gives registers to two others.
pub const HANDED_ON: &str = "\
setp.ge.u32 %p1, %r0, 128;
@%p1 bra TAKE;
setmaxnreg.dec.sync.aligned.u32 88; // @dec
bra MET;
TAKE:
setmaxnreg.inc.sync.aligned.u32 208; // @inc
MET:
bar.sync 0; // @bar
mul.wide.u32 %rd3, %r0, 4;
add.s64 %rd3, %rd3, %rd0;
st.global.u32 [%rd3], %r0;";

/// Four warps store to tensor memory, and one frees it.
pub const FREED: &str = "\
setp.ne.u32 %p1, %r1, 0;
@%p1 bra ALLOCATED;
tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [slot], 32; // @alloc
tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned; // @rel
ALLOCATED:
tcgen05.fence::before_thread_sync;
bar.sync 0; // @bar
tcgen05.fence::after_thread_sync;
ld.shared.b32 %r6, [slot]; // @lds
shl.b32 %r7, %r1, 21;
add.u32 %r7, %r7, %r6; // @quarter
tcgen05.st.sync.aligned.32x32b.x2.b32 [%r7], {%r0, %r1}; // @st
tcgen05.wait::st.sync.aligned; // @ws
tcgen05.ld.sync.aligned.32x32b.x2.b32 {%r20, %r21}, [%r7]; // @ld
tcgen05.wait::ld.sync.aligned; // @wl
mul.wide.u32 %rd5, %r0, 8;
add.s64 %rd5, %rd5, %rd0;
st.global.v2.u32 [%rd5], {%r20, %r21}; // @out
tcgen05.fence::before_thread_sync;
bar.sync 0; // @bar2
@%p1 bra END; // @freer
tcgen05.fence::after_thread_sync;
tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r6, 32; // @free
END:";

/// Each of two warps copies its part of the tile to a place of its own.
pub const EACH_ITS_OWN: &str = "\
shl.b32 %r4, %r0, 2;
mov.u32 %r5, tile;
add.u32 %r5, %r5, %r4;
and.b32 %r7, %r0, 31;
setp.eq.u32 %p4, %r7, 0;
st.shared.u32 [%r5], %r0; // @st
fence.proxy.async.shared::cta;
bar.warp.sync -1;
shl.b32 %r8, %r1, 7;
mov.u32 %r9, tile;
add.u32 %r9, %r9, %r8;
cvt.u64.u32 %rd3, %r8; // @off
add.s64 %rd3, %rd3, %rd0;
@!%p4 bra END; // @who
cp.async.bulk.global.shared::cta.bulk_group [%rd3], [%r9], 128; // @cp
cp.async.bulk.commit_group;
cp.async.bulk.wait_group 0;
END:";

/// A warp stores a word in rounds, two others read it, and say so.
pub const TWO_READERS: &str = "\
@!%p0 bra MADE;
mbarrier.init.shared::cta.b64 [bar_a], 1; // @ia
mbarrier.init.shared::cta.b64 [bar_b], 2; // @ib
MADE:
bar.sync 0;
and.b32 %r7, %r0, 31;
setp.eq.u32 %p4, %r7, 0;
setp.eq.u32 %p1, %r1, 0;
mov.u32 %r10, 0;
mov.u32 %r4, 0;
mov.u32 %r6, 1;
L:
@!%p1 bra CONS;
W1:
mbarrier.try_wait.parity.shared::cta.b64 %p2, [bar_b], %r6; // @we
@!%p2 bra W1;
st.shared.u32 [slot], %r10; // @st
bar.warp.sync -1;
@%p4 mbarrier.arrive.shared::cta.b64 _, [bar_a]; // @aa
bra NEXT;
CONS:
W2:
mbarrier.try_wait.parity.shared::cta.b64 %p2, [bar_a], %r4; // @wf
@!%p2 bra W2;
ld.shared.u32 %r8, [slot]; // @ld
bar.warp.sync -1;
@%p4 mbarrier.arrive.shared::cta.b64 _, [bar_b]; // @ab
NEXT:
xor.b32 %r4, %r4, 1;
xor.b32 %r6, %r6, 1;
add.u32 %r10, %r10, 1;
setp.lt.u32 %p3, %r10, 6;
@%p3 bra L;
END:";
