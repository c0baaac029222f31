"""What is to be tested: a function, a module's class or a method, found by name, with its parameters."""

from __future__ import annotations

import inspect
import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from kcheck import importing, loader
from kcheck.errors import UsageError

FORM = "package.module:function or path/file.py:function"


@dataclass(frozen=True, slots=True)
class Wrapper:
    """A callable that launches kernels.

    Attributes:
        module: Where the user finds it.
        path: Its name in the module, ``scale`` or ``Ops.scale``.
        code: The function whose parameters and source count.
        parameters: Those of a call.
        construct: Parameters of the constructor, for the class of a torch module; None: nothing to construct.
        suffix: What a call has behind the name: ``.apply`` of an autograd function.
    """

    module: ModuleType
    path: str
    code: Callable[..., Any]
    parameters: Mapping[str, inspect.Parameter]
    construct: Mapping[str, inspect.Parameter] | None = None
    suffix: str = ""

    @property
    def name(self) -> str:
        """Its last name."""
        return self.path.rpartition(".")[2]


def find(spec: str) -> Wrapper:
    """Import what the user names.

    Args:
        spec: In the form of `FORM`.

    Raises:
        UsageError: There is no such thing, or it cannot be called.
    """
    place, colon, path = spec.rpartition(":")
    place = place.rstrip(":")
    if not colon or not place or not path:
        raise UsageError(f"{spec!r} names no function; the form is {FORM}")
    module = loader.module(place)
    found: Any = module
    owner: Any = None
    for part in path.split("."):
        if not hasattr(found, part):
            known = [n for n, v in vars(module).items() if inspect.isfunction(v) and v.__module__ == module.__name__]
            listed = f"; its functions are {', '.join(known[:8])}" if known else ""
            raise UsageError(f"{place} has no {path!r}{listed}")
        owner, found = found, getattr(found, part)
    return _wrapper(module, path, found, owner)


def _wrapper(module: ModuleType, path: str, found: Any, owner: Any) -> Wrapper:
    if is_kernel(found):
        raise UsageError(f"{path} is a kernel; name the Python function that launches it")
    if inspect.isclass(found):
        return _of_class(module, path, found)
    if not callable(found):
        raise UsageError(f"{path} is a {type(found).__name__}, which cannot be called; name a function")
    function = getattr(found, "_init_fn", found)  # torch.library.custom_op keeps the function there
    parameters = _parameters(function, path)
    if inspect.isclass(owner) and not inspect.ismethod(found) and next(iter(parameters), "") == "self":
        raise UsageError(f"{path} needs an instance of {owner.__name__}; name a function that makes one and calls it")
    return Wrapper(module, path, function, parameters)


def _of_class(module: ModuleType, path: str, found: type) -> Wrapper:
    forward = getattr(found, "forward", None)
    if forward is None:
        raise UsageError(f"{path} is a class; name a function, or the class of a torch module or autograd function")
    parameters = dict(list(_parameters(forward, path).items())[1:])  # without self, or ctx
    if hasattr(found, "apply") and hasattr(found, "backward"):
        return Wrapper(module, path, forward, parameters, suffix=".apply")
    return Wrapper(module, path, forward, parameters, dict(list(_parameters(found.__init__, path).items())[1:]))  # type: ignore[misc]


def _parameters(function: Any, path: str) -> dict[str, inspect.Parameter]:
    """Parameters that a call can give one by one."""
    try:
        parameters = inspect.signature(function).parameters
    except (TypeError, ValueError):
        raise UsageError(f"{path} has no signature that Python can read; wrap it in a function") from None
    packed = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return {name: one for name, one in parameters.items() if one.kind not in packed}


def is_kernel(value: Any) -> bool:
    """A ``@triton.jit`` function, or one that is wrapped by autotune or heuristics; Triton's own ones do not count."""
    if not type(value).__module__.startswith("triton.runtime"):
        return False
    while not inspect.isfunction(value) and hasattr(value, "fn"):
        value = value.fn
    return inspect.isfunction(value) and value.__module__.partition(".")[0] != "triton"


def search_path(module: ModuleType, home: Path) -> str | None:
    """The folder, as written in a file in `home`, that must be in ``sys.path`` to import a module; None: it is found.

    Args:
        module: Imported.
        home: Folder of the target file.
    """
    file = getattr(module, "__file__", None)
    if file is None:
        return None
    parts = module.__name__.split(".")
    up = len(parts) - (Path(file).name != "__init__.py")
    folder = Path(file).resolve().parents[up]
    found = {Path(place).resolve() for place in _ordinary_path()}
    return None if folder in found | {home.resolve()} else os.path.relpath(folder, home.resolve())


def _ordinary_path() -> list[str]:
    """Places that a run of kcheck in the current directory searches, what target files add not counted."""
    return [place for place in sys.path if place and place not in importing.target_folders()] + [str(Path.cwd())]
