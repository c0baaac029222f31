"""Whose code a source file is: a report points at the user's line, never into a library that it went through."""

from __future__ import annotations

import sysconfig
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path

_LIBRARIES = ("torch", "triton", "numpy", "hypothesis", "click", "kcheck", "kcheck.strategies", "kcheck.reports")


@lru_cache(maxsize=1)
def _library_folders() -> tuple[Path, ...]:
    """Folders of kcheck and of what it is built on; finding them imports none of the libraries."""
    specs = [find_spec(name) for name in _LIBRARIES]
    folders = [Path(spec.origin).resolve().parent for spec in specs if spec is not None and spec.origin]
    return tuple(folders)


@lru_cache(maxsize=4096)
def is_user_code(file: str) -> bool:
    """Whether a file belongs to the user: not to the standard library, nor to kcheck and what it is built on.

    Installed packages are the user's (a kernel library is tested where it is installed), and so are kcheck's
    built-in targets.

    Args:
        file: Path as a traceback gives it.
    """
    if file.startswith("<"):  # code made from a string
        return False
    path = Path(file).resolve()
    targets = Path(__file__).resolve().with_name("targets")
    if targets in path.parents:
        return True
    standard = Path(sysconfig.get_path("stdlib")).resolve()
    if standard in path.parents and not any(part.endswith("-packages") for part in path.parts):
        return False
    return not any(folder in path.parents for folder in _library_folders())
