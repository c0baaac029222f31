"""``--all-configs`` and ``--pretend`` on the command line, and in the replay command."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

TARGET = """
import kcheck, torch, triton
import triton.language as tl
from hypothesis import strategies as st
from kcheck import strategies as ks


@triton.autotune([triton.Config({"BLOCK": 1}), triton.Config({"BLOCK": 4})], key=["n"])
@triton.jit
def double_kernel(out, x, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i) * 2, mask=i < n)


@st.composite
def cases(draw):
    return kcheck.Case(x=draw(ks.tensors((draw(ks.dims("n", max_value=9)),), kinds=ks.DENSE)))


@kcheck.target(cases=cases(), oracle=lambda x: x * 2)
def double(x):
    out = torch.empty_like(x)
    double_kernel[lambda meta: (triton.cdiv(x.numel(), meta["BLOCK"]),)](out, x, x.numel())
    return out


@kcheck.target(cases=cases(), oracle=lambda x: x * 2)
def for_blackwell(x):
    assert torch.cuda.get_device_capability(x.device) == (10, 0)
    return double(x)
"""


def kcheck_in(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    (folder / "kcheck_double.py").write_text(TARGET)
    return subprocess.run(
        [sys.executable, "-m", "kcheck", *arguments],
        cwd=folder, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip


def fuzz(folder: Path, name: str, *options: str) -> int:
    budget = ("--max-examples", "10", "--seed", "1", "--report", "json=report.json")
    return kcheck_in(folder, "fuzz", f"kcheck_double.py::{name}", *budget, *options).returncode


def test_a_finding_of_a_later_configuration_replays_with_the_option(tmp_path: Path) -> None:
    assert fuzz(tmp_path, "double") == 0
    assert fuzz(tmp_path, "double", "--all-configs") == 1
    (target,) = json.loads((tmp_path / "report.json").read_text())["targets"]
    (finding,) = target["findings"]
    assert finding["replay"].endswith("--all-configs")
    assert kcheck_in(tmp_path, *finding["replay"].split()[1:]).returncode == 1
    assert kcheck_in(tmp_path, *finding["replay"].split()[1:-1]).returncode == 0


def test_the_gpu_that_is_pretended_can_be_chosen(tmp_path: Path) -> None:
    assert fuzz(tmp_path, "for_blackwell") == 3  # every case was rejected
    assert fuzz(tmp_path, "for_blackwell", "--pretend", "sm_100") == 0


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--pretend", "sm_1"], "there is no GPU 'sm_1' to pretend"),
        (["--backend", "cuda", "--pretend", "sm_80"], "--pretend is for the CPU"),
        (["--backend", "cuda", "--all-configs"], "--all-configs is for the CPU"),
    ],
)
def test_what_cannot_be_pretended_is_a_usage_error(tmp_path: Path, options: list[str], says: str) -> None:
    ran = kcheck_in(tmp_path, "fuzz", "kcheck_double.py::double", *options)
    assert ran.returncode == 2
    assert says in ran.stderr
