"""From a run's events to its exit code: what fails it, and what is allowed to be skipped."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from kcheck.errors import UsageError

if TYPE_CHECKING:
    from kcheck.events import Event, RunDone, TargetResult
    from kcheck.loader import LoadedTarget

ALL = "all"


def check_skips(names: Iterable[str], selected: Sequence[LoadedTarget]) -> None:
    """Check that ``--allow-skip`` names targets of this run: a typing error must not look like an agreement.

    Raises:
        UsageError: A name is of no target.
    """
    check_names(names, {name for one in selected for name in (one.target.name, one.spec)})


def check_names(names: Iterable[str], known: Collection[str]) -> None:
    """Check that ``--allow-skip`` names what there is.

    Args:
        names: What it names.
        known: Names of targets.

    Raises:
        UsageError: A name is of no target.
    """
    for name in names:
        if name not in known and name != ALL:
            raise UsageError(
                f"--allow-skip {name}: no target of this run has that name; known: {', '.join(sorted(known))}, or {ALL}"
            )


def allowed_result(result: TargetResult, own: Collection[str], names: Iterable[str]) -> TargetResult:
    """The result, marked if it may be skipped.

    Args:
        result: Of a target.
        own: Names of the target.
        names: What ``--allow-skip`` names.
    """
    return replace(result, allowed=result.allowed or (_is_unchecked(result) and bool({*own, ALL} & {*names})))


def allowing(events: Iterable[Event], names: Sequence[str], selected: Sequence[LoadedTarget]) -> Iterator[Event]:
    """The events, with the results of skipped targets marked that may be skipped.

    Args:
        events: Of the run.
        names: Names of targets, as in reports or as the user names them, or ``all``.
        selected: The targets of the run.
    """
    from kcheck.events import RunDone, TargetDone

    allowed = {one.title for one in selected if {one.target.name, one.spec, ALL} & set(names)}

    def marked(result: TargetResult) -> TargetResult:
        return replace(result, allowed=_is_unchecked(result) and result.name in allowed)

    for event in events:
        match event:
            case TargetDone(result):
                yield TargetDone(marked(result))
            case RunDone(results):
                yield replace(event, results=tuple(map(marked, results)))
            case _:
                yield event


def exit_code(done: RunDone, fail_on: str = "error") -> int:
    """The exit code of a run.

    Args:
        done: Its last event.
        fail_on: Mildest severity that counts as a finding.
    """
    from kcheck.findings import Severity

    if done.interrupted:
        return 130
    limit = Severity(fail_on).rank
    news = (d for result in done.results for d in result.discoveries if not d.known)
    if any(d.finding.severity.rank <= limit for d in news) or any(result.gone for result in done.results):
        return 1
    return 3 if any(_is_unchecked(result) and not result.allowed for result in done.results) else 0


def _is_unchecked(result: TargetResult) -> bool:
    from kcheck.events import CaseVerdict

    return bool(result.reasons) or result.verdict is CaseVerdict.COULD_NOT_CHECK
