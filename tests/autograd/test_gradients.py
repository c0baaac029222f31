"""Gradients are outputs: wrong ones are found, in any layout of the incoming gradient."""
# mypy: disable-error-code="no-untyped-call,no-untyped-def,untyped-decorator,misc"

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import triton
import triton.language as tl
from hypothesis import strategies as st

import kcheck
from kcheck.case import Case, Tensor
from kcheck.errors import TargetLoadError
from kcheck.events import CaseVerdict
from kcheck.fill import Fill
from kcheck.findings import Kind
from kcheck.layout import Dim, Layout
from kcheck.protocol import Judgement
from kcheck.target import Target
from kcheck.worker.backends import open_backend
from kcheck.worker.judge import Judge

DENSE = Layout((Dim(3), Dim(5)))
EXPANDED = Layout((Dim(3, expanded=True), Dim(5, expanded=True)))
NARROWED = Layout((Dim(3), Dim(5, after=2)))


@triton.jit
def square_kernel(out, x, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + i, mask=i < n)
    tl.store(out + i, value * value, mask=i < n)


@triton.jit
def square_backward_kernel(dx, x, grad, n, factor, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + i, mask=i < n) * tl.load(grad + i, mask=i < n)
    tl.store(dx + i, factor * value, mask=i < n)


