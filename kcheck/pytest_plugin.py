"""kcheck in pytest: the targets of files ``kcheck_*.py`` are items, and `kcheck.check` shares their workers.

Whoever has kcheck installed imports this module with every pytest run, so the engine is imported at the first target.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Generator, Iterable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from _pytest._code.code import ReprExceptionInfo, ReprFileLocation, ReprTracebackNative, TerminalRepr
from _pytest._io import TerminalWriter

from kcheck import api
from kcheck.errors import CouldNotCheck, KcheckError

if TYPE_CHECKING:
    from kcheck.checker import Checker
    from kcheck.events import Discovery
    from kcheck.loader import LoadedTarget

_FILES = "kcheck_files"
_PATTERN = "kcheck_*.py"
_OPTIONS = ("max_examples", "max_time", "seed", "backend")
_UNCHECKED = ("kcheck", "could-not-check")  # a property, which junit shows and xdist passes on


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options of the group ``kcheck``."""
    parser.addini(_FILES, f"patterns of files with kcheck targets (default: {_PATTERN})", "args", [_PATTERN])
    group = parser.getgroup("kcheck", "kcheck, kernels over generated layouts")
    group.addoption("--kcheck-max-examples", type=_count, metavar="N", help="Random cases a target (default: 500).")
    group.addoption("--kcheck-max-time", type=_seconds, metavar="SECONDS", help="Seconds a target (default: 60).")
    group.addoption("--kcheck-seed", type=_seed, metavar="N", help="Seed of all that is drawn (default: drawn).")
    group.addoption(
        "--kcheck-backend",
        choices=("auto", "interpret", "cuda"),
        help="Where kernels run: interpret (CPU), cuda, or auto, the GPU where there is one (default: auto).",
    )
    group.addoption("--kcheck-dir", metavar="DIR", help="Where findings are kept (default: .kcheck).")
    group.addoption(
        "--kcheck-allow-skip", action="store_true", help="Skip targets that could not be checked (default: an error)."
    )


def _count(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r}; expected a number, 0 or more")
    return int(text)


def _seed(text: str) -> int:
    if not text.isdecimal() or int(text) >= 2**32:
        raise argparse.ArgumentTypeError(f"{text!r}; expected a number below 2**32")
    return int(text)


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not seconds >= 0.1:
        raise argparse.ArgumentTypeError(f"{text!r}; expected a number of seconds, 0.1 or more")
    return seconds


class _Session:
    """The checker of a pytest session, made when it is first used.

    Args:
        config: Of the session.
    """

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._checker: Checker | None = None

    @property
    def folder(self) -> Path:
        """Where pytest was started: there ``kcheck replay`` is meant to be started, too."""
        return self._config.invocation_params.dir

    @property
    def cut_short(self) -> Sequence[Discovery]:
        """What was found by checks that came to no end."""
        return self._checker.cut_short if self._checker is not None else ()

    def checker(self) -> Checker:
        """The checker.

        Raises:
            UsageError: The project's table is wrong.
        """
        if self._checker is None:
            from kcheck.checker import Checker
            from kcheck.store import DEFAULT_ROOT

            options = {name: self._config.getoption(f"kcheck_{name}") for name in _OPTIONS}
            self._checker = Checker(self.folder, options, Path(self._config.getoption("kcheck_dir") or DEFAULT_ROOT))
        return self._checker

    def close(self) -> None:
        """End the workers."""
        if self._checker is not None:
            self._checker.close()


_SESSION = pytest.StashKey[_Session]()


def pytest_configure(config: pytest.Config) -> None:
    """Have `kcheck.check` use the session's workers until the session is over."""
    config.addinivalue_line("markers", "kcheck: a kcheck target, run over generated layouts and sizes.")
    session = config.stash[_SESSION] = _Session(config)
    stack = ExitStack()
    stack.callback(session.close)
    stack.enter_context(api.sharing(session.checker))
    config.add_cleanup(stack.close)


