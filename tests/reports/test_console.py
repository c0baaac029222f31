"""The console through a whole run."""

from __future__ import annotations

import io
import os
import pty
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest

from kcheck.events import (
    BugFound,
    CaseDone,
    CaseVerdict,
    Cell,
    Discovery,
    Event,
    Gone,
    Phase,
    PhaseStarted,
    RunDone,
    RunStarted,
    TargetDone,
    TargetResult,
    TargetStarted,
)
from kcheck.layout import LayoutKind
from kcheck.reports.console import ConsoleReport, make_console, render
from kcheck.reports.matrix import LayoutMatrix, rows
from kcheck.reports.progress import Progress


def shown(events: Sequence[Event], width: int = 80, color: bool | None = None) -> str:
    stream = io.StringIO()
    report = ConsoleReport(make_console(stream, width=width, color=color))
    for event in events:
        report.handle(event)
    report.close()
    return stream.getvalue()


@pytest.mark.parametrize("width", [80, 120])
def test_a_run_in_a_log(events: Sequence[Event], width: int, golden: Callable[[str, str], None]) -> None:
    """Golden text; no control codes, no progress, no trailing blanks, a summary at the end."""
    text = shown(events, width)
    golden(f"run-{width}.txt", text)
    assert "\x1b" not in text
    assert "\r" not in text
    assert "sweep" not in text
    lines = text.split("\n")
    assert all(len(line) <= width and line == line.rstrip() for line in lines)
    assert sum(line.startswith("    kcheck replay") for line in lines) == 4
    assert lines[-2] == "2 findings, 1 could not check, 2 targets, 1,505 cases in 15.5 s"
    assert any(
        line.startswith("FINDINGS  gather  1,425 cases (1,380 match, 30 rejected, 15 with findings)") for line in lines
    )
    assert "_scatter_kernel never launched" in text


@pytest.mark.parametrize("width", [80, 120])
def test_every_verdict_in_a_log(
    results: tuple[TargetResult, ...], width: int, golden: Callable[[str, str], None]
) -> None:
    """Golden text of a match, of known and gone findings, and of a target that may be skipped."""
    gather, scatter = results
    issue = "https://github.com/kernels/mylib/issues/1234"
    gone = Gone("0a1b2c3d4e5f", issue, "nondeterminism of out is gone: delete 0a1b2c3d4e5f from baseline.toml.")
    known = replace(gather.discoveries[0], known=issue)
    done = (
        TargetResult("copy", CaseVerdict.MATCH, cases={CaseVerdict.MATCH: 1}, seconds=0.5, launches={"copy_kernel": 1}),
        replace(gather, notes=(), discoveries=(known,), gone=(gone,)),
        replace(scatter, allowed=True),
    )
    events: list[Event] = [
        RunStarted(("copy", "gather", "scatter"), "interpret", 42, {"kcheck": "0.1.0"}),
        TargetDone(done[0]),
        BugFound(known),
        *(TargetDone(result) for result in done[1:]),
        RunDone(done, False, 17.0),
    ]
    text = shown(events, width)
    golden(f"verdicts-{width}.txt", text)
    lines = text.split("\n")
    assert all(len(line) <= width and line == line.rstrip() for line in lines)
    assert "no new findings, 1 known, 1 gone, 1 could not check, 3 targets, 1,506 cases in" in text


def test_each_bug_is_shown_once_and_at_once(events: Sequence[Event]) -> None:
    """The panel comes with the bug, before the target's line, and not again with the result."""
    text = shown(events)
    assert text.count("━━ ERROR out-of-view-read") == 1
    assert text.index("━━ ERROR out-of-view-read") < text.index("FINDINGS  gather")


def test_a_bug_that_only_the_result_names_is_shown(events: Sequence[Event]) -> None:
    """No panel is lost when its event was not sent."""
    assert "━━ ERROR out-of-view-read" in shown([event for event in events if type(event).__name__ != "BugFound"])


def test_interrupted(events: Sequence[Event]) -> None:
    """What was found is kept, and the console says so."""
    done = events[-1]
    assert isinstance(done, RunDone)
    text = shown([*events[:-1], replace(done, interrupted=True)])
    assert "interrupted: what was found until then is kept" in text.split("\n")[-2]


def test_nothing_found() -> None:
    """A summary without findings."""
    result = TargetResult("copy", CaseVerdict.MATCH, cases={CaseVerdict.MATCH: 1}, seconds=0.5)
    text = shown([RunDone((result,), False, 0.75)])
    assert text == "no findings, 1 target, 1 case in 0.75 s\n"


