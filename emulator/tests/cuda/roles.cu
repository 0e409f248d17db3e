// Persistent, warp-specialised: ring of three stages, two accumulators, C by TMA, D through swizzled shared memory. By a mask of 7, threads read C and store D
// with the 128-byte swizzle; by 0, without one.
#include "b.cuh"
DEV int swz(int row, int chunk, int mask) { return row * 128 + ((chunk ^ (row & mask)) << 4); }
constexpr int BM = 128, BN = 64, BK = 64, STAGES = 3, ACCS = 2;
struct Smem {
  unsigned char a[STAGES][BM * BK * 2];
  unsigned char b[STAGES][BN * BK * 2];
  unsigned char c[BM * BN * 2];
  unsigned char d[BM * BN * 2];
  u64 full[STAGES], empty[STAGES], ready[ACCS], drained[ACCS], c_full;
  u32 tmem;
};
extern "C" __global__ void __launch_bounds__(192) roles(const __grid_constant__ Map ma, const __grid_constant__ Map mb, const __grid_constant__ Map mc, const __grid_constant__ Map md, int M, int N, int K, int c_mask, int d_mask) {
  Smem& s = *(Smem*)raw;
  int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  int tiles_n = N / BN, tiles = M / BM * tiles_n, blocks = K / BK;
  if (warp == 5) alloc<1>(&s.tmem, ACCS * BN);
  if (threadIdx.x == 0) {
    for (int i = 0; i < STAGES; ++i) {
      mb_init(&s.full[i], 1);
      mb_init(&s.empty[i], 1);
    }
    for (int i = 0; i < ACCS; ++i) {
      mb_init(&s.ready[i], 1);
      mb_init(&s.drained[i], 4);
    }
    mb_init(&s.c_full, 1);
    mb_fence();
  }
  t_before();
  __syncthreads();
  t_after();
  u32 acc = s.tmem;
  if (warp == 4) {
    if (elect()) {
      int stage = 0, phase = 0;
      for (int tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
        int row = tile / tiles_n * BM, col = tile % tiles_n * BN;
        for (int k = 0; k < blocks; ++k) {
          mb_wait(&s.empty[stage], phase ^ 1);
          mb_expect(&s.full[stage], (BM + BN) * BK * 2);
          tma(s.a[stage], &ma, k * BK, row, &s.full[stage]);
          tma(s.b[stage], &mb, k * BK, col, &s.full[stage]);
          if (++stage == STAGES) { stage = 0; phase ^= 1; }
        }
      }
    }
  } else if (warp == 5) {
    if (elect()) {
      int stage = 0, phase = 0, which = 0, acc_phase = 0;
      for (int tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
        mb_wait(&s.drained[which], acc_phase ^ 1);
        t_after();
        for (int k = 0; k < blocks; ++k) {
          mb_wait(&s.full[stage], phase);
          u64 da = desc(s.a[stage]), db = desc(s.b[stage]);
          for (int j = 0; j < BK / 16; ++j)
            mma<1>(acc + which * BN, da + j * 2, db + j * 2, idesc(BM, BN, true), k > 0 || j > 0);
          commit(&s.empty[stage]);
          if (++stage == STAGES) { stage = 0; phase ^= 1; }
        }
        commit(&s.ready[which]);
        if (++which == ACCS) { which = 0; acc_phase ^= 1; }
      }
    }
  } else {
    int which = 0, acc_phase = 0, c_phase = 0;
    for (int tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
      int row = tile / tiles_n * BM, col = tile % tiles_n * BN;
      if (threadIdx.x == 0) {
        mb_expect(&s.c_full, BM * BN * 2);
        tma(s.c, &mc, col, row, &s.c_full);
      }
      mb_wait(&s.ready[which], acc_phase);
      t_after();
      u32 lo[32], hi[32];
      u32 at = acc + which * BN + ((u32)(warp * 32) << 16);
      t_ld32(lo, at);
      t_ld32(hi, at + 32);
      t_wait_ld();
      t_before();
      __syncwarp();
      if (lane == 0) mb_arrive(&s.drained[which]);
      mb_wait(&s.c_full, c_phase);
      c_phase ^= 1;
      if (threadIdx.x == 0) store_wait_read<0>();
      bar(1, 128);
      int r = threadIdx.x;
      for (int chunk = 0; chunk < 8; ++chunk) {
        uint4 in = *(uint4*)(s.c + swz(r, chunk, c_mask)), out;
        u32* o = (u32*)&out;
        const __nv_bfloat162* h = (const __nv_bfloat162*)&in;
        for (int i = 0; i < 4; ++i) {
          int e = chunk * 8 + i * 2;
          float2 f = __bfloat1622float2(h[i]);
          __nv_bfloat162 v = __floats2bfloat162_rn(__uint_as_float(e < 32 ? lo[e & 31] : hi[e & 31]) + f.x, __uint_as_float(e < 32 ? lo[(e + 1) & 31] : hi[(e + 1) & 31]) + f.y);
          o[i] = *(u32*)&v;
        }
        *(uint4*)(s.d + swz(r, chunk, d_mask)) = out;
      }
      fence_async();
      bar(1, 128);
      if (threadIdx.x == 0) {
        tma_store(&md, col, row, s.d);
        store_commit();
      }
      if (++which == ACCS) { which = 0; acc_phase ^= 1; }
    }
    if (threadIdx.x == 0) store_wait<0>();
  }
  __syncthreads();
  if (warp == 5) {
    relinquish<1>();
    dealloc<1>(acc, ACCS * BN);
  }
}
