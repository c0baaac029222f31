"""The picture of a backing as a model: which cells are drawn, and what each of them is.

Columns are the backing's innermost dimension, rows all the others in memory order. Only the cells that are drawn are
ever looked at, so a backing of any size costs the same.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, count
from types import MappingProxyType

from kcheck.layout import Layout
from kcheck.reports.wording import bracketed, counted


class Mark(enum.StrEnum):
    """What a drawn cell is."""

    VIEW = "view"
    OTHER = "another view"
    GAP = "gap"
    OUTSIDE = "outside the backing"
    WRONG = "wrong"
    FIRST = "first wrong"


@dataclass(frozen=True, slots=True)
class Skip:
    """The place of so many rows or columns that are left out."""

    count: int


@dataclass(frozen=True, slots=True)
class Row:
    """One row of cells.

    Attributes:
        number: Row of the backing; below 0 and beyond the last one lies what is around it.
        label: The row as an index into the backing (``[0, :]``), or what it is instead.
        cells: What each drawn column is; None in place of those left out.
        steps: Where in the path each drawn column comes first, from 1; 0 if it does not.
    """

    number: int
    label: str
    cells: tuple[Mark | None, ...]
    steps: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Picture:
    """What to draw.

    Attributes:
        columns: Column numbers.
        rows: The rows.
    """

    columns: tuple[int | Skip, ...]
    rows: tuple[Row | Skip, ...]


class Grid:
    """Rows and columns of a backing.

    Args:
        layout: A view of it.

    Attributes:
        rows: Rows of the backing, those of a base offset (negative) included.
        columns: Its columns.
    """

    def __init__(self, layout: Layout) -> None:
        shape = layout.backing_shape
        wide = [axis for axis, extent in enumerate(shape) if extent > 1]
        self._layout = layout
        self._axis = wide[-1] if wide and math.prod(shape) > 0 else 0
        self._flat = self._axis == 0
        self._pitch = 0 if self._flat else shape[self._axis]
        self.columns = range(layout.backing_numel if self._flat else self._pitch)
        before = 0 if self._flat else -(-layout.offset // self._pitch)
        self.rows = range(1) if self._flat else range(-before, math.prod(shape[: self._axis]))

    def place(self, element: int) -> tuple[int, int]:
        """Row and column of a backing element, which may lie outside the backing."""
        return (0, element) if self._flat else divmod(element - self._layout.offset, self._pitch)

    def element(self, row: int, column: int) -> int:
        """Backing element at a row and column."""
        return column if self._flat else self._layout.offset + row * self._pitch + column

    def label(self, row: int) -> str:
        """A row as an index into the backing, or what it is instead."""
        shape = self._layout.backing_shape
        if self._flat:
            return ""
        if row < 0:
            return "offset" if row >= self.rows.start else "before"
        if row >= self.rows.stop:
            return "behind"
        index = unravel(row, shape[: self._axis])
        return bracketed([*index, ":", *(0 for _ in shape[self._axis + 1 :])])

    def of_view(self, row: int) -> str:
        """A row as an index into the view, empty where the view has no cell in it."""
        layout = self._layout
        if self._flat or not layout.order:
            return ""
        entry = layout.order[self._axis]
        column = layout.dims[entry].before if entry < layout.rank else layout.planes[entry - layout.rank].index
        found = layout.index_at(self.element(row, column))
        if found is None:
            return ""
        free = (i == entry or dim.expanded for i, dim in enumerate(layout.dims))
        return bracketed([":" if is_free else position for is_free, position in zip(free, found, strict=True)])


def picture(
    layout: Layout,
    wrong: Sequence[int] = (),
    *,
    path: Sequence[int] = (),
    others: Sequence[Layout] = (),
    columns: int = 64,
    rows: int = 12,
) -> Picture:
    """Choose the cells to draw, around the interesting ones, and tell what each is.

    Args:
        layout: The view.
        wrong: Backing elements that are wrong, the first of them first; may lie outside the backing.
        path: Backing elements that were touched before the first wrong one, in order.
        others: Other views of the backing.
        columns: Most columns to draw, places of those left out included.
        rows: Most rows to draw, places of those left out included.
    """
    grid = Grid(layout)
    edges = (layout.first, layout.first + layout.reach) if layout.numel else ()
    beyond = [grid.place(element) for element in wrong]
    way = [grid.place(element) for element in path]
    spots = [*beyond[:1], *(grid.place(element) for element in edges), *beyond[-1:], *beyond, *way]
    steps = first_steps(path)
    across = _chosen(_widened(grid.columns, [at for _, at in beyond], 1), [at for _, at in spots], columns)
    down = _chosen(_widened(grid.rows, [at for at, _ in beyond], 0), [at for at, _ in spots], rows)

    def mark(row: int, column: int | Skip) -> Mark | None:
        return None if isinstance(column, Skip) else _mark(layout, grid.element(row, column), wrong, others)

    def draw(row: int | Skip) -> Row | Skip:
        if isinstance(row, Skip):
            return row
        taken = (0 if isinstance(column, Skip) else steps.get(grid.element(row, column), 0) for column in across)
        return Row(row, grid.label(row), tuple(mark(row, column) for column in across), tuple(taken))

    return Picture(tuple(across), tuple(map(draw, down)))


def first_steps(path: Sequence[int]) -> dict[int, int]:
    """Where in a path each of its elements comes first, from 1."""
    steps: dict[int, int] = {}
    for number, element in enumerate(path, 1):
        steps.setdefault(element, number)
    return steps


def row_note(name: str, layout: Layout, others: Mapping[str, Layout], row: int) -> str:
    """What a row is in the view, or in another view that cuts the backing in the same way; empty if it is neither.

    Args:
        name: The view's name.
        layout: The view.
        others: Other views of the backing, by name.
        row: Number of the row.
    """
    for label, view in ({name: layout} | dict(others)).items():
        alike = (view.backing_shape, view.offset) == (layout.backing_shape, layout.offset)
        index = Grid(view).of_view(row) if alike else ""
        if index:
            return label + index
    return ""


def legend(drawn: Picture, name: str, others: Iterable[str], said: str) -> dict[Mark, str]:
    """What the marks of a picture stand for, those that are in it.

    Args:
        drawn: The picture.
        name: The view's name.
        others: Names of other views of the backing.
        said: What is wrong with the wrong cells.
    """
    present = {mark for row in drawn.rows if isinstance(row, Row) for mark in row.cells}
    names = {
        Mark.VIEW: name,
        Mark.OTHER: ", ".join(others),
        Mark.GAP: "gap",
        Mark.OUTSIDE: "outside the backing",
        Mark.WRONG: said,
        Mark.FIRST: "the first of them" if Mark.WRONG in present else said,
    }
    return {mark: text for mark, text in names.items() if mark in present}


def numbered(drawn: Picture) -> Iterator[tuple[int, int]]:
    """Columns to number, the most telling first: the first wrong one, where a run begins, the last, every eighth.

    Yields:
        Place in the picture and number.
    """
    found = [row.cells.index(Mark.FIRST) for row in drawn.rows if isinstance(row, Row) and Mark.FIRST in row.cells]
    last = len(drawn.columns) - 1
    after_skip = [at for at in range(last + 1) if at == 0 or isinstance(drawn.columns[at - 1], Skip)]
    always = (*found, *after_skip, last)
    for at in (*always, *range(last)):
        column = drawn.columns[at]
        if not isinstance(column, Skip) and (at in always or column % 8 == 0):
            yield at, column


def _mark(layout: Layout, element: int, wrong: Sequence[int], others: Sequence[Layout]) -> Mark:
    if element in wrong:
        return Mark.FIRST if element == wrong[0] else Mark.WRONG
    if not 0 <= element < layout.backing_numel:
        return Mark.OUTSIDE
    if layout.index_at(element) is not None:
        return Mark.VIEW
    return Mark.OTHER if any(other.index_at(element) is not None for other in others) else Mark.GAP


def _widened(span: range, positions: Sequence[int], margin: int) -> range:
    """The range with these positions in it; a margin stands beyond those that were not."""
    low, high = min(positions, default=0), max(positions, default=-1)
    start = low - margin if low < span.start and positions else span.start
    stop = high + margin + 1 if high >= span.stop else span.stop
    return range(start, stop)


def _chosen(span: range, spots: Sequence[int], budget: int) -> list[int | Skip]:
    """Positions of a range to draw: all of them, or as many as fit around the spots and the ends."""
    if len(span) <= budget:
        return list(span)
    ends = (span.start, span.stop - 1)
    main, every = tuple(dict.fromkeys((*spots[:4], *ends))), tuple(dict.fromkeys((*spots, *ends)))
    around = chain(((main, radius) for radius in range(5)), ((every, radius) for radius in count()))
    picked: set[int] = set()
    for wanted, radius in around:
        for position in (spot + side for spot in wanted for side in (-radius, radius)):
            if position not in span or position in picked:
                continue
            if len(_with_skips(span, picked | {position})) > budget:
                return _with_skips(span, picked)
            picked.add(position)
    raise AssertionError("the search ends when the budget is spent")


def _with_skips(span: range, picked: set[int]) -> list[int | Skip]:
    """The picked positions in order, with what is left out between them."""
    line: list[int | Skip] = []
    expected = span.start
    for position in (*sorted(picked), span.stop):
        if position - expected == 1:
            line.append(expected)  # the place of a single one left out shows it as well
        elif position > expected:
            line.append(Skip(position - expected))
        if position < span.stop:
            line.append(position)
        expected = position + 1
    return line


def whereabouts(name: str, layout: Layout, element: int, others: Mapping[str, Layout] = MappingProxyType({})) -> str:
    """What a backing element is, in words: a cell of the view, of another view, a gap, or outside.

    Args:
        name: The view's name.
        layout: The view.
        element: The backing element.
        others: Other views of the backing, by name.
    """
    if element < 0:
        return f"{counted(-element, 'element')} before the backing"
    if element >= layout.backing_numel:
        behind = element - layout.backing_numel + 1
        return (
            "the first element behind the backing"
            if behind == 1
            else f"{counted(behind, 'element')} behind the backing"
        )
    here = f"backing element {element}"
    for label, view in ({name: layout} | dict(others)).items():
        index = view.index_at(element)
        if index is not None:
            return f"{here}: {label}{bracketed(index) if index else ''}"
    rest = element - layout.offset
    if rest < 0:
        return f"{here}: in the base offset"
    return f"{here}, {bracketed(unravel(rest, layout.backing_shape))}: in a gap"


def unravel(position: int, shape: Sequence[int]) -> list[int]:
    """The index of a row-major position in a shape."""
    index: list[int] = []
    for extent in reversed(shape):
        position, at = divmod(position, extent)
        index.insert(0, at)
    return index
