"""Sum of the last `window` tokens of each request, from a paged cache.

The wrong one begins at the page in which the window begins, and takes in the tokens of that page that lie before it. It
is right for short requests, and where a window begins with a page.
"""
# mypy: ignore-errors

import torch
import triton
import triton.language as tl
from hypothesis import strategies as st

import kcheck
from kcheck import strategies as ks


@triton.jit
def window_kernel(
    out, cache, table, lengths, window, row, column, CLIPPED: tl.constexpr, B: tl.constexpr, SIZE: tl.constexpr
):
    request, lane, slot = tl.program_id(0), tl.arange(0, SIZE), tl.arange(0, B)
    length, total = tl.load(lengths + request), tl.zeros((SIZE,), tl.float32)
    first = tl.maximum(length - window, 0)
    for index in range(first // B, tl.cdiv(length, B)):
        token = index * B + slot
        inside = (token >= first) & (token < length) if CLIPPED else token < length
        page = tl.load(table + request * row + index * column)
        value = tl.load(cache + (page * B + slot)[:, None] * SIZE + lane, mask=inside[:, None], other=0.0)
        total += tl.sum(value, axis=0)
    tl.store(out + request * SIZE + lane, total)


def launch(cache, table, lengths, window, clipped):
    out = torch.empty(lengths.shape[0], cache.shape[2], device=cache.device)
    sizes = {"B": cache.shape[1], "SIZE": cache.shape[2]}
    window_kernel[lengths.shape](out, cache, table, lengths, window, *table.stride(), CLIPPED=clipped, **sizes)
    return out


def oracle(cache, table, lengths, window):
    tokens = [cache[pages.long()].flatten(0, 1) for pages in table]
    return torch.stack([x[:n][-window:].sum(0) for x, n in zip(tokens, lengths.tolist(), strict=True)])


@st.composite
def cases(draw):
    kv = draw(ks.paged_kv(max_requests=4, unused_entries=("decoy", "0")))
    window = draw(ks.options("window", [16, 8, 5]))
    cache = draw(ks.tensors((kv.num_blocks, kv.block_size, 8), kinds=["contiguous"]))
    return kcheck.Case(cache=cache, table=kv.block_table, lengths=kv.seq_lens, window=window)


declare = kcheck.target(cases=cases(), oracle=oracle, kernels=[window_kernel])


@declare
def sliding_window(cache, table, lengths, window):
    return launch(cache, table, lengths.contiguous(), window, True)


@declare
def sliding_window_wrong(cache, table, lengths, window):
    return launch(cache, table, lengths.contiguous(), window, False)
