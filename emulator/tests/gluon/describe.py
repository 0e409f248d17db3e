"""What several sources say of their kernels in the same words: buffers and arguments, as `compile.py` takes them."""


def buffer(dtype, shape, role="input"):
    return dict(dtype=dtype, shape=shape, role=role)


def matrices(m, n, k, dtype="fp16", d_dtype="fp16"):
    """A and B by rows of K, and D."""
    return dict(A=buffer(dtype, [m, k]), B=buffer(dtype, [n, k]), D=buffer(d_dtype, [m, n], "output"))


def desc(name, of, block):
    return dict(name=name, kind="desc", buffer=of, block=block)


def pointers(names):
    return [dict(name=f"{name.lower()}_ptr", kind="ptr", buffer=name) for name in names]


def integer(name, value):
    """A multiple of 16, and the compiler knows it."""
    return dict(name=name, kind="int", value=value, div16=True)


def constants(**values):
    return [dict(name=name, kind="constexpr", value=value) for name, value in values.items()]
