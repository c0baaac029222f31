"""Kernels as they are usually written, under the view check: nothing is found."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from kcheck import loader
from kcheck.client import Client
from kcheck.engine import Campaign, Settings, choose
from kcheck.events import CaseVerdict, RunDone, TargetResult
from kcheck.loader import LoadedTarget
from kcheck.plan import Plan
from kcheck.store import Store

HERE = Path(__file__).parent
LIGER = HERE.parent / "liger" / "operators.py"
BF16 = LIGER.with_name("operators_bf16.py")
# What the operators get wrong; tests/liger says how.
KNOWN = ("cross_entropy_transposed", "rope_one_token")


def run(loaded: LoadedTarget, checker: Client, tmp_path: Path) -> TargetResult:
    settings = Settings(max_examples=10, max_time=60.0, seed=1)
    campaign = Campaign([loaded], checker, Store(tmp_path).open(), settings, checker.backend)
    done = list(campaign.run())[-1]
    assert isinstance(done, RunDone)
    return done.results[0]


@pytest.mark.parametrize("loaded", loader.load(str(HERE / "tutorials.py")), ids=lambda loaded: loaded.target.name)
def test_tutorial_style(loaded: LoadedTarget, checker: Client, tmp_path: Path) -> None:
    result = run(loaded, checker, tmp_path)
    assert result.verdict is CaseVerdict.MATCH, (result.reasons, [d.finding.message for d in result.discoveries])


@pytest.mark.skipif(importlib.util.find_spec("liger_kernel") is None, reason="liger-kernel is not installed")
def test_liger_operators(checker: Client, tmp_path: Path) -> None:
    for loaded in loader.load(str(LIGER)):
        if loaded.target.name not in KNOWN:
            result = run(loaded, checker, tmp_path / loaded.target.name)
            assert result.verdict is CaseVerdict.MATCH, (loaded.target.name, result.reasons, result.discoveries)


@pytest.mark.skipif(importlib.util.find_spec("liger_kernel") is None, reason="liger-kernel is not installed")
def test_liger_operators_in_bfloat16(checker: Client) -> None:
    """A few random cases each; layouts are the same as in float32, where the whole sweep runs."""
    operators = loader.load(str(BF16))
    assert len(operators) == 17
    for loaded in operators:
        checker.load(loaded.spec)
        for case in choose.random_cases(loaded.target, Plan(), 6, 1):
            assert "bfloat16" in {view.dtype for view in case.views.values()}
            judgement = checker.judge(loaded.spec, case)
            found = [finding.message for finding in judgement.findings]
            assert judgement.verdict is CaseVerdict.MATCH, (loaded.target.name, judgement.reason, found)
