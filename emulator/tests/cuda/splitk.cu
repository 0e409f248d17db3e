// K in parts, added up in order behind a flag in global memory; operands by cp.async into swizzled tiles, an mbarrier for each stage.
#include "b.cuh"
constexpr int BM = 128, BN = 64, BK = 64, STAGES = 2;
struct Smem {
  unsigned char a[STAGES][BM * BK * 2];
  unsigned char b[STAGES][BN * BK * 2];
  u64 full[STAGES], empty[STAGES], ready;
  u32 tmem;
};
DEV u32 ld_acquire(const u32* p) { u32 v; asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(v) : "l"(p) : "memory"); return v; }
DEV void st_release(u32* p, u32 v) { asm volatile("st.release.gpu.global.u32 [%0], %1;" ::"l"(p), "r"(v) : "memory"); }
extern "C" __global__ void __launch_bounds__(160) splitk(const __half* a, const __half* b, float* part, u32* flag, __half* d, int M, int N, int K) {
  Smem& s = *(Smem*)raw;
  int warp = threadIdx.x / 32, t = threadIdx.x, row0 = blockIdx.x * BM, col0 = blockIdx.y * BN;
  int blocks = K / BK / gridDim.z, k0 = blockIdx.z * blocks * BK;
  u32* my_flag = flag + blockIdx.y * gridDim.x + blockIdx.x;
  if (warp == 4) alloc<1>(&s.tmem, 64);
  if (t == 0) {
    for (int i = 0; i < STAGES; ++i) {
      mb_init(&s.full[i], 128);
      mb_init(&s.empty[i], 1);
    }
    mb_init(&s.ready, 1);
  }
  t_before();
  __syncthreads();
  t_after();
  u32 acc = s.tmem;
  if (warp == 4) {
    if (elect()) {
      for (int k = 0; k < blocks; ++k) {
        int stage = k % STAGES, phase = k / STAGES & 1;
        mb_wait(&s.full[stage], phase);
        fence_async();
        for (int j = 0; j < BK / 16; ++j)
          mma<1>(acc, desc(s.a[stage]) + j * 2, desc(s.b[stage]) + j * 2, idesc(BM, BN, false), k > 0 || j > 0);
        commit(&s.empty[stage]);
      }
      commit(&s.ready);
    }
    __syncwarp();
  } else {
    for (int k = 0; k < blocks; ++k) {
      int stage = k % STAGES, phase = k / STAGES & 1;
      mb_wait(&s.empty[stage], phase ^ 1);
      for (int v = t; v < BM * 8; v += 128)
        cp16(s.a[stage] + swz(v / 8, v % 8), a + (size_t)(row0 + v / 8) * K + k0 + k * BK + v % 8 * 8, true);
      for (int v = t; v < BN * 8; v += 128)
        cp16(s.b[stage] + swz(v / 8, v % 8), b + (size_t)(col0 + v / 8) * K + k0 + k * BK + v % 8 * 8, true);
      cp_commit();
      if (k > 0) {
        cp_wait<1>();
        fence_async();
        mb_arrive(&s.full[stage ^ 1]);
      }
    }
    cp_wait<0>();
    fence_async();
    mb_arrive(&s.full[(blocks - 1) % STAGES]);
    mb_wait(&s.ready, 0);
    t_after();
    u32 lo[32], hi[32];
    t_ld32(lo, acc + ((u32)(warp * 32) << 16));
    t_ld32(hi, acc + ((u32)(warp * 32) << 16) + 32);
    t_wait_ld();
    t_before();
    if (t == 0)
      while (ld_acquire(my_flag) != blockIdx.z) {}
    bar(1, 128);
    float* p = part + ((size_t)(blockIdx.y * gridDim.x + blockIdx.x) * BM + t) * BN;
    bool last = blockIdx.z == gridDim.z - 1;
    for (int i = 0; i < BN; i += 4) {
      float4 v = make_float4(__uint_as_float(i < 32 ? lo[i & 31] : hi[i & 31]), __uint_as_float(i < 32 ? lo[(i & 31) + 1] : hi[(i & 31) + 1]),
                             __uint_as_float(i < 32 ? lo[(i & 31) + 2] : hi[(i & 31) + 2]), __uint_as_float(i < 32 ? lo[(i & 31) + 3] : hi[(i & 31) + 3]));
      if (blockIdx.z > 0) {
        float4 w = __ldcg((const float4*)(p + i));
        v.x += w.x; v.y += w.y; v.z += w.z; v.w += w.w;
      }
      if (!last)
        *(float4*)(p + i) = v;
      else {
        uint2 h = make_uint2(pack(__float_as_uint(v.x), __float_as_uint(v.y)), pack(__float_as_uint(v.z), __float_as_uint(v.w)));
        *(uint2*)(d + (size_t)(row0 + t) * N + col0 + i) = h;
      }
    }
    if (!last) {
      bar(1, 128);
      if (t == 0) st_release(my_flag, blockIdx.z + 1);
    }
  }
  __syncthreads();
  if (warp == 4) {
    dealloc<1>(acc, 64);
    relinquish<1>();
  }
}
