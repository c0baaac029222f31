"""Shards on a Ray cluster: Ray decides where each runs, and gives it a GPU of its own."""

from __future__ import annotations

import contextlib
import logging
import os
import socket
from collections.abc import Iterator
from importlib import import_module
from typing import Any

from kcheck.errors import CouldNotCheck, UsageError
from kcheck.sharded.message import Lost, Message, is_last
from kcheck.sharded.processes import Processes


class _Shard:
    """A Ray actor with one shard in a process of its own, whose threads and signals are no business of Ray's.

    Args:
        folder: The project's, the same on all machines.
        task: What the shard is to do.
    """

    def __init__(self, folder: str, task: object) -> None:
        os.chdir(folder)
        self._processes = Processes()
        self._processes.start(0, task)

    def receive(self) -> list[Message]:
        """Wait until something is heard of it."""
        return [message for _, message in self._processes.receive()]

    def interrupt(self) -> None:
        """Have it end soon."""
        self._processes.interrupt()


class RayCluster:
    """Runs shards as actors of a Ray cluster. All its machines see the project under the same path.

    Args:
        address: Of the cluster; ``auto``: the one that this machine belongs to.
        on_gpu: Each shard needs a GPU.

    Raises:
        UsageError: Ray is not installed.
        CouldNotCheck: There is no such cluster, or it has no GPU.
    """

    def __init__(self, address: str, *, on_gpu: bool) -> None:
        try:
            ray: Any = import_module("ray")
        except ImportError:
            raise UsageError("--ray needs Ray; pip install 'kcheck[ray]'") from None
        self._ray = ray
        try:
            _check_answers(address)  # Ray itself waits for minutes
            ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR, configure_logging=False)
        except (OSError, ValueError, RuntimeError) as error:
            raise CouldNotCheck(_no_cluster(address, error)) from None
        self._kind = "GPU" if on_gpu else "CPU"
        # Workers that wait for answers and for orders at once: an actor with two threads.
        self._actor = ray.remote(num_cpus=0 if on_gpu else 1, num_gpus=int(on_gpu), max_concurrency=2)(_Shard)
        self._shards: dict[int, Any] = {}
        self._waiting: dict[Any, int] = {}

    @property
    def places(self) -> int:
        """How many shards can run at a time.

        Raises:
            CouldNotCheck: None.
        """
        places = int(self._ray.cluster_resources().get(self._kind, 0))
        if not places:
            raise CouldNotCheck(f"the Ray cluster has no {self._kind}; --backend interpret runs without a GPU")
        return places

    def start(self, number: int, task: object) -> None:
        """Start a shard, as soon as Ray has a place for it."""
        self._shards[number] = self._actor.remote(os.getcwd(), task)
        self._ask(number)

    def receive(self) -> Iterator[tuple[int, Message]]:
        """Wait until something is heard of a shard."""
        ready, _ = self._ray.wait(list(self._waiting), num_returns=1)
        for answer in ready:
            number = self._waiting.pop(answer)
            try:
                messages = self._ray.get(answer)
            except self._ray.exceptions.RayError as error:
                self._give_back(number)
                yield number, Lost(f"is lost to Ray ({type(error).__name__})")
                continue
            if any(map(is_last, messages)):
                self._give_back(number)
            else:
                self._ask(number)
            yield from ((number, message) for message in messages)

    def interrupt(self) -> None:
        """Have all shards end soon."""
        for shard in self._shards.values():
            shard.interrupt.remote()

    def close(self) -> None:
        """End at once what still runs."""
        for number in list(self._shards):
            self._give_back(number)
        self._ray.shutdown()

    def _ask(self, number: int) -> None:
        self._waiting[self._shards[number].receive.remote()] = number

    def _give_back(self, number: int) -> None:
        """Let another shard have the place."""
        with contextlib.suppress(self._ray.exceptions.RayError):
            self._ray.kill(self._shards.pop(number))


def _no_cluster(address: str, error: Exception) -> str:
    said = getattr(error, "strerror", None) or str(error).strip().partition("\n")[0]
    where = "here" if address == "auto" else f"at {address} ({said})"
    return f"there is no Ray cluster {where}; start one with `ray start --head`, or give its address to --ray"


def _check_answers(address: str) -> None:
    """Check that somebody listens at ``HOST:PORT``; other forms are for Ray to understand.

    Raises:
        OSError: Nobody does.
    """
    host, colon, port = address.rpartition("://")[2].rpartition(":")
    if colon and port.isdecimal():
        socket.create_connection((host, int(port)), timeout=10.0).close()
