"""Baseline files: written, read back, refused; and which cases a crash keeps from being launched."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kcheck import baseline
from kcheck.baseline import Known, holds
from kcheck.case import Case, DTypeValue, Tensor
from kcheck.errors import InvalidDocument, UsageError
from kcheck.events import Discovery
from kcheck.findings import Finding, Kind, Severity
from kcheck.layout import Dim, Layout

ISSUE = "https://example.org/issues/7"


def case_of(rows: int = 4, *, after: int = 0, **more: Any) -> Case:
    return Case(x=Tensor("float32", Layout((Dim(rows), Dim(8, after=after)))), **more)


CASE = case_of(after=3)
KNOWN = Known(
    issue=ISSUE,
    target="kernels/kcheck_x.py::x",
    found_by="interpret",
    fingerprint="0123456789ab",
    kind=Kind.OUT_OF_VIEW_READ,
    severity=Severity.ERROR,
    kernel="x_kernel",
    argument="x",
    culprit="x",
    source="tl.load(x + row)",
    message="x_kernel reads outside of x",
    case=CASE,
)


def test_round_trip(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    entries = [KNOWN, replace(KNOWN, target="builtin:paged_gather", related=("b" * 12,), strict=False)]
    baseline.write(Path("known.json"), entries)
    assert set(baseline.read(Path("known.json"))) == set(entries)


def test_the_order_of_the_entries_is_stable(tmp_path: Path) -> None:
    entries = [replace(KNOWN, fingerprint=f"{i:012x}", kind=kind) for i in range(3) for kind in (Kind.CRASH, Kind.LEAK)]
    baseline.write(tmp_path / "a.json", entries)
    baseline.write(tmp_path / "b.json", entries[::-1])
    assert (tmp_path / "a.json").read_bytes() == (tmp_path / "b.json").read_bytes()


def test_a_baseline_that_cannot_be_written_stays_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is under version control, and holds what people wrote."""
    file = tmp_path / "known.json"
    baseline.write(file, [KNOWN])
    before = file.read_bytes()

    def full(path: Path, *_: object, **__: object) -> int:
        path.open("w").close()
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(Path, "write_text", full)
    with pytest.raises(UsageError, match=r"known\.json cannot be written: No space left on device"):
        baseline.write(file, [])
    assert file.read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["known.json"]


def test_a_link_to_a_baseline_stays_one(tmp_path: Path) -> None:
    link = tmp_path / "link.json"
    link.symlink_to(tmp_path / "known.json")
    baseline.write(link, [KNOWN])
    assert link.is_symlink()
    assert baseline.read(tmp_path / "known.json")


def test_a_file_is_named_from_the_folder_of_the_baseline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    baseline.write(Path("known.json"), [KNOWN])
    assert json.loads(Path("known.json").read_text())["known"][0]["target"] == "kernels/kcheck_x.py::x"
    (tmp_path / "kernels").mkdir()
    monkeypatch.chdir(tmp_path / "kernels")
    known = baseline.read(Path("../known.json"))
    assert [one.target for one in known] == ["kcheck_x.py::x"]
    assert baseline.entries_of(known, "./kcheck_x.py::x") == known
    assert baseline.entries_of(known, "kcheck_x.py::y") == ()


def change(key: str, value: Any) -> Callable[[Any], None]:
    return lambda data: data["known"][0].__setitem__(key, value)


@pytest.mark.parametrize(
    ("edit", "where", "says"),
    [
        (lambda data: data.update(schema="kcheck.baseline/9"), "schema", "this kcheck reads"),
        (lambda data: data.pop("known"), "document", "has no 'known'"),
        (change("issue", ""), "known[0].issue", "names the issue"),
        (change("issue", "see Slack"), "known[0].issue", "names the issue"),
        (change("kind", "typo"), "known[0].kind", "expected one of"),
        (change("stict", False), "known[0]", "unknown key 'stict'"),
        (change("case", {}), "known[0].case.schema", "this kcheck reads"),
        (lambda data: data["known"].append(data["known"][0]), "known[1]", "again"),
    ],
)
def test_a_malformed_baseline_is_refused_by_place(
    tmp_path: Path, edit: Callable[[Any], None], where: str, says: str
) -> None:
    path = tmp_path / "known.json"
    baseline.write(path, [KNOWN])
    data = json.loads(path.read_text())
    edit(data)
    path.write_text(json.dumps(data))
    with pytest.raises(InvalidDocument) as caught:
        baseline.read(path)
    assert caught.value.where == f"{path}: {where}"
    assert says in caught.value.problem


