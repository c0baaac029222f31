"""The panel of one finding: what, where, which argument and layout, the picture, how to see it again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.text import Text

from kcheck.events import Discovery
from kcheck.findings import Finding, Kind, Mismatch, Severity
from kcheck.layout import Layout
from kcheck.reports.fact import Hanging, Indented, SourceView, fact, unwrapped
from kcheck.reports.picture import whereabouts
from kcheck.reports.picture_view import BackingPicture
from kcheck.reports.source import excerpt
from kcheck.reports.view_text import code_text, scalars, view_facts
from kcheck.reports.wording import bracketed, counted, nearest_path, number, plain, size

_WIDEST = 120  # columns; longer lines read badly
SEVERITY_STYLES = {Severity.ERROR: "bold red", Severity.WARNING: "bold yellow", Severity.NOTE: "bold blue"}
_SAID = {
    Kind.OUT_OF_VIEW_READ: "read outside the view",
    Kind.OUT_OF_VIEW_WRITE: "written outside the view",
    Kind.OUT_OF_BOUNDS_READ: "read out of bounds",
    Kind.OUT_OF_BOUNDS_WRITE: "written out of bounds",
    Kind.UNWRITTEN_OUTPUT: "never written",
    Kind.INPUT_MUTATED: "changed",
    Kind.VALUE_MISMATCH: "wrong value",
    Kind.LAYOUT_VARIANCE: "differs from the contiguous copy's",
    Kind.NONDETERMINISM: "differs between runs",
}


class FindingPanel:
    """A renderable: everything about one discovery. Print it with ``crop=False``: the replay command never wraps.

    Args:
        discovery: The bug.
    """

    def __init__(self, discovery: Discovery) -> None:
        self._found = discovery
        self._finding = discovery.finding
        self._views = discovery.case.views

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        options = options.update_width(min(options.max_width, _WIDEST))
        for section in self._sections(options):
            yield from console.render(section, options)

    def _sections(self, options: ConsoleOptions) -> Iterator[RenderableType]:
        yield _title(self._finding, options)
        yield Hanging(self._finding.message)
        yield Text()
        yield from _where(self._finding)
        yield from self._argument()
        yield from _mismatch(self._finding.mismatch)
        yield from self._cause()
        yield from self._rest()
        yield fact("replay", f"this case of {self._found.target} again:")
        yield unwrapped(Text(f"    {plain(self._found.replay)}", "bold"))
        yield Text()

    def _argument(self) -> Iterator[RenderableType]:
        finding = self._finding
        view = self._views.get(finding.argument)
        if view is None:
            if finding.argument:
                yield fact("argument", finding.argument)
            yield from _access(finding)
            return
        yield fact("argument", code_text(finding.argument, view))
        yield fact("", view_facts(view))
        elsewhere = [kind.value for kind in self._found.layout_kinds if kind not in view.kinds]
        if elsewhere:
            yield fact("", f"also seen in other layouts: {', '.join(elsewhere)}")
        if finding.parameter and finding.parameter != finding.argument:
            yield fact("", f"the kernel calls it {finding.parameter}")
        yield from _access(finding)
        wrong = _wrong_cells(finding, view.layout)
        if wrong and view.layout.index_at(wrong[0]) is None:
            where = whereabouts(finding.argument, view.layout, wrong[0], self._sharing(finding.argument))
            yield fact("" if finding.index or finding.program else "first", where)
        yield from self._picture(finding.argument, wrong, _SAID.get(finding.kind, "wrong"), rows=12)

    def _sharing(self, argument: str) -> dict[str, Layout]:
        """Other views of the argument's backing."""
        backing = self._views[argument].backing
        return {n: view.layout for n, view in self._views.items() if n != argument and view.backing == backing}

    def _picture(self, argument: str, wrong: Sequence[int], said: str, rows: int) -> Iterator[RenderableType]:
        view = self._views[argument]
        backing = self._found.case.backings[view.backing]
        yield Text()
        yield fact("backing", f"{counted(backing.numel, 'element')} of {backing.dtype}, {size(backing.nbytes)}")
        others = self._sharing(argument)
        yield Indented(BackingPicture(argument, view.layout, wrong, others=others, said=said, rows=rows), by=4)
        yield Text()

    def _cause(self) -> Iterator[RenderableType]:
        culprit = self._found.culprit
        if culprit:
            yield fact("culprit", f"the layout of {culprit}: with {culprit} made contiguous the finding is gone")
            if culprit != self._finding.argument and culprit in self._views:
                yield fact("", code_text(culprit, self._views[culprit]))
                yield fact("", view_facts(self._views[culprit]))
                yield from self._picture(culprit, (), "", rows=6)
        for i, related in enumerate(self._found.related):
            argument = f" of {related.argument}" if related.argument else ""
            yield fact("" if i else "related", f"{related.kind}{argument}: {related.message}")
        for i, note in enumerate(self._finding.notes):
            yield fact("" if i else "note", note)

    def _rest(self) -> Iterator[RenderableType]:
        shown = {self._finding.argument, self._found.culprit}
        label = "with"
        for name, view in self._views.items():
            if name not in shown:
                yield fact(label, code_text(name, view))
                label = ""
        plain_values = scalars(self._found.case)
        if plain_values:
            yield fact(label, ", ".join(f"{name} = {value}" for name, value in plain_values.items()))
        seen = f"seen in {counted(self._found.seen, 'case')}, this is the smallest"
        yield fact("case", seen if self._found.minimal else f"{seen} so far: shrinking was interrupted")


