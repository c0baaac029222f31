"""A strategy around a function that draws: what ``st.composite`` makes, at a tenth of its price.

Targets make their strategies anew for every case, since shapes depend on what was drawn before. Hypothesis validates a
new composite strategy, asks whether it can be empty and hashes its source for a label: some 60 µs each, more than the
draws in it. This is the only place that relies on what is not in Hypothesis's documentation: ``do_draw`` of a strategy,
and the three attributes that ``data.draw`` reads.
"""

from __future__ import annotations

import functools
import zlib
from collections.abc import Callable
from typing import Any, Concatenate, ParamSpec, TypeVar

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

P = ParamSpec("P")
T = TypeVar("T")


class Direct(SearchStrategy[T]):
    """Draws what a function draws.

    Args:
        function: Called with Hypothesis's ``draw`` and the arguments.
        label: Identity of the function, by which Hypothesis tells which parts of two cases are alike.
        args: Further positional arguments.
        kwargs: Keyword arguments.
    """

    is_empty = False
    has_reusable_values = False
    is_cacheable = False
    label = 0

    def __init__(self, function: Callable[..., T], label: int, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        super().__init__()
        self.label = label
        self._function, self._args, self._kwargs = function, args, kwargs

    def __repr__(self) -> str:
        given = [repr(arg) for arg in self._args] + [f"{name}={value!r}" for name, value in self._kwargs.items()]
        return f"{self._function.__name__}({', '.join(given)})"

    def validate(self) -> None:
        """Nothing to validate: the function does it when it draws."""

    def do_draw(self, data: Any) -> T:
        """Draw one value; `data` is Hypothesis's."""
        return self._function(data.draw, *self._args, **self._kwargs)


def direct(function: Callable[Concatenate[st.DrawFn, P], T]) -> Callable[P, SearchStrategy[T]]:
    """Use in place of ``st.composite``."""
    label = zlib.crc32(f"{function.__module__}.{function.__qualname__}".encode())

    @functools.wraps(function)
    def make(*args: P.args, **kwargs: P.kwargs) -> SearchStrategy[T]:
        return Direct(function, label, args, kwargs)

    return make
