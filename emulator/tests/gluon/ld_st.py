"""No TMA, ragged sizes: masked ld.global into registers, st.shared into a swizzled tile, proxy fence, masked stores."""
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.blackwell import (
    TensorMemoryLayout,
    allocate_tensor_memory,
    fence_async_shared,
    mbarrier,
    tcgen05_mma,
)


@gluon.jit
def ld_st(a_ptr, b_ptr, d_ptr, M, N, K, BM: gl.constexpr, BN: gl.constexpr, BK: gl.constexpr):
    T: gl.constexpr = a_ptr.dtype.element_ty
    row = gl.program_id(0) * BM
    col = gl.program_id(1) * BN
    L: gl.constexpr = gl.BlockedLayout([1, 8], [4, 8], [4, 1], [1, 0])
    S: gl.constexpr = gl.NVMMASharedLayout(swizzle_byte_width=128, element_bitwidth=16, rank=2)
    a_tile = gl.allocate_shared_memory(T, [BM, BK], S)
    b_tile = gl.allocate_shared_memory(T, [BN, BK], S)
    acc = allocate_tensor_memory(gl.float32, [BM, BN], TensorMemoryLayout(block=(BM, BN), col_stride=1))
    done = mbarrier.allocate_mbarrier()
    mbarrier.init(done, count=1)

    a_row = row + gl.arange(0, BM, gl.SliceLayout(1, L))[:, None]
    b_row = col + gl.arange(0, BN, gl.SliceLayout(1, L))[:, None]
    phase = 0
    for k in range(0, K, BK):
        kk = k + gl.arange(0, BK, gl.SliceLayout(0, L))[None, :]
        a = gl.load(a_ptr + a_row * K + kk, mask=(a_row < M) & (kk < K), other=0.0)
        b = gl.load(b_ptr + b_row * K + kk, mask=(b_row < N) & (kk < K), other=0.0)
        a_tile.store(a)
        b_tile.store(b)
        fence_async_shared()
        tcgen05_mma(a_tile, b_tile.permute((1, 0)), acc, use_acc=(k != 0), mbarriers=[done])
        mbarrier.wait(done, phase)
        phase ^= 1
    mbarrier.invalidate(done)

    O: gl.constexpr = gl.BlockedLayout([1, 8], [4, 8], [4, 1], [1, 0])
    value = gl.convert_layout(acc.load().to(T), O)
    d_row = row + gl.arange(0, BM, gl.SliceLayout(1, O))[:, None]
    d_col = col + gl.arange(0, BN, gl.SliceLayout(0, O))[None, :]
    gl.store(d_ptr + d_row * N + d_col, value, mask=(d_row < M) & (d_col < N))


M, N, K = 200, 96, 160
BM, BN, BK = 128, 64, 64
SPEC = dict(
    summary="no TMA, sizes that the tile does not divide: masked global loads, st.shared, proxy fence, masked stores",
    M=M, N=N, K=K,
    tile=dict(BM=BM, BN=BN, BK=BK, stages=1),
    grid=((M + BM - 1) // BM, (N + BN - 1) // BN, 1),
    buffers=dict(
        A=dict(dtype="fp16", shape=[M, K], role="input"),
        B=dict(dtype="fp16", shape=[N, K], role="input"),
        D=dict(dtype="fp16", shape=[M, N], role="output"),
    ),
    args=[
        dict(name="a_ptr", kind="ptr", buffer="A"),
        dict(name="b_ptr", kind="ptr", buffer="B"),
        dict(name="d_ptr", kind="ptr", buffer="D"),
        dict(name="M", kind="int", value=M, meaning="M, any"),
        dict(name="N", kind="int", value=N, div16=True, meaning="N, a multiple of 16"),
        dict(name="K", kind="int", value=K, div16=True, meaning="K, a multiple of 16"),
        dict(name="BM", kind="constexpr", value=BM),
        dict(name="BN", kind="constexpr", value=BN),
        dict(name="BK", kind="constexpr", value=BK),
    ],
)
