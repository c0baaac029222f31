"""What rewritten kernels call: the pieces of Triton's language that plain Python does otherwise."""

from __future__ import annotations

import builtins
from collections.abc import Callable
from types import FunctionType
from typing import Any

from kcheck.worker.backends.batched.ranges import Range, bounds_of, static_range
from kcheck.worker.backends.batched.semantic import BatchedSemantic
from kcheck.worker.backends.batched.values import (
    Constant,
    Lanes,
    NotBatched,
    block,
    is_uniform,
    new_tensor,
    shape_of,
)
from kcheck.worker.backends.interpret import runtime
from kcheck.worker.backends.interpret.rewrite import PREFIX
from kcheck.worker.backends.interpret.triton_seams import tl
from kcheck.worker.backends.interpret.types import Tensor


def refused(feature: str) -> Callable[..., Any]:
    """A function that cannot run here."""

    def call(*_: Any, **__: Any) -> Any:
        raise NotBatched(feature)

    return call


class Names:
    """Helpers of kernels.

    Args:
        semantic: Triton's typing rules.
    """

    def __init__(self, semantic: BatchedSemantic) -> None:
        self._semantic = semantic

    def of(self, function: FunctionType) -> dict[str, Any]:
        """By name, what a function finds beside its variables and global names."""
        helpers = {
            "assign": self._assign, "range": self._range, "static_range": static_range, "decided": runtime.decided,
            "combine": self._combine, "negate": self._negate, "check": runtime.check,
        }  # fmt: skip
        forbidden = {name: refused(name) for name in ("print", "breakpoint") if name not in function.__globals__}
        extremes = {"min": (builtins.min, "minimum"), "max": (builtins.max, "maximum")}
        return (
            forbidden
            | {PREFIX + name: helper for name, helper in helpers.items()}
            | {name: self._extreme(*extreme) for name, extreme in extremes.items() if name not in function.__globals__}
        )

    def _assign(self, value: Any) -> Any:
        """``name = value``: numbers become tensors, as in Triton."""
        if value.__class__ is Tensor:
            return value
        if isinstance(value, tuple) and not hasattr(value, "_fields"):
            return tuple(self._assign(item) for item in value)
        return self._semantic.to_tensor(value, False)

    def _range(self, *bounds: Any, **options: Any) -> Range:
        return Range(self._semantic, bounds_of(bounds, options))

    def _combine(self, operator: Any, left: Any, right: Any) -> Any:
        """``left and right`` or ``left or right`` once both sides are known; see `runtime.combine`."""
        if not isinstance(left, Tensor):
            return right
        if not isinstance(right, Tensor):
            neutral = bool(right) == (operator == "and")
            return left if neutral else self._semantic.to_tensor(bool(right))
        method = self._semantic.logical_and if operator == "and" else self._semantic.logical_or
        return method(*(self._as_bool(value) for value in (left, right)))

    def _as_bool(self, value: Any) -> Any:
        if value.dtype is tl.int1:
            return value
        return block(Lanes(value.handle.data != 0, tl.int1), tl.int1, shape_of(value))

    def _negate(self, value: Any) -> Any:
        """``not value``."""
        if not isinstance(value, Tensor):
            return not value
        if isinstance(value.handle, Constant):
            return new_tensor(Constant(not value.handle.value, value.handle.shape, tl.int1), value.type)
        return block(Lanes(value.handle.data == 0, tl.int1), tl.int1, shape_of(value))

    def _extreme(self, plain: Callable[..., Any], name: str) -> Callable[..., Any]:
        """``min`` or ``max`` of Python, of scalars that differ between programs too."""

        def extreme(*values: Any, **options: Any) -> Any:
            tensors = [value for value in values if isinstance(value, Tensor)]
            if options or all(is_uniform(tensor.handle) for tensor in tensors):
                return plain(*values, **options)
            whole = all(tensor.dtype.is_int() for tensor in tensors)
            if len(values) != 2 or any(map(shape_of, tensors)) or not whole:  # of floats, NaN decides
                raise NotBatched(f"{plain.__name__} of these values")
            return getattr(tl, name)(*values)

        return extreme
