"""``kcheck replay``: a finding's case once more."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from kcheck.backend_spec import VIEWCHECK, BackendSpec
from kcheck.cli import completion, display, options
from kcheck.errors import CouldNotCheck, UsageError
from kcheck.saved_case import SavedCase
from kcheck.store import Store

if TYPE_CHECKING:
    from kcheck.emit import Form
    from kcheck.loader import LoadedTarget
    from kcheck.protocol import Judgement


@click.command("replay")
@click.argument("finding", shell_complete=completion.findings)
@click.option(
    "--target",
    "spec",
    shell_complete=completion.targets,
    help="The target, where FINDING belongs to none that is built in or discovered.",
)
@click.option(
    "--emit",
    type=click.Choice(["pytest", "script"]),
    help="Instead of telling, write a stand-alone test that needs torch, Triton and your module, and no kcheck.",
)
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    help="File for --emit; standard output if not given.",
)
@click.option("--force", is_flag=True, help="With --emit: overwrite the file.")
@click.option("--program", metavar="X[,Y[,Z]]", help="With --pdb: stop in this program.")
@click.option("--pdb", "debug", is_flag=True, help="Stop in the kernel, in Python's debugger (CPU).")
@options.case_timeout
@options.backend
@display.look
@options.directory
def command(
    finding: str,
    spec: str | None,
    emit: Form | None,
    output: Path | None,
    force: bool,
    program: str | None,
    debug: bool,
    case_timeout: float,
    backend: str,
    look: display.DisplayOptions,
    directory: Path,
) -> int:
    """Run the case of FINDING again: a fingerprint, or the path of a saved case.

    What a tool of kcheck sanitize found runs under the same tool again.

    Exit code 1 if the finding is still there, 0 if it is gone, 3 if the case could not be checked. With --emit: 0 if
    the test is written; it was run once, and fails if and only if the finding is still there. 3 if it is written and
    could not be tried, since the wrapper asks for a GPU that is not here.
    """
    from kcheck.cli.emission import Emission, check_possible
    from kcheck.cli.emission import emit as write_test
    from kcheck.client import Client

    store = Store(directory).open()
    saved = store.find(finding, spec or "")
    emission = Emission(emit, output, force) if emit else None
    if emission is not None:
        check_possible(saved, emission)
    elif output is not None or force:
        raise UsageError("-o and --force are for the file of --emit; say --emit pytest or --emit script")
    name = spec or _trusted(saved)
    if debug:
        return _debug(saved, _sole(name), backend, program)
    if program:
        raise UsageError("--program is for --pdb: it says where to stop")
    if saved.tool == VIEWCHECK:
        wanted = BackendSpec.parse(backend)
        backend = str(replace(wanted, name=VIEWCHECK, on_gpu=wanted.name == "cuda"))
    elif saved.tool and emission is None:
        from kcheck.cli.sanitize import judge_again

        one = _sole(name)
        return tell(saved, one.target.name, one.spec, judge_again(saved, one, store), store, look)
    with Client(options.chosen_backend(backend), store.log, case_timeout=case_timeout) as client:
        one = _sole(name)
        client.load(one.spec)
        if emission is not None:
            return write_test(saved, one, client, emission)
        judgement = client.judge(one.spec, saved.case)
        return tell(saved, one.target.name, one.spec, judgement, store, look)


def _debug(saved: SavedCase, one: LoadedTarget, backend: str, program: str | None) -> int:
    """Stop in the kernel, in this process: the terminal is the debugger's.

    Raises:
        UsageError: The program is none, or the backend cannot stop.
        CouldNotCheck: There was nothing to stop at.
    """
    if backend == "cuda":
        raise UsageError("--pdb stops in kernels on the CPU only; leave --backend cuda out")
    parts = program.split(",") if program else []
    if len(parts) > 3 or not all(part.strip().isdigit() for part in parts):
        raise UsageError(f"--program {program}: expected up to three numbers, such as 3,0")
    x, y, z = (*map(int, parts), 0, 0, 0)[:3]
    from kcheck.worker.debug import debug_case

    chosen = backend.replace("auto", "interpret", 1)
    debug_case(one.target, saved.case, chosen, saved.finding, (x, y, z) if program else None)
    return 0


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


def tell(
    saved: SavedCase, target: str, spec: str, judgement: Judgement, store: Store, look: display.DisplayOptions
) -> int:
    """Show what became of a case; what it shows besides the finding is saved too, for its own replay command.

    Returns:
        The exit code.

    Raises:
        CouldNotCheck: It could not be judged.
    """
    from kcheck.events import CaseVerdict, Discovery
    from kcheck.reports.console import make_console
    from kcheck.reports.panel import FindingPanel

    if judgement.verdict is CaseVerdict.COULD_NOT_CHECK:
        raise CouldNotCheck(judgement.reason)
    gone, now = ("gone: ", "now ") if saved.finding else ("", "")  # a case that was running is no finding
    if judgement.verdict is CaseVerdict.REJECTED:
        click.echo(f"{gone}{target} {now}rejects the case: {judgement.reason}")
        return 0
    if not judgement.findings:
        click.echo(f"{gone}{target} passes the case")
        return 0
    import sys

    console = make_console(sys.stdout, color=look.color, width=look.width)
    prints = [finding.fingerprint(target) for finding in judgement.findings]
    for finding, fingerprint in zip(judgement.findings, prints, strict=True):
        view = saved.case.views.get(finding.argument)
        kinds = tuple(sorted(view.kinds)) if view else ()
        discovery = Discovery(
            target, spec, finding, fingerprint, saved.case, kinds, directory=store.unusual, tool=saved.tool
        )
        if store.saved(discovery) is None:
            store.save(discovery)
        console.print(FindingPanel(discovery), crop=False)
    if saved.fingerprint and saved.fingerprint not in prints:
        click.echo(f"{saved.fingerprint} is gone, but the case shows something else")
    return 1
