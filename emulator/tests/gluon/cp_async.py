"""No TMA: cp.async from plain pointers into two swizzled stages, proxy fence, tcgen05.mma, plain global stores."""
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.blackwell import (
    TensorMemoryLayout,
    allocate_tensor_memory,
    async_copy,
    fence_async_shared,
    mbarrier,
    tcgen05_mma,
)


@gluon.jit
def fetch(a_ptr, b_ptr, row, col, k, K, a_tile, b_tile, L: gl.constexpr):
    BM: gl.constexpr = a_tile.shape[0]
    BN: gl.constexpr = b_tile.shape[0]
    BK: gl.constexpr = a_tile.shape[1]
    on = k < K
    kk = k + gl.arange(0, BK, gl.SliceLayout(0, L))[None, :]
    a_row = row + gl.arange(0, BM, gl.SliceLayout(1, L))[:, None]
    b_row = col + gl.arange(0, BN, gl.SliceLayout(1, L))[:, None]
    a_on = gl.full([BM, BK], 1, gl.int1, L) & on
    b_on = gl.full([BN, BK], 1, gl.int1, L) & on
    async_copy.async_load(a_tile, a_ptr + a_row * K + kk, mask=a_on)
    async_copy.async_load(b_tile, b_ptr + b_row * K + kk, mask=b_on)
    async_copy.commit_group()


@gluon.jit
def cp_async(a_ptr, b_ptr, d_ptr, N, K, BM: gl.constexpr, BN: gl.constexpr, BK: gl.constexpr):
    T: gl.constexpr = a_ptr.dtype.element_ty
    row = gl.program_id(0) * BM
    col = gl.program_id(1) * BN
    L: gl.constexpr = gl.BlockedLayout([1, 8], [4, 8], [4, 1], [1, 0])
    S: gl.constexpr = gl.NVMMASharedLayout(swizzle_byte_width=128, element_bitwidth=16, rank=2)
    a_ring = gl.allocate_shared_memory(T, [2, BM, BK], S)
    b_ring = gl.allocate_shared_memory(T, [2, BN, BK], S)
    acc = allocate_tensor_memory(gl.float32, [BM, BN], TensorMemoryLayout(block=(BM, BN), col_stride=1))
    done = mbarrier.allocate_mbarrier()
    mbarrier.init(done, count=1)

    fetch(a_ptr, b_ptr, row, col, 0, K, a_ring.index(0), b_ring.index(0), L)
    slot = 0
    phase = 0
    for k in range(0, K, BK):
        fetch(a_ptr, b_ptr, row, col, k + BK, K, a_ring.index(slot ^ 1), b_ring.index(slot ^ 1), L)
        async_copy.wait_group(1)
        fence_async_shared()
        tcgen05_mma(a_ring.index(slot), b_ring.index(slot).permute((1, 0)), acc, use_acc=(k != 0), mbarriers=[done])
        mbarrier.wait(done, phase)
        slot ^= 1
        phase ^= 1
    async_copy.wait_group(0)
    mbarrier.invalidate(done)

    O: gl.constexpr = gl.BlockedLayout([1, 8], [2, 16], [4, 1], [1, 0])
    value = gl.convert_layout(acc.load().to(T), O)
    d_row = row + gl.arange(0, BM, gl.SliceLayout(1, O))[:, None]
    d_col = col + gl.arange(0, BN, gl.SliceLayout(0, O))[None, :]
    gl.store(d_ptr + d_row * N + d_col, value)


M, N, K = 256, 256, 192
BM, BN, BK = 128, 128, 64
SPEC = dict(
    summary="no TMA: cp.async into a 128B-swizzled double buffer, proxy fence, plain stores",
    M=M, N=N, K=K,
    tile=dict(BM=BM, BN=BN, BK=BK, stages=2),
    grid=(M // BM, N // BN, 1),
    buffers=dict(
        A=dict(dtype="fp16", shape=[M, K], role="input"),
        B=dict(dtype="fp16", shape=[N, K], role="input"),
        D=dict(dtype="fp16", shape=[M, N], role="output"),
    ),
    args=[
        dict(name="a_ptr", kind="ptr", buffer="A"),
        dict(name="b_ptr", kind="ptr", buffer="B"),
        dict(name="d_ptr", kind="ptr", buffer="D"),
        dict(name="N", kind="int", value=N, div16=True, meaning="N, a multiple of 16"),
        dict(name="K", kind="int", value=K, div16=True, meaning="K, a multiple of 16"),
        dict(name="BM", kind="constexpr", value=BM),
        dict(name="BN", kind="constexpr", value=BN),
        dict(name="BK", kind="constexpr", value=BK),
    ],
)
