"""What a run over mutants comes to: the score, and what the target would not notice."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.text import Text

from kcheck.mutation import Fate, MutantResult, MutationScore
from kcheck.reports.fact import Hanging, unwrapped
from kcheck.reports.wording import counted, duration, nearest_path, plain

_MARGIN = "    "
_STYLES = {Fate.KILLED: "green", Fate.SURVIVED: "bold yellow", Fate.INVALID: "dim"}


class MutationView:
    """A renderable: the survivors as diffs, then the score. Print it with ``crop=False``: lines of source never wrap.

    Args:
        score: Of the run.
        verbose: Also tell of mutants that were killed, or cannot run.
    """

    def __init__(self, score: MutationScore, *, verbose: bool = False) -> None:
        self._score = score
        self._fates = (*((Fate.KILLED, Fate.INVALID) if verbose else ()), Fate.SURVIVED)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        score = self._score
        for fate in self._fates:
            for result in score.of(fate):
                yield from _mutant(result)
        yield Hanging(_summary(score))
        if score.of(Fate.SURVIVED):
            yield Hanging(
                f"A survivor is a bug that {counted(score.cases, 'case')} would not show, or a change that makes no "
                "difference: only you can tell. Draw what would show it, or leave it."
            )


def heading_of(score: MutationScore) -> str:
    """The result in one number: ``killed 52 of 71 mutants (73 %)``."""
    if score.score is None:
        return "no mutant could be judged"
    return f"killed {score.killed} of {counted(score.judged, 'mutant')} ({int(score.score * 100)} %)"


def _summary(score: MutationScore) -> Text:
    parts = []
    if survived := len(score.of(Fate.SURVIVED)):
        parts.append(f"{survived} survived")
    if invalid := len(score.of(Fate.INVALID)):
        parts.append(f"{invalid} more cannot run")
    if left := score.made - len(score.results):
        why = "not tried: interrupted" if score.interrupted else "left out by --max-mutants"
        parts.append(f"{left} of {score.made} {why}")
    parts.append(duration(score.seconds))
    functions = ", ".join(score.functions)
    return Text.assemble(
        (f"{plain(score.target)}: {heading_of(score)}", "bold"), f" of {functions}; {', '.join(parts)}"
    )


def _mutant(result: MutantResult) -> Iterator[RenderableType]:
    mutant = result.mutant
    where = f"{nearest_path(mutant.file)}:{mutant.line}, in {mutant.mutation.qualname}"
    yield Hanging(Text.assemble((result.fate.value, _STYLES[result.fate]), f"  {mutant.operator}  {where}"), rest="  ")
    for sign, lines, color in (("-", mutant.before, "red"), ("+", mutant.after, "green")):
        for line in lines:
            yield unwrapped(Text(f"{_MARGIN}{sign} {plain(line)}", color))
    if not result.ran:
        yield Hanging("no case runs this code", _MARGIN, _MARGIN)
    if result.message:
        kind = f"{result.kind}: " if result.kind else ""
        yield Hanging(f"{kind}{result.message}", _MARGIN, _MARGIN)
    yield Text()
