"""A case in a file: a finding that was kept, the case that was running, or a bare case."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kcheck.case import Case
from kcheck.document import case_from_json
from kcheck.errors import InvalidDocument, UsageError
from kcheck.findings import Finding

FINDING_SCHEMA = "kcheck.finding/1"


@dataclass(frozen=True, slots=True)
class SavedCase:
    """A case read from a file, with what the file says about it.

    Attributes:
        spec: The target that it belongs to, ``""`` if the file does not say.
        case: The case.
        finding: The finding that it shows, if the file holds one.
        fingerprint: Of that finding, ``""`` without one.
        tool: The tool of compute-sanitizer that showed it, ``""`` if kcheck itself did.
    """

    spec: str
    case: Case
    finding: Finding | None = None
    fingerprint: str = ""
    tool: str = ""


def read_case(path: Path) -> SavedCase:
    """Read a finding file, a ``running.json``, or a bare case.

    Raises:
        UsageError: The file cannot be read.
        InvalidDocument: It is not one of these.
    """
    try:
        data = json.loads(path.read_text())
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from None
    except ValueError as error:
        raise InvalidDocument(str(path), f"is not JSON: {error}") from None
    try:
        return _saved_case(data)
    except InvalidDocument as error:
        raise InvalidDocument(f"{path}: {error.where}", error.problem) from None


def _saved_case(data: Any) -> SavedCase:
    if not isinstance(data, dict) or data.get("schema") != FINDING_SCHEMA:
        return SavedCase("", case_from_json(data))
    case = case_from_json(data.get("case"))
    finding = None
    if data.get("finding") is not None:
        try:
            finding = Finding.from_json(data["finding"])
        except (KeyError, TypeError, ValueError) as error:
            raise InvalidDocument("finding", f"is malformed: {error}") from None
    texts = (str(data.get(key, "")) for key in ("fingerprint", "tool"))
    return SavedCase(str(data.get("target", "")), case, finding, *texts)
