"""``kcheck sanitize --tool viewcheck`` as a user runs it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from kcheck.cli.options import chosen_backend

KERNELS = Path(__file__).parent.parent / "kernels"
WRONG = f"{KERNELS / 'view_races.py'}::shift_wrong"


def kcheck(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    line = [sys.executable, "-P", "-m", "kcheck", *arguments]
    return subprocess.run(line, cwd=folder, capture_output=True, text=True, timeout=300, check=False)


@pytest.mark.skipif(chosen_backend("auto") == "cuda", reason="this machine has a GPU")
def test_it_is_the_tool_of_a_machine_without_a_gpu(tmp_path: Path) -> None:
    done = kcheck(tmp_path, "sanitize", f"{KERNELS / 'controls.py'}::masked_tail", "--max-examples", "0", "--seed", "1")
    assert done.returncode == 0, done
    assert "backend viewcheck" in done.stdout


def test_a_finding_is_saved_run_again_and_replayed_under_the_tool(tmp_path: Path) -> None:
    options = ("--tool", "viewcheck", "--max-examples", "0", "--seed", "1")
    done = kcheck(tmp_path, "sanitize", WRONG, *options, "--report", "json=report.json")
    assert done.returncode == 1, done
    report = json.loads((tmp_path / "report.json").read_text())
    (finding,) = report["targets"][0]["findings"]
    assert (finding["kind"], finding["argument"]) == ("race", "x")
    (saved,) = (tmp_path / ".kcheck" / "findings").glob("*.json")
    assert json.loads(saved.read_text())["tool"] == "viewcheck"
    # Without the sweep and random cases, the saved one is still run.
    again = kcheck(tmp_path, "sanitize", WRONG, *options, "--no-sweep")
    assert again.returncode == 1, again
    replayed = kcheck(tmp_path, "replay", finding["fingerprint"], "--target", WRONG)
    assert replayed.returncode == 1, replayed
    assert "writes x[7] in program (0, 0, 0) and reads it in" in " ".join(replayed.stdout.split())


def test_the_share_of_a_large_grid_is_told(tmp_path: Path) -> None:
    target = tmp_path / "kcheck_large.py"
    target.write_text(LARGE)
    done = kcheck(tmp_path, "sanitize", str(target), "--tool", "viewcheck", "--max-examples", "0", "--no-sweep")
    assert "no case ran" in done.stdout
    done = kcheck(tmp_path, "sanitize", str(target), "--tool", "viewcheck", "--max-examples", "1", "--seed", "1")
    said = " ".join(done.stdout.split())
    assert "2,000 of 5,000 programs of kernel ones_kernel ran (40.00%)" in said
    assert done.returncode == 0, done


def test_leaks_are_for_memcheck(tmp_path: Path) -> None:
    done = kcheck(tmp_path, "sanitize", WRONG, "--tool", "viewcheck", "--leaks")
    assert (done.returncode, done.stderr) == (2, "kcheck: --leaks is for memcheck; the tool is viewcheck\n")


LARGE = """
import torch
import triton
import triton.language as tl
from hypothesis import strategies as st

import kcheck
from kcheck import strategies as ks


@triton.jit
def ones_kernel(x, out):
    tl.store(out + tl.program_id(0), tl.load(x + tl.program_id(0)))


@st.composite
def cases(draw):
    return kcheck.Case(x=draw(ks.tensors((5000,), "float32", kinds=ks.DENSE)))


@kcheck.target(cases=cases(), oracle=lambda x: x.clone(), kernels=[ones_kernel])
def copied(x):
    out = torch.empty_like(x)
    ones_kernel[(5000,)](x, out)
    return out
"""
