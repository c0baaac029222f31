"""Trials of emitted tests without waiting for torch each time: forked from a process that has imported it."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from kcheck.emit import verify
from kcheck.emit.verify import Trial

_SERVER = """
import os, sys
os.environ["TRITON_INTERPRET"] = "1"  # as every emitted test does first, run as a program
import torch, triton
driver = sys.argv[1]
for line in sys.stdin:
    path, folder = line.split()
    pid = os.fork()
    if not pid:
        sys.argv[1:] = [path, "4"]
        sys.path[:0] = [folder]
        exec(driver)
        sys.stdout.flush()
        os._exit(0)
    if os.waitpid(pid, 0)[1]:
        print("died", flush=True)
"""
Attempt = Callable[[str, Mapping[str, str], Path], Trial]


@pytest.fixture(scope="session")
def server() -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-c", _SERVER, verify._DRIVER]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        yield process
        assert process.stdin is not None
        process.stdin.close()


@pytest.fixture
def quick(server: subprocess.Popen[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Trials take some 0.1 s."""
    count = iter(range(99))

    def attempt(text: str, environment: Mapping[str, str], folder: Path) -> Trial:
        path = tmp_path / f"emitted_{next(count)}.py"
        path.write_text(text.replace("os.path.dirname(__file__)", repr(str(folder))))
        assert server.stdin is not None
        assert server.stdout is not None
        server.stdin.write(f"{path} {folder}\n")
        server.stdin.flush()
        return Trial(**json.loads(server.stdout.readline()))

    monkeypatch.setattr("kcheck.emit.attempt", attempt)
