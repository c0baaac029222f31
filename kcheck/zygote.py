"""The supervisor's side of the zygote: starts it, asks it, and says what it left if it is gone."""

from __future__ import annotations

import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

from kcheck.errors import UsageError, WorkerError
from kcheck.machine import worker_environment
from kcheck.protocol import PROTOCOL_VERSION, Channel, ChannelClosed, ChannelTimeout
from kcheck.remains import WorkerLog

START_TIMEOUT_S = 120.0


class Zygote:
    """The process that has imported torch and the targets, and forks workers.

    Args:
        backend: Where kernels run.
        log: File for what user code prints.

    Attributes:
        log: What it and its workers print.
        pid: Its process.

    Raises:
        UsageError: The log cannot be written.
    """

    def __init__(self, backend: str, log: Path) -> None:
        ours, theirs = socket.socketpair()
        try:
            output = log.open("ab")
        except OSError as error:
            raise UsageError(f"cannot write to {log}: {error.strerror}; choose another place with --dir") from None
        self.log = WorkerLog(log, output.tell())
        with output, theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", "kcheck.worker", str(theirs.fileno()), backend],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env=worker_environment(),
                start_new_session=True,  # a Ctrl-C in the terminal is for the supervisor alone
            )
        self._control = Channel(ours)
        self.pid = self._process.pid
        self._ready: dict[str, Any] | None = None

    def wait_ready(self) -> dict[str, Any]:
        """What it says once it has imported torch.

        Raises:
            WorkerError: It could not be started.
        """
        if self._ready is None:
            self._ready = self._receive()
            if self._ready.get("protocol") != PROTOCOL_VERSION:
                raise WorkerError("the worker is of another kcheck version; reinstall kcheck")
        return self._ready

    def request(self, message: dict[str, Any]) -> dict[str, Any]:
        """Ask, once it is ready.

        Raises:
            WorkerError: It is gone, or cannot do it.
        """
        return self._ask(message, ())

    def fork(self) -> tuple[int, Channel]:
        """Another worker: its process, and the channel to it.

        Raises:
            WorkerError: It cannot be had.
        """
        ours, theirs = socket.socketpair()
        with theirs:
            pid = int(self._ask({"op": "fork"}, (theirs.fileno(),))["pid"])
        return pid, Channel(ours)

    def close(self) -> None:
        """End it, and with it all workers."""
        self._control.close()
        if self._ready is None:  # it still imports torch, and has no workers
            self._process.kill()
        try:
            self._process.wait(2.0)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _ask(self, message: dict[str, Any], fds: tuple[int, ...]) -> dict[str, Any]:
        self.wait_ready()
        try:
            self._control.send(message, fds)
        except ChannelClosed:
            raise self._dead() from None
        return self._receive()

    def _receive(self) -> dict[str, Any]:
        try:
            answer = self._control.receive(START_TIMEOUT_S)
        except ChannelTimeout:
            raise WorkerError(f"the worker process did not answer within {START_TIMEOUT_S:g} s") from None
        except ChannelClosed:
            raise self._dead() from None
        if "error" in answer:
            raise WorkerError(str(answer["error"]))
        return answer

    def _dead(self) -> WorkerError:
        """It is gone: say what it left in the log."""
        code = self._process.wait()
        return WorkerError(f"the worker process ended with code {code}: {self.log.last_line() or 'it left no message'}")
