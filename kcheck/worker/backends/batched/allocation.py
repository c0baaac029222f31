"""Memory of blocks: they are some MiB each, and come and go by the dozen in a launch."""

from __future__ import annotations

import ctypes

# Of glibc's mallopt.
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
_KEPT = 128 << 20  # bytes that are free at the end of the heap
_LARGEST = 32 << 20  # bytes of one block: glibc takes no more


def keep_freed_memory() -> None:
    """Let the C library keep memory that is freed, where it is glibc.

    It gives large blocks back to the system at once, and every page of the next one is a fault: half of the time of
    a launch.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_TRIM_THRESHOLD, _KEPT)
        mallopt(_MMAP_THRESHOLD, _LARGEST)
