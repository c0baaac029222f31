"""The examples in docstrings run, and match."""

from __future__ import annotations

import sys
import textwrap
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import HealthCheck, Phase, given, settings

from kcheck import loader, objects
from kcheck.case import Case
from kcheck.events import CaseVerdict
from kcheck.worker.backends import open_backend
from kcheck.worker.backends.interpret import pretend
from kcheck.worker.judge import Judge

IMPORTS = """
import dataclasses, enum
import kcheck, torch
from hypothesis import strategies as st
from kcheck import strategies as ks
"""
TARGET: ModuleType = sys.modules["kcheck.target"]  # the function of that name hides the module


def examples(text: str | None) -> list[str]:
    """The blocks of code in a docstring: what is indented after a line that ends in two colons."""
    found: list[list[str]] = []
    inside, margin = False, 0
    for line in textwrap.dedent(text or "").splitlines():
        indent = len(line) - len(line.lstrip())
        if inside and line.strip() and indent <= margin:
            inside = False
        if inside:
            found[-1].append(line)
        elif line.endswith("::"):
            inside, margin = True, indent
            found.append([])
    return [textwrap.dedent("\n".join(block)) for block in found]


CODE = [
    *examples(TARGET.__doc__),
    *examples(objects.__doc__),
    *examples(pretend.__doc__),
]


def test_every_example_is_looked_at() -> None:
    assert len(CODE) == 5


@pytest.mark.parametrize("code", CODE)
def test_an_example_matches(tmp_path: Path, code: str) -> None:
    file = tmp_path / "kcheck_example.py"
    file.write_text(IMPORTS + code)
    (loaded,) = loader.load(str(file))
    judge = Judge(open_backend("interpret"))

    @settings(
        max_examples=15, database=None, deadline=None, phases=[Phase.generate], suppress_health_check=list(HealthCheck)
    )
    @given(loaded.target.cases)
    def check(case: Case) -> None:
        judgement = judge.judge(loaded.target, case)
        assert judgement.verdict is CaseVerdict.MATCH, judgement

    check()