class Square(torch.autograd.Function):
    """Squares. `how` says what the backward pass does wrong."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, how: str) -> torch.Tensor:
        x = x.contiguous()
        ctx.save_for_backward(x)
        ctx.how = how
        out = torch.empty_like(x)
        square_kernel[(triton.cdiv(x.numel(), 8),)](out, x, x.numel(), BLOCK=8)
        return out

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> tuple[torch.Tensor | None, None]:
        (x,) = ctx.saved_tensors
        assert grad.is_cuda
        assert torch.cuda.get_device_capability(x.device)[0] >= 8
        if ctx.how == "none":
            return None, None
        if ctx.how == "declines":
            assert grad.is_contiguous(), "grad must be contiguous"
        if ctx.how != "any layout":
            grad = grad.contiguous()
        out = grad if ctx.how == "in place" else torch.empty_like(x)
        factor = 3.0 if ctx.how == "wrong" else 2.0
        count = x.numel() - 1 if ctx.how == "unwritten" else x.numel()
        square_backward_kernel[(triton.cdiv(x.numel(), 8),)](out, x, grad, count, factor, BLOCK=8)
        return out, None


def squaring(how: str = "right", **options: Any) -> Target:
    target = kcheck.target(cases=st.nothing(), oracle=lambda x: x * x, grad=["x"], **options)
    return target(lambda x: Square.apply(x, how))


def judge(target: Target, grad: Layout = DENSE, x: Layout = NARROWED) -> Judgement:
    case = Case(x=Tensor("float32", x, Fill(seed=1)), grad_output=Tensor("float32", grad, Fill(seed=2)))
    return Judge(open_backend("interpret")).judge(target, case)


@pytest.mark.parametrize("grad", [DENSE, EXPANDED, NARROWED], ids=["dense", "expanded", "narrowed"])
def test_right_gradients_match_in_any_layout(grad: Layout) -> None:
    judgement = judge(squaring(), grad)
    assert judgement.verdict is CaseVerdict.MATCH
    assert judgement.launches == {"square_kernel": 1, "square_backward_kernel": 1}


def test_a_wrong_gradient_is_found() -> None:
    (finding,) = judge(squaring("wrong")).findings
    assert (finding.kind, finding.argument, finding.count) == (Kind.VALUE_MISMATCH, "x.grad", 15)
    assert finding.kernel == ""  # two kernels launched: neither is to blame for certain


def test_a_backward_pass_that_takes_the_gradient_for_dense_is_found_where_it_is_not() -> None:
    assert judge(squaring("any layout"), DENSE).verdict is CaseVerdict.MATCH
    for grad, kind in ((NARROWED, Kind.OUT_OF_VIEW_READ), (EXPANDED, Kind.OUT_OF_BOUNDS_READ)):
        (finding,) = judge(squaring("any layout"), grad).findings
        assert (finding.kind, finding.argument, finding.parameter) == (kind, "grad_output", "grad")


def test_a_gradient_that_is_none_counts_as_zero() -> None:
    assert [finding.argument for finding in judge(squaring("none")).findings] == ["x.grad"]


def test_an_element_of_a_gradient_that_nobody_writes_is_found() -> None:
    assert [f.kind for f in judge(squaring("unwritten")).findings] == [Kind.UNWRITTEN_OUTPUT]


def test_a_backward_pass_may_decline_a_layout() -> None:
    judgement = judge(squaring("declines"), NARROWED)
    assert judgement.verdict is CaseVerdict.REJECTED
    assert "grad must be contiguous" in judgement.reason
    assert judge(squaring("declines"), DENSE).verdict is CaseVerdict.MATCH


def test_the_incoming_gradient_is_an_input_unless_it_is_consumed() -> None:
    assert [f.argument for f in judge(squaring("in place")).findings] == ["grad_output"]
    assert judge(squaring("in place", consumed=["grad_output"])).verdict is CaseVerdict.MATCH


def test_several_results_take_a_gradient_each() -> None:
    target = kcheck.target(cases=st.nothing(), oracle=lambda x: (x * x, x * 3, x.argmax()), grad=["x"])
    both = target(lambda x: (Square.apply(x, "right"), x * 3, x.argmax()))
    x, gradients = Tensor("float32", NARROWED), [Tensor("float32", EXPANDED), Tensor("float32", NARROWED)]
    judge = Judge(open_backend("interpret"))
    assert judge.judge(both, Case(x=x, grad_output=gradients)).verdict is CaseVerdict.MATCH
    judgement = judge.judge(both, Case(x=x, grad_output=gradients[0]))
    assert judgement.verdict is CaseVerdict.COULD_NOT_CHECK
    assert "return[0] (3, 5), return[1] (3, 5)" in judgement.reason


def test_a_wrapper_that_runs_its_own_backward_pass_sees_the_same_device() -> None:
    def gradient(x: torch.Tensor) -> torch.Tensor:
        x = x.detach().clone().requires_grad_()
        Square.apply(x, "right").sum().backward()
        assert x.grad is not None
        return x.grad

    target = kcheck.target(cases=st.nothing(), oracle=lambda x: 2 * x)(gradient)
    case = Case(x=Tensor("float32", NARROWED))
    assert Judge(open_backend("interpret")).judge(target, case).verdict is CaseVerdict.MATCH


@pytest.mark.parametrize(
    ("function", "says"),
    [(lambda x: x.detach(), "requires a gradient"), (lambda x: x.sum(), "has the shapes")],
)
def test_gradients_that_do_not_fit_are_an_error_of_the_target(function: Callable[..., Any], says: str) -> None:
    judgement = judge(kcheck.target(cases=st.nothing(), oracle=function, grad=["x"])(function))
    assert judgement.verdict is CaseVerdict.COULD_NOT_CHECK
    assert says in judgement.reason


def test_a_case_without_an_incoming_gradient_is_an_error_of_the_target() -> None:
    judgement = Judge(open_backend("interpret")).judge(squaring(), Case(x=Tensor("float32", DENSE)))
    assert judgement.verdict is CaseVerdict.COULD_NOT_CHECK
    assert "the case has no grad_output" in judgement.reason


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"grad": ["y"]}, "'y' is not a parameter"),
        ({"grad": "x"}, r"write grad=\['x'\]"),
        ({"grad": ["x"], "outputs": ["x"]}, "it must be an input"),
        ({"consumed": ["grad_output"]}, "'grad_output' is not a parameter"),
    ],
)
def test_contradictions_are_told_when_the_target_is_declared(options: dict[str, Any], says: str) -> None:
    with pytest.raises(TargetLoadError, match=says):
        kcheck.target(cases=st.nothing(), **options)(lambda x: x)


def test_a_parameter_named_like_the_incoming_gradient_is_refused() -> None:
    with pytest.raises(TargetLoadError, match="rename the parameter"):
        kcheck.target(cases=st.nothing(), grad=["x"])(lambda x, grad_output: x)
