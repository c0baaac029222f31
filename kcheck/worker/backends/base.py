"""What a backend is: it runs a target's kernels and reports every launch and every invalid access.

A backend is entered once per run of a target (``with backend.watch(...) as watch``). While it is entered, a kernel
launched by the target is executed and observed; afterwards the `Watch` holds what was seen.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, Protocol

import torch

from kcheck.findings import Kind

if TYPE_CHECKING:
    from kcheck.worker.backends.hazard import FalseHint, Hazard

AccessKind = Literal["read", "write", "atomic"]
ProgramOrder = Literal["forward", "reverse", "shuffled"]


class Place(enum.Enum):
    """Where an invalid access landed."""

    GAP = "gap"  # inside the argument's own backing, outside the view (or in another view of that backing)
    OUTSIDE = "outside"  # outside the argument's backing: a red zone, another tensor, or no tensor at all
    READ_ONLY = "read-only"  # inside the view of an argument that the kernel must not write


@dataclass(frozen=True, slots=True, eq=False)
class Region:
    """Memory that a kernel may touch: one tensor argument of the target.

    Attributes:
        name: The argument's name in the target's signature, for example ``block_table``.
        tensor: The view handed to the target. Its cells are what may be touched; its storage is its whole backing.
        writable: Whether kernels may write these cells.
        valueless: The cells hold nothing yet but poison: reading one before anything is written there is a fault.
    """

    name: str
    tensor: torch.Tensor
    writable: bool
    valueless: bool = False


@dataclass(frozen=True, slots=True)
class Frame:
    """One line of source on the way to an access.

    Attributes:
        file: Path of the source file.
        line: Line number, from 1.
        function: Name of the function.
        source: The line's text, stripped.
    """

    file: str
    line: int
    function: str
    source: str


@dataclass(slots=True)
class Fault:
    """One distinct invalid access: same operation, source line and argument. Counts grow while the run goes on.

    Attributes:
        access: What the kernel did.
        place: Where the first bad lane landed.
        kernel: Name of the launched kernel.
        frame: The source line of the access, in the user's code (never Triton's own).
        occurrence: 0 for the first line in this function with this text, 1 for the second, and so on.
        argument: Name of the region that the pointer came from; ``""`` for a pointer read from memory.
        parameter: The kernel's own parameter that the pointer came in, ``""`` if unknown.
        index: Logical index of the first bad element in the argument's view; an entry may lie outside the shape.
            For an address between the elements of a stepped view: the index of the element in front of it.
        byte_offset: Distance in bytes from the first element of the view to the first bad byte (may be negative).
        between: The address lies between two elements (of a stepped view), not on the grid of the view's strides.
        landed: Name of another region that owns the byte, ``""`` if none does.
        landed_index: Its logical index there, ``()`` if none.
        program: ``program_id`` of the first bad lane.
        lanes: How many lanes were bad, over the whole run.
        programs: In how many programs.
        chain: Frames from the kernel's own line down to `frame`, outermost first; one entry if the access stands in
            the kernel itself.
        scratch: The pointer came from a tensor that the target made itself; `argument` is then the kernel's parameter.
        offsets: Distance in bytes from the first element of the view to the first bytes of the first bad lanes.
    """

    access: AccessKind
    place: Place
    kernel: str
    frame: Frame
    occurrence: int
    argument: str
    parameter: str
    index: tuple[int, ...]
    byte_offset: int
    between: bool
    landed: str
    landed_index: tuple[int, ...]
    program: tuple[int, int, int]
    lanes: int
    programs: int
    chain: tuple[Frame, ...]
    scratch: bool = False
    offsets: list[int] = field(default_factory=list)


@dataclass(slots=True)
class Launch:
    """One kernel launch.

    Attributes:
        kernel: Name of the kernel function.
        grid: Number of programs along each axis.
        programs: How many programs ran (fewer than the grid has if the grid was sampled).
        frame: The line that launched it.
    """

    kernel: str
    grid: tuple[int, int, int]
    programs: int
    frame: Frame


@dataclass(frozen=True, slots=True)
class Compile:
    """One specialisation of a kernel, compiled or read from a cache.

    Attributes:
        kernel: Name of the kernel.
        seconds: What it took.
        cached: It came from the disk cache.
        cause: What differs from the specialisation before, as text; ``""`` for a kernel's first.
    """

    kernel: str
    seconds: float
    cached: bool
    cause: str


@dataclass(slots=True)
class Watch:
    """What a backend saw in one run of a target.

    Attributes:
        launches: Every launch, in order, the failed one included.
        faults: Distinct invalid accesses, in order of their first occurrence.
        gaps: Reasons, one sentence each, why something could not be checked although the run went on.
        partial: Sentences about launches of which only some programs ran, by kernel.
        compiles: Specialisations made during the run, where the backend compiles.
        tuned: Autotuned kernels: how many configurations each has, and the one that ran, as text.
        hazards: Distinct faults of accesses inside their views, in order of their first occurrence.
        hints: Distinct hints to the compiler that are not true, in order of their first occurrence.
        undefined: Lines of loads some of whose lanes were masked off and got no ``other``.
        sequential: Why programs of a kernel ran one after the other although they might have run together: the feature,
            by kernel.
        suspected: Some access may have been invalid, and it is not known which: a run under conditions that are `exact`
            says.
        paths: By ``(file, line)`` of a traced access: the bytes that it touched in order, relative to the view's first.
    """

    launches: list[Launch] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    gaps: list[str] = field(default_factory=list)
    partial: dict[str, str] = field(default_factory=dict)
    compiles: list[Compile] = field(default_factory=list)
    tuned: dict[str, tuple[int, str]] = field(default_factory=dict)
    hazards: list[Hazard] = field(default_factory=list)
    hints: list[FalseHint] = field(default_factory=list)
    undefined: list[Frame] = field(default_factory=list)
    sequential: dict[str, str] = field(default_factory=dict)
    suspected: bool = False
    paths: dict[tuple[str, int], list[int]] = field(default_factory=dict)


Traced = frozenset[tuple[str, int, tuple[int, int, int]]]


@dataclass(frozen=True, slots=True)
class Conditions:
    """What a run holds in places that a kernel must not look at, and what to take down of it.

    Attributes:
        poison: Byte that memory without a value is filled with; None: unknown, so that reads of it are not noticed.
        undefined: What lanes that are masked off without ``other`` hold: zero, as on today's GPUs, or ``wild`` values
            (NaN, far out of range).
        undefined_at: The one line, as ``(file, line)``, that `undefined` is for. None: all.
        traced: Accesses whose path to take down, as ``(file, line, program)``.
        stale: A line, as ``(file, line)``, whose reads yield what was there when the launch began where they race with
            a write of another program: one of the values that a GPU may give them.
        hinted: A line, as ``(file, line)``, whose hints to the compiler are made true: values that refute them are
            moved, as code may behave that was compiled with them.
        exact: Say which accesses are invalid, where the backend has a faster way to say that some may be.
    """

    poison: int | None = None
    undefined: Literal["zero", "wild"] = "zero"
    undefined_at: tuple[str, int] | None = None
    traced: Traced = frozenset()
    stale: tuple[str, int] | None = None
    hinted: tuple[str, int] | None = None
    exact: bool = False


PLAIN = Conditions()


class KernelStopped(Exception):
    """Base of what a backend raises out of a launch.

    Args:
        reason: One sentence.
        frame: The kernel's line, where it is known.
    """

    def __init__(self, reason: str, frame: Frame | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.frame = frame


class Unsupported(KernelStopped):
    """The kernel uses a feature that this backend cannot run: could-not-check, with the feature's name."""


