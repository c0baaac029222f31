"""What supervisor and worker say to each other: JSON lines on a socket that user code never sees.

The supervisor talks to the *zygote* (a process that has imported torch and the target) over a control channel: it
asks it to load a target, to fork a worker that gets one end of a fresh socket, and how a lost worker ended. Each
worker answers `run` requests with a `Judgement`, `measure` requests with a `Measurement`, and `yardstick` requests with
a `Yardstick`.
"""

from __future__ import annotations

import json
import select
import socket
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from kcheck.errors import WorkerError
from kcheck.events import CaseVerdict
from kcheck.findings import Finding

PROTOCOL_VERSION = 1
_CHUNK = 1 << 16


class ChannelClosed(Exception):
    """The other side is gone."""


class ChannelTimeout(Exception):
    """Nothing complete came in time."""


class Channel:
    """JSON objects, one a line, over a stream socket.

    Args:
        sock: A connected stream socket; the channel owns it from now on.
    """

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self._rest = b""

    def send(self, message: Mapping[str, Any], fds: Sequence[int] = ()) -> None:
        """Send one message, with file descriptors if any.

        Raises:
            ChannelClosed: The other side is gone.
        """
        data = json.dumps(message, separators=(",", ":")).encode() + b"\n"
        try:
            sent = socket.send_fds(self.sock, [data], list(fds)) if fds else 0
            self.sock.sendall(data[sent:])
        except OSError as error:
            raise ChannelClosed(str(error)) from None

    def receive(self, timeout: float | None = None) -> dict[str, Any]:
        """Wait for one message.

        Args:
            timeout: Seconds; None waits for ever.

        Raises:
            ChannelClosed: The other side is gone.
            ChannelTimeout: No complete message came in time.
            WorkerError: What came is not a message.
        """
        line, _ = self._line(timeout, 0)
        return self._parse(line)

    def receive_with_fd(self) -> tuple[dict[str, Any], int | None]:
        """Wait for one message and the file descriptor that came with it, if one did.

        Raises:
            ChannelClosed: The other side is gone.
            WorkerError: What came is not a message.
        """
        line, fds = self._line(None, 1)
        return self._parse(line), fds[0] if fds else None

    def close(self) -> None:
        """Close the socket."""
        self.sock.close()

    def _line(self, timeout: float | None, max_fds: int) -> tuple[bytes, list[int]]:
        end = None if timeout is None else time.monotonic() + timeout
        fds: list[int] = []
        pieces = [self._rest]
        while b"\n" not in pieces[-1]:
            left = None if end is None else max(0.0, end - time.monotonic())
            if not select.select([self.sock], [], [], left)[0]:
                self._rest = b"".join(pieces)
                raise ChannelTimeout
            try:
                if max_fds:
                    data, more, _, _ = socket.recv_fds(self.sock, _CHUNK, max_fds)
                    fds += more
                else:
                    data = self.sock.recv(_CHUNK)
            except OSError as error:
                raise ChannelClosed(str(error)) from None
            if not data:
                raise ChannelClosed("end of stream")
            pieces.append(data)
        line, _, self._rest = b"".join(pieces).partition(b"\n")
        return line, fds

    @staticmethod
    def _parse(line: bytes) -> dict[str, Any]:
        try:
            message = json.loads(line)
        except ValueError:
            raise WorkerError(f"the worker answered {line[:80]!r}, which is not a protocol message") from None
        if not isinstance(message, dict):
            raise WorkerError(f"the worker answered {line[:80]!r}, which is not a protocol message")
        return message


