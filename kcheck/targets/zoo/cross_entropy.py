"""Cross-entropy of each row of logits.

The wrong one takes it that the elements of a row are neighbours: logits may be the transpose of what a matmul gave.
"""
# mypy: ignore-errors

import torch
import triton
import triton.language as tl
from hypothesis import strategies as st

import kcheck
from kcheck import strategies as ks


@triton.jit
def loss_kernel(loss, logits, labels, classes, row_stride, class_stride, label_stride, BLOCK: tl.constexpr):
    row, index = tl.program_id(0), tl.arange(0, BLOCK)
    label = tl.load(labels + row * label_stride)
    value = tl.load(logits + row * row_stride + index * class_stride, mask=index < classes, other=float("-inf"))
    most = tl.max(value, axis=0)
    chosen = tl.sum(tl.where(index == label, value, 0.0), axis=0)
    tl.store(loss + row, tl.log(tl.sum(tl.exp(value - most), axis=0)) + most - chosen)


def launch(logits, labels, class_stride):
    rows, classes = logits.shape
    loss = torch.empty(rows, device=logits.device)
    strides = logits.stride(0), class_stride, labels.stride(0)
    loss_kernel[(rows,)](loss, logits, labels, classes, *strides, BLOCK=64)
    return loss


def oracle(logits, labels):
    return torch.nn.functional.cross_entropy(logits, labels.long(), reduction="none")


@st.composite
def cases(draw):
    rows, classes = draw(ks.dims("rows", max_value=16)), draw(ks.dims("classes", min_value=2, max_value=64))
    logits = draw(ks.tensors((rows, classes)))
    return kcheck.Case(logits=logits, labels=draw(ks.indices((rows,), bound=classes)))


declare = kcheck.target(cases=cases(), oracle=oracle, kernels=[loss_kernel])


@declare
def cross_entropy(logits, labels):
    return launch(logits, labels, logits.stride(1))


@declare
def cross_entropy_wrong(logits, labels):
    return launch(logits, labels, 1)
