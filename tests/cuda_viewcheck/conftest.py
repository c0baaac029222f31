"""What the tests of this folder share."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest


def _module(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"cuda_viewcheck_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def forms() -> ModuleType:
    """Kernels with one bug in many forms."""
    return _module(Path(__file__).parent.parent / "kernels" / "view_forms.py")


@pytest.fixture(scope="session")
def compiling() -> ModuleType:
    """The compiler of checked kernels."""
    return _module(Path(__file__).parent / "compiling.py")


@pytest.fixture(scope="session")
def evaluating() -> ModuleType:
    """The evaluator of scalars."""
    return _module(Path(__file__).parent / "evaluating.py")


@pytest.fixture(scope="session")
def tiles() -> ModuleType:
    """Kernels whose bounds are evaluated."""
    return _module(Path(__file__).parent / "tiles.py")
