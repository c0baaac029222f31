"""Workers that die, hang, talk or are killed; each with a real zygote."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from kcheck.case import Case, Role, Tensor
from kcheck.client import Client
from kcheck.errors import WorkerError
from kcheck.events import CaseVerdict
from kcheck.findings import Kind
from kcheck.layout import Layout
from kcheck.machine import worker_environment

TARGETS = """
    import ctypes, os, time
    import torch
    from hypothesis import strategies as st
    import kcheck

    def oracle(out, mode, mark):
        if mode == "oracle hangs":
            while True:
                pass
        if mode == "oracle crashes":
            ctypes.string_at(0)
        if mode == "oracle exits":
            raise SystemExit(3)
        return torch.ones(4)

    @kcheck.target(cases=st.nothing(), oracle=oracle, outputs=["out"])
    def moody(out, mode, mark):
        out.fill_(1)
        if mode == "crash":
            ctypes.string_at(0)
        if mode == "crash once" and not os.path.exists(mark):
            open(mark, "w").close()
            ctypes.string_at(0)
        if mode == "exit":
            os._exit(7)
        if mode == "raises SystemExit":
            raise SystemExit(0)
        if mode == "raises KeyboardInterrupt":
            raise KeyboardInterrupt
        if mode == "hang":
            while True:
                pass
        if mode == "sleep":
            time.sleep(1.0)
        if mode == "talk":
            print('{"verdict": "match"}', flush=True)
            os.write(1, b"x" * 100_000)
            os.write(2, b"not json")
        if mode == "close":
            os.closerange(1, 3)
        if mode == "killed" and not os.path.exists(mark):
            open(mark, "w").close()
            os.kill(os.getpid(), 9)
        if mode == "killed always":
            os.kill(os.getpid(), 9)
"""

BUSY = "import torch\ntorch.cuda.is_initialized = lambda: True\n"


@pytest.fixture
def spec(tmp_path: Path) -> str:
    path = tmp_path / "kcheck_moody.py"
    path.write_text(textwrap.dedent(TARGETS))
    return f"{path}::moody"


@pytest.fixture
def moody(client: Client, spec: str) -> Iterator[Client]:
    before = client.case_timeout
    client.load(spec)
    yield client
    client.case_timeout, client.on_replaced = before, None


def case(mode: str, mark: Path | str = "") -> Case:
    return Case(out=Tensor("float32", Layout.contiguous((4,)), role=Role.OUTPUT), mode=mode, mark=str(mark))


def is_well(client: Client, spec: str) -> bool:
    return client.judge(spec, case("fine")).verdict is CaseVerdict.MATCH


def test_a_crash_is_a_finding_with_its_line(moody: Client, spec: str) -> None:
    judgement = moody.judge(spec, case("crash"))
    (finding,) = judgement.findings
    assert finding.kind is Kind.CRASH
    assert finding.source == "ctypes.string_at(0)"
    assert "SIGSEGV" in finding.message
    assert is_well(moody, spec)


def test_a_crash_that_does_not_come_again_is_could_not_check(moody: Client, spec: str, tmp_path: Path) -> None:
    judgement = moody.judge(spec, case("crash once", tmp_path / "mark"))
    assert judgement.verdict is CaseVerdict.COULD_NOT_CHECK
    assert "a second worker did not repeat it" in judgement.reason


def test_a_process_that_exits_is_a_crash(moody: Client, spec: str) -> None:
    (finding,) = moody.judge(spec, case("exit")).findings
    assert finding.kind is Kind.CRASH
    assert "exited with code 7" in finding.message


def test_an_endless_loop_is_a_timeout_with_its_line(moody: Client, spec: str) -> None:
    moody.case_timeout = 0.5
    (finding,) = moody.judge(spec, case("hang")).findings
    assert finding.kind is Kind.TIMEOUT
    assert finding.source in ("while True:", "pass")
    moody.case_timeout = 20
    assert is_well(moody, spec)


@pytest.mark.parametrize(
    ("mode", "says"),
    [
        ("oracle hangs", "the oracle did not end within 0.5 s"),
        ("oracle crashes", "the worker process died in the oracle"),
        ("oracle exits", "the oracle raised SystemExit: 3"),
    ],
)
def test_a_fault_of_the_oracle_is_never_the_kernels(moody: Client, spec: str, mode: str, says: str) -> None:
    moody.case_timeout = 0.5 if "hangs" in mode else 20
    judgement = moody.judge(spec, case(mode))
    moody.case_timeout = 20
    assert judgement.verdict is CaseVerdict.COULD_NOT_CHECK
    assert says in judgement.reason
    assert is_well(moody, spec)


@pytest.mark.parametrize("name", ["SystemExit", "KeyboardInterrupt"])
def test_a_target_that_raises_to_end_the_process_is_a_finding_with_its_line(
    moody: Client, spec: str, name: str
) -> None:
    (finding,) = moody.judge(spec, case(f"raises {name}")).findings
    assert finding.kind is Kind.TARGET_ERROR
    assert name in finding.message
    assert finding.file == spec.partition("::")[0]


def test_a_worker_killed_from_outside_is_replaced_and_its_case_tried_again(
    moody: Client, spec: str, tmp_path: Path
) -> None:
    causes: list[str] = []
    moody.on_replaced = lambda cause, seconds: causes.append(cause)
    assert moody.judge(spec, case("killed", tmp_path / "mark")).verdict is CaseVerdict.MATCH
    assert causes == ["it was killed by SIGKILL"]


def test_a_worker_that_is_always_killed_is_could_not_check(moody: Client, spec: str) -> None:
    judgement = moody.judge(spec, case("killed always"))
    assert judgement.verdict is CaseVerdict.COULD_NOT_CHECK
    assert "killed from outside three times" in judgement.reason
    assert is_well(moody, spec)


@pytest.mark.parametrize("mode", ["talk", "close"])
def test_what_user_code_does_to_its_output_does_not_touch_the_protocol(moody: Client, spec: str, mode: str) -> None:
    assert moody.judge(spec, case(mode)).verdict is CaseVerdict.MATCH
    assert is_well(moody, spec)


def test_the_log_of_what_user_code_prints_stays_small(
    moody: Client, spec: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And the line of a crash is found in it all the same."""
    monkeypatch.setattr("kcheck.remains.MOST_LOG_BYTES", 150_000)
    sizes = []
    for _ in range(6):
        assert moody.judge(spec, case("talk")).verdict is CaseVerdict.MATCH
        sizes.append(moody._log.path.stat().st_size)
    assert max(sizes) < 2 * 150_000
    (finding,) = moody.judge(spec, case("crash")).findings
    assert "string_at" in finding.source


