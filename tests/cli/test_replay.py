"""What kcheck replay says of a case that shows several things."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from kcheck.case import Case
from kcheck.cli.display import DisplayOptions
from kcheck.cli.replay import tell
from kcheck.events import CaseVerdict
from kcheck.findings import Finding, Kind
from kcheck.protocol import Judgement
from kcheck.saved_case import SavedCase
from kcheck.store import Store

SPEC = "t.py::t"


@pytest.mark.parametrize("tool", ["", "viewcheck"])
def test_each_command_that_is_printed_finds_its_case(
    tool: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = Store(tmp_path).open(own_process=False)
    found = tuple(Finding(Kind.RACE, f"race at {line}", kernel="k", source=f"line {line}") for line in range(3))
    first = found[0].fingerprint("t")
    saved = SavedCase(SPEC, Case(x=1), found[0], first, tool)
    judgement = Judgement(CaseVerdict.FINDINGS, findings=found)
    assert tell(saved, "t", SPEC, judgement, store, DisplayOptions(None, 200)) == 1
    printed = re.findall(r"kcheck replay (\S+) --target (\S+)", capsys.readouterr().out)
    assert len(printed) == 3
    for finding, (name, spec) in zip(found, printed, strict=True):
        assert store.find(name, spec) == SavedCase(SPEC, Case(x=1), finding, finding.fingerprint("t"), tool)


def test_a_case_that_is_saved_stays_where_another_one_shows_the_same_besides(tmp_path: Path) -> None:
    store = Store(tmp_path).open(own_process=False)
    found = tuple(Finding(Kind.RACE, f"race at {line}", kernel="k", source=f"line {line}") for line in range(2))
    for number, finding in enumerate(found):
        saved = SavedCase(SPEC, Case(x=number), finding, finding.fingerprint("t"))
        tell(saved, "t", SPEC, Judgement(CaseVerdict.FINDINGS, findings=(finding,)), store, DisplayOptions(None, 80))
    tell(saved, "t", SPEC, Judgement(CaseVerdict.FINDINGS, findings=found), store, DisplayOptions(None, 80))
    assert store.find(found[0].fingerprint("t")).case == Case(x=0)


@pytest.mark.parametrize("finding", [None, Finding(Kind.RACE, "race")])
def test_what_was_no_finding_is_not_gone(finding: Finding | None, capsys: pytest.CaptureFixture[str]) -> None:
    saved = SavedCase(SPEC, Case(x=1), finding)
    store, look = Store(Path()), DisplayOptions(None, 80)
    assert tell(saved, "norm", SPEC, Judgement(CaseVerdict.MATCH), store, look) == 0
    assert tell(saved, "norm", SPEC, Judgement(CaseVerdict.REJECTED, "no"), store, look) == 0
    told = capsys.readouterr().out.splitlines()
    if finding is None:
        assert told == ["norm passes the case", "norm rejects the case: no"]
    else:
        assert told == ["gone: norm passes the case", "gone: norm now rejects the case: no"]
