"""The view check compiled into kernels: the same findings as on the CPU, and silence where the CPU is silent."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
import torch

from kcheck import loader
from kcheck.backend_spec import VIEWCHECK, BackendSpec
from kcheck.client import Client
from kcheck.engine import choose
from kcheck.findings import Finding
from kcheck.plan import Plan

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA GPU")]

KERNELS = Path(__file__).parent.parent / "kernels"
STRAY = {"out-of-view-read", "out-of-view-write", "out-of-bounds-read", "out-of-bounds-write"}


def client(backend: BackendSpec, folder: Path) -> Client:
    return Client(str(backend), folder / "worker.log", case_timeout=120.0)


@pytest.fixture(scope="module")
def cpu(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    with client(BackendSpec(VIEWCHECK), tmp_path_factory.mktemp("cpu")) as started:
        yield started


@pytest.fixture(scope="module")
def quick(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    with client(BackendSpec("cuda", checked=True), tmp_path_factory.mktemp("quick")) as started:
        yield started


@pytest.fixture(scope="module")
def full(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    with client(BackendSpec(VIEWCHECK, on_gpu=True), tmp_path_factory.mktemp("full")) as started:
        yield started


def judged(spec: str, *clients: Client, count: int = 10) -> Iterator[list[tuple[Finding, ...]]]:
    """Findings of each case by each client."""
    (one,) = loader.load(spec if spec.startswith("builtin:") else str(KERNELS / spec))
    for each in clients:
        each.load(one.spec)
    cases = list(islice(choose.boundary_cases(one.target, Plan()), count))
    for case in cases + choose.random_cases(one.target, Plan(), count // 2, 3):
        answers = [each.judge(one.spec, case) for each in clients]
        assert not any(answer.reason for answer in answers), answers
        yield [answer.findings for answer in answers]


def told(findings: tuple[Finding, ...]) -> set[tuple[Any, ...]]:
    """What a stray access says for itself."""
    return {
        (
            f.kind.value,
            f.severity,
            f.kernel,
            f.line,
            f.argument,
            f.index,
            f.landed,
            f.program,
            f.count,
            f.programs,
            f.chain,
        )
        for f in findings
        if f.kind.value in STRAY
    }


FORMS = ["scalar", "tile", "alias", "helper", "noinline", "moved", "chosen", "early", "while", "atomic", "table"]


@pytest.mark.parametrize("form", FORMS)
def test_each_form_of_access_is_told_as_on_the_cpu(form: str, cpu: Client, quick: Client) -> None:
    stray = 0
    for by_cpu, by_gpu in judged(f"view_forms.py::{form}_wrong", cpu, quick):
        assert told(by_gpu) == told(by_cpu)
        stray += bool(told(by_gpu))
    assert stray


@pytest.mark.parametrize("form", [*FORMS, "descriptor", "tuned"])
def test_what_is_right_is_silent(form: str, full: Client) -> None:
    for (findings,) in judged(f"view_forms.py::{form}_right", full):
        assert findings == ()


@pytest.mark.parametrize("form", ["descriptor", "tuned"])
def test_what_the_cpu_cannot_run_or_runs_once_is_found(form: str, quick: Client) -> None:
    found = {f.kind.value for (findings,) in judged(f"view_forms.py::{form}_wrong", quick) for f in findings}
    assert "out-of-view-read" in found


@pytest.mark.parametrize(
    ("spec", "count"),  # so many cases of the sweep that some show it
    [
        ("two_bugs.py::table_stride", 8),
        ("two_bugs.py::output_rows", 14),
        ("logits_rows.py::wrong", 8),
        ("interleaved.py::wrong", 14),
        ("oob_write.py::wrong", 4),
        ("builtin:paged_gather_shape_stride", 20),
    ],
)
def test_pairs_are_told_as_on_the_cpu(spec: str, count: int, cpu: Client, quick: Client) -> None:
    stray = 0
    for by_cpu, by_gpu in judged(spec, cpu, quick, count=count):
        assert told(by_gpu) == told(by_cpu)
        stray += bool(told(by_gpu))
    assert stray


@pytest.mark.parametrize(
    ("spec", "kind", "argument", "line"),
    [
        ("view_races.py::split_wrong", "race", "out", "tl.store(out_ptr"),
        ("view_races.py::shift_wrong", "race", "x", "tl.store(out_ptr"),
        ("view_races.py::total_wrong", "race", "total_ptr (made by the target)", "tl.store(total_ptr"),
        (
            "view_values.py::padded_sum_wrong",
            "uninitialized-read",
            "parts_ptr (made by the target)",
            "parts = tl.load(",
        ),
        ("view_values.py::zeroed_wrong", "uninitialized-read", "parts_ptr (made by the target)", "parts = tl.load("),
    ],
)
def test_hazards_have_their_line(spec: str, kind: str, argument: str, line: str, full: Client) -> None:
    found = [f for (findings,) in judged(spec, full, count=6) for f in findings if f.kind.value == kind]
    assert found
    assert {f.argument for f in found} == {argument}
    assert all(f.source.startswith(line) for f in found)


@pytest.mark.parametrize(
    "spec",
    [
        "view_races.py::split_right",
        "view_races.py::shift_right",
        "view_races.py::last_program_right",
        "view_races.py::scatter_right",
        "view_values.py::padded_sum_right",
        "controls_matmul.py::matmul",
        "controls_reduce.py::atomic_column_sum",
        "controls_reduce.py::last_block_sum",
        "interleaved.py::fixed",
        "builtin:paged_gather",
    ],
)
def test_controls_are_silent(spec: str, full: Client) -> None:
    for (findings,) in judged(spec, full, count=6):
        assert findings == ()
