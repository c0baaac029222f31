"""Variables of a function while programs part and meet again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from kcheck.worker.backends.batched.blocks import Blocks
from kcheck.worker.backends.batched.programs import Programs, Rows
from kcheck.worker.backends.batched.values import (
    Constant,
    Lanes,
    NotBatched,
    block,
    is_uniform,
    new_tensor,
    shape_of,
    taken,
)
from kcheck.worker.backends.interpret.triton_seams import core
from kcheck.worker.backends.interpret.types import Tensor

Part = tuple[Rows, Any]  # positions of programs, and the value that they have


class Missing:
    """The value of a variable that only some of the programs assigned. Whatever looks at it fails."""

    def __getattr__(self, name: str) -> Any:
        raise NotBatched("a variable that some programs have not assigned")

    def __bool__(self) -> bool:
        raise NotBatched("a variable that some programs have not assigned")


ABSENT = object()


class Scope(dict[str, Any]):
    """The variables of some programs: what they read is taken from the outer scope when it is first needed.

    Args:
        programs: Those that run in it.
        names: What a name is that is no variable: closure variables and helpers.
        outer: The scope that they left.
        rows: Their positions there.
        frame_rows: Their positions among the programs that called the function; None: all of them.
    """

    def __init__(
        self, programs: Programs, names: Mapping[str, Any], outer: Scope | None = None, rows: Rows | None = None,
        frame_rows: Rows | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.programs = programs
        self.names = names
        self.outer = outer
        self.rows = rows
        self.frame_rows = frame_rows
        self._taken: dict[str, Any] = {}

    def __missing__(self, name: str) -> Any:
        if self.outer is None:
            return self.names[name]
        value = self[name] = self._taken[name] = pick(self.outer[name], self.rows)
        return value

    def variable(self, name: str) -> Any:
        """The value of a variable, `ABSENT` if it has none."""
        scope: Scope | None = self
        while scope is not None:
            if name in scope:
                return self[name]
            scope = scope.outer
        return ABSENT

    def narrowed(self, rows: Rows) -> Scope:
        """A scope for the programs at some positions."""
        frame_rows = rows if self.frame_rows is None else self.frame_rows[rows]
        return Scope(self.programs.some(rows), self.names, self, rows, frame_rows)

    def without(self, leaving: npt.NDArray[np.bool_], left: dict[str, list[Part]]) -> Scope:
        """The scope of the programs that go on, beside this one.

        Args:
            leaving: Which of the programs leave.
            left: By variable, gets what they leave with.
        """
        assert self.outer is not None
        assert self.rows is not None
        self.leave(left, np.flatnonzero(leaving))
        stay = np.flatnonzero(~leaving)
        kept = self.outer.narrowed(self.rows[stay])
        for name, value in self.items():
            kept[name] = pick(value, stay)
            if self._taken.get(name) is value:
                kept._taken[name] = kept[name]
        return kept

    def leave(self, left: dict[str, list[Part]], at: Rows | None = None) -> None:
        """Take down the variables that were assigned here, for the programs at some positions; None: all."""
        assert self.rows is not None
        rows = self.rows if at is None else self.rows[at]
        for name, value in self.items():
            if self._taken.get(name) is not value:
                left.setdefault(name, []).append((rows, value if at is None else pick(value, at)))

    def meet(self, left: Mapping[str, Sequence[Part]]) -> None:
        """Programs that parted come back with these variables."""
        for name, parts in left.items():
            self[name] = merged(self.variable(name), parts, len(self.programs))


def pick(value: Any, rows: Rows | None) -> Any:
    """The value for the programs at some positions."""
    if value.__class__ is Tensor:
        handle = value.handle
        if isinstance(handle, Blocks):
            return value if rows is None or handle.is_uniform else new_tensor(handle.taken(rows), value.type)
        if rows is None or is_uniform(handle):
            return value
        return block(taken(handle, rows), value.dtype, shape_of(value))
    if isinstance(value, (tuple, core.tuple)):
        items = [pick(item, rows) for item in value]
        if all(new is old for new, old in zip(items, value, strict=True)):
            return value
        return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
    if isinstance(value, core.tensor_descriptor_base) and not _is_uniform_descriptor(value.handle):
        raise NotBatched("a tensor descriptor of each program where programs part")
    return value


def _is_uniform_descriptor(handle: Any) -> bool:
    return all(map(is_uniform, (handle.base, *handle.shape, *handle.strides)))


def merged(old: Any, parts: Sequence[Part], count: int) -> Any:
    """One value for all programs.

    Args:
        old: What those have that are in no part; `ABSENT` if nothing.
        parts: What the others have; of programs in several parts the last one counts.
        count: How many programs there are.
    """
    covered = np.zeros(count, bool)
    for rows, _ in parts:
        covered[rows] = True
    if not covered.all():
        if old is ABSENT:
            return Missing()
        parts = [(np.flatnonzero(~covered), pick(old, np.flatnonzero(~covered))), *parts]
    first = parts[0][1]
    if all(value is first for _, value in parts) and _is_same_everywhere(first):
        return first
    if any(isinstance(value, Missing) for _, value in parts):
        return Missing()
    if isinstance(first, (tuple, core.tuple)):
        return _merged_tuples(parts, count)
    if first.__class__ is not Tensor:
        if all(value.__class__ is first.__class__ and value == first for _, value in parts):
            return first
        raise NotBatched("a Python value that differs between programs")
    return _merged_tensors(parts, count)


def _is_same_everywhere(value: Any) -> bool:
    return value.__class__ is Tensor and not isinstance(value.handle, Blocks) and is_uniform(value.handle)


def _merged_tuples(parts: Sequence[Part], count: int) -> Any:
    first = parts[0][1]
    if any(type(value) is not type(first) or len(value) != len(first) for _, value in parts):
        raise NotBatched("tuples of different lengths in different programs")
    items = [merged(ABSENT, [(rows, value[at]) for rows, value in parts], count) for at in range(len(first))]
    return type(first)(*items) if hasattr(first, "_fields") else type(first)(items)


def _merged_tensors(parts: Sequence[Part], count: int) -> Any:
    first = parts[0][1]
    shape = shape_of(first)
    for _, value in parts:
        if value.__class__ is not Tensor or value.dtype != first.dtype or shape_of(value) != shape:
            raise NotBatched("a variable whose type differs between programs")
    handles = [value.handle for _, value in parts]
    if any(isinstance(handle, Blocks) for handle in handles):
        return Missing()  # nothing that is likely to be used
    if all(isinstance(handle, Constant) and handle.value == handles[0].value for handle in handles):
        return first
    if len(shape) > 1 and not all(handle.data[0].flags.c_contiguous for handle in handles):
        raise NotBatched("a transposed block where programs meet")
    data = np.empty((count, *shape), handles[0].data.dtype)
    for (rows, _), handle in zip(parts, handles, strict=True):
        data[rows] = handle.data
    wrapped = any(getattr(handle, "wrapped", False) for handle in handles)
    return block(Lanes(data, first.dtype.scalar, None, wrapped), first.dtype, shape)
