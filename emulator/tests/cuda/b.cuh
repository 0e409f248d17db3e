#pragma once
#include <stdint.h>
#include <cuda_fp16.h>
#include <cuda_bf16.h>
struct __align__(64) Map { unsigned long long x[16]; };
#define DEV static __device__ __forceinline__
typedef uint32_t u32; typedef uint64_t u64;
DEV u32 sm(const void* p) { return (u32)__cvta_generic_to_shared(p); }
DEV bool elect() { u32 p; asm volatile("{ .reg .pred P; elect.sync _|P, 0xffffffff; selp.b32 %0,1,0,P; }" : "=r"(p)); return p; }
DEV void mb_init(u64* b, u32 n) { asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(sm(b)), "r"(n) : "memory"); }
DEV void mb_inval(u64* b) { asm volatile("mbarrier.inval.shared::cta.b64 [%0];" ::"r"(sm(b)) : "memory"); }
DEV void mb_fence() { asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); }
DEV void mb_expect(u64* b, u32 n) { asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(sm(b)), "r"(n) : "memory"); }
DEV void mb_arrive(u64* b) { asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(sm(b)) : "memory"); }
DEV void mb_arrive_at(u64* b, u32 cta) {
  asm volatile("{ .reg .b32 r; mapa.shared::cluster.u32 r, %0, %1; mbarrier.arrive.release.cluster.shared::cluster.b64 _, [r]; }" ::"r"(sm(b)), "r"(cta) : "memory");
}
DEV void mb_wait(u64* b, u32 parity) {
  asm volatile("{ .reg .pred P; L: mbarrier.try_wait.parity.shared::cta.b64 P, [%0], %1; @P bra D; bra L; D: }" ::"r"(sm(b)), "r"(parity) : "memory");
}
DEV void mb_wait_cluster(u64* b, u32 parity) {
  asm volatile("{ .reg .pred P; L: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 P, [%0], %1; @P bra D; bra L; D: }" ::"r"(sm(b)), "r"(parity) : "memory");
}
DEV void tma(void* d, const Map* m, int x, int y, u64* b) {
  asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];" ::"r"(sm(d)), "l"(m), "r"(x), "r"(y), "r"(sm(b)) : "memory");
}
DEV void tma_mc(void* d, const Map* m, int x, int y, u64* b, uint16_t mask) {
  asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1, {%2, %3}], [%4], %5;" ::"r"(sm(d)), "l"(m), "r"(x), "r"(y), "r"(sm(b)), "h"(mask) : "memory");
}
DEV void tma_pair(void* d, const Map* m, int x, int y, u32 b) {
  asm volatile("cp.async.bulk.tensor.2d.cta_group::2.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];" ::"r"(sm(d)), "l"(m), "r"(x), "r"(y), "r"(b) : "memory");
}
DEV void tma_store(const Map* m, int x, int y, void* s) {
  asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%0, {%1, %2}], [%3];" ::"l"(m), "r"(x), "r"(y), "r"(sm(s)) : "memory");
}
DEV void store_commit() { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }
template <int N> DEV void store_wait_read() { asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(N) : "memory"); }
template <int N> DEV void store_wait() { asm volatile("cp.async.bulk.wait_group %0;" ::"n"(N) : "memory"); }
DEV void fence_async() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }
DEV void bar(int id, int n) { asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(n) : "memory"); }
DEV void bar_arrive(int id, int n) { asm volatile("bar.arrive %0, %1;" ::"r"(id), "r"(n) : "memory"); }
DEV void cluster_sync() { asm volatile("barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;" ::: "memory"); }
DEV u32 cta_rank() { u32 r; asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(r)); return r; }
template <int G> DEV void alloc(u32* where, u32 n) { asm volatile("tcgen05.alloc.cta_group::%2.sync.aligned.shared::cta.b32 [%0], %1;" ::"r"(sm(where)), "r"(n), "n"(G) : "memory"); }
template <int G> DEV void dealloc(u32 t, u32 n) { asm volatile("tcgen05.dealloc.cta_group::%2.sync.aligned.b32 %0, %1;" ::"r"(t), "r"(n), "n"(G) : "memory"); }
template <int G> DEV void relinquish() { asm volatile("tcgen05.relinquish_alloc_permit.cta_group::%0.sync.aligned;" ::"n"(G) : "memory"); }
DEV void t_before() { asm volatile("tcgen05.fence::before_thread_sync;" ::: "memory"); }
DEV void t_after() { asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory"); }
DEV void t_wait_ld() { asm volatile("tcgen05.wait::ld.sync.aligned;" ::: "memory"); }
DEV void t_wait_st() { asm volatile("tcgen05.wait::st.sync.aligned;" ::: "memory"); }
template <int G> DEV void mma(u32 d, u64 a, u64 b, u32 idesc, bool acc) {
  asm volatile("{ .reg .pred P; setp.ne.u32 P, %4, 0; tcgen05.mma.cta_group::%5.kind::f16 [%0], %1, %2, %3, P; }" ::"r"(d), "l"(a), "l"(b), "r"(idesc), "r"((u32)acc), "n"(G) : "memory");
}
DEV void mma_ts(u32 d, u32 a, u64 b, u32 idesc, bool acc) {
  asm volatile("{ .reg .pred P; setp.ne.u32 P, %4, 0; tcgen05.mma.cta_group::1.kind::f16 [%0], [%1], %2, %3, P; }" ::"r"(d), "r"(a), "l"(b), "r"(idesc), "r"((u32)acc) : "memory");
}
DEV void commit(u64* b) { asm volatile("tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%0];" ::"r"(sm(b)) : "memory"); }
template <int G> DEV void commit_mc(u64* b, uint16_t mask) {
  asm volatile("tcgen05.commit.cta_group::%2.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 [%0], %1;" ::"r"(sm(b)), "h"(mask), "n"(G) : "memory");
}
DEV void t_ld32(u32 (&r)[32], u32 a) {
  asm volatile("tcgen05.ld.sync.aligned.32x32b.x32.b32 {%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31}, [%32];"
    : "=r"(r[0]),"=r"(r[1]),"=r"(r[2]),"=r"(r[3]),"=r"(r[4]),"=r"(r[5]),"=r"(r[6]),"=r"(r[7]),"=r"(r[8]),"=r"(r[9]),"=r"(r[10]),"=r"(r[11]),"=r"(r[12]),"=r"(r[13]),"=r"(r[14]),"=r"(r[15]),
      "=r"(r[16]),"=r"(r[17]),"=r"(r[18]),"=r"(r[19]),"=r"(r[20]),"=r"(r[21]),"=r"(r[22]),"=r"(r[23]),"=r"(r[24]),"=r"(r[25]),"=r"(r[26]),"=r"(r[27]),"=r"(r[28]),"=r"(r[29]),"=r"(r[30]),"=r"(r[31]) : "r"(a) : "memory");
}
DEV void t_st32(u32 a, const u32 (&r)[32]) {
  asm volatile("tcgen05.st.sync.aligned.32x32b.x32.b32 [%32], {%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31};"
    :: "r"(r[0]),"r"(r[1]),"r"(r[2]),"r"(r[3]),"r"(r[4]),"r"(r[5]),"r"(r[6]),"r"(r[7]),"r"(r[8]),"r"(r[9]),"r"(r[10]),"r"(r[11]),"r"(r[12]),"r"(r[13]),"r"(r[14]),"r"(r[15]),
      "r"(r[16]),"r"(r[17]),"r"(r[18]),"r"(r[19]),"r"(r[20]),"r"(r[21]),"r"(r[22]),"r"(r[23]),"r"(r[24]),"r"(r[25]),"r"(r[26]),"r"(r[27]),"r"(r[28]),"r"(r[29]),"r"(r[30]),"r"(r[31]), "r"(a) : "memory");
}
// K-major, 128-byte swizzle.
DEV u64 desc(const void* p) { return (u64)((sm(p) & 0x3ffff) >> 4) | (u64)1 << 16 | (u64)64 << 32 | (u64)1 << 46 | (u64)2 << 61; }
DEV constexpr u32 idesc(int m, int n, bool bf) { return 1u << 4 | (bf ? 1u << 7 | 1u << 10 : 0u) | (u32)(n >> 3) << 17 | (u32)(m >> 4) << 24; }
DEV void cp16(void* d, const void* s, bool in) { asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(sm(d)), "l"(s), "r"(in ? 16 : 0) : "memory"); }
DEV void cp_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int N> DEV void cp_wait() { asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory"); }
DEV void cp_arrive_noinc(u64* b) { asm volatile("cp.async.mbarrier.arrive.noinc.shared.b64 [%0];" ::"r"(sm(b)) : "memory"); }
DEV u32 pack(u32 lo, u32 hi) { __half2 h = __floats2half2_rn(__uint_as_float(lo), __uint_as_float(hi)); return *(u32*)&h; }
DEV int swz(int row, int chunk) { return row * 128 + ((chunk ^ (row & 7)) << 4); }
extern __shared__ __align__(1024) unsigned char raw[];
