"""Compiles kernels of this folder: `python3 compile.py NAME...` writes NAME.ptx and NAME.json of each spec in the sources.

It needs no GPU: `pip install triton==3.9.0`. A source has one `SPEC` (named as its file) or several `SPECS`. Those of `older.py` name the release
that each is for. `describe.py` is no source: it has what several of them share.
"""
import importlib.util
import json
import os
import sys
from pathlib import Path

# Without paths of the machine that compiles; with the default that Triton 3.9 has.
os.environ["TRITON_DISABLE_LINE_INFO"] = "1"
os.environ["TRITON_DEFAULT_FP_FUSION"] = "1"
os.environ["TRITON_ALWAYS_COMPILE"] = "1"

import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from triton.experimental.gluon._runtime import GluonASTSource

# Nothing but kernels is written to the folder.
sys.dont_write_bytecode = True
HERE = Path(__file__).resolve().parent
RELEASE = "3.9.0"
# Types of elements as case.rs has them; a buffer whose bytes mean something else names that as its `format`.
FORMATS = dict(fp16="f16", bf16="bf16", fp32="f32", fp8e4nv="e4m3", fp8e5="e5m2")
# What Triton's metadata calls a type of elements, and what the driver's enumeration does.
CU_TYPES = {0: "UINT8", 1: "UINT16", 2: "UINT32", 3: "INT32", 6: "FLOAT16", 7: "FLOAT32", 10: "BFLOAT16", 13: "16U4_ALIGN8B", 14: "16U4_ALIGN16B"}
SWIZZLES = ["none", "32B", "64B", "128B"]
# What a kernel computes whose spec says nothing else.
GEMM = "D = A * B^T, A (M,K) row-major, B (N,K) row-major, D (M,N) row-major, accumulation in f32"


def specs():
    """Name, kernel and spec of all kernels of the folder."""
    for file in sorted(HERE.glob("*.py")):
        if file.name in ("compile.py", "describe.py") or (file.name == "older.py") == (triton.__version__ == RELEASE):
            continue
        module_spec = importlib.util.spec_from_file_location(file.stem, file)
        module = importlib.util.module_from_spec(module_spec)
        sys.modules[file.stem] = module
        module_spec.loader.exec_module(module)
        for name, spec in getattr(module, "SPECS", None) and module.SPECS.items() or [(file.stem, module.SPEC)]:
            if spec.get("release", RELEASE) != triton.__version__:
                continue
            yield name, getattr(module, spec.get("kernel", name)), spec


def signature(spec):
    """Types and constants of the arguments, and which of them are multiples of 16."""
    types, constants, attributes = {}, {}, {}
    for at, arg in enumerate(spec["args"]):
        name, kind = arg["name"], arg["kind"]
        if kind == "constexpr":
            types[name], constants[(at,)] = "constexpr", arg["value"]
        elif kind == "int":
            types[name] = "i32"
        elif kind == "float":
            types[name] = "fp32"
        elif kind == "ptr":
            types[name] = "*" + spec["buffers"][arg["buffer"]]["dtype"]
        else:
            block = ",".join(map(str, arg["block"]))
            layout = f",{arg['layout']!r}" if "layout" in arg else ""
            types[name] = f"tensordesc<{spec['buffers'][arg['buffer']]['dtype']}[{block}]{layout}>"
        if arg.get("div16", kind == "ptr"):
            attributes[(at,)] = [["tt.divisibility", 16]]
    return types, constants, attributes


