"""The layout matrix: arguments by layout kinds, and what became of it."""

from __future__ import annotations

from collections.abc import Mapping

from rich.cells import cell_len, set_cell_size
from rich.console import Console, ConsoleOptions, RenderResult
from rich.text import Text

from kcheck.events import Cell
from kcheck.layout import LayoutKind
from kcheck.reports.fact import INDENT, Hanging, unwrapped
from kcheck.reports.wording import plain

_SHORT = 4  # letters that still tell the kinds apart
SIGNS = {Cell.MATCH: "✓", Cell.REJECTED: "-", Cell.FINDING: "✗", Cell.COULD_NOT_CHECK: "?", Cell.NOT_TRIED: "·"}
_ASCII = {Cell.MATCH: "+", Cell.REJECTED: "-", Cell.FINDING: "X", Cell.COULD_NOT_CHECK: "?", Cell.NOT_TRIED: "."}
# Words of the legend, where they are not the cell's own.
WORDS = {Cell.COULD_NOT_CHECK: "not judged: could not check, or another finding in the way"}
_STYLES = {
    Cell.MATCH: "green",
    Cell.REJECTED: "yellow",
    Cell.FINDING: "bold red",
    Cell.COULD_NOT_CHECK: "magenta",
    Cell.NOT_TRIED: "dim",
}


def rows(matrix: Mapping[str, Mapping[LayoutKind, Cell]]) -> dict[str, Mapping[LayoutKind, Cell]]:
    """The rows that are shown: all but one of the returned value in which nothing was tried.

    Args:
        matrix: Argument → layout kind → cell.
    """
    return {
        name: cells
        for name, cells in matrix.items()
        if name != "return" or any(cell is not Cell.NOT_TRIED for cell in cells.values())
    }


class LayoutMatrix:
    """A renderable: the matrix, all kinds at 80 columns.

    Args:
        matrix: Argument → layout kind → cell; a kind that is missing was not tried.
    """

    def __init__(self, matrix: Mapping[str, Mapping[LayoutKind, Cell]]) -> None:
        self._matrix = {plain(argument): cells for argument, cells in matrix.items()}

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        signs = _ASCII if options.ascii_only else SIGNS
        longest = max((cell_len(name) for name in self._matrix), default=0)
        heads = [kind.value for kind in LayoutKind]
        if INDENT + longest + sum(len(head) + 1 for head in heads) > options.max_width:
            heads = [head[:_SHORT] for head in heads]
        room = options.max_width - INDENT - sum(len(head) + 1 for head in heads)
        names = max(min(longest, room), 8)
        yield unwrapped(Text(" " * (INDENT + names) + "".join(f" {head}" for head in heads), "dim"))
        for name, cells in self._matrix.items():
            line = Text(" " * INDENT + _cut(name, names, options.ascii_only))
            for kind, head in zip(LayoutKind, heads, strict=True):
                cell = cells.get(kind, Cell.NOT_TRIED)
                line.append(" " * (len(head) // 2 + (len(head) % 2)))
                line.append(signs[cell], _STYLES[cell])
                line.append(" " * (len(head) - len(head) // 2 - (len(head) % 2)))
            line.rstrip()
            yield unwrapped(line)
        yield self._legend(signs)

    def _legend(self, signs: Mapping[Cell, str]) -> Hanging:
        present = {cells.get(kind, Cell.NOT_TRIED) for cells in self._matrix.values() for kind in LayoutKind}
        legend = Text()
        for cell, sign in signs.items():
            if cell in present:
                legend.append(sign, _STYLES[cell])
                word = "FINDING" if cell is Cell.FINDING else WORDS.get(cell, cell.value)
                legend.append(f" {word}   ")
        return Hanging(legend, " " * INDENT, " " * INDENT)


def _cut(name: str, columns: int, ascii_only: bool) -> str:
    """The name in exactly so many columns."""
    if cell_len(name) <= columns:
        return set_cell_size(name, columns)
    more = "..." if ascii_only else "…"
    return set_cell_size(name, columns - len(more)) + more
