"""Control: packed sequences are spread into rows, and the padding behind each is left as it was on purpose."""
# mypy: ignore-errors

import itertools

import triton
import triton.language as tl
from hypothesis import strategies as st

import kcheck
from kcheck import strategies as ks
from kcheck.fill import Fill


@triton.jit
def unpack_kernel(out, x, starts, out_row, out_column, x_stride, TILE: tl.constexpr):
    row, lane = tl.program_id(0), tl.arange(0, TILE)
    start, end = tl.load(starts + row), tl.load(starts + row + 1)
    for first in range(0, end - start, TILE):
        column = first + lane
        value = tl.load(x + (start + column) * x_stride, mask=column < end - start)
        tl.store(out + row * out_row + column * out_column, value, mask=column < end - start)


def oracle(out, x, starts):
    for row, (start, end) in enumerate(itertools.pairwise(starts.tolist())):
        out[row, : end - start] = x[start:end]
    return out


@st.composite
def cases(draw):
    lengths = draw(st.lists(st.integers(0, 20), min_size=1, max_size=6))
    starts = [0, *itertools.accumulate(lengths)]
    return kcheck.Case(
        out=draw(ks.outputs((len(lengths), max(lengths)))),
        x=draw(ks.tensors((starts[-1],))),
        starts=draw(ks.tensors((len(starts),), "int32", fill=Fill.of(starts), kinds=ks.DENSE)),
    )


@kcheck.target(cases=cases(), oracle=oracle, kernels=[unpack_kernel], outputs=["out"], unwritten_ok=["out"])
def unpack(out, x, starts):
    unpack_kernel[out.shape[:1]](out, x, starts, *out.stride(), x.stride(0), TILE=8)
