"""The ranges that ``for`` loops run over."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from kcheck.worker.backends.batched.semantic import BatchedSemantic
from kcheck.worker.backends.batched.values import Array, Lanes, NotBatched, block, is_uniform
from kcheck.worker.backends.interpret.triton_seams import core, interpreter, tl
from kcheck.worker.backends.interpret.types import Tensor


class Range:
    """``range`` of integers or scalar tensors.

    Args:
        semantic: Knows Triton's types.
        bounds: Start, stop and step.
    """

    def __init__(self, semantic: BatchedSemantic, bounds: tuple[Any, Any, Any]) -> None:
        self._bounds = bounds
        self._semantic = semantic
        self._kind = tl.int32
        for bound in bounds:
            kind = bound.dtype if isinstance(bound, Tensor) else semantic.to_tensor(bound).dtype
            if kind.primitive_bitwidth > self._kind.primitive_bitwidth:
                self._kind = kind

    @property
    def is_uniform(self) -> bool:
        """Whether all programs have the same bounds."""
        return all(not isinstance(bound, Tensor) or is_uniform(bound.handle) for bound in self._bounds)

    def __iter__(self) -> Iterator[Any]:
        """Items where all programs have the same."""
        for value in range(*(int(bound) for bound in self._bounds)):
            yield self._semantic.scalar_constant(value, self._kind)

    def arrays(self) -> tuple[Array, Array, Array]:
        """First item, number of items, and step; shape (programs,) or (1,)."""
        start, stop, step = (
            (bound.handle.data if isinstance(bound, Tensor) else np.array([bound])).astype(np.int64)
            for bound in self._bounds
        )
        if (step == 0).any():
            raise NotBatched("a range with step 0")
        return start, np.maximum(-((start - stop) // step), 0), step

    def item(self, values: Array) -> Any:
        """The loop variable.

        Args:
            values: Of each program.
        """
        dtype = interpreter._get_np_dtype(self._kind)
        return block(Lanes(values.astype(dtype), self._kind), self._kind, ())


def bounds_of(given: tuple[Any, ...], options: dict[str, Any]) -> tuple[Any, Any, Any]:
    """Start, stop and step as ``range`` and ``tl.range`` take them."""
    named = {"arg1": 0, "start": 0, "arg2": 1, "stop": 1, "end": 1, "step": 2}
    values: list[Any] = [*given, None, None, None][:3]
    for name, value in options.items():
        if name in named:
            values[named[name]] = value
    first, second, step = (value.value if isinstance(value, core.constexpr) else value for value in values)
    start, stop = (0, first) if second is None else (first, second)
    return start, stop, 1 if step is None else step


def static_range(*bounds: Any, **options: Any) -> range:
    """``tl.static_range``: plain numbers."""
    return range(*(int(bound) for bound in bounds_of(bounds, options)))