def _title(finding: Finding, options: ConsoleOptions) -> Text:
    dash = "-" if options.ascii_only else "━"
    parts = [finding.kind.value, finding.argument, f"kernel {finding.kernel}" if finding.kernel else ""]
    style = SEVERITY_STYLES[finding.severity]
    title = Text.assemble(
        (f"{dash * 2} {finding.severity.upper()} ", style), (plain(" · ".join(filter(None, parts))), "bold"), " "
    )
    return title.append(dash * (options.max_width - title.cell_len), style)


def _where(finding: Finding) -> Iterator[RenderableType]:
    if not finding.file and not finding.source:
        return
    inside = f", in {finding.chain[-1].function}" if finding.chain else ""
    place = f"{nearest_path(finding.file)}:{finding.line}" if finding.line else nearest_path(finding.file)
    yield fact("where", (place or "unknown file") + inside)
    lines = excerpt(finding.file, finding.line, finding.source)
    if lines:
        yield Indented(SourceView(lines), by=4)
    for frame in reversed(finding.chain[:-1]):
        yield fact("", f"called from {nearest_path(frame.file)}:{frame.line}, in {frame.function}")
        lines = excerpt(frame.file, frame.line, frame.source, context=0)
        if lines:
            yield Indented(SourceView(lines), by=4)
    yield Text()


def _access(finding: Finding) -> Iterator[RenderableType]:
    if finding.count:
        spread = f" in {counted(finding.programs, 'program')}" if finding.programs else ""
        yield fact("wrong", counted(finding.count, "lane" if finding.programs else "element") + spread)
    element = f"{finding.argument}{bracketed(finding.index)}" if finding.index else ""
    program = f"by program ({', '.join(map(str, finding.program))})" if finding.program else ""
    if element or program:
        yield fact("first", ", ".join(filter(None, (element, program))))
    if finding.landed:
        yield fact("landed in", finding.landed)


def _wrong_cells(finding: Finding, layout: Layout) -> tuple[int, ...]:
    """Backing elements to mark, the first wrong one first."""
    cells = finding.cells
    mismatch = finding.mismatch
    if not cells and mismatch is not None and mismatch.output == finding.argument:
        cells = tuple(layout.offset_of(index) for index, _, _ in mismatch.examples if len(index) == layout.rank)
    if len(finding.index) != layout.rank or not (cells or finding.index):
        return cells
    first = layout.offset_of(finding.index)
    return (first, *(cell for cell in cells if cell != first)) if first in cells or not cells else cells


def _mismatch(mismatch: Mismatch | None) -> Iterator[RenderableType]:
    if mismatch is None:
        return
    share = f" ({mismatch.count / mismatch.total:.1%})" if mismatch.total else ""
    elements = f"{mismatch.count:,} of {counted(mismatch.total, 'element')} of {mismatch.output}"
    yield fact("values", f"{elements}{share} differ from the {mismatch.against}")
    error = abs(mismatch.actual - mismatch.expected)
    yield fact(
        "",
        f"worst at {bracketed(mismatch.worst)}: {number(mismatch.actual)} instead of {number(mismatch.expected)}, "
        f"off by {number(error)}, allowed {number(mismatch.allowed)}",
    )
    if mismatch.examples:
        cells = [("index", "actual", "expected")]
        cells += [(bracketed(index), number(actual), number(expected)) for index, actual, expected in mismatch.examples]
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        for line in cells:
            yield fact("", "  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True)))
    yield Text()
