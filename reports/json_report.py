"""The JSON report, schema ``kcheck.report/1``: everything that a run found, for programs. `json_reader` reads it back.

JSON has no NaN and no infinities: such numbers are the strings ``"nan"``, ``"inf"`` and ``"-inf"``.
"""

from __future__ import annotations

import json
import math
from dataclasses import asdict
from typing import Any

from kcheck.document import case_to_json
from kcheck.events import Discovery, TargetResult
from kcheck.reports.record import RunRecord

REPORT_SCHEMA = "kcheck.report/1"


def render_json(record: RunRecord) -> str:
    """The report of a run as a JSON text."""
    return json.dumps(strict(report_to_json(record)), indent=2, allow_nan=False) + "\n"


def report_to_json(record: RunRecord) -> dict[str, Any]:
    """The report of a run as plain data."""
    data: dict[str, Any] = {
        "schema": REPORT_SCHEMA,
        "versions": dict(record.versions),
        "backend": record.backend,
        "seed": record.seed,
        "run": dict(record.identity),
        "interrupted": record.interrupted,
        "seconds": round(record.seconds, 6),
        "selected": list(record.targets),
        "targets": [target_to_json(result) for result in record.results],
    }
    if record.shard is not None:
        data["shard"] = {"index": record.shard.index, "of": record.shard.of}
    if record.joined:
        data["joined"] = list(record.joined)
    return data


def target_to_json(result: TargetResult) -> dict[str, Any]:
    """What came out of one target."""
    return {
        "name": result.name,
        "verdict": result.verdict.value,
        "reason": " ".join(result.reasons),
        "reasons": list(result.reasons),
        "notes": list(result.notes),
        "cases": {verdict.value: count for verdict, count in result.cases.items()},
        "seconds": round(result.seconds, 6),
        "launches": dict(result.launches),
        "matrix": {
            argument: {kind.value: cell.value for kind, cell in row.items()} for argument, row in result.matrix.items()
        },
        "findings": [discovery_to_json(discovery) for discovery in result.discoveries],
        "gone": [asdict(gone) for gone in result.gone],
        "allowed": result.allowed,
        "evidence": None if result.evidence is None else asdict(result.evidence),
    }


def discovery_to_json(discovery: Discovery) -> dict[str, Any]:
    """One bug: the finding's own fields, and beside them the case, the replay command and what the run learned."""
    return discovery.finding.to_json() | {
        "target": discovery.target,
        "spec": discovery.spec,
        "directory": discovery.directory,
        "options": list(discovery.options),
        "fingerprint": discovery.fingerprint,
        "layout_kinds": [kind.value for kind in discovery.layout_kinds],
        "layouts": {name: view.code for name, view in discovery.case.views.items()},
        "seen": discovery.seen,
        "culprit": discovery.culprit,
        "minimal": discovery.minimal,
        "related": [finding.to_json() for finding in discovery.related],
        "case": case_to_json(discovery.case),
        "replay": discovery.replay,
        "known": discovery.known,
        "tool": discovery.tool,
    }


def strict(value: Any) -> Any:
    """The data with every non-finite number as a string."""
    if isinstance(value, dict):
        return {key: strict(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [strict(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value
