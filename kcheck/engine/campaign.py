"""A campaign: targets one after another, in a thread, told as a stream of events."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace

from kcheck import __version__
from kcheck.client import Client
from kcheck.engine.attribute import judge_saved, keep_rest, tell_symptoms
from kcheck.engine.known import replay_known
from kcheck.engine.outcome import result
from kcheck.engine.search import random_rounds
from kcheck.engine.settings import Settings
from kcheck.engine.sweep import check_pins, learn, sweep
from kcheck.engine.turn import Stop, Turn
from kcheck.errors import CouldNotCheck
from kcheck.events import CaseDone, Event, RunDone, RunStarted, TargetDone, TargetResult, TargetStarted, WorkerReplaced
from kcheck.loader import LoadedTarget
from kcheck.store import Store

LAST_SHRINK = 10.0  # seconds that a shrink may take beyond a share of the run's time
TELL_EVERY = 0.05  # seconds
_QUEUE_SIZE = 256  # the engine waits when the reports cannot keep up


class Campaign:
    """A run over targets.

    Args:
        targets: What to run, in order.
        client: The workers; stays open.
        store: Where cases and findings are kept.
        settings: Budgets and pins.
        backend: Name of the backend, for reports.
    """

    def __init__(
        self, targets: Sequence[LoadedTarget], client: Client, store: Store, settings: Settings, backend: str
    ) -> None:
        self._targets, self._client, self._store = targets, client, store
        self._settings = replace(settings, plan=replace(settings.plan, seed=settings.seed))
        self._backend = backend
        self._events: queue.Queue[Event | BaseException | None] = queue.Queue(_QUEUE_SIZE)
        self._stop = threading.Event()
        self._current = ""
        self._untold: list[Event] = []
        self._told = 0.0

    def interrupt(self) -> None:
        """End the run soon; what was found is kept and reported."""
        self._stop.set()
        self._client.interrupt()

    def run(self) -> Iterator[Event]:
        """Run, and yield events until `RunDone`.

        Raises:
            KcheckError: The run itself failed (no worker could be started, say).
        """
        thread = threading.Thread(target=self._work, name="kcheck engine", daemon=True)
        thread.start()
        try:
            while (event := self._events.get()) is not None:
                if isinstance(event, BaseException):
                    raise event
                yield event
        finally:
            self._stop.set()

    def _emit(self, event: Event) -> None:
        """Tell of an event; of fast cases many at a time, since each waking of the other thread costs 50 µs."""
        self._untold.append(event)
        now = time.monotonic()
        if not isinstance(event, CaseDone) or now > self._told + TELL_EVERY:
            self._told = now
            told, self._untold = self._untold, []
            for one in told:
                self._events.put(one)

    def _work(self) -> None:
        try:
            self._run_targets()
        except BaseException as error:
            self._events.put(error)
        self._events.put(None)

    def _run_targets(self) -> None:
        began = time.monotonic()
        check_pins([one.target for one in self._targets], self._settings.plan)
        self._client.on_replaced = lambda cause, seconds: self._emit(WorkerReplaced(self._current, cause, seconds))
        names = tuple(one.title for one in self._targets)
        self._emit(
            RunStarted(names, self._backend, self._settings.seed, {"kcheck": __version__, **self._client.versions})
        )
        results: list[TargetResult] = []
        for done, one in enumerate(self._targets):
            if self._stop.is_set():
                break
            self._current = one.title
            self._emit(TargetStarted(one.title))
            left = self._settings.total_time - (time.monotonic() - began)
            results.append(self._run_target(one, left / (len(self._targets) - done)))
            self._emit(TargetDone(results[-1]))
        self._store.idle()
        self._emit(RunDone(tuple(results), self._stop.is_set(), time.monotonic() - began))

    def _run_target(self, one: LoadedTarget, share: float) -> TargetResult:
        """Run a target.

        Args:
            one: The target.
            share: Seconds that it has of what is left of the run's time.
        """
        settings = self._settings
        if share < settings.max_time:
            settings = replace(settings, max_time=share, shrink_time=min(settings.shrink_time, LAST_SHRINK))
        turn = Turn(one, self._client, self._store, settings, self._emit, self._stop.is_set)
        failure = ""
        try:
            if share <= 0:
                raise CouldNotCheck("the run's time was up before this target's turn; give it more --total-time")
            self._client.load(one.spec)
            turn.start()
            replay_known(turn)
            self._phases(turn)
        except Stop:
            pass
        except CouldNotCheck as error:
            failure = str(error)
        keep_rest(turn)
        return result(turn, tell_symptoms(turn), failure, self._stop.is_set())

    def _phases(self, turn: Turn) -> None:
        if self._settings.sweep:
            sweep(turn)
        judge_saved(turn)
        first = learn(turn.target, turn.settings.plan)
        random_rounds(turn, first.record.learn_slots(first.case.drawn))
