"""The GitHub action and the examples for GitLab and Slurm: what they would run in CI is run here."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click
import pytest

from kcheck.cli import cli

yaml = pytest.importorskip("yaml", reason="PyYAML is not installed")

ROOT = Path(__file__).parents[2]
KERNELS = ROOT / "tests" / "kernels"
QUICK = "--max-examples 10\n--seed 1"
Done = subprocess.CompletedProcess[str]


def load(path: Path) -> Any:
    return yaml.safe_load(path.read_text())


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project with a wrong target, a right one, and one that cannot be checked."""
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "kcheck_two.py").write_text((KERNELS / "two_bugs.py").read_text())
    (folder / "kcheck_rejects.py").write_text((KERNELS / "rejects_all.py").read_text())
    return folder


@pytest.fixture
def tools(tmp_path: Path) -> str:
    """A PATH on which kcheck is this one, and pip installs nothing."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name, command in (("kcheck", f'exec {sys.executable} -P -m kcheck "$@"'), ("pip", "exit 0")):
        (folder / name).write_text(f"#!/bin/sh\n{command}\n")
        (folder / name).chmod(0o755)
    return f"{folder}{os.pathsep}{os.environ['PATH']}"


def bash(script: str, cwd: Path, env: dict[str, str]) -> Done:
    """Run a script as GitHub's runner does for ``shell: bash``."""
    path = cwd.parent / "script.sh"
    path.write_text(script)
    return subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", str(path)],
        cwd=cwd,
        env=os.environ | {"NO_COLOR": "1", "COLUMNS": "100"} | env,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


class Action:
    """The composite action, its steps run one after another."""

    def __init__(self, project: Path) -> None:
        self.project, self.runner = project, project.parent / "runner"
        self.document = load(ROOT / ".github" / "actions" / "kcheck" / "action.yml")

    def run(self, **inputs: str) -> tuple[Done, dict[str, str]]:
        """Run the steps; returns the last one that ran, and the outputs of the action."""
        self.runner.mkdir(exist_ok=True)
        output, summary = self.runner / "output", self.runner / "summary"
        output.write_text("")
        summary.write_text("")
        values = {name: str(spec["default"]) for name, spec in self.document["inputs"].items()}
        values |= {"python": sys.executable, **inputs}
        assert set(values) == set(self.document["inputs"])
        set_by_github = {
            "GITHUB_ACTIONS": "true",
            "GITHUB_OUTPUT": str(output),
            "GITHUB_STEP_SUMMARY": str(summary),
            "GITHUB_WORKSPACE": str(self.project),
            "RUNNER_TEMP": str(self.runner),
        }
        for step in self.document["runs"]["steps"]:
            assert step["shell"] == "bash"
            own = {name: self._evaluated(text, values) for name, text in step["env"].items()}
            done = bash(step["run"], self.project, set_by_github | own)
            if done.returncode:
                break
        written = dict(line.split("=", 1) for line in output.read_text().splitlines())
        return done, {
            name: written.get(re.fullmatch(r"\$\{\{ steps\.kcheck\.outputs\.(\w+) \}\}", spec["value"])[1], "")  # type: ignore[index]
            for name, spec in self.document["outputs"].items()
        }

    @property
    def summary(self) -> str:
        return (self.runner / "summary").read_text()

    @staticmethod
    def _evaluated(text: str, values: Mapping[str, str]) -> str:
        return re.sub(r"\$\{\{ inputs\.(\w+) \}\}", lambda found: values[found[1]], text)


@pytest.fixture
def action(project: Path) -> Action:
    return Action(project)


def test_nothing_is_put_into_a_script() -> None:
    """An expression in ``run`` would make a branch name, or a title, part of the program."""
    for path in (ROOT / ".github").rglob("*.yml"):
        document = load(path)
        steps = document["runs"]["steps"] if "runs" in document else []
        steps += [step for job in document.get("jobs", {}).values() for step in job["steps"]]
        assert steps
        assert not [step for step in steps if "${{" in step.get("run", "")]


def test_a_bug_fails_the_step(action: Action) -> None:
    done, outputs = action.run(targets="kcheck_two.py::table_stride", args=QUICK)
    assert done.returncode == 1, done.stdout + done.stderr
    assert outputs["verdict"] == "findings"
    (annotation,) = [line for line in done.stdout.splitlines() if line.startswith("::")]
    line = 1 + (action.project / "kcheck_two.py").read_text().splitlines().index(
        "    page = tl.load(table_ptr + request * table_row + column * table_column)"
    )
    assert annotation.startswith(f"::error file=kcheck_two.py,line={line},")
    sarif = json.loads(Path(outputs["sarif"]).read_text())
    assert sarif["version"] == "2.1.0"
    assert len(sarif["runs"][0]["results"]) == 1
    assert ElementTree.parse(outputs["junit"]).getroot().findall(".//failure")
    assert "kcheck replay" in action.summary


def test_no_bug_passes_the_step(action: Action) -> None:
    done, outputs = action.run(targets="kcheck_two.py::fixed", args=QUICK)
    assert done.returncode == 0, done.stdout + done.stderr
    assert outputs["verdict"] == "pass"
    assert not [line for line in done.stdout.splitlines() if line.startswith("::error")]
    assert json.loads(Path(outputs["sarif"]).read_text())["runs"][0]["results"] == []
    assert action.summary


