"""GEMMs in Triton, whose compiler chooses how: scale factors by way of registers, weights in FP4 that become BF16, roles, integers."""
import triton
import triton.language as tl

from describe import buffer, constants, desc, integer, matrices, pointers


@triton.jit
def scaled(a_desc, b_desc, sa_ptr, sb_ptr, d_desc, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, VEC: tl.constexpr,
           A_TYPE: tl.constexpr, B_TYPE: tl.constexpr, A_STEP: tl.constexpr, B_STEP: tl.constexpr):
    row = tl.program_id(0) * BM
    col = tl.program_id(1) * BN
    blocks = K // VEC
    sa_at = sa_ptr + (row + tl.arange(0, BM))[:, None] * blocks + tl.arange(0, BK // VEC)[None, :]
    sb_at = sb_ptr + (col + tl.arange(0, BN))[:, None] * blocks + tl.arange(0, BK // VEC)[None, :]
    acc = tl.zeros((BM, BN), tl.float32)
    for k in range(0, K // BK):
        a = a_desc.load([row, k * A_STEP])
        b = b_desc.load([col, k * B_STEP])
        sa = tl.load(sa_at + k * (BK // VEC))
        sb = tl.load(sb_at + k * (BK // VEC))
        acc = tl.dot_scaled(a, sa, A_TYPE, b.T, sb, B_TYPE, acc)
    d_desc.store([row, col], acc)


@triton.jit
def weights(a_desc, b_desc, sb_ptr, d_desc, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    row = tl.program_id(0) * BM
    col = tl.program_id(1) * BN
    sb_at = sb_ptr + (col + tl.arange(0, BN))[:, None] * (K // 32) + tl.arange(0, BK // 32)[None, :]
    acc = tl.zeros((BM, BN), tl.float32)
    for k in range(0, K // BK):
        a = a_desc.load([row, k * BK])
        b = b_desc.load([col, k * (BK // 2)])
        acc = tl.dot_scaled(a, None, "bf16", b.T, tl.load(sb_at + k * (BK // 32)), "e2m1", acc)
    d_desc.store([row, col], acc.to(tl.bfloat16))


@triton.jit
def roles(a_ptr, b_ptr, d_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, OUT: tl.constexpr):
    a_desc = tl.make_tensor_descriptor(a_ptr, [M, K], [K, 1], [BM, BK])
    b_desc = tl.make_tensor_descriptor(b_ptr, [N, K], [K, 1], [BN, BK])
    d_desc = tl.make_tensor_descriptor(d_ptr, [M, N], [N, 1], [BM, BN])
    across = tl.cdiv(N, BN)
    for tile in tl.range(tl.program_id(0), tl.cdiv(M, BM) * across, tl.num_programs(0), flatten=True, warp_specialize=True):
        row = tile // across * BM
        col = tile % across * BN
        acc = tl.zeros((BM, BN), tl.float32)
        for k in range(0, tl.cdiv(K, BK)):
            acc = tl.dot(a_desc.load([row, k * BK]), b_desc.load([col, k * BK]).T, acc)
        d_desc.store([row, col], acc.to(OUT))


@triton.jit
def integers(a_desc, b_desc, d_desc, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    row = tl.program_id(0) * BM
    col = tl.program_id(1) * BN
    acc = tl.zeros((BM, BN), tl.int32)
    for k in range(0, K // BK):
        acc = tl.dot(a_desc.load([row, k * BK]), b_desc.load([col, k * BK]).T, acc)
    d_desc.store([row, col], acc)


NAMES = dict(e4m3="fp8e4nv", e5m2="fp8e5", e2m1="u8", bf16="bf16", i8="i8", f32="fp32", i32="i32", fp8e4nv="fp8e4nv")


def matrix(name, kind, rows, k, block, bk, role="input"):
    """Its buffer, and a map of it."""
    per_byte = 2 if kind == "e2m1" else 1
    whole = dict(buffer(NAMES[kind], [rows, k // per_byte], role), format=kind)
    return whole, desc(f"{name.lower()}_desc", name, [block, bk // per_byte])


def spec(kernel, summary, types, m, n, k, bm, bn, bk, stages, others=None, scale=None, vec=None):
    a, a_desc = matrix("A", types[0], m, k, bm, bk)
    b, b_desc = matrix("B", types[1], n, k, bn, bk)
    d, d_desc = matrix("D", types[2], m, n, bm, bn, "output")
    buffers, args = dict(A=a, B=b, D=d), [a_desc, b_desc]
    for name, rows in [("SA", m), ("SB", n)]:
        if scale and not (name == "SA" and types[0] == "bf16"):
            buffers[name] = dict(buffer("fp8e4nv" if scale == "e4m3" else "u8", [rows, k // vec], "scale"), format=scale)
            args += pointers([name])
    args += [d_desc, integer("K", k)] + constants(BM=bm, BN=bn, BK=bk, **(others or {}))
    more = dict(scale_block=vec) if vec else {}
    return dict(kernel=kernel, summary=summary, M=m, N=n, K=k, grid=(m // bm, n // bn, 1), num_stages=stages, buffers=buffers, args=args,
                computes="D = A * B^T, all row-major; a scale factor for each block of K of each row, if there are any", **more)


M, N, K = 200, 192, 160
SPECS = dict(
    mxf8_st=spec("scaled", "MXFP8, scale factors stored to tensor memory by threads", ["e4m3", "e4m3", "f32"], 256, 128, 384, 128, 64, 128, 2,
                 dict(VEC=32, A_TYPE="e4m3", B_TYPE="e4m3", A_STEP=128, B_STEP=128), "ue8m0", 32),
    nvf4_st=spec("scaled", "NVFP4, scale factors stored to tensor memory by threads", ["e2m1", "e2m1", "f32"], 128, 128, 512, 128, 64, 128, 2,
                 dict(VEC=16, A_TYPE="e2m1", B_TYPE="e2m1", A_STEP=64, B_STEP=64), "e4m3", 16),
    weights4=spec("weights", "BF16 times MXFP4, which threads turn to BF16", ["bf16", "e2m1", "bf16"], 128, 128, 256, 128, 64, 64, 2, None, "ue8m0", 32),
    int8=spec("integers", "INT8, kind::i8", ["i8", "i8", "i32"], 128, 128, 256, 64, 64, 64, 2),
    fp8_roles=dict(
        kernel="roles", summary="FP8, persistent and warp-specialised, maps made by the kernel", M=M, N=N, K=K, grid=(3, 1, 1), num_stages=2,
        computes="D = A * B^T, all row-major, accumulation in f32",
        buffers=matrices(M, N, K, "fp8e4nv", "bf16"),
        args=pointers("ABD") + [dict(name="M", kind="int", value=M), integer("N", N), integer("K", K)] +
        constants(BM=128, BN=64, BK=64, OUT=tl.bfloat16),
    ),
)
