"""A test that is emitted for a bug fails on the wrong kernel and passes on the right one, without kcheck."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kcheck import loader
from kcheck.cli.emission import Emission, check_possible, emit
from kcheck.client import Client
from kcheck.engine import Campaign, Settings
from kcheck.errors import CouldNotCheck, UsageError
from kcheck.events import Discovery, RunDone
from kcheck.findings import Finding, Kind, Severity
from kcheck.saved_case import SavedCase
from kcheck.store import Store

HERE = Path(__file__).parent
KERNELS = HERE.parent / "kernels"
OWN = HERE / "emitted_kernels.py"


def found(spec: str, client: Client, folder: Path) -> Discovery:
    """The first bug of a target, by fuzzing it."""
    (loaded,) = loader.load(spec)
    settings = Settings(max_examples=5, max_time=10.0, seed=1)
    done = list(Campaign([loaded], client, Store(folder).open(), settings, "interpret").run())[-1]
    assert isinstance(done, RunDone)
    return done.results[0].discoveries[0]


def emitted(discovery: Discovery, spec: str, client: Client, path: Path, form: str = "pytest") -> str:
    """The text of a test of that discovery, with another target in place of the one that was wrong."""
    (loaded,) = loader.load(spec)
    client.load(spec)
    saved = SavedCase(discovery.spec, discovery.case, discovery.finding, discovery.fingerprint)
    assert emit(saved, loaded, client, Emission(form, path)) == 0  # type: ignore[arg-type]
    return path.read_text()


def imports(text: str) -> set[str]:
    """Packages that a file imports."""
    nodes = list(ast.walk(ast.parse(text)))
    names = [a.name for node in nodes if isinstance(node, ast.Import) for a in node.names]
    names += [node.module or "" for node in nodes if isinstance(node, ast.ImportFrom)]
    return {name.partition(".")[0] for name in names}


def ruff(path: Path) -> None:
    """By Ruff's defaults there is nothing to complain of."""
    for command in (["check"], ["format", "--check"]):
        ruffed = [sys.executable, "-m", "ruff", command[0], "--isolated", *command[1:], str(path)]
        done = subprocess.run(ruffed, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr


def passes(path: Path) -> bool:
    """Run an emitted test as a program, as it runs itself under pytest."""
    command = [sys.executable, str(path)]
    done = subprocess.run(command, cwd=path.parent, capture_output=True, text=True, check=False)
    assert done.stdout == "passed\n" if not done.returncode else "AssertionError" in done.stderr, done.stderr
    return not done.returncode


def pytest_run(folder: Path, *names: str) -> subprocess.CompletedProcess[str]:
    """Run pytest without plugins."""
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *names],
        cwd=folder,
        env=os.environ | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
        check=False,
    )


