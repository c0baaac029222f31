"""What fails in the machine while Hypothesis runs a test: it is told as such, and not taken for a test that fails."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from kcheck.errors import CouldNotCheck, KcheckError


class _Trouble(BaseException):
    """The work failed, not the case. A BaseException, so that Hypothesis neither shrinks nor repeats it."""

    def __init__(self, told: KcheckError) -> None:
        super().__init__(told)
        self.told = told


@contextmanager
def let_through() -> Iterator[None]:
    """Around the body of a test: what fails in it passes through Hypothesis."""
    try:
        yield
    except KcheckError as error:
        raise _Trouble(error) from None
    except OSError as error:
        raise _Trouble(failed(error)) from None


@contextmanager
def telling() -> Iterator[None]:
    """Around the run of a test.

    Raises:
        KcheckError: What `let_through` let through.
    """
    try:
        yield
    except _Trouble as trouble:
        raise trouble.told from None


def failed(error: OSError) -> CouldNotCheck:
    """What is to be said of a call of the system that failed."""
    where = f": {error.filename}" if error.filename else ""
    return CouldNotCheck(f"the machine failed, not the target: {error.strerror or error}{where}; run it again")
