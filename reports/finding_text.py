"""What reports say of a finding, in the same words everywhere; which backing elements its picture marks."""

from __future__ import annotations

from collections.abc import Iterator

from kcheck.case import Case
from kcheck.events import Discovery
from kcheck.findings import Finding, Kind, Mismatch, SourceFrame
from kcheck.layout import Layout
from kcheck.reports.wording import bracketed, counted, nearest_path, number

_MARKED = {
    Kind.OUT_OF_VIEW_READ: "read outside the view",
    Kind.OUT_OF_VIEW_WRITE: "written outside the view",
    Kind.OUT_OF_BOUNDS_READ: "read out of bounds",
    Kind.OUT_OF_BOUNDS_WRITE: "written out of bounds",
    Kind.UNWRITTEN_OUTPUT: "never written",
    Kind.UNINITIALIZED_READ: "read before it was written",
    Kind.INPUT_MUTATED: "changed",
    Kind.RACE: "touched by two programs",
    Kind.SCATTER_CONFLICT: "written with two values",
    Kind.VALUE_MISMATCH: "wrong value",
    Kind.LAYOUT_VARIANCE: "differs from the contiguous copy's",
    Kind.NONDETERMINISM: "differs between runs",
}


def marked(finding: Finding) -> str:
    """What the marked cells of a picture are: ``read outside the view``."""
    return _MARKED.get(finding.kind, "wrong")


def wrong_cells(finding: Finding, layout: Layout) -> tuple[int, ...]:
    """Backing elements to mark, the first wrong one first.

    Args:
        finding: The finding.
        layout: Layout of its argument.
    """
    cells = finding.cells
    mismatch = finding.mismatch
    if not cells and mismatch is not None and mismatch.output == finding.argument:
        cells = tuple(layout.offset_of(index) for index, _, _ in mismatch.examples if len(index) == layout.rank)
    if len(finding.index) != layout.rank or not (cells or finding.index):
        return cells
    first = layout.offset_of(finding.index)
    return (first, *(cell for cell in cells if cell != first)) if first in cells or not cells else cells


def walked(finding: Finding) -> str:
    """What the path in a picture is: ``path of program (1, 0, 0)``."""
    program = ", ".join(map(str, finding.program))
    return f"path of program ({program}), {counted(finding.steps, 'step')}"


def sharing(case: Case, argument: str) -> dict[str, Layout]:
    """Layouts of the other views of an argument's backing, by name."""
    backing = case.views[argument].backing
    return {name: view.layout for name, view in case.views.items() if name != argument and view.backing == backing}


def title(finding: Finding) -> str:
    """Kind, argument and kernel: ``out-of-view-read · table · kernel gather_kernel``."""
    kernel = f"kernel {finding.kernel}" if finding.kernel else ""
    return " · ".join(filter(None, (finding.kind.value, finding.argument, kernel)))


def place(finding: Finding) -> str:
    """File, line and function; empty where no source is known."""
    if not finding.file and not finding.source:
        return ""
    inside = f", in {finding.chain[-1].function}" if finding.chain else ""
    file = f"{nearest_path(finding.file)}:{finding.line}" if finding.line else nearest_path(finding.file)
    return (file or "unknown file") + inside


def caller(frame: SourceFrame) -> str:
    """A frame that called the faulty one."""
    return f"called from {nearest_path(frame.file)}:{frame.line}, in {frame.function}"


def accesses(finding: Finding) -> Iterator[tuple[str, str]]:
    """How much is wrong, what is first and where it went: a label and a text each."""
    if finding.count:
        spread = f" in {counted(finding.programs, 'program')}" if finding.programs else ""
        yield "wrong", counted(finding.count, "lane" if finding.programs else "element") + spread
    element = f"{finding.argument}{bracketed(finding.index)}" if finding.index else ""
    program = f"by program ({', '.join(map(str, finding.program))})" if finding.program else ""
    if element or program:
        yield "first", ", ".join(filter(None, (element, program)))
    if finding.landed:
        yield "landed in", finding.landed


def differing(mismatch: Mismatch) -> str:
    """How many elements differ, from what."""
    share = f" ({mismatch.count / mismatch.total:.1%})" if mismatch.total else ""
    elements = f"{mismatch.count:,} of {counted(mismatch.total, 'element')} of {mismatch.output}"
    return f"{elements}{share} differ from the {mismatch.against}"


def worst(mismatch: Mismatch) -> str:
    """The largest difference."""
    return (
        f"worst at {bracketed(mismatch.worst)}: {number(mismatch.actual)} instead of {number(mismatch.expected)}, "
        f"off by {number(abs(mismatch.actual - mismatch.expected))}, allowed {number(mismatch.allowed)}"
    )


def examples(mismatch: Mismatch) -> list[tuple[str, str, str]]:
    """Index, actual and expected value of the first wrong elements."""
    return [(bracketed(index), number(actual), number(expected)) for index, actual, expected in mismatch.examples]


def cause(culprit: str) -> str:
    """Why the culprit is one."""
    return f"the layout of {culprit}: with {culprit} made contiguous the finding is gone"


def relation(related: Finding) -> str:
    """A finding with the same cause."""
    argument = f" of {related.argument}" if related.argument else ""
    return f"{related.kind}{argument}: {related.message}"


def sightings(discovery: Discovery, *, so_far: bool = False) -> str:
    """How often it was seen, and whether the case is the smallest.

    Args:
        discovery: The bug.
        so_far: The run goes on, and may show it more often.
    """
    seen = f"seen in {counted(discovery.seen, 'case')}{' so far' if so_far else ''}, this is the smallest"
    return seen if discovery.minimal else f"{seen} of them: not shrunk to the end"


def elsewhere(discovery: Discovery) -> str:
    """Layout kinds of the argument in other cases that showed the bug, empty if there are none."""
    view = discovery.case.views.get(discovery.finding.argument)
    kinds = view.kinds if view else frozenset()
    return ", ".join(kind.value for kind in discovery.layout_kinds if kind not in kinds)
