"""The planted kernels load, each file with the targets that the tests of whole runs name."""

from __future__ import annotations

from pathlib import Path

import pytest

from kcheck import loader
from kcheck.errors import TargetLoadError

KERNELS = Path(__file__).parents[1] / "kernels"
TARGETS = {
    "controls": ["any_stride_copy", "in_place", "masked_tail", "clean_rejection"],
    "controls_matmul": ["matmul"],
    "controls_reduce": ["atomic_column_sum", "last_block_sum"],
    "crash": ["wrong", "fixed"],
    "empty_strategy": ["wrong", "wrong_filter", "wrong_strategy", "fixed"],
    "expanded_grad": ["wrong", "fixed"],
    "fallback": ["wrong", "fixed"],
    "gpu_faults": ["faulty"],
    "hang": ["wrong", "fixed"],
    "interleaved": ["wrong", "fixed"],
    "logic_bug": ["wrong", "fixed"],
    "logits_rows": ["wrong", "fixed"],
    "mutated": ["wrong", "fixed"],
    "nondeterministic": ["wrong", "fixed", "atomic_sum"],
    "one_off": ["wrong", "wrong_sum", "fixed"],
    "oob_write": ["wrong", "fixed"],
    "oracle_raises": ["wrong", "fixed"],
    "rejects_all": ["wrong", "fixed"],
    "sanitizer_faults": [
        "read",
        "write",
        "atomic",
        "misaligned",
        "uninitialized",
        "fine",
        "leak",
        "api_error",
        "shared_race",
        "divergent_barrier",
    ],
    "two_bugs": ["both", "table_stride", "output_rows", "fixed"],
    "unwritten": ["wrong", "fixed"],
    "variants": ["once", "twice", "rounded", "wrong", "raising", "crashing", "other_arguments"],
    "weak_oracle": ["wrong", "zeros_against_oracle", "fixed"],
}


@pytest.mark.parametrize("file", TARGETS)
def test_targets(file: str) -> None:
    path = f"{KERNELS / file}.py"
    assert [loaded.spec for loaded in loader.load(path)] == [f"{path}::{name}" for name in TARGETS[file]]


def test_missing_oracle_argument() -> None:
    with pytest.raises(TargetLoadError, match=r"missing_oracle_argument.py:\d+: target 'wrong': its oracle 'oracle'"):
        loader.load(str(KERNELS / "missing_oracle_argument.py"))


def test_syntax_error(tmp_path: Path) -> None:
    file = tmp_path / "syntax_error.py"
    file.write_text((KERNELS / "syntax_error.py.txt").read_text())
    with pytest.raises(TargetLoadError, match=r"syntax_error.py:5: SyntaxError: .*: def wrong\(out, x:"):
        loader.load(str(file))
