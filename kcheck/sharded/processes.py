"""Shards in processes of this machine."""

from __future__ import annotations

import contextlib
import fcntl
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection, Pipe, wait
from signal import Signals
from typing import IO

from kcheck.machine import worker_environment
from kcheck.remains import MOST_LOG_BYTES
from kcheck.sharded.message import Lost, Message, is_last

MODULE = "kcheck.cli.shard_process"
LAST_WORDS_BYTES = 4096


@dataclass(frozen=True, slots=True)
class _Process:
    number: int
    process: subprocess.Popen[bytes]
    connection: Connection
    printed: IO[bytes]


class Processes:
    """Runs each shard in a process: Hypothesis is Python, and one thread of it at a time.

    Args:
        gpus: The value of ``CUDA_VISIBLE_DEVICES`` for each shard, in turn; none: that of this process.
        module: What the processes run.
    """

    def __init__(self, gpus: Sequence[str] = (), module: str = MODULE) -> None:
        self._gpus, self._module = gpus, module
        self._running: dict[Connection, _Process] = {}

    def start(self, number: int, task: object) -> None:
        """Start a shard."""
        ours, theirs = Pipe()
        printed = tempfile.TemporaryFile()  # noqa: SIM115
        fcntl.fcntl(printed, fcntl.F_SETFL, os.O_RDWR | os.O_APPEND)  # so that it can be cut while it is written
        gpu = {"CUDA_VISIBLE_DEVICES": self._gpus[number % len(self._gpus)]} if self._gpus else {}
        with theirs:
            process = subprocess.Popen(
                [sys.executable, "-P", "-m", self._module, str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=printed,
                stderr=printed,
                env=worker_environment() | gpu,
                start_new_session=True,  # a Ctrl-C in the terminal is for the process that shows the run
            )
        self._running[ours] = _Process(number, process, ours, printed)
        with contextlib.suppress(OSError):  # then it is found to be lost
            ours.send(task)

    def receive(self) -> Iterator[tuple[int, Message]]:
        """Wait until something is heard of a shard."""
        for ready in wait(list(self._running)):
            assert isinstance(ready, Connection)
            one = self._running[ready]
            try:
                message: Message = ready.recv()
            except (EOFError, OSError):
                yield one.number, Lost(self._bury(one))
                continue
            if is_last(message):
                self._bury(one)
            elif os.fstat(one.printed.fileno()).st_size > MOST_LOG_BYTES:
                os.ftruncate(one.printed.fileno(), 0)
            yield one.number, message

    def interrupt(self) -> None:
        """Have all shards end soon."""
        for connection in self._running:
            with contextlib.suppress(OSError):
                connection.send(None)

    def close(self) -> None:
        """End at once what still runs; workers see that their supervisor is gone."""
        for one in list(self._running.values()):
            one.process.kill()
            self._bury(one)

    def _bury(self, one: _Process) -> str:
        """Wait for the end of a process.

        Returns:
            How it ended.
        """
        del self._running[one.connection]
        one.connection.close()
        code = one.process.wait()
        with one.printed:
            one.printed.seek(max(0, one.printed.seek(0, os.SEEK_END) - LAST_WORDS_BYTES))
            said = one.printed.read().decode(errors="replace").strip().splitlines()
        how = f"was killed by {Signals(-code).name}" if code < 0 else f"ended with code {code}"
        return f"{how}: {said[-1]}" if said else how
