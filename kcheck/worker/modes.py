"""Modes of torch that a run has entered stay in force where torch itself calls Python of the target."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from torch.overrides import _get_current_function_mode_stack

_ENGINE = "_engine_run_backward"
_kept: list[Any] = []  # the modes of the run that goes on


@contextmanager
def kept() -> Iterator[None]:
    """Have the modes that are entered now see what happens in backward passes and in operators of the target.

    torch leaves a mode while it handles a call, and a backward pass is one call (``Tensor.backward``), however much
    Python of the target runs in it.
    """
    stack = _get_current_function_mode_stack()  # type: ignore[no-untyped-call]
    engine: Any = getattr(torch.autograd, _ENGINE, None)

    def run(*args: Any, **kwargs: Any) -> Any:
        with reentered():
            return engine(*args, **kwargs)

    if engine is None or not stack:
        yield
        return
    _kept[:] = stack
    setattr(torch.autograd, _ENGINE, run)
    try:
        yield
    finally:
        setattr(torch.autograd, _ENGINE, engine)
        _kept.clear()


@contextmanager
def reentered() -> Iterator[None]:
    """Enter the modes of the run again, from inside of one."""
    with ExitStack() as entered:
        for mode in _kept:
            entered.enter_context(mode)
        yield
