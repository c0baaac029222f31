"""The real compute-sanitizer starts, takes kcheck's options, and its refusal is understood."""

from __future__ import annotations

import ctypes
import subprocess
from pathlib import Path

import pytest

from kcheck.errors import CouldNotCheck
from kcheck.events import CaseVerdict
from kcheck.sanitizer.command import command, environment, python_module
from kcheck.sanitizer.locate import Sanitizer, locate
from kcheck.sanitizer.outcome import Run, judge_run
from kcheck.sanitizer.tool import ERROR_EXIT_CODE, Tool

pytestmark = pytest.mark.sanitizer


@pytest.fixture(scope="module")
def sanitizer() -> Sanitizer:
    try:
        return locate()
    except CouldNotCheck as reason:
        pytest.skip(str(reason))


def start(sanitizer: Sanitizer, tool: Tool, folder: Path, *, kernels: tuple[str, ...] = ()) -> Run:
    """Run a program that never touches CUDA."""
    xml, log = folder / "report.xml", folder / "run.log"
    line = command(sanitizer, tool, python_module("this"), xml, log, kernels=kernels, leak_check=True)
    done = subprocess.run(line, env=environment(), capture_output=True, text=True, timeout=120, check=False)
    assert "Usage:" not in done.stdout + done.stderr  # all options are known to it
    assert "invalid" not in done.stdout + done.stderr
    return Run(tool, xml, log, done.returncode, ended=True, launches={"k": 1})


@pytest.mark.parametrize("tool", Tool)
def test_a_program_without_cuda_is_refused_in_one_sentence(sanitizer: Sanitizer, tool: Tool, tmp_path: Path) -> None:
    run = start(sanitizer, tool, tmp_path, kernels=("_gather_kernel", "scatter$1.x"))
    assert run.exit_code == 255
    assert not run.xml.exists()
    outcome = judge_run(run)
    assert outcome.verdict is CaseVerdict.COULD_NOT_CHECK
    assert all("compute-sanitizer" in reason for reason in outcome.reasons)
    assert "without a CUDA" in outcome.reasons[0]


def test_without_a_driver_the_missing_driver_is_named(sanitizer: Sanitizer, tmp_path: Path) -> None:
    try:
        ctypes.CDLL("libcuda.so.1")
        pytest.skip("this machine has a CUDA driver")
    except OSError:
        pass
    outcome = judge_run(start(sanitizer, Tool.MEMCHECK, tmp_path))
    assert "libcuda.so.1" in outcome.reasons[0]


def test_the_file_names_are_taken_as_they_are(sanitizer: Sanitizer, tmp_path: Path) -> None:
    folder = tmp_path / "100%p %q{HOME}"
    folder.mkdir()
    assert start(sanitizer, Tool.MEMCHECK, folder).log.exists()


def test_the_error_exit_code_is_none_of_the_tools_own() -> None:
    assert ERROR_EXIT_CODE not in (0, 1, 13, 255)
