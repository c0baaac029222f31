"""The largest logit of each row. The wrong one steps from row to row by the vocabulary size: rows of a padded or
narrowed matrix begin elsewhere.
"""
# mypy: ignore-errors

import triton
import triton.language as tl
from hypothesis import strategies as st

import kcheck
from kcheck import strategies as ks


@triton.jit
def row_max_kernel(best_ptr, logits_ptr, vocabulary, best_stride, row_stride, entry_stride, TILE: tl.constexpr):
    row = tl.program_id(0)
    best = tl.full((TILE,), float("-inf"), tl.float32)
    for start in range(0, vocabulary, TILE):
        entry = start + tl.arange(0, TILE)
        logits = tl.load(
            logits_ptr + row * row_stride + entry * entry_stride, mask=entry < vocabulary, other=float("-inf")
        )
        best = tl.maximum(best, logits)
    tl.store(best_ptr + row * best_stride, tl.max(best, axis=0))


def launch(best, logits, row_stride):
    rows, vocabulary = logits.shape
    row_max_kernel[(rows,)](best, logits, vocabulary, best.stride(0), row_stride, logits.stride(1), TILE=32)


def oracle(best, logits):
    return logits.amax(dim=1)


@st.composite
def cases(draw):
    rows = draw(ks.dims("rows", max_value=8))
    vocabulary = draw(ks.dims("vocabulary", max_value=100, boundaries=[31, 32, 33]))
    return kcheck.Case(
        best=draw(ks.outputs((rows,), "float32")), logits=draw(ks.tensors((rows, vocabulary), "float32"))
    )


target = kcheck.target(cases=cases(), oracle=oracle, kernels=[row_max_kernel], outputs=["best"])


@target
def wrong(best, logits):
    launch(best, logits, row_stride=logits.shape[1])


@target
def fixed(best, logits):
    launch(best, logits, row_stride=logits.stride(0))
