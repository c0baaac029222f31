"""Keeps kcheck's own constants out of what is drawn.

Hypothesis also tries the constants of the modules that are loaded, but not those of installed packages. In a checkout
kcheck itself would not count as installed, and the same seed would draw other cases as soon as another command, or
another report format, is loaded.
"""

from __future__ import annotations

from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path

from hypothesis.internal.conjecture import providers

_PACKAGES = ("kcheck", "kcheck.reports", "kcheck.strategies")


@lru_cache
def leave_out() -> None:
    """Have Hypothesis pass over kcheck's modules, from now on."""
    if not hasattr(providers, "is_local_module_file"):  # before version 6.131 it tried no constants
        return
    before = providers.is_local_module_file
    specs = [find_spec(name) for name in _PACKAGES]
    own = tuple(f"{Path(spec.origin).resolve().parent}/" for spec in specs if spec is not None and spec.origin)

    def is_local(path: str) -> bool:
        return before(path) and not str(Path(path).resolve()).startswith(own)

    providers.is_local_module_file = is_local
