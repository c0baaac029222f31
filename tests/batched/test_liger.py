"""Operators of the Liger-kernel package, forward and backward: all their launches run together."""

from __future__ import annotations

from pathlib import Path

import pytest

from kcheck import loader
from kcheck.engine import choose
from kcheck.events import CaseVerdict
from kcheck.plan import Plan
from kcheck.worker.backends.interpret import InterpretBackend
from kcheck.worker.judge import Judge

pytest.importorskip("liger_kernel", reason="needs liger-kernel: pip install --no-deps liger-kernel")

FOLDER = Path(__file__).parents[1] / "liger"
WRONG = ("cross_entropy_transposed", "rope_one_token")  # which have findings


@pytest.mark.parametrize("module", ["operators", "operators_bf16"])
def test_operators_run_batched(module: str, together: list[bool]) -> None:
    judge, launches = Judge(InterpretBackend(engine="batched")), 0
    for loaded in loader.load(str(FOLDER / f"{module}.py")):
        if loaded.target.name in WRONG:
            continue
        (case,) = choose.random_cases(loaded.target, Plan(), 1, 1)
        judgement = judge.judge(loaded.target, case)
        assert judgement.verdict is CaseVerdict.MATCH, loaded.target.name
        assert not judgement.sequential, loaded.target.name
        assert all(together), loaded.target.name
        launches += sum(judgement.launches.values())
    assert len(together) >= 2 * launches  # two runs of each case
    assert launches > 20
