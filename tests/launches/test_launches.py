"""What one call may launch: several kernels, helpers, methods, heuristics, every configuration of an autotuned one."""
# mypy: disable-error-code="no-untyped-call,no-untyped-def,untyped-decorator,misc"

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import triton
import triton.language as tl
from hypothesis import strategies as st

import kcheck
from kcheck.case import Case, Tensor
from kcheck.events import CaseVerdict, Discovery
from kcheck.findings import Kind
from kcheck.layout import Dim, Layout
from kcheck.protocol import Judgement
from kcheck.target import kernel_name
from kcheck.worker.backends import open_backend
from kcheck.worker.judge import Judge

NARROWED = Layout((Dim(5, after=3),))


@triton.jit
def loaded(x, i, n, MASKED: tl.constexpr):
    if MASKED:
        return tl.load(x + i, mask=i < n, other=0.0)
    return tl.load(x + i)


@triton.jit
def twice(x, i, n, MASKED: tl.constexpr):
    return loaded(x, i, n, MASKED) * 2


@triton.jit
def helped_kernel(out, x, n, MASKED: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, twice(x, i, n, MASKED), mask=i < n)


@triton.autotune([triton.Config({"BLOCK": 1}), triton.Config({"BLOCK": 4}, num_warps=2)], key=["n"])
@triton.jit
def tuned_kernel(out, x, n, SHARP: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    if SHARP:
        tl.store(out + i, tl.load(x + i, mask=i < n) * 2, mask=i < n)
    else:
        tl.store(out + i, tl.load(x + i) * 2, mask=i < n)


@triton.heuristics({"BLOCK": lambda given: triton.next_power_of_2(given["n"])})
@triton.jit
def heuristic_kernel(out, x, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, mask=i < n) * 2, mask=i < n)


class Doubler:
    """Its kernel is a method."""

    @staticmethod
    @triton.jit
    def kernel(out, x, n, BLOCK: tl.constexpr):
        i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        tl.store(out + i, tl.load(x + i, mask=i < n) * 2, mask=i < n)

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        out = torch.empty_like(x)
        self.kernel[(triton.cdiv(x.numel(), 4),)](out, x, x.numel(), BLOCK=4)
        return out


def judge(function: Callable[..., Any], backend: str = "interpret") -> Judgement:
    target = kcheck.target(cases=st.nothing(), oracle=lambda x: x * 2)(lambda x: function(x))
    return Judge(open_backend(backend)).judge(target, Case(x=Tensor("float32", NARROWED)))


def helped(masked: bool) -> Callable[[torch.Tensor], torch.Tensor]:
    def wrapper(x: torch.Tensor) -> torch.Tensor:
        out = torch.empty_like(x)
        helped_kernel[(2,)](out, x, x.numel(), MASKED=masked, BLOCK=4)
        return out

    return wrapper


def test_a_fault_in_a_helper_comes_with_the_chain_of_calls() -> None:
    assert judge(helped(True)).verdict is CaseVerdict.MATCH
    (finding,) = judge(helped(False)).findings
    assert (finding.kind, finding.kernel) == (Kind.OUT_OF_VIEW_READ, "helped_kernel")
    assert [frame.function for frame in finding.chain] == ["helped_kernel", "twice", "loaded"]
    assert finding.source == "return tl.load(x + i)"


def tuned(sharp: bool) -> Callable[[torch.Tensor], torch.Tensor]:
    def wrapper(x: torch.Tensor) -> torch.Tensor:
        out = torch.empty_like(x)
        tuned_kernel[lambda meta: (triton.cdiv(x.numel(), meta["BLOCK"]),)](out, x, x.numel(), SHARP=sharp)
        return out

    return wrapper


def test_every_configuration_of_an_autotuned_kernel_can_run() -> None:
    assert judge(tuned(False)).verdict is CaseVerdict.MATCH  # the first one has no lane too many
    (finding,) = judge(tuned(False), "interpret,all-configs").findings
    assert (finding.kind, finding.argument) == (Kind.OUT_OF_VIEW_READ, "x")
    assert any("tuned_kernel ran with the configuration BLOCK: 4, num_warps: 2" in note for note in finding.notes)
    assert judge(tuned(True), "interpret,all-configs").verdict is CaseVerdict.MATCH


def test_the_replay_command_asks_for_every_configuration_again() -> None:
    (finding,) = judge(tuned(False), "interpret,all-configs").findings
    discovery = Discovery("t", "builtin:t", finding, "f" * 12, Case(), options=("--all-configs",))
    assert discovery.replay == f"kcheck replay {'f' * 12} --all-configs"


def test_heuristics_and_methods_and_several_launches_run() -> None:
    def everything(x: torch.Tensor) -> torch.Tensor:
        out = torch.empty_like(x)
        heuristic_kernel[(1,)](out, x, x.numel())
        again = Doubler()(x)
        assert torch.equal(out, again)
        return again

    judgement = judge(everything)
    assert judgement.verdict is CaseVerdict.MATCH
    assert judgement.launches == {"heuristic_kernel": 1, "kernel": 1}
    assert kernel_name(Doubler.kernel) == "kernel"
    assert kernel_name(tuned_kernel) == "tuned_kernel"
