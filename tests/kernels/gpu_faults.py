"""Faults of a kernel on a device, chosen by the case. Each but `fine` must be told apart, in a fresh worker."""
# mypy: ignore-errors

import os

import torch
import triton
import triton.language as tl
from hypothesis import strategies as st

import kcheck
from kcheck import strategies as ks


@triton.jit(debug=True)
def faulty_kernel(out_ptr, x_ptr, far, MODE: tl.constexpr):
    lane = tl.arange(0, 16)
    value = tl.load(x_ptr + lane)
    if MODE == "read":
        value += tl.load(x_ptr + far + lane)
    if MODE == "write":
        tl.store(out_ptr + far + lane, value)
    if MODE == "misaligned":
        pointer = (x_ptr.to(tl.uint64) + 1).to(tl.pointer_type(tl.float32))
        value += tl.load(pointer)
    if MODE == "assert":
        tl.device_assert(value < -1e9, "value is not small")
    if MODE == "compile":
        tl.static_assert(False, "this mode does not compile")
    if MODE == "hang":
        turns = 0
        while tl.atomic_add(out_ptr, 0.0) < 1e30:
            turns += 1
        value += turns
    tl.store(out_ptr + lane, value)


MODES = ("fine", "read", "write", "misaligned", "assert", "compile", "hang", "memory", "killed")


@st.composite
def cases(draw):
    mode = draw(ks.options("mode", MODES))
    return kcheck.Case(out=draw(ks.outputs((16,), "float32")), x=draw(ks.tensors((16,), "float32")), mode=mode)


def oracle(out, x, mode):
    return x


@kcheck.target(cases=cases(), oracle=oracle, kernels=[faulty_kernel], outputs=["out"])
def faulty(out, x, mode):
    if mode == "memory":
        torch.empty(1 << 50, dtype=torch.uint8, device=x.device)
    if mode == "killed":
        os.kill(os.getpid(), 9)
    faulty_kernel[(1,)](out, x, 1 << 40, MODE=mode)