@pytest.hookimpl(wrapper=True)
def pytest_collect_file(
    file_path: Path, parent: pytest.Collector
) -> Generator[None, Iterable[pytest.Collector], list[pytest.Collector]]:
    """Collect kcheck's files."""
    collectors = list((yield))
    if not any(file_path.match(pattern) for pattern in parent.config.getini(_FILES)):
        return collectors
    if not any(file_path.match(pattern) for pattern in parent.config.getini("python_files")):
        # Named on the command line: pytest takes every such file for a test module.
        collectors = [collector for collector in collectors if type(collector) is not pytest.Module]
    return [*collectors, KcheckFile.from_parent(parent, path=file_path)]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Mark the report of a target that could not be checked."""
    if not isinstance(item, KcheckItem):
        return (yield)
    if call.excinfo is not None and isinstance(call.excinfo.value, KcheckError):
        item.user_properties.append(_UNCHECKED)
    report = yield
    if report.skipped and isinstance(report.longrepr, tuple):  # by this module's line, which says nothing
        file, line, _ = item.reportinfo()
        report.longrepr = (str(file), line + 1, report.longrepr[2])
    return report


def pytest_report_teststatus(report: pytest.CollectReport | pytest.TestReport) -> tuple[str, str, str] | None:
    """Tell a target that could not be checked from one with a bug."""
    unchecked = any(tuple(one) == _UNCHECKED for one in getattr(report, "user_properties", ()))
    return ("error", "E", "ERROR") if report.failed and unchecked else None


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Show what was found by a check that came to no end: Ctrl-C, or a time limit."""
    found = config.stash[_SESSION].cut_short
    if found:
        terminalreporter.section("kcheck: found by checks that were cut short")
    for discovery in found:
        terminalreporter.write(api.panel(discovery, config.get_terminal_writer().fullwidth))


class KcheckFile(pytest.File):
    """A file with targets."""

    def collect(self) -> Iterable[KcheckItem]:
        """An item for each target.

        Raises:
            CollectError: The file cannot be imported, or has no target.
        """
        session = self.config.stash[_SESSION]
        try:
            if not self.config.option.collectonly:
                session.checker().warm_up()  # the workers import torch while this process imports the file
            from kcheck import loader

            loaded = loader.load(os.path.relpath(self.path))
        except KcheckError as error:
            raise self.CollectError(str(error)) from None
        file = os.path.relpath(self.path, session.folder)
        for one in loaded:
            name = one.spec.partition("::")[2]
            yield KcheckItem.from_parent(self, name=name, target=loader.LoadedTarget(one.target, f"{file}::{name}"))


class KcheckItem(pytest.Item):
    """A target.

    Args:
        target: The target.
        kwargs: For `pytest.Item`.
    """

    def __init__(self, *, target: LoadedTarget, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.target = target
        self.add_marker("kcheck")

    def runtest(self) -> None:
        """Check the target.

        Raises:
            CheckFailed: kcheck found a bug.
            KcheckError: The target could not be checked.
        """
        try:
            api.judged(self.config.stash[_SESSION].checker(), self.target)
        except CouldNotCheck as error:
            if not self.config.getoption("kcheck_allow_skip"):
                raise
            pytest.skip(str(error))

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> str | TerminalRepr:
        """Show kcheck's panel, or why the target could not be checked; a traceback of anything else."""
        error = excinfo.value
        if not isinstance(error, api.CheckFailed | KcheckError):
            return super().repr_failure(excinfo, style)
        file, line, _ = self.reportinfo()
        return _Failure(error, f"{file}", line + 1)

    def reportinfo(self) -> tuple[Path, int, str]:
        """File, line from 0 and name of the target."""
        return self.path, self.target.target.line - 1, self.name


class _Failure(ReprExceptionInfo):
    """kcheck's own text in place of a traceback; xdist sends it on without colour.

    Args:
        error: What the check raised.
        file: Where the target is.
        line: Where in it, from 1.
    """

    def __init__(self, error: api.CheckFailed | KcheckError, file: str, line: int) -> None:
        self._error = error
        said = error.summary if isinstance(error, api.CheckFailed) else str(error)
        super().__init__(
            reprtraceback=ReprTracebackNative([self._text(80) + "\n"]), reprcrash=ReprFileLocation(file, line, said)
        )

    def toterminal(self, tw: TerminalWriter) -> None:
        tw.line(self._text(tw.fullwidth, color=tw.hasmarkup))

    def _text(self, width: int, *, color: bool = False) -> str:
        return self._error.text(width, color=color) if isinstance(self._error, api.CheckFailed) else str(self._error)
