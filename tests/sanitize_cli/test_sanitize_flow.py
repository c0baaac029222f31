"""From launches to verdicts, findings and exit codes, with a script in the place of compute-sanitizer."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click
import pytest
from hypothesis import strategies as st

from kcheck.baseline import Known, known_of
from kcheck.case import Backing, Case, View
from kcheck.cli import sanitize as cli
from kcheck.events import BugFound, CaseDone, CaseVerdict, Event, RunDone, RunStarted, TargetDone, TargetResult
from kcheck.findings import Kind
from kcheck.layout import Layout
from kcheck.sanitizer.campaign import SanitizerCampaign, Subject
from kcheck.sanitizer.launch import Setup
from kcheck.sanitizer.locate import locate
from kcheck.sanitizer.tool import Tool
from kcheck.store import Store
from kcheck.target import Target

SCRIPT = Path(__file__).with_name("fake_compute_sanitizer.py")
V = CaseVerdict


class Fake:
    """The script as an installed tool.

    Args:
        folder: Where to put it.
        patch: Sets what it does.
    """

    def __init__(self, folder: Path, patch: pytest.MonkeyPatch) -> None:
        self._patch, self._log = patch, folder / "calls"
        program = folder / "compute-sanitizer"
        program.write_text(f"#!{sys.executable}\nimport runpy\nrunpy.run_path({str(SCRIPT)!r}, run_name='__main__')\n")
        program.chmod(0o755)
        patch.setenv("PATH", f"{folder}:/usr/bin:/bin")
        patch.setenv("FAKE_CALLS", str(self._log))

    def behave(self, **what: Any) -> None:
        """Choose what it does: see the script."""
        self._patch.setenv("FAKE", json.dumps(what))

    @property
    def calls(self) -> list[list[str]]:
        """The options of every start."""
        return [json.loads(line) for line in self._log.read_text().splitlines()]


@pytest.fixture
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Fake:
    folder = tmp_path / "bin"
    folder.mkdir()
    return Fake(folder, monkeypatch)


def kernel_target(*kernels: str) -> Target:
    return Target(lambda n: None, st.nothing(), None, kernels, {}, name="gather")


TARGET = kernel_target("kernel")


def numbered(count: int) -> list[Case]:
    return [Case.of({"n": n}, {}) for n in range(count)]


@dataclass(frozen=True)
class Ran:
    """A campaign that is over."""

    events: list[Event]
    store: Store

    @property
    def result(self) -> TargetResult:
        return next(event.result for event in self.events if isinstance(event, TargetDone))


def run(
    tmp_path: Path,
    cases: Sequence[Case],
    *,
    target: Target = TARGET,
    tools: Sequence[Tool] = (Tool.MEMCHECK,),
    case_timeout: float = 60.0,
    max_time: float = 600.0,
    leaks: bool = False,
    known: Sequence[Known] = (),
) -> Ran:
    store = Store(tmp_path / "store").open()
    folder = store.root / "sanitize"
    folder.mkdir(exist_ok=True)
    setup = Setup(locate(), folder, store.log, "interpret", case_timeout, leaks)
    subject = Subject(target, "gather.py", tuple(cases), known=tuple(known))
    campaign = SanitizerCampaign([subject], tools, setup, store, max_time=max_time)
    return Ran(list(campaign.run()), store)


def test_targets_of_one_name_are_told_apart(fake: Fake, tmp_path: Path) -> None:
    """Every event has the name that `--allow-skip` and the reports go by."""
    fake.behave()
    store = Store(tmp_path / "store").open()
    folder = store.root / "sanitize"
    folder.mkdir(exist_ok=True)
    setup = Setup(locate(), folder, store.log, "interpret", 60.0)
    titles = ("a.py::gather", "b.py::gather")
    subjects = [Subject(TARGET, title, tuple(numbered(1)), title=title) for title in titles]
    events = list(SanitizerCampaign(subjects, [Tool.MEMCHECK], setup, store).run())
    assert next(event.targets for event in events if isinstance(event, RunStarted)) == titles
    assert tuple(event.result.name for event in events if isinstance(event, TargetDone)) == titles
    assert {event.target for event in events if isinstance(event, CaseDone)} == set(titles)


def test_clean_cases_pass_in_one_launch(fake: Fake, tmp_path: Path) -> None:
    fake.behave()
    ran = run(tmp_path, numbered(5))
    assert (ran.result.verdict, ran.result.reasons) == (V.MATCH, ())
    assert ran.result.cases == {V.MATCH: 5}
    (call,) = fake.calls
    assert call[call.index("--kernel-name") + 1] == "kernel_substring=kernel"
    assert "--leak-check" not in call


def test_a_fault_that_costs_the_context_is_the_last_cases_and_the_others_go_on(fake: Fake, tmp_path: Path) -> None:
    fake.behave(fixture="memcheck_read_oob", faulty=[2])
    ran = run(tmp_path, numbered(6))
    assert ran.result.cases == {V.MATCH: 5, V.FINDINGS: 1}
    assert len(fake.calls) == 2
    (discovery,) = ran.result.discoveries
    assert discovery.case.args["n"] == 2
    finding = discovery.finding
    assert (finding.kind, finding.file, finding.line) == (Kind.OUT_OF_BOUNDS_READ, "/home/user/project/gather.py", 43)
    assert [event.discovery.case for event in ran.events if isinstance(event, BugFound)] == [discovery.case]
    saved = ran.store.find(discovery.fingerprint)
    assert (saved.tool, saved.case, saved.finding) == ("memcheck", discovery.case, finding)
    assert isinstance(ran.events[-1], RunDone)


@pytest.mark.parametrize(
    ("fixture", "tool", "kind", "line"),
    [
        ("memcheck_read_oob", Tool.MEMCHECK, Kind.OUT_OF_BOUNDS_READ, 43),
        ("memcheck_write_oob", Tool.MEMCHECK, Kind.OUT_OF_BOUNDS_WRITE, 7),
        ("memcheck_atomic_oob", Tool.MEMCHECK, Kind.OUT_OF_BOUNDS_WRITE, 19),
        ("memcheck_api_error", Tool.MEMCHECK, Kind.API_ERROR, 0),
        ("initcheck_uninitialized_read", Tool.INITCHECK, Kind.UNINITIALIZED_READ, 12),
        ("racecheck_shared", Tool.RACECHECK, Kind.SHARED_RACE, 3),
        ("synccheck_divergent", Tool.SYNCCHECK, Kind.BARRIER_DIVERGENCE, 4),
    ],
)
def test_every_recorded_fault_becomes_a_finding_at_its_line(
    fixture: str, tool: Tool, kind: Kind, line: int, fake: Fake, tmp_path: Path
) -> None:
    fake.behave(fixture=fixture, faulty=[1], survives=True)
    ran = run(tmp_path, numbered(4), target=kernel_target(), tools=[tool])
    (discovery,) = ran.result.discoveries
    assert (discovery.finding.kind, discovery.finding.line, discovery.case.args["n"]) == (kind, line, 1)
    assert ran.result.verdict is V.FINDINGS


def test_an_address_is_turned_into_the_argument_and_its_element(fake: Fake, tmp_path: Path) -> None:
    fake.behave(fixture="memcheck_write_oob", faulty=[0], address=0x7F9332802000)
    case = Case.of(
        {"n": 0, "x": View("x", "float32", Layout.contiguous((1000,)))}, {"x": Backing("float32", 1000)}
    )  # the fixture's allocation: 4,000 bytes
    (discovery,) = run(tmp_path, [case]).result.discoveries
    assert discovery.finding.argument == "x"
    assert discovery.finding.cells[0] == 1000
    assert "past the end of x" in discovery.finding.message


def test_where_the_process_goes_on_the_first_faulty_case_is_found_by_halving(fake: Fake, tmp_path: Path) -> None:
    fake.behave(fixture="initcheck_uninitialized_read", faulty=[5, 6, 7], survives=True)
    ran = run(tmp_path, numbered(8), target=kernel_target(), tools=[Tool.INITCHECK])
    (discovery,) = ran.result.discoveries
    assert discovery.case.args["n"] == 5
    assert ran.result.cases == {V.MATCH: 5, V.FINDINGS: 1}
    assert "initcheck: 2 cases ran together with a faulty one and were not told apart" in ran.result.notes
    assert len(fake.calls) == 7  # 0–7, 0–3, 4–7, 4–5, 4, 5; the faults of 6–7 are known, and it is not halved


def test_a_fault_that_only_shows_in_company_is_not_lost(fake: Fake, tmp_path: Path) -> None:
    fake.behave(fixture="initcheck_uninitialized_read", faulty=[1], survives=True, together=True)
    ran = run(tmp_path, numbered(2), target=kernel_target(), tools=[Tool.INITCHECK])
    assert ran.result.verdict is V.COULD_NOT_CHECK
    assert "reported a fault once and not again" in ran.result.reasons[0]


def test_launches_that_only_repeat_a_known_fault_come_to_an_end(fake: Fake, tmp_path: Path) -> None:
    fake.behave(fixture="memcheck_read_oob", faulty=list(range(20)))
    ran = run(tmp_path, numbered(20))
    (discovery,) = ran.result.discoveries
    assert (discovery.seen, discovery.case.args["n"], len(fake.calls)) == (5, 0, 5)
    assert any("15 cases were not run" in note for note in ran.result.notes)


@pytest.mark.parametrize(
    ("drop", "says"),
    [
        ("xml", "wrote no memcheck-1.xml"),
        ("summary", "summary line is missing"),
        ("end", "the worker did not reach its end"),
        ("launch", "kernel did not launch: the result proves nothing about it."),
    ],
)
def test_one_proof_less_is_no_pass(drop: str, says: str, fake: Fake, tmp_path: Path) -> None:
    fake.behave(drop=drop)
    ran = run(tmp_path, numbered(3))
    assert ran.result.verdict is V.COULD_NOT_CHECK
    assert says in " ".join(ran.result.reasons)


def test_a_kernel_named_by_a_string_could_not_be_checked(fake: Fake, tmp_path: Path) -> None:
    fake.behave()
    target = replace(kernel_target("kernel", "cuda_kernel"), named=("cuda_kernel",))
    result = run(tmp_path, numbered(2), target=target).result
    assert result.verdict is V.COULD_NOT_CHECK
    assert [reason.partition(":")[2] for reason in result.reasons] == [
        " cuda_kernel is named by a string: under compute-sanitizer only launches by Triton are seen, so nobody knows "
        "whether it ran."
    ]


def test_a_case_in_which_the_process_dies_spoils_no_other(fake: Fake, tmp_path: Path) -> None:
    fake.behave(dies=[2])
    ran = run(tmp_path, numbered(5))
    assert ran.result.cases == {V.MATCH: 4, V.COULD_NOT_CHECK: 1}
    assert ran.result.verdict is V.COULD_NOT_CHECK
    assert "the worker died in this case" in ran.result.reasons[0]


def test_a_case_that_hangs_is_ended_and_the_others_go_on(fake: Fake, tmp_path: Path) -> None:
    fake.behave(hangs=[1])
    ran = run(tmp_path, numbered(3), case_timeout=1.0)
    assert ran.result.cases == {V.MATCH: 2, V.COULD_NOT_CHECK: 1}
    assert "did not come to its end" in ran.result.reasons[0]


def test_rejected_cases_are_counted_and_all_rejected_is_no_pass(fake: Fake, tmp_path: Path) -> None:
    fake.behave(rejects=[0])
    assert run(tmp_path, numbered(2)).result.cases == {V.MATCH: 1, V.REJECTED: 1}
    result = run(tmp_path, numbered(1)).result
    assert (result.verdict, result.reasons) == (V.COULD_NOT_CHECK, ("every case was rejected: ValueError: n",))


def test_no_time_left_is_said_and_no_case_is_no_pass(fake: Fake, tmp_path: Path) -> None:
    fake.behave()
    result = run(tmp_path, numbered(2), max_time=0.0).result
    assert (result.verdict, result.reasons) == (V.COULD_NOT_CHECK, ("no case ran",))
    assert "memcheck: 2 cases were not run: give it more --max-time" in result.notes


def test_huge_tensors_are_left_out_with_a_note(fake: Fake, tmp_path: Path) -> None:
    fake.behave()
    huge = Case.of({"n": 9, "x": View("x", "int8", Layout.contiguous((1 << 28,)))}, {"x": Backing("int8", 1 << 28)})
    result = run(tmp_path, [*numbered(1), huge]).result
    assert result.verdict is V.MATCH
    assert "1 case with tensors of 256 MiB or more: left out" in result.notes


def test_leaks_are_asked_for_under_memcheck_only(fake: Fake, tmp_path: Path) -> None:
    fake.behave()
    run(tmp_path, numbered(1), tools=[Tool.MEMCHECK, Tool.SYNCCHECK], leaks=True)
    assert ["--leak-check" in call for call in fake.calls] == [True, False]


def test_all_tools_run_over_all_cases(fake: Fake, tmp_path: Path) -> None:
    fake.behave()
    ran = run(tmp_path, numbered(2), tools=list(Tool))
    assert ran.result.cases == {V.MATCH: 8}
    assert [call[call.index("--tool") + 1] for call in fake.calls] == [tool.value for tool in Tool]


def main(*arguments: str) -> int:
    """The command in this process, with memcheck unless the arguments say otherwise."""
    code: int = cli.command.main(["--tool", "memcheck", *arguments], standalone_mode=False)
    return code


@pytest.fixture
def with_gpu(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A machine that has a GPU as far as the command can see; kernels run on the interpreter."""
    monkeypatch.setattr(cli, "check_gpu", lambda: None)
    monkeypatch.setattr(cli, "BACKEND", "interpret")
    monkeypatch.chdir(tmp_path)


