// Two products in a row: H = max(X W1^T, 0) in chunks of 64, through registers to tensor memory, and D = H W2^T; two chunks under way.
#include "b.cuh"
constexpr int BM = 128, BK = 128, HC = 64, BN = 64, BUFS = 2;
constexpr u32 S_AT = 64, P_AT = S_AT + BUFS * HC;
struct Smem {
  unsigned char x[2][BM * 128];
  unsigned char w1[BUFS][2][HC * 128];
  unsigned char w2[BUFS][BN * 128];
  u64 x_full, w1_full[BUFS], w1_empty[BUFS], w2_full[BUFS], w2_empty[BUFS], s_full[BUFS], p_full[BUFS], done;
  u32 tmem;
};
extern "C" __global__ void __launch_bounds__(192) mlp(const __grid_constant__ Map mx, const __grid_constant__ Map m1, const __grid_constant__ Map m2, __half* d, int M, int N, int K, int H) {
  Smem& s = *(Smem*)raw;
  int warp = threadIdx.x / 32, t = threadIdx.x, row0 = blockIdx.x * BM, chunks = H / HC;
  if (warp == 0) alloc<1>(&s.tmem, 256);
  if (t == 32) {
    mb_init(&s.x_full, 1);
    mb_init(&s.done, 1);
    for (int i = 0; i < BUFS; ++i) {
      mb_init(&s.w1_full[i], 1);
      mb_init(&s.w1_empty[i], 1);
      mb_init(&s.w2_full[i], 1);
      mb_init(&s.w2_empty[i], 1);
      mb_init(&s.s_full[i], 1);
      mb_init(&s.p_full[i], 128);
    }
    mb_fence();
  }
  t_before();
  __syncthreads();
  t_after();
  u32 acc = s.tmem;
  if (warp == 4) {
    if (elect()) {
      mb_expect(&s.x_full, 2 * BM * 128);
      for (int i = 0; i < 2; ++i) tma(s.x[i], &mx, i * 64, row0, &s.x_full);
      for (int c = 0; c < chunks; ++c) {
        int b = c % BUFS, p = c / BUFS & 1;
        mb_wait(&s.w1_empty[b], p ^ 1);
        mb_expect(&s.w1_full[b], 2 * HC * 128);
        for (int i = 0; i < 2; ++i) tma(s.w1[b][i], &m1, i * 64, c * HC, &s.w1_full[b]);
        mb_wait(&s.w2_empty[b], p ^ 1);
        mb_expect(&s.w2_full[b], BN * 128);
        tma(s.w2[b], &m2, c * HC, 0, &s.w2_full[b]);
      }
    }
  } else if (warp == 5) {
    if (elect()) {
      mb_wait(&s.x_full, 0);
      for (int c = 0; c <= chunks; ++c) {
        if (c < chunks) {
          int b = c % BUFS, p = c / BUFS & 1;
          mb_wait(&s.w1_full[b], p);
          for (int j = 0; j < BK / 16; ++j)
            mma<1>(acc + S_AT + b * HC, desc(s.x[j / 4]) + j % 4 * 2, desc(s.w1[b][j / 4]) + j % 4 * 2, idesc(BM, HC, false), j > 0);
          commit(&s.w1_empty[b]);
          commit(&s.s_full[b]);
        }
        if (c > 0) {
          int b = (c - 1) % BUFS, p = (c - 1) / BUFS & 1;
          mb_wait(&s.w2_full[b], p);
          mb_wait(&s.p_full[b], p);
          t_after();
          for (int j = 0; j < HC / 16; ++j)
            mma_ts(acc, acc + P_AT + b * 32 + j * 8, desc(s.w2[b]) + j * 2, idesc(BM, BN, false), c > 1 || j > 0);
          commit(&s.w2_empty[b]);
        }
      }
      commit(&s.done);
    }
  } else {
    u32 own = (u32)(warp * 32) << 16;
    for (int c = 0; c < chunks; ++c) {
      int b = c % BUFS, p = c / BUFS & 1;
      mb_wait(&s.s_full[b], p);
      if (c >= BUFS) mb_wait(&s.w2_empty[b], p ^ 1);
      t_after();
      u32 r[2][32], h[32];
      t_ld32(r[0], acc + own + S_AT + b * HC);
      t_ld32(r[1], acc + own + S_AT + b * HC + 32);
      t_wait_ld();
#pragma unroll
      for (int i = 0; i < 32; ++i) {
        float lo = __uint_as_float(r[i / 16][i % 16 * 2]), hi = __uint_as_float(r[i / 16][i % 16 * 2 + 1]);
        h[i] = pack(__float_as_uint(fmaxf(lo, 0.f)), __float_as_uint(fmaxf(hi, 0.f)));
      }
      t_st32(acc + own + P_AT + b * 32, h);
      t_wait_st();
      t_before();
      mb_arrive(&s.p_full[b]);
    }
    mb_wait(&s.done, 0);
    t_after();
    u32 r[2][32];
    t_ld32(r[0], acc + own);
    t_ld32(r[1], acc + own + 32);
    t_wait_ld();
    t_before();
    __half* out = d + (size_t)(row0 + t) * N;
    for (int c = 0; c < 8; ++c) {
      const u32* x = &r[c / 4][c % 4 * 8];
      *(uint4*)(out + c * 8) = make_uint4(pack(x[0], x[1]), pack(x[2], x[3]), pack(x[4], x[5]), pack(x[6], x[7]));
    }
  }
  __syncthreads();
  if (warp == 0) {
    relinquish<1>();
    dealloc<1>(acc, 256);
  }
}
