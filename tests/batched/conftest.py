"""Shared by the tests of the batched engine."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from kcheck.worker.backends.batched import engine

_HERE = Path(__file__).parent


def _load(name: str, path: Path) -> ModuleType:
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
    return _load("kernels", _HERE / "batched_kernels.py")


@pytest.fixture(scope="session")
def order_kernels() -> ModuleType:
    """Kernels whose result hangs on the order of programs, and their neighbours."""
    return _load("order_kernels", _HERE / "order_kernels.py")


@pytest.fixture(scope="session")
def random_kernels() -> ModuleType:
    """The generator of kernels."""
    return _load("generator", _HERE / "generator" / "__init__.py")


@pytest.fixture
def together(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Whether each launch so far ran batched."""
    ran: list[bool] = []
    run = engine.BatchedEngine.run

    def noted(self: Any, *arguments: Any) -> bool:
        ran.append(run(self, *arguments))
        return ran[-1]

    monkeypatch.setattr(engine.BatchedEngine, "run", noted)
    return ran