class DeviceAssertFailed(KernelStopped):
    """A ``tl.device_assert`` of the kernel failed: a finding."""


class CompileFailed(KernelStopped):
    """The kernel cannot be compiled (``tl.static_assert`` failed, for example): a finding."""


class EndlessLoop(KernelStopped):
    """The kernel provably never ends: a finding."""


class OutOfMemory(KernelStopped):
    """The device has no memory left: could-not-check."""


class ContextLost(KernelStopped):
    """The device failed so that this process cannot use it any more: a finding, if a fresh worker shows it again.

    Args:
        kind: Kind of the finding.
        reason: One sentence.
        frame: The line that launched the kernel, where it is known.
    """

    def __init__(self, kind: Kind, reason: str, frame: Frame | None = None) -> None:
        super().__init__(reason, frame)
        self.kind = kind


class Backend(Protocol):
    """Runs kernels of the target under observation; to be subclassed.

    Attributes:
        name: What it was asked for as.
        device: Of the tensors.
        all_configs: A case is judged once for each configuration of its autotuned kernels.
        config: Which of these runs.
    """

    name: str
    device: str
    all_configs: bool = False
    config: int = 0

    def surroundings(self) -> AbstractContextManager[None]:
        """Where an oracle runs: it sees the same device as the target."""
        return nullcontext()

    def watch(
        self,
        regions: Sequence[Region],
        *,
        spans: Sequence[tuple[int, int]] = (),
        decoy_seed: int = 0,
        order: ProgramOrder = "forward",
        conditions: Conditions = PLAIN,
    ) -> AbstractContextManager[Watch]:
        """Observe every kernel launch until the context ends.

        Args:
            regions: The tensor arguments of this run.
            spans: ``(address, bytes)`` of memory that is safe to read beside the regions (gaps and red zones): a bad
                read that lands there yields what is there.
            decoy_seed: Seed of the values that bad reads elsewhere yield.
            order: Order in which programs run, where the backend can choose. Where all of a launch run together, those
                in reverse also take turns at atomics.
            conditions: What else may vary, where the backend can choose.

        Raises:
            UnsupportedVersion: The installed Triton is not one that this backend knows.
        """
        ...
