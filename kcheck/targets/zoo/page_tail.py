"""Sum of the values of a paged cache, weighted by the probabilities of an attention.

Behind the last token of a request its last page holds anything, NaN too. The wrong one multiplies that by 0, and
0 times NaN is NaN.
"""
# mypy: ignore-errors

import torch
import triton
import triton.language as tl
from hypothesis import strategies as st

import kcheck
from kcheck import strategies as ks


@triton.jit
def values_kernel(out, share, values, pages, lengths, width, B: tl.constexpr, N: tl.constexpr, MASKED: tl.constexpr):
    request, lane, token = tl.program_id(0), tl.arange(0, N), tl.arange(0, B)
    length, total = tl.load(lengths + request), tl.zeros((N,), tl.float32)
    for page in range(0, tl.cdiv(length, B)):
        inside = page * B + token < length
        weight = tl.load(share + request * width * B + page * B + token, mask=inside, other=0.0)
        slot = tl.load(pages + request * width + page) * B + token
        if MASKED:
            value = tl.load(values + slot[:, None] * N + lane, mask=inside[:, None], other=0.0)
        else:
            value = tl.load(values + slot[:, None] * N + lane)
        total += tl.sum(weight[:, None] * value, axis=0)
    tl.store(out + request * N + lane, total)


def launch(share, values, pages, lengths, masked):
    (requests, width), (_, block, size) = pages.shape, values.shape
    out = torch.empty(requests, size, device=share.device)
    values_kernel[(requests,)](out, share, values, pages, lengths, width, B=block, N=size, MASKED=masked)
    return out


def slots(values, pages, lengths):
    places = torch.arange(values.shape[1], device=values.device) + pages.long()[:, :, None] * values.shape[1]
    return [row.flatten()[:length] for row, length in zip(places, lengths.tolist(), strict=True)]


def oracle(share, values, pages, lengths):
    used = slots(values, pages, lengths)
    return torch.stack([part[: len(own)] @ values.flatten(0, 1)[own] for part, own in zip(share, used, strict=True)])


def unused(share, values, pages, lengths):
    dead = torch.ones(values.shape, dtype=torch.bool, device=values.device)
    dead.flatten(0, 1)[torch.cat(slots(values, pages, lengths))] = False
    return dead


@st.composite
def cases(draw):
    kv = draw(ks.paged_kv(max_requests=4, kinds=["contiguous"], unused_entries=("decoy", "0")))
    share = draw(ks.tensors((kv.num_requests, kv.max_blocks_per_request * kv.block_size), kinds=["contiguous"]))
    values = draw(ks.tensors((kv.num_blocks, kv.block_size, 16), kinds=["contiguous"]))
    return kcheck.Case(share=share, values=values, pages=kv.block_table, lengths=kv.seq_lens)


declare = kcheck.target(cases=cases(), oracle=oracle, kernels=[values_kernel], dead={"values": unused})


@declare
def page_tail(share, values, pages, lengths):
    return launch(share, values, pages, lengths, True)


@declare
def page_tail_wrong(share, values, pages, lengths):
    return launch(share, values, pages, lengths, False)
