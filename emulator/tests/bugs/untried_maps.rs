//! The kernels of `untried.rs` that make a tensor map or change one, as they are right.

/// Warp 0 makes a tensor map out of the launch's; warp 1 loads a box through it.
pub const MADE_MAP: &str = "\
setp.ne.u32 %p1, %r1, 0;
@%p0 mbarrier.init.shared::cta.b64 [bar_a], 1;
add.s64 %rd5, %rd0, 4096;
bar.sync 0;
@%p1 bra MADE;
shl.b32 %r4, %r0, 2;
cvt.u64.u32 %rd3, %r4;
add.s64 %rd3, %rd2, %rd3;
ld.b32 %r5, [%rd3];
mov.u32 %r6, tile;
add.u32 %r7, %r6, %r4;
st.shared.b32 [%r7+4096], %r5;
bar.warp.sync -1;
add.s64 %rd4, %rd1, 1024;
mov.u32 %r9, 56;
@%p0 tensormap.replace.tile.global_address.shared::cta.b1024.b64 [tile+4096], %rd4; // @address
@%p0 tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [tile+4096], 1, %r9; // @dim
bar.warp.sync -1;
add.u32 %r8, %r6, 4096;
tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%rd5], [%r8], 128; // @publish
MADE:
bar.sync 0; // @met
setp.ne.u32 %p2, %r0, 32;
@%p2 bra WAIT;
fence.proxy.tensormap::generic.acquire.gpu [%rd5], 128; // @acquire
mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar_a], 1024;
cp.async.bulk.tensor.2d.shared::cta.global.tile.mbarrier::complete_tx::bytes [tile], [%rd5, {0, 0}], [bar_a]; // @copy
WAIT:
mbarrier.try_wait.parity.shared::cta.b64 %p3, [bar_a], 0; // @wait
@!%p3 bra WAIT;
shl.b32 %r4, %r0, 2;
mov.u32 %r6, tile;
add.u32 %r7, %r6, %r4;
ld.shared.u32 %r10, [%r7];
mul.wide.u32 %rd6, %r0, 4;
add.s64 %rd6, %rd6, %rd0;
st.global.u32 [%rd6], %r10;
END:";

/// CTA 0 changes the address in a map in global memory, CTA 1 loads through it.
pub const MAP_OF_ANOTHER: &str = "\
@%p0 mbarrier.init.shared::cta.b64 [bar_a], 1;
add.s64 %rd5, %rd0, 4096;
setp.ne.u32 %p1, %r2, 0;
@%p1 bra MADE;
shl.b32 %r4, %r0, 2;
cvt.u64.u32 %rd3, %r4;
add.s64 %rd6, %rd2, %rd3;
ld.b32 %r5, [%rd6];
add.s64 %rd6, %rd5, %rd3;
st.global.b32 [%rd6], %r5;
bar.warp.sync -1;
add.s64 %rd4, %rd1, 1024;
@%p0 tensormap.replace.tile.global_address.global.b1024.b64 [%rd5], %rd4; // @replace
bar.warp.sync -1;
fence.proxy.tensormap::generic.release.cluster; // @release
MADE:
barrier.cluster.arrive.aligned;
barrier.cluster.wait.aligned;
@!%p1 bra END;
@!%p0 bra WAIT;
fence.proxy.tensormap::generic.acquire.cluster [%rd5], 128; // @acquire
mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar_a], 1024;
cp.async.bulk.tensor.2d.shared::cta.global.tile.mbarrier::complete_tx::bytes [tile], [%rd5, {0, 0}], [bar_a]; // @copy
WAIT:
mbarrier.try_wait.parity.shared::cta.b64 %p3, [bar_a], 0;
@!%p3 bra WAIT;
shl.b32 %r4, %r0, 2;
mov.u32 %r6, tile;
add.u32 %r7, %r6, %r4;
ld.shared.u32 %r10, [%r7];
mul.wide.u32 %rd6, %r0, 4;
add.s64 %rd6, %rd6, %rd0;
st.global.u32 [%rd6], %r10;
END:";

