"""How the engine is asked for, and that the other backends and an unknown Triton do without."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from kcheck.backend_spec import DEFAULT_ENGINE, ENGINES, BackendSpec
from kcheck.errors import UsageError
from kcheck.worker.backends import open_backend
from kcheck.worker.backends.base import Region
from kcheck.worker.backends.batched import engine, triton_seams
from kcheck.worker.backends.interpret import InterpretBackend


@pytest.mark.parametrize("name", ENGINES)
def test_a_backend_is_opened_with_its_engine(name: str) -> None:
    spec = BackendSpec("interpret", engine=name)
    assert BackendSpec.parse(str(spec)) == spec
    backend = open_backend(str(spec))
    assert isinstance(backend, InterpretBackend)
    assert backend.engine == name
    assert spec.options == (() if name == DEFAULT_ENGINE else ("--engine", name))


def test_what_is_no_engine() -> None:
    with pytest.raises(UsageError, match="backend"):
        BackendSpec.parse("interpret,engine=fast")
    with pytest.raises(UsageError, match="--engine is for the CPU"):
        BackendSpec("cuda", engine="batched")


def test_every_seam_is_there() -> None:
    assert triton_seams.missing() == ""


def test_a_triton_that_lacks_a_seam(kernels: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "prepare", lambda: None)
    x = torch.zeros(64)
    with InterpretBackend(engine="batched").watch([Region("x", x, True)]) as watch:
        kernels.in_place[(8,)](x, 64, B=8)
    assert (x == 1).all()
    assert watch.launches[0].programs == 8


def test_a_run_says_what_could_not_run_together(tmp_path: Path) -> None:
    (tmp_path / "kcheck_it.py").write_text(
        "import kcheck, torch, triton, triton.language as tl\n"
        "from hypothesis import strategies as st\n"
        "from kcheck import strategies as ks\n"
        "@triton.jit\n"
        "def double_kernel(o, x, s, n):\n"
        "    i = tl.program_id(0)\n"
        "    tl.device_print('i', i)\n"
        "    tl.store(o + i, tl.load(x + i * s) * 2)\n"
        "@kcheck.target(cases=st.builds(kcheck.Case, x=ks.tensors((9,), 'float32')), oracle=lambda x: x * 2,\n"
        "               kernels=[double_kernel])\n"
        "def double(x):\n"
        "    o = torch.empty(9)\n"
        "    double_kernel[(9,)](o, x, x.stride(0), 9)\n"
        "    return o\n"
    )
    command = [sys.executable, "-m", "kcheck", "fuzz", "kcheck_it.py", "--engine", "batched", "--max-examples", "2"]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False)
    text = " ".join((ran.stdout + ran.stderr).split())
    assert ran.returncode == 0, text
    assert "kernel double_kernel ran one program after the other, not batched: tl.device_print" in text