def test_a_missing_baseline_is_a_usage_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"known\.json cannot be read: No such file"):
        baseline.read(tmp_path / "known.json")


def test_drafts_have_no_issue(tmp_path: Path) -> None:
    baseline.write(tmp_path / "known.json", [replace(KNOWN, issue="")])
    assert baseline.read(tmp_path / "known.json", drafts=True)[0].issue == ""


class TestUpdated:
    def test_what_is_reviewed_stays_as_it_is(self) -> None:
        again = replace(KNOWN, issue="", message="otherwise", case=case_of(9))
        assert baseline.updated([KNOWN], [again]) == [KNOWN]

    def test_what_is_new_has_no_issue(self) -> None:
        new = replace(KNOWN, issue="", fingerprint="f" * 12)
        assert baseline.updated([KNOWN], [new]) == [KNOWN, new]

    def test_what_is_gone_is_left_out(self) -> None:
        assert baseline.updated([KNOWN], [], [KNOWN.fingerprint]) == []

    def test_what_was_not_run_is_kept(self) -> None:
        assert baseline.updated([KNOWN], []) == [KNOWN]

    def test_a_known_finding_met_in_another_case_takes_that_case(self) -> None:
        moved = replace(KNOWN, case=case_of(9), message="otherwise")
        assert baseline.updated([KNOWN], [moved]) == [replace(KNOWN, case=case_of(9))]

    def test_what_became_graver_is_reviewed_again(self) -> None:
        mild = replace(KNOWN, severity=Severity.WARNING)
        assert baseline.updated([mild], [KNOWN]) == [replace(KNOWN, issue="")]


def test_an_entry_for_a_finding() -> None:
    finding = Finding(Kind.NONDETERMINISM, "it differs", kernel="k", argument="x", source="tl.store(…)")
    found = Discovery("x", "kcheck_x.py::x", finding, "a" * 12, CASE, culprit="x", tool="racecheck")
    entry = baseline.known_of(found, "cuda")
    assert (entry.issue, entry.target, entry.found_by, entry.kind) == (
        "",
        "kcheck_x.py::x",
        "racecheck",
        "nondeterminism",
    )
    assert not entry.strict  # a case may well not show it once
    assert baseline.known_of(replace(found, tool=""), "cuda").found_by == "cuda"


@pytest.mark.parametrize(
    ("case", "least", "held"),
    [
        (case_of(4, after=3), CASE, True),
        (case_of(64, after=3), CASE, True),
        (case_of(3, after=3), CASE, False),
        (case_of(4), CASE, False),
        (case_of(4, after=3), case_of(4), True),
        (case_of(0), case_of(0), True),
        (case_of(4), case_of(0), False),
        (case_of(n=4), case_of(n=2), True),
        (case_of(n=1), case_of(n=2), False),
        (case_of(flag=True), case_of(flag=False), False),
        (case_of(n=1), case_of(n=True), False),
        (case_of(scale=0.5), case_of(scale=2.0), True),
        (case_of(scale=None), case_of(scale=2.0), False),
        (case_of(d=DTypeValue("float16")), case_of(d=DTypeValue("float32")), False),
        (case_of(sizes=[4, 5]), case_of(sizes=[4, 4]), True),
        (case_of(sizes=[4]), case_of(sizes=[4, 4]), False),
        (Case(x=Tensor("float16", Layout((Dim(4), Dim(8, after=3))))), CASE, False),
        (Case(x=Tensor("float32", Layout((Dim(4),)))), CASE, False),
        (Case(x=None), CASE, False),
        (Case(y=None), CASE, False),
    ],
)
def test_a_case_holds_another_one(case: Case, least: Case, held: bool) -> None:
    assert holds(case, least) is held
