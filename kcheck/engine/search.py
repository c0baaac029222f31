"""Phase 2, random cases in rounds, and shrinking: each round raises one bug, as its own exception class."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from unittest import SkipTest
from zlib import crc32

from hypothesis import Phase as HypothesisPhase
from hypothesis import given, seed, settings
from hypothesis.database import ExampleDatabase
from hypothesis.errors import Flaky, Unsatisfiable

from kcheck.case import Case
from kcheck.engine.attribute import discover, is_explained
from kcheck.engine.draw import QUIET, Drawn, flaky, planned
from kcheck.engine.examples import Examples
from kcheck.engine.scout import scout
from kcheck.engine.trouble import let_through, telling
from kcheck.engine.turn import Stop, Turn
from kcheck.events import Phase, PhaseStarted
from kcheck.fill import hashed
from kcheck.findings import Finding, Kind
from kcheck.plan import Plan, Slots
from kcheck.shard import takes
from kcheck.weight import weight

CHUNK = 5000  # random cases that are drawn in one go
PURSUIT_EXAMPLES = 100  # random tries to meet a known bug again, for Hypothesis to shrink
SMALL_SIZES = 8
_Phases = tuple[HypothesisPhase, ...]
_SAVED: _Phases = (HypothesisPhase.reuse, HypothesisPhase.shrink)  # what failed in an earlier run
# Without reuse Hypothesis saves nothing.
_DRAWN: _Phases = (HypothesisPhase.reuse, HypothesisPhase.generate, HypothesisPhase.shrink)


class _Found(Exception):
    """Base of the exceptions that tell Hypothesis of a bug; each bug has a class of its own."""


class _Unread(ExampleDatabase):
    """A database that is written only, so that what an earlier run saved does not change what is drawn."""

    def __init__(self, written: ExampleDatabase) -> None:
        super().__init__()
        self._written = written

    def fetch(self, key: bytes) -> Iterable[bytes]:
        """Nothing."""
        return ()

    def save(self, key: bytes, value: bytes) -> None:
        """Save a value."""
        self._written.save(key, value)

    def delete(self, key: bytes, value: bytes) -> None:
        """Delete a value."""
        self._written.delete(key, value)


class _Saved(ExampleDatabase):
    """What earlier runs saved. Hypothesis deletes what does not fail; here only what shows nothing any more goes.

    Args:
        kept: The database.
        one: Of whose cases; a bug that the run knows fails none of them.
    """

    def __init__(self, kept: ExampleDatabase, one: _Round) -> None:
        super().__init__()
        self._kept, self._round = kept, one

    def fetch(self, key: bytes) -> Iterable[bytes]:
        """Values of a key, those that are of this shard."""
        part = self._round.turn.settings.part
        return (value for value in self._kept.fetch(key) if takes(part, crc32(value)))

    def save(self, key: bytes, value: bytes) -> None:
        """Save a value."""
        self._kept.save(key, value)

    def move(self, src: bytes, dest: bytes, value: bytes) -> None:
        """Move a value to another key."""
        self._kept.move(src, dest, value)

    def delete(self, key: bytes, value: bytes) -> None:
        """Delete a value, unless the case run last shows anything."""
        if not self._round.shows:
            self._kept.delete(key, value)


class _Round:
    """One Hypothesis run that looks for one bug.

    Args:
        turn: The target's turn.
        goal: The bug to look for; None takes the first new one.

    Attributes:
        best: The smallest case met, or Hypothesis's choice when it is done.
        shows: The case run last shows a bug, be it known.
    """

    def __init__(self, turn: Turn, goal: Finding | None = None) -> None:
        self.turn = turn
        self.best: tuple[Finding, Case] | None = None
        self.shows = False
        self._last: tuple[Finding, Case] | None = None
        self._raises: type[_Found] | None = None
        self._fingerprint, self._rank = "", 0
        if goal is not None:
            self._aim(goal)

    def _aim(self, goal: Finding) -> None:
        self._fingerprint, self._rank = self.turn.fingerprint(goal), goal.severity.rank
        self._raises = type(f"Found_{self._fingerprint}", (_Found,), {})

    def test(self, drawn: Drawn) -> None:
        """Judge one case; raise if it shows the goal."""
        with let_through():
            self._test(drawn)

    def _test(self, drawn: Drawn) -> None:
        judgement = self.turn.judge(drawn.case)
        self.shows = bool(judgement.findings)
        if self._raises is None:
            news = [f for f in self.turn.news(drawn.case, judgement) if not is_explained(self.turn, f, drawn.case)]
            if not news:
                return
            self._aim(news[0])
            self.turn.phase = Phase.SHRINK
            self.turn.deadline = max(self.turn.deadline, time.monotonic() + self.turn.settings.shrink_time)
            self.turn.emit(PhaseStarted(self.turn.title, Phase.SHRINK))
        finding = self.turn.showing(judgement, self._fingerprint, self._rank)
        if finding is not None and self._raises is not None:
            self._last = finding, drawn.case
            if self.best is None or weight(drawn.case) < weight(self.best[1]):
                self.best = self._last
            raise self._raises

    def run(
        self,
        plan: Plan,
        slots: Slots,
        examples: int,
        database: ExampleDatabase | None = None,
        phases: _Phases = _DRAWN,
    ) -> bool:
        """Draw until the goal is met and shrunk, or the examples are used up.

        Returns:
            Shrinking came to its end.

        Raises:
            Stop: The budget is used up; `best` holds what was found until then.
            SpecError: The case strategy failed.
            KcheckError: The machine failed.
        """
        # In this order: a seed takes the database away from the settings that a test has.
        test = seed(self.turn.seed)(given(planned(self.turn.target, plan, slots))(self.test))
        test = settings(max_examples=examples, database=database, phases=phases, **QUIET)(test)
        try:
            with telling():
                test()
        except (_Found, Flaky):
            if self._last is None:
                raise flaky(self.turn.target) from None
            self.best = self._last  # Hypothesis runs its minimal example once more at the end
            return True
        except (Unsatisfiable, SkipTest):  # no case can be drawn; none was saved
            return False
        return False


def pursue(turn: Turn, finding: Finding, plan: Plan, slots: Slots) -> None:
    """Shrink a finding that the sweep met: let Hypothesis meet it again under the same layout pins.

    Args:
        turn: The target's turn.
        finding: What was met.
        plan: Pins under which it was met; dimensions are free.
        slots: Argument of each tensor draw.

    Raises:
        Stop: The budget is used up; the finding is kept all the same.
    """
    turn.phase = Phase.SHRINK
    turn.emit(PhaseStarted(turn.title, Phase.SHRINK))
    one = _Round(turn, finding)
    with _shrinking_time(turn, finding):
        try:
            # Nearly every bug shows at small sizes, where a case costs a fraction.
            minimal = one.run(replace(plan, most=SMALL_SIZES), slots, PURSUIT_EXAMPLES)
            minimal = minimal or one.run(plan, slots, PURSUIT_EXAMPLES)
        except Stop:
            _keep(turn, one, finding, minimal=False)
            raise
    _keep(turn, one, finding, minimal)


def random_rounds(turn: Turn, slots: Slots) -> None:
    """Draw random cases until the budget is used up, so many at a time that their number has no end.

    Raises:
        Stop: The budget is used up, or the user stopped the run.
    """
    left = _rounds(turn, slots, _SAVED, turn.settings.max_examples - turn.first_draw)
    chunk = -(-turn.first_draw // CHUNK)
    while left > 0:
        if chunk:  # Hypothesis remembers what it drew, and so do we
            turn.forget()
            turn.seed = hashed(turn.settings.random_seed, chunk)
        before, size = turn.drawn, min(left, CHUNK)
        _rounds(turn, slots, _DRAWN, size)
        if turn.drawn - before < 0.9 * size:  # there are no more
            break
        left, chunk = left - size, chunk + 1
    for bug in list(turn.bugs.values()):  # seen while another one was shrunk
        if turn.is_news(bug.case, bug.finding) and not is_explained(turn, bug.finding, bug.case):
            pursue(turn, bug.finding, turn.settings.plan, slots)


def _rounds(turn: Turn, slots: Slots, phases: _Phases, left: int) -> int:
    """Draw random cases in rounds; each ends with one more bug, the last one with none.

    Returns:
        How many of the cases were not drawn.

    Raises:
        Stop: The budget is used up, or the user stopped the run.
    """
    plan = turn.settings.plan
    database = Examples(turn.store.examples(turn.spec), turn.settings.began)
    while left > 0:
        turn.phase = Phase.RANDOM
        turn.emit(PhaseStarted(turn.title, Phase.RANDOM, left))
        before, deadline = turn.drawn, turn.deadline
        if phases == _DRAWN and not scout(turn, plan, slots, left):
            break
        turn.drawn = before  # the round draws the same cases
        one = _Round(turn)
        view = _Saved(database, one) if phases == _SAVED else _Unread(database)
        try:
            minimal = one.run(plan, slots, left, view, phases)
        except Stop:
            _keep(turn, one, None, minimal=False)
            raise
        turn.deadline = deadline
        if one.best is None:
            break
        _keep(turn, one, None, minimal)
        left -= max(1, turn.drawn - before)
    return left


def _keep(turn: Turn, one: _Round, met: Finding | None, minimal: bool) -> None:
    """Make a discovery of a round's best case, or of the best case seen at all."""
    if one.best is not None:
        discover(turn, *one.best, minimal)
    elif met is not None:
        bug = turn.bugs[turn.fingerprint(met)]
        discover(turn, bug.finding, bug.case, minimal)


@contextmanager
def _shrinking_time(turn: Turn, finding: Finding) -> Iterator[None]:
    """Time of its own for a shrink; a bug that shows as a timeout is shrunk under a shorter one."""
    deadline, timeout = turn.deadline, turn.client.case_timeout
    turn.deadline = max(deadline, time.monotonic() + turn.settings.shrink_time)
    if finding.kind is Kind.TIMEOUT:
        turn.client.case_timeout = min(timeout, turn.patience)
    try:
        yield
    finally:
        turn.deadline, turn.client.case_timeout = deadline, timeout
