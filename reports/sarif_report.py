"""The SARIF 2.1.0 report, for code scanning: a result per finding at the kernel's line, a rule per kind.

https://docs.oasis-open.org/sarif/sarif/v2.1.0/sarif-v2.1.0.html. GitHub refuses a file with a result that has no
location, shows 5,000 results of a run, and takes paths relative to the repository.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from kcheck.events import Discovery, TargetResult
from kcheck.findings import Kind
from kcheck.reports.finding_text import caller
from kcheck.reports.kinds import HELP
from kcheck.reports.location import Location, frame_location, locate, project_root
from kcheck.reports.record import RunRecord
from kcheck.reports.verdict import could_not_check
from kcheck.reports.view_text import scalars
from kcheck.reports.wording import counted, cut, plain

_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
_MOST_RESULTS = 5_000
_KINDS = tuple(Kind)
_UNCHECKED = "could-not-check"


def render_sarif(record: RunRecord) -> str:
    """The report of a run as a SARIF log."""
    log = {"$schema": _SCHEMA, "version": "2.1.0", "runs": [_run(record)]}
    return json.dumps(log, indent=2, allow_nan=False) + "\n"


def _run(record: RunRecord) -> dict[str, Any]:
    root = project_root()
    results = record.outcomes()
    found = [discovery for result in results for discovery in result.discoveries]
    found.sort(key=lambda discovery: (discovery.known != "", discovery.finding.severity.rank))
    notifications = _notifications(record, results)
    if len(found) > _MOST_RESULTS:
        sentence = f"{counted(len(found) - _MOST_RESULTS, 'finding')} left out: code scanning takes {_MOST_RESULTS:,}."
        notifications.append(_notification(sentence, "error"))
    whole = not record.interrupted and not any(could_not_check(result) for result in results)
    return {
        "tool": {"driver": _driver(record)},
        "invocations": [{"executionSuccessful": whole, "toolExecutionNotifications": notifications}],
        "originalUriBaseIds": {"SRCROOT": {"uri": f"file://{_path(root).rstrip('/')}/"}},
        "columnKind": "unicodeCodePoints",
        "results": [_result(discovery, record, root) for discovery in found[:_MOST_RESULTS]],
        "properties": {"backend": plain(record.backend), "seed": record.seed, "versions": _plain(record.versions)},
    }


def _driver(record: RunRecord) -> dict[str, Any]:
    driver: dict[str, Any] = {"name": "kcheck", "rules": [_rule(kind) for kind in _KINDS]}
    driver["notifications"] = [
        {"id": _UNCHECKED, "shortDescription": {"text": "A target could not be checked. This is not a pass."}}
    ]
    if "kcheck" in record.versions:
        driver["version"] = plain(record.versions["kcheck"])
    return driver


def _rule(kind: Kind) -> dict[str, Any]:
    text = HELP[kind]
    return {
        "id": kind.value,
        "name": "".join(word.capitalize() for word in kind.split("-")),
        "shortDescription": {"text": text.meaning},
        "fullDescription": {"text": text.meaning},
        "help": {"text": f"{text.meaning} {text.cure}", "markdown": f"{text.meaning}\n\n{text.cure}"},
        "defaultConfiguration": {"level": "error"},
        "properties": {"precision": "very-high", "tags": ["correctness", "gpu"]},
    }


def _notifications(record: RunRecord, results: Sequence[TargetResult]) -> list[dict[str, Any]]:
    """What there is to say of the run itself: what could not be checked first."""
    said = [_notification("The run was interrupted.", "error")] if record.interrupted else []
    for result in filter(could_not_check, results):
        level = "warning" if result.allowed else "error"
        for reason in result.reasons or ("no reason is known",):
            sentence = f"{result.name} could not be checked: {cut(reason)}"
            said.append(_notification(sentence, level) | {"descriptor": {"id": _UNCHECKED, "index": 0}})
    for result in results:
        said += [_notification(f"{result.name}: {cut(gone.message)}", "error") for gone in result.gone]
        said += [_notification(f"{result.name}: {cut(note)}", "note") for note in result.notes]
    return said


def _notification(sentence: str, level: str) -> dict[str, Any]:
    return {"level": level, "message": {"text": _message(sentence)}}


def _result(discovery: Discovery, record: RunRecord, root: Path) -> dict[str, Any]:
    finding = discovery.finding
    place = locate(discovery)
    location = _location(place, root)
    if finding.source and place.line == finding.line:
        location["physicalLocation"]["region"]["snippet"] = {"text": plain(cut(finding.source))}
    if finding.kernel:
        location["logicalLocations"] = [{"name": plain(finding.kernel), "kind": "function"}]
    view = discovery.case.views.get(finding.argument)
    layout = f"{finding.argument} = {view.code}\n" if view else ""
    result: dict[str, Any] = {
        "ruleId": finding.kind.value,
        "ruleIndex": _KINDS.index(finding.kind),
        "level": finding.severity.value,
        "message": {"text": _message(f"{cut(finding.message)}\n{layout}Replay: {discovery.replay}")},
        "locations": [location],
        "partialFingerprints": {"kcheck/v1": plain(discovery.fingerprint)},
        "properties": _plain(
            {
                "target": discovery.target,
                "replay": discovery.replay,
                "seed": str(record.seed),
                **{f"argument {name}": f"{view.role}, {view.code}" for name, view in discovery.case.views.items()},
                **{f"argument {name}": cut(value) for name, value in scalars(discovery.case).items()},
            }
        ),
    }
    # A recursive function has a frame twice: the schema wants each place once.
    callers = {caller(frame): frame for frame in reversed(finding.chain[:-1]) if frame.file}
    if callers:
        result["relatedLocations"] = [
            _location(frame_location(frame), root) | {"message": {"text": _message(says)}}
            for says, frame in callers.items()
        ]
    if discovery.known:
        justification = plain(discovery.known)
        result["suppressions"] = [{"kind": "external", "status": "accepted", "justification": justification}]
    return result


def _location(location: Location, root: Path) -> dict[str, Any]:
    below = location.below(root)
    artifact = (
        {"uri": f"file://{_path(location.file)}"} if below is None else {"uri": _path(below), "uriBaseId": "SRCROOT"}
    )
    return {"physicalLocation": {"artifactLocation": artifact, "region": {"startLine": location.line}}}


def _path(path: Path) -> str:
    return quote(plain(str(path)))


def _message(text: str) -> str:
    """The text of a message. ``[text](target)`` would be a link in it."""
    return plain(text).replace("](", "] (")


def _plain(values: Any) -> dict[str, str]:
    return {plain(str(name)): plain(str(value)) for name, value in values.items()}
