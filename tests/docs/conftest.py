"""Code blocks of the Markdown pages."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
_NOT_RUN = re.compile(r"<!-- not run: (.+) -->")


@dataclass(frozen=True)
class Block:
    """A fenced block of a page.

    Attributes:
        page: Path of the page, relative to the repository.
        line: Line of its fence, from 1.
        section: Heading above it.
        language: What the fence names.
        text: Its lines.
        reason: Why it cannot run here, ``""`` if it can.
    """

    page: str
    line: int
    section: str
    language: str
    text: str
    reason: str

    @property
    def place(self) -> str:
        return f"{self.page}:{self.line}"

    @property
    def file(self) -> str:
        """The file that the first line names, ``""`` if it names none."""
        found = re.match(r"# ([\w./-]+\.(?:py|toml|yml|json))\b", self.text)
        return found[1] if found else ""


def read_blocks(page: str) -> list[Block]:
    blocks: list[Block] = []
    section = reason = ""
    begin, language, held = 0, "", []  # type: ignore[var-annotated]
    for number, line in enumerate((ROOT / page).read_text().splitlines(), 1):
        if begin and line == "```":
            blocks.append(Block(page, begin, section, language, "\n".join(held) + "\n", reason))
            begin, reason = 0, ""
        elif begin:
            held.append(line)
        elif line.startswith("```"):
            begin, language, held = number, line.removeprefix("```"), []
        elif found := _NOT_RUN.fullmatch(line):
            reason = found[1]
        else:
            reason = ""
            section = line.lstrip("# ") if line.startswith("#") else section
    assert not begin, f"{page}:{begin}: the block has no end"
    return blocks


@pytest.fixture(scope="session")
def blocks_of() -> Callable[[str], list[Block]]:
    """The blocks of a page."""
    return read_blocks
