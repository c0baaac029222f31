"""Hints to the compiler: which are false, as a plain model says, and what a run gives that makes them true."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kcheck.worker.backends.base import Conditions, Region, Watch
from kcheck.worker.backends.hazard import FalseHint
from kcheck.worker.backends.interpret import InterpretBackend

LANES = 8
powers = st.sampled_from([1, 2, 4, 8, 16])
# Pieces that go on, that repeat and that do neither, so that many hints are true.
pieces = st.tuples(st.integers(-2, 3).map(lambda i: 8 * i) | st.integers(-9, 20), st.sampled_from([0, 1]))
lines = st.lists(pieces, min_size=LANES // 2, max_size=LANES // 2).map(
    lambda found: [first + step * i for first, step in found for i in (0, 1)]
)


def watched(launch: Any, hinted: tuple[str, int] | None = None, **tensors: torch.Tensor) -> Watch:
    regions = [Region(name, tensor, True) for name, tensor in tensors.items()]
    with InterpretBackend().watch(regions, conditions=Conditions(hinted=hinted)) as watch:
        launch()
    assert not watch.faults
    assert not watch.gaps
    return watch


def run(kernel: Any, values: list[int], *sizes: int, name: str) -> FalseHint | None:
    x = torch.tensor(values, dtype=torch.int32)
    out = torch.zeros_like(x)
    watch = watched(lambda: kernel[(1,)](x, out, name, *sizes, LANES=LANES), x=x, out=out)
    assert torch.equal(out, x)
    hint = watch.hints[0] if watch.hints else None
    if hint is not None:
        place = (hint.frame.file, hint.frame.line)
        assert f"tl.{name}(" in hint.frame.source
        taken = watched(lambda: kernel[(1,)](x, out, name, *sizes, LANES=LANES), place, x=x, out=out)
        assert not taken.hints
        assert not torch.equal(out, x)
        again = watched(lambda: kernel[(1,)](out, out, name, *sizes, LANES=LANES), out=out)
        assert not again.hints  # what is made true is true
    return hint


def grouped(line: list[int], size: int, step: int) -> list[int]:
    """Lanes that are not what the first one of their group says."""
    size = min(size, len(line))
    return [i for i, value in enumerate(line) if value != line[i - i % size] + step * (i % size)]


def begun(line: list[int], size: int) -> list[int]:
    """Lanes of runs of consecutive values that do not begin at a multiple."""
    starts = [i for i, value in enumerate(line) if not i or value != line[i - 1] + 1]
    return [i for i in range(len(line)) if line[max(s for s in starts if s <= i)] % size]


check = settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@given(lines, powers, st.sampled_from(["multiple_of", "max_contiguous", "max_constancy"]))
@check
def test_lines_are_as_a_model_says(hint_kernels: Any, line: list[int], size: int, name: str) -> None:
    hint = run(hint_kernels.about_lines, line, size, name=name)
    wrong = begun(line, size) if name == "multiple_of" else grouped(line, size, int(name == "max_contiguous"))
    assert (hint is not None) == bool(wrong)
    if hint is not None:
        assert (hint.lane, hint.value, hint.lanes) == ((wrong[0],), line[wrong[0]], len(wrong))


@given(st.lists(st.integers(-3, 3), min_size=4, max_size=4), st.integers(0, 3), powers, powers, st.booleans())
@check
def test_tiles_are_as_a_model_says(
    hint_kernels: Any, numbers: list[int], bend: int, down: int, across: int, contiguous: bool
) -> None:
    pitch, step, start, other = numbers
    tile = [[start + pitch * row + step * column for column in range(LANES)] for row in range(LANES)]
    tile[bend][2 * bend] += other
    flat = [value for row in tile for value in row]
    hint = run(hint_kernels.about_tiles, flat, down, across, name="max_contiguous" if contiguous else "max_constancy")
    columns = [list(column) for column in zip(*tile, strict=True)]
    along = [(i, j) for j, column in enumerate(columns) for i in grouped(column, down, int(contiguous))]
    axis = 0 if along else 1
    along = sorted(along) or [(i, j) for i, row in enumerate(tile) for j in grouped(row, across, int(contiguous))]
    assert (hint is not None) == bool(along)
    if hint is not None:
        assert (hint.axis, hint.lane) == (axis, along[0])


@pytest.mark.parametrize("size", [1, 4, 5, 16])
@pytest.mark.parametrize("number", [0, -4, 5, 12, 2**40])
@pytest.mark.parametrize("offset", [0, 3, 4])
def test_numbers_and_pointers(hint_kernels: Any, number: int, offset: int, size: int) -> None:
    x, out = torch.arange(8, dtype=torch.int32)[offset:], torch.zeros(1, dtype=torch.int64)
    watch = watched(lambda: hint_kernels.about_numbers[(1,)](x, out, number, size), x=x, out=out)
    found = {(hint.parameter, hint.argument): hint.value for hint in watch.hints}
    values = {("number", ""): number, ("", ""): number + 1, ("x", "x"): 4 * offset}
    assert found == {key: value for key, value in values.items() if value % size}


def test_a_hint_in_a_function_is_counted_by_programs(hint_kernels: Any) -> None:
    out = torch.zeros(5, dtype=torch.int32)
    (hint,) = watched(lambda: hint_kernels.about_programs[(5,)](out, 2), out=out).hints
    assert (hint.program, hint.value, hint.lanes, hint.programs) == ((1, 0, 0), 3, 2, 2)
    assert [frame.function for frame in hint.chain] == ["about_programs", "_aligned"]
    assert hint.lane == ()
