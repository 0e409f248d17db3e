"""GEMMs that several programs work at together, tile by tile.

`split_k` adds the parts of K to D by atomic operations, `reduced` by the TMA engine. Of `last_block` the last program of a tile adds up what all
have stored. `stream_k` cuts the work into equal pieces wherever they end: who has the end of a tile waits for the others at a flag.
"""
import triton
import triton.language as tl


@triton.jit
def split_k(a_ptr, b_ptr, d_ptr, M, N, K, SPLIT: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    row = tl.program_id(0) * BM + tl.arange(0, BM)
    col = tl.program_id(1) * BN + tl.arange(0, BN)
    depth = tl.program_id(2) * BK + tl.arange(0, BK)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, tl.cdiv(K, BK * SPLIT)):
        at = depth + k * BK * SPLIT
        a = tl.load(a_ptr + row[:, None] * K + at[None, :], mask=(row[:, None] < M) & (at[None, :] < K), other=0.0)
        b = tl.load(b_ptr + col[None, :] * K + at[:, None], mask=(col[None, :] < N) & (at[:, None] < K), other=0.0)
        acc = tl.dot(a, b, acc)
    tl.atomic_add(d_ptr + row[:, None] * N + col[None, :], acc, mask=(row[:, None] < M) & (col[None, :] < N), sem="relaxed")


@triton.jit
def reduced(a_desc, b_desc, d_desc, K, SPLIT: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    row = tl.program_id(0) * BM
    col = tl.program_id(1) * BN
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(tl.program_id(2), tl.cdiv(K, BK), SPLIT):
        acc = tl.dot(a_desc.load([row, k * BK]), b_desc.load([col, k * BK]).T, acc)
    d_desc.atomic_add([row, col], acc)


@triton.jit
def last_block(a_desc, b_desc, d_ptr, parts_ptr, count_ptr, N, K, SPLIT: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    part = tl.program_id(2)
    row = tl.program_id(0) * BM
    col = tl.program_id(1) * BN
    blocks = tl.cdiv(tl.cdiv(K, BK), SPLIT)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(part * blocks, min((part + 1) * blocks, tl.cdiv(K, BK))):
        acc = tl.dot(a_desc.load([row, k * BK]), b_desc.load([col, k * BK]).T, acc)
    tile = tl.program_id(0) * tl.num_programs(1) + tl.program_id(1)
    at = tl.arange(0, BM)[:, None] * BN + tl.arange(0, BN)[None, :]
    tl.store(parts_ptr + (tile * SPLIT + part) * BM * BN + at, acc)
    tl.debug_barrier()
    if tl.atomic_add(count_ptr + tile, 1, sem="acq_rel") == SPLIT - 1:
        total = tl.zeros((BM, BN), dtype=tl.float32)
        for other in range(SPLIT):
            total += tl.load(parts_ptr + (tile * SPLIT + other) * BM * BN + at, cache_modifier=".cg")
        rows = row + tl.arange(0, BM)
        cols = col + tl.arange(0, BN)
        tl.store(d_ptr + rows[:, None] * N + cols[None, :], total.to(tl.float16))


@triton.jit
def stream_k(a_desc, b_desc, d_ptr, parts_ptr, done_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    program = tl.program_id(0)
    blocks = tl.cdiv(K, BK)
    across = tl.cdiv(N, BN)
    total = tl.cdiv(M, BM) * across * blocks
    start = program * total // tl.num_programs(0)
    end = (program + 1) * total // tl.num_programs(0)
    at = tl.arange(0, BM)[:, None] * BN + tl.arange(0, BN)[None, :]
    while start < end:
        tile = start // blocks
        stop = min(end, (tile + 1) * blocks)
        row = tile // across * BM
        col = tile % across * BN
        acc = tl.zeros((BM, BN), dtype=tl.float32)
        for k in range(start - tile * blocks, stop - tile * blocks):
            acc = tl.dot(a_desc.load([row, k * BK]), b_desc.load([col, k * BK]).T, acc)
        if stop == (tile + 1) * blocks:
            before = start - tile * blocks
            if before > 0:
                while tl.atomic_add(done_ptr + tile, 0, sem="acquire") != before:
                    pass
                acc += tl.load(parts_ptr + tile * BM * BN + at)
            rows = row + tl.arange(0, BM)
            cols = col + tl.arange(0, BN)
            tl.store(d_ptr + rows[:, None] * N + cols[None, :], acc.to(tl.float16))
        else:
            tl.atomic_add(parts_ptr + tile * BM * BN + at, acc, sem="relaxed")
            tl.debug_barrier()
            tl.atomic_add(done_ptr + tile, stop - start, sem="release")
        start = stop


BM, BN, BK = 128, 64, 64


def spec(kernel, summary, m, n, k, grid, d, others, args, split=0):
    desc = lambda name, buffer, rows: dict(name=name, kind="desc", buffer=buffer, block=[rows, BK])
    by_map = [desc("a_desc", "A", BM), desc("b_desc", "B", BN)]
    whole = lambda name, value: dict(name=name, kind="int", value=value, div16=True)
    sizes = dict(M=m, N=n, K=k)
    constants = dict(**(dict(SPLIT=split) if split else {}), BM=BM, BN=BN, BK=BK)
    return dict(
        kernel=kernel, summary=summary, M=m, N=n, K=k, grid=grid, computes="D = A * B^T, all row-major, accumulation in f32",
        buffers=dict(A=dict(dtype="fp16", shape=[m, k], role="input"), B=dict(dtype="fp16", shape=[n, k], role="input"), D=d, **others),
        args=[arg for name in args for arg in (
            by_map if name == "maps" else
            [desc("d_desc", "D", BM)] if name == "d_desc" else
            [dict(name=f"{name.lower()}_ptr", kind="ptr", buffer=name)] if name not in sizes else [whole(name, sizes[name])])] +
        [dict(name=name, kind="constexpr", value=value) for name, value in constants.items()],
    )


def fp32(shape, **more):
    return dict(dtype="fp32", shape=shape, **more)


def counters(n):
    return dict(dtype="i32", format="i32", shape=[n], role="counters", zero=True)


HALF = dict(dtype="fp16", shape=[256, 192], role="output")
SPECS = dict(
    split_k=spec("split_k", "K in three parts, added by red.global.add, ragged sizes", 208, 144, 272, (2, 3, 3),
                 fp32([208, 144], role="output", zero=True), {}, ["A", "B", "D", "M", "N", "K"], 3),
    reduced=spec("reduced", "K in two parts, added by cp.reduce.async.bulk.tensor", 256, 192, 320, (2, 3, 2),
                 fp32([256, 192], role="output", zero=True), {}, ["maps", "d_desc", "K"], 2),
    last_block=spec("last_block", "K in three parts, of which the last program of a tile makes the sum", 256, 192, 320, (2, 3, 3), HALF,
                    dict(parts=fp32([18 * BM * BN], role="parts"), count=counters(6)), ["maps", "D", "parts", "count", "N", "K"], 3),
    stream_k=spec("stream_k", "four programs share six tiles, partial sums by red.global.add, flags with release and acquire", 256, 192, 320, (4, 1, 1),
                  HALF, dict(parts=fp32([6 * BM * BN], role="parts", zero=True), done=counters(6)), ["maps", "D", "parts", "done", "M", "N", "K"]),
)
