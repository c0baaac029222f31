"""The name by which a worker finds a target again."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import strategies as st

import kcheck
from kcheck import loader
from kcheck.errors import UsageError
from kcheck.spec import spec_of

FILE = """
import kcheck
from hypothesis import strategies as st

def make():
    @kcheck.target(cases=st.just(kcheck.Case(x=1)))
    def same_name(x):
        return x
    return same_name

one = make()
two = make()
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(sys, "path", [*sys.path, str(tmp_path)])
    monkeypatch.setattr(sys, "modules", dict(sys.modules))
    return tmp_path


def module(folder: Path, name: str) -> ModuleType:
    file = folder.joinpath(*name.split(".")).with_suffix(".py")
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(FILE)
    importlib.invalidate_caches()
    return importlib.import_module(name)


def test_a_file_below_the_folder_is_relative_and_another_one_is_not(folder: Path) -> None:
    two = module(folder, "specced").two
    assert spec_of(two, folder) == "specced.py::two"
    assert spec_of(two, folder / "below") == f"{folder}/specced.py::two"


def test_the_name_loads_that_target_though_others_are_called_the_same(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    made = module(folder, "specced")
    for target in (made.one, made.two):
        assert loader.load(spec_of(target, folder))[0].target is target


def test_a_variable_comes_before_a_name_in_reports(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    (folder / "crossed.py").write_text(FILE.replace("two = make()", "same_name = make()"))
    crossed = importlib.import_module("crossed")
    assert loader.load("crossed.py::same_name")[0].target is crossed.same_name


def test_a_factory_in_another_module_does_not_matter(folder: Path) -> None:
    made = module(folder, "specced")
    user = ModuleType("user")
    user.__file__ = str(folder / "user.py")
    vars(user)["mine"] = made.make()
    sys.modules["user"] = user
    assert spec_of(user.mine, folder) == "user.py::mine"


def test_a_module_of_a_namespace_package_keeps_its_package(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    two = module(folder, "space.inner.specced").two
    assert spec_of(two, folder) == "space.inner.specced:two"


def test_an_installed_package_is_named_as_a_module_and_ones_own_as_a_file(folder: Path) -> None:
    (folder / "package").mkdir()
    (folder / "package" / "__init__.py").write_text("")
    two = module(folder, "package.specced").two
    assert spec_of(two, folder) == "package/specced.py::two"
    assert spec_of(two, folder / "elsewhere") == "package.specced:two"


def test_a_builtin_target_keeps_its_name() -> None:
    (gather,) = loader.load("builtin:paged_gather")
    assert spec_of(gather.target, Path.cwd()) == "builtin:paged_gather"


def test_what_no_worker_could_import_is_one_sentence(folder: Path) -> None:
    made = module(folder, "specced")
    with pytest.raises(UsageError, match=r"specced\.py:6: target 'same_name' is no variable of a module"):
        spec_of(made.make(), folder)
    interactive = ModuleType("interactive")
    interactive.__dict__["target"] = kcheck.target(cases=st.nothing())(lambda x: x)
    sys.modules["interactive"] = interactive
    with pytest.raises(UsageError, match="is defined in interactive, which has no source file"):
        spec_of(interactive.target, folder)
