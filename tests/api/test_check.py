"""`kcheck.check` with real workers: what it returns, what it raises, and what reaches the workers."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import kcheck
from kcheck import api, loader
from kcheck.checker import Checker
from kcheck.errors import KcheckError, UsageError
from kcheck.events import CaseVerdict
from kcheck.findings import Kind, Severity

KERNELS = Path(__file__).parents[1] / "kernels"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project with one file of targets."""
    made = tmp_path_factory.mktemp("project")
    shutil.copy(KERNELS / "doubling.py", made / "kcheck_doubling.py")
    return made


@pytest.fixture(scope="module")
def shared(folder: Path) -> Iterator[Checker]:
    with Checker(folder, {"max_examples": 5, "seed": 1, "backend": "interpret"}) as checker:
        yield checker


@pytest.fixture
def targets(shared: Checker, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], kcheck.Target]]:
    """Targets of the project, as a test module that imports them has them."""
    monkeypatch.chdir(folder)
    with api.sharing(lambda: shared):
        yield lambda name: loader.load(f"kcheck_doubling.py::{name}")[0].target


Targets = Callable[[str], kcheck.Target]


def test_a_right_kernel_is_a_match(targets: Targets) -> None:
    result = kcheck.check(targets("fixed"))
    assert result.verdict is CaseVerdict.MATCH
    assert result.cases[CaseVerdict.MATCH] > 5


def test_a_bug_fails_the_assertion_and_its_text_is_the_panel(targets: Targets, folder: Path) -> None:
    with pytest.raises(AssertionError) as caught:
        kcheck.check(targets("wrong"), seed=7)
    error = caught.value
    assert isinstance(error, kcheck.CheckFailed)
    assert error.result.discoveries[0].finding.kind is Kind.OUT_OF_VIEW_READ
    assert error.seed == 7
    text = str(error)
    assert text.startswith(error.result.discoveries[0].finding.message)
    assert "ERROR out-of-view-read · x · kernel double_kernel" in text
    assert "x = torch.empty(" in text
    fingerprint = error.result.discoveries[0].fingerprint
    assert f"kcheck replay {fingerprint} --target kcheck_doubling.py::wrong" in text
    assert (folder / ".kcheck" / "findings" / f"{fingerprint}.json").exists()
    assert "seed 7" in text


def test_no_frame_of_kcheck_buries_the_panel(targets: Targets) -> None:
    with pytest.raises(kcheck.CheckFailed) as caught:
        kcheck.check(targets("wrong"))
    assert len(caught.traceback) == 2  # this line, and check's own, which pytest hides


def test_what_could_not_be_checked_is_no_pass_and_no_failed_assertion(targets: Targets) -> None:
    with pytest.raises(kcheck.CouldNotCheck, match="never_kernel never launched") as caught:
        kcheck.check(targets("unlaunched"))
    assert not isinstance(caught.value, AssertionError)


def test_what_is_mild_is_a_warning_unless_it_is_to_fail(targets: Targets, monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = targets("wrong")
    with pytest.raises(kcheck.CheckFailed) as caught:
        kcheck.check(wrong)
    found = caught.value.result.discoveries[0]
    mild = replace(found, finding=replace(found.finding, severity=Severity.WARNING))
    result = replace(caught.value.result, discoveries=(mild,))
    real = Checker.run
    monkeypatch.setattr(Checker, "run", lambda *args: (result, real(*args)[1]))
    with pytest.warns(kcheck.FindingWarning, match="kcheck replay") as warned:
        assert kcheck.check(wrong) is result
    assert (warned[0].filename, warned[0].lineno) == (wrong.file, wrong.line)
    with pytest.raises(kcheck.CheckFailed, match="WARNING out-of-view-read"):
        kcheck.check(wrong, fail_on="warning")


def test_a_target_may_be_named(targets: Targets, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(kcheck.CheckFailed, match=r"--target kcheck_doubling\.py::wrong"):
        kcheck.check("kcheck_doubling.py::wrong")
    monkeypatch.chdir(tmp_path)  # the workers stay where they are
    shutil.copy(KERNELS / "doubling.py", tmp_path / "kcheck_other.py")
    assert kcheck.check("kcheck_other.py::fixed").name == "fixed"
    assert kcheck.check("builtin:paged_gather", max_examples=0, max_time=2.0).name == "paged_gather"


def test_an_environment_variable_of_the_test_reaches_the_kernel(
    targets: Targets, monkeypatch: pytest.MonkeyPatch
) -> None:
    by_variable = targets("by_variable")
    kcheck.check(by_variable)
    monkeypatch.setenv("KCHECK_TEST_WRONG", "1")
    with pytest.raises(kcheck.CheckFailed):
        kcheck.check(by_variable)


def test_a_place_that_a_test_adds_to_the_path_reaches_the_worker(
    targets: Targets, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    targets("fixed")
    (tmp_path / "added").mkdir()
    (tmp_path / "added" / "late_doubling.py").write_text((KERNELS / "doubling.py").read_text())
    (tmp_path / "kcheck_late.py").write_text("from late_doubling import fixed\n")
    monkeypatch.syspath_prepend(tmp_path / "added")
    kcheck.check(f"{tmp_path}/kcheck_late.py::fixed")


def test_the_users_own_hypothesis_tests_keep_their_database(targets: Targets, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HYPOTHESIS_STORAGE_DIRECTORY", raising=False)
    kcheck.check(targets("fixed"))
    assert "HYPOTHESIS_STORAGE_DIRECTORY" not in os.environ


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"seed": -1}, "seed is -1"),
        ({"max_examples": True}, "max_examples is True"),
        ({"max_time": 0}, "max_time is 0"),
        ({"case_timeout": "long"}, "case_timeout is 'long'"),
        ({"backend": "gpu"}, "backend is 'gpu'; expected one of auto, interpret, cuda"),
        ({"fail_on": "all"}, "fail_on is 'all'; expected one of error, warning, note"),
    ],
)
def test_a_bad_argument_is_one_sentence(targets: Targets, options: dict[str, Any], says: str) -> None:
    with pytest.raises(UsageError) as caught:
        kcheck.check(targets("fixed"), **options)
    assert says in str(caught.value)


