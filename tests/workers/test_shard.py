"""How a run is split."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kcheck.errors import UsageError
from kcheck.events import Shard
from kcheck.shard import WHOLE, random_seed, read_shard, share, split, takes

COUNTS = st.integers(1, 9)


@given(of=COUNTS, things=st.integers(0, 50))
def test_each_thing_is_of_one_shard(of: int, things: int) -> None:
    shards = [Shard(index, of) for index in range(1, of + 1)]
    assert [sum(takes(shard, ordinal) for shard in shards) for ordinal in range(things)] == [1] * things
    shares = [share(shard, things) for shard in shards]
    assert sum(shares) == things
    assert max(shares) - min(shares) <= 1


@given(of=COUNTS, workers=COUNTS)
def test_the_workers_of_all_shards_are_shards_of_the_run(of: int, workers: int) -> None:
    parts = [part for index in range(1, of + 1) for part in split(Shard(index, of), workers)]
    assert parts == [Shard(index, of * workers) for index in range(1, of * workers + 1)]


@given(seed=st.integers(0, 2**32 - 1), of=st.integers(2, 16))
def test_each_shard_draws_from_a_seed_of_its_own(seed: int, of: int) -> None:
    seeds = {random_seed(Shard(index, of), seed) for index in range(1, of + 1)}
    assert len(seeds) == of
    assert all(0 <= one < 2**32 for one in seeds)
    assert random_seed(WHOLE, seed) == seed


@pytest.mark.parametrize(("text", "shard"), [("1/1", Shard(1, 1)), ("2/4", Shard(2, 4)), ("12/12", Shard(12, 12))])
def test_a_shard_is_read(text: str, shard: Shard) -> None:
    assert read_shard(text, {"SLURM_PROCID": "7", "SLURM_NTASKS": "9"}) == shard


def test_slurm_counts_from_zero() -> None:
    assert read_shard("auto", {"SLURM_PROCID": "0", "SLURM_NTASKS": "4"}) == Shard(1, 4)
    assert read_shard("auto", {"SLURM_PROCID": "3", "SLURM_NTASKS": "4"}) == Shard(4, 4)


@pytest.mark.parametrize(
    ("text", "environment", "said"),
    [
        ("0/2", {}, "there is no shard 0 of 2"),
        ("3/2", {}, "there is no shard 3 of 2"),
        ("1/0", {}, "there is no shard 1 of 0"),
        ("1/100001", {}, "a run has at most 100,000 shards"),
        *(
            (text, {}, "expected I/N")
            for text in ("", "2", "a/b", "1/2/3", "-1/2", "1.0/2", "1 /2", "٣/٤", "1/9999999999")
        ),
        ("auto", {}, "start kcheck with srun"),
        ("auto", {"SLURM_PROCID": "1"}, "SLURM_NTASKS"),
        ("auto", {"SLURM_PROCID": "x", "SLURM_NTASKS": "2"}, "'x'"),
        ("auto", {"SLURM_PROCID": "2", "SLURM_NTASKS": "2"}, "there is no shard 3 of 2"),
    ],
)
def test_what_is_no_shard_is_one_sentence(text: str, environment: dict[str, str], said: str) -> None:
    with pytest.raises(UsageError, match=said) as raised:
        read_shard(text, environment)
    assert "\n" not in str(raised.value)
