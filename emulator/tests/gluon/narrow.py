"""GEMMs of elements of 8 and 32 bits: a ring of stages filled by TMA, by one CTA or by a pair. D is written as 8, 16 or 32 bits."""
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
def narrow(a_desc, b_desc, d_desc, BM: gl.constexpr, BN: gl.constexpr, STAGES: gl.constexpr, PAIR: gl.constexpr):
    BK: gl.constexpr = a_desc.block_shape[1]
    row = gl.program_id(0) * BM
    col = gl.program_id(1) * BN
    blocks = gl.cdiv(a_desc.shape[1], BK)

    a_ring = gl.allocate_shared_memory(a_desc.dtype, [STAGES, BM, BK], a_desc.layout)
    b_ring = gl.allocate_shared_memory(b_desc.dtype, [STAGES, BN, BK], b_desc.layout)
    d_tile = gl.allocate_shared_memory(d_desc.dtype, [BM, BN], d_desc.layout)
    split: gl.constexpr = [[1, 0]] if PAIR else []
    acc = allocate_tensor_memory(
        gl.float32, [BM, BN],
        TensorMemoryLayout(block=(128, BN), col_stride=1, cga_layout=split, two_ctas=PAIR))
    full = mbarrier.allocate_mbarrier(batch=STAGES, two_ctas=PAIR)
    free = mbarrier.allocate_mbarrier(batch=STAGES)
    done = mbarrier.allocate_mbarrier()
    for i in gl.static_range(STAGES):
        mbarrier.init(full.index(i), count=1)
        mbarrier.init(free.index(i), count=1)
    mbarrier.init(done, count=1)

    # Block j lies in stage j % STAGES; it may go there when the MMA of block j - STAGES has read what lay there.
    for step in range(0, blocks + STAGES - 1):
        load = step < blocks
        stage = step % STAGES
        mbarrier.wait(free.index(stage), (step // STAGES - 1) & 1, pred=load & (step >= STAGES))
        mbarrier.expect(full.index(stage), a_desc.nbytes_per_cta + b_desc.nbytes_per_cta, pred=load)
        tma.async_load(a_desc, [row, step * BK], full.index(stage), a_ring.index(stage), pred=load)
        tma.async_load(b_desc, [col, step * BK], full.index(stage), b_ring.index(stage), pred=load)

        block = step - (STAGES - 1)
        multiply = block >= 0
        stage = block % STAGES
        mbarrier.wait(full.index(stage), (block // STAGES) & 1, pred=multiply)
        tcgen05_mma(a_ring.index(stage), b_ring.index(stage).permute((1, 0)), acc, use_acc=block > 0, pred=multiply,
                    mbarriers=[free.index(stage)], mbarrier_preds=[multiply])
    tcgen05_commit(done)
    mbarrier.wait(done, 0)

    d_tile.store(acc.load().to(d_desc.dtype))
    fence_async_shared()
    tma.async_store(d_desc, [row, col], d_tile)
    tma.store_wait(pendings=0)


def spec(summary, inputs, output, m, n, k, bm, bn, bk, stages, pair=False):
    layout = lambda block, t: gl.NVMMASharedLayout.get_default_for(block, t, cga_layout=[[1, 0]] if pair else None)
    a, b = inputs
    return dict(
        kernel="narrow", summary=summary, M=m, N=n, K=k, grid=(m // bm, n // bn, 1), num_ctas=2 if pair else 1,
        computes="D = A * B^T, all row-major, accumulation in f32, D rounded to its type",
        buffers=dict(
            A=dict(dtype=str(a), shape=[m, k], role="input"),
            B=dict(dtype=str(b), shape=[n, k], role="input"),
            D=dict(dtype=str(output), shape=[m, n], role="output"),
        ),
        args=[
            dict(name="a_desc", kind="desc", buffer="A", block=[bm, bk], layout=layout([bm, bk], a)),
            dict(name="b_desc", kind="desc", buffer="B", block=[bn, bk], layout=layout([bn, bk], b)),
            dict(name="d_desc", kind="desc", buffer="D", block=[bm, bn], layout=layout([bm, bn], output)),
            dict(name="BM", kind="constexpr", value=bm),
            dict(name="BN", kind="constexpr", value=bn),
            dict(name="STAGES", kind="constexpr", value=stages),
            dict(name="PAIR", kind="constexpr", value=pair),
        ],
    )


E4M3, E5M2 = gl.float8e4nv, gl.float8e5
SPECS = dict(
    fp8_e4m3=spec("FP8 (e4m3), three stages, D in e4m3", [E4M3, E4M3], E4M3, 256, 128, 320, 128, 64, 64, 3),
    fp8_e5m2=spec("FP8 (e5m2), two stages, D in FP16", [E5M2, E5M2], gl.float16, 256, 128, 256, 128, 64, 128, 2),
    fp8_mixed=spec("FP8, A in e4m3 and B in e5m2, two stages, D in FP32", [E4M3, E5M2], gl.float32, 128, 128, 256, 128, 64, 64, 2),
    fp8_pair=spec("FP8 (e4m3) by pairs of CTAs, two stages, D in BF16", [E4M3, E4M3], gl.bfloat16, 512, 128, 256, 256, 128, 128, 2, True),
    tf32=spec("TF32, three stages, D in FP32", [gl.float32, gl.float32], gl.float32, 256, 128, 160, 128, 64, 32, 3),
    tf32_pair=spec("TF32 by pairs of CTAs, two stages, D in FP32", [gl.float32, gl.float32], gl.float32, 256, 128, 96, 256, 128, 16, 2, True),
)
