"""The example database: cases that failed, as Hypothesis encodes them, in a folder that runs and machines may share.

It saves time and proves nothing. So nothing that is wrong with it may stop a run, or be waited for.
"""

from __future__ import annotations

import contextlib
import hashlib
import math
import os
import shutil
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path

from hypothesis.database import ExampleDatabase

MOST_KEYS = 50  # each version of kcheck and of Hypothesis has keys of its own
MOST_EXAMPLES = 500  # of one key: one for each bug, and those that led to it
MOST_BYTES = 1 << 16  # of one example: Hypothesis itself draws no more than 8 KiB


class Examples(ExampleDatabase):
    """A folder for each key, a file for each example.

    What cannot be read or written is passed over: files that are broken, locked, huge or no files at all, a folder
    that is full, read-only or gone. Of what is too many the oldest is removed.

    Args:
        folder: Where to keep them; made when something is saved.
        before: Seconds since the epoch; what is saved later is not read. Which cases a shard of a run draws must not
            depend on when another one saves what it found.
    """

    def __init__(self, folder: Path, before: float = math.inf) -> None:
        super().__init__()
        self._folder, self._before = folder, before
        with contextlib.suppress(OSError):
            for key in _oldest_first(folder)[:-MOST_KEYS]:
                shutil.rmtree(key, ignore_errors=True)

    def fetch(self, key: bytes) -> Iterable[bytes]:
        """Examples of a key, as far as they can be read, in an order that does not change what Hypothesis draws."""
        with contextlib.suppress(OSError):
            for path in sorted(_oldest_first(self._of(key))):
                if _age(path)[0] < self._before:
                    yield from _read(path)

    def save(self, key: bytes, value: bytes) -> None:
        """Save an example, whole or not at all."""
        with contextlib.suppress(OSError):
            folder = self._of(key)
            path = folder / _name(value)
            if path.exists():
                return
            folder.mkdir(parents=True, exist_ok=True)
            part = folder / f".{os.getpid()}.{path.name}"
            try:
                part.write_bytes(value)
                part.replace(path)
            finally:
                part.unlink(missing_ok=True)
            for old in _oldest_first(folder)[:-MOST_EXAMPLES]:
                old.unlink(missing_ok=True)

    def delete(self, key: bytes, value: bytes) -> None:
        """Delete an example, if it is there."""
        with contextlib.suppress(OSError):
            (self._of(key) / _name(value)).unlink(missing_ok=True)

    def _of(self, key: bytes) -> Path:
        return self._folder / _name(key)


def _name(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:32]


def _oldest_first(folder: Path) -> list[Path]:
    with os.scandir(folder) as entries:
        return sorted((Path(entry) for entry in entries), key=_age)


def _age(path: Path) -> tuple[float, str]:
    try:
        return path.lstat().st_mtime, path.name
    except OSError:  # another run has removed it
        return 0.0, path.name


def _read(path: Path) -> Iterator[bytes]:
    """The example in a file, if it is one."""
    with contextlib.suppress(OSError):
        if path.name.startswith("."):  # being written, or left by a run that was killed
            return
        file = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)  # a pipe has no end to wait for
        with open(file, "rb") as opened:
            if stat.S_ISREG(os.fstat(file).st_mode):
                value = opened.read(MOST_BYTES + 1)
                if len(value) <= MOST_BYTES:
                    yield value
