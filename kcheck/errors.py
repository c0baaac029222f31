"""Tool errors: what went wrong with kcheck's own work. Faults of the kernel under test are findings, never these.

KcheckError                        exit code 4
├── UsageError                     2   an option or a name is wrong
│   ├── TargetLoadError            2   a target file cannot be imported, or declares something impossible
│   └── InvalidDocument            2   a case or finding file is not what it should be
├── NoTargetError                  5   nothing was selected
└── CouldNotCheck                  3   the work could not be done; never looks like a pass
    ├── SpecError                  3   the target's case strategy or oracle is at fault
    ├── UnsupportedVersion         3   the installed Triton or torch is not one that a backend knows
    └── WorkerError                3   no worker could be started, or it does not speak the protocol
"""

from __future__ import annotations

__all__ = [
    "CouldNotCheck",
    "InvalidDocument",
    "KcheckError",
    "NoTargetError",
    "SpecError",
    "TargetLoadError",
    "UnsupportedVersion",
    "UsageError",
    "WorkerError",
    "quoted",
]


def quoted(error: BaseException) -> str:
    """An exception of the user's code in a sentence: its type, and its text if it has one (``assert`` has none)."""
    return f"{type(error).__name__}: {error}".strip().rstrip(":")


class KcheckError(Exception):
    """Base of every tool error. Its text is one clear sentence: what, which value, what to do next."""

    exit_code = 4


class UsageError(KcheckError):
    """An option, a name or a configuration value is wrong."""

    exit_code = 2


class TargetLoadError(UsageError):
    """A target file cannot be imported, or a target declares something impossible."""


class InvalidDocument(UsageError):
    """A JSON document (case, finding) is malformed.

    Args:
        where: Path of the bad value inside the document, for example ``args.pool.layout.dims[0].size``.
        problem: What is wrong with it and what was expected.
    """

    def __init__(self, where: str, problem: str) -> None:
        super().__init__(f"{where}: {problem}")
        self.where = where
        self.problem = problem


class NoTargetError(KcheckError):
    """No target was selected."""

    exit_code = 5


class CouldNotCheck(KcheckError):
    """The check could not be made. Not a pass."""

    exit_code = 3


class SpecError(CouldNotCheck):
    """The target's case strategy or oracle failed; the kernel was not judged."""


class UnsupportedVersion(CouldNotCheck):
    """The installed Triton or torch differs from what a backend knows."""


class WorkerError(CouldNotCheck):
    """No worker could be started, or one answered something that is not the protocol."""
