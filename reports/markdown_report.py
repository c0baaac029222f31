"""The Markdown report, for a comment on a pull request or a job summary: a table of verdicts, a section per finding."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kcheck.events import Discovery, TargetResult
from kcheck.findings import Finding
from kcheck.reports import finding_text
from kcheck.reports.console import render
from kcheck.reports.fact import SourceView
from kcheck.reports.markdown_text import code, fence, link, prose
from kcheck.reports.picture import whereabouts
from kcheck.reports.picture_view import BackingPicture
from kcheck.reports.record import RunRecord
from kcheck.reports.source import excerpt
from kcheck.reports.verdict import cases, conditions, could_not_check, headline, known, new, verdict
from kcheck.reports.view_text import code_text, scalars, view_facts
from kcheck.reports.wording import counted, cut, duration

MOST_BYTES = 65_000  # a comment on GitHub takes 65,536 characters
_WIDTH = 120  # columns of drawings
_LONGEST_LINE = 500  # characters of a line of code


def render_markdown(record: RunRecord) -> str:
    """The report of a run as Markdown that fits into a comment on GitHub."""
    return fitted(sections(record), MOST_BYTES)


def fitted(parts: Sequence[str], most: int) -> str:
    """The sections that fit, whole, and a sentence on those that do not.

    Args:
        parts: The sections, the most important first; the first one is always kept.
        most: Bytes of UTF-8.
    """
    room = most - 200  # for the sentence
    kept: list[str] = []
    for part in parts:
        needed = len(part.encode("utf-8", errors="backslashreplace")) + 2
        if needed <= room or not kept:
            kept.append(part)
            room -= needed
    if len(kept) < len(parts):
        left_out = counted(len(parts) - len(kept), "section")
        kept.append(f"*{left_out} left out for want of room. The other reports have them all.*")
    return "\n\n".join(kept) + "\n"


def sections(record: RunRecord) -> list[str]:
    """The report, section by section: verdict, table, what could not be checked, findings, known ones, notes."""
    results = record.outcomes()
    fresh = new(results)
    parts = [f"## kcheck: {prose(headline(record))}\n\n{prose(conditions(record))}", _table(results)]
    parts += _unchecked(results)
    parts += (_finding(discovery, len(results) > 1) for discovery in fresh)
    parts += _known(known(results))
    parts += _notes(results)
    return parts


def _table(results: Sequence[TargetResult]) -> str:
    rows = ["| | target | verdict | cases | time |", "| --- | --- | --- | --- | ---: |"]
    for result in results:
        total = f"{sum(result.cases.values()):,}" + (f" ({cases(result)})" if result.cases else "")
        name, time = code(result.name, cell=True), duration(result.seconds)
        rows.append(f"| {_sign(result)} | {name} | {verdict(result)} | {total} | {time} |")
    return "\n".join(rows)


def _sign(result: TargetResult) -> str:
    if new([result]) or result.gone:
        return "✗"
    if could_not_check(result):
        return "?"
    return "○" if known([result]) else "✓"


def _unchecked(results: Sequence[TargetResult]) -> Iterator[str]:
    lines = [
        f"- {code(result.name)}: {prose(reason)}"
        for result in results
        if could_not_check(result)
        for reason in result.reasons or ("no reason is known",)
    ]
    if lines:
        yield "\n".join(["### Could not check", "", *lines])
    gone = [
        f"- {code(result.name)}: {prose(gone.message)} {link(gone.issue)}" for result in results for gone in result.gone
    ]
    if gone:
        yield "\n".join(["### Gone", "", *gone])


def _known(discoveries: Sequence[Discovery]) -> Iterator[str]:
    if discoveries:
        lines = [
            f"- {code(found.target)}: {prose(finding_text.title(found.finding))}: {link(found.known)}, "
            f"{code(found.replay)}"
            for found in discoveries
        ]
        yield "\n".join(["### Known", "", *lines])


def _notes(results: Sequence[TargetResult]) -> Iterator[str]:
    lines = [f"- {code(result.name)}: {prose(note)}" for result in results for note in result.notes]
    if lines:
        yield "\n".join(["### Notes", "", *lines])


def _finding(discovery: Discovery, several: bool) -> str:
    finding = discovery.finding
    target = f" · target {code(discovery.target)}" if several else ""
    return "\n\n".join(
        [
            f"### {finding.severity.upper()} {prose(finding_text.title(finding))}{target}",
            prose(finding.message),
            *_where(finding),
            "\n".join(f"- **{label}:** {prose(text)}" for label, text in _facts(discovery)),
            *_picture(discovery),
            *_values(finding),
            "The case:",
            fence("\n".join(_case(discovery)), "python"),
            "Replay it:",
            fence(discovery.replay, "sh"),
        ]
    )


def _where(finding: Finding) -> Iterator[str]:
    if finding_text.place(finding):
        yield code(finding_text.place(finding))
    lines = excerpt(finding.file, finding.line, finding.source)
    if lines:
        yield fence(render(SourceView(lines), _WIDTH))
    for frame in reversed(finding.chain[:-1]):
        yield code(finding_text.caller(frame))


def _facts(discovery: Discovery) -> Iterator[tuple[str, str]]:
    finding, view = discovery.finding, discovery.case.views.get(discovery.finding.argument)
    if finding.argument:
        yield "argument", f"{finding.argument}: {view_facts(view)}" if view else finding.argument
    if finding.parameter and finding.parameter != finding.argument:
        yield "parameter", finding.parameter
    if view and finding_text.elsewhere(discovery):
        yield "also seen in", finding_text.elsewhere(discovery)
    yield from finding_text.accesses(finding)
    wrong = finding_text.wrong_cells(finding, view.layout) if view else ()
    if view and wrong and view.layout.index_at(wrong[0]) is None:
        others = finding_text.sharing(discovery.case, finding.argument)
        yield "in memory", whereabouts(finding.argument, view.layout, wrong[0], others)
    if discovery.culprit:
        yield "culprit", finding_text.cause(discovery.culprit)
    for related in discovery.related:
        yield "related", finding_text.relation(related)
    for note in finding.notes:
        yield "note", note
    yield "case", finding_text.sightings(discovery)


def _picture(discovery: Discovery) -> Iterator[str]:
    """The backing of the argument, and that of the culprit where it is another one."""
    views = discovery.case.views
    finding = discovery.finding
    for name in dict.fromkeys(filter(views.__contains__, (finding.argument, discovery.culprit))):
        layout = views[name].layout
        own = name == finding.argument
        wrong, path = (finding_text.wrong_cells(finding, layout), finding.path) if own else ((), ())
        others = finding_text.sharing(discovery.case, name)
        said, walked = finding_text.marked(finding), finding_text.walked(finding)
        drawn = BackingPicture(name, layout, wrong, path=path, walked=walked, others=others, said=said)
        yield fence(render(drawn, _WIDTH))


def _values(finding: Finding) -> Iterator[str]:
    mismatch = finding.mismatch
    if mismatch is None:
        return
    yield f"{prose(finding_text.differing(mismatch))}; {prose(finding_text.worst(mismatch))}"
    if mismatch.examples:
        rows = [f"| {' | '.join(map(prose, cells))} |" for cells in finding_text.examples(mismatch)]
        yield "\n".join(["| index | actual | expected |", "| ---: | ---: | ---: |", *rows])


def _case(discovery: Discovery) -> Iterator[str]:
    """The arguments as code, the finding's own first."""
    case = discovery.case
    first = discovery.finding.argument
    for name, view in sorted(case.views.items(), key=lambda item: item[0] != first):
        yield cut(code_text(name, view).plain, _LONGEST_LINE)
    for name, value in scalars(case).items():
        yield cut(f"{name} = {value}", _LONGEST_LINE)