@pytest.mark.usefixtures("with_gpu")
def test_the_command_with_a_real_worker_passes_a_correct_target(
    fake: Fake, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    fake.behave(work=True)
    options = ("--no-sweep", "--max-examples", "2", "--seed", "1", "--report", "json=report.json")
    assert main("builtin:paged_gather_contiguous", *options) == 0
    report = json.loads((tmp_path / "report.json").read_text())
    assert report["targets"][0]["launches"]["_paged_gather_kernel"] >= 1
    assert report["versions"]["compute-sanitizer"] == "2025.3.1.0"
    assert "MATCH" in capsys.readouterr().out


@pytest.mark.usefixtures("with_gpu")
def test_the_command_reports_saves_and_replays_a_finding(
    fake: Fake, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    from kcheck.cli.replay import command as replay

    fake.behave(work=True, fixture="memcheck_read_oob")
    options = ("--no-sweep", "--max-examples", "1", "--seed", "1")
    assert main("builtin:paged_gather", *options) == 1
    out = capsys.readouterr().out
    assert "gather.py:43" in out
    (saved,) = (tmp_path / ".kcheck" / "findings").glob("*.json")
    assert f"kcheck replay {saved.stem}" in out
    assert replay.main([saved.stem], standalone_mode=False) == 1
    fake.behave(work=True)
    assert replay.main([saved.stem], standalone_mode=False) == 0
    assert "gone" in capsys.readouterr().out
    assert main("builtin:paged_gather", "--no-sweep", "--max-examples", "0") == 0  # the saved case alone


@pytest.mark.usefixtures("with_gpu")
@pytest.mark.parametrize("drop", ["xml", "summary"])
def test_the_command_exits_with_3_where_a_proof_is_missing(drop: str, fake: Fake) -> None:
    fake.behave(work=True, drop=drop)
    assert main("builtin:paged_gather", "--no-sweep", "--max-examples", "1", "--seed", "1") == 3


@pytest.mark.usefixtures("with_gpu", "fake")
def test_a_tool_that_does_not_exist_is_not_offered() -> None:
    with pytest.raises(click.UsageError, match="leakcheck"):
        main("builtin:paged_gather", "--tool", "leakcheck")


ISSUE = "https://example.org/issues/7"


def known_fault(fake: Fake, tmp_path: Path) -> Known:
    """What a first run finds, with an issue."""
    fake.behave(fixture="memcheck_read_oob", faulty=[2])
    (found,) = run(tmp_path / "before", numbered(6)).result.discoveries
    return replace(known_of(found, "cuda"), issue=ISSUE)


def test_a_known_fault_stays_known(fake: Fake, tmp_path: Path) -> None:
    known = known_fault(fake, tmp_path)
    assert known.found_by == "memcheck"
    result = run(tmp_path, [known.case, *numbered(6)], known=[known]).result
    (found,) = result.discoveries
    assert (found.known, found.fingerprint, found.tool) == (ISSUE, known.fingerprint, "memcheck")
    assert (result.gone, result.reasons) == ((), ())


def test_a_known_fault_that_is_gone_is_told(fake: Fake, tmp_path: Path) -> None:
    known = known_fault(fake, tmp_path)
    fake.behave()
    result = run(tmp_path, [known.case, *numbered(6)], known=[known]).result
    assert [gone.fingerprint for gone in result.gone] == [known.fingerprint]
    assert run(tmp_path, [known.case], known=[replace(known, strict=False)]).result.gone == ()


def test_a_known_fault_whose_case_was_not_checked_is_not_gone(fake: Fake, tmp_path: Path) -> None:
    known = known_fault(fake, tmp_path)
    fake.behave(dies=[2])
    result = run(tmp_path, [known.case, *numbered(2)], known=[known]).result
    assert result.gone == ()
    assert any("its case in the baseline could not be checked" in reason for reason in result.reasons)


def test_a_known_fault_of_another_tool_is_none_of_this_ones_business(fake: Fake, tmp_path: Path) -> None:
    known = replace(known_fault(fake, tmp_path), found_by="initcheck")
    fake.behave()
    result = run(tmp_path, numbered(6), known=[known]).result
    assert (result.verdict, result.gone) == (V.MATCH, ())


def test_no_case_that_holds_a_known_crash_is_launched(fake: Fake, tmp_path: Path) -> None:
    known = replace(known_fault(fake, tmp_path), kind=Kind.CRASH, found_by="cuda")
    fake.behave()
    result = run(tmp_path, numbered(6), known=[known]).result
    assert result.cases == {V.MATCH: 2}
    assert any("4 cases not launched" in note for note in result.notes)
    assert [(found.known, found.seen) for found in result.discoveries] == [(ISSUE, 0)]