def test_no_color_and_forced_color(events: Sequence[Event], monkeypatch: pytest.MonkeyPatch) -> None:
    """``--color`` wins in a log; NO_COLOR leaves no colour behind."""
    assert "\x1b[" in shown(events, color=True)
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b" not in shown(events)
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert "\x1b[3" not in shown(events)


def test_a_stream_that_knows_only_ascii(events: Sequence[Event]) -> None:
    """Nothing raises, and the picture and the matrix stay legible."""
    stream = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    report = ConsoleReport(make_console(stream, width=80))
    for event in events:
        report.handle(event)
    stream.seek(0)
    text = stream.read()
    assert "[0, :]  # # # X x x ." in text
    assert "+ match   - rejected   X FINDING" in text


def test_progress_on_a_terminal(events: Sequence[Event], monkeypatch: pytest.MonkeyPatch) -> None:
    """A terminal sees the progress line, and gets its cursor back."""
    monkeypatch.setenv("TERM", "xterm-256color")
    ours, theirs = pty.openpty()
    chunks: list[bytes] = []

    def drain() -> None:
        try:
            while chunk := os.read(ours, 65536):
                chunks.append(chunk)
        except OSError:  # the terminal was closed
            return

    reader = threading.Thread(target=drain)
    reader.start()
    with open(theirs, "w", encoding="utf-8") as stream:
        report = ConsoleReport(make_console(stream, width=80))
        for event in events:
            report.handle(event)
        report.close()
    reader.join(timeout=5)
    os.close(ours)
    seen = b"".join(chunks).decode()
    assert "\x1b[?25l" in seen
    assert seen.rindex("\x1b[?25h") > seen.rindex("\x1b[?25l")
    assert "starting" in seen
    assert "  sweep" in seen


def test_the_progress_line() -> None:
    """Target, phase, cases of the phase, all cases, findings, in one line."""
    progress = Progress()
    progress.handle(TargetStarted("gather"))
    progress.handle(PhaseStarted("gather", Phase.SWEEP, 4))
    for _ in range(2):
        progress.handle(CaseDone("gather", Phase.SWEEP, CaseVerdict.MATCH, 0.1))
    line = render(progress, 80)
    assert "gather  sweep ━━━━━━━━━━╌╌╌╌╌╌╌╌╌╌ 2/4  2 cases" in line
    assert line.count("\n") == 1
    assert len(render(progress, 30).rstrip("\n")) <= 30


def test_the_matrix_at_80_columns() -> None:
    """All twelve kinds, a sign for each cell, long names cut."""
    row = dict(zip(LayoutKind, [*Cell, *Cell, Cell.MATCH], strict=False))
    text = render(LayoutMatrix({"block_table": row, "a_very_long_argument_name": {}}), 80)
    assert text.split("\n") == [
        "                      cont narr offs misa step padd inte tran expa dege empt far",
        "  block_table          ✓    -    ✗    ?    ·    ✓    -    ✗    ?    ·    ✓    ·",
        "  a_very_long_argume…  ·    ·    ·    ·    ·    ·    ·    ·    ·    ·    ·    ·",
        "  ✓ match   - rejected   ✗ FINDING   ? not judged: could not check, or another",
        "  finding in the way   · not tried",
        "",
    ]
    assert all(len(line) <= 80 for line in text.split("\n"))


def test_a_returned_value_of_which_no_layout_was_tried_has_no_row() -> None:
    """That of which some was tried has one."""
    assert rows({"x": {}, "return": {LayoutKind.FAR: Cell.NOT_TRIED}}) == {"x": {}}
    tried = {"return": {LayoutKind.FAR: Cell.COULD_NOT_CHECK}}
    assert rows(tried) == tried


def test_the_count_of_a_finding_that_is_shown_early_is_told_in_the_end(
    wild_read: Discovery, results: tuple[TargetResult, ...]
) -> None:
    """When the panel is printed, most cases are still to come."""
    stream = io.StringIO()
    report = ConsoleReport(make_console(stream, color=False, width=120))
    report.handle(BugFound(replace(wild_read, seen=6, related=())))
    assert "seen in 6 cases so far" in stream.getvalue()
    assert "related" not in stream.getvalue()
    report.handle(TargetDone(replace(results[0], discoveries=(replace(wild_read, seen=134),))))
    end = stream.getvalue().partition("FINDINGS")[2]
    assert "  seen       out-of-view-read · block_table · mylib/gather.py:6: in 134 cases\n" in end
    assert "  related    value-mismatch of out: 8 of 16 elements differ from the oracle.\n" in end


def test_the_matrix_in_full_words() -> None:
    """Where there is room the kinds are spelled out."""
    head = render(LayoutMatrix({"x": {}}), 120).split("\n")[0]
    assert head.split() == [kind.value for kind in LayoutKind]