PAIRS = [
    (f"{KERNELS}/interleaved.py::wrong", f"{KERNELS}/interleaved.py::fixed", "values"),  # a pool's planes, read
    (f"{KERNELS}/oob_write.py::wrong", f"{KERNELS}/oob_write.py::fixed", "memory around y was written"),
    (f"{KERNELS}/unwritten.py::wrong", f"{KERNELS}/unwritten.py::fixed", "values"),
    (f"{KERNELS}/made_by_target.py::unwritten", f"{KERNELS}/made_by_target.py::fixed", "values"),
    (f"{KERNELS}/mutated.py::wrong", f"{KERNELS}/mutated.py::fixed", "x was changed"),
    (f"{OWN}::pool_wrong", f"{OWN}::pool_fixed", ""),  # two views of one pool
    (f"{OWN}::in_place_wrong", f"{OWN}::in_place_fixed", ""),
    (f"{OWN}::nested_wrong", f"{OWN}::nested_fixed", "values"),
    (f"{OWN}::without_oracle_wrong", f"{OWN}::without_oracle_fixed", "values"),
    (f"{OWN}::from_helpers_wrong", f"{OWN}::from_helpers_fixed", ""),  # copied from another module
    (f"{OWN}::declines_wrong", f"{OWN}::declines_fixed", "ValueError: rows must be dense"),
]


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize(("wrong", "fixed", "says"), PAIRS, ids=lambda value: value.rpartition("/")[2])
def test_it_fails_before_the_fix_and_passes_after(
    wrong: str, fixed: str, says: str, client: Client, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    discovery = found(wrong, client, tmp_path)
    before, after = tmp_path / "test_before.py", tmp_path / "test_after.py"
    text = emitted(discovery, wrong, client, before)
    told = capsys.readouterr().err
    assert "fails here, as it must until the bug is fixed" in told
    assert {"values": "Tensor-likes are not"}.get(says, says) in told
    emitted(discovery, fixed, client, after)
    assert "passes here" in capsys.readouterr().err
    assert imports(text) <= {"os", "subprocess", "sys", "torch", "triton", "__future__"}
    ruff(before)
    ruff(after)


@pytest.mark.usefixtures("quick")
def test_one_pytest_run_has_targets_and_emitted_tests_in_either_order(client: Client, tmp_path: Path) -> None:
    discovery = found(f"{OWN}::nested_wrong", client, tmp_path)
    (tmp_path / "mine.py").write_text(OWN.read_text())
    (tmp_path / "helpers_needing_kcheck.py").write_text((HERE / "helpers_needing_kcheck.py").read_text())
    emitted(discovery, f"{OWN}::nested_wrong", client, tmp_path / "test_a_wrong.py")
    emitted(discovery, f"{OWN}::nested_fixed", client, tmp_path / "test_z_fixed.py")
    for name in ("wrong", "fixed"):
        (tmp_path / f"kcheck_{name}.py").write_text(f"from mine import nested_{name}\n\nmine = nested_{name}\n")
    names = ["test_a_wrong.py", "kcheck_wrong.py", "kcheck_fixed.py", "test_z_fixed.py"]
    options = ["-p", "kcheck.pytest_plugin", "--kcheck-max-examples=5", "--kcheck-seed=1", "--kcheck-backend=interpret"]
    done = pytest_run(tmp_path, *names, *options)
    failed = re.findall(r"^FAILED (\w+)", done.stdout, re.MULTILINE)
    assert failed == ["test_a_wrong", "kcheck_wrong"], done.stdout + done.stderr
    assert "2 failed, 2 passed" in done.stdout


@pytest.mark.usefixtures("quick")
def test_what_asks_for_a_gpu_is_written_and_said_not_to_have_been_tried(client: Client, tmp_path: Path) -> None:
    discovery = found(f"{OWN}::asks_for_gpu_wrong", client, tmp_path)
    for name in ("asks_for_gpu_wrong", "asks_for_gpu_fixed"):
        path = tmp_path / f"test_{name}.py"
        with pytest.raises(
            CouldNotCheck, match=r"was written, but could not be tried.*: assert x\.is_cuda\)"
        ) as raised:
            emitted(discovery, f"{OWN}::{name}", client, path)
        assert "run it on a machine with a GPU; elsewhere it is skipped" in str(raised.value)
        assert "has not been tried on one" in path.read_text()
        assert imports(path.read_text()) <= {"pytest", "torch", "triton", "__future__"}
        ruff(path)
    assert "2 skipped" in pytest_run(tmp_path).stdout
    with pytest.raises(CouldNotCheck):
        emitted(discovery, f"{OWN}::asks_for_gpu_wrong", client, tmp_path / "script.py", "script")
    script = subprocess.run([sys.executable, tmp_path / "script.py"], capture_output=True, text=True, check=False)
    assert (script.returncode, script.stderr) == (1, "this needs a GPU\n")


@pytest.mark.usefixtures("quick")
def test_another_exception_than_the_finding_s_is_not_taken_for_it(client: Client, tmp_path: Path) -> None:
    discovery = found(f"{OWN}::raises_wrong", client, tmp_path)
    assert discovery.finding.kind is Kind.TARGET_ERROR
    with pytest.raises(CouldNotCheck, match="could not be tried"):
        emitted(discovery, f"{OWN}::raises_wrong", client, tmp_path / "test_x.py")
    (loaded,) = loader.load(f"{OWN}::raises_wrong")
    saved = SavedCase(discovery.spec, discovery.case, discovery.finding, discovery.fingerprint)
    (tmp_path / "test_x.py").write_text("of an earlier try")
    with pytest.raises(CouldNotCheck, match="was written, but could not be tried"):
        emit(saved, loaded, client, Emission("pytest", tmp_path / "test_x.py", force=True))
    assert "def test_" in (tmp_path / "test_x.py").read_text()


def test_the_founding_bug_by_pytest_itself_before_and_after(client: Client, tmp_path: Path) -> None:
    wrong, fixed = "builtin:paged_gather_shape_stride", "builtin:paged_gather"
    discovery = found(wrong, client, tmp_path)
    emitted(discovery, wrong, client, tmp_path / "test_before.py")
    emitted(discovery, fixed, client, tmp_path / "test_after.py")
    (tmp_path / "conftest.py").write_text("import sys\n\nsys.modules.update(kcheck=None, hypothesis=None)\n")
    done = pytest_run(tmp_path)
    assert "1 failed, 1 passed" in done.stdout, done.stdout + done.stderr
    assert "test_paged_gather_shape_stride_out_of_view_read_block_table" in done.stdout
    ruff(tmp_path / "test_before.py")


@pytest.mark.usefixtures("quick")
def test_the_kernel_of_the_readme_with_the_fix_made_in_the_emitted_file(client: Client, tmp_path: Path) -> None:
    readme = (HERE.parent.parent / "README.md").read_text()
    (code,) = re.findall(r"```python\n(# kcheck_scale\.py.*?)```", readme, re.DOTALL)
    target = tmp_path / "kcheck_scale.py"
    target.write_text(code)
    spec = f"{target}::doubled"
    path = tmp_path / "test_scale.py"
    text = emitted(found(spec, client, tmp_path), spec, client, path)
    assert not passes(path)
    fixed = re.sub(r"(out, x, columns, )columns(, x\.stride\(1\))", r"\1x.stride(0)\2", text)
    assert fixed != text
    path.write_text(fixed)
    assert passes(path)


@pytest.mark.usefixtures("quick")
def test_a_script_runs_by_itself(client: Client, tmp_path: Path) -> None:
    discovery = found(f"{OWN}::in_place_wrong", client, tmp_path)
    emitted(discovery, f"{OWN}::in_place_wrong", client, tmp_path / "before.py", "script")
    emitted(discovery, f"{OWN}::in_place_fixed", client, tmp_path / "after.py", "script")
    assert not passes(tmp_path / "before.py")
    assert passes(tmp_path / "after.py")


@pytest.mark.usefixtures("quick")
def test_what_needs_no_kcheck_is_imported_so_that_a_fix_there_counts(client: Client, tmp_path: Path) -> None:
    package = tmp_path / "mylib"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "ops.py").write_text(
        "import triton\nimport triton.language as tl\n\n\n"
        "@triton.jit\n"
        "def twice_kernel(x, count, stride, LANES: tl.constexpr):\n"
        "    lanes = tl.arange(0, LANES)\n"
        "    here = x + lanes * stride\n"
        "    tl.store(here, 2 * tl.load(here, mask=lanes < count), mask=lanes < count)\n\n\n"
        "def twice(x):\n"
        "    twice_kernel[(1,)](x, x.shape[0], 1, LANES=32)\n"
    )
    target = tmp_path / "kcheck_twice.py"
    target.write_text(
        "import kcheck\nfrom kcheck import strategies as ks\nfrom mylib import ops\nfrom mylib.ops import twice\n\n"
        "@kcheck.target(cases=ks.inouts((5,)).map(lambda x: kcheck.Case(x=x)), oracle=lambda x: x.mul_(2),\n"
        "               kernels=[ops.twice_kernel], inout=['x'])\n"
        "def doubled(x):\n    twice(x)\n"
    )
    spec = f"{target}::doubled"
    text = emitted(found(spec, client, tmp_path), spec, client, tmp_path / "test_twice.py")
    assert "from mylib.ops import twice\n" in text
    assert "twice_kernel" not in text.partition('"""\n\nimport os')[2]
    assert not passes(tmp_path / "test_twice.py")
    ops = package / "ops.py"
    ops.write_text(ops.read_text().replace("x.shape[0], 1,", "x.shape[0], x.stride(0),"))
    assert passes(tmp_path / "test_twice.py")


