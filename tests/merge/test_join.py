"""Results of the parts of a run, joined."""

from __future__ import annotations

from dataclasses import replace

from kcheck.events import CaseVerdict, Cell, Gone
from kcheck.evidence import Compiled
from kcheck.findings import Finding, Kind, Severity
from kcheck.join import join_results
from kcheck.layout import LayoutKind

from .conftest import discovery, grave, narrowed, part


def test_counts_seconds_launches_and_matrix_are_joined() -> None:
    narrow, step = LayoutKind.NARROWED, LayoutKind.STEPPED
    one = part(10, launches=3, matrix={"x": {narrow: Cell.MATCH, step: Cell.REJECTED}}, swept=(4, 6))
    two = part(5, launches=2, matrix={"x": {narrow: Cell.FINDING}, "y": {step: Cell.NOT_TRIED}}, swept=(6, 6))
    joined = join_results([one, two])
    assert joined.cases == {CaseVerdict.MATCH: 15}
    assert joined.seconds == 4.0
    assert joined.launches == {"k": 5}
    assert joined.matrix == {
        "x": {narrow: Cell.FINDING, step: Cell.REJECTED},
        "y": {step: Cell.NOT_TRIED},
    }
    assert joined.verdict is CaseVerdict.MATCH
    assert joined.notes == ("the sweep ran 10 of 12 cases; give it more --max-time",)


def test_a_bug_of_two_shards_is_one_in_its_simpler_case() -> None:
    one = part(found=[discovery(rows=8, seen=3)])
    two = part(found=[discovery(rows=2, seen=4, layout_kinds=(LayoutKind.STEPPED,))])
    (found,) = join_results([one, two]).discoveries
    assert found.case == narrowed(2)
    assert found.seen == 7
    assert found.layout_kinds == (LayoutKind.NARROWED, LayoutKind.STEPPED)


def test_the_graver_form_is_kept_whatever_its_case() -> None:
    one = part(found=[discovery(rows=2, finding=grave(Severity.WARNING))])
    two = part(found=[discovery(rows=8, finding=grave(Severity.ERROR))])
    (found,) = join_results([one, two]).discoveries
    assert found.finding.severity is Severity.ERROR
    assert found.case == narrowed(8)


def test_a_case_that_was_shrunk_to_its_end_is_kept() -> None:
    one = part(found=[discovery(rows=8)])
    two = part(found=[discovery(rows=4, minimal=False)])
    (found,) = join_results([one, two]).discoveries
    assert found.minimal
    assert found.case == narrowed(8)


def test_a_symptom_of_one_shard_is_told_with_its_cause_from_another() -> None:
    wrong = Finding(Kind.VALUE_MISMATCH, "wrong", argument="out")
    one = part(found=[discovery(finding=wrong, fingerprint=wrong.fingerprint("t"))])
    two = part(found=[discovery()])
    (found,) = join_results([one, two]).discoveries
    assert found.fingerprint == "a" * 12
    assert found.related == (wrong,)


def test_a_kernel_that_one_shard_launched_is_launched() -> None:
    idle = part(launches=0)
    assert "kernel k never launched" in idle.reasons[0]
    assert not join_results([idle, part(launches=1)]).reasons
    assert "kernel k never launched" in join_results([idle, idle]).reasons[0]


def test_an_oracle_is_weak_only_if_all_shards_saw_one_value() -> None:
    weak = part(4, varied=0, constants={"0.0": 4})
    assert not weak.reasons  # four cases may be chance
    assert "0.0 in all 8 cases" in join_results([weak, weak]).reasons[0]
    assert not join_results([weak, part(4, varied=0, constants={"1.0": 4})]).reasons
    assert not join_results([weak, part(1, varied=1)]).reasons


def test_a_layout_that_one_shard_accepted_is_accepted() -> None:
    declined = part(declined={"x": "x must be contiguous"})
    assert "no layout of x but contiguous ones" in declined.reasons[0]
    assert not join_results([declined, part(accepted=("x",))]).reasons


