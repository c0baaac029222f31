"""The zygote: a process that has imported torch, Triton and the targets, and forks workers from that state.

A fork costs some 20 ms where a fresh start costs seconds. The zygote itself never runs a kernel and never touches
CUDA. User code writes to standard output and standard error, which go to the log; the protocol has its own sockets.
"""

from __future__ import annotations

import contextlib
import ctypes
import faulthandler
import os
import signal
import socket
import sys
import time
from typing import Any, NoReturn

import torch

from kcheck import loader
from kcheck.errors import KcheckError
from kcheck.protocol import PROTOCOL_VERSION, Channel, ChannelClosed
from kcheck.target import Target
from kcheck.worker.backends import open_backend
from kcheck.worker.backends.base import Backend
from kcheck.worker.serve import serve

_PR_SET_PDEATHSIG = 1
_EXIT_WAIT_S = 2.0


class Zygote:
    """Answers the supervisor on the control channel.

    Args:
        control: To the supervisor.
        backend: Where kernels run.
    """

    def __init__(self, control: Channel, backend: Backend) -> None:
        self._control = control
        self._backend = backend
        self._targets: dict[str, Target] = {}
        self._children: set[int] = set()

    def run(self) -> None:
        """Serve until the supervisor hangs up; then end every worker."""
        self._control.send({"ready": True, "protocol": PROTOCOL_VERSION, "versions": versions()})
        try:
            while True:
                request, fd = self._control.receive_with_fd()
                self._control.send(self._answer(request, fd))
        except ChannelClosed:
            for pid in self._children:
                _kill(pid)

    def _answer(self, request: dict[str, Any], fd: int | None) -> dict[str, Any]:
        match request["op"]:
            case "load":
                return self._load(str(request["target"]))
            case "fork" if fd is not None:
                return {"pid": self._fork(fd)}
            case "ended":
                return self._ended(int(request["pid"]))
        return {"error": f"unknown request {request['op']!r}"}

    def _load(self, spec: str) -> dict[str, Any]:
        try:
            self._targets[spec] = loader.load(spec)[0].target
        except KcheckError as error:
            return {"error": str(error)}
        if torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
            return {
                "error": f"{spec} initialises CUDA when it is imported, so no worker can be forked; move the work "
                "that needs the GPU into functions"
            }
        return {"loaded": spec}

    def _fork(self, fd: int) -> int:
        sys.stdout.flush()
        sys.stderr.flush()
        pid = os.fork()
        if not pid:
            self._become_worker(fd)
        os.close(fd)
        self._children.add(pid)
        return pid

    def _become_worker(self, fd: int) -> NoReturn:
        """In the child: serve, and never return into the zygote's own loop."""
        status = 1
        try:
            die_with_parent()
            self._control.close()
            serve(Channel(socket.socket(fileno=fd)), self._targets, self._backend)
            status = 0
        finally:
            sys.stdout.flush()
            os._exit(status)

    def _ended(self, pid: int) -> dict[str, Any]:
        """How a worker ended; it gets a moment to do so, and is killed if it does not."""
        end = time.monotonic() + _EXIT_WAIT_S
        killed = False
        while True:
            done, status = os.waitpid(pid, os.WNOHANG)
            if done:
                self._children.discard(pid)
                code = os.waitstatus_to_exitcode(status)
                return {"code": code, "killed": killed}
            if time.monotonic() > end and not killed:
                _kill(pid)
                killed = True
            time.sleep(0.001)


def die_with_parent() -> None:
    """Have the kernel end this process when its parent ends, so that nothing outlives a killed supervisor."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def versions() -> dict[str, str]:
    """Versions of what decides results."""
    import numpy
    import triton

    return {"torch": torch.__version__, "triton": triton.__version__, "numpy": numpy.__version__}


def _kill(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def main(fd: int, backend_name: str) -> None:
    """Start as the zygote.

    Args:
        fd: The control socket's descriptor.
        backend_name: Which backend the workers use.
    """
    die_with_parent()
    faulthandler.enable()
    faulthandler.register(signal.SIGUSR1, all_threads=False)
    control = Channel(socket.socket(fileno=fd))
    try:
        backend = open_backend(backend_name)
    except KcheckError as error:
        control.send({"error": str(error)})
        return
    except ImportError as error:
        control.send(
            {"error": f"cannot import {error.name}: {error}; install torch and triton, then run kcheck doctor"}
        )
        return
    Zygote(control, backend).run()
