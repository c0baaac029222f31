"""The HTML report: one file that needs no network, on a screen or printed."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from pathlib import PurePath
from typing import Any
from urllib.parse import urlsplit

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from kcheck.events import Discovery, TargetResult
from kcheck.findings import Finding, Severity
from kcheck.layout import LayoutKind
from kcheck.reports import finding_text, verdict, view_text, wording
from kcheck.reports.html_picture import Drawing, draw
from kcheck.reports.kinds import HELP
from kcheck.reports.matrix import SIGNS, WORDS, rows
from kcheck.reports.record import RunRecord
from kcheck.reports.source import excerpt

_SIGNS = {"findings": "✗", "unchecked": "?", "known": "!", "match": "✓"}
_SEVERITY_SIGNS = {Severity.ERROR: "✗", Severity.WARNING: "!", Severity.NOTE: "i"}
_CULPRIT_ROWS = 4


def render_html(record: RunRecord) -> str:
    """The report of a run as an HTML document."""
    environment = _environment()
    style, script = (_verbatim(environment, name) for name in ("report.css", "report.js"))
    return environment.get_template("report.html.j2").render(
        record=record,
        results=record.outcomes(),
        style=style,
        script=script,
        policy=f"default-src 'none'; style-src {_hash(style)}; script-src {_hash(script)}; "
        "base-uri 'none'; form-action 'none'",
    )


def _environment() -> Environment:
    """Templates that escape all they print; functions of the reports by the name of their module."""
    environment = Environment(
        loader=PackageLoader("kcheck.reports"),
        autoescape=True,
        finalize=_harmless,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals |= {
        "say": finding_text,
        "verdict": verdict,
        "view_text": view_text,
        "wording": wording,
        "excerpt": excerpt,
        "file_and_line": _file_and_line,
        "link": _link,
        "state": _state,
        "signs": _SIGNS,
        "severity_signs": _SEVERITY_SIGNS,
        "cell_signs": SIGNS,
        "cell_words": WORDS,
        "matrix_rows": rows,
        "kinds": tuple(LayoutKind),
        "help": HELP,
        "picture": _picture,
        "culprit_picture": _culprit_picture,
    }
    return environment


def _harmless(value: Any) -> Any:
    """What the template prints: control characters are spelled out, very long texts are cut."""
    return wording.plain(wording.cut(value)) if isinstance(value, str) and not isinstance(value, Markup) else value


def _verbatim(environment: Environment, name: str) -> Markup:
    assert environment.loader is not None
    return Markup(environment.loader.get_source(environment, name)[0])  # a file of this package


def _hash(text: str) -> str:
    """An inline element by its digest, as a Content-Security-Policy names it."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _link(text: str) -> str:
    """The text if it is a link to the web, else ``""``: other schemes can run code."""
    try:
        parts = urlsplit(text)
    except ValueError:
        return ""
    return text if parts.scheme in ("http", "https") and parts.netloc and text.isprintable() else ""


def _state(results: Sequence[TargetResult]) -> str:
    """What results look like, the gravest first; only what was wholly checked looks like a pass."""
    if verdict.new(results) or any(result.gone for result in results):
        return "findings"
    if not results or any(map(verdict.could_not_check, results)):
        return "unchecked"
    return "known" if verdict.known(results) else "match"


def _file_and_line(finding: Finding) -> str:
    """The place in short, for lists."""
    return f"{PurePath(finding.file).name}:{finding.line}" if finding.file and finding.line else ""


def _picture(discovery: Discovery) -> Drawing | None:
    """The backing of the argument at fault."""
    finding = discovery.finding
    wrong = finding_text.wrong_cells(finding, discovery.case.views[finding.argument].layout)
    said, walked = finding_text.marked(finding), finding_text.walked(finding)
    return draw(discovery.case, finding.argument, wrong, said, path=finding.path, walked=walked)


def _culprit_picture(discovery: Discovery) -> Drawing | None:
    """The backing of the argument whose layout is to blame for wrong values elsewhere."""
    return draw(discovery.case, discovery.culprit, rows=_CULPRIT_ROWS)
