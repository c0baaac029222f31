"""Shared by the tests of the backends: modules of kernels, and the watch that most tests want."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from types import ModuleType

import pytest
import torch

from kcheck.worker.backends.base import Region, Watch
from kcheck.worker.backends.interpret import InterpretBackend


def _load(name: str) -> ModuleType:
    path = Path(__file__).parent / f"{name}.py"
    spec = importlib.util.spec_from_file_location(f"kcheck_backend_{name}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def features() -> ModuleType:
    """Kernels that each use one feature of Triton."""
    return _load("feature_kernels")


@pytest.fixture(scope="session")
def bugs() -> ModuleType:
    """Kernels before and after a fix."""
    return _load("bug_kernels")


@pytest.fixture(scope="session")
def hazards() -> ModuleType:
    """Kernels whose accesses the test chooses."""
    return _load("hazard_kernels")


@pytest.fixture(scope="session")
def hint_kernels() -> ModuleType:
    """Kernels that give hints about values that the test chooses."""
    return _load("hint_kernels")


@contextmanager
def _silent(engine: str, **tensors: torch.Tensor) -> Iterator[Watch]:
    regions = [Region(name, tensor, True) for name, tensor in tensors.items()]
    with InterpretBackend(engine=engine).watch(regions) as watch:
        yield watch
    assert not watch.faults
    assert not watch.gaps
    assert not watch.sequential


@pytest.fixture(params=["sequential", "batched"])
def silent(request: pytest.FixtureRequest) -> Callable[..., object]:
    """Watch these tensors, in each engine, and check that nothing was reported."""
    return partial(_silent, request.param)
