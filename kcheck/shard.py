"""How a run is split: the sweep without gap or overlap, the budget of random cases, and their seeds."""

from __future__ import annotations

import re
from collections.abc import Mapping

from kcheck.errors import UsageError
from kcheck.events import Shard
from kcheck.fill import hashed

AUTO = "auto"
WHOLE = Shard(1, 1)
MOST_SHARDS = 100_000
_FORM = re.compile(r"(\d{1,9})/(\d{1,9})", re.ASCII)


def takes(shard: Shard, ordinal: int) -> bool:
    """Whether one of several things that are numbered from 0, such as the cases of the sweep, is of this shard."""
    return ordinal % shard.of == shard.index - 1


def share(shard: Shard, total: int) -> int:
    """How many of `total` random cases are of this shard."""
    return total // shard.of + (shard.index <= total % shard.of)


def random_seed(shard: Shard, seed: int) -> int:
    """Seed of a shard's random cases, below 2**32; the run's own where the shard is the whole.

    What must be the same in all shards, such as the sweep, goes by the run's seed.
    """
    return seed if shard.of == 1 else hashed(seed, shard.index)


def split(shard: Shard, workers: int) -> tuple[Shard, ...]:
    """A shard in as many smaller ones."""
    first = (shard.index - 1) * workers + 1
    return tuple(Shard(first + worker, shard.of * workers) for worker in range(workers))


def read_shard(text: str, environment: Mapping[str, str]) -> Shard:
    """Read ``--shard``.

    Args:
        text: ``I/N``, or ``auto``: what Slurm says of this task.
        environment: Where Slurm says it.

    Raises:
        UsageError: It is neither, or there is no such shard, or Slurm does not say.
    """
    if text == AUTO:
        task, tasks = environment.get("SLURM_PROCID", ""), environment.get("SLURM_NTASKS", "")
        if not (task.isdecimal() and tasks.isdecimal()):
            raise UsageError(
                f"--shard {AUTO} reads SLURM_PROCID and SLURM_NTASKS, which are {task!r} and {tasks!r}; start kcheck "
                "with srun, or give --shard I/N"
            )
        index, of = int(task) + 1, int(tasks)
    else:
        found = _FORM.fullmatch(text)
        if found is None:
            raise UsageError(f"--shard {text}: expected I/N, 2/4 for example, or {AUTO}")
        index, of = int(found[1]), int(found[2])
    if not 1 <= index <= of:
        raise UsageError(f"--shard {index}/{of}: there is no shard {index} of {of}; I counts from 1 to N")
    if of > MOST_SHARDS:
        raise UsageError(f"--shard {index}/{of}: that is too many; a run has at most {MOST_SHARDS:,} shards")
    return Shard(index, of)
