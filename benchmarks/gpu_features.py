"""What the CUDA backend finds, survives and tells, on planted kernels; one line each, with its time.

    python benchmarks/gpu_features.py

Bugs found without a crash; faults of the device, each in a worker that is replaced; CUDA graphs; compiles and what
caused them; kernels given by name; faults that compute-sanitizer sees. The kernels are those of tests/kernels.
"""

from __future__ import annotations

import datetime
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import torch
import triton

import kcheck
from kcheck import loader
from kcheck.client import Client
from kcheck.engine import Campaign, Settings
from kcheck.engine.draw import simplest
from kcheck.errors import CouldNotCheck
from kcheck.events import RunDone, TargetDone, TargetResult
from kcheck.plan import Plan
from kcheck.sanitizer.campaign import SanitizerCampaign, Subject
from kcheck.sanitizer.launch import Setup
from kcheck.sanitizer.locate import locate
from kcheck.sanitizer.tool import Tool
from kcheck.store import Store

KERNELS = Path(__file__).resolve().parent.parent / "tests" / "kernels"
BUGS = (
    "two_bugs.py::table_stride",
    "two_bugs.py::output_rows",
    "logits_rows.py::wrong",
    "expanded_grad.py::wrong",
    "oob_write.py::wrong",
    "logic_bug.py::wrong",
    "unwritten.py::wrong",
    "mutated.py::wrong",
    "builtin:paged_gather_shape_stride",
)
DEVICE_FAULTS = ("read", "write", "misaligned", "assert", "compile", "memory", "killed", "hang")
GRAPHS = ("cuda_graphs.py::frozen", "cuda_graphs.py::fixed", "cuda_graphs.py::synchronising", "builtin:paged_gather")
NAMED = ("cuda_graphs.py::by_name", "cuda_graphs.py::by_another_name")
SANITIZED = (
    ("read", Tool.MEMCHECK),
    ("write", Tool.MEMCHECK),
    ("atomic", Tool.MEMCHECK),
    ("misaligned", Tool.MEMCHECK),
    ("uninitialized", Tool.INITCHECK),
    ("leak", Tool.MEMCHECK),
    ("api_error", Tool.MEMCHECK),
)


def place(spec: str) -> str:
    """A target's spec with its folder."""
    return spec if spec.startswith("builtin:") else str(KERNELS / spec)


def fuzzed(spec: str, client: Client, examples: int) -> tuple[TargetResult, float]:
    """A short campaign, and its seconds."""
    (loaded,) = loader.load(place(spec))
    began = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        settings = Settings(max_examples=examples, max_time=60, seed=1)
        done = list(Campaign([loaded], client, Store(Path(folder)).open(), settings, "cuda").run())[-1]
    assert isinstance(done, RunDone)
    return done.results[0], time.perf_counter() - began


def told(result: TargetResult) -> str:
    """What a run found, in one line."""
    found = [f"{d.finding.kind} of {d.finding.argument or d.finding.kernel}" for d in result.discoveries]
    return "; ".join(found) or f"{result.verdict}{': ' if result.reasons else ''}{' '.join(result.reasons)[:110]}"


def table(title: str, rows: Iterator[tuple[str, str, float]]) -> None:
    print(f"\n## {title}\n")
    for name, says, seconds in rows:
        print(f"- {name}: {says} ({seconds:.1f} s)", flush=True)


def campaigns(specs: tuple[str, ...], client: Client, examples: int) -> Iterator[tuple[str, str, float]]:
    for spec in specs:
        result, seconds = fuzzed(spec, client, examples)
        yield spec, told(result), seconds


def isolation(client: Client) -> Iterator[tuple[str, str, float]]:
    """Each fault, and a case that is well in the worker after it."""
    spec = f"{KERNELS / 'gpu_faults.py'}::faulty"
    (loaded,) = loader.load(spec)
    client.load(spec)

    def judged(mode: str) -> str:
        drawn = simplest(loaded.target, Plan({"mode": mode}, small=True))
        assert drawn is not None
        judgement = client.judge(spec, drawn.case)
        return judgement.findings[0].message if judgement.findings else f"{judgement.verdict} {judgement.reason}"

    for mode in DEVICE_FAULTS:
        before, client.case_timeout = client.case_timeout, 5.0 if mode == "hang" else client.case_timeout
        began = time.perf_counter()
        says = judged(mode)
        seconds = time.perf_counter() - began
        client.case_timeout = before
        yield mode, f"{says[:120]}; then {judged('fine').strip()}", seconds


def compiles(client: Client) -> Iterator[tuple[str, str, float]]:
    for spec in ("logits_rows.py::fixed", "controls_matmul.py::matmul", "builtin:paged_gather"):
        result, seconds = fuzzed(spec, client, 100)
        yield spec, " ".join(note for note in result.notes if "compile" in note or "specialis" in note), seconds


def sanitized() -> Iterator[tuple[str, str, float]]:
    try:
        sanitizer = locate()
    except CouldNotCheck as reason:
        yield "compute-sanitizer", str(reason), 0.0
        return
    for name, tool in SANITIZED:
        (loaded,) = loader.load(f"{KERNELS / 'sanitizer_faults.py'}::{name}")
        drawn = simplest(loaded.target, Plan(small=True))
        assert drawn is not None
        began = time.perf_counter()
        with tempfile.TemporaryDirectory() as folder:
            store = Store(Path(folder)).open()
            setup = Setup(sanitizer, Path(folder), store.log, leaks=name == "leak")
            subject = Subject(loaded.target, loaded.spec, (drawn.case,))
            events = list(SanitizerCampaign([subject], [tool], setup, store).run())
        result = next(event.result for event in events if isinstance(event, TargetDone))
        lines = ", ".join(f"line {d.finding.line}: {d.finding.source}" for d in result.discoveries)
        yield f"{name}, {tool.value}", f"{told(result)}, {lines}", time.perf_counter() - began


def main() -> None:
    print(
        f"{datetime.date.today()}, kcheck {kcheck.__version__}, {torch.cuda.get_device_name()}, "
        f"torch {torch.__version__}, triton {triton.__version__}"
    )
    with tempfile.TemporaryDirectory() as folder, Client("cuda", Path(folder) / "log", case_timeout=60) as client:
        table("Bugs, found without a crash", campaigns(BUGS, client, 60))
        table("Faults of the device", isolation(client))
        table("Compiles", compiles(client))
        table("Kernels by name", campaigns(NAMED, client, 10))
        client.cuda_graph = True
        table("CUDA graphs", campaigns(GRAPHS, client, 10))
    table("Faults under compute-sanitizer", sanitized())


if __name__ == "__main__":
    main()
