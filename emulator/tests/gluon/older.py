"""GEMMs for other releases of Triton than the rest: `compile.py` takes this source, and no other, where it runs with one of them."""
import triton
import triton.language as tl

from describe import constants, desc, integer, matrices, pointers


@triton.jit
def descriptors(a_desc, b_desc, d_desc, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    row = tl.program_id(0) * BM
    col = tl.program_id(1) * BN
    acc = tl.zeros((BM, BN), tl.float32)
    for k in range(0, K, BK):
        acc = tl.dot(a_desc.load([row, k]), b_desc.load([col, k]).T, acc)
    d_desc.store([row, col], acc.to(tl.float16))


@triton.jit
def roles(a_ptr, b_ptr, d_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
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
        d_desc.store([row, col], acc.to(tl.float16))


def spec(kernel, release, summary, m, n, k, grid, args, **options):
    return dict(
        kernel=kernel, release=release, summary=summary, M=m, N=n, K=k, grid=grid, computes="D = A * B^T, all row-major, accumulation in f32",
        buffers=matrices(m, n, k), args=args, **options)


SPECS = dict(
    descriptors_34=spec("descriptors", "3.4.0", "two warpgroups, four stages; descriptors without their constant", 256, 256, 256, (2, 1, 1),
                        [desc("a_desc", "A", [128, 64]), desc("b_desc", "B", [256, 64]), desc("d_desc", "D", [128, 256]), integer("K", 256)] +
                        constants(BM=128, BN=256, BK=64), num_warps=8, num_stages=4),
    roles_35=spec("roles", "3.5.1", "persistent, warp-specialised, flattened; stages released before the roles begin", 400, 208, 272, (3, 1, 1),
                  pointers("ABD") + [integer("M", 400), integer("N", 208), integer("K", 272)] + constants(BM=128, BN=64, BK=64)),
)
