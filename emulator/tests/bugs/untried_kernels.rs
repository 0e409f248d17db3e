//! The kernels of `untried.rs` and `untried_exchange.rs`, as they are right; those that make tensor maps are in `untried_maps.rs`.

/// Clusters of two CTAs take over others; the response goes to both.
pub const TAKEN_BY_TWO: &str = "\
@!%p0 bra MADE;
mbarrier.init.shared::cta.b64 [bar_a], 1;
fence.mbarrier_init.release.cluster;
MADE:
mov.u32 %r3, %ctaid.x;
mov.u32 %r4, 0;
setp.eq.u32 %p1, %r2, 0;
and.pred %p1, %p1, %p0;
barrier.cluster.arrive.relaxed.aligned;
NEXT:
barrier.cluster.wait.acquire.aligned; // @cwait
@%p0 mbarrier.arrive.expect_tx.relaxed.cluster.shared::cta.b64 _, [bar_a], 16; // @expect
@%p1 clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.multicast::cluster::all.b128 [response], [bar_a]; // @ask
mul.wide.u32 %rd3, %r3, 4;
add.s64 %rd3, %rd3, %rd0;
add.u32 %r5, %r3, 1;
@%p0 st.global.u32 [%rd3], %r5; // @work
WAIT:
mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p2, [bar_a], %r4; // @wait
@!%p2 bra WAIT;
xor.b32 %r4, %r4, 1; // @flip
ld.shared.b128 %q0, [response]; // @ld
clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 %p3, %q0;
@!%p3 bra END;
clusterlaunchcontrol.query_cancel.get_first_ctaid.v4.b32.b128 {%r3, _, _, _}, %q0; // @first
add.u32 %r3, %r3, %r2;
fence.proxy.async.shared::cta; // @pf
barrier.cluster.arrive.relaxed.aligned; // @arrive
bra NEXT;
END:";

/// Scale factors go to tensor memory, and from there to registers.
pub const COPIED_FACTORS: &str = "\
setp.ne.u32 %p1, %r1, 0;
@%p1 bra ALLOCATED;
tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [slot], 32; // @alloc
tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;
ALLOCATED:
@%p0 mbarrier.init.shared::cta.b64 [bar_a], 1;
shl.b32 %r3, %r0, 2;
mov.u32 %r4, tile;
add.u32 %r5, %r3, %r4;
st.shared.u32 [%r5], %r0; // @put
fence.proxy.async.shared::cta; // @pf
tcgen05.fence::before_thread_sync;
bar.sync 0;
tcgen05.fence::after_thread_sync;
ld.shared.b32 %r6, [slot];
@!%p0 bra WAIT; // @one
shr.u32 %r8, %r4, 4;
cvt.u64.u32 %rd3, %r8;
and.b64 %rd3, %rd3, 0x3fff;
or.b64 %rd3, %rd3, 0x0000400800080000;
tcgen05.cp.cta_group::1.32x128b.warpx4 [%r6], %rd3; // @cp
tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [bar_a]; // @commit
WAIT:
mbarrier.try_wait.parity.shared::cta.b64 %p3, [bar_a], 0; // @wait
@!%p3 bra WAIT;
tcgen05.fence::after_thread_sync; // @fa
st.shared.u32 [%r5], %r3; // @again
shl.b32 %r7, %r1, 21;
add.u32 %r7, %r7, %r6;
tcgen05.ld.sync.aligned.32x32b.x4.b32 {%r20, %r21, %r22, %r23}, [%r7]; // @load
tcgen05.wait::ld.sync.aligned;
mul.wide.u32 %rd5, %r0, 16;
add.s64 %rd5, %rd5, %rd0;
st.global.v4.u32 [%rd5], {%r20, %r21, %r22, %r23};
tcgen05.fence::before_thread_sync;
bar.sync 0;
@%p1 bra END;
tcgen05.fence::after_thread_sync;
tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r6, 32;
END:";

