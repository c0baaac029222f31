"""``tl.multiple_of``, ``tl.max_contiguous`` and ``tl.max_constancy``: hints that are surely true.

Where one might be false the sequential engine looks, which knows exactly what the compiler makes of it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from kcheck.worker.backends.batched.blocks import Blocks
from kcheck.worker.backends.batched.values import Array, NotBatched, is_pointer, shape_of
from kcheck.worker.backends.interpret.arguments import ADDRESS_MASK
from kcheck.worker.backends.interpret.triton_seams import core
from kcheck.worker.backends.interpret.types import Tensor


def hint(name: str, home: Callable[[Any], int]) -> Callable[..., Any]:
    """The builtin of a name.

    Args:
        name: ``multiple_of``, ``max_contiguous`` or ``max_constancy``.
        home: From a pointer to the address of the memory that it came from.
    """

    def give(input: Any, values: Any, **_: Any) -> Any:
        if not isinstance(input, Tensor):
            return input
        given = values if isinstance(values, (list, tuple)) else [values]
        sizes = [int(core._unwrap_if_constexpr(size)) for size in given]
        shape = shape_of(input)
        if len(sizes) != max(1, len(shape)) or isinstance(input.handle, Blocks):
            raise NotBatched(f"tl.{name} of this value")
        numbers, unit = input.handle.data, 1
        if is_pointer(input.handle):
            unit = max(1, input.dtype.element_ty.primitive_bitwidth // 8)
            numbers = (numbers & ADDRESS_MASK).astype(np.int64) - home(numbers.flat[0])
        if numbers.dtype.kind in "iu":
            numbers = numbers.astype(np.int64, copy=False).reshape(len(numbers), *(shape or (1,)))
            if not all(_is_true(name, np.moveaxis(numbers, at + 1, -1), size, unit) for at, size in enumerate(sizes)):
                raise NotBatched
        return input

    return give


def _is_true(name: str, values: Array, size: int, unit: int) -> bool:
    """Whether a hint is true along the last axis."""
    if name == "multiple_of":
        if size < 1 or not (values % size).any():
            return True
        firsts = np.ones(values.shape, bool)
        firsts[..., 1:] = np.diff(values, axis=-1) != unit
        return not (values[firsts] % size).any()
    size = min(size & -size, values.shape[-1])
    if size < 2 or values.shape[-1] % size:
        return True
    groups = values.reshape(*values.shape[:-1], -1, size)
    return bool((np.diff(groups, axis=-1) == (unit if name == "max_contiguous" else 0)).all())
