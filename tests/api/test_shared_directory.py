"""The ``.kcheck`` directory when several processes use it at once, as the workers of pytest-xdist do."""

from __future__ import annotations

import errno
import gc
import itertools
import os
import re
from pathlib import Path

import pytest

from kcheck.case import Case
from kcheck.errors import UsageError
from kcheck.events import Discovery
from kcheck.findings import Finding, Kind
from kcheck.saved_case import read_case
from kcheck.store import Store


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / ".kcheck"


def test_each_one_has_a_log_and_a_running_case_of_its_own(root: Path) -> None:
    stores = [Store(root).open(own_process=False) for _ in range(3)]
    assert [store.log.name for store in stores] == ["worker.log", "worker-1.log", "worker-2.log"]
    for number, store in enumerate(stores):
        store.running("file.py::target", Case(x=number))
    files = [root / name for name in ("running.json", "running-1.json", "running-2.json")]
    assert [read_case(file).case.args["x"] for file in files] == [0, 1, 2]
    stores[0].idle()
    assert [file.exists() for file in files] == [False, True, True]


def test_names_are_free_again_afterwards(root: Path) -> None:
    first = Store(root).open(own_process=False)
    assert first.log.name == "worker.log"
    del first
    gc.collect()
    assert Store(root).open(own_process=False).log.name == "worker.log"


def test_another_process_counts_too(root: Path) -> None:
    first = Store(root).open(own_process=False)
    child = os.fork()
    if not child:
        os._exit(Store(root).open(own_process=False).log.name != "worker-1.log")
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert first.log.name == "worker.log"


def test_targets_of_one_name_keep_their_findings_apart(root: Path) -> None:
    """A kernel that was copied into a second file: the fingerprint is the same, the case is not."""
    store = Store(root).open(own_process=False)
    finding = Finding(Kind.OUT_OF_VIEW_READ, "stray", kernel="k", argument="x", source="tl.load(x)")
    fingerprint = finding.fingerprint("forward")
    for number, spec in enumerate(("a.py::forward", "b.py::forward", "a.py::forward", "b.py::forward")):
        store.save(Discovery("forward", spec, finding, fingerprint, Case(x=number)))
    assert store.find(fingerprint, "a.py::forward").case == Case(x=2)
    assert store.find(fingerprint[:6], "b.py::forward").case == Case(x=3)
    assert store.find(fingerprint).spec == "a.py::forward"
    with pytest.raises(UsageError, match="several findings start with"):
        store.find(fingerprint[:6])


def test_what_a_sanitizer_shows_does_not_replace_the_case_of_fuzz(root: Path) -> None:
    store = Store(root).open(own_process=False)
    finding = Finding(Kind.OUT_OF_VIEW_READ, "stray", kernel="k", argument="x", source="tl.load(x)")
    fingerprint = finding.fingerprint("forward")
    found = {
        (spec, tool): Discovery("forward", spec, finding, fingerprint, Case(x=number), tool=tool)
        for number, (spec, tool) in enumerate(itertools.product(("a.py::f", "b.py::f"), ("memcheck", "", "viewcheck")))
    }
    assert found["a.py::f", "memcheck"].replay == f"kcheck replay {fingerprint}-memcheck --target a.py::f"
    for (spec, tool), discovery in found.items():
        store.save(discovery)
        saved = store.find(discovery.saved_as, spec)
        assert (saved.case, saved.tool) == (discovery.case, tool)
    for (spec, tool), discovery in found.items():
        assert store.find(discovery.saved_as, spec).case == discovery.case
        kept = store.saved(discovery)
        assert kept is not None
        assert (kept.case, kept.tool) == (discovery.case, tool)
    assert store.find(fingerprint[:5], "b.py::f").tool == ""


@pytest.mark.parametrize("spec", ["a.py::b", "/".join(["folder"] * 60) + "/a.py::b", f"{'ü' * 120}.py::b"])
def test_examples_of_a_target_with_any_path_can_be_saved(root: Path, spec: str) -> None:
    folder = Store(root).open(own_process=False).examples(spec)
    folder.mkdir()
    assert folder == Store(root).examples(spec) != Store(root).examples(f"{spec}c")


def test_a_full_disk_stops_no_run_and_leaves_no_half_case(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    store = Store(root).open(own_process=False)
    store.running("file.py::target", Case(x=1))
    assert store.trouble == ""
    monkeypatch.setattr(os, "pwrite", full)
    store.running("file.py::target", Case(x=2))
    assert re.match(r"cannot write .*running\.json: No space left on device; the run goes on", store.trouble)
    assert store.case_note.read_bytes() == b""


@pytest.mark.parametrize(
    ("own_process", "way"), [(True, "with --dir"), (False, "with pytest's --kcheck-dir, or start")]
)
def test_a_directory_that_cannot_be_made_names_the_option_that_there_is(
    root: Path, own_process: bool, way: str
) -> None:
    root.touch()
    with pytest.raises(UsageError, match=f"cannot write to {root}: .*; choose another place {way}"):
        Store(root).open(own_process=own_process)
