"""Labelled lines: what panels are made of. Nothing is padded, so that text copied from a terminal stays clean."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.text import Text

from kcheck.reports.source import SourceLine
from kcheck.reports.wording import cut, plain

INDENT = 2
LABEL = 11


class Hanging:
    """A text that wraps at the width there is, with a margin in front of its lines.

    Args:
        body: The text.
        first: Margin of the first line.
        rest: Margin of the others.
    """

    def __init__(self, body: Text | str, first: Text | str = "", rest: str = "") -> None:
        self._body = body if isinstance(body, Text) else Text(plain(cut(body)))
        self._first = first
        self._rest = rest

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        margin = self._first if isinstance(self._first, Text) else Text(self._first)
        room = max(options.max_width - max(margin.cell_len, len(self._rest)), 10)
        for line in self._body.wrap(console, room, overflow="fold"):
            line.rstrip()
            yield unwrapped(margin + line)
            margin = Text(self._rest)


def fact(label: str, body: Text | str) -> Hanging:
    """A label in the left margin and a text beside it.

    Args:
        label: Empty for a text that belongs to the label above.
        body: The text.
    """
    return Hanging(body, Text(f"{'':{INDENT}}{label:{LABEL}}", "bold"), " " * (INDENT + LABEL))


class Indented:
    """A renderable with a left margin.

    Args:
        body: What to indent; must honour the width it is given.
        by: Columns.
    """

    def __init__(self, body: RenderableType, by: int = INDENT + LABEL) -> None:
        self._body = body
        self._by = by

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        inner = options.update_width(max(options.max_width - self._by, 10))
        for line in console.render_lines(self._body, inner, pad=False):
            text = Text.assemble(" " * self._by, *((s.text, s.style or "") for s in line if not s.control))
            text.rstrip()
            yield unwrapped(text)


class SourceView:
    """Source lines with their numbers; the faulty one is marked with ``>``.

    Args:
        lines: The lines.
    """

    def __init__(self, lines: Iterable[SourceLine]) -> None:
        self._lines = tuple(lines)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        gutter = max((len(str(line.number)) for line in self._lines if line.number), default=0)
        bar = " | " if options.ascii_only else " │ "
        for line in self._lines:
            style = "bold" if line.faulty else "dim"
            mark = "> " if line.faulty else "  "
            head = f"{mark}{line.number or '':>{gutter}}{bar}"
            text = Text(line.text, style)
            room = max(options.max_width - len(head), 10)
            if not line.faulty:
                text.truncate(room, overflow="ellipsis")
            for part in text.wrap(console, room, overflow="fold") or [text]:
                yield unwrapped(Text(head, "red" if line.faulty else "dim") + part)
                head = f"{'':{gutter + 2}}{bar}"


def unwrapped(text: Text) -> Text:
    """The text, printed as it is, however long."""
    text.no_wrap = True
    text.overflow = "ignore"
    return text