def test_what_could_not_be_checked_fails_the_step(action: Action) -> None:
    done, outputs = action.run(targets="kcheck_rejects.py::wrong", args=QUICK)
    assert done.returncode == 3, done.stdout + done.stderr
    assert outputs["verdict"] == "could-not-check"
    assert "::error" in done.stdout


def test_a_known_bug_passes_the_step(action: Action) -> None:
    spec, path = "kcheck_two.py::table_stride", action.project / "known.json"
    action.run(targets=spec, args=f"{QUICK}\n--write-baseline known.json")
    path.write_text(path.read_text().replace('"issue": ""', '"issue": "https://example.org/1"'))
    done, outputs = action.run(targets=spec, args=QUICK, baseline="known.json")
    assert done.returncode == 0, done.stdout + done.stderr
    assert outputs["verdict"] == "pass"
    assert "https://example.org/1" in action.summary


@pytest.mark.parametrize(
    "inputs",
    [
        {"targets": "$(touch ran) `touch ran`; touch ran\ntouch ran"},
        {"targets": "* --report-dir ."},
        {"args": "$(touch ran); touch ran"},
        {"baseline": '"; touch ran; "'},
        {"profile": "pr; touch ran"},
        {"command": "fuzz; touch ran"},
        {"command": "replay"},
        {"python": "/bin/false"},
        {"python": "touch ran"},
    ],
)
def test_a_wrong_input_is_an_error_and_no_command(action: Action, inputs: dict[str, str]) -> None:
    done, outputs = action.run(**inputs)
    assert done.returncode == 2, done.stdout + done.stderr
    assert outputs == {"verdict": "error", "sarif": "", "junit": ""}
    assert not (action.project / "ran").exists()


def test_compute_sanitizer_without_a_gpu_is_no_pass(action: Action) -> None:
    import torch

    if torch.cuda.is_available():
        pytest.skip("this machine has a GPU")
    done, outputs = action.run(command="sanitize", targets="kcheck_two.py::fixed", args="--tool memcheck")
    assert done.returncode == 3, done.stdout + done.stderr
    assert outputs["verdict"] == "could-not-check"


@pytest.mark.parametrize(("target", "code"), [("kcheck_two.py::table_stride", 1), ("kcheck_two.py::fixed", 0)])
def test_the_gitlab_job(project: Path, tools: str, target: str, code: int) -> None:
    job = load(ROOT / "docs" / "ci" / "gitlab.yml")["kcheck"]
    (project / "pyproject.toml").write_text(f"[tool.kcheck]\ntargets = ['{target}']\nmax-examples = 10\n")
    done = bash("\n".join(job["script"]), project, {"PATH": tools})
    assert done.returncode == code, done.stdout + done.stderr
    assert job["artifacts"]["when"] == "always"
    report = ElementTree.parse(project / job["artifacts"]["reports"]["junit"]).getroot()
    assert bool(report.findall(".//failure")) == bool(code)


def test_the_shards_on_github_are_those_of_one_run() -> None:
    """Slurm's run in `tests/workers`."""
    jobs = load(ROOT / "docs" / "ci" / "github-shards.yml")["jobs"]
    matrix = jobs["shard"]["strategy"]["matrix"]["shard"]
    assert matrix == list(range(1, len(matrix) + 1))
    assert jobs["shard"]["env"]["SHARD"] == "${{ matrix.shard }}/${{ strategy.job-total }}"
    assert jobs["kcheck"]["needs"] == "shard"
    lines = [step["run"] for job in jobs.values() for step in job["steps"] if step.get("run", "").startswith("kcheck ")]
    assert [shlex.split(line)[1] for line in lines] == ["fuzz", "merge"]
    for line in lines:
        line = line.removesuffix(" || true").replace("$SHARD", "1/4").replace("$SEED", "7")
        _, name, *options = shlex.split(line)
        command = cli.get_command(click.Context(cli), name)
        assert command is not None
        command.make_context(name, options)


def test_the_github_example_uses_the_inputs_and_outputs_that_there_are() -> None:
    action = load(ROOT / ".github" / "actions" / "kcheck" / "action.yml")
    steps = [
        step
        for path in (ROOT / "docs" / "ci" / "github.yml", ROOT / ".github" / "workflows" / "ci.yml")
        for job in load(path)["jobs"].values()
        for step in job["steps"]
    ]
    ours = [step for step in steps if "actions/kcheck" in step.get("uses", "")]
    assert len(ours) == 2
    assert all(set(step.get("with", {})) <= set(action["inputs"]) for step in ours)
    used = re.findall(r"steps\.kcheck\.outputs\.(\w+)", json.dumps(steps))
    assert used
    assert set(used) <= set(action["outputs"])


def test_this_repository_runs_make_test() -> None:
    workflow = load(ROOT / ".github" / "workflows" / "ci.yml")
    assert "make test" in [step.get("run") for step in workflow["jobs"]["test"]["steps"]]
