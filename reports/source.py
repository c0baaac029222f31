"""The source lines around a finding."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from kcheck.reports.wording import cut, plain


@dataclass(frozen=True, slots=True)
class SourceLine:
    """One line to show.

    Attributes:
        number: Line number, 0 if unknown.
        text: The line, without the indentation that all shown lines share.
        faulty: It is the line the finding names.
    """

    number: int
    text: str
    faulty: bool


def excerpt(file: str, line: int, source: str, context: int = 2) -> tuple[SourceLine, ...]:
    """The faulty line with its neighbours; alone where the file is gone or no longer has it at this place.

    Args:
        file: Path of the source file.
        line: Number of the faulty line, from 1.
        source: Its text as it was when the finding was made.
        context: Lines to show on either side.
    """
    lines = _lines(file)
    known = 0 < line <= len(lines)
    if not known or (source.strip() and lines[line - 1].strip() != source.strip()):
        return (SourceLine(line, plain(cut(source.strip())), True),) if source.strip() else ()
    first, last = max(line - context, 1), min(line + context, len(lines))
    while first < line and not lines[first - 1].strip():
        first += 1
    while last > line and not lines[last - 1].strip():
        last -= 1
    shown = [plain(cut(text)) for text in lines[first - 1 : last]]
    indent = min(len(text) - len(text.lstrip()) for text in shown if text.strip())
    return tuple(
        SourceLine(number, text[indent:].rstrip(), number == line) for number, text in enumerate(shown, start=first)
    )


def _lines(file: str) -> list[str]:
    try:
        return Path(file).read_text(encoding="utf-8", errors="replace").splitlines() if file else []
    except (OSError, ValueError):
        return []
