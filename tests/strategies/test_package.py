"""The package: one copy, no torch, few choices."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import kcheck.strategies

ROOT = Path(kcheck.strategies.__file__).resolve().parents[1]


def python(code: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code], cwd=cwd, capture_output=True, text=True, timeout=60, check=False
    )


def test_a_second_copy_is_refused(tmp_path: Path) -> None:
    (tmp_path / "strategies").symlink_to(Path(kcheck.strategies.__file__).parent)
    done = python("import strategies", tmp_path)
    assert done.returncode == 1
    assert "ImportError: this folder is the package kcheck.strategies, not 'strategies'" in done.stderr


def test_no_torch() -> None:
    done = python(
        "import sys; import kcheck.strategies; sys.exit(any(n in sys.modules for n in ('torch', 'triton', 'numpy')))",
        Path(kcheck.__file__).parents[1],
    )
    assert done.returncode == 0, done.stderr


def test_everything_public_is_documented() -> None:
    for name in kcheck.strategies.__all__:
        value = getattr(kcheck.strategies, name)
        if callable(value) and not isinstance(value, type):
            assert "hrinks" in (value.__doc__ or "") or "shrinking" in value.__doc__, name


COUNT = """
import statistics
from hypothesis import HealthCheck, given, settings, strategies as st

drawn = [0]
def counting(make):
    def counted(value):
        drawn[0] += 1
        return value
    return lambda *args, **kwargs: make(*args, **kwargs).map(counted)

for name in ("sampled_from", "integers", "booleans"):
    setattr(st, name, counting(getattr(st, name)))

import kcheck
from kcheck import strategies as ks

@st.composite
def cases(draw):
    kv = draw(ks.paged_kv(max_requests=256, block_sizes=(4, 16, 64)))
    return kcheck.Case(
        out=draw(ks.outputs((kv.num_requests, kv.max_seq_len, 128), "bfloat16")),
        pool=draw(ks.tensors((kv.num_blocks, kv.block_size, 128), "bfloat16")),
        seq_lens=kv.seq_lens, block_table=kv.block_table, block_size=kv.block_size)

counts = []
@st.composite
def one(draw):
    drawn[0] = 0
    draw(cases())
    counts.append(drawn[0])

@settings(max_examples=100, database=None, suppress_health_check=list(HealthCheck))
@given(one())
def run(_):
    pass

run()
print(statistics.mean(counts), max(counts))
"""


def test_a_paged_case_costs_few_choices() -> None:
    done = python(COUNT, Path(kcheck.__file__).parents[1])
    assert done.returncode == 0, done.stderr
    mean, most = map(float, done.stdout.split())
    assert mean <= most <= 13
