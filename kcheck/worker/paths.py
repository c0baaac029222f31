"""The way that a kernel took to a bad access."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from itertools import groupby

from kcheck.case import Case
from kcheck.dtypes import dtype_named
from kcheck.findings import Finding
from kcheck.layout import Layout
from kcheck.worker.backends.base import Fault, Traced, Watch

MAX_STEPS = 12


def traced(faults: Iterable[Fault]) -> Traced:
    """What to take down in the next run."""
    return frozenset((fault.frame.file, fault.frame.line, fault.program) for fault in faults)


def with_paths(case: Case, findings: Iterable[Finding], watch: Watch) -> list[Finding]:
    """Findings with the way that the kernel took to the bad access, where a run took it down."""
    found = []
    for finding in findings:
        path = watch.paths.get((finding.file, finding.line), [])
        view = case.views.get(finding.argument)
        if view is None or len(path) < 2:
            found.append(finding)
            continue
        size = dtype_named(view.dtype).itemsize
        places = groupby(_step(view.layout, view.layout.first + offset // size) for offset in path)
        runs = [(step, len(list(same))) for step, same in places]
        steps = [step if count == 1 else f"{step} ({count} times)" for step, count in runs[:MAX_STEPS]]
        more = "" if len(runs) <= MAX_STEPS else ", …"
        way = f"the way of program {finding.program} through {finding.argument}: {', '.join(steps)}{more}"
        found.append(replace(finding, notes=(*finding.notes, way)))
    return found


def _step(layout: Layout, element: int) -> str:
    index = layout.index_at(element)
    if index is not None:
        return f"[{', '.join(map(str, index))}]"
    return "gap" if 0 <= element < layout.backing_numel else "outside"
