"""The tools of NVIDIA's compute-sanitizer, and the exit code that means errors."""

from __future__ import annotations

import enum

ERROR_EXIT_CODE = (
    86  # asked for with --error-exitcode; by default compute-sanitizer exits with 0 although it found errors
)


class Tool(enum.StrEnum):
    """One tool of compute-sanitizer. https://docs.nvidia.com/compute-sanitizer/ComputeSanitizer/index.html."""

    MEMCHECK = "memcheck"
    RACECHECK = "racecheck"  # shared memory only
    INITCHECK = "initcheck"
    SYNCCHECK = "synccheck"
