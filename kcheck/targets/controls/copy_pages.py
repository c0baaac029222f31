"""Control: pages are copied to other pages of the same cache. Nobody reads a page that is written."""
# mypy: ignore-errors

import triton
import triton.language as tl
from hypothesis import strategies as st

import kcheck
from kcheck import strategies as ks
from kcheck.fill import Fill


@triton.jit
def copy_kernel(cache, source, target, page_stride, size, TILE: tl.constexpr):
    copy, lane = tl.program_id(0), tl.arange(0, TILE)
    old, new = tl.load(source + copy).to(tl.int64), tl.load(target + copy).to(tl.int64)
    value = tl.load(cache + old * page_stride + lane, mask=lane < size)
    tl.store(cache + new * page_stride + lane, value, mask=lane < size)


def oracle(cache, source, target):
    cache[target.long()] = cache[source.long()]
    return cache


@st.composite
def cases(draw):
    pages, size = draw(ks.dims("pages", min_value=2, max_value=16)), draw(ks.dims("size", max_value=32))
    first = draw(st.integers(1, pages - 1))  # pages from here on are written
    target = draw(st.permutations(range(first, pages)))
    return kcheck.Case(
        cache=draw(ks.inouts((pages, size), kinds=ks.CONTIGUOUS_LAST)),
        source=draw(ks.indices((len(target),), bound=first, dtype="int32", kinds=ks.DENSE)),
        target=draw(ks.tensors((len(target),), "int32", fill=Fill.of(target), kinds=ks.DENSE)),
    )


@kcheck.target(cases=cases(), oracle=oracle, kernels=[copy_kernel], inout=["cache"], exact=True)
def copy_pages(cache, source, target):
    copy_kernel[source.shape](cache, source, target, cache.stride(0), cache.shape[1], TILE=32)
