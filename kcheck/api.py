"""`kcheck.check`: the engine in a test, or in a script, of the user's. Its parts are imported at the first check."""

from __future__ import annotations

import contextlib
import io
import shutil
import warnings
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kcheck.errors import CouldNotCheck, KcheckError, UsageError

if TYPE_CHECKING:
    from kcheck.checker import Checker
    from kcheck.events import Discovery, TargetResult
    from kcheck.loader import LoadedTarget
    from kcheck.target import Target

_MARGIN = 4  # columns that pytest puts in front of an exception's text

_shared: Callable[[], Checker] | None = None  # gives the checker of the pytest session


class FindingWarning(UserWarning):
    """kcheck found something that is not grave enough to fail the check."""


class CheckFailed(AssertionError):
    """kcheck found bugs. Its text holds the panel of each.

    Attributes:
        result: What came out.
        seed: Seed of the run.
    """

    def __init__(self, result: TargetResult, seed: int) -> None:
        super().__init__(result, seed)
        self.result = result
        self.seed = seed

    def __str__(self) -> str:
        return f"{self.summary}\n\n{self.text(shutil.get_terminal_size().columns - _MARGIN)}"

    @property
    def summary(self) -> str:
        """The gravest finding in one line."""
        first, *others = self.result.discoveries
        return first.finding.message + (f" (and {len(others)} more)" if others else "")

    def text(self, width: int, *, color: bool = False) -> str:
        """All that was found, without the summary.

        Args:
            width: Columns.
            color: Whether to use colour.
        """
        from kcheck.reports.wording import counted

        parts = [panel(discovery, width, color=color) for discovery in self.result.discoveries]
        parts += [f"could not check: {reason}\n" for reason in self.result.reasons]
        cases = counted(sum(self.result.cases.values()), "case")
        return "".join([*parts, f"{self.result.name}: {cases}, seed {self.seed}"])


def check(
    target: Target | str,
    *,
    max_examples: int | None = None,
    max_time: float | None = None,
    seed: int | None = None,
    backend: str = "auto",
    case_timeout: float | None = None,
    fail_on: str | None = None,
) -> TargetResult:
    """Run a target over generated layouts and sizes, as ``kcheck fuzz`` does.

    The kernels run in a worker process that imports the target's file anew: what a test has patched in this process is
    not patched there. In a pytest session with kcheck's plugin all checks share the workers, and an option that is not
    given is that of pytest's command line (``--kcheck-max-examples``, …), then that of ``[tool.kcheck]``.

    Args:
        target: What `kcheck.target` made of a function at the top level of a file, or a name that ``kcheck fuzz``
            takes: ``kcheck_scale.py::doubled``, ``package.module:name``.
        max_examples: Random cases; the sweep and shrinking come on top. 500 by default.
        max_time: Seconds. 60 by default.
        seed: Seed of all that is drawn at random, below 2**32. Drawn by default.
        backend: ``interpret`` (CPU), ``cuda``, or ``auto``: the GPU where there is one.
        case_timeout: Seconds that one case may take. 20 by default.
        fail_on: Mildest severity that fails the check: ``error`` (default), ``warning`` or ``note``. What is milder
            is a `FindingWarning`.

    Returns:
        What came out; nothing in it fails the check.

    Raises:
        CheckFailed: kcheck found a bug; an AssertionError whose text shows it.
        CouldNotCheck: The target could not be checked, which is no pass.
        UsageError: The target cannot be loaded, or an argument has a bad value.
    """
    __tracebackhide__ = True
    from kcheck import importing
    from kcheck.checker import Checker

    if importing.is_importing():
        raise UsageError(
            "kcheck.check is called while its file is imported as a target; put the call into a test, or under "
            "if __name__ == '__main__':"
        )
    options = {
        "max_examples": max_examples,
        "max_time": max_time,
        "seed": seed,
        "backend": None if backend == "auto" else backend,
        "case_timeout": case_timeout,
        "fail_on": fail_on,
    }
    try:
        if _shared is not None:
            checker = _shared()
            return judged(checker, checker.load(target), options)
        with Checker(Path.cwd(), options) as checker:
            checker.warm_up()
            return judged(checker, checker.load(target))
    except (CheckFailed, KcheckError) as error:
        raise error.with_traceback(None) from None  # the text says it all; frames of kcheck's would bury it


def judged(checker: Checker, target: LoadedTarget, options: Mapping[str, Any] | None = None) -> TargetResult:
    """Check a target.

    Args:
        checker: The engine.
        target: What to check.
        options: As `Checker.run` takes them.

    Raises:
        CheckFailed: kcheck found a bug.
        CouldNotCheck: It did not, and the target could not be checked.
        UsageError: An option has a bad value.
    """
    from kcheck.events import CaseVerdict
    from kcheck.findings import Severity

    result, used = checker.run(target, options or {})
    limit = Severity(used["fail_on"]).rank
    if any(discovery.finding.severity.rank <= limit for discovery in result.discoveries):
        raise CheckFailed(result, used["seed"])
    if result.reasons or result.verdict is CaseVerdict.COULD_NOT_CHECK:
        raise CouldNotCheck(f"{result.name} could not be checked: {'; '.join(result.reasons)}")
    for discovery in result.discoveries:
        finding = discovery.finding
        said = f"kcheck: {finding.severity} in {result.name}: {finding.message}; {discovery.replay}"
        warnings.warn_explicit(said, FindingWarning, target.target.file, target.target.line)
    return result


def panel(discovery: Discovery, width: int, *, color: bool = False) -> str:
    """Draw the panel of a bug as text.

    Args:
        discovery: The bug.
        width: Columns.
        color: Whether to use colour.
    """
    from kcheck.reports.console import make_console
    from kcheck.reports.panel import FindingPanel

    stream = io.StringIO()
    make_console(stream, color=color, width=width).print(FindingPanel(discovery), crop=False)
    return stream.getvalue()


@contextlib.contextmanager
def sharing(checker: Callable[[], Checker]) -> Iterator[None]:
    """Have `check` use a checker that somebody else closes.

    Args:
        checker: Gives it, the same at each call.
    """
    global _shared
    before, _shared = _shared, checker
    try:
        yield
    finally:
        _shared = before