def parameters(spec, metadata):
    """Kernel parameters and tensor maps as Triton's driver makes them."""
    params, maps = [], []
    described = iter(metadata.tensordesc_meta or [])
    for arg in spec["args"]:
        name, kind = arg["name"], arg["kind"]
        if kind == "int":
            params.append(dict(kind="i32", value=arg["value"], meaning=arg.get("meaning", name)))
        elif kind == "float":
            params.append(dict(kind="f32", value=arg["value"], meaning=arg.get("meaning", name)))
        elif kind == "ptr":
            params.append(dict(kind="pointer", buffer=arg["buffer"], meaning=name))
        elif kind == "desc":
            meta, buffer = next(described), spec["buffers"][arg["buffer"]]
            # A matrix may be described as of another shape.
            shape = arg.get("shape", buffer["shape"])
            strides = [1]
            for size in reversed(shape[1:]):
                strides.insert(0, strides[0] * size)
            element = meta["elem_size"]
            dims = list(shape)
            if meta["fp4_padded"]:
                dims[-1] *= 2
            params.append(dict(kind="tensor_map", tensor_map=len(maps), meaning=f"CUtensorMap of {arg['buffer']}, by value"))
            params += [dict(kind="i32", value=n, meaning=f"{name}.shape[{i}]") for i, n in enumerate(shape)]
            params += [dict(kind="i64", value=n, meaning=f"{name}.strides[{i}], in elements") for i, n in enumerate(strides)]
            maps.append(
                dict(name=name, buffer=arg["buffer"], cu_data_type=CU_TYPES[meta["elem_type"]], global_dims=dims[::-1],
                     global_strides_bytes=[n * element for n in strides[:-1]][::-1], box_dims=list(meta["block_size"])[::-1],
                     element_strides=[1] * len(shape), swizzle=SWIZZLES[meta["swizzle"]]))
    scratch = metadata.global_scratch_size
    params.append(dict(kind="pointer", buffer="scratch", meaning="Triton global scratch") if scratch else
                  dict(kind="null_pointer", meaning="Triton global scratch: null when global_scratch_size is 0"))
    # Triton 3.4 has no such parameter.
    if hasattr(metadata, "profile_scratch_size"):
        assert metadata.profile_scratch_size == 0
        params.append(dict(kind="null_pointer", meaning="Triton profile scratch: null when profile_scratch_size is 0"))
    return params, maps


def compile_one(name, kernel, spec):
    types, constants, attributes = signature(spec)
    source = GluonASTSource if kernel.is_gluon() else ASTSource
    options = dict(num_warps=spec.get("num_warps", 4), num_ctas=spec.get("num_ctas", 1), num_stages=spec.get("num_stages", 3))
    compiled = triton.compile(source(kernel, types, constants, attributes), target=GPUTarget("cuda", 100, 32), options=options)
    metadata = compiled.metadata
    text = compiled.asm["ptx"]
    ctas = metadata.num_ctas
    params, maps = parameters(spec, metadata)
    buffers = {key: dict(dtype=b.get("format") or FORMATS[b["dtype"]], shape=b["shape"], role=b["role"]) for key, b in spec["buffers"].items()}
    for key, buffer in spec["buffers"].items():
        buffers[key] |= {more: buffer[more] for more in ("values", "zero") if more in buffer}
    grid = list(spec["grid"])
    grid[0] *= ctas
    if metadata.global_scratch_size:
        programs = grid[0] * grid[1] * grid[2]
        buffers["scratch"] = dict(dtype="u8", shape=[programs, metadata.global_scratch_size], role="scratch")
    scale_block = dict(scale_block=spec["scale_block"]) if "scale_block" in spec else {}
    launch = dict(
        name=name, summary=spec["summary"], compiler=f"Triton {triton.__version__} ({'Gluon' if kernel.is_gluon() else 'Triton'})",
        target=next(line.split()[1] for line in text.splitlines() if line.startswith(".target")), computes=spec.get("computes", GEMM),
        **{key: spec[key] for key in ("M", "N", "K")}, **scale_block, entry=metadata.name, grid=grid, cluster=[ctas, 1, 1],
        block=[32 * metadata.num_warps, 1, 1], dynamic_shared_bytes=metadata.shared, params=params, tensor_maps=maps, buffers=buffers,
        compile_options=options)
    (HERE / f"{name}.ptx").write_text(text)
    (HERE / f"{name}.json").write_text(json.dumps(launch, indent=1) + "\n")
    print(f"{name}: {len(text.splitlines())} lines, {metadata.shared} bytes, {metadata.tmem_size} columns, {metadata.num_warps} warps")


if __name__ == "__main__":
    known = {name: rest for name, *rest in specs()}
    for name in sys.argv[1:]:
        if name not in known:
            sys.exit(f"`{name}` is no kernel of this folder for Triton {triton.__version__}. There are: {', '.join(sorted(known))}.")
        compile_one(name, *known[name])