@pytest.mark.usefixtures("quick")
def test_what_cannot_be_copied_is_imported_with_kcheck_and_says_so(client: Client, tmp_path: Path) -> None:
    wrong, fixed = f"{OWN}::made_wrong", f"{OWN}::made_fixed"
    discovery = found(wrong, client, tmp_path)
    text = emitted(discovery, wrong, client, tmp_path / "test_before.py")
    reason = "This test needs kcheck: inner is not a function of emitted_kernels.py that is decorated there."
    assert reason in text.replace("\n#", "")
    assert "from emitted_kernels import made_wrong" in text
    emitted(discovery, fixed, client, tmp_path / "test_after.py")
    assert not passes(tmp_path / "test_before.py")
    assert passes(tmp_path / "test_after.py")
    ruff(tmp_path / "test_before.py")


@pytest.mark.usefixtures("quick")
def test_a_name_that_the_test_has_for_itself_is_not_copied_over_it(client: Client, tmp_path: Path) -> None:
    discovery = found(f"{OWN}::clash_wrong", client, tmp_path)
    text = emitted(discovery, f"{OWN}::clash_wrong", client, tmp_path / "test_x.py")
    assert "hashed means one thing in the test itself and another in helpers_needing_kcheck" in text.replace(
        "\n# ", " "
    )
    assert "from emitted_kernels import clash_wrong" in text


