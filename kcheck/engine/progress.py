"""How far a run is, so that one that was killed can go on where it was."""

from __future__ import annotations

from dataclasses import replace
from typing import Protocol

from kcheck.engine.outcome import result
from kcheck.engine.settings import Earlier, Progress
from kcheck.engine.turn import Bug, Turn
from kcheck.events import BugFound
from kcheck.join import join_results


class Journal(Protocol):
    """Keeps how far a run is."""

    def note(self, state: Earlier) -> None:
        """Keep it, in place of what was kept before."""

    def finish(self) -> None:
        """The run has come to its end: nothing is to be taken up."""


def progress_of(turn: Turn) -> Progress:
    """How far a turn is, and what an earlier run did of it."""
    before = turn.before
    found = [
        replace(one, seen=turn.bugs[one.fingerprint].seen, related=tuple(turn.related.get(one.fingerprint, ())))
        for one in turn.discoveries.values()
    ]
    seen = [
        replace(turn.discovery(bug.finding, bug.case), seen=bug.seen, layout_kinds=tuple(sorted(bug.kinds)))
        for fingerprint, bug in turn.bugs.items()
        if fingerprint not in turn.discoveries and fingerprint not in turn.symptoms
    ]
    now = result(turn, tuple(found), "", interrupted=False)
    assert now.evidence is not None
    # It is no part of its own, and plans no more of the sweep than it ran.
    now = replace(now, evidence=replace(now.evidence, shards=0, swept=(turn.swept[0], turn.swept[0])))
    return Progress(
        join_results([before.result, now]) if before is not None else now,
        tuple(seen),
        turn.first_step + turn.swept[0],
        turn.first_draw + turn.drawn,
    )


def take_up(turn: Turn, before: Progress) -> None:
    """Have a turn go on where an earlier run was: what is known is neither shrunk again nor forgotten.

    Args:
        turn: A turn that has not begun.
        before: Of the earlier run.
    """
    turn.before = before
    turn.settings = replace(turn.settings, max_time=max(0.0, turn.settings.max_time - before.result.seconds))
    for one in before.seen:
        turn.bugs[one.fingerprint] = Bug(one.finding, one.case, set(one.layout_kinds), one.seen)
    for found in filter(lambda one: one.seen, before.result.discoveries):  # what was not launched is told again
        turn.bugs[found.fingerprint] = Bug(found.finding, found.case, set(found.layout_kinds))
        turn.discoveries[found.fingerprint] = found
        turn.symptoms |= {symptom.fingerprint(turn.target.name): found.culprit for symptom in found.related}
        turn.emit(BugFound(found))
