"""Arguments over one memory: in place where the target says so, an error of the case where it does not."""
# mypy: disable-error-code="no-untyped-call,no-untyped-def,untyped-decorator"

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import triton
import triton.language as tl
from hypothesis import given, settings
from hypothesis import strategies as st

import kcheck
from kcheck import strategies as ks
from kcheck.case import Case, Memory, Role, Tensor
from kcheck.events import CaseVerdict
from kcheck.findings import Kind
from kcheck.layout import Dim, Layout, Plane
from kcheck.protocol import Judgement
from kcheck.target import Target
from kcheck.worker.backends import open_backend
from kcheck.worker.judge import Judge
from kcheck.worker.sharing import _apart, _overlap

LINE = Layout((Dim(10, after=3),))


@triton.jit
def reverse_kernel(out, x, n, out_stride, x_stride, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i * out_stride, tl.load(x + (n - 1 - i) * x_stride, mask=i < n, other=0.0), mask=i < n)


@triton.jit
def double_kernel(out, x, n, out_stride, x_stride, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i * out_stride, tl.load(x + i * x_stride, mask=i < n) * 2, mask=i < n)


def into(kernel: Any, oracle: Callable[..., Any], **options: Any) -> Target:
    def run(out: torch.Tensor, x: torch.Tensor) -> None:
        kernel[(triton.cdiv(x.shape[0], 4),)](out, x, x.shape[0], out.stride(0), x.stride(0), BLOCK=4)

    return kcheck.target(cases=st.nothing(), oracle=oracle, outputs=["out"], **options)(run)


def double(out: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    return x * 2


def reverse(out: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    return x.flip(0)


def judge(target: Target, **arguments: Tensor) -> Judgement:
    return Judge(open_backend("interpret")).judge(target, Case(**arguments))


def two_tensors() -> dict[str, Tensor]:
    return {"out": Tensor("float32", LINE, role=Role.OUTPUT), "x": Tensor("float32", LINE)}


def in_place() -> dict[str, Tensor]:
    x = Tensor("float32", LINE)
    return {"out": x, "x": x}


def test_a_kernel_that_may_work_in_place_does_so() -> None:
    right = into(double_kernel, double, aliases={"out": "x"})
    assert judge(right, **two_tensors()).verdict is CaseVerdict.MATCH
    assert judge(right, **in_place()).verdict is CaseVerdict.MATCH


def test_a_kernel_that_reads_what_it_has_overwritten_is_found_in_place_only() -> None:
    wrong = into(reverse_kernel, reverse, aliases={"out": "x"})
    assert judge(wrong, **two_tensors()).verdict is CaseVerdict.MATCH
    kinds = {finding.kind for finding in judge(wrong, **in_place()).findings}
    assert kinds & {Kind.RACE, Kind.VALUE_MISMATCH}


def test_undeclared_aliasing_is_an_error_of_the_case() -> None:
    judgement = judge(into(double_kernel, double), **in_place())
    assert judgement.verdict is CaseVerdict.COULD_NOT_CHECK
    assert "out and x share elements" in judgement.reason
    assert 'aliases={"out": "x"}' in judgement.reason


def test_one_tensor_may_be_two_inputs() -> None:
    x = Tensor("float32", LINE)
    target = kcheck.target(cases=st.nothing(), oracle=lambda a, b: a + b)(lambda a, b: a + b)
    assert judge(target, a=x, b=x).verdict is CaseVerdict.MATCH


def test_inputs_that_overlap_in_part_have_no_values_that_fit_both() -> None:
    memory = Memory()
    head = Tensor("float32", Layout((Dim(6, after=4),)), memory=memory)
    tail = Tensor("float32", Layout((Dim(6, before=4),)), memory=memory)
    target = kcheck.target(cases=st.nothing(), oracle=lambda a, b: a + b)(lambda a, b: a + b)
    assert judge(target, a=head, b=tail).verdict is CaseVerdict.COULD_NOT_CHECK


def test_planes_of_one_pool_share_no_element_whatever_their_roles() -> None:
    memory = Memory()
    out, x = (
        Tensor("float32", Layout((Dim(3), Dim(4)), order=(0, 2, 1), planes=(Plane(2, index),)), memory=memory)
        for index in (0, 1)
    )
    target = kcheck.target(cases=st.nothing(), oracle=lambda out, x: x * 2, outputs=["out"])

    @target
    def copy(out: torch.Tensor, x: torch.Tensor) -> None:
        out.copy_(x * 2)

    assert judge(copy, out=out, x=x).verdict is CaseVerdict.MATCH


def consume(x: torch.Tensor) -> torch.Tensor:
    result = x * 2
    x.fill_(float("nan"))
    return result


def test_a_consumed_input_may_be_overwritten_and_no_other() -> None:
    def oracle(x: torch.Tensor) -> torch.Tensor:
        return x * 2

    declared = kcheck.target(cases=st.nothing(), oracle=oracle, consumed=["x"])(consume)
    silent = kcheck.target(cases=st.nothing(), oracle=oracle)(consume)
    assert judge(declared, x=Tensor("float32", LINE)).verdict is CaseVerdict.MATCH
    assert [f.kind for f in judge(silent, x=Tensor("float32", LINE)).findings] == [Kind.INPUT_MUTATED]


def test_elements_of_an_inout_that_are_not_written_keep_their_value() -> None:
    def oracle(x: torch.Tensor) -> torch.Tensor:
        return torch.cat((x[:2] * 2, x[2:]))

    target = kcheck.target(cases=st.nothing(), oracle=oracle, inout=["x"])

    @target
    def right(x: torch.Tensor) -> None:
        x[:2] *= 2

    @target
    def wrong(x: torch.Tensor) -> None:
        x[:2] *= 2
        x[4] = 0

    assert judge(right, x=Tensor("float32", LINE)).verdict is CaseVerdict.MATCH
    assert [f.kind for f in judge(wrong, x=Tensor("float32", LINE)).findings] == [Kind.VALUE_MISMATCH]


def cells(layout: Layout) -> set[int]:
    """The elements of a layout, one by one."""
    places = {layout.first}
    for size, stride in zip(layout.shape, layout.strides, strict=True):
        places = {place + i * stride for place in places for i in range(size)}
    return places


shapes = st.tuples(st.integers(1, 3), st.integers(1, 4))


@settings(deadline=None)
@given(shapes.flatmap(lambda shape: st.tuples(ks.layouts(shape), ks.layouts(shape))))
def test_overlap_agrees_with_a_look_at_every_element(pair: tuple[Layout, Layout]) -> None:
    a, b = pair
    size = max(a.backing_numel, b.backing_numel)
    if a.backing_numel != size or b.backing_numel != size:
        return  # not over one backing
    shared = bool(cells(a) & cells(b))
    assert _overlap(a, b) == shared
    assert not (_apart(a, b) and shared)


def test_planes_and_parts_are_told_apart_without_a_look_at_every_element() -> None:
    planes = [Layout((Dim(5), Dim(7)), order=(0, 2, 1), planes=(Plane(3, index),)) for index in range(3)]
    halves = [Layout((Dim(5), Dim(4, after=4))), Layout((Dim(5), Dim(4, before=4)))]
    assert _apart(planes[0], planes[1])
    assert _apart(planes[2], planes[1])
    assert _apart(*halves)
