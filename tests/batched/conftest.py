"""Shared by the tests of the batched engine."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest


def _load(name: str) -> ModuleType:
    path = Path(__file__).parent / f"{name}.py"
    spec = importlib.util.spec_from_file_location(f"kcheck_batched_{name}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def kernels() -> ModuleType:
    """Kernels whose programs part, meet, or should not."""
    return _load("batched_kernels")


@pytest.fixture(scope="session")
def random_kernels() -> ModuleType:
    """The generator of kernels."""
    return _load("random_kernels")
