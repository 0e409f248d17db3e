// Persistent, cta_group::2, warp-specialised: a ring of three stages, two accumulators of a pair, each warp stores slabs of 32 x 64 by TMA, two in turn.
#include "b.cuh"
constexpr int BM = 128, BN = 128, BK = 64, STAGES = 3, ACCS = 2;
struct Smem {
  unsigned char a[STAGES][BM * BK * 2];
  unsigned char b[STAGES][BN / 2 * BK * 2];
  unsigned char slab[4][2][32 * 128];
  u64 full[STAGES], empty[STAGES], ready[ACCS], drained[ACCS];
  u32 tmem;
};
struct Ring {
  int at = 0, phase = 0;
  template <int N> __device__ __forceinline__ void next() { if (++at == N) { at = 0; phase ^= 1; } }
};
extern "C" __global__ void __cluster_dims__(2, 1, 1) __launch_bounds__(192) duo(const __grid_constant__ Map ma, const __grid_constant__ Map mb, const __grid_constant__ Map md, int M, int N, int K) {
  Smem& s = *(Smem*)raw;
  int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  u32 rank = cta_rank();
  int tiles_n = N / BN, tiles = M / (2 * BM) * tiles_n, blocks = K / BK;
  int first = blockIdx.x / 2, step = gridDim.x / 2;
  if (threadIdx.x == 0) {
    for (int i = 0; i < STAGES; ++i) {
      mb_init(&s.full[i], 1);
      mb_init(&s.empty[i], 1);
    }
    for (int i = 0; i < ACCS; ++i) {
      mb_init(&s.ready[i], 1);
      mb_init(&s.drained[i], 8);
    }
    mb_fence();
  }
  __syncwarp();
  cluster_sync();
  if (warp == 5) {
    alloc<2>(&s.tmem, ACCS * BN);
    relinquish<2>();
  }
  t_before();
  cluster_sync();
  t_after();
  u32 acc = s.tmem;
  if (warp == 4) {
    if (elect()) {
      Ring r;
      for (int tile = first; tile < tiles; tile += step) {
        int row = tile / tiles_n * 2 * BM + rank * BM, col = tile % tiles_n * BN + rank * (BN / 2);
        for (int k = 0; k < blocks; ++k) {
          mb_wait_cluster(&s.empty[r.at], r.phase ^ 1);
          if (rank == 0) mb_expect(&s.full[r.at], (BM + BN / 2) * BK * 2 * 2);
          u32 leader = sm(&s.full[r.at]) & 0xfeffffffu;
          tma_pair(s.a[r.at], &ma, k * BK, row, leader);
          tma_pair(s.b[r.at], &mb, k * BK, col, leader);
          r.next<STAGES>();
        }
      }
    }
  } else if (warp == 5) {
    if (rank == 0 && elect()) {
      Ring r, t;
      for (int tile = first; tile < tiles; tile += step) {
        mb_wait_cluster(&s.drained[t.at], t.phase ^ 1);
        t_after();
        for (int k = 0; k < blocks; ++k) {
          mb_wait_cluster(&s.full[r.at], r.phase);
          for (int j = 0; j < BK / 16; ++j)
            mma<2>(acc + t.at * BN, desc(s.a[r.at]) + j * 2, desc(s.b[r.at]) + j * 2, idesc(2 * BM, BN, false), k > 0 || j > 0);
          commit_mc<2>(&s.empty[r.at], 3);
          r.next<STAGES>();
        }
        commit_mc<2>(&s.ready[t.at], 3);
        t.next<ACCS>();
      }
    }
  } else {
    Ring t;
    int turn = 0;
    for (int tile = first; tile < tiles; tile += step) {
      int row = tile / tiles_n * 2 * BM + rank * BM + warp * 32, col = tile % tiles_n * BN;
      mb_wait_cluster(&s.ready[t.at], t.phase);
      t_after();
      for (int half = 0; half < BN / 64; ++half) {
        u32 v[2][32];
        u32 at = acc + t.at * BN + half * 64 + ((u32)(warp * 32) << 16);
        t_ld32(v[0], at);
        t_ld32(v[1], at + 32);
        t_wait_ld();
        if (half == BN / 64 - 1) {
          t_before();
          __syncwarp();
          if (lane == 0) mb_arrive_at(&s.drained[t.at], 0);
        }
        if (lane == 0) store_wait_read<1>();
        __syncwarp();
        unsigned char* slab = s.slab[warp][turn];
        for (int c = 0; c < 8; ++c) {
          const u32* x = &v[c / 4][c % 4 * 8];
          *(uint4*)(slab + swz(lane, c)) = make_uint4(pack(x[0], x[1]), pack(x[2], x[3]), pack(x[4], x[5]), pack(x[6], x[7]));
        }
        fence_async();
        __syncwarp();
        if (lane == 0) {
          tma_store(&md, col + half * 64, row, slab);
          store_commit();
        }
        turn ^= 1;
      }
      t.next<ACCS>();
    }
    if (lane == 0) store_wait<0>();
  }
  __syncwarp();
  t_before();
  cluster_sync();
  t_after();
  if (warp == 5) dealloc<2>(acc, ACCS * BN);
}
