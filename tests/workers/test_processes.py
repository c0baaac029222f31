"""Processes that tell, are killed, are stopped; each runs a small module in place of a shard."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kcheck.events import RunStarted
from kcheck.sharded.message import Lost, Message, Told
from kcheck.sharded.processes import Processes

CHILD = """
import os, sys, time
from multiprocessing.connection import Connection
from kcheck.events import RunDone, RunStarted, TargetStarted
from kcheck.sharded.message import Told
parent = Connection(int(sys.argv[1]))
task = parent.recv()
about = {"pid": str(os.getpid()), "task": task, "gpu": os.environ.get("CUDA_VISIBLE_DEVICES", "")}
parent.send(Told((RunStarted(("t",), "interpret", 1, about),)))
if task == "crash":
    print("the last words", flush=True)
    os._exit(7)
if task == "talk":
    print("x" * 20_000, flush=True)
    parent.send(Told((TargetStarted("t"),)))
    parent.recv()
if task == "wait":
    try:
        parent.recv()
    except EOFError:
        os._exit(1)
parent.send(Told((RunDone((), task == "wait", 1.0),)))
"""
Start = Callable[..., Processes]


@pytest.fixture
def start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Start]:
    """Starts a process for each task."""
    (tmp_path / "small_shard.py").write_text(CHILD)
    monkeypatch.syspath_prepend(str(tmp_path))
    with contextlib.ExitStack() as stack:

        def started(*tasks: str, gpus: tuple[str, ...] = ()) -> Processes:
            processes = Processes(gpus, module="small_shard")
            stack.callback(processes.close)
            for number, task in enumerate(tasks):
                processes.start(number, task)
            return processes

        yield started


def heard(processes: Processes, count: int) -> list[tuple[int, Message]]:
    """That many messages, or more."""
    messages: list[tuple[int, Message]] = []
    while len(messages) < count:
        messages += processes.receive()
    return messages


def about(message: Message) -> dict[str, str]:
    assert isinstance(message, Told)
    (event,) = message.events
    assert isinstance(event, RunStarted)
    return dict(event.versions)


def exists(pid: str) -> bool:
    """A process that nobody has waited for counts as gone."""
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False


def test_each_has_its_task_and_its_gpu(start: Start) -> None:
    messages = heard(start("one", "two", "three", gpus=("5", "7")), 6)
    first = {number: about(message) for number, message in reversed(messages) if "pid" in repr(message)}
    assert {number: (of["task"], of["gpu"]) for number, of in first.items()} == {
        0: ("one", "5"),
        1: ("two", "7"),
        2: ("three", "5"),
    }


def test_a_killed_process_is_lost_and_starts_again(start: Start) -> None:
    processes = start("wait")
    ((_, message),) = heard(processes, 1)
    os.kill(int(about(message)["pid"]), signal.SIGKILL)
    assert heard(processes, 1) == [(0, Lost("was killed by SIGKILL"))]
    processes.start(0, "again")
    assert about(heard(processes, 1)[0][1])["task"] == "again"


def test_a_process_that_ends_says_why(start: Start) -> None:
    assert heard(start("crash"), 2)[-1] == (0, Lost("ended with code 7: the last words"))


def test_what_is_printed_without_end_does_not_fill_the_disk(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kcheck.sharded.processes.MOST_LOG_BYTES", 10_000)
    processes = start("talk")
    heard(processes, 2)
    (one,) = processes._running.values()
    assert os.fstat(one.printed.fileno()).st_size < 10_000
    processes.interrupt()
    assert isinstance(heard(processes, 1)[0][1], Told)


def test_one_that_cannot_start_is_lost() -> None:
    processes = Processes(module="there_is_no_such_module")
    processes.start(0, "task")
    ((_, message),) = heard(processes, 1)
    assert isinstance(message, Lost)
    assert "there_is_no_such_module" in message.cause


def test_the_word_to_stop_ends_all_in_order(start: Start) -> None:
    processes = start("wait", "wait")
    heard(processes, 2)
    processes.interrupt()
    for _, message in heard(processes, 2):
        assert isinstance(message, Told)
        assert message.events[-1].interrupted  # type: ignore[union-attr]


def test_closing_leaves_no_process(start: Start) -> None:
    processes = start("wait")
    pid = about(heard(processes, 1)[0][1])["pid"]
    assert exists(pid)
    processes.close()
    assert not exists(pid)


def test_a_process_that_is_left_alone_ends(start: Start) -> None:
    """As when the process that shows the run is killed: the connection has no other side any more."""
    processes = start("wait")
    pid = about(heard(processes, 1)[0][1])["pid"]
    for connection in processes._running:
        connection.close()
    processes._running.clear()
    end = time.monotonic() + 10
    while exists(pid) and time.monotonic() < end:
        time.sleep(0.01)
    assert not exists(pid)
