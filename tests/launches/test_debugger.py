"""``kcheck replay --pdb`` stops in the kernel."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

TARGET = """
import kcheck, torch, triton
import triton.language as tl
from hypothesis import strategies as st
from kcheck import strategies as ks


@triton.jit
def double_kernel(out, x, columns, row_stride, FACTOR: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    column = tl.arange(0, BLOCK)
    mask = column < columns
    value = tl.load(x + row * row_stride + column, mask=mask)
    tl.store(out + row * columns + column, value * FACTOR, mask=mask)


def double(x, factor, stride):
    out = torch.empty(x.shape)
    double_kernel[(x.shape[0],)](out, x, x.shape[1], stride(x), FACTOR=factor, BLOCK=4)
    return out


@st.composite
def cases(draw):
    return kcheck.Case(x=draw(ks.tensors((3, 4), kinds=["contiguous", "narrowed"])))


target = kcheck.target(cases=cases(), oracle=lambda x: x * 2)


@target
def wrong_stride(x):
    return double(x, 2, lambda x: x.shape[1])


@target
def wrong_value(x):
    return double(x, 3, lambda x: x.stride(0))
"""


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with the target and what a run found in it."""
    folder = tmp_path_factory.mktemp("debugger")
    (folder / "kcheck_double.py").write_text(TARGET)
    assert kcheck_in(folder, "", "fuzz", "kcheck_double.py", "--max-examples", "5", "--seed", "1").returncode == 1
    return folder


def kcheck_in(folder: Path, commands: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run kcheck with commands for its debugger."""
    return subprocess.run(
        [sys.executable, "-m", "kcheck", *arguments],
        cwd=folder, input=commands, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip


def finding_of(folder: Path, name: str) -> str:
    (found,) = [p.stem for p in (folder / ".kcheck" / "findings").glob("*.json") if name in p.read_text()]
    return found


def test_it_stops_at_the_refused_access_with_the_arguments_by_name(project: Path) -> None:
    finding = finding_of(project, "::wrong_stride")
    commands = "p 'row', row\np 'shape', tuple(x.shape) if hasattr(x, 'shape') else x\nn\np 'value', value\nc\n"
    ran = kcheck_in(project, commands, "replay", finding, "--target", "kcheck_double.py::wrong_stride", "--pdb")
    assert ran.returncode == 0, ran.stderr
    assert "double_kernel reads x[" in ran.stdout
    assert "value = tl.load(x + row * row_stride + column, mask=mask)" in ran.stdout
    assert "'row', array(" in ran.stdout
    assert "'value', array(" in ran.stdout


def test_a_program_can_be_chosen(project: Path) -> None:
    finding = finding_of(project, "::wrong_stride")
    arguments = ("replay", finding, "--target", "kcheck_double.py::wrong_stride", "--pdb", "--program")
    assert "in program (1, 0, 0)" in kcheck_in(project, "c\nc\nc\n", *arguments, "1").stdout
    ran = kcheck_in(project, "", *arguments, "9,9")
    assert ran.returncode == 3
    assert "program (9, 9, 0) makes no access that is refused" in ran.stderr


def test_a_wrong_value_stops_at_the_first_line_of_a_program(project: Path) -> None:
    finding = finding_of(project, "::wrong_value")
    arguments = ("replay", finding, "--target", "kcheck_double.py::wrong_value", "--pdb", "--program", "2")
    ran = kcheck_in(project, "n\nn\np 'row', row\nc\n", *arguments)
    assert ran.returncode == 0, ran.stderr
    assert "double_kernel begins program (2, 0, 0)" in ran.stdout
    assert "'row', array([2]" in ran.stdout


def test_leaving_the_debugger_is_no_error(project: Path) -> None:
    finding = finding_of(project, "::wrong_stride")
    ran = kcheck_in(project, "q\n", "replay", finding, "--target", "kcheck_double.py::wrong_stride", "--pdb")
    assert (ran.returncode, ran.stderr) == (0, "")


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--program", "1"], "--program is for --pdb"),
        (["--pdb", "--program", "first"], "expected up to three numbers"),
        (["--pdb", "--backend", "cuda"], "leave --backend cuda out"),
    ],
)
def test_what_cannot_be_is_a_usage_error(project: Path, options: list[str], says: str) -> None:
    finding = finding_of(project, "::wrong_stride")
    ran = kcheck_in(project, "", "replay", finding, "--target", "kcheck_double.py::wrong_stride", *options)
    assert ran.returncode == 2
    assert says in ran.stderr
