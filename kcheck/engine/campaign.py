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
from kcheck.engine.learn import learn
from kcheck.engine.outcome import result
from kcheck.engine.progress import Journal, progress_of, take_up
from kcheck.engine.search import random_rounds
from kcheck.engine.settings import Earlier, Settings
from kcheck.engine.sweep import sweep
from kcheck.engine.trouble import failed
from kcheck.engine.turn import Stop, Turn
from kcheck.errors import CouldNotCheck
from kcheck.events import (
    BugFound,
    CaseDone,
    Event,
    Notice,
    RunDone,
    RunStarted,
    TargetDone,
    TargetResult,
    TargetStarted,
    WorkerReplaced,
)
from kcheck.join import join_results
from kcheck.loader import LoadedTarget
from kcheck.store import Store

LAST_SHRINK = 10.0  # seconds that a shrink may take beyond a share of the run's time
TELL_EVERY = 0.05  # seconds
NOTE_EVERY = 2.0  # seconds
NOTE_SHARE = 50  # to note how far the run is may take 2 % of the time
_QUEUE_SIZE = 256  # the engine waits when the reports cannot keep up


class Campaign:
    """A run over targets.

    Args:
        targets: What to run, in order.
        client: The workers; stays open.
        store: Where cases and findings are kept.
        settings: Budgets and pins.
        backend: Name of the backend, for reports.
        journal: Keeps how far the run is; None: nobody does.
    """

    def __init__(
        self,
        targets: Sequence[LoadedTarget],
        client: Client,
        store: Store,
        settings: Settings,
        backend: str,
        journal: Journal | None = None,
    ) -> None:
        self._targets, self._client, self._store = targets, client, store
        self._settings = replace(settings, plan=replace(settings.plan, seed=settings.seed))
        self._backend = backend
        self._events: queue.Queue[Event | BaseException | None] = queue.Queue(_QUEUE_SIZE)
        self._stop = threading.Event()
        self._journal = journal
        self._turn: Turn | None = None
        self._results: list[TargetResult] = []
        self._began = 0.0
        self._next_note = time.monotonic() + NOTE_EVERY
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
            if isinstance(event, (BugFound, TargetDone)) or now > self._next_note:
                self._note()

    def _note(self) -> None:
        """Keep how far the run is."""
        if self._journal is None:
            return
        began = time.monotonic()
        progress = None if self._turn is None else progress_of(self._turn)
        self._journal.note(Earlier(tuple(self._results), progress, began - self._began))
        now = time.monotonic()
        self._next_note = now + max(NOTE_EVERY, NOTE_SHARE * (now - began))

    def _work(self) -> None:
        try:
            self._run_targets()
        except BaseException as error:
            self._events.put(error)
        self._events.put(None)

    def _run_targets(self) -> None:
        earlier = self._settings.earlier
        self._began = began = time.monotonic() - earlier.seconds
        self._client.on_replaced = lambda cause, seconds: self._emit(WorkerReplaced(self._current, cause, seconds))
        names = tuple(one.title for one in self._targets)
        self._emit(
            RunStarted(
                names,
                self._backend,
                self._settings.seed,
                {"kcheck": __version__, **self._client.versions},
                self._settings.shard,
                identity=self._settings.identity,
            )
        )
        results = self._results
        for done, one in enumerate(self._targets):
            if self._stop.is_set():
                break
            self._current = one.title
            self._emit(TargetStarted(one.title))
            left = self._settings.total_time - (time.monotonic() - began)
            outcome = earlier.result_of(one.title) or self._run_target(one, left / (len(self._targets) - done))
            results.append(outcome)
            self._turn = None
            self._emit(TargetDone(outcome))
        self._store.idle()
        if self._store.trouble:
            self._emit(Notice(self._store.trouble))
        if self._journal is not None and not self._stop.is_set():
            self._journal.finish()
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
        self._turn = turn
        before = settings.earlier.progress_of(one.title)
        if before is not None:
            take_up(turn, before)
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
        except OSError as error:
            failure = str(failed(error))
        if self._stop.is_set():
            self._note()  # of a turn that goes on one day
            self._journal = None
        keep_rest(turn)
        now = result(turn, tell_symptoms(turn), failure, self._stop.is_set())
        return now if before is None else join_results([before.result, now])

    def _phases(self, turn: Turn) -> None:
        learnt = learn(turn.target, turn.settings.plan)
        turn.settings = replace(turn.settings, plan=learnt.plan(turn.settings.plan))
        if turn.settings.sweep:
            sweep(turn, learnt)
        judge_saved(turn)
        random_rounds(turn, learnt.slots)