/// Two CTAs add their tile to the same 128 FP16 numbers; the last one reads the sums.
pub const ADDED_IN_BULK: &str = "\
mov.u32 %r3, tile;
shl.b32 %r4, %r0, 2;
add.u32 %r5, %r3, %r4;
mov.u32 %r6, 0x3c003c00;
st.shared.u32 [%r5], %r6;
fence.proxy.async.shared::cta; // @pf
bar.sync 0;
@!%p0 bra MET;
cp.reduce.async.bulk.global.shared::cta.bulk_group.add.noftz.f16 [%rd0+1024], [tile], 256; // @add
cp.async.bulk.commit_group; // @group
cp.async.bulk.wait_group 0; // @done
fence.acq_rel.gpu; // @release
atom.global.relaxed.gpu.add.u32 %r7, [%rd0+4096], 1;
fence.acq_rel.gpu;
st.shared.u32 [slot], %r7;
MET:
bar.sync 0;
st.shared.u32 [%r5], %r4; // @again
ld.shared.u32 %r7, [slot];
setp.ne.u32 %p1, %r7, 1;
@%p1 bra END;
mul.wide.u32 %rd3, %r0, 4;
add.s64 %rd3, %rd3, %rd0;
ld.global.u32 %r8, [%rd3+1024]; // @ld
st.global.u32 [%rd3], %r8;
END:";

/// CTA 0 stores to CTA 1, whose mbarrier counts the bytes.
pub const SENT: &str = "\
@!%p0 bra MADE;
mbarrier.init.shared::cta.b64 [bar_a], 1;
fence.mbarrier_init.release.cluster; // @fi
mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar_a], 256; // @expect
MADE:
shl.b32 %r3, %r0, 2;
mov.u32 %r4, tile;
add.u32 %r4, %r4, %r3;
mov.u32 %r5, bar_a;
mov.u32 %r6, 7;
st.shared.u32 [%r4+1024], %r6; // @base
barrier.cluster.arrive.aligned; // @carr
barrier.cluster.wait.aligned; // @cwait
setp.ne.u32 %p1, %r2, 0;
@%p1 bra GET;
mapa.shared::cluster.u32 %r7, %r4, 1; // @mapa
mapa.shared::cluster.u32 %r8, %r5, 1; // @mapb
st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.u32 [%r7], %r0, [%r8]; // @send
red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32 [%r7+1024], %r0, [%r8]; // @add
bra END;
GET:
WAIT:
mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p2, [bar_a], 0; // @wait
@!%p2 bra WAIT;
ld.shared.u32 %r9, [%r4]; // @ld
ld.shared.u32 %r10, [%r4+1024]; // @ld2
add.u32 %r9, %r9, %r10;
mul.wide.u32 %rd3, %r0, 4;
add.s64 %rd3, %rd3, %rd0;
st.global.u32 [%rd3], %r9;
END:";

/// CTA 0 stores plainly to CTA 1, and arrives at its mbarrier.
pub const TOLD: &str = "\
@!%p0 bra MADE;
mbarrier.init.shared::cta.b64 [bar_a], 32; // @init
fence.mbarrier_init.release.cluster;
MADE:
shl.b32 %r3, %r0, 2;
mov.u32 %r4, tile;
add.u32 %r4, %r4, %r3;
mov.u32 %r5, bar_a;
barrier.cluster.arrive.relaxed.aligned;
barrier.cluster.wait.acquire.aligned;
setp.ne.u32 %p1, %r2, 0;
@%p1 bra WAIT;
mapa.shared::cluster.u32 %r7, %r4, 1;
mapa.shared::cluster.u32 %r8, %r5, 1;
st.shared::cluster.u32 [%r7], %r0; // @st
mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r8]; // @arrive
bra END;
WAIT:
mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p2, [bar_a], 0, 1000; // @wait
@!%p2 bra WAIT;
ld.shared.u32 %r9, [%r4]; // @ld
mul.wide.u32 %rd3, %r0, 4;
add.s64 %rd3, %rd3, %rd0;
st.global.u32 [%rd3], %r9;
END:";

