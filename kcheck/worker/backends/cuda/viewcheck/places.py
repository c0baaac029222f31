"""Where an operation stands in the user's source: from the locations of a Triton module."""

from __future__ import annotations

import re
from collections.abc import Mapping

_FILE = re.compile(r'^loc\("(.*)":(\d+):\d+(?: to .*)?\)$')
_CALLSITE = re.compile(r"^loc\(callsite\((#loc\d*) at (#loc\d*)\)\)$")
_NAMED = re.compile(r'^loc\(".*"\((#loc\d*)\)\)$')
_FUSED = re.compile(r"^loc\(fused(?:<.*>)?\[(#loc\d*)")

Line = tuple[str, int]


def chain(location: str, locations: Mapping[str, str]) -> list[Line]:
    """The ``(file, line)`` of an operation, and of the calls that lead there: the kernel's own line first.

    Args:
        location: Name of its location.
        locations: Their definitions.
    """
    definition = locations.get(location, "")
    found = _FILE.match(definition)
    if found:
        return [(found[1], int(found[2]))]
    found = _CALLSITE.match(definition)
    if found:
        return [*chain(found[2], locations), *chain(found[1], locations)]
    found = _NAMED.match(definition) or _FUSED.match(definition)
    return chain(found[1], locations) if found else []
