"""Which functions a target runs: its kernels, the device functions they call, and the host code that launches them."""

from __future__ import annotations

import inspect
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from types import CodeType, FunctionType, ModuleType
from typing import Any

from kcheck.mutation import function_at, unwrapped
from kcheck.origin import is_user_code
from kcheck.scaffold.wrapper import is_kernel
from kcheck.target import Target


@dataclass(frozen=True, slots=True)
class Reached:
    """Functions that can be mutated, in the order in which they are reached.

    Attributes:
        kernels: Kernels, and device functions that they call.
        hosts: Functions from which such a kernel is launched.
    """

    kernels: tuple[FunctionType, ...]
    hosts: tuple[FunctionType, ...]


def reached(target: Target, launched: Collection[str]) -> Reached:
    """Follow the names that functions use, from the target on.

    Args:
        target: Where to begin.
        launched: Names of the kernels that count.
    """
    uses: dict[FunctionType, list[FunctionType]] = {}
    device: set[FunctionType] = set()
    waiting = [target.function] if isinstance(target.function, FunctionType) else []
    while waiting:
        function = waiting.pop(0)
        if function in uses:
            continue
        found = [(inner, kernel) for value in _used(function) for inner, kernel in _functions(value)]
        device.update(inner for inner, kernel in found if kernel)
        uses[function] = list(dict.fromkeys(inner for inner, _ in found))
        waiting += uses[function]
    roots = [function for function in uses if function in device and function.__name__ in launched]
    kernels = [f for f in _closure(roots, uses) if f in device]
    hosts = [f for f in uses if f not in device and any(root in _closure([f], uses) for root in roots)]
    return Reached(tuple(filter(_is_found_again, kernels)), tuple(filter(_is_found_again, hosts)))


def _closure(roots: list[FunctionType], uses: dict[FunctionType, list[FunctionType]]) -> list[FunctionType]:
    done: dict[FunctionType, None] = {}
    waiting = list(roots)
    while waiting:
        function = waiting.pop(0)
        if function not in done:
            done[function] = None
            waiting += uses[function]
    return list(done)


def _used(function: FunctionType) -> Iterator[Any]:
    """What the names in a function stand for: globals, closure variables, and members of modules and classes."""
    names = dict.fromkeys(_names(function.__code__))
    cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
    for name in (*names, *cells):
        try:
            value = cells[name].cell_contents if name in cells else function.__globals__[name]
        except (KeyError, ValueError):
            continue
        yield value
        if isinstance(value, ModuleType):
            members = vars(value)
            yield from (members[member] for member in names if member in members)


def _names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)


def _functions(value: Any) -> Iterator[tuple[FunctionType, bool]]:
    """Functions of the user's inside of a value, and whether they run on the device."""
    if inspect.isclass(value):
        for member in vars(value).values():
            if isinstance(member, (FunctionType, staticmethod, classmethod)) or is_kernel(member):
                yield from _functions(member)
        return
    found = unwrapped(value)
    if found is not None and is_user_code(found[0].__code__.co_filename):
        yield found[0], is_kernel(value)


def _is_found_again(function: FunctionType) -> bool:
    """A worker process finds the function by its name."""
    found = function_at(function.__module__, function.__qualname__)
    return found is not None and found[0] is function