def test_a_match_under_narrowed_does_not_contradict_it() -> None:
    """A row, cut from a longer one, is narrowed and contiguous."""
    row = {LayoutKind.OFFSET: Cell.MATCH, LayoutKind.NARROWED: Cell.MATCH, LayoutKind.STEPPED: Cell.REJECTED}
    declined = part(declined={"x": "no"}, matrix={"x": row})
    (note,) = join_results([declined]).notes
    assert note == "x was accepted as narrowed only at sizes at which such a view is contiguous all the same"
    assert not join_results([part(declined={"x": "no"}, matrix={"x": {LayoutKind.OFFSET: Cell.MATCH}})]).notes
    assert not join_results([part(accepted=("x",), matrix={"x": row})]).notes


def test_a_shard_without_a_case_is_no_gap() -> None:
    empty = part(0, launches=0)
    assert empty.reasons == ("no case ran",)
    assert not join_results([empty, part()]).reasons


def test_rejections_are_judged_over_all_shards() -> None:
    declined = replace(part(0, launches=0, rejections={"no": 3}), cases={CaseVerdict.REJECTED: 3})
    assert "every case was rejected: no (6 cases)" in join_results([declined, declined]).reasons[0]
    assert not join_results([declined, part()]).reasons


def test_unchecked_cases_are_added_by_reason() -> None:
    one = replace(part(unchecked={"out of memory": 2}), cases={CaseVerdict.COULD_NOT_CHECK: 2, CaseVerdict.MATCH: 1})
    assert join_results([one, one]).reasons == ("out of memory (4 cases)",)


def test_what_another_shard_still_sees_is_not_gone() -> None:
    gone = Gone("a" * 12, "https://example.org/1", "gone")
    one = replace(part(), gone=(gone,))
    assert join_results([one, part()]).gone == (gone,)
    assert join_results([one, part(found=[discovery(known=gone.issue)])]).gone == ()


def test_a_baseline_case_is_tried_if_one_shard_tried_it() -> None:
    late = part(settled={"a" * 12: "no time for its case"})
    assert join_results([late, late]).reasons == ("no time for its case",)
    assert not join_results([late, part()]).reasons


def test_a_part_that_came_to_no_end_is_a_reason() -> None:
    cut = replace(part(), evidence=None, verdict=CaseVerdict.COULD_NOT_CHECK, reasons=("the run stopped",))
    joined = join_results([part(), cut])
    assert joined.verdict is CaseVerdict.COULD_NOT_CHECK
    assert joined.reasons == ("the run stopped",)


def test_allowed_is_what_all_unchecked_parts_are() -> None:
    skipped = replace(part(launches=0), allowed=True)
    assert join_results([skipped, part(launches=0)]).allowed is False
    assert join_results([skipped, skipped]).allowed is True
    assert join_results([skipped, part()]).allowed is False  # nothing is left to be skipped


def test_compiles_are_added() -> None:
    one = part(compiles={"k": Compiled(2, 0, 1.0, {"stride": 2})})
    two = part(compiles={"k": Compiled(1, 3, 0.5, {"stride": 1})})
    assert join_results([one, two]).notes == (
        "kernel k has 6 specialisations in 2 parts of the run: 3 compiled, 3 from the disk cache, 1.5 s in all; "
        "made anew for stride",
    )


def test_joining_in_groups_gives_the_same() -> None:
    parts = [
        part(3, found=[discovery(rows=8)], rejections={"b": 1}),
        part(0, launches=0, declined={"x": "no"}),
        part(5, found=[discovery(rows=4)], swept=(1, 2)),
        part(7, accepted=("x",), rejections={"a": 1}),
    ]
    whole = join_results(parts)
    assert join_results([join_results(parts[:2]), join_results(parts[2:])]) == whole
    assert join_results([join_results(parts[:3]), parts[3]]) == whole
