"""Control: one launch for a list of tensors, which the kernel finds by their addresses in a table of integers."""
# mypy: ignore-errors

import torch
import triton
import triton.language as tl
from hypothesis import strategies as st

import kcheck
from kcheck import strategies as ks


@triton.jit
def scale_kernel(out, addresses, sizes, offsets, TILE: tl.constexpr):
    which, lane = tl.program_id(0), tl.arange(0, TILE)
    source = tl.load(addresses + which).to(tl.pointer_type(tl.float32))
    mask = lane < tl.load(sizes + which)
    tl.store(out + tl.load(offsets + which) + lane, tl.load(source + lane, mask=mask) * 2, mask=mask)


def oracle(xs):
    return torch.cat(xs) * 2


@st.composite
def cases(draw):
    sizes = draw(st.lists(st.integers(1, 32), min_size=1, max_size=5))
    return kcheck.Case(xs=[draw(ks.tensors((size,), kinds=ks.CONTIGUOUS_LAST)) for size in sizes])


@kcheck.target(cases=cases(), oracle=oracle, kernels=[scale_kernel])
def pointer_table(xs):
    sizes = torch.tensor([x.shape[0] for x in xs])
    table = torch.stack([torch.tensor([x.data_ptr() for x in xs]), sizes, sizes.cumsum(0) - sizes]).to(xs[0].device)
    out = torch.empty(int(sizes.sum()), device=xs[0].device)
    scale_kernel[(len(xs),)](out, *table, TILE=32)
    return out
