"""Baselines from outside: real processes, real kernels, exit codes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

KERNELS = Path(__file__).parents[1] / "kernels"
ISSUE = "https://example.org/issues/7"
QUICK = ("--max-examples", "10", "--seed", "1")
Fuzz = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def fuzz(tmp_path: Path) -> Fuzz:
    (tmp_path / "kcheck_two.py").write_text((KERNELS / "two_bugs.py").read_text())

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-P", "-m", "kcheck", "fuzz", *arguments, *QUICK, "--report", "json=report.json"],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=240,
            env=os.environ | {"COLUMNS": "100", "NO_COLOR": "1"},
            check=False,
        )

    return run


def fill_in(path: Path) -> Any:
    """Give every entry an issue, as a user's editor would."""
    path.write_text(path.read_text().replace('"issue": ""', f'"issue": "{ISSUE}"'))
    return json.loads(path.read_text())


def sentence(done: subprocess.CompletedProcess[str]) -> str:
    assert done.returncode == 2, done.stdout + done.stderr
    assert "Traceback" not in done.stdout + done.stderr
    assert done.stderr.count("\n") == 1
    return done.stderr


def test_from_a_finding_to_a_baseline_to_a_fix(fuzz: Fuzz, tmp_path: Path) -> None:
    spec, path = "kcheck_two.py::table_stride", tmp_path / "known.json"
    assert fuzz(spec, "--write-baseline", "known.json").returncode == 1
    assert "known[0].issue" in sentence(fuzz(spec, "--baseline", "known.json"))
    (entry,) = fill_in(path)["known"]
    before = path.read_text()

    known = fuzz(spec, "--baseline", "known.json", "--write-baseline", "known.json")
    assert known.returncode == 0, known.stdout + known.stderr
    (found,) = json.loads((tmp_path / "report.json").read_text())["targets"][0]["findings"]
    assert (found["known"], found["fingerprint"], found["case"]) == (ISSUE, entry["fingerprint"], entry["case"])
    assert path.read_text() == before

    target = tmp_path / "kcheck_two.py"
    target.write_text(target.read_text().replace("table_row=table.shape[1]", "table_row=table.stride(0)"))
    gone = fuzz(spec, "--baseline", "known.json")
    assert gone.returncode == 1, gone.stdout + gone.stderr
    (told,) = json.loads((tmp_path / "report.json").read_text())["targets"][0]["gone"]
    assert (told["fingerprint"], told["issue"]) == (entry["fingerprint"], ISSUE)
    assert fuzz(spec, "--baseline", "known.json", "--write-baseline", "known.json").returncode == 1
    assert json.loads(path.read_text())["known"] == []
    assert fuzz(spec, "--baseline", "known.json").returncode == 0


def test_a_known_crash_is_not_launched(fuzz: Fuzz, tmp_path: Path) -> None:
    (tmp_path / "kcheck_crash.py").write_text((KERNELS / "crash.py").read_text())
    spec = "kcheck_crash.py::wrong"
    assert fuzz(spec, "--write-baseline", "known.json").returncode == 1
    (entry,) = fill_in(tmp_path / "known.json")["known"]
    assert entry["kind"] == "crash"
    done = fuzz(spec, "--baseline", "known.json")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "not launched" in " ".join(done.stdout.split())


@pytest.mark.parametrize(
    ("target", "says"),
    [
        ("kcheck_none.py::x", "there is no kcheck_none.py"),
        ("kcheck_two.py::none", "has no target 'none'"),
        ("builtin:none", "there is no builtin:none"),
    ],
)
def test_an_unknown_target_is_a_usage_error(fuzz: Fuzz, tmp_path: Path, target: str, says: str) -> None:
    entry = {
        "issue": ISSUE,
        "target": target,
        "found_by": "interpret",
        "fingerprint": "0123456789ab",
        "kind": "crash",
        "severity": "error",
        **dict.fromkeys(("kernel", "argument", "culprit", "source", "message"), ""),
        "case": {"schema": "kcheck.case/1", "backings": {}, "args": {}},
    }
    (tmp_path / "known.json").write_text(json.dumps({"schema": "kcheck.baseline/1", "known": [entry]}))
    assert says in sentence(fuzz("kcheck_two.py::table_stride", "--baseline", "known.json"))


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--baseline", "none.json"), "none.json cannot be read"),
        (("--baseline", "kcheck_two.py"), "is not JSON"),
        (("--write-baseline", "none/known.json"), "none/known.json cannot be written"),
        (("--write-baseline", "kcheck_two.py"), "is not JSON"),
        (("--allow-skip", "table"), "--allow-skip table: no target of this run"),
    ],
)
def test_mistakes_are_one_sentence(fuzz: Fuzz, arguments: tuple[str, ...], says: str) -> None:
    assert says in sentence(fuzz("kcheck_two.py::table_stride", *arguments))


def test_a_skip_must_be_allowed(fuzz: Fuzz, tmp_path: Path) -> None:
    (tmp_path / "kcheck_rejects.py").write_text((KERNELS / "rejects_all.py").read_text())
    spec = "kcheck_rejects.py::wrong"
    assert fuzz(spec).returncode == 3
    done = fuzz(spec, "--allow-skip", "wrong")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "COULD NOT CHECK" in done.stdout
    assert json.loads((tmp_path / "report.json").read_text())["targets"][0]["allowed"] is True