def test_an_interrupt_ends_the_case_in_flight(spec: str, tmp_path: Path) -> None:
    with Client("interpret", tmp_path / "log") as client:
        client.load(spec)
        assert is_well(client, spec)
        threading.Timer(0.2, client.interrupt).start()
        began = time.monotonic()
        assert client.judge(spec, case("hang")).verdict is CaseVerdict.COULD_NOT_CHECK
        assert time.monotonic() - began < 10


def test_a_backend_that_does_not_exist_is_one_sentence(tmp_path: Path) -> None:
    with Client("abacus", tmp_path / "log") as client, pytest.raises(WorkerError, match="no backend 'abacus'"):
        client.load("builtin:paged_gather")


def test_a_target_that_the_worker_cannot_load_is_one_sentence(client: Client, tmp_path: Path) -> None:
    with pytest.raises(WorkerError, match=r"gone\.py"):
        client.load(str(tmp_path / "gone.py"))


def test_a_zygote_that_dies_is_one_sentence(tmp_path: Path, spec: str) -> None:
    (tmp_path / "log").write_text("of an earlier run\n")
    with Client("interpret", tmp_path / "log") as client:
        client.load(spec)
        os.kill(client._zygote.pid, signal.SIGKILL)
        with pytest.raises(WorkerError, match="the worker process ended with code -9") as caught:
            client.judge(spec, case("fine"))
    assert "earlier" not in str(caught.value)


