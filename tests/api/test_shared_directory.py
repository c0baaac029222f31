"""The ``.kcheck`` directory when several processes use it at once, as the workers of pytest-xdist do."""

from __future__ import annotations

import gc
import os
from pathlib import Path

import pytest

from kcheck.case import Case
from kcheck.store import Store, read_case


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / ".kcheck"


def test_each_one_has_a_log_and_a_running_case_of_its_own(root: Path) -> None:
    stores = [Store(root).open(own_process=False) for _ in range(3)]
    assert [store.log.name for store in stores] == ["worker.log", "worker-1.log", "worker-2.log"]
    for number, store in enumerate(stores):
        store.running("file.py::target", Case(x=number))
    files = [root / name for name in ("running.json", "running-1.json", "running-2.json")]
    assert [read_case(file).case.args["x"] for file in files] == [0, 1, 2]
    stores[0].idle()
    assert [file.exists() for file in files] == [False, True, True]


def test_names_are_free_again_afterwards(root: Path) -> None:
    first = Store(root).open(own_process=False)
    assert first.log.name == "worker.log"
    del first
    gc.collect()
    assert Store(root).open(own_process=False).log.name == "worker.log"


def test_another_process_counts_too(root: Path) -> None:
    first = Store(root).open(own_process=False)
    child = os.fork()
    if not child:
        os._exit(Store(root).open(own_process=False).log.name != "worker-1.log")
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert first.log.name == "worker.log"
