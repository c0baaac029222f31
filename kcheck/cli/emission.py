"""``kcheck replay --emit``: a finding as a test that needs no kcheck."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from kcheck.errors import CouldNotCheck, UsageError

if TYPE_CHECKING:
    from kcheck.client import Client
    from kcheck.emit import Form, Regression, Trial
    from kcheck.findings import Finding
    from kcheck.loader import LoadedTarget
    from kcheck.protocol import Judgement
    from kcheck.saved_case import SavedCase


@dataclass(frozen=True, slots=True)
class Emission:
    """What to write and where.

    Attributes:
        form: ``pytest`` or ``script``.
        output: The file; None: standard output.
        force: Overwrite the file.
    """

    form: Form
    output: Path | None
    force: bool = False

    @property
    def path(self) -> Path:
        """The file, or a name in the current directory for what goes to standard output."""
        return self.output or Path(f"emitted_{self.form}.py")


def check_possible(saved: SavedCase, emission: Emission) -> None:
    """Check what can be known before anything runs.

    Raises:
        UsageError: The finding's kind does not show in a test, or the file is there already.
    """
    from kcheck.emit import check

    if emission.output is not None and emission.output.exists() and not emission.force:
        raise UsageError(f"{emission.output} exists; choose another place with -o, or overwrite it with --force")
    if saved.finding is not None:
        check(saved.finding)


def emit(saved: SavedCase, one: LoadedTarget, client: Client, emission: Emission) -> int:
    """Write the test, after a trial: it must fail where the case shows the bug, and pass where it is gone.

    A wrapper that asks for a GPU cannot be tried without one; its test is written all the same, and skips itself there.

    Args:
        saved: The finding.
        one: Its target.
        client: With the target loaded.
        emission: What to write.

    Raises:
        UsageError: A stand-alone test cannot show the finding.
        CouldNotCheck: The case could not be judged, or the trial did not go as it must.
    """
    from kcheck.emit import Regression, attempt, check, formatted, render, subject
    from kcheck.machine import chosen_backend, worker_environment

    if one.target.grad:
        raise UsageError(f"{one.target.name} has gradients, which a stand-alone test cannot hold against an oracle's")
    judgement = client.judge(one.spec, saved.case)
    finding, still = _finding(saved, one, judgement)
    check(finding)
    yardstick = client.yardstick(one.spec, saved.case)
    if yardstick.problem:
        raise CouldNotCheck(yardstick.problem)
    test = Regression(
        target=one.target,
        case=saved.case.with_roles(one.target.roles),
        finding=finding,
        fingerprint=saved.fingerprint or finding.fingerprint(one.target.name),
        subject=subject(one, emission.path.absolute().parent),
        results=yardstick.results,
        form=emission.form,
    )
    trial = attempt(render(test), worker_environment(), emission.path.absolute().parent)
    gpu_only = chosen_backend("auto") != "cuda" and _is_refused(test, trial, still)
    if gpu_only:
        test = replace(test, gpu_only=f"without one it raises {trial.error}")
    else:
        _check_trial(test, trial, still)
    _write(formatted(render(test, 0 if gpu_only else trial.seed or 0), emission.path), emission)
    where = str(emission.output or "the test")
    if gpu_only:
        raise CouldNotCheck(
            f"{where} was written, but could not be tried: outside of kcheck {one.target.name} needs a GPU (it raises "
            f"{trial.error}); run it on a machine with a GPU; elsewhere it is skipped"
        )
    if still:
        click.echo(f"{where} fails here, as it must until the bug is fixed: {trial.error}", err=True)
    else:
        click.echo(f"{where} passes here: in {one.target.name} the bug is gone", err=True)
    return 0


def _finding(saved: SavedCase, one: LoadedTarget, judgement: Judgement) -> tuple[Finding, bool]:
    """The finding to show, and whether the target still has it."""
    from kcheck.events import CaseVerdict

    if judgement.verdict is CaseVerdict.COULD_NOT_CHECK:
        raise CouldNotCheck(judgement.reason)
    if judgement.verdict is CaseVerdict.REJECTED:
        raise UsageError(f"{one.target.name} rejects the case by now, so there is nothing to test: {judgement.reason}")
    for finding in judgement.findings:
        if not saved.fingerprint or finding.fingerprint(one.target.name) == saved.fingerprint:
            return finding, True
    if saved.finding is not None:
        return saved.finding, bool(judgement.findings)
    if judgement.findings:
        return judgement.findings[0], True
    raise UsageError("the case shows no finding, so there is nothing to test")


def _is_refused(test: Regression, trial: Trial, still: bool) -> bool:
    """Whether the target raised something else than what the test is about, and so did not get to it."""
    from kcheck.emit import QUOTED, RAISED

    if trial.broken or trial.seed is None or trial.asserted:
        return False
    expected = still and test.finding.kind in RAISED
    return not expected or (test.finding.kind in QUOTED and trial.said not in test.finding.message)


def _check_trial(test: Regression, trial: Trial, still: bool) -> None:
    from kcheck.emit import RAISED

    if trial.broken:
        raise CouldNotCheck(f"the test was not written: {trial.broken}")
    if not still and trial.seed is not None:
        raise CouldNotCheck(f"the test was not written: the bug is gone, but the test raises {trial.error}")
    if still and trial.seed is None:
        raise CouldNotCheck(
            "the test was not written: outside of kcheck the case gives the right result, although "
            f"{test.finding.message}"
        )
    if still and not trial.asserted and test.finding.kind not in RAISED:
        raise CouldNotCheck(f"the test was not written: outside of kcheck it does not get to a result: {trial.error}")


def _write(text: str, emission: Emission) -> None:
    if emission.output is None:
        click.echo(text, nl=False)
        return
    try:
        emission.output.parent.mkdir(parents=True, exist_ok=True)
        with emission.output.open("w" if emission.force else "x", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise UsageError(f"cannot write {emission.output}: {error.strerror}") from None
