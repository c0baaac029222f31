"""Every form of a target's name, discovery, configuration, and what a broken target file is told."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import kcheck
from kcheck import importing, loader
from kcheck.errors import NoTargetError, TargetLoadError, UsageError

HEAD = "import kcheck\nfrom hypothesis import strategies as st\n"
CLOSE = "@kcheck.target(cases=st.just(kcheck.Case(x=1)))\ndef {name}(x):\n    return x\n"
GOOD = HEAD + CLOSE.format(name="first") + CLOSE.format(name="second")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty current directory, with ``sys.path`` and ``sys.modules`` as before afterwards."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(importing, "_target_folders", set())
    before = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - before:
        if str(tmp_path) in str(getattr(sys.modules[name], "__file__", None)):
            del sys.modules[name]


def write(path: str, text: str) -> None:
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).write_text(text)


def specs(*names: str) -> list[str]:
    return [loaded.spec for loaded in loader.select(names)]


def python(code: str) -> subprocess.CompletedProcess[str]:
    """Run code in a fresh interpreter, without the current directory in ``sys.path``."""
    environment = os.environ | {"PYTHONPATH": str(Path(kcheck.__file__).parents[1])}
    command = [sys.executable, "-P", "-c", code]
    return subprocess.run(command, capture_output=True, text=True, env=environment, check=False)


def error_of(spec: str) -> str:
    with pytest.raises(TargetLoadError) as caught:
        loader.load(spec)
    assert "Traceback" not in str(caught.value)
    assert "\n" not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.exit_code == 2
    return str(caught.value)


class TestForms:
    def test_file(self) -> None:
        write("kernels/mine.py", GOOD)
        assert specs("kernels/mine.py") == ["kernels/mine.py::first", "kernels/mine.py::second"]

    def test_file_and_name(self) -> None:
        write("mine.py", GOOD)
        (loaded,) = loader.load("mine.py::second")
        assert loaded.spec == "mine.py::second"
        assert loaded.target.name == "second"

    def test_absolute_file(self, folder: Path) -> None:
        write("mine.py", GOOD)
        assert specs(f"{folder}/mine.py::first") == [f"{folder}/mine.py::first"]

    def test_a_spec_loads_the_same_target_again(self) -> None:
        write("mine.py", GOOD)
        for loaded in loader.load("mine.py"):
            assert loader.load(loaded.spec)[0].target is loaded.target

    def test_name_in_reports(self) -> None:
        write("mine.py", HEAD + CLOSE.replace("(cases", "(name='gather fp8', cases").format(name="gather_fp8"))
        assert specs("mine.py::gather fp8") == specs("mine.py::gather_fp8") == ["mine.py::gather_fp8"]

    def test_alias_counts_once(self) -> None:
        write("mine.py", GOOD + "again = first\n")
        assert specs("mine.py") == ["mine.py::first", "mine.py::second"]

    def test_module(self) -> None:
        write("lib/__init__.py", "")
        write("lib/checks.py", GOOD)
        assert specs("lib.checks") == ["lib.checks:first", "lib.checks:second"]
        assert specs("lib.checks:second") == ["lib.checks:second"]

    def test_module_of_the_project_from_a_folder_below(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        write("pyproject.toml", "")
        write("checks_of_project.py", GOOD)
        write("below/deeper/x.txt", "")
        monkeypatch.chdir(folder / "below/deeper")
        assert specs("checks_of_project:first") == ["checks_of_project:first"]

    def test_package_named_like_a_folder(self) -> None:
        write("lib_with_targets/__init__.py", GOOD)
        assert specs("lib_with_targets:first") == ["lib_with_targets:first"]

    def test_none_twice(self) -> None:
        write("mine.py", GOOD)
        assert specs("mine.py::second", "mine.py") == ["mine.py::second", "mine.py::first"]

    def test_builtin(self) -> None:
        (loaded,) = loader.load("builtin:paged_gather")
        assert loaded.spec == "builtin:paged_gather"
        assert loaded.target.name == "paged_gather"

    def test_listing_builtins_needs_no_torch(self) -> None:
        code = "import sys; from kcheck.loader import builtin_names; print(*builtin_names(), 'torch' in sys.modules)"
        *names, heavy = python(code).stdout.split()
        assert {"paged_gather", "paged_gather_contiguous", "paged_gather_shape_stride"} < set(names)
        assert heavy == "False"

    def test_a_pair_shares_a_file(self) -> None:
        assert loader.builtin_file("cross_entropy").name == loader.builtin_file("cross_entropy_wrong").name
        assert loader.load("builtin:cross_entropy_wrong")[0].target.name == "cross_entropy_wrong"


class TestImport:
    def test_own_folder_is_importable(self) -> None:
        write("kernels/helper_of_mine.py", "VALUE = 3\n")
        write("kernels/mine.py", "from helper_of_mine import VALUE\n" + GOOD)
        assert len(specs("kernels/mine.py")) == 2

    def test_relative_import_in_a_package(self) -> None:
        write("proj/__init__.py", "")
        write("proj/checks/__init__.py", "")
        write("proj/ops.py", "VALUE = 3\n")
        write("proj/checks/mine.py", "from ..ops import VALUE\nfrom proj.ops import VALUE\n" + GOOD)
        assert len(specs("proj/checks/mine.py")) == 2

    @pytest.mark.parametrize("order", [("a", "b"), ("b", "a")])
    def test_namesakes_in_two_folders(self, order: tuple[str, str]) -> None:
        for name in "ab":
            write(f"{name}/common.py", f"NAME = {name!r}\n")
            write(f"{name}/inner/__init__.py", f"NAME = {name!r}\n")
            write(f"{name}/kcheck_x.py", "import common, inner\nNAMES = (common.NAME, inner.NAME)\n" + GOOD)
        for name in order:
            function = loader.load(f"{name}/kcheck_x.py::first")[0].target.function
            assert function.__globals__["NAMES"] == (name, name)

    def test_file_named_like_an_imported_module(self) -> None:
        write("queue.py", GOOD)
        import queue

        assert specs("queue.py::first") == ["queue.py::first"]
        assert sys.modules["queue"] is queue

    def test_a_sibling_that_was_imported_is_not_run_again(self) -> None:
        write("kcheck_a.py", GOOD)
        write("kcheck_b.py", "import kcheck_a\nborrowed = kcheck_a.first\n" + HEAD)
        assert loader.load("kcheck_b.py")[0].target is loader.load("kcheck_a.py::first")[0].target

    def test_a_failed_import_can_be_tried_again(self) -> None:
        write("mine.py", "1 / 0\n")
        error_of("mine.py")
        write("mine.py", GOOD)
        assert len(specs("mine.py")) == 2

    def test_what_it_prints_goes_to_stderr(self) -> None:
        noise = "import os, subprocess\nprint('python')\nos.write(1, b'c code\\n')\nsubprocess.run(['echo', 'child'])\n"
        write("mine.py", noise + GOOD)
        code = "from kcheck.loader import load; load('mine.py'); print('report')"
        done = python(code)
        assert done.stdout == "report\n"
        assert sorted(done.stderr.splitlines()) == ["c code", "child", "python"]


class TestBrokenFile:
    def test_syntax_error(self) -> None:
        write("mine.py", "import kcheck\ndef f(:\n    pass\n")
        assert error_of("mine.py") == "mine.py:2: SyntaxError: invalid syntax: def f(:"

    def test_syntax_error_in_an_imported_file(self) -> None:
        write("ops_broken.py", "x = 1\n  y = 2\n")
        write("mine.py", "import ops_broken\n")
        assert error_of("mine.py") == "ops_broken.py:2: IndentationError: unexpected indent: y = 2"

    def test_null_bytes(self) -> None:
        write("mine.py", "x = '\0'\n")
        assert error_of("mine.py").startswith("mine.py")
        assert "null bytes" in error_of("mine.py")

    def test_not_text(self) -> None:
        Path("mine.py").write_bytes(b"x = '\xff'\n")
        assert error_of("mine.py").startswith("mine.py:1: SyntaxError: ")

    def test_exception(self) -> None:
        write("mine.py", "def table():\n    return {}['fp8']\n\nSIZES = table()\n")
        assert error_of("mine.py") == (
            "mine.py:2: KeyError: 'fp8'; a target must import cleanly, `python mine.py` shows it all"
        )

    def test_exception_below_an_import(self) -> None:
        write("ops_raising.py", "\nraise RuntimeError('no device\\nhere')\n")
        write("kernels/mine.py", "import kcheck\nimport ops_raising\n")
        write("pyproject.toml", "")
        text = error_of("kernels/mine.py")
        assert text.startswith("kernels/mine.py:2: RuntimeError: no device here (raised at ops_raising.py:2); ")

    def test_missing_module(self) -> None:
        write("mine.py", "\nimport flash_attention_of_mine\n")
        text = error_of("mine.py")
        assert text.startswith("mine.py:2: no module named 'flash_attention_of_mine'; install it for ")
        assert "PYTHONPATH" in text

    def test_missing_name(self) -> None:
        write("ops_short.py", "")
        write("mine.py", "from ops_short import gather\n")
        assert error_of("mine.py").startswith("mine.py:1: ImportError: cannot import name 'gather' from 'ops_short'")

    def test_exit_at_import(self) -> None:
        write("mine.py", "import sys\nsys.exit('done')\n")
        text = error_of("mine.py")
        assert text.startswith("mine.py:2: exits at import (code done)")
        assert "__main__" in text

    def test_exit_of_the_process_at_import(self) -> None:
        """kcheck would end with that code: 0 would look like a pass."""
        write("mine.py", "import os\nos._exit(0)\n")
        assert error_of("mine.py").startswith("mine.py:2: exits at import (code 0)")

    def test_skip_at_import(self) -> None:
        write("mine.py", "import pytest\npytest.importorskip('flash_attention_of_mine')\n")
        assert error_of("mine.py").startswith("mine.py:2: Skipped: could not import 'flash_attention_of_mine'")

    def test_wrong_declaration(self) -> None:
        write("mine.py", GOOD.replace("(cases", "(outputs=['y'], cases", 1))
        text = error_of("mine.py")
        assert "mine.py:3: target 'first': 'y' is not a parameter of first(x)" in text

    def test_no_target(self) -> None:
        write("mine.py", "def gather():\n    pass\n")
        assert error_of("mine.py") == (
            "mine.py declares no target; decorate a function with @kcheck.target(cases=..., oracle=...)"
        )

    def test_interrupt_is_not_swallowed(self) -> None:
        write("mine.py", "raise KeyboardInterrupt\n")
        with pytest.raises(KeyboardInterrupt):
            loader.load("mine.py")


class TestWrongName:
    def test_unknown_name(self) -> None:
        write("mine.py", GOOD)
        assert error_of("mine.py::third") == "mine.py has no target 'third'; it has first, second"
        assert error_of("mine.py::") == "mine.py has no target ''; it has first, second"

    def test_unknown_builtin(self) -> None:
        assert error_of("builtin:paged_gathr").startswith("no built-in target 'paged_gathr'; did you mean ")
        assert error_of("builtin:xyz").startswith("no built-in target 'xyz'; `kcheck list` shows all ")

    def test_no_such_file(self, folder: Path) -> None:
        assert error_of("mine.py::x") == f"mine.py: no such file (current directory: {folder})"

    @pytest.mark.parametrize("spec", ["kernels", "kernels/", "./kernels", "kernels::x"])
    def test_folder(self, spec: str) -> None:
        write("kernels/mine.py", GOOD)
        assert "is a folder; name a file in it" in error_of(spec)

    def test_not_python(self) -> None:
        write("mine.txt", GOOD)
        assert error_of("mine.txt") == "mine.txt is not a .py file"

    def test_dot_in_the_name_of_a_file(self) -> None:
        write("kcheck_a.b.py", GOOD)
        assert error_of("kcheck_a.b.py") == (
            "kcheck_a.b.py: a module's name has no dot; rename the file to kcheck_a_b.py"
        )

    def test_one_colon_behind_a_file(self) -> None:
        assert error_of("mine.py:first") == "'mine.py:first': a name in a file takes two colons: mine.py::first"

    def test_missing_module(self) -> None:
        assert error_of("no_such_package.checks:x").startswith(
            "no_such_package.checks: no module named 'no_such_package'; "
        )

    @pytest.mark.parametrize("spec", ["", "a b", "a..b", "-x", "1", ":x"])
    def test_nonsense(self, spec: str) -> None:
        assert "the forms are file.py, file.py::name" in error_of(spec)


class TestDiscovery:
    def test_files_below(self) -> None:
        for file in ("kcheck_b.py", "ops/tests/kcheck_a.py"):
            write(file, HEAD + CLOSE.format(name="only"))
        for file in (".hidden/kcheck_x.py", "node_modules/kcheck_x.py", "build/kcheck_x.py", "env/lib/kcheck_x.py"):
            write(file, "raise RuntimeError\n")
        write("env/pyvenv.cfg", "")
        write("ops/other.py", "raise RuntimeError\n")
        assert specs() == ["kcheck_b.py::only", "ops/tests/kcheck_a.py::only"]

    def test_folders_that_cannot_be_read_are_skipped(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Below /proc even the question whether a file exists is refused."""
        write("kcheck_a.py", "")
        write("locked/kcheck_b.py", "")
        stat = os.stat

        def refuse(path: str | Path, **options: bool | int | None) -> os.stat_result:
            if "locked/" in str(path):
                raise PermissionError(13, "Permission denied", str(path))
            return stat(path, **options)  # type: ignore[arg-type]

        monkeypatch.setattr(os, "stat", refuse)
        assert "kcheck_a.py" in loader.discovered()

    def test_targets_of_one_name_are_told_apart(self) -> None:
        """In reports: a reader of junit takes test cases of one name for one test."""
        for file in ("kcheck_a.py", "kcheck_b.py"):
            write(file, HEAD + CLOSE.format(name="same"))
        write("kcheck_c.py", HEAD + CLOSE.format(name="other"))
        assert [one.title for one in loader.select()] == ["kcheck_a.py::same", "kcheck_b.py::same", "other"]
        assert [one.title for one in loader.select(["kcheck_b.py"])] == ["same"]

    def test_an_import_that_goes_elsewhere(self, folder: Path) -> None:
        write("kcheck_a.py", "import os\nos.chdir('/')\n" + HEAD + CLOSE.format(name="a"))
        write("kcheck_b.py", HEAD + CLOSE.format(name="b"))
        assert specs() == ["kcheck_a.py::a", "kcheck_b.py::b"]
        assert Path.cwd() == folder

    def test_nothing(self, folder: Path) -> None:
        with pytest.raises(NoTargetError, match="no target: name one") as caught:
            loader.select()
        assert caught.value.exit_code == 5
        assert str(folder) in str(caught.value)
        assert "builtin:paged_gather" in str(caught.value)


