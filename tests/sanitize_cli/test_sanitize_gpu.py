"""Planted faults on a GPU under the real compute-sanitizer: each finding names the planted line; clean code passes."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from kcheck import loader
from kcheck.engine.draw import simplest
from kcheck.errors import CouldNotCheck
from kcheck.events import CaseVerdict, TargetDone, TargetResult
from kcheck.findings import Kind
from kcheck.layout import LayoutKind
from kcheck.plan import Plan
from kcheck.sanitizer.campaign import SanitizerCampaign, Subject
from kcheck.sanitizer.launch import Setup
from kcheck.sanitizer.locate import Sanitizer, locate
from kcheck.sanitizer.tool import Tool
from kcheck.store import Store

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.sanitizer,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA GPU"),
]
KERNELS = Path(__file__).parent.parent / "kernels"
FAULTS, CUDA_FAULTS = KERNELS / "sanitizer_faults.py", KERNELS / "cuda_faults.cu"


@pytest.fixture(scope="module")
def sanitizer() -> Sanitizer:
    try:
        return locate()
    except CouldNotCheck as reason:
        pytest.skip(str(reason))


@pytest.fixture(scope="module")
def cuda_faults(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """The CUDA C++ faults, built with line information; their place is in the environment."""
    nvcc = shutil.which("nvcc") or shutil.which("nvcc", path=f"{os.environ.get('CUDA_HOME', '/usr/local/cuda')}/bin")
    if nvcc is None:
        pytest.skip("nvcc is missing")
    library = tmp_path_factory.mktemp("cuda") / "libfaults.so"
    line = [nvcc, "-lineinfo", "-shared", "-Xcompiler", "-fPIC", "-arch=native", "-o", str(library), str(CUDA_FAULTS)]
    subprocess.run(line, check=True, timeout=300)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KCHECK_CUDA_FAULTS", str(library))
        yield


def run(sanitizer: Sanitizer, folder: Path, spec: str, tool: Tool, *plans: Plan, leaks: bool = False) -> TargetResult:
    (loaded,) = loader.load(spec)
    first = simplest(loaded.target, Plan(small=True))
    assert first is not None
    slots = first.record.learn_slots(first.case.drawn)
    drawn = [simplest(loaded.target, plan, slots) for plan in plans or (Plan(small=True),)]
    store = Store(folder).open()
    (folder / "reports").mkdir(exist_ok=True)
    setup = Setup(sanitizer, folder / "reports", store.log, leaks=leaks)
    subject = Subject(loaded.target, loaded.spec, tuple(one.case for one in drawn if one is not None))
    events = list(SanitizerCampaign([subject], [tool], setup, store).run())
    return next(event.result for event in events if isinstance(event, TargetDone))


def planted(file: Path, mark: str) -> int:
    """Number of the line with a mark."""
    lines = file.read_text().splitlines()
    return next(number for number, line in enumerate(lines, 1) if re.search(rf"planted: {mark}$", line))


@pytest.mark.parametrize(
    ("name", "tool", "kind"),
    [
        ("read", Tool.MEMCHECK, Kind.OUT_OF_BOUNDS_READ),
        ("write", Tool.MEMCHECK, Kind.OUT_OF_BOUNDS_WRITE),
        ("atomic", Tool.MEMCHECK, Kind.OUT_OF_BOUNDS_WRITE),
        ("misaligned", Tool.MEMCHECK, Kind.MISALIGNED_ACCESS),
        ("uninitialized", Tool.INITCHECK, Kind.UNINITIALIZED_READ),
    ],
)
def test_a_fault_of_a_triton_kernel(name: str, tool: Tool, kind: Kind, sanitizer: Sanitizer, tmp_path: Path) -> None:
    result = run(sanitizer, tmp_path, f"{FAULTS}::{name}", tool)
    (discovery,) = result.discoveries
    finding = discovery.finding
    assert (finding.kind, finding.file, finding.line) == (kind, str(FAULTS), planted(FAULTS, name))
    assert finding.kernel == f"{name}_kernel"
    assert any(f"Launched at {FAULTS}:" in note for note in finding.notes)


@pytest.mark.parametrize(("name", "mark", "kind"), [("api_error", "api", Kind.API_ERROR), ("leak", "leak", Kind.LEAK)])
def test_a_fault_of_the_host(name: str, mark: str, kind: Kind, sanitizer: Sanitizer, tmp_path: Path) -> None:
    result = run(sanitizer, tmp_path, f"{FAULTS}::{name}", Tool.MEMCHECK, leaks=kind is Kind.LEAK)
    (discovery,) = result.discoveries
    assert (discovery.finding.kind, discovery.finding.line) == (kind, planted(FAULTS, mark))


@pytest.mark.usefixtures("cuda_faults")
@pytest.mark.parametrize(
    ("name", "mark", "tool", "kind"),
    [
        ("shared_race", "race", Tool.RACECHECK, Kind.SHARED_RACE),
        ("divergent_barrier", "barrier", Tool.SYNCCHECK, Kind.BARRIER_DIVERGENCE),
    ],
)
def test_a_fault_of_a_cuda_kernel(
    name: str, mark: str, tool: Tool, kind: Kind, sanitizer: Sanitizer, tmp_path: Path
) -> None:
    result = run(sanitizer, tmp_path, f"{FAULTS}::{name}", tool)
    (discovery,) = result.discoveries
    finding = discovery.finding
    # A race has two sides; the write's line is the one that is named, the other one is in the message.
    line = planted(CUDA_FAULTS, mark)
    assert (finding.kind, Path(finding.file).name) == (kind, CUDA_FAULTS.name)
    assert f"{CUDA_FAULTS.name}:{line}" in finding.message or finding.line == line


@pytest.mark.usefixtures("cuda_faults")
def test_a_kernel_named_by_a_string_that_shows_no_fault_could_not_be_checked(
    sanitizer: Sanitizer, tmp_path: Path
) -> None:
    result = run(sanitizer, tmp_path, f"{FAULTS}::shared_race", Tool.SYNCCHECK)
    assert result.verdict is CaseVerdict.COULD_NOT_CHECK
    assert "shared_race is named by a string" in result.reasons[0]


@pytest.mark.parametrize("tool", Tool)
def test_what_is_right_passes(tool: Tool, sanitizer: Sanitizer, tmp_path: Path) -> None:
    plans = [Plan({"num_requests": n}, {"block_table": LayoutKind.NARROWED}, small=True) for n in (1, 2, 64)]
    result = run(sanitizer, tmp_path, "builtin:paged_gather", tool, *plans)
    assert (result.verdict, result.reasons) == (CaseVerdict.MATCH, ())
    assert result.cases == {CaseVerdict.MATCH: 3}


def test_nothing_leaks_where_nothing_leaks(sanitizer: Sanitizer, tmp_path: Path) -> None:
    result = run(sanitizer, tmp_path, f"{FAULTS}::fine", Tool.MEMCHECK, leaks=True)
    assert (result.verdict, result.reasons, result.discoveries) == (CaseVerdict.MATCH, (), ())


def test_the_founding_bug_is_one_finding_and_the_page_that_it_reads_is_named(
    sanitizer: Sanitizer, tmp_path: Path
) -> None:
    plans = [Plan({"num_requests": n}, {"block_table": LayoutKind.NARROWED}, small=True) for n in (1, 2, 16)]
    result = run(sanitizer, tmp_path, "builtin:paged_gather_shape_stride", Tool.MEMCHECK, *plans)
    (discovery,) = result.discoveries
    assert result.cases == {CaseVerdict.MATCH: 1, CaseVerdict.FINDINGS: 2}
    assert discovery.finding.kind is Kind.OUT_OF_BOUNDS_READ
    assert discovery.finding.source.startswith("byte = tl.load(record_ptr")
    assert discovery.case.views["block_table"].layout.shape[0] == 2
