"""What a backend saw although every access was inside its view: accesses in each other's way, and false hints."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from kcheck.findings import Kind
from kcheck.worker.backends.base import AccessKind, Frame

HintName = Literal["multiple_of", "max_contiguous", "max_constancy"]


@dataclass(frozen=True, slots=True)
class Side:
    """One of the accesses that make a hazard.

    Attributes:
        access: What the kernel did.
        frame: The line of it.
        occurrence: 0 for the first line in this function with this text, 1 for the second, and so on.
        program: ``program_id``.
    """

    access: AccessKind
    frame: Frame
    occurrence: int
    program: tuple[int, int, int]


@dataclass(slots=True, eq=False)
class Hazard:
    """A distinct fault of accesses that are each inside their view.

    Attributes:
        kind: Race, uninitialized read, scatter conflict or offset overflow.
        kernel: Name of the launched kernel.
        sides: The accesses: two for a race, else one.
        argument: Name of the region that the pointer came from, or of the kernel's parameter if `scratch`.
        parameter: The kernel's own parameter that the pointer came in.
        scratch: The pointer came from a tensor that the target made itself.
        index: Logical index of the first element in the argument's view.
        offsets: Distance in bytes from the first element of the view to the elements concerned: the lowest ones, so
            that runs in different order have the same. int64, sorted.
        lanes: How many lanes, over the whole run.
        programs: In how many programs.
        chain: Frames from the kernel's own line down to the last access.
        storage: Address of the memory.
        changed: Races and scatter conflicts: some lane writes another value than is there. None: not known.
        cause: Offset overflows: the line whose arithmetic wrapped.
        exact: Offset overflows: the offset in bytes that arithmetic without wrapping gives, from the first element.
    """

    kind: Kind
    kernel: str
    sides: tuple[Side, ...]
    argument: str
    parameter: str
    scratch: bool
    index: tuple[int, ...]
    offsets: npt.NDArray[np.int64]
    lanes: int
    programs: int
    chain: tuple[Frame, ...]
    storage: int
    changed: bool | None = None
    cause: Frame | None = None
    exact: int = 0


@dataclass(slots=True, eq=False)
class FalseHint:
    """A distinct hint to the compiler that is not true.

    Attributes:
        name: Which of Triton's hints.
        kernel: Name of the launched kernel.
        frame: The line that gives it.
        occurrence: 0 for the first line in this function with this text, 1 for the second, and so on.
        chain: Frames from the kernel's own line down to `frame`.
        parameter: The kernel's parameter that the hint is about; ``""`` if it is about a value made of others.
        argument: Of a pointer: name of the region that it came from, or of the kernel's parameter.
        axis: The first axis along which it is false.
        size: What it says of that axis.
        lane: Place of the first value that is refused, ``()`` of a scalar.
        value: That value; of a pointer its distance in bytes from where the tensor's memory begins.
        wanted: What would do in its place.
        program: ``program_id`` there.
        lanes: How many values, over the whole run.
        programs: In how many programs.
    """

    name: HintName
    kernel: str
    frame: Frame
    occurrence: int
    chain: tuple[Frame, ...]
    parameter: str
    argument: str
    axis: int
    size: int
    lane: tuple[int, ...]
    value: int
    wanted: int
    program: tuple[int, int, int]
    lanes: int = 0
    programs: int = 0
