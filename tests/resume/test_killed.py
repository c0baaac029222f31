"""``kcheck fuzz``, killed with ``kill -9``, and ``kcheck fuzz --resume``."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

KERNELS = Path(__file__).parents[1] / "kernels"
FUZZ = [sys.executable, "-m", "kcheck", "fuzz", "kcheck_one.py::wrong", "--report", "json=report.json"]
PATIENCE = 120.0  # seconds


def progress(folder: Path) -> Any:
    """How far the run is, None if it has not said so yet."""
    for path in (folder / ".kcheck" / "resume").glob("*.json"):
        return json.loads(path.read_text())["progress"]
    return None


def test_what_a_killed_run_found_is_reported_by_the_one_that_goes_on(tmp_path: Path) -> None:
    shutil.copy(KERNELS / "one_off.py", tmp_path / "kcheck_one.py")
    endless = [*FUZZ, "--max-time", "1000", "--max-examples", "1000000"]
    run = subprocess.Popen(endless, cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        state = progress(tmp_path)
        if state is not None and state["drawn"] and state["result"]["findings"]:
            break
        assert run.poll() is None
        time.sleep(0.05)
    run.kill()
    run.wait()
    state = progress(tmp_path)
    assert not (tmp_path / "report.json").exists()

    rest = subprocess.run([*FUZZ, "--resume", "--max-examples", "1"], cwd=tmp_path, capture_output=True, text=True)
    assert rest.returncode == 1, rest.stderr
    assert "goes on with a run of " in rest.stdout
    assert "when it was killed a case was running: kcheck replay .kcheck/left-running.json --target " in rest.stdout
    (told,) = json.loads((tmp_path / "report.json").read_text())["targets"]
    known = {one["fingerprint"]: one["seen"] for one in state["result"]["findings"]}
    assert {one["fingerprint"] for one in told["findings"]} >= set(known)
    assert sum(told["cases"].values()) >= sum(state["result"]["cases"].values())
    assert progress(tmp_path) is None  # it came to its end
