"""The file that says how far a run is: written, read back, and refused where it does not fit."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from kcheck.engine.settings import Earlier
from kcheck.events import Shard
from kcheck.resume import MOST_STATES, Journal, earlier_seed, sources, take_up
from kcheck.store import Store

from .conftest import Ran

IDENTITY = {"targets": "t.py", "backend": "interpret", "seed": "3", "source": "1234"}


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "kept").open()


@pytest.fixture(scope="session")
def state(whole: Ran) -> Earlier:
    """How far a run was that is done with one target, and has found something in the other."""
    states = whole.journal.states
    found = next(s for s in states if s.results and s.progress is not None and s.progress.result.discoveries)
    assert found.progress is not None
    rounded = [replace(one, seconds=round(one.seconds, 6)) for one in (*found.results, found.progress.result)]
    return replace(found, results=tuple(rounded[:-1]), progress=replace(found.progress, result=rounded[-1]))


def file_of(store: Store) -> Path:
    (path,) = (store.root / "resume").glob("*.json")
    return path


def test_what_is_noted_is_taken_up(store: Store, state: Earlier) -> None:
    Journal(store, IDENTITY, 3).note(state)
    assert state.progress is not None
    earlier, sentence = take_up(store, IDENTITY)
    assert earlier == state
    assert sentence.startswith("goes on with a run of ")
    assert f"1 target done; two after {state.progress.swept} cases of the sweep" in sentence


def test_a_run_that_came_to_its_end_leaves_nothing(store: Store, state: Earlier) -> None:
    journal = Journal(store, IDENTITY, 3)
    journal.note(state)
    journal.finish()
    journal.finish()
    assert take_up(store, IDENTITY) == (Earlier(), "there is no run to resume: this one starts from the start")


@pytest.mark.parametrize("name", ["seed", "source"])
def test_another_run_is_not_taken_up(store: Store, state: Earlier, name: str) -> None:
    Journal(store, IDENTITY, 3).note(state)
    earlier, sentence = take_up(store, IDENTITY | {name: "other"})
    assert earlier == Earlier()
    assert sentence == f"the last run cannot be resumed: its {name} was another; this one starts anew"


def test_shards_and_targets_have_files_of_their_own(store: Store, state: Earlier) -> None:
    Journal(store, IDENTITY, 3, Shard(1, 2)).note(state)
    assert take_up(store, IDENTITY, Shard(2, 2))[0] == Earlier()
    assert take_up(store, IDENTITY | {"targets": "u.py"}, Shard(1, 2))[0] == Earlier()
    assert take_up(store, IDENTITY, Shard(1, 2))[0] == state
    assert earlier_seed(store, "t.py", "interpret") == 3
    assert earlier_seed(store, "u.py", "interpret") is None
    assert earlier_seed(store, "t.py", "cuda") is None


@pytest.mark.parametrize(
    "damage",
    [
        lambda text: text[: len(text) // 2],
        lambda text: "",
        lambda text: "\0" * 100,
        lambda text: "[" * 100_000,
        lambda text: text.replace("kcheck.resume/1", "kcheck.resume/2"),
        lambda text: text.replace('"swept": ', '"swept": -'),
        lambda text: text.replace('"drawn": ', '"drawn": 1.5e'),
        lambda text: text.replace('"evidence": {', '"evidence": null, "e": {'),
        lambda text: text.replace('"case": "running.json"', '"case": ["running.json"]'),
        lambda text: text.replace('"seconds": ', '"seconds": 1e999, "s": '),
        lambda text: text.replace('"seconds": ', '"seconds": 1e308, "s": '),
    ],
)
def test_a_damaged_file_starts_the_run_anew(store: Store, state: Earlier, damage: Callable[[str], str]) -> None:
    Journal(store, IDENTITY, 3).note(state)
    path = file_of(store)
    path.write_text(damage(path.read_text()))
    earlier, sentence = take_up(store, IDENTITY)
    assert earlier == Earlier()
    assert sentence.startswith("the last run cannot be resumed: ")
    assert sentence.endswith("this one starts from the start")
    earlier_seed(store, "t.py", "interpret")


def test_the_case_that_was_running_is_named(store: Store, state: Earlier, tmp_path: Path) -> None:
    assert state.progress is not None
    case = state.progress.result.discoveries[0].case
    store.running("builtin:t", case)
    Journal(store, IDENTITY, 3).note(state)
    store.keep_left()  # as the next run does, before it notes cases of its own
    sentence = take_up(store, IDENTITY)[1]
    assert sentence.endswith("left-running.json")
    assert "a case was running: kcheck replay" in sentence
    saved = json.loads((store.root / "left-running.json").read_text())
    assert saved["target"] == "builtin:t"


def test_a_name_in_the_file_leads_nowhere_else(store: Store, state: Earlier) -> None:
    Journal(store, IDENTITY, 3).note(state)
    path = file_of(store)
    path.write_text(path.read_text().replace('"running.json"', '"../../secret.json"'))
    assert "a case was running" not in take_up(store, IDENTITY)[1]


def test_a_directory_that_cannot_be_written_stops_nothing(store: Store, state: Earlier) -> None:
    (store.root / "resume").write_text("a file where the folder should be")
    Journal(store, IDENTITY, 3).note(state)
    assert take_up(store, IDENTITY)[0] == Earlier()


def test_states_that_nobody_takes_up_are_limited(store: Store) -> None:
    for number in range(MOST_STATES + 5):
        Journal(store, {"targets": str(number)}, 3).note(Earlier())
    assert len(list((store.root / "resume").iterdir())) == MOST_STATES


def test_the_source_is_all_that_a_target_has_in_its_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def module(name: str, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x = 1")
        made: Any = ModuleType(name)
        made.__file__ = str(path)
        monkeypatch.setitem(sys.modules, name, made)

    project, elsewhere = tmp_path / "project", tmp_path / "elsewhere"
    module("kcheck_t", project / "kcheck_t.py")
    module("kernels", project / "kernels.py")
    module("other", elsewhere / "other.py")
    module("installed", project / "site-packages" / "installed.py")
    target = str(project / "kcheck_t.py")
    before = sources(target, project)
    for path in (elsewhere / "other.py", project / "site-packages" / "installed.py"):
        path.write_text("x = 2")
        assert sources(target, project) == before
    (project / "kernels.py").write_text("x = 2")
    assert sources(target, project) != before


def test_the_source_is_the_same_wherever_its_files_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def digest(project: Path) -> str:
        for name in ("kcheck_t", "kernels"):
            path = project / f"{name}.py"
            path.parent.mkdir(exist_ok=True)
            path.write_text(f"x = {name!r}")
            made: Any = ModuleType(name)
            made.__file__ = str(path)
            monkeypatch.setitem(sys.modules, name, made)
        return sources(str(project / "kcheck_t.py"), project)

    assert digest(tmp_path / "here") == digest(tmp_path / "there")
