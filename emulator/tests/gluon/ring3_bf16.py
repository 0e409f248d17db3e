"""One output tile per CTA, a ring of shared-memory stages filled by TMA ahead of the MMA (software pipeline, no roles)."""
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
def fill(j, num_k, row, col, a_desc, b_desc, a_ring, b_ring, full, BK: gl.constexpr, STAGES: gl.constexpr):
    slot = j % STAGES
    on = j < num_k
    mbarrier.expect(full.index(slot), a_desc.nbytes_per_cta + b_desc.nbytes_per_cta, pred=on)
    tma.async_load(a_desc, [row, j * BK], full.index(slot), a_ring.index(slot), pred=on)
    tma.async_load(b_desc, [col, j * BK], full.index(slot), b_ring.index(slot), pred=on)


@gluon.jit
def ring3_bf16(a_desc, b_desc, d_desc, STAGES: gl.constexpr):
    BM: gl.constexpr = a_desc.block_shape[0]
    BN: gl.constexpr = b_desc.block_shape[0]
    BK: gl.constexpr = a_desc.block_shape[1]
    row = gl.program_id(0) * BM
    col = gl.program_id(1) * BN
    num_k = gl.cdiv(a_desc.shape[1], BK)

    a_ring = gl.allocate_shared_memory(a_desc.dtype, [STAGES, BM, BK], a_desc.layout)
    b_ring = gl.allocate_shared_memory(b_desc.dtype, [STAGES, BN, BK], b_desc.layout)
    d_tile = gl.allocate_shared_memory(d_desc.dtype, d_desc.block_shape, d_desc.layout)
    acc = allocate_tensor_memory(gl.float32, [BM, BN], TensorMemoryLayout(block=(BM, BN), col_stride=1))
    full = mbarrier.allocate_mbarrier(batch=STAGES)
    empty = mbarrier.allocate_mbarrier(batch=STAGES)
    for i in gl.static_range(STAGES):
        mbarrier.init(full.index(i), count=1)
        mbarrier.init(empty.index(i), count=1)

    for i in gl.static_range(STAGES - 1):
        fill(i, num_k, row, col, a_desc, b_desc, a_ring, b_ring, full, BK, STAGES)

    for k in range(0, num_k):
        slot = k % STAGES
        mbarrier.wait(full.index(slot), (k // STAGES) & 1)
        tcgen05_mma(a_ring.index(slot), b_ring.index(slot).permute((1, 0)), acc, use_acc=(k != 0),
                    mbarriers=[empty.index(slot)])
        # Stage of K block k + STAGES - 1 was last read by the MMA of K block k - 1.
        last = k + STAGES - 1
        mbarrier.wait(empty.index(last % STAGES), ((last // STAGES) & 1) ^ 1, pred=(k > 0))
        fill(k + STAGES - 1, num_k, row, col, a_desc, b_desc, a_ring, b_ring, full, BK, STAGES)

    mbarrier.wait(empty.index((num_k - 1) % STAGES), ((num_k - 1) // STAGES) & 1)

    d_tile.store(acc.load().to(d_desc.dtype))
    fence_async_shared()
    tma.async_store(d_desc, [row, col], d_tile)
    tma.store_wait(pendings=0)


M, N, K = 256, 128, 160
BM, BN, BK, STAGES = 128, 64, 32, 3
T = gl.bfloat16
SPEC = dict(
    summary="one tile per CTA, ring of 3 stages, TMA loads and TMA store",
    M=M, N=N, K=K,
    tile=dict(BM=BM, BN=BN, BK=BK, stages=STAGES),
    grid=(M // BM, N // BN, 1),
    buffers=dict(
        A=dict(dtype="bf16", shape=[M, K], role="input"),
        B=dict(dtype="bf16", shape=[N, K], role="input"),
        D=dict(dtype="bf16", shape=[M, N], role="output"),
    ),
    args=[
        dict(name="a_desc", kind="desc", buffer="A", block=[BM, BK], layout=gl.NVMMASharedLayout.get_default_for([BM, BK], T)),
        dict(name="b_desc", kind="desc", buffer="B", block=[BN, BK], layout=gl.NVMMASharedLayout.get_default_for([BN, BK], T)),
        dict(name="d_desc", kind="desc", buffer="D", block=[BM, BN], layout=gl.NVMMASharedLayout.get_default_for([BM, BN], T)),
        dict(name="STAGES", kind="constexpr", value=STAGES),
    ],
)
