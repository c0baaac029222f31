"""User text in Markdown, as GitHub reads it: what it says is shown and never acts."""

from __future__ import annotations

import re
from urllib.parse import quote

from kcheck.reports.wording import cut, plain

_PUNCTUATION = re.compile(r"([\\`*_\[\]{}|~$!^])")
# GitHub looks for these in the finished text, where a backslash is gone: @name, #1, addresses.
_REFERENCE = re.compile(r"(@|#|(?<=https:)(?=//)|(?<=http:)(?=//)|(?<=www)(?=\.))", re.IGNORECASE)
_BLOCK = re.compile(r"^(\d*)([-+.)=])(?![\w.])")  # a list, a rule or an underlined heading
_SAFE_IN_ADDRESS = "%/:?#@!$&'*+,;=~"


def prose(text: str) -> str:
    """One line of text in a paragraph, a list or a cell of a table."""
    line = " ".join(plain(cut(text)).split())
    line = line.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    line = _REFERENCE.sub(r"\1&#8203;", _PUNCTUATION.sub(r"\\\1", line))
    return _BLOCK.sub(r"\1\\\2", line)


def code(text: str, *, cell: bool = False) -> str:
    """One line as code.

    Args:
        text: The line.
        cell: It stands in a table, where ``|`` ends a cell even in code.
    """
    line = " ".join(plain(cut(text)).split())
    if not line:
        return ""
    ticks = "`" * (_longest_run(line) + 1)
    line = line.replace("|", r"\|") if cell else line
    return f"{ticks} {line} {ticks}" if line[0] == "`" or line[-1] == "`" else f"{ticks}{line}{ticks}"


def fence(text: str, language: str = "text") -> str:
    """Lines as a block of code."""
    ticks = "`" * max(_longest_run(text) + 1, 3)
    lines = "\n".join(line.rstrip() for line in plain(text).split("\n")).strip("\n")
    return f"{ticks}{language}\n{lines}\n{ticks}"


def link(address: str) -> str:
    """A link to an issue; what is no web address is shown as code."""
    if not re.match(r"https?://[^/]", address):
        return code(address)
    return f"[{prose(re.sub('^https?://', '', address))}](<{quote(plain(address), safe=_SAFE_IN_ADDRESS)}>)"


def _longest_run(text: str) -> int:
    return max(map(len, re.findall("`+", text)), default=0)
