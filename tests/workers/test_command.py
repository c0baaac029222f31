"""``kcheck fuzz`` with workers and shards, as a user runs it: real processes, real kernels."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
KERNELS = ROOT / "tests" / "kernels"
KCHECK = [sys.executable, "-P", "-m", "kcheck"]
JOB = 17  # Slurm's number, which becomes the seed
OPTIONS = ["kcheck_two.py::table_stride", "--max-examples", "30", "--backend", "interpret"]
WORKERS = [*KCHECK, "fuzz", *OPTIONS, "--workers", "2", "--report", "json=workers.json"]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "kcheck_two.py").write_text((KERNELS / "two_bugs.py").read_text())
    return folder


@pytest.fixture
def tools(tmp_path: Path) -> str:
    """A PATH with this kcheck, and an srun that starts the job's tasks as Slurm does: at once, each with its number."""
    folder = tmp_path / "bin"
    folder.mkdir()
    srun = """
        pids=()
        for ((task = 0; task < SLURM_NTASKS; task++)); do SLURM_PROCID=$task "$@" & pids+=($!); done
        code=0
        for pid in "${pids[@]}"; do wait "$pid" || { ended=$?; ((ended > code)) && code=$ended; }; done
        exit $code
    """
    for name, script in {"kcheck": f'exec {" ".join(KCHECK)} "$@"', "srun": srun}.items():
        (folder / name).write_text(f"#!/bin/bash\n{script}\n")
        (folder / name).chmod(0o755)
    return f"{folder}{os.pathsep}{os.environ['PATH']}"


def report(path: Path) -> Any:
    """A report without what two runs cannot have in common."""
    return json.loads(re.sub(r'"seconds": [\d.e+-]+', '"seconds": 0', path.read_text()))


def children(pid: int) -> list[int]:
    """The processes that a process started, oldest first."""
    found = []
    for place in Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = int(place.read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue
        found += [int(place.parent.name)] if parent == pid else []
    return sorted(found)


def wait_for(condition: Any, seconds: float = 60.0) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.02)


def test_a_slurm_job_reports_what_as_many_workers_report(project: Path, tools: str) -> None:
    slurm = subprocess.run(
        ["bash", str(ROOT / "docs" / "ci" / "slurm.sh"), *OPTIONS],
        cwd=project,
        env=os.environ | {"PATH": tools, "SLURM_JOB_ID": str(JOB), "SLURM_NTASKS": "2"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert slurm.returncode == 1, slurm.stdout + slurm.stderr
    folder = project / f"kcheck-{JOB}"
    assert {path.name for path in folder.iterdir()} >= {"kcheck.json", "kcheck.xml", "kcheck.sarif"}
    shards = [report(folder / f"shard-{task}.json")["shard"] for task in range(2)]
    assert shards == [{"index": 1, "of": 2}, {"index": 2, "of": 2}]

    (project / ".kcheck").rename(project / "of-slurm")  # what an earlier run saved is tried first
    done = subprocess.run([*WORKERS, "--seed", str(JOB)], cwd=project, capture_output=True, timeout=300, check=False)
    assert done.returncode == 1, done.stderr
    shared = report(project / "workers.json")
    assert report(folder / "kcheck.json") == shared
    assert "shard" not in shared
    assert [len(target["findings"]) for target in shared["targets"]] == [1]


def test_a_killed_worker_goes_on(project: Path) -> None:
    """Killed when the first bug is known: all that a run finds is found, all of the sweep is run."""
    with (project / "told").open("w") as told:
        run = subprocess.Popen([*WORKERS, "--seed", "1"], cwd=project, stdout=told, stderr=told)
    wait_for(lambda: "ERROR" in (project / "told").read_text() or run.poll() is not None)
    os.kill(children(run.pid)[0], signal.SIGKILL)
    said = f"{run.wait(timeout=300)}\n{(project / 'told').read_text()}"
    assert said.startswith("1\n"), said
    assert "was killed by SIGKILL" in " ".join(said.split()), said
    (target,) = report(project / "workers.json")["targets"]
    assert target["verdict"] == "findings"
    assert not target["reasons"]
    assert [finding["argument"] for finding in target["findings"]] == ["table"]
    done, planned = target["evidence"]["swept"]
    assert done >= planned > 0
    assert sum(target["cases"].values()) >= planned + 30 // 2


def test_no_process_outlives_a_killed_run(project: Path) -> None:
    run = subprocess.Popen([*KCHECK, "fuzz", "kcheck_two.py", "--workers", "2"], cwd=project, stdout=subprocess.DEVNULL)
    wait_for(lambda: len(children(run.pid)) == 2)
    workers = children(run.pid)
    run.kill()
    run.wait()
    wait_for(lambda: not any(Path(f"/proc/{pid}").exists() for pid in workers))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--workers", "2", "no_such_file.py"], "no_such_file.py"),
        (["--shard", "3/2"], "there is no shard 3 of 2"),
        (["--shard", "1/2"], "--seed"),
        (["--shard", "auto"], "srun"),
    ],
)
def test_what_cannot_be_is_a_usage_error(project: Path, options: list[str], said: str) -> None:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("SLURM_")}
    done = subprocess.run(
        [*KCHECK, "fuzz", *options],
        cwd=project,
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 2, done.stdout + done.stderr
    (line,) = done.stderr.strip().splitlines()
    assert said in line
