// FP8 with scales of blocks: each product of 128 depths is added in registers, times the scales of its row and of its 128 columns; two accumulators in turn.
#include "b.cuh"
constexpr int BM = 128, BN = 128, BK = 128, STAGES = 2, ACCS = 2;
struct Smem {
  unsigned char a[STAGES][BM * BK];
  unsigned char b[STAGES][BN * BK];
  float sa[STAGES][BM];
  u64 full[STAGES], empty[STAGES], ready[ACCS], drained[ACCS];
  u32 tmem;
};
DEV void bulk(void* d, const void* g, u32 n, u64* b) {
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(sm(d)), "l"(g), "r"(n), "r"(sm(b)) : "memory");
}
DEV void mma8(u32 d, u64 a, u64 b, u32 idesc, bool acc) {
  asm volatile("{ .reg .pred P; setp.ne.u32 P, %4, 0; tcgen05.mma.cta_group::1.kind::f8f6f4 [%0], %1, %2, %3, P; }" ::"r"(d), "l"(a), "l"(b), "r"(idesc), "r"((u32)acc) : "memory");
}
constexpr u32 I8 = 1u << 4 | (u32)(BN >> 3) << 17 | (u32)(BM >> 4) << 24;
extern "C" __global__ void __launch_bounds__(192) promote(const __grid_constant__ Map ma, const __grid_constant__ Map mb, const float* sa, const float* sb, float* d, int M, int N, int K) {
  Smem& s = *(Smem*)raw;
  int warp = threadIdx.x / 32, lane = threadIdx.x % 32, t = threadIdx.x;
  int row0 = blockIdx.x * BM, col0 = blockIdx.y * BN, blocks = K / BK;
  if (warp == 1) alloc<1>(&s.tmem, ACCS * BN);
  if (t == 0) {
    for (int i = 0; i < STAGES; ++i) {
      mb_init(&s.full[i], 1);
      mb_init(&s.empty[i], 1 + 4);
    }
    for (int i = 0; i < ACCS; ++i) {
      mb_init(&s.ready[i], 1);
      mb_init(&s.drained[i], 128);
    }
    mb_fence();
  }
  t_before();
  __syncthreads();
  t_after();
  u32 acc = s.tmem;
  if (warp == 4) {
    if (elect())
      for (int k = 0; k < blocks; ++k) {
        int stage = k % STAGES;
        mb_wait(&s.empty[stage], k / STAGES & 1 ^ 1);
        mb_expect(&s.full[stage], (BM + BN) * BK + BM * 4);
        tma(s.a[stage], &ma, k * BK, row0, &s.full[stage]);
        tma(s.b[stage], &mb, k * BK, col0, &s.full[stage]);
        bulk(s.sa[stage], sa + (size_t)k * M + row0, BM * 4, &s.full[stage]);
      }
  } else if (warp == 5) {
    if (elect())
      for (int k = 0; k < blocks; ++k) {
        int stage = k % STAGES, which = k % ACCS;
        mb_wait(&s.drained[which], k / ACCS & 1 ^ 1);
        mb_wait(&s.full[stage], k / STAGES & 1);
        t_after();
        for (int j = 0; j < BK / 32; ++j)
          mma8(acc + which * BN, desc(s.a[stage]) + j * 2, desc(s.b[stage]) + j * 2, I8, j > 0);
        commit(&s.empty[stage]);
        commit(&s.ready[which]);
      }
  } else {
    float sum[BN];
    for (int i = 0; i < BN; ++i) sum[i] = 0;
    for (int k = 0; k < blocks; ++k) {
      int stage = k % STAGES, which = k % ACCS;
      float b = __ldg(sb + (size_t)blockIdx.y * blocks + k);
      mb_wait(&s.full[stage], k / STAGES & 1);
      float scale = s.sa[stage][t] * b;
      __syncwarp();
      if (lane == 0) mb_arrive(&s.empty[stage]);
      mb_wait(&s.ready[which], k / ACCS & 1);
      t_after();
#pragma unroll
      for (int n = 0; n < BN; n += 32) {
        u32 r[32];
        t_ld32(r, acc + which * BN + n + ((u32)(warp * 32) << 16));
        t_wait_ld();
#pragma unroll
        for (int i = 0; i < 32; ++i) sum[n + i] += scale * __uint_as_float(r[i]);
      }
      t_before();
      mb_arrive(&s.drained[which]);
    }
    float4* out = (float4*)(d + (size_t)(row0 + t) * N + col0);
#pragma unroll
    for (int i = 0; i < BN; i += 4) out[i / 4] = make_float4(sum[i], sum[i + 1], sum[i + 2], sum[i + 3]);
  }
  __syncthreads();
  if (warp == 1) {
    relinquish<1>();
    dealloc<1>(acc, ACCS * BN);
  }
}
