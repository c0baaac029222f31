"""Hints to the compiler that are not true: ``tl.multiple_of``, ``tl.max_contiguous``, ``tl.max_constancy``.

What a hint says is what Triton's analysis of axes makes of it. Along each axis, contiguity ``c`` and constancy ``c``
are about groups of ``c`` neighbours, and divisibility is about the first value of each group of consecutive ones, in
bytes for pointers. How long these groups are for the compiler is not known here; where they really are of consecutive
values, every run of these begins with the first one of a group.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from kcheck.worker.backends.base import Frame, Watch
from kcheck.worker.backends.hazard import FalseHint, HintName
from kcheck.worker.backends.interpret import frames
from kcheck.worker.backends.interpret.arguments import ADDRESS_MASK, TAG_SHIFT_U64
from kcheck.worker.backends.interpret.faults import FaultLog, Program
from kcheck.worker.backends.interpret.memory import Memory
from kcheck.worker.backends.interpret.patches import PatchSet
from kcheck.worker.backends.interpret.triton_seams import builder, core, tl
from kcheck.worker.backends.interpret.types import PointerType, Tensor, new

Values = npt.NDArray[Any]


@dataclass(frozen=True, slots=True)
class _Numbers:
    """What a hint is about.

    Attributes:
        values: Integers, or the distances of pointers from the memory of `argument`, in bytes.
        unit: Distance of consecutive ones.
        argument: Name of the region that pointers came from, or of the parameter.
    """

    values: Values
    unit: int = 1
    argument: str = ""


class HintLog:
    """Distinct false hints of one watch.

    Args:
        watch: Where they go.
        faults: Knows the launch that runs.
        memory: Knows its arguments.
        taken: The line, as ``(file, line)``, whose hints are taken at their word.
    """

    def __init__(self, watch: Watch, faults: FaultLog, memory: Memory, taken: tuple[str, int] | None) -> None:
        self._watch, self._faults, self._memory = watch, faults, memory
        self._taken = taken
        self._found: dict[tuple[str, str, tuple[str, int]], FalseHint] = {}
        self._last_run: dict[int, tuple[int, Program]] = {}
        self._parameters: dict[int, str] = {}

    def begin_launch(self, arguments: Mapping[str, Any]) -> None:
        """A launch begins; `arguments` are its kernel's parameters."""
        self._parameters = {id(value): name for name, value in arguments.items() if isinstance(value, Tensor)}

    def hinted(self, name: HintName, tensor: Any, sizes: Sequence[int]) -> None:
        """A kernel gives a hint with a size for each axis."""
        numbers = self._numbers(tensor)
        if numbers is None:
            return
        taken = self._taken is not None and self._taken == frames.access_site()
        for axis, size in enumerate(sizes):
            wanted = _wanted(name, numbers, axis, size)
            wrong = wanted != numbers.values
            if not wrong.any():
                continue
            if taken:
                _moved(tensor, wanted - numbers.values)
                numbers = replace(numbers, values=wanted)
            else:
                self._record(name, tensor, numbers, axis, size, wanted, wrong)

    def _numbers(self, tensor: Any) -> _Numbers | None:
        """None for what kcheck has no opinion on: floats, and pointers that were read from memory."""
        data = getattr(tensor.handle, "data", None)
        if data is None or not data.size or data.dtype.kind not in "iu":
            return None
        if not isinstance(tensor.dtype, PointerType):
            return _Numbers(data if data.dtype == np.uint64 else data.astype(np.int64))
        argument = self._memory.argument_of(data.flat[0])
        if argument is None or (data >> TAG_SHIFT_U64 != argument.tag).any():
            return None
        # Memory itself counts as aligned: on a GPU it begins at a multiple of any number that a hint may name.
        offsets = (data & ADDRESS_MASK).astype(np.int64) - argument.backing.address
        return _Numbers(offsets, max(1, tensor.dtype.element_ty.primitive_bitwidth // 8), argument.name)

    def _record(
        self, name: HintName, tensor: Any, numbers: _Numbers, axis: int, size: int, wanted: Values, wrong: Values
    ) -> None:
        key = (name, self._faults.kernel, frames.access_site())
        run = (self._faults.launch, builder.grid_idx)
        hint = self._found.get(key)
        if hint is None:
            chain, occurrence = frames.kernel_chain()
            first = tuple(int(place[0]) for place in wrong.nonzero())
            hint = self._found[key] = FalseHint(
                name=name, kernel=self._faults.kernel, frame=chain[-1] if chain else Frame("", 0, "", ""),
                occurrence=occurrence, chain=chain, parameter=self._parameters.get(id(tensor), ""),
                argument=numbers.argument, axis=axis, size=size, lane=first if len(tensor.shape) else (),
                value=int(numbers.values[first]), wanted=int(wanted[first]), program=builder.grid_idx,
            )  # fmt: skip
            self._watch.hints.append(hint)
        hint.lanes += int(wrong.sum())
        hint.programs += self._last_run.get(id(hint)) != run
        self._last_run[id(hint)] = run


class _State:
    """Where false hints of the watch that is entered go."""

    log: HintLog | None = None


_state = _State()


def install(patches: PatchSet) -> None:
    """Look at hints."""
    names: tuple[HintName, ...] = ("multiple_of", "max_contiguous", "max_constancy")
    for owner in (tl, core):
        for name in names:
            patches.put(owner, name, _hint(name, patches.get(owner, name)))


def begin(log: HintLog | None) -> None:
    """A watch is entered, or left (None)."""
    _state.log = log


def begin_launch(arguments: Mapping[str, Any]) -> None:
    """A launch begins; `arguments` are its kernel's parameters."""
    if _state.log is not None:
        _state.log.begin_launch(arguments)


def _hint(name: HintName, original: Any) -> Any:
    def hint(input: Any, values: Any, **_: Any) -> Any:
        result = original(input, values)
        if isinstance(input, Tensor) and _state.log is not None:
            sizes: list[Any] = list(values) if isinstance(values, (list, tuple)) else [values]
            _state.log.hinted(name, input, [int(getattr(size, "value", size)) for size in sizes])
        return result

    return hint


def _wanted(name: HintName, numbers: _Numbers, axis: int, size: int) -> Values:
    """The values nearest by, of the same shape, with which the hint is true along an axis."""
    values = np.moveaxis(numbers.values, axis, -1)
    if name == "multiple_of":
        wanted = values if size < 1 or not (values % size).any() else _multiples(values, size, numbers.unit)
    else:
        wanted = _repeated(values, size & -size, numbers.unit if name == "max_contiguous" else 0)
    return np.moveaxis(wanted, -1, axis)


def _repeated(values: Values, size: int, step: int) -> Values:
    """Values in groups of `size`, each of which goes on from its first one in steps."""
    size = min(size, values.shape[-1])
    if size < 2 or values.shape[-1] % size:
        return values
    groups = values.reshape(*values.shape[:-1], -1, size)
    line = np.arange(size, dtype=values.dtype) * values.dtype.type(step)
    repeated: Values = (groups[..., :1] + line).reshape(values.shape)
    return repeated


def _multiples(values: Values, size: int, step: int) -> Values:
    """Values with runs of consecutive ones moved down to where they begin at a multiple of `size`."""
    lanes = np.arange(values.shape[-1])
    change = np.diff(values, axis=-1)
    begins = np.ones(values.shape, bool)
    begins[..., 1:] = change != step
    firsts = np.take_along_axis(values, np.maximum.accumulate(np.where(begins, lanes, 0), axis=-1), axis=-1)
    excess = firsts % values.dtype.type(size)
    if values.ndim > 1 and lanes.size > 1:
        # One of several axes: nothing can be done with what neither goes on nor repeats along it.
        joined = (change == step) | (change == 0)
        alone = np.ones(values.shape, bool)
        alone[..., 1:] &= ~joined
        alone[..., :-1] &= ~joined
        excess[alone] = 0
    moved: Values = values - excess
    if values.size == 1 and not moved.any():
        moved += values.dtype.type(size)  # not to zero: a loop that steps by it would never end
    return moved


def _moved(tensor: Any, by: Values) -> None:
    """Move a tensor's values. The tensor itself changes: a hint is about the value, whoever uses it."""
    data = tensor.handle.data
    tensor.handle = new(data + by.astype(data.dtype), tensor.type, tensor.dtype).handle
