"""From a `Target` object to the name that a worker process loads it by."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from kcheck.errors import UsageError
from kcheck.loader import BUILTIN
from kcheck.target import Target

_BUILTIN_MODULES = "kcheck.targets."


def spec_of(target: Target, folder: Path) -> str:
    """Name a target so that `kcheck.loader.load` in another process gives the same one.

    Args:
        target: What is to be named.
        folder: Where that process runs. Files below it are named relative to it.

    Raises:
        UsageError: The target is no variable of a module with a source file.
    """
    for module in _modules(target.function.__module__):
        for variable, value in list(vars(module).items()):
            if value is target:
                return f"{_place(module, target, folder)}{variable}"
    raise UsageError(
        f"{target.file}:{target.line}: target {target.name!r} is no variable of a module, and kcheck's worker "
        "processes import it by name; define it at the top level of a file"
    )


def _modules(first: str) -> Iterator[Any]:
    """All imported modules. The one of the function's definition comes first: others may have imported the target."""
    modules = dict(sys.modules)
    for module in (modules.pop(first, None), *modules.values()):
        if hasattr(module, "__dict__"):
            yield module


def _place(module: Any, target: Target, folder: Path) -> str:
    name: str = module.__name__
    if name.startswith(_BUILTIN_MODULES):
        return BUILTIN
    given = getattr(module, "__file__", None)
    if not given or not str(given).endswith(".py"):
        raise UsageError(
            f"target {target.name!r} is defined in {name}, which has no source file, and kcheck's worker processes "
            "import it from one; write it into a file"
        )
    file = Path(given).absolute()
    below = file.is_relative_to(folder)
    in_package = (file.parent / "__init__.py").exists()
    if _is_importable(name, file) and not (below and in_package):
        return f"{name}:"
    return f"{file.relative_to(folder) if below else file}::"


def _is_importable(name: str, file: Path) -> bool:
    """Whether the file is found under its module's name, and so can import relative to its package."""
    inside = Path(*name.split(".")).with_suffix(".py")
    return "." in name and any(Path(place, inside) == file for place in sys.path if place)
