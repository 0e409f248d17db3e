"""GEMMs in Triton: an accumulator in FP16, clusters of four CTAs, and roles of whose tiles each half is stored by itself."""
import triton
import triton.language as tl

from describe import constants, desc, integer, matrices, pointers


@triton.jit
def plain(a_desc, b_desc, d_desc, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, SUMS: tl.constexpr):
    row = tl.program_id(0) * BM
    col = tl.program_id(1) * BN
    acc = tl.zeros((BM, BN), SUMS)
    for k in range(0, K, BK):
        acc = tl.dot(a_desc.load([row, k]), b_desc.load([col, k]).T, acc, out_dtype=SUMS)
    d_desc.store([row, col], acc.to(tl.float16))


@triton.jit
def roles_halves(a_ptr, b_ptr, d_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    a_desc = tl.make_tensor_descriptor(a_ptr, [M, K], [K, 1], [BM, BK])
    b_desc = tl.make_tensor_descriptor(b_ptr, [N, K], [K, 1], [BN, BK])
    d_desc = tl.make_tensor_descriptor(d_ptr, [M, N], [N, 1], [BM, BN // 2])
    across = tl.cdiv(N, BN)
    for tile in tl.range(tl.program_id(0), tl.cdiv(M, BM) * across, tl.num_programs(0), flatten=True, warp_specialize=True):
        row = tile // across * BM
        col = tile % across * BN
        acc = tl.zeros((BM, BN), tl.float32)
        for k in range(0, tl.cdiv(K, BK)):
            acc = tl.dot(a_desc.load([row, k * BK]), b_desc.load([col, k * BK]).T, acc)
        left, right = tl.split(tl.permute(tl.reshape(acc, (BM, 2, BN // 2)), (0, 2, 1)))
        d_desc.store([row, col], left.to(tl.float16))
        d_desc.store([row, col + BN // 2], right.to(tl.float16))


def by_maps(summary, m, n, k, bm, bn, bk, sums=tl.float32, **options):
    return dict(
        kernel="plain", summary=summary, M=m, N=n, K=k, grid=(m // bm, n // bn, 1), buffers=matrices(m, n, k),
        computes="D = A * B^T, all row-major, accumulation in " + ("f16" if sums == tl.float16 else "f32"),
        args=[desc("a_desc", "A", [bm, bk]), desc("b_desc", "B", [bn, bk]), desc("d_desc", "D", [bm, bn]),
              integer("K", k)] + constants(BM=bm, BN=bn, BK=bk, SUMS=sums), **options)


def by_roles(kernel, summary, m, n, k, bm, bn, bk, programs, **options):
    return dict(
        kernel=kernel, summary=summary, M=m, N=n, K=k, grid=(programs, 1, 1), buffers=matrices(m, n, k),
        computes="D = A * B^T, all row-major, accumulation in f32",
        args=pointers("ABD") + [integer("M", m), integer("N", n), integer("K", k)] + constants(BM=bm, BN=bn, BK=bk), **options)


SPECS = dict(
    sums_fp16=by_maps("the accumulator in FP16, packed in tensor memory", 256, 128, 128, 128, 128, 64, tl.float16),
    four_ctas=by_maps("clusters of four CTAs, one column of tiles", 512, 256, 192, 256, 256, 64, num_ctas=4),
    roles_halves=by_roles("roles_halves", "persistent, warp-specialised, flattened; a tile in two halves", 400, 208, 272, 128, 128, 64, 3,
                          num_stages=4),
)
