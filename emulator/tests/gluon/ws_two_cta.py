"""Warp-specialised persistent GEMM on CTA pairs (cta_group::2): a TMA producer warp, an MMA warp and a four-warp epilogue, two accumulators."""
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.blackwell import (
    TensorMemoryLayout,
    allocate_tensor_memory,
    fence_async_shared,
    mbarrier,
    tcgen05_commit,
    tcgen05_mma,
    tma,
)


@gluon.jit
def producer(a_desc, b_desc, a_ring, b_ring, full, empty, tiles_n, tiles):
    BM: gl.constexpr = a_desc.block_shape[0]
    BN: gl.constexpr = b_desc.block_shape[0]
    BK: gl.constexpr = a_desc.block_shape[1]
    STAGES: gl.constexpr = a_ring.shape[0]
    K = a_desc.shape[1]
    slot = 0
    phase = 1
    for tile in range(gl.program_id(0), tiles, gl.num_programs(0)):
        row = tile // tiles_n * BM
        col = tile % tiles_n * BN
        for k in range(0, K, BK):
            mbarrier.wait(empty.index(slot), phase)
            bar = full.index(slot)
            mbarrier.expect(bar, a_desc.nbytes_per_cta + b_desc.nbytes_per_cta)
            tma.async_load(a_desc, [row, k], bar, a_ring.index(slot))
            tma.async_load(b_desc, [col, k], bar, b_ring.index(slot))
            slot += 1
            if slot == STAGES:
                slot = 0
                phase ^= 1


@gluon.jit
def multiplier(a_ring, b_ring, accs, full, empty, acc_full, acc_empty, num_k, tiles):
    STAGES: gl.constexpr = a_ring.shape[0]
    ACCS: gl.constexpr = accs.shape[0]
    slot = 0
    phase = 0
    which = 0
    acc_phase = 1
    for _ in range(gl.program_id(0), tiles, gl.num_programs(0)):
        mbarrier.wait(acc_empty.index(which), acc_phase)
        acc = accs.index(which)
        use_acc = False
        for k in range(0, num_k):
            mbarrier.wait(full.index(slot), phase)
            tcgen05_mma(a_ring.index(slot), b_ring.index(slot).permute((1, 0)), acc, use_acc=use_acc,
                        mbarriers=[empty.index(slot)])
            use_acc = True
            slot += 1
            if slot == STAGES:
                slot = 0
                phase ^= 1
        tcgen05_commit(acc_full.index(which))
        which += 1
        if which == ACCS:
            which = 0
            acc_phase ^= 1


@gluon.jit
def epilogue(d_desc, d_tile, accs, acc_full, acc_empty, tiles_n, tiles):
    BM: gl.constexpr = d_desc.block_shape[0]
    BN: gl.constexpr = d_desc.block_shape[1]
    ACCS: gl.constexpr = accs.shape[0]
    which = 0
    phase = 0
    for tile in range(gl.program_id(0), tiles, gl.num_programs(0)):
        row = tile // tiles_n * BM
        col = tile % tiles_n * BN
        mbarrier.wait(acc_full.index(which), phase)
        value = accs.index(which).load()
        mbarrier.arrive(acc_empty.index(which), count=1)
        tma.store_wait(pendings=0)
        d_tile.store(value.to(d_desc.dtype))
        fence_async_shared()
        tma.async_store(d_desc, [row, col], d_tile)
        which += 1
        if which == ACCS:
            which = 0
            phase ^= 1
    tma.store_wait(pendings=0)


@gluon.jit
def ws_two_cta(a_desc, b_desc, d_desc, STAGES: gl.constexpr, ACCS: gl.constexpr):
    BM: gl.constexpr = a_desc.block_shape[0]
    BN: gl.constexpr = b_desc.block_shape[0]
    BK: gl.constexpr = a_desc.block_shape[1]
    tiles_m = gl.cdiv(d_desc.shape[0], BM)
    tiles_n = gl.cdiv(d_desc.shape[1], BN)
    tiles = tiles_m * tiles_n
    num_k = gl.cdiv(a_desc.shape[1], BK)

    a_ring = gl.allocate_shared_memory(a_desc.dtype, [STAGES, BM, BK], a_desc.layout)
    b_ring = gl.allocate_shared_memory(b_desc.dtype, [STAGES, BN, BK], b_desc.layout)
    d_tile = gl.allocate_shared_memory(d_desc.dtype, d_desc.block_shape, d_desc.layout)
    accs = allocate_tensor_memory(gl.float32, [ACCS, BM, BN], TensorMemoryLayout(
        block=(BM // 2, BN), col_stride=1, cga_layout=d_desc.layout.cga_layout, two_ctas=True))
    full = mbarrier.allocate_mbarrier(batch=STAGES, two_ctas=True)
    empty = mbarrier.allocate_mbarrier(batch=STAGES)
    acc_full = mbarrier.allocate_mbarrier(batch=ACCS)
    acc_empty = mbarrier.allocate_mbarrier(batch=ACCS, two_ctas=True)
    for i in gl.static_range(STAGES):
        mbarrier.init(full.index(i), count=1)
        mbarrier.init(empty.index(i), count=1)
    for i in gl.static_range(ACCS):
        mbarrier.init(acc_full.index(i), count=1)
        mbarrier.init(acc_empty.index(i), count=1)

    gl.warp_specialize([
        (epilogue, (d_desc, d_tile, accs, acc_full, acc_empty, tiles_n, tiles)),
        (producer, (a_desc, b_desc, a_ring, b_ring, full, empty, tiles_n, tiles)),
        (multiplier, (a_ring, b_ring, accs, full, empty, acc_full, acc_empty, num_k, tiles)),
    ], [1, 1], [24, 24])


M, N, K = 512, 384, 256
BM, BN, BK, STAGES, ACCS = 256, 128, 64, 3, 2
SPLIT = [[1, 0]]
T = gl.float16
SPEC = dict(
    summary="cta_group::2 pairs, persistent, warp-specialised (producer warp, MMA warp, epilogue warpgroup), ring of 3 stages, 2 accumulators",
    M=M, N=N, K=K,
    tile=dict(BM=BM, BN=BN, BK=BK, stages=STAGES, accumulators=ACCS,
              note="tiles are numbered row-major; cluster c does tiles c, c + clusters, ...; any number of clusters >= 1; BM and BN are split over the pair"),
    grid=(2, 1, 1),
    num_ctas=2,
    buffers=dict(
        A=dict(dtype="fp16", shape=[M, K], role="input"),
        B=dict(dtype="fp16", shape=[N, K], role="input"),
        D=dict(dtype="fp16", shape=[M, N], role="output"),
    ),
    args=[
        dict(name="a_desc", kind="desc", buffer="A", block=[BM, BK], layout=gl.NVMMASharedLayout.get_default_for([BM, BK], T, cga_layout=SPLIT)),
        dict(name="b_desc", kind="desc", buffer="B", block=[BN, BK], layout=gl.NVMMASharedLayout.get_default_for([BN, BK], T, cga_layout=SPLIT)),
        dict(name="d_desc", kind="desc", buffer="D", block=[BM, BN], layout=gl.NVMMASharedLayout.get_default_for([BM, BN], T, cga_layout=SPLIT)),
        dict(name="STAGES", kind="constexpr", value=STAGES),
        dict(name="ACCS", kind="constexpr", value=ACCS),
    ],
)
