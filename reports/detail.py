"""How much the console tells."""

from __future__ import annotations

import enum


class Detail(enum.Enum):
    """How much the console tells."""

    QUIET = "quiet"  # findings, and a line a target
    USUAL = "usual"
    VERBOSE = "verbose"  # every case, rejection and replaced worker too
