"""The picture of a backing as lengths and texts for an SVG; the template draws it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from kcheck.case import Case
from kcheck.reports.finding_text import sharing
from kcheck.reports.picture import (
    Grid,
    Mark,
    Picture,
    Row,
    Skip,
    first_steps,
    legend,
    numbered,
    picture,
    row_note,
    whereabouts,
)
from kcheck.reports.wording import counted

_COLUMNS = 36  # they fit beside the labels on a desktop, and 20 findings stay below 1 MB
_STEP = 16  # pixels from a cell to the next one; the symbols are 14 wide
_CHARACTER = 7.3  # pixels of a monospace character at 12 pixels
_MIDDLE = 7  # pixels from the edge of a cell
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
        steps: Steps of the path, each once: middle of the cell (pixels from the left and the top), and number.
        lines: Pieces of the path whose cells are drawn, as points of polylines.
        walked: What the path is, ``""`` without one.
        first: Where the first wrong element is, ``""`` if none is.
    """

    width: int
    height: int
    left: int
    notes: int
    numbers: tuple[tuple[int, int], ...]
    rows: tuple[DrawnRow, ...]
    legend: Mapping[Mark, str]
    steps: tuple[tuple[int, int, int], ...]
    lines: tuple[str, ...]
    walked: str
    first: str


def draw(
    case: Case,
    argument: str,
    wrong: Sequence[int] = (),
    said: str = "wrong",
    rows: int = 10,
    path: Sequence[int] = (),
    walked: str = "",
) -> Drawing | None:
    """Draw the backing of an argument, large ones cut to what is around the view and the wrong cells.

    Args:
        case: The case.
        argument: Path of a view.
        wrong: Backing elements that are wrong, the first of them first.
        said: What is wrong with them.
        rows: Most rows to draw.
        path: Backing elements that were touched before the first wrong one, in order.
        walked: What the path is.

    Returns:
        The drawing; None if there is nothing to draw.
    """
    layout = case.views[argument].layout
    if not layout.backing_numel and not wrong:
        return None
    others = sharing(case, argument)
    drawn = picture(layout, wrong, path=path, others=tuple(others.values()), columns=_COLUMNS, rows=rows)
    grid = Grid(layout)
    shown = [row for row in drawn.rows if isinstance(row, Row)]
    left = round(max(len(row.label) for row in shown) * _CHARACTER) + _AIR
    notes = left + len(drawn.columns) * _STEP + _AIR
    numbers = tuple(_numbers(drawn, left))

    def title(row: int, column: int | Skip, mark: Mark | None, step: int) -> str:
        if isinstance(column, Skip):
            return f"{counted(column.count, 'column')} left out"
        where = whereabouts(argument, layout, grid.element(row, column), others)
        taken = f", step {step} of the path" if step else ""
        return f"{where}, {said}{taken}" if mark in (Mark.WRONG, Mark.FIRST) else where + taken

    def cells(row: Row) -> Iterator[DrawnCell]:
        for at, (column, mark, step) in enumerate(zip(drawn.columns, row.cells, row.steps, strict=True)):
            yield DrawnCell(left + at * _STEP, mark, title(row.number, column, mark, step))

    def line(y: int, row: Row | Skip) -> DrawnRow:
        if isinstance(row, Skip):
            return DrawnRow(y, "", (), counted(row.count, "more row"))
        return DrawnRow(y, row.label, tuple(cells(row)), row_note(argument, layout, others, row.number))

    lines = tuple(line(_RULER + i * _STEP, row) for i, row in enumerate(drawn.rows))
    places = _places(drawn, left)
    return Drawing(
        width=notes + round(max(len(row.note) for row in lines) * _CHARACTER),
        height=_RULER + len(lines) * _STEP,
        left=left,
        notes=notes,
        numbers=numbers,
        rows=lines,
        legend=legend(drawn, argument, others, said),
        steps=tuple((x, y, step) for step, (x, y, mark) in places.items() if mark not in (Mark.WRONG, Mark.FIRST)),
        lines=tuple(_lines(places, path)),
        walked=walked if places else "",
        first=whereabouts(argument, layout, wrong[0], others) if wrong else "",
    )


def _places(drawn: Picture, left: int) -> dict[int, tuple[int, int, Mark | None]]:
    """The middles of the cells that the path has in the picture, and what they are, by the first step on each."""
    return {
        step: (left + at * _STEP + _MIDDLE, _RULER + i * _STEP + _MIDDLE, row.cells[at])
        for i, row in enumerate(drawn.rows)
        if isinstance(row, Row)
        for at, step in enumerate(row.steps)
        if step
    }


def _lines(places: Mapping[int, tuple[int, int, Mark | None]], path: Sequence[int]) -> Iterator[str]:
    """The path as polylines, which end where a cell is not in the picture."""
    steps = first_steps(path)
    for drawn, elements in groupby(path, lambda element: steps[element] in places):
        points = [places[steps[element]] for element in elements] if drawn else []
        if len(points) > 1:
            yield " ".join(f"{x},{y}" for x, y, _ in points)


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
