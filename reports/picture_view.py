"""The picture of a backing in a terminal: distinct characters, so that it reads without colour."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderResult
from rich.text import Text

from kcheck.layout import Layout
from kcheck.reports.picture import Grid, Mark, Picture, Row, Skip, legend, numbered, picture, row_note
from kcheck.reports.wording import counted, plain

_GLYPHS = {Mark.VIEW: "■", Mark.OTHER: "□", Mark.GAP: "·", Mark.OUTSIDE: "░", Mark.WRONG: "x", Mark.FIRST: "X"}
_ASCII = {Mark.VIEW: "#", Mark.OTHER: "o", Mark.GAP: ".", Mark.OUTSIDE: "~", Mark.WRONG: "x", Mark.FIRST: "X"}
_SKIPPED, _SKIPPED_ASCII = "…", "_"
_NUMBERED = 9  # steps of a path with a number of their own; those after them are marked +
_STEP_STYLE = "bold black on cyan"
STYLES = {
    Mark.VIEW: "cyan",
    Mark.OTHER: "blue",
    Mark.GAP: "dim",
    Mark.OUTSIDE: "yellow",
    Mark.WRONG: "bold red",
    Mark.FIRST: "bold white on red",
}


class BackingPicture:
    """A renderable: the backing of one view, drawn in the width there is.

    Args:
        name: The view's name.
        layout: The view.
        wrong: Backing elements that are wrong, the first of them first.
        path: Backing elements that were touched before the first wrong one, in order.
        walked: What the path is, for the legend: ``path of program (0, 0, 0)``.
        others: Other views of the backing, by name.
        said: What is wrong with the wrong cells, for the legend: ``read outside the view``.
        rows: Most rows to draw.
    """

    def __init__(
        self,
        name: str,
        layout: Layout,
        wrong: Sequence[int] = (),
        *,
        path: Sequence[int] = (),
        walked: str = "",
        others: Mapping[str, Layout] | None = None,
        said: str = "wrong",
        rows: int = 12,
    ) -> None:
        self._name = plain(name)
        self._layout = layout
        self._wrong = wrong
        self._path, self._walked = path, walked
        self._others = {plain(other): view for other, view in (others or {}).items()}
        self._said = said
        self._rows = rows

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        grid = Grid(self._layout)
        if not self._layout.backing_numel and not self._wrong:
            yield Text("the backing has no elements", "dim")
            return
        glyphs = _ASCII if options.ascii_only else _GLYPHS
        margin = max(len(grid.label(row)) for row in (grid.rows.start, grid.rows.stop - 1, grid.rows.stop))
        drawn, step = self._fitted(grid, options.max_width - margin - 2)
        ruler = _ruler(drawn, step, options.max_width - margin - 2)
        if ruler:
            yield _line(" " * (margin + 2) + ruler)
        for row in drawn.rows:
            if isinstance(row, Skip):
                yield _line(
                    f"{'...' if options.ascii_only else '…':>{margin}}  {counted(row.count, 'more row')}", "dim"
                )
            else:
                yield self._row(grid, row, glyphs, margin, step, options.max_width)
        yield Text()
        yield self._legend(drawn, glyphs)

    def _fitted(self, grid: Grid, room: int) -> tuple[Picture, int]:
        """The picture for so many characters, and how many of them a cell takes."""
        step = 2 if 2 * len(grid.columns) <= room else 1
        ends = (self._layout.first, self._layout.first + self._layout.reach)
        note = max(len(self._note(grid, grid.place(element)[0])) for element in ends)
        if step == 1 and room - note >= 40:
            room -= note
        others = tuple(self._others.values())
        columns = max(room // step, 8)
        drawn = picture(self._layout, self._wrong, path=self._path, others=others, columns=columns, rows=self._rows)
        return drawn, step

    def _note(self, grid: Grid, row: int) -> str:
        note = row_note(self._name, self._layout, self._others, row)
        return f"   {note}" if note else ""

    def _row(self, grid: Grid, row: Row, glyphs: Mapping[Mark, str], margin: int, step: int, width: int) -> Text:
        line = _line(f"{row.label:>{margin}}  ")
        for mark, number in zip(row.cells, row.steps, strict=True):
            if mark is None:
                line.append(_SKIPPED if glyphs is _GLYPHS else _SKIPPED_ASCII, "dim")
            elif _is_step(mark, number):
                line.append(str(number) if number <= _NUMBERED else "+", _STEP_STYLE)
            else:
                line.append(glyphs[mark], STYLES[mark])
            line.append(" " * (step - 1))
        line.rstrip()
        note = self._note(grid, row.number)
        if line.cell_len + cell_len(note) <= width:
            line.append(note, "dim")
        return line

    def _legend(self, drawn: Picture, glyphs: Mapping[Mark, str]) -> Text:
        text = Text()
        for mark, name in legend(drawn, self._name, self._others, self._said).items():
            text.append("   " if text else "")
            text.append(glyphs[mark], STYLES[mark])
            text.append(f" {name}")
        rows = (row for row in drawn.rows if isinstance(row, Row))
        pairs = (pair for row in rows for pair in zip(row.cells, row.steps, strict=True))
        last = max((step for mark, step in pairs if _is_step(mark, step)), default=0)
        if last:
            dots = "-" if glyphs is _ASCII else "…"
            text.append("\n1", _STEP_STYLE)
            text.append(f"{dots}{min(last, _NUMBERED)}" if last > 1 else "", _STEP_STYLE)
            text.append(" +" if last > _NUMBERED else "", _STEP_STYLE)
            text.append(f" {self._walked}")
        return text


def _is_step(mark: Mark | None, number: int) -> bool:
    """Whether a cell shows the number of its step: what is wrong shows that it is."""
    return number > 0 and mark not in (None, Mark.WRONG, Mark.FIRST)


def _line(text: str, style: str = "") -> Text:
    return Text(text, style=style, no_wrap=True, overflow="ignore")


def _ruler(drawn: Picture, step: int, room: int) -> str:
    """Column numbers, as far as there is room."""
    ruler: list[str] = []
    for at, column in numbered(drawn):
        text = str(column)
        start = max(min(at * step, room - len(text)), 0)
        ruler.extend(" " * (start + len(text) + 1 - len(ruler)))
        if not "".join(ruler[max(start - 1, 0) : start + len(text) + 1]).strip():
            ruler[start : start + len(text)] = text
    return "".join(ruler).rstrip()
