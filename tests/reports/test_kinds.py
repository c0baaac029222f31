"""Help on the kinds of findings."""

from __future__ import annotations

import pytest

from kcheck.findings import Kind
from kcheck.reports.kinds import HELP


@pytest.mark.parametrize("kind", list(Kind))
def test_every_kind_has_help(kind: Kind) -> None:
    """Whole sentences, short enough for code scanning, which takes 1,024 characters."""
    text = HELP[kind]
    for sentence in (text.meaning, text.cure):
        assert sentence[0].isupper()
        assert sentence[-1] == "."
        assert len(sentence) < 400
