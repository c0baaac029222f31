"""``kcheck merge`` on the command line."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from kcheck import baseline
from kcheck.cli import cli
from kcheck.errors import CouldNotCheck, InvalidDocument, KcheckError, UsageError
from kcheck.findings import Severity

from .conftest import Write, discovery, grave, part, record

ISSUE = "https://example.org/1"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def merge(*arguments: Path | str) -> Any:
    """Exit code of ``kcheck merge``."""
    return cli.main(["merge", *map(str, arguments)], standalone_mode=False)


def test_the_run_is_told_on_the_console_and_in_every_format(
    write: Write, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    paths = [write(record(part(10), 1, 2)), write(record(part(5, found=[discovery()]), 2, 2))]
    assert merge(*paths, "--report-dir", "out", "--report", "github") == 1
    console = capsys.readouterr().err  # what GitHub reads is on standard output
    assert "stray" in console
    assert "15 cases" in console
    assert sorted(path.name for path in (folder / "out").iterdir()) == [
        "kcheck.html",
        "kcheck.json",
        "kcheck.md",
        "kcheck.sarif",
        "kcheck.xml",
    ]
    data = json.loads((folder / "out" / "kcheck.json").read_text())
    assert "shard" not in data
    assert data["targets"][0]["cases"] == {"match": 15}
    assert ElementTree.parse(folder / "out" / "kcheck.xml").findall(".//failure")


@pytest.mark.parametrize(
    ("shards", "arguments", "code"),
    [
        ([part(), part()], (), 0),
        ([part(launches=0), part()], (), 0),
        ([part(launches=0), part(launches=0)], (), 3),
        ([part(launches=0), part(launches=0)], ("--allow-skip", "t"), 0),
        ([part(launches=0), part(launches=0)], ("--allow-skip", "all"), 0),
        ([part(), part(found=[discovery()])], (), 1),
        ([part(), part(found=[discovery(known=ISSUE)])], (), 0),
        ([part(), part(found=[discovery(finding=grave(Severity.WARNING))])], (), 0),
        ([part(), part(found=[discovery(finding=grave(Severity.WARNING))])], ("--fail-on", "warning"), 1),
    ],
)
def test_the_exit_code_is_that_of_the_run(write: Write, shards: Any, arguments: tuple[str, ...], code: int) -> None:
    paths = [write(record(one, index, 2)) for index, one in enumerate(shards, 1)]
    assert merge(*paths, *arguments) == code


def test_a_missing_shard_is_3_even_if_all_may_be_skipped(write: Write, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(record(part(), 1, 2))
    assert merge(path) == 3
    assert "shard 2 of 2 is missing" in capsys.readouterr().out
    assert merge(path, "--allow-skip", "all") == 3
    assert merge(write(record(part(found=[discovery()]), 1, 2))) == 1


def test_a_shard_that_was_interrupted_is_no_pass(write: Write) -> None:
    cut = record(part(interrupted=True), 2, 2, interrupted=True)
    assert merge(write(record(part(), 1, 2)), write(cut)) == 3


def test_a_doubled_shard_is_3(write: Write) -> None:
    path = write(record(part(), 1, 2))
    with pytest.raises(CouldNotCheck):
        merge(path, path)


def test_a_whole_run_is_told_in_another_format(write: Write, folder: Path) -> None:
    assert merge(write(record(part(), shard=None)), "--report", "markdown=run.md") == 0
    assert "| ✓ | `t` | match |" in (folder / "run.md").read_text()


def test_a_baseline_is_held_against_the_run_and_written(write: Write, folder: Path) -> None:
    path = write(record(part(found=[discovery()]), shard=None))
    known = folder / "known.json"
    assert merge(path, "--write-baseline", known) == 1
    assert json.loads(known.read_text())["known"][0]["fingerprint"] == "a" * 12
    write_known(known)
    assert merge(path, "--baseline", known) == 0


def write_known(path: Path) -> None:
    baseline.write(path, [baseline.known_of(discovery(known=ISSUE), "interpret")])


def test_a_name_that_is_no_target_is_refused(write: Write) -> None:
    with pytest.raises(UsageError, match="--allow-skip u: no target of this run has that name; known: t, or all"):
        merge(write(record(part(), shard=None)), "--allow-skip", "u")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "is not JSON"),
        ("[" * 100_000, "is not JSON"),
        ("9" * 10_000, "is not JSON"),
        ("\0", "is not JSON"),
        ("[]", r"document: is \[\]; expected an object"),
        ("{}", "document: has no 'schema'"),
        ('{"schema": "kcheck.report/9"}', "schema: is 'kcheck.report/9'; this kcheck reads 'kcheck.report/1'"),
    ],
)
def test_what_is_no_report_is_one_sentence(folder: Path, text: str, says: str) -> None:
    (folder / "r.json").write_text(text)
    with pytest.raises(InvalidDocument, match=f"r.json.*{says}"):
        merge("r.json")


HOSTILE = [None, True, -1, 1.5, 10**30, "\ud800", "inf", [], {}, [None], {"a": None}]


def test_no_value_in_any_place_is_more_than_a_refusal(folder: Path, write: Write) -> None:
    """Each value of a report, replaced: it is refused by a sentence, or it is told."""
    path = write(record(part(found=[discovery()]), shard=None))
    good = path.read_text()
    told = 0
    for place, key in places(json.loads(good)):
        for bad in HOSTILE:
            data = json.loads(good)
            at = data
            for step in place:
                at = at[step]
            at[key] = bad
            path.write_text(json.dumps(data))
            with suppress(KcheckError):
                merge(path, "--quiet", "--color", "never")
                told += 1
    assert told > 100


def test_a_lone_surrogate_in_a_shard_is_no_more_than_a_refusal(write: Write) -> None:
    found = discovery(related=(grave(Severity.WARNING),))
    paths = [write(record(part(found=[found]), index, 2)) for index in (1, 2)]
    good = paths[0].read_text()
    told = 0
    for place, key in places(json.loads(good)):
        data = json.loads(good)
        at = data
        for step in place:
            at = at[step]
        if isinstance(at[key], str):
            at[key] = "\ud800"
            paths[0].write_text(json.dumps(data))
            with suppress(KcheckError):
                merge(*paths, "--quiet", "--color", "never")
                told += 1
    assert told > 10


def places(node: Any, at: tuple[Any, ...] = ()) -> list[tuple[tuple[Any, ...], Any]]:
    """Every place of a document below its root."""
    keys: Any = node if isinstance(node, dict) else range(len(node)) if isinstance(node, list) else ()
    return [place for key in keys for place in [(at, key), *places(node[key], (*at, key))]]
