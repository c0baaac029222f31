"""What a wrapper's code refers to: its kernels, through helper functions, and an oracle beside it."""

from __future__ import annotations

import ast
import inspect
import sys
import textwrap
from collections.abc import Iterator
from types import CodeType, FunctionType, ModuleType
from typing import Any

from kcheck.scaffold.wrapper import Wrapper, is_kernel

_ORACLE_FORMS = (
    "{}_ref", "ref_{}", "{}_reference", "reference_{}", "{}_torch", "torch_{}", "{}_pytorch", "pytorch_{}", "naive_{}",
    "{}_naive", "{}_native", "native_{}", "{}_oracle",
)  # fmt: skip


def kernels(wrapper: Wrapper) -> list[tuple[str, str]]:
    """Kernels that the wrapper's code names, directly or through functions and classes of the same package.

    Returns:
        ``(module, name)`` of each, in the order in which they are met.
    """
    package = wrapper.module.__name__.partition(".")[0]
    found: dict[int, tuple[str, str]] = {}
    seen: set[int] = set()
    waiting: list[Any] = [wrapper.code]
    while waiting:
        function = waiting.pop(0)
        if id(function) in seen:
            continue
        seen.add(id(function))
        for value in _named(function):
            if is_kernel(value):
                home = _home(value, function)
                if home is not None:
                    found.setdefault(id(value), home)
            elif inspect.isclass(value) and _is_own(value, package):
                waiting += [getattr(member, "__func__", member) for member in vars(value).values()]
            elif callable(value) and _is_own(value, package):
                waiting.append(value)
    return list(found.values())


def _is_own(value: Any, package: str) -> bool:
    return str(getattr(value, "__module__", "")).partition(".")[0] == package


def _named(function: Any) -> Iterator[Any]:
    """Values that a function's code names: globals, attributes of modules, closures, what a decorator wraps."""
    inner = getattr(function, "__wrapped__", None) or getattr(function, "_init_fn", None)
    if inner is not None:
        yield inner
    if not isinstance(function, FunctionType):
        return
    names = list(_names(function.__code__))
    for name in names:
        value = function.__globals__.get(name)
        yield value
        if isinstance(value, ModuleType):
            yield from (vars(value).get(other) for other in names)
        elif inspect.isclass(value):
            yield value
    for cell in function.__closure__ or ():
        try:
            yield cell.cell_contents
        except ValueError:  # not filled yet
            continue
    yield from _imported_inside(function, names)


def _imported_inside(function: FunctionType, names: list[str]) -> Iterator[Any]:
    """What ``from x import y`` inside of the function gives, if that module is there already."""
    package = function.__globals__.get("__package__") or ""
    for name in names:
        for place in (name, f"{package}.{name}"):
            module = sys.modules.get(place)
            if isinstance(module, ModuleType) and place.partition(".")[0] == package.partition(".")[0]:
                yield from (vars(module).get(other) for other in names)


def _names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)


def _home(kernel: Any, function: Any) -> tuple[str, str] | None:
    """Where a kernel can be imported from: its own module, or the one that uses it."""
    inner = kernel
    while not inspect.isfunction(inner) and hasattr(inner, "fn"):
        inner = inner.fn
    for place in (getattr(inner, "__module__", ""), getattr(function, "__module__", "")):
        for name, value in vars(sys.modules.get(place, object())).items() if place in sys.modules else ():
            if value is kernel:
                return place, name
    return None


def oracle(wrapper: Wrapper) -> tuple[str, dict[str, inspect.Parameter]] | None:
    """A plain function beside the wrapper whose name says that it is the reference.

    Returns:
        Its name in the module and its parameters; None if there is none.
    """
    scope = vars(wrapper.module)
    bare = wrapper.name.removeprefix("triton_").removesuffix("_triton")
    for stem in dict.fromkeys((wrapper.name, bare)):
        for form in _ORACLE_FORMS:
            found = scope.get(form.format(stem))
            if inspect.isfunction(found) and found is not wrapper.code:
                return form.format(stem), dict(inspect.signature(found).parameters)
    return None


def returns(wrapper: Wrapper) -> bool:
    """Whether the wrapper's code returns something; True where there is no source."""
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(wrapper.code)))
    except (OSError, TypeError, SyntaxError):
        return True
    return any(isinstance(node, ast.Return) and node.value is not None for node in ast.walk(tree))


def defaults(wrapper: Wrapper) -> dict[str, Any]:
    """Defaults of parameters of functions and methods in the wrapper's module, by name; the first one counts."""
    found: dict[str, Any] = {}
    own = [v for v in vars(wrapper.module).values() if getattr(v, "__module__", "") == wrapper.module.__name__]
    members = [m for value in own if inspect.isclass(value) for m in vars(value).values()]
    for value in (*own, *members):
        function = getattr(value, "__func__", value)
        if inspect.isfunction(function):
            for name, parameter in inspect.signature(function).parameters.items():
                if parameter.default is not parameter.empty:
                    found.setdefault(name, parameter.default)
    return found
