"""What rewritten kernels call: the pieces of Triton's language that plain Python does otherwise."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any, Literal

import numpy as np

from kcheck.worker.backends.base import DeviceAssertFailed
from kcheck.worker.backends.interpret import frames
from kcheck.worker.backends.interpret.spinning import SpinGuard
from kcheck.worker.backends.interpret.triton_seams import core, semantic, tl
from kcheck.worker.backends.interpret.types import like

_Operator = Literal["and", "or"]


class _Current:
    """The watch that is entered, and the kernel that runs."""

    spin = SpinGuard()
    kernel = ""


current = _Current()


def assign(value: Any) -> Any:
    """``name = value``: numbers become tensors, as in Triton."""
    if value.__class__ is core.tensor:
        return value
    if isinstance(value, tuple) and not hasattr(value, "_fields"):
        return tuple(assign(item) for item in value)
    return semantic.to_tensor(value, False)


def device_range(*bounds: Any, **options: Any) -> Iterator[Any]:
    """``range`` and ``tl.range`` over integers or scalar tensors, yielding scalar tensors."""
    named = {"arg1": 0, "start": 0, "arg2": 1, "stop": 1, "end": 1, "step": 2}
    values: list[Any] = [*bounds, None, None, None][:3]
    for name, value in options.items():
        if name in named:
            values[named[name]] = value
    values = [value.value if isinstance(value, core.constexpr) else value for value in values]
    first, second, step = values
    start, stop = (0, first) if second is None else (first, second)
    step = 1 if step is None else step
    kind = tl.int32
    for bound in (start, stop, step):
        bound_kind = bound.dtype if isinstance(bound, core.tensor) else semantic.to_tensor(bound).dtype
        if bound_kind.primitive_bitwidth > kind.primitive_bitwidth:
            kind = bound_kind
    for value in range(_integer(start), _integer(stop), _integer(step)):
        yield semantic.scalar_constant(value, kind)


def _integer(value: Any) -> int:
    return value if isinstance(value, int) else int(value.__index__())


def decided(operator: _Operator, left: Any) -> bool:
    """Whether ``left and ...`` is already `left`. Never for tensors: Triton evaluates both sides."""
    if isinstance(left, core.tensor):
        return False
    return bool(left) == (operator == "or")


def combine(operator: _Operator, left: Any, right: Any) -> Any:
    """The value of ``left and right`` or ``left or right`` once both sides are known."""
    if not isinstance(left, core.tensor):
        return right  # a constant that decides nothing
    if not isinstance(right, core.tensor):
        neutral = bool(right) == (operator == "and")
        return left if neutral else semantic.to_tensor(bool(right))
    method = semantic.logical_and if operator == "and" else semantic.logical_or
    return method(*(_as_bool(value) for value in (left, right)))


def _as_bool(value: Any) -> Any:
    return value if value.dtype is tl.int1 else like(value.handle.data != 0, tl.int1, value)


def negate(value: Any) -> Any:
    """``not value``."""
    return like(value.handle.data == 0, tl.int1, value) if isinstance(value, core.tensor) else not value


def check(condition: Any, message: Any = "") -> None:
    """``assert`` and ``tl.device_assert``.

    Args:
        condition: A tensor, an array or a Python value.
        message: What the kernel says.

    Raises:
        DeviceAssertFailed: It does not hold in every lane.
    """
    held = condition.handle.data if isinstance(condition, core.tensor) else condition
    if not np.asarray(held, dtype=bool).all():
        chain, _ = frames.kernel_chain()
        text = getattr(message, "value", message)
        reason = f"device_assert failed: {text}" if text else "device_assert failed"
        raise DeviceAssertFailed(reason, chain[-1] if chain else None)


def turn(waits: bool) -> None:
    """A ``while`` loop starts its body; `waits` says whether memory decides when it ends."""
    current.spin.turn(sys._getframe(1), waits)
