"""What is changed in a kernel that computes beside its addresses, and how the change looks."""

from __future__ import annotations

from typing import Any

from kcheck.mutate.kernel import changes
from kcheck.mutate.syntax import FunctionSource
from tests.mutate.norm_rows import largest_kernel, norm_kernel


def lines(kernel: Any, operator: str) -> set[str]:
    source = FunctionSource(kernel.fn)
    return {" ".join(source.lines(one.edits)[2]) for one in changes(source) if one.operator == operator}


def test_only_arithmetic_that_reaches_an_address_is_an_offset() -> None:
    scaled = "value * (1.0 / tl.sqrt(variance + 1)), mask=column < columns)"
    assert lines(norm_kernel, "offset dropped") == {
        "value = tl.load(x + column, mask=column < columns, other=0.0)",
        "value = tl.load(x + start, mask=column < columns, other=0.0)",
        f"tl.store(out + column, {scaled}",
        f"tl.store(out + start, {scaled}",
        "tl.store(out, value, mask=(column < columns) & (column >= 0))",
        "tl.store(out + (columns - 1), value, mask=(column < columns) & (column >= 0))",
        "tl.store(out + (columns - column), value, mask=(column < columns) & (column >= 0))",
    }
    assert lines(norm_kernel, "stride dropped") == {"start = tl.program_id(0)"}


def test_brackets_stand_only_where_the_change_needs_them() -> None:
    assert lines(norm_kernel, "mask term dropped") == {
        "tl.store(out + (columns - 1 - column), value, mask=column < columns)",
        "tl.store(out + (columns - 1 - column), value, mask=column >= 0)",
    }


def test_dropped_arguments_leave_no_trace() -> None:
    assert lines(largest_kernel, "mask dropped") == {
        "most = tl.max(tl.load(x + column))",
        "least = tl.min(tl.load(x + column))",
        "",  # it stands on a line of its own
    }


def test_another_value_than_zero_in_masked_lanes_matters() -> None:
    assert lines(largest_kernel, "other dropped") == {"most = tl.max(tl.load(x + column, mask=column < columns))"}
    assert not lines(norm_kernel, "other dropped")  # lanes that are masked off read zero
