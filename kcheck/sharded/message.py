"""What is heard of a shard, and who is asked to run one."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from kcheck.events import Event, RunDone


@dataclass(frozen=True, slots=True)
class Told:
    """Events of a shard, in order."""

    events: tuple[Event, ...]


@dataclass(frozen=True, slots=True)
class Refused:
    """A shard that ran to no end for a reason that another try would not change.

    Attributes:
        exit_code: That of a `kcheck.errors.KcheckError`.
        sentence: Its text.
    """

    exit_code: int
    sentence: str


@dataclass(frozen=True, slots=True)
class Lost:
    """A shard's process, or its machine, is gone.

    Attributes:
        cause: How it ended.
    """

    cause: str


Message = Told | Refused | Lost


def is_last(message: Message) -> bool:
    """Whether nothing more will be heard of the process that it comes from."""
    return not isinstance(message, Told) or isinstance(message.events[-1], RunDone)


class Runner(Protocol):
    """Runs shards, by their number from 0."""

    def start(self, number: int, task: object) -> None:
        """Start a shard, or start it again once it is lost.

        Args:
            number: Which.
            task: What it is to do; `kcheck.cli.shard_process` understands it.
        """

    def receive(self) -> Iterable[tuple[int, Message]]:
        """Wait until something is heard of a shard; nothing more is of one that said `RunDone`, or is not there."""

    def interrupt(self) -> None:
        """Have all shards end soon, in order. Called by a signal's handler."""

    def close(self) -> None:
        """End at once what still runs."""
