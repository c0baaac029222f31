"""The plugin as its users meet it: pytest in a process of its own, with real workers."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import pytest

KERNELS = Path(__file__).parents[1] / "kernels"
QUICK = ("--kcheck-max-examples", "5", "--kcheck-seed", "1", "--kcheck-backend", "interpret")
PLAIN = """
import pytest
import kcheck
from hypothesis import given, strategies as st
from kcheck_doubling import cases, double, oracle, wrong

@kcheck.target(cases=cases(), oracle=oracle)
def here(x):
    return double(x, x.stride(0))

@pytest.fixture
def examples():
    return 3

@pytest.mark.parametrize("seed", [1, 2])
def test_own_target(examples, seed, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert kcheck.check(here, max_examples=examples, seed=seed).name == "here"

def test_bug(examples):
    kcheck.check(wrong, max_examples=examples)

@given(st.integers())
def test_of_hypothesis(number):
    assert number == number
"""
LIGHT = """
import kcheck
from hypothesis import strategies as st

@kcheck.target(cases=st.just(kcheck.Case(x=1)))
def first(x):
    return x

@kcheck.target(cases=st.just(kcheck.Case(x=1)))
def second(x):
    return x

def test_f():
    pass
"""
Run = Callable[..., "subprocess.CompletedProcess[str]"]


def environment() -> dict[str, str]:
    """Without what this session's pytest, or its CI, would make pytest do otherwise."""
    unwanted = ("PYTEST_", "COV_CORE", "CI", "BUILD_NUMBER", "COLUMNS", "FORCE_COLOR")
    return {name: value for name, value in os.environ.items() if not name.startswith(unwanted)}


def run_in(folder: Path) -> Run:
    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "pytest", *arguments]
        return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, env=environment())

    return run


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project that was tested once, without xdist."""
    folder = tmp_path_factory.mktemp("project")
    (folder / "pytest.ini").write_text("[pytest]\naddopts = --strict-markers\n")
    (folder / "kcheck_doubling.py").write_text((KERNELS / "doubling.py").read_text())
    (folder / "test_plain.py").write_text(PLAIN)
    return folder


@pytest.fixture(scope="module")
def tested(project: Path) -> subprocess.CompletedProcess[str]:
    return run_in(project)(*QUICK, "-v", "--junitxml=junit.xml")


@pytest.fixture
def run(project: Path) -> Run:
    return run_in(project)


def test_every_target_is_an_item_with_its_own_verdict(tested: subprocess.CompletedProcess[str]) -> None:
    assert tested.returncode == 1, tested.stdout + tested.stderr
    verdicts = dict(re.findall(r"^(\S+::\S+) (PASSED|FAILED|ERROR) +\[", tested.stdout, re.MULTILINE))
    assert verdicts == {
        "kcheck_doubling.py::wrong": "FAILED",
        "kcheck_doubling.py::fixed": "PASSED",
        "kcheck_doubling.py::by_variable": "PASSED",
        "kcheck_doubling.py::unlaunched": "ERROR",
        "test_plain.py::test_own_target[1]": "PASSED",
        "test_plain.py::test_own_target[2]": "PASSED",
        "test_plain.py::test_bug": "FAILED",
        "test_plain.py::test_of_hypothesis": "PASSED",
    }


def test_a_failure_is_the_panel_and_no_traceback(tested: subprocess.CompletedProcess[str]) -> None:
    failures = tested.stdout.partition("= FAILURES =")[2]
    of_item, of_test = re.split(r"^_+ test_bug _+$", failures, flags=re.MULTILINE)
    for text in (of_item, of_test):
        assert "ERROR out-of-view-read · x · kernel double_kernel" in text
        assert re.search(r"kcheck replay [0-9a-f]{12} --target kcheck_doubling.py::wrong", text)
    assert not re.search(r"Traceback|\.py:\d+: in|kcheck/(api|checker|pytest_plugin)", of_item)
    assert re.search(r"FAILED kcheck_doubling.py::wrong - double_kernel reads x\[", tested.stdout)
    assert "kcheck.check(wrong, max_examples=examples)" in of_test
    assert "kcheck/checker.py" not in of_test


def test_what_could_not_be_checked_is_an_error_with_its_reason(
    tested: subprocess.CompletedProcess[str], project: Path
) -> None:
    errors = tested.stdout.partition("= ERRORS =")[2].partition("= FAILURES =")[0]
    assert "unlaunched could not be checked: kernel never_kernel never launched" in errors
    assert "2 failed, 5 passed, 1 error" in tested.stdout
    cases = {case.attrib["name"]: case for case in ElementTree.parse(project / "junit.xml").iter("testcase")}
    assert "never_kernel never launched" in cases["unlaunched"].find("failure").attrib["message"]  # type: ignore[union-attr]
    assert cases["unlaunched"].find("properties/property").attrib == {  # type: ignore[union-attr]
        "name": "kcheck",
        "value": "could-not-check",
    }


def test_the_replay_command_works_where_pytest_was_started(
    tested: subprocess.CompletedProcess[str], project: Path
) -> None:
    found = re.search(r"kcheck (replay [0-9a-f]{12} --target \S+)", tested.stdout)
    assert found is not None
    command = [sys.executable, "-m", "kcheck", *found[1].split()]
    again = subprocess.run(command, cwd=project, capture_output=True, text=True, check=False)
    assert again.returncode == 1, again.stdout + again.stderr
    assert "out-of-view-read" in again.stdout


@pytest.mark.usefixtures("tested")
def test_the_last_failures_run_again(run: Run) -> None:
    again = run(*QUICK, "--lf", "-x", "-q")
    assert "1 failed" in again.stdout
    assert "passed" not in again.stdout


@pytest.mark.parametrize(
    ("arguments", "chosen"),
    [
        ((), ["kcheck_light.py::first", "kcheck_light.py::second", "test_light.py::test_first"]),
        (("-k", "first"), ["kcheck_light.py::first", "test_light.py::test_first"]),
        (("-m", "kcheck"), ["kcheck_light.py::first", "kcheck_light.py::second"]),
        (("kcheck_light.py::second",), ["kcheck_light.py::second"]),
        (
            ("-o", "kcheck_files=fuzz_*.py"),
            ["fuzz_light.py::first", "fuzz_light.py::second", "test_light.py::test_first"],
        ),
        (
            ("-o", "python_files=kcheck_*.py", "kcheck_light.py"),
            ["kcheck_light.py::first", "kcheck_light.py::second", "kcheck_light.py::test_f"],
        ),
    ],
)
def test_items_are_selected_as_tests_are(tmp_path: Path, arguments: tuple[str, ...], chosen: list[str]) -> None:
    for name in ("kcheck_light.py", "fuzz_light.py"):
        (tmp_path / name).write_text(LIGHT)
    (tmp_path / "test_light.py").write_text("def test_first():\n    pass\n")
    listed = run_in(tmp_path)("--collect-only", "-q", *arguments)
    assert sorted(listed.stdout.partition("\n\n")[0].splitlines()) == chosen


def test_a_skip_needs_the_users_word_and_a_file_is_imported_once(tmp_path: Path) -> None:
    (tmp_path / "kcheck_counted.py").write_text(
        "import os\nwith open('imports', 'a') as file:\n    print(os.getpid(), file=file)\n"
        + (KERNELS / "doubling.py").read_text()
    )
    (tmp_path / ".kcheck").touch()  # as if nothing could be written there
    nodes = ("kcheck_counted.py::fixed", "kcheck_counted.py::unlaunched")
    done = run_in(tmp_path)(*QUICK, *nodes, "--kcheck-allow-skip", "-rs", "--kcheck-dir=elsewhere")
    assert done.returncode == 0, done.stdout
    assert "1 passed, 1 skipped" in done.stdout
    assert re.search(r"SKIPPED \[1\] kcheck_counted.py:\d+: unlaunched could not be checked", done.stdout)
    processes = (tmp_path / "imports").read_text().split()
    assert len(processes) == len(set(processes)) == 2  # pytest, and the process that workers are forked from
    assert (tmp_path / "elsewhere" / "findings").is_dir()
    assert not list((tmp_path / "elsewhere").glob("running*"))


def test_xdist_gives_each_worker_its_own(tmp_path: Path) -> None:
    pytest.importorskip("xdist", reason="pytest-xdist is not installed")
    (tmp_path / "kcheck_doubling.py").write_text((KERNELS / "doubling.py").read_text())
    done = run_in(tmp_path)(*QUICK, "-n", "2", "-q")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "1 failed, 2 passed, 1 error" in done.stdout
    assert "ERROR out-of-view-read · x · kernel double_kernel" in done.stdout
    assert "ERROR kcheck_doubling.py::unlaunched" in done.stdout
    assert sorted(file.name for file in (tmp_path / ".kcheck").glob("worker*")) == ["worker-1.log", "worker.log"]


def test_a_broken_file_is_a_collection_error_in_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "kcheck_broken.py").write_text("import torch\n\ndef f(:\n    pass\n")
    (tmp_path / "kcheck_missing.py").write_text("import no_such_module\n")
    (tmp_path / "kcheck_without.py").write_text("x = 1\n")
    done = run_in(tmp_path)("kcheck_broken.py", "kcheck_missing.py", "kcheck_without.py")
    assert done.returncode == 2
    assert "\nkcheck_broken.py:3: SyntaxError: invalid syntax" in done.stdout
    assert "\nkcheck_missing.py:1: no module named 'no_such_module'" in done.stdout
    assert "\nkcheck_without.py declares no target" in done.stdout
    assert "3 errors in" in done.stdout
    assert "Traceback" not in done.stdout


def test_without_targets_nothing_heavy_is_imported_and_no_directory_made(tmp_path: Path) -> None:
    (tmp_path / "test_light.py").write_text(
        "import sys\n\ndef test_light():\n"
        "    assert not {'torch', 'triton', 'rich', 'kcheck.engine', 'kcheck.loader'} & set(sys.modules)\n"
    )
    done = run_in(tmp_path)("-p", "no:cacheprovider")
    assert done.returncode == 0, done.stdout
    assert not (tmp_path / ".kcheck").exists()


def test_without_the_plugin_there_is_no_trace_of_it(tmp_path: Path) -> None:
    (tmp_path / "kcheck_any.py").write_text("raise SystemExit\n")
    (tmp_path / "test_any.py").write_text("import sys\n\ndef test_any():\n    assert 'kcheck' not in sys.modules\n")
    without = run_in(tmp_path)
    assert without("-p", "no:kcheck").returncode == 0
    assert "kcheck" not in without("-p", "no:kcheck", "--help").stdout


@pytest.mark.parametrize("option", ["--kcheck-seed=4294967296", "--kcheck-max-examples=-1", "--kcheck-max-time=0"])
def test_a_bad_option_is_a_usage_error(run: Run, option: str) -> None:
    done = run(option)
    assert done.returncode == 4
    assert f"argument {option.partition('=')[0]}: " in done.stderr


def test_ctrl_c_ends_pytest_in_its_own_way_and_shows_what_was_found(tmp_path: Path) -> None:
    slow = (KERNELS / "doubling.py").read_text() + "\n\nimport time\n\n@target\ndef slow(x):\n"
    (tmp_path / "kcheck_slow.py").write_text(slow + "    time.sleep(0.05)\n    return wrong(x)\n")
    command = [sys.executable, "-m", "pytest", "kcheck_slow.py::slow", "--kcheck-max-examples", "100000"]
    process = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, text=True, env=environment())
    end = time.monotonic() + 60
    while not list((tmp_path / ".kcheck").glob("findings/*.json")) and time.monotonic() < end:
        time.sleep(0.05)
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    output, _ = process.communicate(timeout=30)
    assert process.returncode == pytest.ExitCode.INTERRUPTED
    assert "KeyboardInterrupt" in output
    assert "found by checks that were cut short" in output
    assert "ERROR out-of-view-read · x · kernel double_kernel" in output
