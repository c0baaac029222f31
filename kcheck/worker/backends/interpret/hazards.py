"""Hazards: faults of accesses that are inside their views, named and counted."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from kcheck.findings import Kind
from kcheck.worker.backends.base import AccessKind, Frame, Watch
from kcheck.worker.backends.hazard import Hazard, Side
from kcheck.worker.backends.interpret import frames
from kcheck.worker.backends.interpret.arguments import Argument
from kcheck.worker.backends.interpret.faults import FaultLog, Program
from kcheck.worker.backends.interpret.triton_seams import builder

MAX_OFFSETS = 4096  # of one hazard
_Key = tuple[Kind, str, str, frozenset[tuple[AccessKind, str, int]]]


class HazardLog:
    """Distinct hazards of one watch.

    Args:
        watch: Where they go.
        faults: Knows the kernel that runs and the tensors that the target made.

    Attributes:
        launch: Tells launches apart.
    """

    def __init__(self, watch: Watch, faults: FaultLog) -> None:
        self._watch, self._faults = watch, faults
        self._found: dict[_Key, Hazard] = {}
        self._last_run: dict[_Key, tuple[int, Program]] = {}
        self.launch = 0

    @property
    def kernel(self) -> str:
        """Name of the kernel that runs."""
        return self._faults.kernel

    def gap(self, sentence: str) -> None:
        """Note once that something could not be checked."""
        self._faults.gap(sentence)

    def overflowed(
        self, access: AccessKind, argument: Argument, offsets: npt.NDArray[np.int64], cause: Frame | None, exact: int
    ) -> None:
        """Lanes whose address is not the one that exact arithmetic gives.

        Args:
            access: What the kernel does.
            argument: Where the pointer came from.
            offsets: Where the lanes went, in bytes from the first element of the view.
            cause: The line whose arithmetic wrapped.
            exact: Where the first of them should have gone.
        """
        hazard = self.record(Kind.OFFSET_OVERFLOW, access, argument, np.unique(offsets), offsets.size)
        if hazard.cause is None:
            hazard.cause, hazard.exact = cause, exact

    def record(
        self, kind: Kind, access: AccessKind, argument: Argument, offsets: npt.NDArray[np.int64], lanes: int,
        other: Side | None = None,
    ) -> Hazard:  # fmt: skip
        """Record a hazard of the access that is being made, or count it again.

        Args:
            kind: Of the hazard.
            access: What the kernel does.
            argument: Where the pointer came from.
            offsets: Elements concerned, in bytes from the first of the view; sorted.
            lanes: How many lanes.
            other: The earlier access of a race.
        """
        sides = {(access, *frames.access_site())}
        if other is not None:
            sides.add((other.access, other.frame.file, other.frame.line))
        key = (kind, self.kernel, argument.name, frozenset(sides))
        run = (self.launch, builder.grid_idx)
        hazard = self._found.get(key)
        if hazard is None:
            hazard = self._found[key] = self._new(kind, access, argument, int(offsets[0]), other)
            self._watch.hazards.append(hazard)
        hazard.lanes += lanes
        hazard.programs += self._last_run.get(key) != run
        self._last_run[key] = run
        hazard.offsets = np.union1d(hazard.offsets, offsets)[:MAX_OFFSETS]
        return hazard

    def _new(self, kind: Kind, access: AccessKind, argument: Argument, offset: int, other: Side | None) -> Hazard:
        chain, occurrence = frames.kernel_chain()
        own = Side(access, chain[-1] if chain else Frame("", 0, "", ""), occurrence, builder.grid_idx)
        return Hazard(
            kind=kind,
            kernel=self.kernel,
            sides=(own,) if other is None else (other, own),
            argument=argument.name,
            parameter=argument.parameter,
            scratch=any(argument is one for one in self._faults.scratch),
            index=argument.shown.locate(offset + argument.shown.address)[0],
            offsets=np.empty(0, np.int64),
            lanes=0,
            programs=0,
            chain=chain,
            storage=argument.backing.address,
        )
