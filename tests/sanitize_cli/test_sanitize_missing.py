"""What is missing is said in one sentence, with exit code 3; the real binary is started where it is installed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from kcheck import loader
from kcheck.cli import sanitize
from kcheck.cli.options import chosen_backend
from kcheck.engine.draw import simplest
from kcheck.errors import CouldNotCheck
from kcheck.events import CaseVerdict
from kcheck.plan import Plan
from kcheck.sanitizer.launch import Launcher, Setup
from kcheck.sanitizer.locate import Sanitizer, locate
from kcheck.sanitizer.session import Session
from kcheck.sanitizer.tool import Tool
from kcheck.store import Store

FAKE = Path(__file__).with_name("fake_compute_sanitizer.py")
WITHOUT_GPU = pytest.mark.skipif(chosen_backend("auto") == "cuda", reason="this machine has a GPU")


def kcheck(folder: Path, *arguments: str, path: str) -> subprocess.CompletedProcess[str]:
    hidden = {"PATH": path, "CUDA_HOME": "", "CUDA_PATH": ""}
    line = [sys.executable, "-P", "-m", "kcheck", *arguments]
    return subprocess.run(
        line, cwd=folder, env=os.environ | hidden, capture_output=True, text=True, timeout=120, check=False
    )


def sentence(done: subprocess.CompletedProcess[str]) -> str:
    assert done.returncode == 3, done
    assert done.stdout == ""
    assert done.stderr.startswith("kcheck: ")
    assert done.stderr.count("\n") == 1
    return done.stderr


def test_without_the_tool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kcheck.sanitizer.locate._candidates", lambda environ: iter(()))
    monkeypatch.setattr(sanitize, "check_gpu", lambda: None)
    with pytest.raises(CouldNotCheck, match=r"compute-sanitizer is missing.*pip install 'kcheck\[sanitizer\]'"):
        sanitize._setup(Store(tmp_path).open(own_process=False), 1.0, leaks=False)


@WITHOUT_GPU
def test_without_a_gpu(tmp_path: Path) -> None:
    """Whether or not compute-sanitizer is there: nobody need install it in vain."""
    said = sentence(kcheck(tmp_path, "sanitize", "builtin:paged_gather", "--tool", "memcheck", path="/nowhere"))
    assert said == "kcheck: an NVIDIA GPU and its driver are missing: this machine shows none in /dev\n"


@pytest.mark.sanitizer
@WITHOUT_GPU
def test_the_real_tool_starts_the_worker_and_its_refusal_is_understood(tmp_path: Path) -> None:
    try:
        sanitizer: Sanitizer = locate()
    except CouldNotCheck as reason:
        pytest.skip(str(reason))
    (loaded,) = loader.load("builtin:paged_gather")
    drawn = simplest(loaded.target, Plan(small=True))
    assert drawn is not None
    setup = Setup(sanitizer, tmp_path, tmp_path / "worker.log", "cuda")
    session = Session(Launcher(setup, Tool.MEMCHECK, loaded.spec, loaded.target.kernels))
    checked = list(session.check([drawn.case]))
    assert all(one.verdict is CaseVerdict.COULD_NOT_CHECK for one in checked)
    assert "without a CUDA" in session.reasons[0]
