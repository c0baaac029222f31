"""A wrapper that decides on the host what a CUDA graph then freezes, and one that does not."""
# mypy: ignore-errors

import torch
import triton
import triton.language as tl
from hypothesis import strategies as st

import kcheck
from kcheck import strategies as ks


@triton.jit
def scale_kernel(out_ptr, x_ptr, factor, count, TILE: tl.constexpr):
    lanes = tl.program_id(0) * TILE + tl.arange(0, TILE)
    values = tl.load(x_ptr + lanes, mask=lanes < count, other=0.0)
    tl.store(out_ptr + lanes, values * factor, mask=lanes < count)


@triton.jit
def scale_by_pointer_kernel(out_ptr, x_ptr, factor_ptr, count, TILE: tl.constexpr):
    lanes = tl.program_id(0) * TILE + tl.arange(0, TILE)
    values = tl.load(x_ptr + lanes, mask=lanes < count, other=0.0)
    tl.store(out_ptr + lanes, values * tl.load(factor_ptr), mask=lanes < count)


@st.composite
def cases(draw):
    count = draw(ks.dims("count", min_value=1, max_value=64))
    return kcheck.Case(
        out=draw(ks.outputs((count,), "float32", kinds=["contiguous", "offset"])),
        x=draw(ks.tensors((count,), "float32", kinds=["contiguous", "offset"])),
        factor=draw(ks.tensors((1,), "float32", kinds=["contiguous", "offset"])),
    )


def oracle(out, x, factor):
    return x * factor


_cache = {}


@kcheck.target(cases=cases(), oracle=oracle, kernels=[scale_kernel], outputs=["out"])
def frozen(out, x, factor):
    if not torch.cuda.is_current_stream_capturing():  # what was read back before is frozen in the graph
        _cache["factor"] = float(factor.item())
    scale_kernel[(triton.cdiv(x.shape[0], 16),)](out, x, _cache["factor"], x.shape[0], TILE=16)


@kcheck.target(cases=cases(), oracle=oracle, kernels=[scale_kernel], outputs=["out"])
def synchronising(out, x, factor):
    scale_kernel[(triton.cdiv(x.shape[0], 16),)](out, x, float(factor.item()), x.shape[0], TILE=16)


@kcheck.target(cases=cases(), oracle=oracle, kernels=[scale_by_pointer_kernel], outputs=["out"])
def fixed(out, x, factor):
    scale_by_pointer_kernel[(triton.cdiv(x.shape[0], 16),)](out, x, factor, x.shape[0], TILE=16)


@kcheck.target(cases=cases(), oracle=oracle, kernels=["elementwise"], outputs=["out"])
def by_name(out, x, factor):
    torch.mul(x, factor, out=out)


@kcheck.target(cases=cases(), oracle=oracle, kernels=["flash_attention"], outputs=["out"])
def by_another_name(out, x, factor):
    torch.mul(x, factor, out=out)