/// The same of two clusters: a flag in global memory tells that the map is there.
pub const MAP_OF_ANOTHER_CLUSTER: &str = "\
@%p0 mbarrier.init.shared::cta.b64 [bar_a], 1;
add.s64 %rd5, %rd0, 4096;
add.s64 %rd7, %rd0, 6144;
mov.u32 %r9, %ctaid.x;
setp.ne.u32 %p1, %r9, 0;
@%p1 bra MADE;
shl.b32 %r4, %r0, 2;
cvt.u64.u32 %rd3, %r4;
add.s64 %rd6, %rd2, %rd3;
ld.b32 %r5, [%rd6];
add.s64 %rd6, %rd5, %rd3;
st.global.b32 [%rd6], %r5;
bar.warp.sync -1;
add.s64 %rd4, %rd1, 1024;
@%p0 tensormap.replace.tile.global_address.global.b1024.b64 [%rd5], %rd4;
bar.warp.sync -1;
fence.proxy.tensormap::generic.release.gpu; // @release
@%p0 st.release.gpu.global.u32 [%rd7], 1;
bra END;
MADE:
@!%p0 bra WAIT;
ASK:
ld.acquire.gpu.global.u32 %r5, [%rd7];
setp.eq.u32 %p2, %r5, 0;
@%p2 bra ASK;
fence.proxy.tensormap::generic.acquire.gpu [%rd5], 128; // @acquire
mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar_a], 1024;
cp.async.bulk.tensor.2d.shared::cta.global.tile.mbarrier::complete_tx::bytes [tile], [%rd5, {0, 0}], [bar_a]; // @copy
WAIT:
mbarrier.try_wait.parity.shared::cta.b64 %p3, [bar_a], 0;
@!%p3 bra WAIT;
shl.b32 %r4, %r0, 2;
mov.u32 %r6, tile;
add.u32 %r7, %r6, %r4;
ld.shared.u32 %r10, [%r7];
mul.wide.u32 %rd6, %r0, 4;
add.s64 %rd6, %rd6, %rd0;
st.global.u32 [%rd6], %r10;
END:";

/// One warp makes a map in turn for each of two boxes, and loads through it: the first copy is over before the map changes.
pub const MADE_TWICE: &str = "\
@%p0 mbarrier.init.shared::cta.b64 [bar_a], 1;
bar.warp.sync -1;
add.s64 %rd5, %rd0, 4096;
shl.b32 %r4, %r0, 2;
cvt.u64.u32 %rd3, %r4;
add.s64 %rd3, %rd2, %rd3;
ld.b32 %r5, [%rd3];
mov.u32 %r6, tile;
add.u32 %r7, %r6, %r4;
st.shared.b32 [%r7+4096], %r5;
add.u32 %r8, %r6, 4096;
mov.u32 %r9, 0;
mov.u64 %rd4, %rd1;
NEXT:
bar.warp.sync -1;
@%p0 tensormap.replace.tile.global_address.shared::cta.b1024.b64 [tile+4096], %rd4; // @address
bar.warp.sync -1;
tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.cta.sync.aligned [%rd5], [%r8], 128; // @publish
fence.proxy.tensormap::generic.acquire.cta [%rd5], 128; // @acquire
@%p0 mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar_a], 1024;
@%p0 cp.async.bulk.tensor.2d.shared::cta.global.tile.mbarrier::complete_tx::bytes [tile], [%rd5, {0, 0}], [bar_a]; // @copy
WAIT:
mbarrier.try_wait.parity.shared::cta.b64 %p3, [bar_a], %r9; // @wait
@!%p3 bra WAIT;
ld.shared.u32 %r10, [%r7];
shl.b32 %r11, %r9, 7;
add.u32 %r11, %r11, %r4;
cvt.u64.u32 %rd6, %r11;
add.s64 %rd6, %rd6, %rd0;
st.global.u32 [%rd6], %r10;
fence.proxy.async.shared::cta; // @pf
add.s64 %rd4, %rd4, 1024;
add.u32 %r9, %r9, 1;
setp.lt.u32 %p4, %r9, 2;
@%p4 bra NEXT;
END:";
