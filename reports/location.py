"""Where a finding is, as a file and a line that other programs can open."""

from __future__ import annotations

import os
import re
import sys
from dataclasses import dataclass
from pathlib import Path

from kcheck.events import Discovery
from kcheck.findings import SourceFrame


@dataclass(frozen=True, slots=True)
class Location:
    """A line of a file.

    Attributes:
        file: Absolute path.
        line: From 1.
    """

    file: Path
    line: int

    def below(self, root: Path) -> Path | None:
        """The file's path relative to `root`; None if it does not lie below it."""
        return self.file.relative_to(root) if self.file.is_relative_to(root) else None


def project_root() -> Path:
    """The folder that paths in machine formats are relative to: of the git repository, else the current one."""
    here = Path.cwd()
    return next((folder for folder in (here, *here.parents) if (folder / ".git").exists()), here)


def locate(discovery: Discovery) -> Location:
    """The faulty line; of a finding without one (a crash) the line of its target."""
    finding = discovery.finding
    if finding.file and not finding.file.startswith("<"):
        return _line(finding.file, finding.line)
    spec = discovery.spec
    if spec.startswith("builtin:"):
        spec = f"kcheck.targets.{spec[8:]}:{spec[8:]}"
    place, _, name = spec.partition(":")
    file = place if place.endswith(".py") else _module_file(place)
    return _line(file, _declaration(file, name.removeprefix(":")))


def frame_location(frame: SourceFrame) -> Location:
    """The line of a frame."""
    return _line(frame.file, frame.line)


def _module_file(module: str) -> str:
    """The file of a module as it is loaded; in a report that was read back it may not be."""
    return getattr(sys.modules.get(module), "__file__", None) or f"{module.replace('.', os.sep)}.py"


def _declaration(file: str, name: str) -> int:
    """The line of ``def name``, 1 if there is none."""
    try:
        text = Path(file).read_text(encoding="utf-8", errors="replace")
    except (OSError, ValueError):
        return 1
    found = re.search(rf"^[ \t]*def {re.escape(name)}\b", text, re.MULTILINE)
    return text.count("\n", 0, found.start()) + 1 if found else 1


def _line(file: str, line: int) -> Location:
    return Location(Path(os.path.abspath(file)), max(line, 1))
