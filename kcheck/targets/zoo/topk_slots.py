"""Slots in the cache of the tokens that a sparse attention has chosen, `topk`, (tokens, k).

Several tokens belong to one request. The wrong one takes the row of the block table by the token.
"""
# mypy: ignore-errors

import torch
import triton
import triton.language as tl
from hypothesis import strategies as st

import kcheck
from kcheck import strategies as ks


@triton.jit
def slots_kernel(
    out, topk, requests, table, k, row, column, BY_TOKEN: tl.constexpr, B: tl.constexpr, TILE: tl.constexpr
):
    token, lane = tl.program_id(0), tl.arange(0, TILE)
    request = token if BY_TOKEN else tl.load(requests + token)
    index = tl.load(topk + token * k + lane, mask=lane < k, other=0)
    page = tl.load(table + request * row + index // B * column, mask=lane < k, other=0)
    tl.store(out + token * k + lane, page * B + index % B, mask=lane < k)


def launch(topk, requests, table, page_size, by_token):
    tokens, k = topk.shape
    out = torch.empty(tokens, k, dtype=torch.int32, device=topk.device)
    sizes = {"B": page_size, "TILE": 16}
    slots_kernel[(tokens,)](out, topk, requests, table, k, *table.stride(), BY_TOKEN=by_token, **sizes)
    return out


def oracle(topk, requests, table, page_size):
    pages = table[requests.long()].gather(1, topk.long() // page_size)
    return (pages * page_size + topk % page_size).int()


@st.composite
def cases(draw):
    requests, width = draw(ks.dims("requests", max_value=8)), draw(ks.dims("width", max_value=4))
    tokens, k = draw(ks.dims("tokens", max_value=16)), draw(ks.dims("k", max_value=16))
    page_size = draw(ks.options("page_size", [4, 16]))
    return kcheck.Case(
        topk=draw(ks.indices((tokens, k), bound=width * page_size, kinds=["contiguous"])),
        requests=draw(ks.indices((tokens,), bound=requests, kinds=["contiguous"])),
        table=draw(ks.indices((requests, width), bound=100, dtype="int32")),
        page_size=page_size,
    )


declare = kcheck.target(cases=cases(), oracle=oracle, kernels=[slots_kernel])


@declare
def topk_slots(topk, requests, table, page_size):
    return launch(topk, requests, table, page_size, False)


@declare
def topk_slots_wrong(topk, requests, table, page_size):
    return launch(topk, requests, table, page_size, True)
