"""``kcheck replay``: a finding's case once more."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from kcheck.cli import options
from kcheck.errors import CouldNotCheck, UsageError
from kcheck.store import SavedCase, Store

if TYPE_CHECKING:
    from kcheck.events import Discovery
    from kcheck.loader import LoadedTarget
    from kcheck.protocol import Judgement


@click.command("replay")
@click.argument("finding")
@click.option("--target", "spec", help="The target, where FINDING belongs to none that is built in or discovered.")
@options.case_timeout
@options.backend
@options.directory
def command(finding: str, spec: str | None, case_timeout: float, backend: str, directory: Path) -> int:
    """Run the case of FINDING again: a fingerprint, or the path of a saved case.

    What compute-sanitizer found runs under the same tool again.

    Exit code 1 if the finding is still there, 0 if it is gone, 3 if the case could not be checked.
    """
    from kcheck.client import Client

    store = Store(directory).open()
    saved = store.find(finding)
    name = spec or _trusted(saved)
    if saved.tool:
        from kcheck.cli.sanitize import judge_again

        one = _sole(name)
        return _tell(saved, one.target.name, one.spec, judge_again(saved, one, store), store)
    with Client(options.chosen_backend(backend), store.log, case_timeout=case_timeout) as client:
        one = _sole(name)
        client.load(one.spec)
        judgement = client.judge(one.spec, saved.case)
        return _tell(saved, one.target.name, one.spec, judgement, store)


def _sole(name: str) -> LoadedTarget:
    """The one target of a name.

    Raises:
        UsageError: There are several.
    """
    from kcheck import loader

    loaded = loader.load(name)
    if len(loaded) != 1:
        raise UsageError(f"--target {name} names {len(loaded)} targets: {', '.join(one.spec for one in loaded)}")
    return loaded[0]


def _trusted(saved: SavedCase) -> str:
    """The target that the file names, if the project has it anyway: a file is data and must not choose code.

    Raises:
        UsageError: The user must name it.
    """
    from kcheck import loader

    if saved.spec.startswith(loader.BUILTIN):
        return saved.spec
    known = loader.configured() or loader.discovered()
    if saved.spec and any(saved.spec == spec or saved.spec.startswith(f"{spec}:") for spec in known):
        return saved.spec
    says = f" (the file says {saved.spec})" if saved.spec else ""
    raise UsageError(f"name the target with --target: file.py::name, package.module:name or builtin:name{says}")


def _tell(saved: SavedCase, target: str, spec: str, judgement: Judgement, store: Store) -> int:
    from kcheck.events import CaseVerdict, Discovery
    from kcheck.reports.console import make_console
    from kcheck.reports.panel import FindingPanel

    if judgement.verdict is CaseVerdict.COULD_NOT_CHECK:
        raise CouldNotCheck(judgement.reason)
    if judgement.verdict is CaseVerdict.REJECTED:
        click.echo(f"gone: {target} now rejects the case: {judgement.reason}")
        return 0
    if not judgement.findings:
        click.echo(f"gone: {target} passes the case")
        return 0
    import sys

    console = make_console(sys.stdout)
    prints = [finding.fingerprint(target) for finding in judgement.findings]
    for finding, fingerprint in zip(judgement.findings, prints, strict=True):
        view = saved.case.views.get(finding.argument)
        kinds = tuple(sorted(view.kinds)) if view else ()
        discovery: Discovery = Discovery(target, spec, finding, fingerprint, saved.case, kinds, directory=store.unusual)
        console.print(FindingPanel(discovery), crop=False)
    if saved.fingerprint and saved.fingerprint not in prints:
        click.echo(f"{saved.fingerprint} is gone, but the case shows something else")
    return 1
