// A through cp.async and registers to tensor memory, B by TMA; named barriers between the loading warps.
#include "b.cuh"
constexpr int BM = 128, BN = 64, BK = 64, STAGES = 2, PITCH = BK * 2 + 16;
struct Smem {
  unsigned char b[STAGES][BN * BK * 2];
  unsigned char a[STAGES][BM * PITCH];
  u64 b_full[STAGES], a_full[STAGES], empty[STAGES], ready;
  u32 tmem;
};
extern "C" __global__ void __launch_bounds__(160) atmem(const __grid_constant__ Map mb, const __nv_bfloat16* a, float* d, int M, int N, int K) {
  Smem& s = *(Smem*)raw;
  int warp = threadIdx.x / 32, t = threadIdx.x, row0 = blockIdx.x * BM, col0 = blockIdx.y * BN, blocks = K / BK;
  if (warp == 4) alloc<1>(&s.tmem, 128);
  if (t == 0) {
    for (int i = 0; i < STAGES; ++i) {
      mb_init(&s.b_full[i], 1);
      mb_init(&s.a_full[i], 128);
      mb_init(&s.empty[i], 1);
    }
    mb_init(&s.ready, 1);
    mb_fence();
  }
  t_before();
  __syncthreads();
  t_after();
  u32 acc = s.tmem, a_at = acc + BN;
  if (warp == 4) {
    if (elect()) {
      for (int k = 0; k < blocks; ++k) {
        int stage = k % STAGES, phase = k / STAGES & 1;
        mb_wait(&s.empty[stage], phase ^ 1);
        mb_expect(&s.b_full[stage], BN * BK * 2);
        tma(s.b[stage], &mb, k * BK, col0, &s.b_full[stage]);
        mb_wait(&s.b_full[stage], phase);
        mb_wait(&s.a_full[stage], phase);
        t_after();
        for (int j = 0; j < BK / 16; ++j)
          mma_ts(acc, a_at + stage * 32 + j * 8, desc(s.b[stage]) + j * 2, idesc(BM, BN, true), k > 0 || j > 0);
        commit(&s.empty[stage]);
      }
      commit(&s.ready);
    }
  } else {
    for (int v = t; v < BM * 8; v += 128)
      cp16(s.a[0] + v / 8 * PITCH + v % 8 * 16, a + (size_t)(row0 + v / 8) * K + v % 8 * 8, row0 + v / 8 < M);
    cp_commit();
    for (int k = 0; k < blocks; ++k) {
      int stage = k % STAGES, phase = k / STAGES & 1;
      if (k + 1 < blocks)
        for (int v = t; v < BM * 8; v += 128)
          cp16(s.a[stage ^ 1] + v / 8 * PITCH + v % 8 * 16, a + (size_t)(row0 + v / 8) * K + (k + 1) * BK + v % 8 * 8, row0 + v / 8 < M);
      cp_commit();
      cp_wait<1>();
      bar(1, 128);
      u32 r[32];
      for (int i = 0; i < 8; ++i) {
        uint4 in = *(uint4*)(s.a[stage] + t * PITCH + i * 16);
        r[i * 4] = in.x; r[i * 4 + 1] = in.y; r[i * 4 + 2] = in.z; r[i * 4 + 3] = in.w;
      }
      bar(2, 128);
      mb_wait(&s.empty[stage], phase ^ 1);
      t_after();
      t_st32(a_at + stage * 32 + ((u32)(warp * 32) << 16), r);
      t_wait_st();
      t_before();
      mb_arrive(&s.a_full[stage]);
    }
    mb_wait(&s.ready, 0);
    t_after();
    for (int n = 0; n < BN; n += 32) {
      u32 r[32];
      t_ld32(r, acc + ((u32)(warp * 32) << 16) + n);
      t_wait_ld();
      if (row0 + t < M)
        for (int v = 0; v < 8; ++v)
          *(uint4*)(d + (size_t)(row0 + t) * N + col0 + n + v * 4) = make_uint4(r[v * 4], r[v * 4 + 1], r[v * 4 + 2], r[v * 4 + 3]);
    }
    t_before();
  }
  __syncthreads();
  if (warp == 4) {
    dealloc<1>(acc, 128);
    relinquish<1>();
  }
}
