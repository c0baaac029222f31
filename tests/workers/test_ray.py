"""A Ray cluster of two machines, real ones but for the machines; one is lost in the middle of a run."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

KERNELS = Path(__file__).parents[1] / "kernels"
KCHECK = [sys.executable, "-P", "-m", "kcheck"]
OPTIONS = ["--seed", "1", "--max-examples", "60"]

cluster_utils = pytest.importorskip("ray.cluster_utils", reason="Ray is not installed: pip install 'kcheck[ray]'")


@pytest.fixture
def cluster() -> Iterator[Any]:
    """A head that runs nothing, and two machines of one core each."""
    head = {"num_cpus": 0, "include_dashboard": False}
    started = cluster_utils.Cluster(initialize_head=True, head_node_args=head)
    yield started
    started.shutdown()


def findings(path: Path) -> list[Any]:
    """What each target has: its verdict and, of each bug, its identity, its case and the argument to blame."""
    targets = json.loads(path.read_text())["targets"]
    assert [target["reasons"] for target in targets] == [[]] * len(targets)
    return [
        (target["name"], target["verdict"], [(f["fingerprint"], f["case"], f["culprit"]) for f in target["findings"]])
        for target in targets
    ]


def test_nothing_is_lost_with_a_machine(tmp_path: Path, cluster: Any) -> None:
    (tmp_path / "kcheck_two.py").write_text((KERNELS / "two_bugs.py").read_text())
    machines = [cluster.add_node(num_cpus=1) for _ in range(2)]
    command = [*KCHECK, "fuzz", "kcheck_two.py", *OPTIONS]
    with (tmp_path / "told").open("w") as told:
        run = subprocess.Popen(
            [*command, "--ray", cluster.address, "--report", "json=ray.json"], cwd=tmp_path, stdout=told, stderr=told
        )
    end = time.monotonic() + 120
    while "ERROR" not in (tmp_path / "told").read_text():  # the first bug is known, three targets are to come
        assert run.poll() is None, (tmp_path / "told").read_text()
        assert time.monotonic() < end
        time.sleep(0.05)
    cluster.remove_node(machines[1], allow_graceful=False)
    said = f"{run.wait(timeout=300)}\n{(tmp_path / 'told').read_text()}"
    assert said.startswith("1\n"), said
    assert "is lost to Ray" in " ".join(said.split()), said
    (tmp_path / ".kcheck").rename(tmp_path / "of-ray")
    subprocess.run(
        [*command, "--workers", "2", "--report", "json=workers.json"], cwd=tmp_path, capture_output=True, check=False
    )
    assert findings(tmp_path / "ray.json") == findings(tmp_path / "workers.json")


def test_no_cluster_is_no_pass(tmp_path: Path) -> None:
    done = subprocess.run(
        [*KCHECK, "fuzz", "builtin:paged_gather", "--ray", "127.0.0.1:1"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 3, done.stdout + done.stderr
    assert "there is no Ray cluster at 127.0.0.1:1" in done.stderr
