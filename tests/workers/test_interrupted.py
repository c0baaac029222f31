"""A shard is told to stop, or its run is killed, while it imports a target: it ends."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

LOOP = """
import pathlib, time
pathlib.Path("importing").touch()
while True:
    time.sleep(0.01)
"""


def started(folder: Path) -> subprocess.Popen[str]:
    """A run of two shards that import without end."""
    (folder / "kcheck_loop.py").write_text(LOOP)
    command = [sys.executable, "-m", "kcheck", "fuzz", "kcheck_loop.py", "--workers", "2", "--max-examples", "2"]
    run = subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    deadline = time.monotonic() + 60
    while not (folder / "importing").exists():
        assert time.monotonic() < deadline, "no shard has begun to import"
        time.sleep(0.05)
    return run


def shards_of(folder: Path) -> list[int]:
    """Processes of shards that are at work in a folder."""
    found = []
    for process in Path("/proc").iterdir():
        try:
            words = (process / "cmdline").read_text()
            if "shard_process" in words and (process / "cwd").resolve() == folder.resolve():
                found.append(int(process.name))
        except (OSError, ValueError):
            continue
    return found


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_no_shard_stays_that_was_importing(how: signal.Signals, tmp_path: Path) -> None:
    run = started(tmp_path)
    time.sleep(0.3)
    run.send_signal(how)
    run.communicate(timeout=60)
    assert run.returncode == (130 if how is signal.SIGINT else -how)
    deadline = time.monotonic() + 20
    while shards_of(tmp_path):
        assert time.monotonic() < deadline, "a shard is left"
        time.sleep(0.05)
