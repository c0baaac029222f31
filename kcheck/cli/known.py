"""``--baseline`` and ``--write-baseline``: which findings are known in a run, and the list that it leaves behind."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from kcheck.errors import TargetLoadError, UsageError

if TYPE_CHECKING:
    from kcheck.baseline import Known
    from kcheck.events import RunDone
    from kcheck.loader import LoadedTarget

KnownByTarget = dict[str, tuple["Known", ...]]


def known_findings(path: Path | None, selected: Sequence[LoadedTarget], found_by: Sequence[str]) -> KnownByTarget:
    """What the baseline lists for the targets of a run.

    Args:
        path: The baseline; None for none.
        selected: The targets.
        found_by: Backend and tools of the run; what others found is none of its business.

    Returns:
        Entries by the target's name, as the user gives it.

    Raises:
        UsageError: The file is malformed, an entry has no issue, or its target does not exist.
    """
    from kcheck import baseline

    if path is None:
        return {}
    known = baseline.read(path)
    specs = {one.spec: baseline.entries_of(known, one.spec) for one in selected}
    covered = {id(entry) for entries in specs.values() for entry in entries}
    for entry in known:
        if id(entry) not in covered:
            _check_exists(entry.target, selected, path)
    return {spec: tuple(entry for entry in entries if entry.found_by in found_by) for spec, entries in specs.items()}


def check_writable(path: Path | None) -> None:
    """Check before the run that the baseline can be written after it, and that what it holds can be kept.

    Raises:
        UsageError: It cannot.
    """
    from kcheck import baseline

    if path is None:
        return
    if path.exists():
        baseline.read(path, drafts=True)
    if path.is_dir() or not os.access(path if path.exists() else path.parent, os.W_OK):
        raise UsageError(f"the baseline {path} cannot be written; name a file in a folder that exists")


def write_baseline(path: Path, done: RunDone, backend: str) -> str:
    """Bring the baseline up to date with a run.

    Returns:
        What there is to do now, in one sentence.
    """
    from kcheck import baseline

    before = baseline.read(path, drafts=True) if path.exists() else ()
    found = [d for result in done.results for d in result.discoveries if d.seen]
    gone = [one.fingerprint for result in done.results for one in result.gone]
    after = baseline.updated(before, (baseline.known_of(one, backend) for one in found), gone)
    baseline.write(path, after)
    drafts = sum(not entry.issue for entry in after)
    todo = f", {drafts} of them without an issue: fill it in" if drafts else ""
    return f"{path} lists {len(after)} finding{'' if len(after) == 1 else 's'}{todo}"


def _check_exists(spec: str, selected: Sequence[LoadedTarget], path: Path) -> None:
    """Check a target that is not part of the run, as far as that needs no import.

    Raises:
        UsageError: There is no such target.
    """
    from kcheck import loader

    place, _, name = spec.partition("::")
    if place.endswith(".py"):
        missing = not Path(place).is_file()
        imported = name != "" and any(_same_file(one.spec, place) for one in selected)
    else:
        missing = spec.startswith(loader.BUILTIN) and spec.removeprefix(loader.BUILTIN) not in loader.builtin_names()
        imported = spec.partition(":")[0] in sys.modules
    try:
        if missing:
            raise TargetLoadError(f"there is no {place}")
        if imported:
            loader.load(spec)
    except TargetLoadError as error:
        raise UsageError(f"the baseline {path} lists a target that does not exist: {error}") from None


def _same_file(spec: str, place: str) -> bool:
    return Path(spec.partition("::")[0]).absolute() == Path(place).absolute()
