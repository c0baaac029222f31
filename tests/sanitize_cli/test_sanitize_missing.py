"""What is missing is said in one sentence, with exit code 3; the real binary is started where it is installed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from kcheck import loader
from kcheck.cli.options import chosen_backend
from kcheck.engine.draw import simplest
from kcheck.errors import CouldNotCheck
from kcheck.events import CaseVerdict
from kcheck.plan import Plan
from kcheck.sanitizer.launch import Launcher, Setup
from kcheck.sanitizer.locate import Sanitizer, locate
from kcheck.sanitizer.session import Session
from kcheck.sanitizer.tool import Tool

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


def test_without_the_tool(tmp_path: Path) -> None:
    try:
        locate({"PATH": "/nowhere"})
        pytest.skip("compute-sanitizer is installed here")
    except CouldNotCheck:
        pass
    said = sentence(kcheck(tmp_path, "sanitize", "builtin:paged_gather", "--tool", "memcheck", path="/nowhere"))
    assert "compute-sanitizer is missing" in said
    assert "pip install 'kcheck[sanitizer]'" in said


@WITHOUT_GPU
def test_without_a_gpu(tmp_path: Path) -> None:
    program = tmp_path / "compute-sanitizer"
    program.write_text(f"#!{sys.executable}\nprint('Version 2025.3.1.0')\n")
    program.chmod(0o755)
    said = sentence(kcheck(tmp_path, "sanitize", "builtin:paged_gather", "--tool", "memcheck", path=str(tmp_path)))
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