def test_what_is_no_single_target_is_one_sentence(targets: Targets) -> None:
    fixed = targets("fixed")
    with pytest.raises(UsageError, match=r"names 4 targets; give one: .*::wrong"):
        kcheck.check("kcheck_doubling.py")
    with pytest.raises(UsageError, match="is no target"):
        kcheck.check(fixed.function)  # type: ignore[arg-type]  # that is the point
    inner = kcheck.target(cases=fixed.cases, oracle=fixed.oracle)(lambda x: x)
    with pytest.raises(UsageError, match="define it at the top level of a file"):
        kcheck.check(inner)


def test_the_projects_options_hold_below_those_of_a_check(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "pyproject.toml").write_text("[tool.kcheck]\nmax-examples = 3\nseed = 11\n")
    shutil.copy(KERNELS / "doubling.py", tmp_path / "kcheck_configured.py")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(api, "_shared", None)
    with pytest.raises(kcheck.CheckFailed, match="seed 11"):
        kcheck.check("kcheck_configured.py::wrong", backend="interpret")
    (tmp_path / "pyproject.toml").write_text("[tool.kcheck]\nseed = 'eleven'\n")
    with pytest.raises(UsageError, match="seed is 'eleven'"):
        kcheck.check("kcheck_configured.py::wrong")


def run(code: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    (cwd / "script.py").write_text(code)
    return subprocess.run([sys.executable, "script.py"], cwd=cwd, capture_output=True, text=True, check=False)


def test_importing_kcheck_imports_nothing_heavy(tmp_path: Path) -> None:
    code = (
        "import sys, kcheck\n"
        "from kcheck import *\n"
        "assert check is kcheck.check and issubclass(CheckFailed, AssertionError)\n"
        "print({'torch', 'triton', 'hypothesis', 'rich', 'click', 'pytest', 'numpy'} & set(sys.modules))\n"
    )
    assert run(code, tmp_path).stdout == "set()\n"


def test_a_script_checks_its_own_target(tmp_path: Path) -> None:
    body = (KERNELS / "doubling.py").read_text()
    guarded = run(body + "\nif __name__ == '__main__':\n    kcheck.check(wrong, max_examples=5)\n", tmp_path)
    assert guarded.returncode == 1
    assert "--target script.py::wrong" in guarded.stderr
    assert "kcheck.api.CheckFailed: double_kernel reads x[" in guarded.stderr
    unguarded = run(body + "\nkcheck.check(fixed, max_examples=5)\n", tmp_path)
    assert unguarded.returncode == 1
    assert "put the call into a test, or under if __name__ == '__main__':" in unguarded.stderr


def test_a_check_that_is_cut_short_ends_its_workers_and_the_next_one_has_others(
    shared: Checker, targets: Targets, monkeypatch: pytest.MonkeyPatch
) -> None:
    from kcheck.engine import Campaign

    real = Campaign.run

    def cut_short(self: Campaign) -> Iterator[Any]:
        for count, event in enumerate(real(self)):
            if count == 10:
                raise KeyboardInterrupt
            yield event

    with monkeypatch.context() as patch:
        patch.setattr(Campaign, "run", cut_short)
        with pytest.raises(KeyboardInterrupt):
            kcheck.check(targets("fixed"))
    assert shared._client is None
    kcheck.check(targets("fixed"))


def test_errors_are_kchecks_own() -> None:
    assert issubclass(kcheck.CouldNotCheck, KcheckError)
    with pytest.raises(AttributeError, match="no attribute 'chek'"):
        kcheck.chek  # noqa: B018
