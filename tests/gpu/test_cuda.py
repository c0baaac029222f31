"""The CUDA backend on a real GPU: what it finds without seeing single accesses, and what a device's faults become."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from kcheck import loader
from kcheck.case import Case
from kcheck.client import Client
from kcheck.engine import Campaign, Settings
from kcheck.engine.draw import simplest
from kcheck.events import CaseVerdict, RunDone, TargetResult
from kcheck.findings import Kind
from kcheck.layout import LayoutKind
from kcheck.plan import Plan
from kcheck.protocol import Judgement
from kcheck.store import Store

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA GPU")]
KERNELS = Path(__file__).parent.parent / "kernels"
FAULTS = f"{KERNELS / 'gpu_faults.py'}::faulty"


@pytest.fixture(scope="module")
def gpu(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    with Client("cuda", tmp_path_factory.mktemp("gpu") / "log", case_timeout=60) as client:
        yield client


def run(spec: str, gpu: Client, tmp_path: Path, examples: int = 60) -> TargetResult:
    spec = spec if spec.startswith("builtin:") else str(KERNELS / spec)
    (loaded,) = loader.load(spec)
    settings = Settings(max_examples=examples, max_time=60, seed=1)
    chosen = [loaded]
    done = list(Campaign(chosen, gpu, Store(tmp_path).open(), settings, "cuda").run())[-1]
    assert isinstance(done, RunDone)
    return done.results[0]


@pytest.mark.parametrize(
    ("spec", "kind", "argument"),
    [
        ("two_bugs.py::table_stride", Kind.OUT_OF_VIEW_READ, "table"),
        ("two_bugs.py::output_rows", Kind.OUT_OF_VIEW_WRITE, "out"),
        ("logits_rows.py::wrong", Kind.OUT_OF_VIEW_READ, "logits"),
        ("expanded_grad.py::wrong", Kind.OUT_OF_VIEW_READ, "grad"),
        ("oob_write.py::wrong", Kind.OUT_OF_BOUNDS_WRITE, "y"),
        ("logic_bug.py::wrong", Kind.VALUE_MISMATCH, "mean"),
        ("unwritten.py::wrong", Kind.UNWRITTEN_OUTPUT, "out"),
        ("mutated.py::wrong", Kind.INPUT_MUTATED, "x"),
        ("builtin:paged_gather_shape_stride", Kind.OUT_OF_VIEW_READ, "block_table"),
    ],
)
def test_a_planted_bug_is_found_without_a_crash(
    spec: str, kind: Kind, argument: str, gpu: Client, tmp_path: Path
) -> None:
    result = run(spec, gpu, tmp_path)
    found = {(d.finding.kind, d.finding.argument) for d in result.discoveries}
    assert (kind, argument) in found, found
    assert len(result.discoveries) == 1, [d.finding.message for d in result.discoveries]


@pytest.mark.parametrize(
    "spec",
    [
        "two_bugs.py::fixed",
        "logits_rows.py::fixed",
        "expanded_grad.py::fixed",
        "interleaved.py::fixed",
        "one_off.py::fixed",
        "controls.py::any_stride_copy",
        "controls.py::in_place",
        "controls.py::masked_tail",
        "controls_matmul.py::matmul",
        "controls_reduce.py::atomic_column_sum",
        "controls_reduce.py::last_block_sum",
        "builtin:paged_gather",
    ],
)
def test_what_is_right_is_silent(spec: str, gpu: Client, tmp_path: Path) -> None:
    result = run(spec, gpu, tmp_path)
    assert result.verdict is CaseVerdict.MATCH, (result.reasons, [d.finding.message for d in result.discoveries])


def fault(mode: str, gpu: Client) -> Judgement:
    (loaded,) = loader.load(FAULTS)
    gpu.load(FAULTS)
    drawn = simplest(loaded.target, Plan({"mode": mode}, small=True))
    assert drawn is not None
    return gpu.judge(FAULTS, drawn.case)


@pytest.mark.parametrize(
    ("mode", "kind", "says"),
    [
        ("read", Kind.CRASH, "illegal memory access"),
        ("write", Kind.CRASH, "illegal memory access"),
        ("misaligned", Kind.MISALIGNED_ACCESS, "misaligned address"),
        ("assert", Kind.DEVICE_ASSERT, "device assert"),
        ("compile", Kind.COMPILE_ERROR, "does not compile"),
    ],
)
def test_a_fault_of_the_device_is_a_finding_and_the_run_goes_on(mode: str, kind: Kind, says: str, gpu: Client) -> None:
    (finding,) = fault(mode, gpu).findings
    assert finding.kind is kind
    assert says in finding.message
    assert finding.kernel == "faulty_kernel"
    assert finding.source.startswith("faulty_kernel[(1,)](")
    assert fault("fine", gpu).verdict is CaseVerdict.MATCH


def test_a_kernel_that_never_ends_is_a_timeout(gpu: Client) -> None:
    before, gpu.case_timeout = gpu.case_timeout, 5.0
    try:
        (finding,) = fault("hang", gpu).findings
    finally:
        gpu.case_timeout = before
    assert finding.kind is Kind.TIMEOUT
    assert fault("fine", gpu).verdict is CaseVerdict.MATCH


@pytest.mark.parametrize(("mode", "says"), [("memory", "out of memory"), ("killed", "killed from outside")])
def test_what_is_not_the_kernels_fault_is_could_not_check(mode: str, says: str, gpu: Client) -> None:
    judgement = fault(mode, gpu)
    assert judgement.verdict is CaseVerdict.COULD_NOT_CHECK
    assert says in judgement.reason
    assert fault("fine", gpu).verdict is CaseVerdict.MATCH


def test_the_cause_of_a_compile_is_told(gpu: Client) -> None:
    spec = f"{KERNELS / 'logits_rows.py'}::fixed"
    (loaded,) = loader.load(spec)
    gpu.load(spec)

    def case(kind: LayoutKind) -> Case:
        first = simplest(loaded.target, Plan(small=True))
        assert first is not None
        slots = first.record.learn_slots(first.case.drawn)
        drawn = simplest(loaded.target, Plan(layouts={"logits": kind}, small=True), slots)
        assert drawn is not None
        return drawn.case

    gpu.judge(spec, case(LayoutKind.CONTIGUOUS))
    again = gpu.judge(spec, case(LayoutKind.TRANSPOSED))
    (compiled, *_) = again.compiles
    assert compiled[0] == "row_max_kernel"
    assert "entry_stride: = 1 → i32" in compiled[3]
    assert not gpu.judge(spec, case(LayoutKind.TRANSPOSED)).compiles


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "bfloat16", "float8_e4m3fn", "int64", "uint8"])
def test_fills_have_the_same_bits_on_cpu_and_gpu(dtype: str) -> None:
    from kcheck.fill import Fill
    from kcheck.worker.values import values

    fill = Fill(seed=123, low=0, high=200)
    on_cpu, on_gpu = values(fill, dtype, (64, 33), "cpu"), values(fill, dtype, (64, 33), "cuda")
    assert torch.equal(on_cpu.view(torch.uint8), on_gpu.cpu().view(torch.uint8))


@pytest.fixture
def graphs(gpu: Client) -> Iterator[Client]:
    gpu.cuda_graph = True
    yield gpu
    gpu.cuda_graph = False


def test_what_a_graph_freezes_is_found(graphs: Client, tmp_path: Path) -> None:
    (discovery,) = run("cuda_graphs.py::frozen", graphs, tmp_path, examples=10).discoveries
    assert (discovery.finding.kind, discovery.finding.argument) == (Kind.GRAPH_VARIANCE, "out")


def test_a_target_that_a_graph_can_hold_is_silent(graphs: Client, tmp_path: Path) -> None:
    assert run("cuda_graphs.py::fixed", graphs, tmp_path, examples=10).verdict is CaseVerdict.MATCH
    assert run("builtin:paged_gather", graphs, tmp_path, examples=10).verdict is CaseVerdict.MATCH


def test_a_target_that_cannot_be_captured_is_could_not_check(graphs: Client, tmp_path: Path) -> None:
    result = run("cuda_graphs.py::synchronising", graphs, tmp_path, examples=5)
    assert result.verdict is CaseVerdict.COULD_NOT_CHECK
    assert "cannot be captured in a CUDA graph" in result.reasons[0]
    assert run("cuda_graphs.py::fixed", graphs, tmp_path, examples=5).verdict is CaseVerdict.MATCH


def test_kernels_that_are_no_triton_functions_are_seen_by_name(gpu: Client, tmp_path: Path) -> None:
    assert run("cuda_graphs.py::by_name", gpu, tmp_path, examples=10).verdict is CaseVerdict.MATCH
    result = run("cuda_graphs.py::by_another_name", gpu, tmp_path, examples=10)
    assert result.verdict is CaseVerdict.COULD_NOT_CHECK
    assert "kernel flash_attention never launched" in result.reasons[0]
