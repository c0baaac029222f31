"""The panel of a finding."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from kcheck.case import Case
from kcheck.events import Discovery
from kcheck.findings import Finding, Kind, Severity, SourceFrame
from kcheck.reports.console import render
from kcheck.reports.panel import FindingPanel


@pytest.mark.parametrize("width", [80, 120])
def test_the_panel_as_a_whole(wild_read: Discovery, width: int, golden: Callable[[str, str], None]) -> None:
    """Golden text; and the facts that must be in it, whatever it looks like."""
    text = render(FindingPanel(wild_read), width)
    golden(f"panel-{width}.txt", text)
    lines = text.split("\n")
    assert all(len(line) <= width for line in lines)
    assert all(line == line.rstrip() for line in lines)
    for fact in (
        "out-of-view-read · block_table · kernel _gather_kernel",
        "ERROR",
        "mylib/gather.py:6, in _gather_kernel",
        "> 6 │ page = tl.load(table + request * width",
        "block_table = torch.empty((2, 16), dtype=torch.int32)[:, :3]",
        "shape (2, 3), strides (16, 1)",
        "3 lanes in 1 program",
        "program (1, 0, 0)",
        "[0, :]  ■ ■ ■ X x x ·",
        "with block_table made contiguous",
        "pool = torch.empty((4, 2, 4, 128), dtype=torch.bfloat16)[:, 0]",
        "block_size = 4, scale = 0.5, dtype = torch.bfloat16",
    ):
        assert fact in text
    assert f"    {wild_read.replay}" in lines


def test_values_culprit_and_a_shrink_that_came_to_no_end(
    mismatch: Discovery, golden: Callable[[str, str], None]
) -> None:
    """Golden text of a value mismatch whose cause is another argument's layout."""
    text = render(FindingPanel(mismatch), 80)
    golden("mismatch-80.txt", text)
    assert "8 of 16 elements of out (50.0%) differ from the oracle" in text
    assert "worst at [1, 7]: 3.5 instead of -0.25, off by 3.75, allowed 1.3e-06" in text
    assert re.search(r"\[1, 2\] +1 +nan\n", text)
    assert "block_table = torch.empty((2, 16), dtype=torch.int32)[:, :3]" in text
    assert "this is the smallest of them: not shrunk to the" in text
    assert "[1, :]  X x x x x x x x   out[1, :]" in text


def test_the_replay_command_is_never_broken(wild_read: Discovery) -> None:
    """Not even where the terminal is narrower than the command."""
    assert f"    {wild_read.replay}" in render(FindingPanel(wild_read), 20).split("\n")


def test_user_text_is_literal(wild_read: Discovery) -> None:
    """No markup is interpreted, no control character gets through."""
    source = "x = tl.load(p[:, None] + [bold]y[/bold] + [red])  # \x1b[31m \u202e :smile:"
    finding = replace(wild_read.finding, file="gone.py", source=source, message="[/] [link=x] \x1b]0;title\x07")
    text = render(FindingPanel(replace(wild_read, finding=finding)), 120)
    assert "x = tl.load(p[:, None] + [bold]y[/bold] + [red])  # \\x1b[31m \\u202e :smile:" in text
    assert "[/] [link=x] \\x1b]0;title\\x07" in text
    assert "\x1b" not in text


def test_an_edited_file_shows_the_line_as_it_was(wild_read: Discovery, source_file: Path) -> None:
    """The file's lines would be the wrong ones."""
    source_file.write_text("# a comment\n" * 20, encoding="utf-8")
    text = render(FindingPanel(wild_read), 120)
    assert "# a comment" not in text
    assert "> 6 │ page = tl.load(" in text


def test_the_call_chain(wild_read: Discovery, source_file: Path) -> None:
    """A helper that the kernel calls: the faulty line first, then who called it."""
    chain = (
        SourceFrame(str(source_file), 2, "_gather_kernel", source_file.read_text(encoding="utf-8").splitlines()[1]),
        SourceFrame(str(source_file), 6, "_load_page", wild_read.finding.source),
    )
    text = render(FindingPanel(replace(wild_read, finding=replace(wild_read.finding, chain=chain))), 120)
    assert text.index("gather.py:6, in _load_page") < text.index("called from mylib/gather.py:2, in _gather_kernel")


def test_a_finding_with_nothing_but_a_message() -> None:
    """A crash names neither argument nor line."""
    finding = Finding(Kind.CRASH, "The worker was ended by signal 11 (SIGSEGV).", Severity.ERROR)
    text = render(FindingPanel(Discovery("t", "t.py", finding, "abcdef012345", Case(n=1))), 80)
    assert "crash" in text
    assert "SIGSEGV" in text
    assert "n = 1" in text
    assert "    kcheck replay abcdef012345 --target t.py" in text.split("\n")


@pytest.mark.parametrize("severity", list(Severity))
def test_severities_read_without_colour(wild_read: Discovery, severity: Severity) -> None:
    """The word is in the title."""
    found = replace(wild_read, finding=replace(wild_read.finding, severity=severity))
    assert severity.upper() in render(FindingPanel(found), 80).split("\n")[0]
