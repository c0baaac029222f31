"""Two variants of a target on the interpreter: values, launches, exit codes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from kcheck import loader
from kcheck.cli.compare import exit_code
from kcheck.client import Client
from kcheck.engine.choose import boundary_cases, distinct, random_cases, saved_cases
from kcheck.events import Discovery
from kcheck.findings import Finding, Kind
from kcheck.layout import LayoutKind
from kcheck.plan import Plan
from kcheck.protocol import Measurement, Variant
from kcheck.store import Store

VARIANTS = str(Path(__file__).parent.parent / "kernels" / "variants.py")


def compare(folder: Path, b: str, *options: str, a: str = f"{VARIANTS}::once") -> subprocess.CompletedProcess[str]:
    line = [sys.executable, "-P", "-m", "kcheck", "compare", a, b, "--backend", "interpret", "--seed", "1", *options]
    return subprocess.run(line, cwd=folder, env=os.environ, capture_output=True, text=True, timeout=240, check=False)


def row(done: subprocess.CompletedProcess[str], head: str) -> list[str]:
    return next(line.removeprefix(head).split() for line in done.stdout.splitlines() if line.startswith(head))


def test_equal_variants_and_their_launches(tmp_path: Path) -> None:
    done = compare(tmp_path, f"{VARIANTS}::twice", "--max-examples", "2")
    assert done.returncode == 0, done.stderr
    assert "values: the same bits in all" in done.stdout
    assert "host clock, on the interpreter" in done.stdout
    one, two = (int(count) for count in row(done, "Triton kernels launched, all cases"))
    assert two == 2 * one
    assert row(done, "bytes allocated in a call, most") == ["n/a", "n/a"]


def test_the_repair_by_a_copy_gives_the_same_bits(tmp_path: Path) -> None:
    pinned = ("--set", "num_requests=2", "--layout", "block_table=narrowed", "--no-sweep", "--max-examples", "2")
    done = compare(tmp_path, "builtin:paged_gather_contiguous", *pinned, a="builtin:paged_gather")
    assert done.returncode == 0, done.stderr
    assert "values: the same bits in all" in done.stdout


@pytest.mark.parametrize(
    ("variant", "code", "says"),
    [
        ("rounded", 0, "values: within the tolerance in all"),
        ("wrong", 1, "values: they differ in"),
        ("raising", 3, "raising raised KeyError: 'more than two'"),
        ("crashing", 3, "the worker process died"),
    ],
)
def test_exit_codes(variant: str, code: int, says: str, tmp_path: Path) -> None:
    done = compare(tmp_path, f"{VARIANTS}::{variant}", "--no-sweep", "--max-examples", "4")
    assert (done.returncode, done.stderr) == (code, "")
    assert says in done.stdout


def test_other_arguments_are_a_usage_error(tmp_path: Path) -> None:
    done = compare(tmp_path, f"{VARIANTS}::other_arguments")
    assert done.returncode == 2
    assert "only one of them has x, y" in done.stderr
    assert compare(tmp_path, VARIANTS).returncode == 2  # several targets


def test_a_difference_outweighs_a_problem_and_nothing_is_no_agreement() -> None:
    pair = (Variant(1.0, 1), Variant(1.0, 1))
    agree, differ = Measurement(pair, same_bits=True, agree=True), Measurement(pair, difference="out[0]")
    assert [exit_code(m) for m in ([agree], [agree, differ], [agree, Measurement(problem="p")], [])] == [0, 1, 3, 3]
    assert exit_code([differ, Measurement(problem="p")]) == 1


@pytest.mark.parametrize("measurement", [Measurement((Variant(0.5, 2, 512, 1),), agree=True), Measurement(problem="p")])
def test_a_measurement_survives_the_protocol(measurement: Measurement) -> None:
    assert Measurement.from_json(measurement.to_json()) == measurement


def test_a_worker_that_dies_is_replaced(client: Client, tmp_path: Path) -> None:
    specs = [f"{VARIANTS}::{name}" for name in ("once", "crashing")]
    for spec in specs:
        client.load(spec)
    (loaded,) = loader.load(specs[0])
    case = next(iter(boundary_cases(loaded.target, Plan())))
    assert "died" in client.measure(specs, case).problem
    assert client.measure(specs[:1], case).agree


def test_chosen_cases_are_those_of_the_sweep_and_random_ones_each_once() -> None:
    (loaded,) = loader.load(f"{VARIANTS}::once")
    plan = Plan({}, {"x": LayoutKind.OFFSET})
    cases = list(boundary_cases(loaded.target, plan))
    assert all(LayoutKind.OFFSET in case.views["x"].kinds for case in cases)
    assert {case.views["x"].layout.shape[0] for case in cases} >= {1, 2, 16}
    assert len(distinct([*cases, *cases])) == len({case.key for case in cases})
    drawn = random_cases(loaded.target, Plan(), 5, run_seed=3)
    assert 0 < len(drawn) <= 5
    assert drawn == random_cases(loaded.target, Plan(), 5, run_seed=3)
    assert random_cases(loaded.target, Plan(), 0, run_seed=3) == []


def test_saved_findings_of_the_target_are_chosen_and_damaged_files_are_said(tmp_path: Path) -> None:
    (loaded,) = loader.load(f"{VARIANTS}::once")
    store = Store(tmp_path).open()
    case = next(iter(boundary_cases(loaded.target, Plan())))
    for spec, fingerprint in ((loaded.spec, "a" * 12), ("other.py::once", "b" * 12)):
        store.save(Discovery("once", spec, Finding(Kind.CRASH, "it died"), fingerprint, case))
    (tmp_path / "findings" / "c.json").write_text("{")
    cases, notes = saved_cases(store, loaded.spec, loaded.target)
    assert cases == [case]
    assert len(notes) == 1
    assert "c.json" in notes[0]
