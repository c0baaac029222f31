"""A pass needs every proof; anything less is could-not-check with a sentence."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from kcheck.events import CaseVerdict
from kcheck.sanitizer.outcome import Run, judge_run
from kcheck.sanitizer.tool import Tool

FIXTURES = Path(__file__).parent / "fixtures"


def run_of(name: str, *, exit_code: int | None = 86) -> Run:
    tool = Tool(name.split("_")[0]) if name.split("_")[0] in list(Tool) else Tool.MEMCHECK
    return Run(tool, FIXTURES / f"{name}.xml", FIXTURES / f"{name}.log", exit_code, ended=True, launches={"k": 1})


CLEAN = run_of("clean", exit_code=0)


def test_a_pass_has_all_its_proofs() -> None:
    outcome = judge_run(replace(CLEAN, kernels=("k",)))
    assert (outcome.verdict, outcome.reasons, outcome.total) == (CaseVerdict.MATCH, (), 0)


@pytest.mark.parametrize(
    ("run", "says"),
    [
        (replace(CLEAN, ended=False), "the worker did not reach its end."),
        (replace(CLEAN, kernels=("k", "gather")), "gather did not launch: the result proves nothing about it."),
        (replace(CLEAN, launches={}), "no kernel launched: the result proves nothing."),
        (replace(CLEAN, exit_code=86), "compute-sanitizer exits with 86, which means errors, but lists none."),
        (
            replace(CLEAN, exit_code=1),
            "compute-sanitizer lists no errors and exits with 1, which fits neither errors nor a clean end.",
        ),
        (replace(CLEAN, exit_code=None), "compute-sanitizer was killed before it came to its end."),
        (replace(CLEAN, xml=Path("/no/such.xml")), "compute-sanitizer wrote no such.xml."),
        (
            replace(CLEAN, log=Path("/no/such.log")),
            "compute-sanitizer's summary line is missing: it did not come to its end.",
        ),
        (replace(CLEAN, log=FIXTURES / "memcheck_api_error.log"), "compute-sanitizer counts 1 errors and lists 0."),
    ],
)
def test_one_proof_less_is_no_pass(run: Run, says: str) -> None:
    outcome = judge_run(run)
    assert outcome.verdict is CaseVerdict.COULD_NOT_CHECK
    assert outcome.findings == ()
    assert says in outcome.reasons


def test_a_program_that_never_touches_cuda_proves_nothing() -> None:
    outcome = judge_run(run_of("no_cuda", exit_code=255))
    assert outcome.verdict is CaseVerdict.COULD_NOT_CHECK
    assert outcome.reasons == (
        "the worker made no CUDA call, as on a machine without a CUDA GPU, so compute-sanitizer checked nothing.",
    )


@pytest.mark.parametrize("path", sorted(FIXTURES.glob("*_*.xml")), ids=lambda path: path.stem)
def test_every_fault_is_a_finding_without_complaint(path: Path) -> None:
    outcome = judge_run(replace(run_of(path.stem), ended=False))
    assert outcome.verdict is CaseVerdict.FINDINGS
    assert len(outcome.findings) == 1
    assert outcome.reasons == ()


def test_findings_of_a_report_that_ends_early_are_kept_and_the_damage_is_told(tmp_path: Path) -> None:
    data = (FIXTURES / "memcheck_read_oob.xml").read_bytes()
    xml = tmp_path / "report.xml"
    xml.write_bytes(data[: len(data) // 2])
    run = replace(run_of("memcheck_read_oob"), xml=xml, log=tmp_path / "none.log", exit_code=None)
    outcome = judge_run(run)
    assert (outcome.verdict, outcome.findings[0].line) == (CaseVerdict.FINDINGS, 43)
    assert "ends early" in outcome.reasons[0]
    assert "summary line is missing" in outcome.reasons[1]


def test_findings_with_an_exit_code_that_does_not_fit(tmp_path: Path) -> None:
    outcome = judge_run(replace(run_of("memcheck_read_oob"), exit_code=0))
    assert outcome.verdict is CaseVerdict.FINDINGS
    assert outcome.reasons == (
        "compute-sanitizer lists 3 errors and exits with 0, which fits neither errors nor a clean end.",
    )


def test_races_that_are_only_warnings_may_exit_with_0(tmp_path: Path) -> None:
    xml, log = tmp_path / "r.xml", tmp_path / "r.log"
    xml.write_text((FIXTURES / "racecheck_shared.xml").read_text().replace("<level>Error", "<level>Warning"))
    log.write_text("========= RACECHECK SUMMARY: 1 hazard displayed (0 errors, 1 warning)\n")
    run = replace(run_of("racecheck_shared"), xml=xml, log=log, exit_code=0)
    assert judge_run(run).reasons == ()
    assert judge_run(replace(run, exit_code=86)).reasons == ()


def test_harmful_xml_is_could_not_check(tmp_path: Path) -> None:
    xml = tmp_path / "report.xml"
    xml.write_text("<!DOCTYPE a []><ComputeSanitizerOutput/>")
    outcome = judge_run(replace(CLEAN, xml=xml))
    assert outcome.verdict is CaseVerdict.COULD_NOT_CHECK
    assert "document type" in outcome.reasons[0]


def test_a_kind_that_kcheck_does_not_know_is_could_not_check(tmp_path: Path) -> None:
    xml, log = tmp_path / "report.xml", tmp_path / "run.log"
    xml.write_text("<ComputeSanitizerOutput><record><kind>Novel</kind></record></ComputeSanitizerOutput>")
    log.write_text("========= ERROR SUMMARY: 1 error\n")
    outcome = judge_run(replace(CLEAN, xml=xml, log=log, exit_code=86))
    assert outcome.verdict is CaseVerdict.COULD_NOT_CHECK
    assert outcome.reasons == ("compute-sanitizer reports kinds that kcheck does not know: Novel.",)


def test_initcheck_errors_of_other_kernels_hide_the_targets_only_where_the_list_is_cut(tmp_path: Path) -> None:
    log = tmp_path / "run.log"
    shutil.copy(FIXTURES / "initcheck_uninitialized_read.log", log)
    run = replace(run_of("initcheck_uninitialized_read"), log=log, kernels=("gather",), launches={"gather": 1})
    cut = judge_run(run)
    assert cut.verdict is CaseVerdict.COULD_NOT_CHECK
    assert cut.reasons == ("compute-sanitizer counts 1,000 errors and lists 4, 4 of them in other kernels.",)
    log.write_text("========= ERROR SUMMARY: 4 errors\n")
    assert judge_run(run).verdict is CaseVerdict.MATCH
