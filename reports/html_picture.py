"""The picture of a backing as lengths and texts for an SVG; the template draws it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from kcheck.case import Case
from kcheck.reports.finding_text import sharing
from kcheck.reports.picture import Grid, Mark, Picture, Row, Skip, legend, numbered, picture, row_note, whereabouts
from kcheck.reports.wording import counted

_COLUMNS = 36  # they fit beside the labels on a desktop, and 20 findings stay below 1 MB
_STEP = 16  # pixels from a cell to the next one; the symbols are 14 wide
_CHARACTER = 7.3  # pixels of a monospace character at 12 pixels
_RULER = 18  # pixels above the cells
_AIR = 12  # pixels between labels and cells


@dataclass(frozen=True, slots=True)
class DrawnCell:
    """One cell.

    Attributes:
        x: Pixels from the left.
        mark: What it is; None in place of columns left out.
        title: What to say when the pointer is on it: backing index and logical index.
    """

    x: int
    mark: Mark | None
    title: str


@dataclass(frozen=True, slots=True)
class DrawnRow:
    """One row of cells, or a text in place of rows left out.

    Attributes:
        y: Pixels from the top.
        label: The row as an index into the backing.
        cells: Its cells.
        note: The row as an index into a view; or how many rows are left out.
    """

    y: int
    label: str
    cells: tuple[DrawnCell, ...]
    note: str


@dataclass(frozen=True, slots=True)
class Drawing:
    """A picture of a backing.

    Attributes:
        width: Pixels.
        height: Pixels.
        left: Pixels from the left to the cells; labels end before.
        notes: Pixels from the left to the notes.
        numbers: Place (pixels from the left) and number of the columns that have room for one.
        rows: The rows.
        legend: Mark → what it stands for.
        first: Where the first wrong element is, ``""`` if none is.
    """

    width: int
    height: int
    left: int
    notes: int
    numbers: tuple[tuple[int, int], ...]
    rows: tuple[DrawnRow, ...]
    legend: Mapping[Mark, str]
    first: str


def draw(case: Case, argument: str, wrong: Sequence[int] = (), said: str = "wrong", rows: int = 10) -> Drawing | None:
    """Draw the backing of an argument, large ones cut to what is around the view and the wrong cells.

    Args:
        case: The case.
        argument: Path of a view.
        wrong: Backing elements that are wrong, the first of them first.
        said: What is wrong with them.
        rows: Most rows to draw.

    Returns:
        The drawing; None if there is nothing to draw.
    """
    layout = case.views[argument].layout
    if not layout.backing_numel and not wrong:
        return None
    others = sharing(case, argument)
    drawn = picture(layout, wrong, others=tuple(others.values()), columns=_COLUMNS, rows=rows)
    grid = Grid(layout)
    shown = [row for row in drawn.rows if isinstance(row, Row)]
    left = round(max(len(row.label) for row in shown) * _CHARACTER) + _AIR
    notes = left + len(drawn.columns) * _STEP + _AIR
    numbers = tuple(_numbers(drawn, left))

    def title(row: int, column: int | Skip, mark: Mark | None) -> str:
        if isinstance(column, Skip):
            return f"{counted(column.count, 'column')} left out"
        where = whereabouts(argument, layout, grid.element(row, column), others)
        return f"{where}, {said}" if mark in (Mark.WRONG, Mark.FIRST) else where

    def cells(row: Row) -> Iterator[DrawnCell]:
        for at, (column, mark) in enumerate(zip(drawn.columns, row.cells, strict=True)):
            yield DrawnCell(left + at * _STEP, mark, title(row.number, column, mark))

    def line(y: int, row: Row | Skip) -> DrawnRow:
        if isinstance(row, Skip):
            return DrawnRow(y, "", (), counted(row.count, "more row"))
        return DrawnRow(y, row.label, tuple(cells(row)), row_note(argument, layout, others, row.number))

    lines = tuple(line(_RULER + i * _STEP, row) for i, row in enumerate(drawn.rows))
    return Drawing(
        width=notes + round(max(len(row.note) for row in lines) * _CHARACTER),
        height=_RULER + len(lines) * _STEP,
        left=left,
        notes=notes,
        numbers=numbers,
        rows=lines,
        legend=legend(drawn, argument, others, said),
        first=whereabouts(argument, layout, wrong[0], others) if wrong else "",
    )


def _numbers(drawn: Picture, left: int) -> Iterator[tuple[int, int]]:
    """The middles of numbered columns, as far as the numbers do not touch each other."""
    taken: list[tuple[float, float]] = []
    for at, column in numbered(drawn):
        half = len(str(column)) * _CHARACTER / 2
        middle = left + at * _STEP + (_STEP - 2) // 2
        start, stop = middle - half - _CHARACTER / 2, middle + half + _CHARACTER / 2
        if all(stop <= other or start >= end for other, end in taken):
            taken.append((start, stop))
            yield middle, column
