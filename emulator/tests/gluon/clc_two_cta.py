"""CTA pairs (cta_group::2) scheduled by cluster launch control: the answer goes to both CTAs of the cluster."""
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
from triton.experimental.gluon.language.nvidia.blackwell import clc as launch_control


@gluon.jit
def clc_two_cta(a_desc, b_desc, d_desc):
    BM: gl.constexpr = a_desc.block_shape[0]
    BN: gl.constexpr = b_desc.block_shape[0]
    BK: gl.constexpr = a_desc.block_shape[1]
    K = a_desc.shape[1]
    tiles_n = gl.cdiv(d_desc.shape[1], BN)

    a_tile = gl.allocate_shared_memory(a_desc.dtype, a_desc.block_shape, a_desc.layout)
    b_tile = gl.allocate_shared_memory(b_desc.dtype, b_desc.block_shape, b_desc.layout)
    d_tile = gl.allocate_shared_memory(d_desc.dtype, d_desc.block_shape, d_desc.layout)
    acc = allocate_tensor_memory(gl.float32, [BM, BN], TensorMemoryLayout(
        block=(BM // 2, BN), col_stride=1, cga_layout=d_desc.layout.cga_layout, two_ctas=True))
    response = gl.allocate_shared_memory(gl.int64, [2], gl.SwizzledSharedLayout(1, 1, 1, [0], cga_layout=[[0]]))
    loaded = mbarrier.allocate_mbarrier(two_ctas=True)
    done = mbarrier.allocate_mbarrier()
    answered = mbarrier.allocate_mbarrier()
    mbarrier.init(loaded, count=1)
    mbarrier.init(done, count=1)
    mbarrier.init(answered, count=1)

    phase = 0
    answer_phase = 0
    tile = gl.program_id(0)
    more = gl.to_tensor(True)
    while more:
        mbarrier.expect(answered, 16)
        launch_control.try_cancel(response, answered)

        row = tile // tiles_n * BM
        col = tile % tiles_n * BN
        for k in range(0, K, BK):
            mbarrier.expect(loaded, a_desc.nbytes_per_cta + b_desc.nbytes_per_cta)
            tma.async_load(a_desc, [row, k], loaded, a_tile)
            tma.async_load(b_desc, [col, k], loaded, b_tile)
            mbarrier.wait(loaded, phase)
            tcgen05_mma(a_tile, b_tile.permute((1, 0)), acc, use_acc=(k != 0), mbarriers=[done])
            mbarrier.wait(done, phase)
            phase ^= 1

        d_tile.store(acc.load().to(d_desc.dtype))
        fence_async_shared()
        tma.async_store(d_desc, [row, col], d_tile)
        tma.store_wait(pendings=0)

        mbarrier.wait(answered, answer_phase)
        answer_phase ^= 1
        result = launch_control.load_result(response)
        more = result.is_canceled()
        tile = result.program_id(0)


M, N, K = 1024, 256, 128
BM, BN, BK = 256, 128, 64
SPLIT = [[1, 0]]
T = gl.float16
SPEC = dict(
    summary="cta_group::2 pairs, persistent through cluster launch control (clusterlaunchcontrol.try_cancel), single stage",
    M=M, N=N, K=K,
    tile=dict(BM=BM, BN=BN, BK=BK, stages=1, note="BM and BN are split over the pair"),
    num_ctas=2,
    grid=((M // BM) * (N // BN), 1, 1),
    notes="The grid has one cluster of two CTAs per tile. A launcher may start any part of it; the rest may be cancelled by running clusters.",
    buffers=dict(
        A=dict(dtype="fp16", shape=[M, K], role="input"),
        B=dict(dtype="fp16", shape=[N, K], role="input"),
        D=dict(dtype="fp16", shape=[M, N], role="output"),
    ),
    args=[
        dict(name="a_desc", kind="desc", buffer="A", block=[BM, BK], layout=gl.NVMMASharedLayout.get_default_for([BM, BK], T, cga_layout=SPLIT)),
        dict(name="b_desc", kind="desc", buffer="B", block=[BN, BK], layout=gl.NVMMASharedLayout.get_default_for([BN, BK], T, cga_layout=SPLIT)),
        dict(name="d_desc", kind="desc", buffer="D", block=[BM, BN], layout=gl.NVMMASharedLayout.get_default_for([BM, BN], T, cga_layout=SPLIT)),
    ],
)