class TestConfiguration:
    def test_targets(self) -> None:
        write("pyproject.toml", "[tool.kcheck]\ntargets = ['kernels/mine.py::first', 'builtin:paged_gather']\n")
        write("kernels/mine.py", GOOD)
        write("kcheck_other.py", "raise RuntimeError\n")
        assert specs() == ["kernels/mine.py::first", "builtin:paged_gather"]

    def test_files_are_relative_to_the_project(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        write("pyproject.toml", "[tool.kcheck]\ntargets = ['kernels/mine.py', 'checks_configured:first']\n")
        write("kernels/mine.py", GOOD)
        write("checks_configured.py", GOOD)
        write("docs/x.txt", "")
        monkeypatch.chdir(folder / "docs")
        found = ["../kernels/mine.py::first", "../kernels/mine.py::second", "checks_configured:first"]
        assert specs() == found
        assert specs(*found) == found

    def test_other_tools_only(self) -> None:
        write("pyproject.toml", "[tool.ruff]\nline-length = 120\n")
        write("kcheck_mine.py", GOOD)
        assert specs() == ["kcheck_mine.py::first", "kcheck_mine.py::second"]

    @pytest.mark.parametrize(
        ("text", "problem"),
        [
            ("[tool.kcheck]\ntarget = []\n", "[tool.kcheck] has no key 'target'; known keys: targets"),
            ("[tool.kcheck]\ntargets = 'x.py'\n", "[tool.kcheck] targets is 'x.py'; expected a list of names"),
            ("[tool.kcheck]\ntargets = [1]\n", "[tool.kcheck] targets is [1]; expected a list of names"),
            ("[tool]\nkcheck = 1\n", "tool.kcheck is 1; expected a table"),
            ("[tool.kcheck\n", "cannot be read: "),
        ],
    )
    def test_mistakes(self, text: str, problem: str) -> None:
        write("pyproject.toml", text)
        with pytest.raises(UsageError) as caught:
            loader.select()
        assert str(caught.value).startswith("pyproject.toml: " + problem)


def test_current_directory_comes_behind_installed_packages() -> None:
    """A checkout of PyTorch has a folder named torch: it must not hide the installed one."""
    write("numpy/__init__.py", "raise RuntimeError\n")
    write("lib_beside_numpy.py", "import numpy\n" + GOOD)
    code = "from kcheck.loader import load; print(load('lib_beside_numpy:first')[0].spec)"
    done = python(code)
    assert (done.stdout, done.stderr) == ("lib_beside_numpy:first\n", "")
