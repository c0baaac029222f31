"""What the worker is doing, told in its process name: it can be read when the worker hangs, and when it has died."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager

_PR_SET_NAME = 15
_libc = ctypes.CDLL(None)


@contextmanager
def doing(what: str) -> Iterator[None]:
    """Name the process ``kcheck WHAT`` for the time of a block (15 characters at most), and ``kcheck`` after it."""
    _libc.prctl(_PR_SET_NAME, f"kcheck {what}".encode(), 0, 0, 0)
    try:
        yield
    finally:  # a process that dies, or hangs, does not come here
        _libc.prctl(_PR_SET_NAME, b"kcheck", 0, 0, 0)
