"""GEMMs with scale factors, which lie in shared memory as TMA brings them and go to tensor memory by `tcgen05.cp`.

The scale factors of 128 rows and 4 blocks of K are 512 bytes in global memory: that of row r and block b is byte 16 (r % 32) + 4 (r / 32) + b,
the order that the copy wants them in.
"""
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.blackwell import (
    TensorMemoryLayout,
    TensorMemoryScalesLayout,
    allocate_tensor_memory,
    fence_async_shared,
    mbarrier,
    tcgen05_commit,
    tcgen05_copy,
    tcgen05_mma_scaled,
    tma,
)


@gluon.jit
def as_matrix(tile, ROWS: gl.constexpr, BLOCKS: gl.constexpr):
    """Scale factors as a matrix of rows and blocks of K."""
    parts = tile.reshape((ROWS // 128, BLOCKS // 4, 32, 4, 4))
    return parts.permute((0, 3, 2, 1, 4)).reshape((ROWS, BLOCKS))


@gluon.jit
def block_scaled(a_desc, b_desc, sa_desc, sb_desc, d_desc, blocks, BM: gl.constexpr, BN: gl.constexpr, BK: gl.constexpr, VEC: gl.constexpr,
                 STAGES: gl.constexpr, A_TYPE: gl.constexpr, B_TYPE: gl.constexpr, PAIR: gl.constexpr):
    row = gl.program_id(0) * BM
    col = gl.program_id(1) * BN
    A_COLUMNS: gl.constexpr = a_desc.block_shape[1]
    B_COLUMNS: gl.constexpr = b_desc.block_shape[1]

    a_ring = gl.allocate_shared_memory(a_desc.dtype, [STAGES, BM, A_COLUMNS], a_desc.layout)
    b_ring = gl.allocate_shared_memory(b_desc.dtype, [STAGES, BN, B_COLUMNS], b_desc.layout)
    sa_ring = gl.allocate_shared_memory(sa_desc.dtype, [STAGES] + sa_desc.block_shape, sa_desc.layout)
    sb_ring = gl.allocate_shared_memory(sb_desc.dtype, [STAGES] + sb_desc.block_shape, sb_desc.layout)
    d_tile = gl.allocate_shared_memory(d_desc.dtype, [BM, BN], d_desc.layout)
    split: gl.constexpr = [[1, 0]] if PAIR else []
    both: gl.constexpr = [[0, 0]] if PAIR else []
    acc = allocate_tensor_memory(
        gl.float32, [BM, BN],
        TensorMemoryLayout(block=(128, BN), col_stride=1, cga_layout=split, two_ctas=PAIR))
    sa = allocate_tensor_memory(sa_desc.dtype, [BM, BK // VEC], TensorMemoryScalesLayout(cga_layout=split))
    sb = allocate_tensor_memory(sb_desc.dtype, [BN, BK // VEC], TensorMemoryScalesLayout(cga_layout=both))
    full = mbarrier.allocate_mbarrier(batch=STAGES, two_ctas=PAIR)
    free = mbarrier.allocate_mbarrier(batch=STAGES)
    done = mbarrier.allocate_mbarrier()
    for i in gl.static_range(STAGES):
        mbarrier.init(full.index(i), count=1)
        mbarrier.init(free.index(i), count=1)
    mbarrier.init(done, count=1)

    for step in range(0, blocks + STAGES - 1):
        load = step < blocks
        stage = step % STAGES
        mbarrier.wait(free.index(stage), (step // STAGES - 1) & 1, pred=load & (step >= STAGES))
        all_bytes: gl.constexpr = (a_desc.nbytes_per_cta + b_desc.nbytes_per_cta + sa_desc.nbytes_per_cta
                                   + sb_desc.nbytes_per_cta)
        mbarrier.expect(full.index(stage), all_bytes, pred=load)
        tma.async_load(a_desc, [row, step * A_COLUMNS], full.index(stage), a_ring.index(stage), pred=load)
        tma.async_load(b_desc, [col, step * B_COLUMNS], full.index(stage), b_ring.index(stage), pred=load)
        group = step * (BK // VEC // 4)
        tma.async_load(sa_desc, [row // 128, group, 0, 0], full.index(stage), sa_ring.index(stage), pred=load)
        tma.async_load(sb_desc, [col // 128, group, 0, 0], full.index(stage), sb_ring.index(stage), pred=load, multicast=PAIR)

        block = step - (STAGES - 1)
        if block >= 0:
            stage = block % STAGES
            mbarrier.wait(full.index(stage), (block // STAGES) & 1)
            tcgen05_copy(as_matrix(sa_ring.index(stage), BM, BK // VEC), sa)
            tcgen05_copy(as_matrix(sb_ring.index(stage), BN, BK // VEC), sb)
            tcgen05_mma_scaled(a_ring.index(stage), b_ring.index(stage).permute((1, 0)), acc, sa, sb, A_TYPE, B_TYPE,
                               use_acc=block > 0)
            tcgen05_commit(free.index(stage))
    tcgen05_commit(done)
    mbarrier.wait(done, 0)

    d_tile.store(acc.load().to(d_desc.dtype))
    fence_async_shared()
    tma.async_store(d_desc, [row, col], d_tile)
    tma.store_wait(pendings=0)


def spec(summary, types, scale, m, n, k, bm, bn, bk, vec, stages, output=gl.float32, pair=False):
    split, both = ([[1, 0]], [[1, 0, 0, 0]]) if pair else (None, None)
    buffers, args = {}, []
    mixed = len(set(types)) > 1
    for name, size, block, kind in [("A", m, bm, types[0]), ("B", n, bn, types[1])]:
        packed = kind == "e2m1"
        columns, wide = (k // 2, bk // 2) if packed else (k, bk)
        dtype = dict(e2m1=gl.uint8, e4m3=gl.float8e4nv, e5m2=gl.float8e5)[kind]
        layout = gl.NVMMASharedLayout.get_default_for([block, wide], dtype, fp4_padded=packed and mixed, cga_layout=split)
        buffers[name] = dict(dtype=str(dtype).replace("uint8", "u8"), format=kind, shape=[size, columns], role="input")
        args.append(dict(name=f"{name.lower()}_desc", kind="desc", buffer=name, block=[block, wide], layout=layout))
    for name, size, block, cga in [("SA", m, bm, both), ("SB", n, bn, [[0, 0, 0, 0]] if pair else None)]:
        dtype = gl.float8e4nv if scale == "e4m3" else gl.uint8
        layout = gl.NVMMASharedLayout(swizzle_byte_width=0, element_bitwidth=8, rank=4, cga_layout=cga)
        shape, tile = [size // 128, k // vec // 4, 2, 256], [block // 128, bk // vec // 4, 2, 256]
        buffers[name] = dict(dtype=str(dtype).replace("uint8", "u8"), format=scale, shape=shape, role="scale")
        args.append(dict(name=f"{name.lower()}_desc", kind="desc", buffer=name, block=tile, layout=layout))
    buffers["D"] = dict(dtype=str(output), shape=[m, n], role="output")
    layout = gl.NVMMASharedLayout.get_default_for([bm, bn], output, cga_layout=split)
    args.append(dict(name="d_desc", kind="desc", buffer="D", block=[bm, bn], layout=layout))
    args.append(dict(name="blocks", kind="int", value=k // bk, meaning="blocks of K"))
    constants = dict(BM=bm, BN=bn, BK=bk, VEC=vec, STAGES=stages, A_TYPE=types[0], B_TYPE=types[1], PAIR=pair)
    args += [dict(name=name, kind="constexpr", value=value) for name, value in constants.items()]
    return dict(
        kernel="block_scaled", summary=summary, M=m, N=n, K=k, grid=(m // bm, n // bn, 1), num_ctas=2 if pair else 1, scale_block=vec,
        computes="D = (A * SA) * (B * SB)^T, a scale factor for each block of K of each row; accumulation in f32", buffers=buffers, args=args)


SPECS = dict(
    mxf8=spec("MXFP8 (e4m3), two stages", ["e4m3", "e4m3"], "ue8m0", 256, 128, 512, 128, 128, 128, 32, 2, gl.float16),
    mxf8_mixed=spec("MXFP8, A in e5m2 and B in e4m3, three stages", ["e5m2", "e4m3"], "ue8m0", 128, 256, 384, 128, 128, 128, 32, 3),
    mxf8_pair=spec("MXFP8 (e4m3) by pairs of CTAs", ["e4m3", "e4m3"], "ue8m0", 256, 128, 384, 256, 128, 128, 32, 2, pair=True),
    mxf8f4=spec("MXFP8 times MXFP4: B in e2m1, which TMA pads", ["e4m3", "e2m1"], "ue8m0", 128, 128, 384, 128, 128, 128, 32, 2),
    mxf4=spec("MXFP4, two stages", ["e2m1", "e2m1"], "ue8m0", 256, 128, 768, 128, 128, 256, 32, 2, gl.bfloat16),
    mxf4_pair=spec("MXFP4 by pairs of CTAs", ["e2m1", "e2m1"], "ue8m0", 256, 256, 512, 256, 256, 128, 32, 2, pair=True),
    nvf4=spec("NVFP4: a factor in e4m3 for 16 elements", ["e2m1", "e2m1"], "e4m3", 128, 256, 512, 128, 128, 128, 16, 2),
)
