"""``kcheck show``: a case as a drawing."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from kcheck.case import Case, Memory, Role, Tensor
from kcheck.fill import Fill
from kcheck.layout import Dim, Layout, Plane
from kcheck.reports.case_view import draw_case
from kcheck.reports.console import render


@pytest.mark.parametrize("width", [80, 120])
def test_the_whole_case(case: Case, width: int, golden: Callable[[str, str], None]) -> None:
    """Golden text; and the facts."""
    text = render(draw_case(case), width)
    golden(f"case-{width}.txt", text)
    assert all(len(line) <= width and line == line.rstrip() for line in text.split("\n"))
    for fact in (
        "block_table = torch.empty((2, 16), dtype=torch.int32)[:, :3]",
        "index, int32, shape (2, 3), strides (16, 1): narrowed",
        "values     [[3, 1, 0], [2, 2, 1]]",
        "values lie in [0, 4)",
        "4,096 elements of bfloat16, 8.0 KiB",
        "block_size = 4\n",
        "dtype = torch.bfloat16\n",
    ):
        assert fact in text


def test_views_in_a_list_that_share_a_backing() -> None:
    """Both names stand in the picture of either."""
    memory = Memory()
    k, v = (
        Tensor(
            "float16", Layout((Dim(2), Dim(4)), order=(0, 2, 1), planes=(Plane(2, i),)), Fill.constant(i), memory=memory
        )
        for i in (0, 1)
    )
    text = render(draw_case(Case(caches=[k, v])), 80)
    assert "shared with caches[1]" in text
    assert "■ caches[0]   □ caches[1]" in text
    assert "values     [[0, 0, 0, 0], [0, 0, 0, 0]]" in text


def test_expanded_empty_and_scalar_tensors() -> None:
    """An expanded dimension has its values once; an empty tensor has none."""
    text = render(
        draw_case(
            Case(
                wide=Tensor("int64", Layout((Dim(1000, expanded=True), Dim(2))), Fill.of((5, 7))),
                empty=Tensor("float32", Layout.contiguous((0, 8)), role=Role.OUTPUT),
                step=Tensor("int32", Layout(()), Fill.constant(3)),
            )
        ),
        80,
    )
    assert "values     [[5, 7]]" in text
    assert "the backing has no elements" in text
    assert "values     3\n" in text


def test_a_far_layout_is_instantaneous() -> None:
    """16 GiB of memory are never walked through."""
    text = render(draw_case(Case(x=Tensor("int8", Layout((Dim(9, step=2**31), Dim(8, after=8)))))), 80)
    assert "far" in text
    assert "256.0 GiB" in text
