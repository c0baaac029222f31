"""What the docs list is what there is."""

from __future__ import annotations

import ast
import inspect
import re
from pathlib import Path

import click
import pytest

import kcheck
from kcheck import config, strategies
from kcheck.cli import cli
from kcheck.gpus import GPUS
from kcheck.layout import LayoutKind
from kcheck.pytest_plugin import _OPTIONS
from kcheck.reports import _FILES, FORMATS

ROOT = Path(__file__).parents[2]
DOCS = {path.name: path.read_text() for path in (ROOT / "docs").glob("*.md")}
EVERYTHING = "\n".join(
    path.read_text() for path in [ROOT / "README.md", ROOT / "docs" / "ci" / "README.md", *(ROOT / "docs").glob("*.md")]
)


def rows(page: str, section: str) -> set[str]:
    """What the first column of the tables in a section names, without the code marks."""
    text = DOCS[page].split(f"{section}\n", 1)[1].split("\n## ", 1)[0]
    cells = re.findall(r"^\| (\[?`.+?) \|", text, re.MULTILINE)
    return {name for cell in cells for name in re.findall(r"`([^`]+)`", cell)}


def test_every_strategy_is_listed() -> None:
    public = {name for name in strategies.__all__ if name[0].islower()}
    assert rows("strategies.md", "# Strategies") == public
    assert all(f"`ks.{name}" in DOCS["strategies.md"] for name in strategies.__all__ if name != "PagedKV")


@pytest.mark.parametrize("name", ["dims", "options", "tensors", "indices", "outputs", "inouts", "layouts"])
def test_signatures_are_those_of_the_strategies(name: str) -> None:
    said = re.search(rf"`ks\.{name}\(((?:[^`])+)\)`", DOCS["strategies.md"])
    assert said
    given = [one.strip().partition("=")[0] for one in re.split(r",(?![^(]*\))", said[1])]
    expected = list(inspect.signature(getattr(strategies, name)).parameters)
    assert [one for one in given if one != "*"] == expected


def test_every_layout_kind_is_listed() -> None:
    table = DOCS["strategies.md"].split("## Layout kinds\n", 1)[1].split("| `kinds=` |")[0]
    assert re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE) == [str(kind) for kind in LayoutKind]


def test_every_option_of_a_target_is_listed() -> None:
    assert rows("targets.md", "## All options") - {"kcheck.target"} == set(inspect.signature(kcheck.target).parameters)


def test_every_report_format_is_listed() -> None:
    assert rows("reports.md", "# Reports") - {"--report"} >= set(FORMATS)
    assert all(f"`{file}` |" in DOCS["reports.md"] for file in _FILES.values())


def test_every_command_is_listed() -> None:
    named = {row.split()[1] for row in rows("README.md", "## Commands")}
    assert named == set(cli.list_commands(click.Context(cli)))


def test_options_that_are_named_exist() -> None:
    context = click.Context(cli)
    known = {"--index-url", "--help", "--write-baseline", "--kcheck-allow-skip", "--kcheck-dir", "--gpus"}
    known |= {f"--kcheck-{name.replace('_', '-')}" for name in _OPTIONS}
    for name in cli.list_commands(context):
        command = cli.get_command(context, name)
        assert command is not None
        known |= {option for one in command.params for option in (*one.opts, *one.secondary_opts)}
    assert set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", EVERYTHING)) <= known


def test_every_key_of_the_project_table_is_named() -> None:
    page = (ROOT / "docs" / "ci" / "README.md").read_text().split("## In pyproject.toml", 1)[1]
    assert all(f"`{key}`" in page for key in config._KEYS)


def test_every_gpu_to_pretend_is_named() -> None:
    assert set(re.findall(r"`(sm_\d+)`", DOCS["targets.md"])) == set(GPUS)


def test_sentences_that_are_explained_are_said() -> None:
    """Troubleshooting quotes kcheck's own messages; ``…`` stands for what differs."""
    said = [text for folder in ("kcheck", "strategies", "reports") for text in texts(ROOT / folder)]
    quoted = re.findall(r"^\| `([^`]+)` \|", DOCS["troubleshooting.md"], re.MULTILINE)
    assert len(quoted) > 20
    for quote in quoted:
        pattern = re.compile(".*".join(map(re.escape, quote.split("…"))))
        assert any(pattern.search(text) for text in said), quote


def texts(folder: Path) -> list[str]:
    """All strings of a folder's modules, what is put into them replaced by ``…``."""
    found = []
    for path in folder.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.JoinedStr):
                parts = (part.value if isinstance(part, ast.Constant) else "…" for part in node.values)
                found.append("".join(map(str, parts)))
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                found.append(node.value)
    return found