/// Each thread copies four words; an mbarrier of all threads' copies says when all are there.
pub const COPIED_AND_COUNTED: &str = "\
@%p0 mbarrier.init.shared::cta.b64 [bar_a], 64; // @init
bar.sync 0;
shl.b32 %r3, %r0, 4;
mov.u32 %r4, tile;
add.u32 %r5, %r4, %r3;
cvt.u64.u32 %rd3, %r3;
add.s64 %rd4, %rd3, %rd1;
cp.async.cg.shared.global [%r5], [%rd4], 16; // @copy
cp.async.mbarrier.arrive.noinc.shared::cta.b64 [bar_a]; // @arrive
WAIT:
mbarrier.test_wait.parity.shared::cta.b64 %p2, [bar_a], 0; // @wait
@!%p2 bra WAIT; // @again
xor.b32 %r6, %r3, 1008;
add.u32 %r6, %r6, %r4;
ld.shared.v4.u32 {%r7, %r8, %r9, %r10}, [%r6]; // @ld
add.s64 %rd3, %rd3, %rd0;
st.global.v4.u32 [%rd3], {%r7, %r8, %r9, %r10};
END:";

/// The same, where each thread's arrival gives the state that it waits with.
pub const COUNTED_BY_STATE: &str = "\
@%p0 mbarrier.init.shared::cta.b64 [bar_a], 64; // @init
bar.sync 0;
shl.b32 %r3, %r0, 4;
mov.u32 %r4, tile;
add.u32 %r5, %r4, %r3;
cvt.u64.u32 %rd3, %r3;
add.s64 %rd4, %rd3, %rd1;
cp.async.ca.shared.global [%r5], [%rd4], 16; // @copy
cp.async.mbarrier.arrive.shared::cta.b64 [bar_a]; // @arrive
mbarrier.arrive.release.cta.shared::cta.b64 %rd5, [bar_a]; // @own
WAIT:
mbarrier.test_wait.acquire.cta.shared::cta.b64 %p2, [bar_a], %rd5; // @wait
@!%p2 bra WAIT;
xor.b32 %r6, %r3, 1008;
add.u32 %r6, %r6, %r4;
ld.shared.v4.u32 {%r7, %r8, %r9, %r10}, [%r6]; // @ld
add.s64 %rd3, %rd3, %rd0;
st.global.v4.u32 [%rd3], {%r7, %r8, %r9, %r10};
END:";

/// Each half of a warp elects a thread, that stores for it.
pub const TWO_ELECTED: &str = "\
mov.u32 %r3, 0x0000ffff;
setp.ge.u32 %p1, %r0, 16;
@%p1 bra SECOND;
elect.sync %r4|%p2, %r3; // @first
bra BOTH;
SECOND:
elect.sync %r4|%p2, 0xffff0000; // @second
BOTH:
bar.warp.sync -1;
mul.wide.u32 %rd3, %r0, 4;
add.s64 %rd3, %rd3, %rd0;
st.global.u32 [%rd3], %r4;
add.s64 %rd3, %rd3, 1024;
@%p2 st.global.u32 [%rd3], %r0;
END:";

/// Four warps give registers away, four others take them, and hand them back.
pub const REGISTERS: &str = "\
setp.ge.u32 %p1, %r0, 128;
@%p1 bra TAKE;
setmaxnreg.dec.sync.aligned.u32 120; // @dec
bra MET;
TAKE:
setmaxnreg.inc.sync.aligned.u32 208; // @inc
bar.sync 1, 128; // @between
setmaxnreg.dec.sync.aligned.u32 168; // @back
MET:
bar.sync 0;
mul.wide.u32 %rd3, %r0, 4;
add.s64 %rd3, %rd3, %rd0;
st.global.u32 [%rd3], %r0;
END:";

/// Two CTAs exchange a word each, behind a cluster barrier whose arrival is relaxed.
pub const EXCHANGED: &str = "\
st.shared.u32 [tile], %r2; // @st
fence.acq_rel.cluster; // @fence
barrier.cluster.arrive.relaxed.aligned; // @arrive
barrier.cluster.wait.acquire.aligned; // @wait
mov.u32 %r3, tile;
xor.b32 %r4, %r2, 1;
mapa.shared::cluster.u32 %r5, %r3, %r4; // @mapa
ld.shared::cluster.u32 %r6, [%r5]; // @ld
mul.wide.u32 %rd3, %r2, 4;
add.s64 %rd3, %rd3, %rd0;
st.global.u32 [%rd3], %r6;
barrier.cluster.arrive.relaxed.aligned; // @arrive2
barrier.cluster.wait.aligned; // @wait2
END:";

