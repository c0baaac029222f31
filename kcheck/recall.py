"""What a self-test comes to: which known bugs were found, and which correct targets stayed silent."""

from __future__ import annotations

import enum
from collections.abc import Iterator
from dataclasses import dataclass


class Outcome(enum.StrEnum):
    """What became of a built-in target in a self-test."""

    RIGHT = "right"  # the known bug was found, or the correct target was silent
    WRONG = "wrong"  # the bug was missed, or there was a false alarm
    COULD_NOT_CHECK = "could-not-check"
    LEFT_OUT = "left out"  # it needs another backend


@dataclass(frozen=True, slots=True)
class TargetOutcome:
    """What became of one target.

    Attributes:
        target: Its name, as on the command line.
        mechanism: Of its bug, ``""`` if it is correct.
        outcome: What became of it.
        cases: Cases that were judged.
        seconds: Until that was known, drawing included.
        message: The bug as it was found, the false alarm, or why nothing can be said: one sentence.
    """

    target: str
    mechanism: str
    outcome: Outcome
    cases: int
    seconds: float
    message: str = ""


@dataclass(frozen=True, slots=True)
class SelfTestResult:
    """A self-test on one backend.

    Attributes:
        backend: Its name, with its options.
        outcomes: Of all targets: faulty ones, then correct ones.
        seconds: Wall time, start-up included.
    """

    backend: str
    outcomes: tuple[TargetOutcome, ...]
    seconds: float

    @property
    def faulty(self) -> list[TargetOutcome]:
        """Targets with a known bug."""
        return [one for one in self.outcomes if one.mechanism]

    @property
    def correct(self) -> list[TargetOutcome]:
        """Targets in which a finding is a false alarm."""
        return [one for one in self.outcomes if not one.mechanism]

    def failures(self) -> Iterator[TargetOutcome]:
        """Missed bugs and false alarms."""
        return (one for one in self.outcomes if one.outcome is Outcome.WRONG)

    def unchecked(self) -> Iterator[TargetOutcome]:
        """Targets of which nothing can be said."""
        return (one for one in self.outcomes if one.outcome is Outcome.COULD_NOT_CHECK)
