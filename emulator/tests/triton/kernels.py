"""The kernels of this folder, and how they were compiled: `python kernels.py` with Triton 3.9.0; no GPU is needed."""
import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource


@triton.jit
def pointers(a_ptr, b_ptr, d_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    columns = tl.program_id(1) * BN + tl.arange(0, BN)
    depth = tl.arange(0, BK)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, tl.cdiv(K, BK)):
        a = tl.load(a_ptr + rows[:, None] * K + (k * BK + depth)[None, :])
        b = tl.load(b_ptr + columns[None, :] * K + (k * BK + depth)[:, None])
        acc = tl.dot(a, b, acc)
    tl.store(d_ptr + rows[:, None] * N + columns[None, :], acc.to(tl.float16))


@triton.jit
def maps(a_desc, b_desc, d_desc, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, TURNED: tl.constexpr):
    row, column = tl.program_id(0) * BM, tl.program_id(1) * BN
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, tl.cdiv(K, BK)):
        a = a_desc.load([row, k * BK])
        if TURNED:
            b = b_desc.load([k * BK, column])
        else:
            b = b_desc.load([column, k * BK]).T
        acc = tl.dot(a, b, acc)
    d_desc.store([row, column], acc.to(tl.float16))


@triton.jit
def registers(a_desc, b_desc, d_desc, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, TURNED: tl.constexpr):
    """A is doubled on its way: the MMA takes it out of registers."""
    row, column = tl.program_id(0) * BM, tl.program_id(1) * BN
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, tl.cdiv(K, BK)):
        a = a_desc.load([row, k * BK]) * 2.0
        acc = tl.dot(a.to(tl.float16), b_desc.load([column, k * BK]).T, acc)
    d_desc.store([row, column], acc.to(tl.float16))


def compiled(name, fn, signature, constants, warps, stages):
    signature = signature | {key: "constexpr" for key in constants}
    attrs = {(i,): [["tt.divisibility", 16]] for i in range(6)} if fn is pointers else None
    source = ASTSource(fn=fn, signature=signature, constexprs=constants, attrs=attrs)
    kernel = triton.compile(source, target=GPUTarget("cuda", 90, 32), options={"num_warps": warps, "num_stages": stages})
    with open(f"{name}.ptx", "w") as file:
        file.write(kernel.asm["ptx"])
    print(name, kernel.metadata.shared, getattr(kernel.metadata, "tensordesc_meta", None))


if __name__ == "__main__":
    plain = {"a_ptr": "*fp16", "b_ptr": "*fp16", "d_ptr": "*fp16", "M": "i32", "N": "i32", "K": "i32"}
    for name, warps, stages in [("pointers4", 4, 3), ("pointers8", 8, 4)]:
        compiled(name, pointers, plain, {"BM": 16 * warps, "BN": 128, "BK": 64}, warps, stages)
    for name, fn, warps, stages, turned in [
        ("maps4", maps, 4, 3, False),
        ("maps8", maps, 8, 4, False),
        ("maps8_turned", maps, 8, 3, True),
        ("registers4", registers, 4, 3, False),
    ]:
        m = 16 * warps
        b = "64,128" if turned else "128,64"
        signature = {"a_desc": f"tensordesc<fp16[{m},64]>", "b_desc": f"tensordesc<fp16[{b}]>"}
        signature |= {"d_desc": f"tensordesc<fp16[{m},128]>", "K": "i32"}
        compiled(name, fn, signature, {"BM": m, "BN": 128, "BK": 64, "TURNED": turned}, warps, stages)