/// A grid behind another one: weights are loaded before the other grid is over, its output after.
pub const DEPENDENT: &str = "\
mul.wide.u32 %rd3, %r0, 4;
add.s64 %rd4, %rd3, %rd1;
ld.global.u32 %r3, [%rd4];
griddepcontrol.wait; // @wait
add.s64 %rd5, %rd3, %rd0;
ld.global.u32 %r4, [%rd5+1024]; // @ld
add.u32 %r4, %r4, %r3;
st.global.u32 [%rd5], %r4; // @st
griddepcontrol.launch_dependents;
END:";

/// CTA 0 adds 32 words to those of CTA 1.
pub const ADDED_ELSEWHERE: &str = "\
@!%p0 bra MADE;
mbarrier.init.shared::cta.b64 [bar_a], 1;
fence.mbarrier_init.release.cluster;
mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar_a], 128; // @expect
MADE:
shl.b32 %r3, %r0, 2;
mov.u32 %r4, tile;
add.u32 %r4, %r4, %r3;
mov.u32 %r5, bar_a;
mov.u32 %r6, 7;
st.shared.u32 [%r4+1024], %r6; // @base
st.shared.u32 [%r4], %r0;
fence.proxy.async.shared::cta; // @pf
barrier.cluster.arrive.aligned; // @carr
barrier.cluster.wait.aligned; // @cwait
setp.ne.u32 %p1, %r2, 0;
@%p1 bra GET;
mov.u32 %r7, tile;
add.u32 %r7, %r7, 1024;
mapa.shared::cluster.u32 %r7, %r7, 1;
mapa.shared::cluster.u32 %r8, %r5, 1; // @mapb
@%p0 cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.add.u32 [%r7], [tile], 128, [%r8]; // @add
bra MET;
GET:
WAIT:
mbarrier.try_wait.parity.shared::cta.b64 %p2, [bar_a], 0; // @wait
@!%p2 bra WAIT;
ld.shared.u32 %r9, [%r4+1024]; // @ld
mul.wide.u32 %rd3, %r0, 4;
add.s64 %rd3, %rd3, %rd0;
st.global.u32 [%rd3], %r9;
MET:
barrier.cluster.arrive.relaxed.aligned;
barrier.cluster.wait.aligned;
END:";

/// Which spaces the addresses of `out`, of the own `tile`, of the other CTA's and of the parameters lie in, a bit for each answer.
pub const SPACES: &str = "\
mov.u64 %rd3, tile;
cvta.shared.u64 %rd3, %rd3;
xor.b32 %r3, %r2, 1;
mapa.u64 %rd4, %rd3, %r3;
mov.u32 %r4, 0;
isspacep.global %p1, %rd0;
@%p1 or.b32 %r4, %r4, 1;
isspacep.shared %p1, %rd0;
@%p1 or.b32 %r4, %r4, 2;
isspacep.shared %p1, %rd3;
@%p1 or.b32 %r4, %r4, 4;
isspacep.shared::cta %p1, %rd4;
@%p1 or.b32 %r4, %r4, 8;
isspacep.shared::cluster %p1, %rd4;
@%p1 or.b32 %r4, %r4, 16;
isspacep.global %p1, %rd3;
@%p1 or.b32 %r4, %r4, 32;
isspacep.param %p1, %rd2;
@%p1 or.b32 %r4, %r4, 64;
isspacep.global %p1, %rd2;
@%p1 or.b32 %r4, %r4, 128;
isspacep.local %p1, %rd0;
@%p1 or.b32 %r4, %r4, 256;
isspacep.const %p1, %rd0;
@%p1 or.b32 %r4, %r4, 512;
mul.wide.u32 %rd5, %r2, 4;
add.s64 %rd5, %rd5, %rd0;
@%p0 st.global.u32 [%rd5], %r4;
END:";

/// What that gives.
pub const SPACES_SEEN: u32 = 1 + 4 + 16 + 64 + 128;

/// A CTA allocates tensor memory twice.
pub const ALLOCATED_TWICE: &str = "\
tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [slot], 64; // @one
tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [response], 32; // @two
tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;
bar.warp.sync -1;
ld.shared.b32 %r3, [slot];
ld.shared.b32 %r4, [response];
tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r4, 32; // @free
tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r3, 64; // @free2
END:";
