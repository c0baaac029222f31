"""Dead elements: what lies in them must not influence the result."""
# mypy: disable-error-code="no-untyped-call,no-untyped-def,untyped-decorator"

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import triton
import triton.language as tl
from hypothesis import strategies as st

import kcheck
from kcheck.case import Case, Role, Tensor
from kcheck.errors import TargetLoadError
from kcheck.events import CaseVerdict
from kcheck.fill import Fill
from kcheck.findings import Kind
from kcheck.layout import Dim, Layout
from kcheck.protocol import Judgement
from kcheck.target import Target
from kcheck.worker.backends import open_backend
from kcheck.worker.judge import Judge

LENGTHS = (2, 5, 0, 3)


@triton.jit
def sum_kernel(out, x, lengths, columns, row_stride, column_stride, HOW: tl.constexpr, BLOCK: tl.constexpr):
    row, column = tl.program_id(0), tl.arange(0, BLOCK)
    live = column < tl.load(lengths + row)
    value = tl.load(x + row * row_stride + column * column_stride, mask=column < columns, other=0.0)
    if HOW == "select":
        value = tl.where(live, value, 0.0)
    if HOW == "multiply":
        value = value * live.to(tl.float32)
    tl.store(out + row, tl.sum(value, 0))


def tail(out: torch.Tensor, x: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
    """Columns from a row's length on."""
    return torch.arange(x.shape[1], device=x.device) >= lengths[:, None]


def oracle(out: torch.Tensor, x: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
    return torch.where(tail(out, x, lengths), 0, x).sum(1)


def summing(how: str, oracle: Callable[..., Any] = oracle, mask: Callable[..., Any] = tail) -> Target:
    def run(out: torch.Tensor, x: torch.Tensor, lengths: torch.Tensor) -> None:
        sum_kernel[(x.shape[0],)](out, x, lengths, x.shape[1], *x.stride(), HOW=how, BLOCK=8)

    return kcheck.target(cases=st.nothing(), oracle=oracle, outputs=["out"], dead={"x": mask}, name=how)(run)


def judge(target: Target, x: Layout | None = None) -> Judgement:
    case = Case(
        out=Tensor("float32", Layout((Dim(4),)), role=Role.OUTPUT),
        x=Tensor("float32", x or Layout((Dim(4), Dim(5, after=2))), Fill(seed=3)),
        lengths=Tensor("int32", Layout((Dim(4),)), Fill.of(LENGTHS), Role.INDEX),
    )
    return Judge(open_backend("interpret")).judge(target, case)


def test_a_kernel_that_selects_is_right() -> None:
    assert judge(summing("select")).verdict is CaseVerdict.MATCH


def test_a_kernel_that_multiplies_by_zero_is_found_by_nan() -> None:
    (finding,) = judge(summing("multiply")).findings
    assert (finding.kind, finding.argument) == (Kind.DEAD_READ, "x")
    assert "NaN" in finding.message
    # Of these lengths only 5 leaves nothing dead.
    assert finding.count == 3


def test_a_kernel_that_adds_them_is_found_by_values_that_look_valid() -> None:
    def adds_all(out: torch.Tensor, x: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        return oracle(out, x, lengths)

    (finding,) = judge(summing("add", adds_all)).findings
    assert finding.kind is Kind.DEAD_READ
    assert "other values" in finding.message


def test_a_mask_that_the_oracle_contradicts_is_an_error_of_the_target() -> None:
    def wants_all(out: torch.Tensor, x: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        return x.sum(1)

    judgement = judge(summing("add", wants_all))
    assert judgement.verdict is CaseVerdict.COULD_NOT_CHECK
    assert "the oracle's out depends on elements that dead says do not matter" in judgement.reason


def test_an_element_that_stands_for_several_is_dead_if_all_are() -> None:
    expanded = Layout((Dim(4, expanded=True), Dim(5)))
    assert judge(summing("select"), expanded).verdict is CaseVerdict.MATCH
    assert judge(summing("multiply"), expanded).verdict is CaseVerdict.MATCH  # row 1 uses all five


@pytest.mark.parametrize(
    ("mask", "says"),
    [
        (lambda out, x, lengths: lengths > 3, "expected torch.bool of the shape of x"),
        (lambda out, x, lengths: x, "torch.float32"),
        (lambda out, x, lengths: None, "no tensor"),
        (lambda out, x, lengths: x[9], "raised IndexError"),
    ],
)
def test_a_mask_that_is_none_is_an_error_of_the_target(mask: Callable[..., Any], says: str) -> None:
    judgement = judge(summing("select", mask=mask))
    assert judgement.verdict is CaseVerdict.COULD_NOT_CHECK
    assert says in judgement.reason


def test_a_wrapper_that_refuses_nan_is_no_finding() -> None:
    target = kcheck.target(cases=st.nothing(), oracle=oracle, outputs=["out"], dead={"x": tail})

    @target
    def wary(out: torch.Tensor, x: torch.Tensor, lengths: torch.Tensor) -> None:
        assert not x.isnan().any()
        out.copy_(oracle(out, x, lengths))

    assert judge(wary).verdict is CaseVerdict.MATCH


def test_a_mask_has_the_targets_parameters() -> None:
    with pytest.raises(TargetLoadError, match="dead mask"):
        summing("select", mask=lambda x: x)
    with pytest.raises(TargetLoadError, match="'pool' is not a parameter"):
        kcheck.target(cases=st.nothing(), dead={"pool": tail})(lambda out, x, lengths: None)
