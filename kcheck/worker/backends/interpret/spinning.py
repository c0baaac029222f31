"""Notices a program that waits for another one: it would never end, since programs run one after the other."""

from __future__ import annotations

from types import FrameType
from typing import Any

from kcheck.worker.backends.base import EndlessLoop, Unsupported
from kcheck.worker.backends.interpret import frames
from kcheck.worker.backends.interpret.membership import Addresses

_SUSPICIOUS = 1_000  # turns of while loops without a change of memory, before accesses are looked at
_STATE_EVERY = 1_000  # turns between two looks at the local variables
_HOPELESS = 1_000_000  # turns over at most `_FEW` addresses, before a loop that does change its variables counts too
_FEW = 4
MAX_TURNS = 1_000  # of all loops of a run in which kernels compute with values that are not theirs


class SpinGuard:
    """Counts the turns of ``while`` loops in which the program changes no memory.

    Attributes:
        kernel: Name of the kernel that runs.
        suspicious: Accesses are to be looked at.
        turns_left: Turns until the run is given up, whatever they do. None: it never is.
    """

    def __init__(self) -> None:
        self.turns_left: int | None = None
        self.kernel = ""
        self.suspicious = False
        self._turns = 0
        self._addresses: set[bytes] = set()
        self._state: tuple[int, Any] | None = None

    def changed(self) -> None:
        """Memory was written: the loop makes progress."""
        if self._turns:
            self._turns = 0
            self.suspicious = False
            self._addresses.clear()
            self._state = None

    def repeated(self, pointers: Addresses) -> None:
        """Memory was read, or an atomic left it as it was."""
        if len(self._addresses) <= _FEW:
            self._addresses.add(pointers.tobytes())

    def turn(self, frame: FrameType, waits: bool) -> None:
        """A ``while`` loop of the kernel, which runs in `frame`, starts its body again.

        Args:
            frame: Of the kernel.
            waits: Memory decides when the loop ends, so that another program can end it.
        """
        if self.turns_left is not None:
            self.turns_left -= 1
            if self.turns_left < 0:
                raise Unsupported(f"kernel {self.kernel} runs too long with other values than its own")
        self._turns += 1
        if self._turns < _SUSPICIOUS:
            return
        self.suspicious = True
        if self._turns % _STATE_EVERY == 0:
            self._state = (frame.f_lineno, _locals(frame))
        elif (
            self._turns % _STATE_EVERY == 1
            and (self._addresses or not waits)
            and self._state == (frame.f_lineno, _locals(frame))
        ):
            self._stop(waits)  # the same variables, the same memory, the same place: the loop can never end
        if waits and self._turns > _HOPELESS and 0 < len(self._addresses) <= _FEW:
            self._stop(waits)

    def _stop(self, waits: bool) -> None:
        chain, _ = frames.kernel_chain()
        if not waits:
            raise EndlessLoop(
                f"kernel {self.kernel} never ends: a turn of its while loop changes neither a variable nor memory",
                chain[-1] if chain else None,
            )
        raise Unsupported(
            f"kernel {self.kernel} waits for another program, which the CPU interpreter, where one program runs after "
            "the other, cannot run.",
            chain[-1] if chain else None,
        )


def _locals(frame: FrameType) -> dict[str, object]:
    return {name: _value(value) for name, value in frame.f_locals.items()}


def _value(value: Any) -> object:
    data = getattr(getattr(value, "handle", None), "data", None)
    return repr(value) if data is None or not hasattr(data, "tobytes") else data.tobytes()