def test_nothing_outlives_a_killed_supervisor(tmp_path: Path, spec: str) -> None:
    script = f"""
        import sys, threading
        from pathlib import Path
        from kcheck.case import Case, Role, Tensor
        from kcheck.client import Client
        from kcheck.layout import Layout
        client = Client("interpret", Path({str(tmp_path / "log")!r}))
        client.load({spec!r})
        out = Tensor("float32", Layout.contiguous((4,)), role=Role.OUTPUT)
        client.judge({spec!r}, Case(out=out, mode="fine", mark=""))
        print(client._zygote.pid, client._pid, flush=True)
        client.judge({spec!r}, Case(out=out, mode="hang", mark=""))
    """
    process = subprocess.Popen([sys.executable, "-c", textwrap.dedent(script)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    pids = [int(pid) for pid in process.stdout.readline().split()]
    assert len(pids) == 2
    time.sleep(0.3)
    process.kill()
    process.wait()
    process.stdout.close()
    end = time.monotonic() + 10
    while any(map(_is_alive, pids)) and time.monotonic() < end:
        time.sleep(0.05)
    assert not any(map(_is_alive, pids))


def _is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().split(")")[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_cases_handed_over_are_answered_in_order(moody: Client, spec: str) -> None:
    first, second = case("fine"), case("raises SystemExit")
    moody.begin(spec, first)
    moody.begin(spec, second)
    assert moody.judge(spec, first).verdict is CaseVerdict.MATCH
    assert moody.judge(spec, second).verdict is not CaseVerdict.MATCH
    assert is_well(moody, spec)


def test_a_case_that_waits_behind_a_crash_is_sent_again(moody: Client, spec: str) -> None:
    moody.begin(spec, case("crash"))
    moody.begin(spec, case("fine"))
    assert moody.judge(spec, case("crash")).findings[0].kind is Kind.CRASH
    assert moody.judge(spec, case("fine")).verdict is CaseVerdict.MATCH


def test_the_answer_of_a_case_that_nobody_asks_for_is_not_taken_for_another(moody: Client, spec: str) -> None:
    moody.begin(spec, case("raises SystemExit"))
    moody.begin(spec, case("crash"))
    assert is_well(moody, spec)
    assert is_well(moody, spec)


def test_workers_are_spawned_where_the_import_of_a_target_initialises_cuda(tmp_path: Path) -> None:
    """No fork would have a working CUDA there."""
    source = tmp_path / "kcheck_busy.py"
    source.write_text(textwrap.dedent(TARGETS).replace("import torch\n", BUSY, 1))
    spec = f"{source}::moody"
    with Client("interpret", tmp_path / "log", case_timeout=5.0) as client:
        client.load(spec)
        assert is_well(client, spec)
        assert client.judge(spec, case("crash")).findings[0].kind is Kind.CRASH
        assert is_well(client, spec)


@pytest.mark.parametrize("imports", ["import torch\n", BUSY])
def test_an_import_that_goes_elsewhere_is_there_when_it_runs_and_others_are_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, imports: str
) -> None:
    monkeypatch.chdir(tmp_path)
    source = textwrap.dedent(TARGETS).replace("import torch\n", imports, 1)
    there = tmp_path / "there"
    there.mkdir()
    (tmp_path / "kcheck_here.py").write_text(source)
    (tmp_path / "kcheck_there.py").write_text(f"import os\nos.chdir({str(there)!r})\n{source}")
    with Client("interpret", tmp_path / "log") as client:
        for spec in ("kcheck_there.py::moody", "kcheck_here.py::moody"):
            client.load(spec)
            assert is_well(client, spec)
            client.judge(spec, case("crash once", "mark"))  # leaves a mark in the current directory
    assert (there / "mark").exists()
    assert (tmp_path / "mark").exists()


def test_a_spawned_worker_that_cannot_start_is_one_sentence(tmp_path: Path) -> None:
    source = tmp_path / "kcheck_busy.py"
    mark = tmp_path / "imported"
    once = f"""
    import os, pathlib
    mark = pathlib.Path({str(mark)!r})
    if mark.exists():
        os.kill(os.getpid(), 9)
    mark.touch()
    """
    source.write_text(textwrap.dedent(once) + textwrap.dedent(TARGETS).replace("import torch\n", BUSY, 1))
    spec = f"{source}::moody"
    with Client("interpret", tmp_path / "log") as client:
        client.load(spec)
        with pytest.raises(WorkerError, match="ended with code -9 before it was ready"):
            client.judge(spec, case("fine"))


def test_workers_bring_their_interpreter_whatever_the_tests_of_the_user_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRITON_INTERPRET", "1")
    assert "TRITON_INTERPRET" not in worker_environment()
