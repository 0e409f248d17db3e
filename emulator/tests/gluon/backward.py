"""Attention, backward: gradients of Q, K and V by programs that each have a block of keys. P is computed anew from the logarithms of the sums."""
import triton
import triton.language as tl


@triton.jit
def backward(q_ptr, k_ptr, v_ptr, do_ptr, lse_ptr, delta_ptr, dq_ptr, dk_ptr, dv_ptr, QUERIES, scale,
             BM: tl.constexpr, BN: tl.constexpr, DIM: tl.constexpr):
    keys = tl.program_id(0) * BN + tl.arange(0, BN)
    dim = tl.arange(0, DIM)
    k = tl.load(k_ptr + keys[:, None] * DIM + dim[None, :])
    v = tl.load(v_ptr + keys[:, None] * DIM + dim[None, :])
    dk = tl.zeros((BN, DIM), dtype=tl.float32)
    dv = tl.zeros((BN, DIM), dtype=tl.float32)
    for first in range(0, QUERIES, BM):
        rows = first + tl.arange(0, BM)
        q = tl.load(q_ptr + rows[:, None] * DIM + dim[None, :])
        do = tl.load(do_ptr + rows[:, None] * DIM + dim[None, :])
        lse = tl.load(lse_ptr + rows)
        delta = tl.load(delta_ptr + rows)
        p = tl.math.exp2(tl.dot(k, q.T) * scale - lse[None, :])
        dv = tl.dot(p.to(tl.float16), do, dv)
        ds = (p * (tl.dot(v, do.T) - delta[None, :])).to(tl.float16)
        dk = tl.dot(ds, q, dk)
        tl.atomic_add(dq_ptr + rows[:, None] * DIM + dim[None, :], tl.dot(ds.T, k), sem="relaxed")
    tl.store(dk_ptr + keys[:, None] * DIM + dim[None, :], dk)
    tl.store(dv_ptr + keys[:, None] * DIM + dim[None, :], dv)


M, N, K = 256, 256, 64
HALF = lambda: dict(dtype="fp16", shape=[M, K], role="input")
ROW = lambda: dict(dtype="fp32", shape=[M], role="row")
SPECS = dict(
    attention_backward=dict(
        kernel="backward", summary="attention, backward, by blocks of keys: P and dS in tensor memory and shared memory", M=M, N=N, K=K,
        grid=(2, 1, 1), num_stages=2,
        computes="dV = P^T dO, dS = P o (dO V^T - delta), dK = dS^T Q, dQ = dS K, with P = 2^(scale Q K^T - lse); all row-major",
        buffers=dict(
            Q=HALF(), K=HALF(), V=HALF(), dO=HALF(), lse=ROW(), delta=ROW(),
            dQ=dict(dtype="fp32", shape=[M, K], role="output", zero=True),
            dK=dict(dtype="fp32", shape=[N, K], role="output"),
            dV=dict(dtype="fp32", shape=[N, K], role="output"),
        ),
        args=[dict(name=f"{name.lower()}_ptr", kind="ptr", buffer=name) for name in ["Q", "K", "V", "dO", "lse", "delta", "dQ", "dK", "dV"]] + [
            dict(name="QUERIES", kind="int", value=M, div16=True),
            # log2 e / sqrt(64)
            dict(name="scale", kind="float", value=0.18033688011112042),
            dict(name="BM", kind="constexpr", value=64),
            dict(name="BN", kind="constexpr", value=128),
            dict(name="DIM", kind="constexpr", value=K),
        ],
    ),
)
