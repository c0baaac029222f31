"""Shared by tests that need real workers: one zygote for the whole session."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import hypothesis
import pytest

from kcheck.client import Client

# A process that a shell starts in the background ignores Ctrl-C, and so would every process that a test starts.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# A machine that does other work at the same time makes no test wrong.
hypothesis.settings.register_profile("kcheck", deadline=None)
hypothesis.settings.load_profile("kcheck")


@pytest.fixture(scope="session")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    """Workers on the CPU interpreter."""
    log: Path = tmp_path_factory.mktemp("client") / "worker.log"
    with Client("interpret", log) as started:
        yield started
