"""One output tile per CTA. TMA loads into one shared-memory stage, one tcgen05.mma round per K block, TMA store."""
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.blackwell import (
    TensorMemoryLayout,
    allocate_tensor_memory,
    fence_async_shared,
    mbarrier,
    tcgen05_mma,
    tma,
)


@gluon.jit
def tile_m64(a_desc, b_desc, d_desc):
    BM: gl.constexpr = a_desc.block_shape[0]
    BN: gl.constexpr = b_desc.block_shape[0]
    BK: gl.constexpr = a_desc.block_shape[1]
    row = gl.program_id(0) * BM
    col = gl.program_id(1) * BN

    a_tile = gl.allocate_shared_memory(a_desc.dtype, a_desc.block_shape, a_desc.layout)
    b_tile = gl.allocate_shared_memory(b_desc.dtype, b_desc.block_shape, b_desc.layout)
    acc = allocate_tensor_memory(gl.float32, [BM, BN], TensorMemoryLayout(block=(BM, BN), col_stride=1))
    loaded = mbarrier.allocate_mbarrier()
    done = mbarrier.allocate_mbarrier()
    mbarrier.init(loaded, count=1)
    mbarrier.init(done, count=1)

    phase = 0
    K = a_desc.shape[1]
    for k in range(0, K, BK):
        mbarrier.expect(loaded, a_desc.nbytes_per_cta + b_desc.nbytes_per_cta)
        tma.async_load(a_desc, [row, k], loaded, a_tile)
        tma.async_load(b_desc, [col, k], loaded, b_tile)
        mbarrier.wait(loaded, phase)
        tcgen05_mma(a_tile, b_tile.permute((1, 0)), acc, use_acc=(k != 0), mbarriers=[done])
        mbarrier.wait(done, phase)
        phase ^= 1
    mbarrier.invalidate(loaded)
    mbarrier.invalidate(done)

    d_tile = gl.allocate_shared_memory(d_desc.dtype, d_desc.block_shape, d_desc.layout)
    d_tile.store(acc.load().to(d_desc.dtype))
    fence_async_shared()
    tma.async_store(d_desc, [row, col], d_tile)
    tma.store_wait(pendings=0)


M, N, K = 128, 192, 96
BM, BN, BK = 64, 64, 32
SPEC = dict(
    summary="one 64x64 tile per CTA (MMA with M = 64), 64B swizzle for A and B, single stage",
    M=M, N=N, K=K,
    tile=dict(BM=BM, BN=BN, BK=BK, stages=1),
    grid=(M // BM, N // BN, 1),
    buffers=dict(
        A=dict(dtype="fp16", shape=[M, K], role="input"),
        B=dict(dtype="fp16", shape=[N, K], role="input"),
        D=dict(dtype="fp16", shape=[M, N], role="output"),
    ),
    args=[
        dict(name="a_desc", kind="desc", buffer="A", block=[BM, BK], layout=gl.NVMMASharedLayout.get_default_for([BM, BK], gl.float16)),
        dict(name="b_desc", kind="desc", buffer="B", block=[BN, BK], layout=gl.NVMMASharedLayout.get_default_for([BN, BK], gl.float16)),
        dict(name="d_desc", kind="desc", buffer="D", block=[BM, BN], layout=gl.NVMMASharedLayout.get_default_for([BM, BN], gl.float16)),
    ],
)
