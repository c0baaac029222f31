"""A sound kernel with an oracle that raises."""
# mypy: ignore-errors

import triton
import triton.language as tl
from hypothesis import strategies as st

import kcheck
from kcheck import strategies as ks


@triton.jit
def double_kernel(out_ptr, x_ptr, count, out_stride, x_stride, TILE: tl.constexpr):
    lanes = tl.program_id(0) * TILE + tl.arange(0, TILE)
    values = tl.load(x_ptr + lanes * x_stride, mask=lanes < count, other=0.0)
    tl.store(out_ptr + lanes * out_stride, 2 * values, mask=lanes < count)


def launch(out, x):
    double_kernel[(triton.cdiv(x.shape[0], 16),)](out, x, x.shape[0], out.stride(0), x.stride(0), TILE=16)


@st.composite
def cases(draw):
    count = draw(ks.dims("count", max_value=40))
    return kcheck.Case(out=draw(ks.outputs((count,), "float32")), x=draw(ks.tensors((count,), "float32")))


def oracle(out, x):
    return 2 * x


def raising_oracle(out, x):
    return {"float16": 2 * x}[str(x.dtype)]


@kcheck.target(cases=cases(), oracle=raising_oracle, kernels=[double_kernel], outputs=["out"])
def wrong(out, x):
    launch(out, x)


@kcheck.target(cases=cases(), oracle=oracle, kernels=[double_kernel], outputs=["out"])
def fixed(out, x):
    launch(out, x)