@dataclass(frozen=True, slots=True)
class Judgement:
    """A worker's answer about one case.

    Attributes:
        verdict: Of the case.
        reason: Why it was rejected or could not be checked; the rejection is quoted.
        findings: Proven faults, gravest first.
        launches: Launches by kernel name.
        layout_rejected: REJECTED only: the contiguous copy of the same case is accepted, so it is about the layout.
        exempt: The case's outputs are empty: that no kernel launched means nothing.
        constant: The value that every element of every oracle output has, as text; None if they differ, ``""`` if
            there are too few to tell.
        seconds: Time inside the worker, by part.
        fatal: The worker cannot go on (a lost CUDA context) and ends after this answer.
        compiles: ``(kernel, seconds, cached, cause)`` of every specialisation made.
        partial: By kernel, a sentence that says which share of its programs ran, if not all did.
        sequential: By kernel, a sentence that says why its programs could not run together.
    """

    verdict: CaseVerdict
    reason: str = ""
    findings: tuple[Finding, ...] = ()
    launches: Mapping[str, int] = field(default_factory=dict)
    layout_rejected: bool = False
    exempt: bool = False
    constant: str | None = ""
    seconds: Mapping[str, float] = field(default_factory=dict)
    fatal: bool = False
    compiles: tuple[tuple[str, float, bool, str], ...] = ()
    partial: Mapping[str, str] = field(default_factory=dict)
    sequential: Mapping[str, str] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Plain data for `Channel.send`."""
        return {
            "verdict": self.verdict.value,
            "reason": self.reason,
            "findings": [finding.to_json() for finding in self.findings],
            "launches": dict(self.launches),
            "layout_rejected": self.layout_rejected,
            "exempt": self.exempt,
            "constant": self.constant,
            "seconds": dict(self.seconds),
            "fatal": self.fatal,
            "compiles": [list(compiled) for compiled in self.compiles],
            "partial": dict(self.partial),
            "sequential": dict(self.sequential),
        }

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> Judgement:
        """Read `to_json`'s data back.

        Raises:
            WorkerError: The data is something else.
        """
        try:
            fields = dict(data)
            fields["verdict"] = CaseVerdict(fields["verdict"])
            fields["compiles"] = tuple((str(k), float(s), bool(c), str(w)) for k, s, c, w in fields["compiles"])
            fields["findings"] = tuple(Finding.from_json(finding) for finding in fields["findings"])
            return Judgement(**fields)
        except (KeyError, TypeError, ValueError) as error:
            raise WorkerError(f"the worker's answer is not a judgement: {error}") from None


@dataclass(frozen=True, slots=True)
class Variant:
    """One variant of a target on one case.

    Attributes:
        seconds: Median time of one call.
        kernels: Kernels launched by one call: all of them on a GPU, those of Triton on the interpreter.
        nbytes: Bytes allocated at the peak of one call, beyond what there was before. None: not known on this device.
        compiles: Specialisations of kernels compiled for this case. None: nothing is compiled on this device.
    """

    seconds: float
    kernels: int
    nbytes: int | None = None
    compiles: int | None = None


@dataclass(frozen=True, slots=True)
class Measurement:
    """A worker's answer about variants of a target on one case.

    Attributes:
        variants: One each, in the order of the request; empty where there is a problem.
        problem: Why they cannot be compared here, a sentence; ``""`` if they can.
        same_bits: All results agree in every bit.
        agree: All results agree within the tolerance.
        difference: The first result that does not, in words.
        fatal: The worker cannot go on and ends after this answer.
    """

    variants: tuple[Variant, ...] = ()
    problem: str = ""
    same_bits: bool = False
    agree: bool = False
    difference: str = ""
    fatal: bool = False

    def to_json(self) -> dict[str, Any]:
        """Plain data for `Channel.send`."""
        return asdict(self)

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> Measurement:
        """Read `to_json`'s data back.

        Raises:
            WorkerError: The data is something else.
        """
        try:
            return Measurement(**dict(data) | {"variants": tuple(Variant(**one) for one in data["variants"])})
        except (KeyError, TypeError) as error:
            raise WorkerError(f"the worker's answer is not a measurement: {error}") from None


@dataclass(frozen=True, slots=True)
class Held:
    """One result of a target, and what it is held against in one case.

    Attributes:
        actual: An output's path, or ``return``, ``return[1]``, ``return['lse']`` in what the target returns.
        expected: The same in what the oracle returns; an output's path where the oracle writes its own outputs.
        rtol: Relative tolerance.
        atol: Absolute tolerance, wide enough for what rounding can do in this case.
        dtype: Data type of the result.
        same_dtype: The oracle's is of that data type too.
    """

    actual: str
    expected: str
    rtol: float
    atol: float
    dtype: str
    same_dtype: bool


@dataclass(frozen=True, slots=True)
class Yardstick:
    """A worker's answer about what a target's results are held against in one case.

    Attributes:
        results: The outputs, in the order in which the oracle gives them, then what the target returns.
        problem: Why it cannot be told, a sentence; ``""`` if it can.
        fatal: Never: nothing is asked of the device that could cost it.
    """

    results: tuple[Held, ...] = ()
    problem: str = ""
    fatal: bool = False

    def to_json(self) -> dict[str, Any]:
        """Plain data for `Channel.send`."""
        return asdict(self)

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> Yardstick:
        """Read `to_json`'s data back.

        Raises:
            WorkerError: The data is something else.
        """
        try:
            return Yardstick(**dict(data) | {"results": tuple(Held(**one) for one in data["results"])})
        except (KeyError, TypeError) as error:
            raise WorkerError(f"the worker's answer is not a yardstick: {error}") from None
