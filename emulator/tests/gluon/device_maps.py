"""GEMMs whose CTAs make the tensor maps of their tiles themselves, of sizes that no tile divides.

`device_maps` is one in Gluon. `grouped` is in Triton: each program takes tiles of several GEMMs, one after the other, and makes maps for each.
Rows of group g in A and D are ends[g - 1] to ends[g]; B holds a matrix for each group.
"""
import triton
import triton.language as tl
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
def device_maps(a_ptr, b_ptr, d_ptr, M, N, K, BM: gl.constexpr, BN: gl.constexpr, BK: gl.constexpr):
    T: gl.constexpr = a_ptr.dtype.element_ty
    a_layout: gl.constexpr = gl.NVMMASharedLayout.get_default_for([BM, BK], T)
    b_layout: gl.constexpr = gl.NVMMASharedLayout.get_default_for([BN, BK], T)
    d_layout: gl.constexpr = gl.NVMMASharedLayout.get_default_for([BM, BN], T)
    a_desc = tma.make_tensor_descriptor(a_ptr, [M, K], [K, 1], [BM, BK], a_layout)
    b_desc = tma.make_tensor_descriptor(b_ptr, [N, K], [K, 1], [BN, BK], b_layout)
    d_desc = tma.make_tensor_descriptor(d_ptr, [M, N], [N, 1], [BM, BN], d_layout)
    row = gl.program_id(0) * BM
    col = gl.program_id(1) * BN

    a_tile = gl.allocate_shared_memory(T, [BM, BK], a_layout)
    b_tile = gl.allocate_shared_memory(T, [BN, BK], b_layout)
    d_tile = gl.allocate_shared_memory(T, [BM, BN], d_layout)
    acc = allocate_tensor_memory(gl.float32, [BM, BN], TensorMemoryLayout(block=(BM, BN), col_stride=1))
    full = mbarrier.allocate_mbarrier()
    done = mbarrier.allocate_mbarrier()
    mbarrier.init(full, count=1)
    mbarrier.init(done, count=1)
    for block in range(0, gl.cdiv(K, BK)):
        mbarrier.expect(full, a_desc.nbytes_per_cta + b_desc.nbytes_per_cta)
        tma.async_load(a_desc, [row, block * BK], full, a_tile)
        tma.async_load(b_desc, [col, block * BK], full, b_tile)
        mbarrier.wait(full, block & 1)
        tcgen05_mma(a_tile, b_tile.permute((1, 0)), acc, use_acc=block > 0)
        tcgen05_commit(done)
        mbarrier.wait(done, block & 1)
    d_tile.store(acc.load().to(T))
    fence_async_shared()
    tma.async_store(d_desc, [row, col], d_tile)
    tma.store_wait(pendings=0)


@triton.jit
def grouped(a_ptr, b_ptr, d_ptr, ends_ptr, N, K, GROUPS: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    programs = tl.num_programs(0)
    tile = tl.program_id(0)
    before = 0
    begin = 0
    T: tl.constexpr = a_ptr.dtype.element_ty
    for group in range(0, GROUPS):
        end = tl.load(ends_ptr + group)
        rows = end - begin
        across = tl.cdiv(N, BN)
        tiles = tl.cdiv(rows, BM) * across
        if (tile >= before) & (tile < before + tiles):
            a_desc = tl.make_tensor_descriptor(a_ptr + begin * K, [rows, K], [K, 1], [BM, BK])
            b_desc = tl.make_tensor_descriptor(b_ptr + group * N * K, [N, K], [K, 1], [BN, BK])
            d_desc = tl.make_tensor_descriptor(d_ptr + begin * N, [rows, N], [N, 1], [BM, BN])
            while tile < before + tiles:
                row = (tile - before) // across * BM
                col = (tile - before) % across * BN
                acc = tl.zeros((BM, BN), dtype=tl.float32)
                for k in range(0, tl.cdiv(K, BK)):
                    a = a_desc.load([row, k * BK])
                    b = b_desc.load([col, k * BK])
                    acc = tl.dot(a, b.T, acc)
                d_desc.store([row, col], acc.to(T))
                tile += programs
        before += tiles
        begin = end


M, N, K = 200, 96, 160
SPECS = dict(
    device_maps=dict(
        kernel="device_maps", summary="maps that each CTA makes for itself", M=M, N=N, K=K, grid=(2, 2, 1),
        computes="D = A * B^T, all row-major, accumulation in f32",
        buffers=dict(
            A=dict(dtype="fp16", shape=[M, K], role="input"),
            B=dict(dtype="fp16", shape=[N, K], role="input"),
            D=dict(dtype="fp16", shape=[M, N], role="output"),
        ),
        args=[
            dict(name="a_ptr", kind="ptr", buffer="A"),
            dict(name="b_ptr", kind="ptr", buffer="B"),
            dict(name="d_ptr", kind="ptr", buffer="D"),
            dict(name="M", kind="int", value=M),
            dict(name="N", kind="int", value=N, div16=True),
            dict(name="K", kind="int", value=K, div16=True),
            dict(name="BM", kind="constexpr", value=128),
            dict(name="BN", kind="constexpr", value=64),
            dict(name="BK", kind="constexpr", value=64),
        ],
    ),
    # Groups of 136, 0, 40 and 250 rows: 2 + 0 + 1 + 2 rows of tiles.
    grouped=dict(
        kernel="grouped", summary="a persistent grouped GEMM, maps for each group", M=426, N=N, K=K, grid=(3, 1, 1), num_stages=2,
        computes="D = A * B_g^T for the rows of each group g, all row-major, accumulation in f32",
        buffers=dict(
            A=dict(dtype="fp16", shape=[426, K], role="input"),
            B=dict(dtype="fp16", shape=[4, N, K], role="input"),
            D=dict(dtype="fp16", shape=[426, N], role="output"),
            ends=dict(dtype="i32", format="i32", shape=[4], role="ends", values=[136, 136, 176, 426]),
        ),
        args=[
            dict(name="a_ptr", kind="ptr", buffer="A"),
            dict(name="b_ptr", kind="ptr", buffer="B"),
            dict(name="d_ptr", kind="ptr", buffer="D"),
            dict(name="ends_ptr", kind="ptr", buffer="ends"),
            dict(name="N", kind="int", value=N, div16=True),
            dict(name="K", kind="int", value=K, div16=True),
            dict(name="GROUPS", kind="constexpr", value=4),
            dict(name="BM", kind="constexpr", value=128),
            dict(name="BN", kind="constexpr", value=64),
            dict(name="BK", kind="constexpr", value=64),
        ],
    ),
)
