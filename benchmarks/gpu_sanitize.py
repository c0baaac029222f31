"""The founding table under memcheck, on a GPU: invalid accesses of both built-in kernels, 1 to 256 requests.

    python benchmarks/gpu_sanitize.py

The block table is narrowed and the gap beside it holds wild page ids. A worker ends with the first faulty launch, so
the wrong kernel takes a start for every count; the right one takes one for all of them.
"""

from __future__ import annotations

import datetime
import importlib.metadata
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import torch

import kcheck
from kcheck import loader
from kcheck.case import Case
from kcheck.engine.draw import simplest
from kcheck.events import CaseVerdict
from kcheck.layout import LayoutKind
from kcheck.plan import Plan
from kcheck.sanitizer.launch import Launcher, Setup
from kcheck.sanitizer.locate import locate
from kcheck.sanitizer.outcome import Outcome
from kcheck.sanitizer.tool import Tool

COUNTS = (1, 2, 4, 8, 16, 32, 64, 128, 256)
BEFORE, AFTER = "builtin:paged_gather_shape_stride", "builtin:paged_gather"


def founding_cases(spec: str) -> list[Case]:
    """The table narrowed, all else small and contiguous; a case for each count."""
    (loaded,) = loader.load(spec)
    first = simplest(loaded.target, Plan(small=True))
    assert first is not None
    slots = first.record.learn_slots(first.case.drawn)
    layouts = {"block_table": LayoutKind.NARROWED}
    drawn = [simplest(loaded.target, Plan({"num_requests": n}, layouts, small=True), slots) for n in COUNTS]
    return [one.case for one in drawn if one is not None]


def memcheck(setup: Setup, spec: str, batches: Sequence[Sequence[Case]]) -> tuple[list[Outcome], float]:
    """An outcome for each batch, and the seconds of all."""
    (loaded,) = loader.load(spec)
    launcher = Launcher(setup, Tool.MEMCHECK, spec, loaded.target.kernels)
    began = time.perf_counter()
    outcomes = []
    for batch in batches:
        launched = launcher.launch(batch)
        assert len(launched.progress.cases) == len(batch), launched.progress
        outcomes.append(launched.outcome(0))
    return outcomes, time.perf_counter() - began


def told(outcome: Outcome) -> str:
    if outcome.verdict is CaseVerdict.MATCH:
        return "0"
    found = [f"{finding.kind} at {Path(finding.file).name}:{finding.line}" for finding in outcome.findings]
    return f"{outcome.total or 0:,}  {'; '.join([*found, *outcome.reasons])}"


def main() -> None:
    sanitizer = locate()
    with tempfile.TemporaryDirectory() as folder:
        setup = Setup(sanitizer, Path(folder), Path(folder) / "output")
        wrong, wrong_seconds = memcheck(setup, BEFORE, [[case] for case in founding_cases(BEFORE)])
        (right,), right_seconds = memcheck(setup, AFTER, [founding_cases(AFTER)])
    versions = {name: importlib.metadata.version(name) for name in ("torch", "triton")}
    named = ", ".join(f"{name} {version}" for name, version in versions.items())
    print(f"{datetime.date.today()}, {torch.cuda.get_device_name()}, kcheck {kcheck.__version__}, {named}, "
          f"compute-sanitizer {sanitizer.version}")  # fmt: skip
    print("invalid accesses counted by memcheck (failed CUDA calls after them included)")
    print(f"{'requests':>8}  {'row stride from stride(0)':<27}row stride from shape[-1]")
    for count, outcome in zip(COUNTS, wrong, strict=True):
        print(f"{count:>8}  {told(right):<27}{told(outcome)}")
    print(f"{len(COUNTS)} starts of the wrong kernel: {wrong_seconds:.0f} s; all counts of the right one in one start: "
          f"{right_seconds:.0f} s")  # fmt: skip


if __name__ == "__main__":
    main()
