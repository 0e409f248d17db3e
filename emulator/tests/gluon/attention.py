"""Attention, forward: softmax(scale Q K^T) V of each head, block of keys after block of keys, with the running maximum and sum of each row.

In Triton: its compiler makes the pipelines, and with `warp_specialize` the roles.
"""
import triton
import triton.language as tl


@triton.jit
def attention(q_desc, k_desc, v_desc, o_desc, lse_ptr, scale, queries, keys, BM: tl.constexpr, BN: tl.constexpr, DIM: tl.constexpr,
              CAUSAL: tl.constexpr, ROLES: tl.constexpr):
    block = tl.program_id(0)
    head = tl.program_id(1)
    row = head * queries + block * BM
    q = q_desc.load([row, 0])
    # scale is log2(e) / sqrt(DIM): powers of two take the place of powers of e.
    largest = tl.full((BM, ), float("-inf"), tl.float32)
    total = tl.zeros((BM, ), tl.float32)
    out = tl.zeros((BM, DIM), tl.float32)
    mine = block * BM + tl.arange(0, BM)
    last = (block + 1) * BM if CAUSAL else keys
    for start in tl.range(0, last, BN, warp_specialize=ROLES):
        k = k_desc.load([head * keys + start, 0])
        s = tl.dot(q, k.T) * scale
        if CAUSAL:
            s = tl.where(mine[:, None] >= start + tl.arange(0, BN)[None, :], s, float("-inf"))
        larger = tl.maximum(largest, tl.max(s, 1))
        p = tl.exp2(s - larger[:, None])
        shrink = tl.exp2(largest - larger)
        total = total * shrink + tl.sum(p, 1)
        v = v_desc.load([head * keys + start, 0])
        out = tl.dot(p.to(tl.float16), v, out * shrink[:, None])
        largest = larger
    o_desc.store([row, 0], (out / total[:, None]).to(tl.float16))
    tl.store(lse_ptr + head * queries + block * BM + tl.arange(0, BM), largest + tl.log2(total))


def spec(summary, heads, queries, keys, dim, bm, bn, causal, roles, stages, warps=4):
    buffer = lambda rows, role: dict(dtype="fp16", shape=[heads * rows, dim], role=role)
    desc = lambda name, of, block: dict(name=name, kind="desc", buffer=of, block=[block, dim])
    constants = dict(BM=bm, BN=bn, DIM=dim, CAUSAL=causal, ROLES=roles)
    return dict(
        kernel="attention", summary=summary, M=queries, N=keys, K=dim, grid=(queries // bm, heads, 1), num_stages=stages, num_warps=warps,
        heads=heads,
        computes="O = softmax(Q * K^T / sqrt(dim)) * V of each head; L = log2 of the sum of exponentials of each row" + (", causal" if causal else ""),
        buffers=dict(Q=buffer(queries, "input"), K=buffer(keys, "input"), V=buffer(keys, "input"), O=buffer(queries, "output"),
                     L=dict(dtype="fp32", shape=[heads * queries], role="output")),
        args=[
            desc("q_desc", "Q", bm), desc("k_desc", "K", bn), desc("v_desc", "V", bn), desc("o_desc", "O", bm),
            dict(name="lse_ptr", kind="ptr", buffer="L"),
            dict(name="scale", kind="float", value=1.4426950408889634 / dim**0.5),
            dict(name="queries", kind="int", value=queries, div16=True),
            dict(name="keys", kind="int", value=keys, div16=True),
        ] + [dict(name=name, kind="constexpr", value=value) for name, value in constants.items()],
    )


SPECS = dict(
    attention=spec("attention, pipelined", 2, 128, 256, 64, 128, 64, False, False, 3),
    attention_causal=spec("causal attention, pipelined", 1, 256, 256, 64, 128, 64, True, False, 2),
    attention_roles=spec("attention, warp-specialised", 2, 128, 256, 64, 128, 64, False, True, 2),
    attention_eight=spec("causal attention by eight warps, two for each quarter of the lanes", 1, 256, 256, 64, 128, 64, True, False, 2, 8),
    attention_small=spec("attention of small blocks by mma.sync, two warps with copies of the same rows", 1, 64, 96, 32, 32, 32, False, False, 2),
)
