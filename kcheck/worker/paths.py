"""The path that a kernel took to a bad access."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from itertools import groupby

from kcheck.case import Case
from kcheck.dtypes import dtype_named
from kcheck.findings import Finding
from kcheck.layout import Layout
from kcheck.worker.backends.base import Fault, Traced, Watch

MAX_PATH = 64  # elements kept


def traced(faults: Iterable[Fault]) -> Traced:
    """What to take down in the next run."""
    return frozenset((fault.frame.file, fault.frame.line, fault.program) for fault in faults)


def with_paths(case: Case, findings: Iterable[Finding], watch: Watch) -> list[Finding]:
    """Findings with the path that the kernel took to the bad access, where a run took it down."""
    found = []
    for finding in findings:
        offsets = watch.paths.get((finding.file, finding.line), [])
        view = case.views.get(finding.argument)
        path = () if view is None else _path(view.layout, offsets, dtype_named(view.dtype).itemsize)
        if len(path) > 1:
            kept = path if len(path) <= MAX_PATH else (*path[: MAX_PATH - 1], path[-1])
            finding = replace(finding, path=kept, steps=len(path))
        found.append(finding)
    return found


def _path(layout: Layout, offsets: Iterable[int], size: int) -> tuple[int, ...]:
    """Elements up to the first one outside of the view; nothing if there is none."""
    path = []
    for element, _ in groupby(layout.first + offset // size for offset in offsets):
        path.append(element)
        if layout.index_at(element) is None:
            return tuple(path)
    return ()
