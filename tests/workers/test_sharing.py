"""How many workers there are, and which seed shards have."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kcheck.cli import sharding
from kcheck.cli.options import CaseOptions, RunOptions
from kcheck.cli.search import Run, Search
from kcheck.cli.sharding import SharingOptions, placed
from kcheck.errors import UsageError
from kcheck.events import Shard
from kcheck.machine import visible_gpus
from kcheck.plan import Plan
from kcheck.sharded.processes import Processes
from kcheck.sharded.run import ShardedRun

CASES = CaseOptions(max_examples=10, seed=5, plan=Plan(), sweep=True, case_timeout=1.0)
RUN = RunOptions(
    max_time=1.0,
    total_time=math.inf,
    fail_on="error",
    allow_skip=(),
    baseline=None,
    write_baseline=None,
    reports=(),
    report_dir=None,
)
SEARCH = Search(("t.py",), CASES, RUN, "interpret", Path("unused"))
DRAWN = replace(SEARCH, cases=replace(CASES, is_seed_drawn=True))


@pytest.mark.parametrize(
    ("backend", "gpus", "asked", "expected"),
    [
        ("interpret", "0,1,2", None, 1),
        ("interpret", "", 3, 3),
        ("cuda", "0", None, 1),
        ("cuda", "0,1,2", None, 3),
        ("cuda", "GPU-5fe2,GPU-77aa", None, 2),
        ("cuda", "0,1", 5, 5),
        ("cuda", "0,1,2", 1, 1),
        ("cuda", "", None, 1),
    ],
)
def test_a_worker_for_each_gpu_if_nobody_says_how_many(
    monkeypatch: pytest.MonkeyPatch, backend: str, gpus: str, asked: int | None, expected: int
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", gpus)
    counted: list[int] = []

    class Alone:
        def __enter__(self) -> Run:
            counted.append(1)
            return Run((), lambda: None)

        def __exit__(self, *_: object) -> None:
            pass

    def shared(search: Search, runner: Any, workers: int, *, with_cases: bool) -> Run:
        assert isinstance(runner, Processes)
        assert runner._gpus == (tuple(gpus.split(",")) if backend == "cuda" else ())
        counted.append(workers)
        return Run((), lambda: None)

    monkeypatch.setattr(sharding, "started", lambda search: Alone())
    monkeypatch.setattr(sharding, "_shared", shared)
    with sharding.opened(replace(SEARCH, backend=backend), SharingOptions(asked, None, None), with_cases=False):
        assert counted == [expected]


def test_gpus_are_those_that_this_process_may_use(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3, 1")
    assert visible_gpus() == ("3", "1")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    assert visible_gpus() == ()
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES")
    assert len(visible_gpus()) == len(list(Path("/dev").glob("nvidia[0-9]*")))


def test_shards_have_the_seed_that_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"SLURM_PROCID": "1", "SLURM_NTASKS": "4", "SLURM_JOB_ID": "4294967299"}.items():
        monkeypatch.setenv(name, value)
    assert placed(SEARCH, SharingOptions(None, "auto", None)) == replace(SEARCH, shard=Shard(2, 4))
    assert placed(SEARCH, SharingOptions(None, "3/4", None)) == replace(SEARCH, shard=Shard(3, 4))
    assert placed(SEARCH, SharingOptions(None, None, None)) is SEARCH


def test_without_a_seed_slurm_tasks_have_that_of_their_job(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"SLURM_PROCID": "1", "SLURM_NTASKS": "4", "SLURM_JOB_ID": "4294967299"}.items():
        monkeypatch.setenv(name, value)
    assert placed(DRAWN, SharingOptions(None, "auto", None)).cases.seed == 3
    with pytest.raises(UsageError, match="the same --seed"):
        placed(DRAWN, SharingOptions(None, "2/4", None))
    monkeypatch.delenv("SLURM_JOB_ID")
    with pytest.raises(UsageError, match="the same --seed"):
        placed(DRAWN, SharingOptions(None, "auto", None))
    assert placed(DRAWN, SharingOptions(None, "1/1", None)).cases == DRAWN.cases


@pytest.mark.parametrize("resume", [False, True])
def test_only_a_worker_that_is_started_again_goes_on_unasked(monkeypatch: pytest.MonkeyPatch, resume: bool) -> None:
    tasks: list[Any] = []

    def made(runner: object, count: int, task: Any, shard: object) -> ShardedRun:
        tasks.extend([task(0, ()), task(1, ()), task(1, ("t",))])
        return ShardedRun(Processes(()), count, task)

    monkeypatch.setattr("kcheck.sharded.run.ShardedRun", made)
    with sharding.opened(replace(SEARCH, resume=resume), SharingOptions(2, None, None), with_cases=False):
        pass
    assert [(task.resume, task.is_restart) for task in tasks] == [(resume, False), (resume, False), (resume, True)]
