"""The panel of one finding: what, where, which argument and layout, the picture, how to see it again."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.text import Text

from kcheck.events import Discovery
from kcheck.findings import Finding, Mismatch, Severity
from kcheck.reports import finding_text
from kcheck.reports.fact import Hanging, Indented, SourceView, fact, unwrapped
from kcheck.reports.picture import whereabouts
from kcheck.reports.picture_view import BackingPicture
from kcheck.reports.source import excerpt
from kcheck.reports.view_text import code_text, scalars, view_facts
from kcheck.reports.wording import counted, plain, size

_WIDEST = 120  # columns; longer lines read badly
SEVERITY_STYLES = {Severity.ERROR: "bold red", Severity.WARNING: "bold yellow", Severity.NOTE: "bold blue"}


class FindingPanel:
    """A renderable: everything about one discovery. Print it with ``crop=False``: the replay command never wraps.

    Args:
        discovery: The bug.
        so_far: The run goes on, and may show it more often.
    """

    def __init__(self, discovery: Discovery, *, so_far: bool = False) -> None:
        self._found = discovery
        self._so_far = so_far
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
            yield from _facts(finding_text.accesses(finding))
            return
        yield fact("argument", code_text(finding.argument, view))
        yield fact("", view_facts(view))
        other_layouts = finding_text.elsewhere(self._found)
        if other_layouts:
            yield fact("", f"also seen in other layouts: {other_layouts}")
        if finding.parameter and finding.parameter != finding.argument:
            yield fact("", f"the kernel calls it {finding.parameter}")
        yield from _facts(finding_text.accesses(finding))
        wrong = finding_text.wrong_cells(finding, view.layout)
        if wrong and view.layout.index_at(wrong[0]) is None:
            where = whereabouts(
                finding.argument, view.layout, wrong[0], finding_text.sharing(self._found.case, finding.argument)
            )
            yield fact("" if finding.index or finding.program else "first", where)
        yield from self._picture(finding.argument, wrong, finding_text.marked(finding), rows=12, path=finding.path)

    def _picture(
        self, argument: str, wrong: Sequence[int], said: str, rows: int, path: Sequence[int] = ()
    ) -> Iterator[RenderableType]:
        view = self._views[argument]
        backing = self._found.case.backings[view.backing]
        yield Text()
        yield fact("backing", f"{counted(backing.numel, 'element')} of {backing.dtype}, {size(backing.nbytes)}")
        others = finding_text.sharing(self._found.case, argument)
        walked = finding_text.walked(self._finding)
        yield Indented(
            BackingPicture(argument, view.layout, wrong, path=path, walked=walked, others=others, said=said, rows=rows),
            by=4,
        )
        yield Text()

    def _cause(self) -> Iterator[RenderableType]:
        culprit = self._found.culprit
        if culprit:
            yield fact("culprit", finding_text.cause(culprit))
            if culprit != self._finding.argument and culprit in self._views:
                yield fact("", code_text(culprit, self._views[culprit]))
                yield fact("", view_facts(self._views[culprit]))
                yield from self._picture(culprit, (), "", rows=6)
        for i, related in enumerate(self._found.related):
            yield fact("" if i else "related", finding_text.relation(related))
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
        yield fact("case", finding_text.sightings(self._found, so_far=self._so_far))


def _title(finding: Finding, options: ConsoleOptions) -> Text:
    dash = "-" if options.ascii_only else "━"
    style = SEVERITY_STYLES[finding.severity]
    line = Text.assemble(
        (f"{dash * 2} {finding.severity.upper()} ", style), (plain(finding_text.title(finding)), "bold"), " "
    )
    return line.append(dash * (options.max_width - line.cell_len), style)


def _where(finding: Finding) -> Iterator[RenderableType]:
    if not finding_text.place(finding):
        return
    yield fact("where", finding_text.place(finding))
    lines = excerpt(finding.file, finding.line, finding.source)
    if lines:
        yield Indented(SourceView(lines), by=4)
    for frame in reversed(finding.chain[:-1]):
        yield fact("", finding_text.caller(frame))
        lines = excerpt(frame.file, frame.line, frame.source, context=0)
        if lines:
            yield Indented(SourceView(lines), by=4)
    yield Text()


def _facts(pairs: Iterable[tuple[str, str]]) -> Iterator[RenderableType]:
    return (fact(label, text) for label, text in pairs)


def _mismatch(mismatch: Mismatch | None) -> Iterator[RenderableType]:
    if mismatch is None:
        return
    yield fact("values", finding_text.differing(mismatch))
    yield fact("", finding_text.worst(mismatch))
    if mismatch.examples:
        cells = [("index", "actual", "expected"), *finding_text.examples(mismatch)]
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        for line in cells:
            yield fact("", "  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True)))
    yield Text()
