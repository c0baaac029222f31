"""Operators of the Liger-kernel package, which nobody here wrote: silent where right, found where wrong.

What is expected to be found (release 0.8.5), and why, from reading its code:

* Cross entropy of logits whose last dimension is not contiguous: the forward pass copies them, asks the copy whether it
  requires a gradient (it does not: autograd functions run without), so the kernel computes none; the backward pass
  returns the logits themselves, scaled, as their gradient.
* RoPE of one token (decoding) with more than one sequence and head, in contiguous tensors: after ``transpose(1, 2)``
  dimension 1 has size 1, ``contiguous()`` keeps its stride, and by that stride, a head instead of a row, the kernel
  steps from sequence to sequence.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from kcheck import loader
from kcheck.case import Case, Tensor
from kcheck.client import Client
from kcheck.engine import choose
from kcheck.events import CaseVerdict
from kcheck.findings import Kind
from kcheck.layout import Dim, Layout
from kcheck.plan import Plan
from kcheck.protocol import Judgement
from kcheck.worker.backends import open_backend
from kcheck.worker.judge import Judge

pytest.importorskip("liger_kernel", reason="needs liger-kernel: pip install --no-deps liger-kernel")

OPERATORS = Path(__file__).with_name("operators.py")
RIGHT = (
    *("rms_norm", "layer_norm", "fused_add_rms_norm", "poly_norm", "group_norm", "dyt"),
    *("swiglu", "geglu", "relu_squared", "softmax", "sparsemax"),
    *("cross_entropy", "kl_div", "jsd", "tvd", "embedding", "rope"),
)
TRANSPOSED = Layout((Dim(3), Dim(4)), order=(1, 0))


def kcheck_run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "kcheck", *arguments],
        cwd=folder, capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip


def fuzz(folder: Path, *names: str) -> dict[str, Any]:
    """Results of a short run by target."""
    targets = [f"{OPERATORS}::{name}" for name in names]
    ran = kcheck_run(folder, "fuzz", *targets, "--max-examples", "8", "--seed", "1", "--report", "json=report.json")
    assert ran.returncode in (0, 1), ran.stderr
    return {result["name"]: result for result in json.loads((folder / "report.json").read_text())["targets"]}


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return fuzz(tmp_path_factory.mktemp("liger"), *RIGHT)


@pytest.mark.parametrize("name", RIGHT)
def test_operators_match_forward_and_backward_on_the_layouts_that_they_support(
    results: dict[str, Any], name: str
) -> None:
    result = results[name]
    assert (result["verdict"], result["findings"], result["reasons"]) == ("match", [], [])
    cells = {cell for row in result["matrix"].values() for cell in row.values()}
    assert cells <= {"match", "not tried"}
    assert result["matrix"]["grad_output[0]" if name in ("fused_add_rms_norm", "rope") else "grad_output"]


def test_operators_match_in_bfloat16(tmp_path: Path) -> None:
    """Forward and backward, the boundary sizes and layouts of each operator, some of them."""
    with Client("interpret", tmp_path / "worker.log") as client:
        for loaded in loader.load(str(OPERATORS.with_name("operators_bf16.py"))):
            client.load(loaded.spec)
            cases = list(choose.boundary_cases(loaded.target, Plan()))
            for case in cases[:: len(cases) // 8]:
                judgement = client.judge(loaded.spec, case)
                found = [finding.message for finding in judgement.findings]
                assert judgement.verdict is CaseVerdict.MATCH, (loaded.target.name, case, found)
            assert judgement.launches


def judge(name: str, **arguments: object) -> Judgement:
    (loaded,) = loader.load(f"{OPERATORS}::{name}")
    return Judge(open_backend("interpret")).judge(loaded.target, Case(**arguments))


def entropy(logits: Layout) -> Judgement:
    labels, grad = Tensor("int64", Layout((Dim(3),)), bound=4), Tensor("float32", Layout(()))
    return judge("cross_entropy_transposed", logits=Tensor("float32", logits), labels=labels, grad_output=grad)


def test_cross_entropy_gives_no_gradient_of_transposed_logits() -> None:
    assert entropy(Layout((Dim(3), Dim(4)))).verdict is CaseVerdict.MATCH
    (finding,) = entropy(TRANSPOSED).findings
    assert (finding.kind, finding.argument) == (Kind.LAYOUT_VARIANCE, "logits.grad")


def rope(q: Layout) -> Judgement:
    tensors = {"q": q, "k": Layout((Dim(2), Dim(1), Dim(1), Dim(2)))}
    turn = {name: Tensor("float32", Layout((Dim(1), Dim(1), Dim(2)))) for name in ("cos", "sin")}
    given = {name: Tensor("float32", layout) for name, layout in tensors.items()}
    incoming = Tensor("float32", Layout((Dim(2), Dim(2), Dim(1), Dim(2)), order=(0, 2, 1, 3)))
    return judge("rope_one_token", **given, **turn, grad_output=[incoming, Tensor("float32", tensors["k"])])


def test_rope_steps_by_a_head_from_sequence_to_sequence() -> None:
    heads_outside = Layout((Dim(2), Dim(2), Dim(1), Dim(2)))
    tokens_outside = Layout((Dim(2), Dim(2), Dim(1), Dim(2)), order=(0, 2, 1, 3))  # as models lay it out
    assert rope(tokens_outside).verdict is CaseVerdict.MATCH
    judgement = rope(heads_outside)
    assert judgement.verdict is CaseVerdict.FINDINGS
    assert {finding.kind for finding in judgement.findings} <= {Kind.VALUE_MISMATCH, Kind.RACE}


@pytest.mark.parametrize("name", ["cross_entropy_transposed", "rope_one_token"])
def test_what_is_found_can_be_replayed(tmp_path: Path, name: str) -> None:
    result = fuzz(tmp_path, name)[name]
    assert result["verdict"] == "findings"
    for finding in result["findings"][:2]:
        replay = kcheck_run(tmp_path, *finding["replay"].split()[1:])
        assert replay.returncode == 1, replay.stdout