def finding(**fields: Any) -> SavedCase:
    from kcheck import Case

    return SavedCase("builtin:paged_gather", Case(), replace(Finding(Kind.VALUE_MISMATCH, "wrong"), **fields))


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"kind": Kind.SHARED_RACE}, "shared-race does not show in a result"),
        ({"kind": Kind.MISALIGNED_ACCESS}, "misaligned-access does not show in a result"),
        ({"kind": Kind.TIMEOUT}, "timeout does not show in a result"),
        ({"kind": Kind.OUT_OF_VIEW_READ, "severity": Severity.WARNING}, "no effect on a result"),
        ({"kind": Kind.OUT_OF_BOUNDS_READ, "argument": "out (made by the target)"}, "which a test cannot fill"),
    ],
)
def test_what_does_not_show_in_a_result_is_one_sentence(fields: dict[str, Any], says: str) -> None:
    with pytest.raises(UsageError, match=re.escape(says)) as raised:
        check_possible(finding(**fields), Emission("pytest", None))
    assert raised.value.exit_code == 2
    assert "\n" not in str(raised.value)


def test_a_file_is_never_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "test_x.py"
    path.write_text("mine")
    with pytest.raises(UsageError, match="exists; choose another place with -o"):
        check_possible(finding(), Emission("pytest", path))
    check_possible(finding(), Emission("pytest", path, force=True))
    assert path.read_text() == "mine"


def test_a_case_without_a_finding_gives_no_test(client: Client, tmp_path: Path) -> None:
    discovery = found(f"{OWN}::in_place_wrong", client, tmp_path)
    (right,) = loader.load(f"{OWN}::in_place_fixed")
    client.load(right.spec)
    with pytest.raises(UsageError, match="the case shows no finding"):
        emit(SavedCase("", discovery.case), right, client, Emission("pytest", None))


@pytest.mark.usefixtures("quick")
def test_a_test_that_would_not_show_the_bug_is_not_written(
    client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    discovery = found(f"{OWN}::in_place_wrong", client, tmp_path)
    (wrong,) = loader.load(f"{OWN}::in_place_wrong")
    (right,) = loader.load(f"{OWN}::in_place_fixed")
    from kcheck.emit import subject

    # As if the trial ran something that is right.
    monkeypatch.setattr("kcheck.emit.subject", lambda one, home: subject(right, home))
    path = tmp_path / "test_x.py"
    with pytest.raises(CouldNotCheck, match="outside of kcheck the case gives the right result"):
        emit(SavedCase(wrong.spec, discovery.case, discovery.finding), wrong, client, Emission("pytest", path))
    assert not path.exists()
