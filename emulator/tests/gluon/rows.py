"""A GEMM of rows that lie anywhere: rows of A come by tile::gather4, those of D go by tile::scatter4."""
import random

import triton
import triton.language as tl


@triton.jit
def gathered(a_desc, b_desc, d_desc, rows_ptr, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rows = tl.load(rows_ptr + tl.program_id(0) * BM + tl.arange(0, BM))
    col = tl.program_id(1) * BN
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, tl.cdiv(K, BK)):
        a = a_desc.gather(rows, k * BK)
        b = b_desc.load([col, k * BK])
        acc = tl.dot(a, b.T, acc)
    d_desc.scatter(acc.to(tl.float16), rows, col)


M, N, K = 256, 128, 320
BM, BN, BK = 128, 64, 64
ROWS = list(range(M))
random.Random(1).shuffle(ROWS)
SPECS = dict(
    gathered=dict(
        kernel="gathered", summary="rows of A by tile::gather4, rows of D by tile::scatter4", M=M, N=N, K=K, grid=(M // BM, N // BN, 1),
        computes="D[rows] = A[rows] * B^T, all row-major, accumulation in f32; rows are all of them, in some order",
        buffers=dict(
            A=dict(dtype="fp16", shape=[M, K], role="input"),
            B=dict(dtype="fp16", shape=[N, K], role="input"),
            D=dict(dtype="fp16", shape=[M, N], role="output"),
            rows=dict(dtype="i32", format="i32", shape=[M], role="rows", values=ROWS),
        ),
        args=[
            dict(name="a_desc", kind="desc", buffer="A", block=[1, BK]),
            dict(name="b_desc", kind="desc", buffer="B", block=[BN, BK]),
            dict(name="d_desc", kind="desc", buffer="D", block=[1, BN]),
            dict(name="rows_ptr", kind="ptr", buffer="rows"),
            dict(name="K", kind="int", value=K, div16=True),
            dict(name="BM", kind="constexpr", value=BM),
            dict(name="BN", kind="constexpr", value=BN),
            dict(name="BK", kind="constexpr", value=BK),
        ],
    ),
)
