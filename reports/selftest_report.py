"""What a self-test comes to: recall by mechanism, false alarms."""

from __future__ import annotations

import statistics
from collections.abc import Iterable

from rich.box import SIMPLE_HEAD
from rich.console import Console, ConsoleOptions, RenderResult
from rich.table import Table
from rich.text import Text

from kcheck.recall import Outcome, SelfTestResult, TargetOutcome
from kcheck.reports.fact import Hanging
from kcheck.reports.wording import counted, duration, plain

_STYLES = {Outcome.WRONG: "bold red", Outcome.COULD_NOT_CHECK: "bold magenta"}


class SelfTestView:
    """A renderable: a table of mechanisms, what went wrong, a summary.

    Args:
        result: Of the self-test.
        verbose: Also say how each bug was found.
    """

    def __init__(self, result: SelfTestResult, *, verbose: bool = False) -> None:
        self._result = result
        self._verbose = verbose

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        result = self._result
        yield _table(result)
        for one in result.outcomes:
            if self._verbose and one.mechanism and one.outcome is Outcome.RIGHT:
                yield Hanging(f"{one.target}, {_effort(one)}: {one.message}", rest="  ")
            if one.outcome in _STYLES:
                word = Text(one.outcome.value, _STYLES[one.outcome])
                yield Hanging(
                    Text.assemble(word, f"  {plain(f'{one.target}, {_effort(one)}: {one.message}')}"), rest="  "
                )
        yield Hanging(Text(summary(result), "bold"))


def summary(result: SelfTestResult) -> str:
    """The result in one sentence."""
    tried = [one for one in result.faulty if one.outcome is not Outcome.LEFT_OUT]
    found = [one for one in tried if one.outcome is Outcome.RIGHT]
    alarms = sum(one.outcome is Outcome.WRONG for one in result.correct)
    cases = sum(one.cases for one in result.correct)
    first = f", the median one in {duration(statistics.median(one.seconds for one in found))}" if found else ""
    unchecked = sum(1 for _ in result.unchecked())
    correct = counted(len(result.correct), "correct target")
    parts = [
        f"{result.backend}: found {len(found)} of {counted(len(tried), 'known bug')}{first}",
        f"{counted(alarms, 'false alarm')} in {counted(cases, 'case')} of {correct}",
        *([f"{unchecked} could not be checked"] if unchecked else []),
        duration(result.seconds),
    ]
    return "; ".join(parts)


def _table(result: SelfTestResult) -> Table:
    table = Table("mechanism", box=SIMPLE_HEAD, show_edge=False, pad_edge=False)
    for column in ("found", "of", "most cases", "most seconds"):
        table.add_column(column, justify="right")
    for mechanism in dict.fromkeys(one.mechanism for one in result.faulty):
        same = [one for one in result.faulty if one.mechanism == mechanism and one.outcome is not Outcome.LEFT_OUT]
        if same:
            found = [one for one in same if one.outcome is Outcome.RIGHT]
            style = "" if len(found) == len(same) else "bold red"
            cases = _most(one.cases for one in found)
            seconds = f"{max(one.seconds for one in found):.2f}" if found else ""
            table.add_row(mechanism, str(len(found)), str(len(same)), cases, seconds, style=style)
    return table


def _most(counts: Iterable[int]) -> str:
    return str(max(counts, default=""))


def _effort(one: TargetOutcome) -> str:
    return f"{counted(one.cases, 'case')} in {duration(one.seconds)}"
