"""A process that runs one shard: ``python -m kcheck.cli.shard_process FD``, started by `kcheck.sharded`.

It is told what to do, tells the events, and ends early when the other side says so or is gone.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from multiprocessing.connection import Connection

from kcheck.cli import internal_error
from kcheck.cli.search import Run, Search, interruptible, started
from kcheck.errors import KcheckError
from kcheck.events import CaseDone, Event
from kcheck.sharded.message import Refused, Told

_leave = os._exit  # while a target is imported, there is another in its place
TELL_EVERY = 0.05  # seconds; to tell of each case alone would cost as much as to draw one


def main() -> None:
    """Do what comes over the connection, and end the process."""
    connection = Connection(int(sys.argv[1]))
    search = connection.recv()
    assert isinstance(search, Search)
    listener = _Listener(connection)
    try:
        with started(search) as run, interruptible(run):
            listener.begin(run)
            for events in _gathered(run, with_cases=search.with_cases):
                connection.send(Told(events))
    except BrokenPipeError:  # nobody wants to know
        pass
    except KcheckError as error:
        connection.send(Refused(error.exit_code, str(error)))
    except Exception as error:
        connection.send(Refused(KcheckError.exit_code, internal_error(error)))
    _leave(0)  # what a target's import leaves behind must not decide


class _Listener:
    """Waits for the word to stop, or for the end of the process that could say it."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._lock = threading.Lock()
        self._run: Run | None = None
        threading.Thread(target=self._listen, name="kcheck shard", daemon=True).start()

    def begin(self, run: Run) -> None:
        """From now on there is a run to stop."""
        with self._lock:
            self._run = run

    def _listen(self) -> None:
        with contextlib.suppress(EOFError, OSError):
            self._connection.recv()
        with self._lock:
            if self._run is None:
                _leave(0)
            self._run.interrupt()


def _gathered(run: Run, *, with_cases: bool) -> Iterator[tuple[Event, ...]]:
    """The events, many at a time; cases themselves only if somebody wants to see them."""
    events: list[Event] = []
    told = time.monotonic()
    for event in run.events:
        if isinstance(event, CaseDone) and not with_cases:
            event = replace(event, case=None)
        events.append(event)
        if not isinstance(event, CaseDone) or time.monotonic() > told + TELL_EVERY:
            yield tuple(events)
            events, told = [], time.monotonic()


if __name__ == "__main__":
    main()
