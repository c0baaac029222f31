"""kcheck finds the bugs that GPU kernel test suites miss: it tests the layout of the tensors.

A target names a function that launches Triton kernels, its PyTorch oracle and a strategy of cases
(`kcheck.strategies`); ``kcheck fuzz`` runs it over layouts and checks every memory access.
"""

import kcheck.startup  # noqa: F401

# isort: split
import importlib
from typing import TYPE_CHECKING, Any

from kcheck.case import Case, Role
from kcheck.errors import CouldNotCheck
from kcheck.layout import LayoutKind
from kcheck.target import Target, target

if TYPE_CHECKING:
    from kcheck.api import CheckFailed, FindingWarning, check

__version__ = "0.1.0"
__all__ = [
    "Case",
    "CheckFailed",
    "CouldNotCheck",
    "FindingWarning",
    "LayoutKind",
    "Role",
    "Target",
    "__version__",
    "check",
    "target",
]
_OF_API = ("CheckFailed", "FindingWarning", "check")


def __getattr__(name: str) -> Any:
    # Everything of kcheck imports this package, and `kcheck.api` stands above most of it.
    if name in _OF_API:
        return getattr(importlib.import_module("kcheck.api"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
