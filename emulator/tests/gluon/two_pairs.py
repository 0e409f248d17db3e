"""Clusters of two pairs of CTAs, warp-specialised: each pair has rows of its own, and both share B, which TMA brings to all four."""
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.blackwell import (
    TensorMemoryLayout,
    allocate_tensor_memory,
    fence_async_shared,
    mbarrier,
    tcgen05_commit,
    tcgen05_mma,
    tcgen05_mma_barrier_count,
    tma,
)
from triton.experimental.gluon.language.nvidia.hopper import cluster


@gluon.jit
def load(a_desc, b_desc, a_ring, b_ring, full, free, row, col, blocks, STAGES: gl.constexpr):
    BK: gl.constexpr = a_desc.block_shape[1]
    for k in range(0, blocks):
        stage = k % STAGES
        mbarrier.wait(free.index(stage), ((k // STAGES) & 1) ^ 1)
        mbarrier.expect(full.index(stage), a_desc.nbytes_per_cta + b_desc.nbytes_per_cta)
        tma.async_load(a_desc, [row, k * BK], full.index(stage), a_ring.index(stage), multicast=True)
        tma.async_load(b_desc, [col, k * BK], full.index(stage), b_ring.index(stage), multicast=True)


@gluon.jit
def multiply(a_ring, b_ring, acc, full, free, done, blocks, STAGES: gl.constexpr):
    for k in range(0, blocks):
        stage = k % STAGES
        mbarrier.wait(full.index(stage), (k // STAGES) & 1)
        tcgen05_mma(a_ring.index(stage), b_ring.index(stage).permute((1, 0)), acc, use_acc=k > 0, multicast=True,
                    mbarriers=[free.index(stage)])
    tcgen05_commit(done, descs=[a_ring.index(0), b_ring.index(0)])


@gluon.jit
def write(acc, d_desc, d_tile, done, row, col):
    mbarrier.wait(done, 0)
    d_tile.store(acc.load().to(d_desc.dtype))
    fence_async_shared()
    tma.async_store(d_desc, [row, col], d_tile)
    tma.store_wait(pendings=0)


@gluon.jit
def two_pairs(a_desc, b_desc, d_desc, STAGES: gl.constexpr, ACC: gl.constexpr):
    BM: gl.constexpr = a_desc.block_shape[0]
    BN: gl.constexpr = b_desc.block_shape[0]
    BK: gl.constexpr = a_desc.block_shape[1]
    row = gl.program_id(0) * BM
    col = gl.program_id(1) * BN
    blocks = gl.cdiv(a_desc.shape[1], BK)
    a_ring = gl.allocate_shared_memory(a_desc.dtype, [STAGES, BM, BK], a_desc.layout)
    b_ring = gl.allocate_shared_memory(b_desc.dtype, [STAGES, BN, BK], b_desc.layout)
    d_tile = gl.allocate_shared_memory(d_desc.dtype, [BM, BN], d_desc.layout)
    acc = allocate_tensor_memory(gl.float32, [BM, BN], ACC)
    full = mbarrier.allocate_mbarrier(batch=STAGES, two_ctas=True)
    free = mbarrier.allocate_mbarrier(batch=STAGES)
    done = mbarrier.allocate_mbarrier()
    commits: gl.constexpr = tcgen05_mma_barrier_count([a_ring.index(0), b_ring.index(0)], True, True)
    for i in gl.static_range(STAGES):
        mbarrier.init(full.index(i), count=1)
        mbarrier.init(free.index(i), count=commits)
    mbarrier.init(done, count=commits)
    cluster.barrier()
    gl.warp_specialize([(write, (acc, d_desc, d_tile, done, row, col)),
                        (load, (a_desc, b_desc, a_ring, b_ring, full, free, row, col, blocks, STAGES)),
                        (multiply, (a_ring, b_ring, acc, full, free, done, blocks, STAGES))], [1, 1], [24, 24])


M, N, K = 512, 256, 320
BM, BN, BK, STAGES = 512, 128, 64, 3
T = gl.float16
ROWS = [[1, 0], [2, 0]]
HALVES = [[1, 0], [0, 0]]
SPEC = dict(
    summary="clusters of two pairs, B multicast to both, commits multicast to all four CTAs, three roles", M=M, N=N, K=K, num_ctas=4,
    computes="D = A * B^T, all row-major, accumulation in f32", grid=(M // BM, N // BN, 1),
    buffers=dict(
        A=dict(dtype="fp16", shape=[M, K], role="input"),
        B=dict(dtype="fp16", shape=[N, K], role="input"),
        D=dict(dtype="fp16", shape=[M, N], role="output"),
    ),
    args=[
        dict(name=name, kind="desc", buffer=buffer, block=block, layout=gl.NVMMASharedLayout.get_default_for(block, T, cga_layout=split))
        for name, buffer, block, split in [("a_desc", "A", [BM, BK], ROWS), ("b_desc", "B", [BN, BK], HALVES), ("d_desc", "D", [BM, BN], ROWS)]
    ] + [
        dict(name="STAGES", kind="constexpr", value=STAGES),
        dict(name="ACC", kind="constexpr", value=TensorMemoryLayout(block=(128, BN), col_stride=1, cga_layout=ROWS, two_ctas=True)),
    ],
)
