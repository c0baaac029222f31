"""Reports of shards, joined: what may be joined, what is missing, and what is said."""

from __future__ import annotations

import itertools
from dataclasses import replace
from pathlib import Path

import pytest

from kcheck.baseline import known_of
from kcheck.errors import CouldNotCheck, InvalidDocument, KcheckError, UsageError
from kcheck.events import CaseVerdict, TargetResult
from kcheck.merge import Part, join_reports, read_parts, with_known
from kcheck.reports.json_reader import read_report
from kcheck.reports.record import RunRecord

from .conftest import Write, discovery, part, record


def parts_of(*records: RunRecord) -> list[Part]:
    return [Part(f"{number}.json", one) for number, one in enumerate(records)]


def joined(*records: RunRecord) -> RunRecord:
    return join_reports(parts_of(*records))


def test_all_shards_make_the_run_in_whatever_order() -> None:
    shards = [record(part(4), 1, 3), record(part(5, found=[discovery()]), 2, 3), record(part(6), 3, 3)]
    whole = joined(*shards)
    assert (whole.shard, whole.joined, whole.interrupted) == (None, (), False)
    assert whole.seconds == 9.0
    assert whole.results[0].cases == {CaseVerdict.MATCH: 15}
    for order in itertools.permutations(shards):
        assert joined(*order) == whole


@pytest.mark.parametrize("missing", [1, 2, 3])
def test_a_missing_shard_is_named_and_is_no_pass(missing: int) -> None:
    there = [record(part(), index, 3) for index in (1, 2, 3) if index != missing]
    (result,) = joined(*there).results
    assert result.verdict is CaseVerdict.COULD_NOT_CHECK
    assert result.reasons == (f"shard {missing} of 3 is missing: add its report",)


def test_of_many_missing_shards_some_are_named() -> None:
    (result,) = joined(record(part(), 3, 20)).results
    reason = "shards 1, 2, 4, 5, 6, 7, 8, 9 and 11 more of 20 are missing: add their reports"
    assert result.reasons == (reason,)


def test_what_is_missing_can_be_added_later(write: Write) -> None:
    shards = [record(part(index), index, 4) for index in (1, 2, 3, 4)]
    path = write(joined(shards[1], shards[3]), "some.json")
    some = read_report(path)
    assert some.joined == (2, 4)
    assert joined(some, shards[0], shards[2]) == joined(*shards)


def test_findings_stand_beside_a_missing_shard() -> None:
    (result,) = joined(record(part(found=[discovery()]), 1, 2)).results
    assert result.verdict is CaseVerdict.FINDINGS
    assert "shard 2 of 2 is missing" in result.reasons[0]


def test_a_shard_that_is_there_twice_is_named() -> None:
    one = record(part(), 2, 3)
    with pytest.raises(CouldNotCheck, match=r"shard 2 is in 0\.json and in 2\.json; leave one of the two out"):
        joined(one, record(part(), 1, 3), one)


def test_a_whole_run_alone_is_told_again() -> None:
    whole = record(part(), shard=None)
    assert joined(whole) == whole
    with pytest.raises(UsageError, match=r"1\.json is of a whole run"):
        joined(record(part(), 1, 2), whole)


def test_a_target_that_a_shard_did_not_reach_is_a_reason() -> None:
    (result,) = joined(record(part(), 1, 2), record(None, 2, 2, interrupted=True)).results
    assert result.reasons == ("shard 2 of 2 stopped before this target had its turn",)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"seed": 8}, "its seed is 8, not 7"),
        ({"targets": ("u",), "results": ()}, "its targets are u, not t"),
        ({"backend": "cuda"}, "its backend is cuda, not interpret"),
        ({"of": 3}, "its number of shards is 3, not 2"),
        ({"identity": {"targets": "kcheck_t.py::t", "pins": "n=4", "source": "ab" * 8}}, "its pins: n=4, not none"),
        ({"identity": {"targets": "kcheck_t.py::t", "pins": "none", "source": "cd" * 8}}, "its source: cd.*, not ab"),
    ],
)
def test_another_run_is_refused(changes: dict[str, object], says: str) -> None:
    with pytest.raises(UsageError, match=says):
        joined(record(part(), 1, 2), record(part(), **{"index": 2, "of": 2} | changes))  # type: ignore[arg-type]


def test_shards_that_do_not_say_of_which_run_they_are_are_refused() -> None:
    with pytest.raises(UsageError, match=r"0\.json does not say of which run it is: .*; run all shards again"):
        joined(record(part(), 1, 2, identity={}), record(part(), 2, 2, identity={}))


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"cases": {CaseVerdict.FINDINGS: 21}}, r"targets\[0\]\.findings: is empty, though 21 cases have findings"),
        ({"verdict": CaseVerdict.FINDINGS}, r"targets\[0\]\.verdict: is findings, with 0 findings"),
        ({"discoveries": (discovery(),)}, r"targets\[0\]\.verdict: is match, with 1 findings"),
        ({"reasons": ("no case ran",)}, r"targets\[0\]\.verdict: is match, with 0 findings and 1 reasons"),
    ],
)
def test_a_report_that_contradicts_itself_is_refused(write: Write, changes: dict[str, object], says: str) -> None:
    path = write(record(replace(part(), **changes)))  # type: ignore[arg-type]
    with pytest.raises(InvalidDocument, match=says):
        read_parts([path])


def test_a_shard_that_was_killed_in_a_shrink_is_joined(write: Write) -> None:
    cases = {CaseVerdict.FINDINGS: 3}
    cut = TargetResult("t", CaseVerdict.COULD_NOT_CHECK, ("the run stopped before this target was done",), cases=cases)
    paths = [write(record(part(), 1, 3)), write(record(cut, 2, 3, interrupted=True))]
    some = write(join_reports(read_parts(paths)), "some.json")
    (result,) = join_reports(read_parts([some, write(record(part(), 3, 3))])).results
    assert (result.verdict, result.reasons) == (CaseVerdict.COULD_NOT_CHECK, cut.reasons)


def test_another_version_of_kcheck_is_refused(write: Write) -> None:
    path = write(record(part(), versions={"kcheck": "99.0"}))
    with pytest.raises(UsageError, match=r"was written by kcheck 99\.0, this is kcheck "):
        read_parts([path])


def test_versions_of_several_machines_are_all_told() -> None:
    here = record(part(), 1, 2)
    there = record(part(), 2, 2, versions={**here.versions, "torch": "2.1", "numpy": "2.4"})
    assert joined(here, there).versions == {**here.versions, "torch": "2.0 and 2.1", "numpy": "none and 2.4"}


def test_a_baseline_marks_what_it_lists() -> None:
    found = discovery()
    entry = known_of(discovery(known="https://example.org/1"), "interpret")
    ((result),) = with_known(joined(record(part(found=[found]), shard=None)), [entry]).results
    assert result.discoveries[0].known == "https://example.org/1"
    ((result),) = with_known(joined(record(part(found=[found]), shard=None, backend="cuda")), [entry]).results
    assert result.discoveries[0].known == ""


@pytest.mark.parametrize(("index", "of"), [(0, 2), (3, 2), (1, 10**9)])
def test_a_shard_that_cannot_be_is_refused(write: Write, index: int, of: int) -> None:
    path = write(record(part(), index, of))
    with pytest.raises(InvalidDocument, match=rf"{path}: shard: is {index}/{of}; expected"):
        read_parts([path])


def test_a_folder_and_a_missing_file_are_one_sentence(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "none.json"):
        with pytest.raises(KcheckError, match=r"the report .* cannot be read: "):
            read_parts([path])
