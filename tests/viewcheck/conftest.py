"""Workers that run the view check."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from kcheck.backend_spec import VIEWCHECK
from kcheck.client import Client


@pytest.fixture(scope="session")
def checker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    """One zygote for the session."""
    log: Path = tmp_path_factory.mktemp("viewcheck") / "worker.log"
    with Client(VIEWCHECK, log) as started:
        yield started
