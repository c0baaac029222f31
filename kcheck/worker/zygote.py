"""The zygote: a process that has imported torch, Triton and the targets, and forks workers from that state.

A fork costs some 20 ms where a fresh start costs seconds. The zygote itself never runs a kernel and never touches
CUDA; where a target's import does, no fork would have a working CUDA, and workers are started afresh. User code writes
to standard output and standard error, which go to the log; the protocol has its own sockets.
"""

from __future__ import annotations

import contextlib
import ctypes
import faulthandler
import gc
import os
import resource
import signal
import socket
import sys
import time
from collections.abc import Sequence
from typing import Any, NoReturn

import torch

from kcheck import loader
from kcheck.errors import KcheckError, WorkerError
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
        backend_name: How it was asked for.
    """

    def __init__(self, control: Channel, backend: Backend, backend_name: str) -> None:
        self._control = control
        self._backend, self._backend_name = backend, backend_name
        self._targets: dict[str, Target] = {}
        self._children: set[int] = set()
        self._home = os.getcwd()

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
                return self._load(str(request["target"]), request["path"])
            case "fork" if fd is not None:
                return self._start_worker(fd)
            case "ended":
                return self._ended(int(request["pid"]))
        return {"error": f"unknown request {request['op']!r}"}

    def _load(self, spec: str, path: list[str]) -> dict[str, Any]:
        # The supervisor may have more places by now than it had when this process was started: pytest adds some.
        sys.path[:] = dict.fromkeys([*path, *sys.path])
        try:
            self._targets[spec] = _loaded(spec, self._home)
        except KcheckError as error:
            return {"error": str(error)}
        return {"loaded": spec}

    def _start_worker(self, fd: int) -> dict[str, Any]:
        sys.stdout.flush()
        sys.stderr.flush()
        try:
            busy = torch.cuda.is_initialized()  # type: ignore[no-untyped-call]
            pid = self._spawn(fd) if busy else self._fork(fd)
        except WorkerError as error:
            return {"error": str(error)}
        finally:
            os.close(fd)
        self._children.add(pid)
        return {"pid": pid}

    def _fork(self, fd: int) -> int:
        gc.freeze()  # what was imported stays: no worker need look through it, or copy its pages
        pid = os.fork()
        if not pid:
            self._become_worker(fd)
        return pid

    def _spawn(self, fd: int) -> int:
        """Start a worker that imports the targets itself, and wait until it has.

        Raises:
            WorkerError: It ended before.
        """
        ready, tell = os.pipe()
        os.set_inheritable(fd, True)
        os.set_inheritable(tell, True)
        os.chdir(self._home)
        command = [sys.executable, "-P", "-m", "kcheck.worker", str(fd), self._backend_name, str(tell), *self._targets]
        pid = os.posix_spawn(sys.executable, command, os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)})
        os.close(tell)
        with os.fdopen(ready, "rb") as pipe:
            if not pipe.read(1):
                code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
                raise WorkerError(
                    f"a worker that imports {', '.join(self._targets)} for itself, since that initialises CUDA, ended "
                    f"with code {code} before it was ready; see the worker's log"
                )
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
    """Have the kernel end this process when its parent ends, so that nothing outlives a killed supervisor.

    Nor does a crash leave a core file: a campaign may crash a thousand workers, each with all of torch in it.
    """
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))


def versions() -> dict[str, str]:
    """Versions of what decides results."""
    import numpy
    import triton

    return {"torch": torch.__version__, "triton": triton.__version__, "numpy": numpy.__version__}


def _loaded(spec: str, home: str) -> Target:
    """Load a target; its import finds itself where kcheck was started, and may go elsewhere for its own run."""
    os.chdir(home)
    return loader.load(spec)[0].target


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
    Zygote(control, backend, backend_name).run()


def main_of_spawned(fd: int, backend_name: str, tell: int, specs: Sequence[str]) -> None:
    """Start as a worker that was not forked.

    Args:
        fd: The worker socket's descriptor.
        backend_name: Which backend to use.
        tell: Descriptor to write to when the targets are loaded.
        specs: The targets.
    """
    die_with_parent()
    faulthandler.enable()
    faulthandler.register(signal.SIGUSR1, all_threads=False)
    backend = open_backend(backend_name)
    home = os.getcwd()
    targets = {spec: _loaded(spec, home) for spec in specs}
    os.write(tell, b"1")
    os.close(tell)
    serve(Channel(socket.socket(fileno=fd)), targets, backend)
    sys.stdout.flush()
    os._exit(0)
