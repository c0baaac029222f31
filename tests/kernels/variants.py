"""Variants of one target: equal, equal up to rounding, unequal, with other arguments, and one that raises."""
# mypy: ignore-errors

import triton
import triton.language as tl
from hypothesis import strategies as st

import kcheck
from kcheck import strategies as ks


@triton.jit
def scale_kernel(out_ptr, x_ptr, count, factor, BLOCK: tl.constexpr):
    lane = tl.arange(0, BLOCK)
    value = tl.load(x_ptr + lane, mask=lane < count)
    tl.store(out_ptr + lane, value * factor, mask=lane < count)


def launch(out, x, factor):
    scale_kernel[(1,)](out, x, x.numel(), factor, BLOCK=triton.next_power_of_2(x.numel()))


@st.composite
def cases(draw):
    count = draw(ks.dims("count", min_value=1, max_value=16))
    kinds = ks.ANY.without("stepped", "interleaved", "expanded", "padded", "degenerate")
    x = draw(ks.tensors((count,), "float32", kinds=kinds))
    return kcheck.Case(out=draw(ks.outputs((count,), "float32", kinds=kinds.without("expanded"))), x=x)


declare = kcheck.target(cases=cases(), oracle=lambda out, x: x * 3, outputs=["out"])


@declare
def once(out, x):
    launch(out, x, 3.0)


@declare
def twice(out, x):
    launch(out, x, 1.0)
    launch(out, x, 3.0)


@declare
def rounded(out, x):
    launch(out, x, 3.0 + 2.0**-20)


@declare
def wrong(out, x):
    launch(out, x, 3.5 if x.numel() > 2 else 3.0)


@declare
def raising(out, x):
    launch(out, x, 3.0)
    if x.numel() > 2:
        raise KeyError("more than two")


@declare
def crashing(out, x):
    launch(out, x, 3.0)
    import ctypes

    ctypes.string_at(0)


@kcheck.target(cases=cases(), oracle=lambda out, y: y, outputs=["out"])
def other_arguments(out, y):
    launch(out, y, 1.0)
