"""The founding table: with the block table narrowed, the wrong kernel is right at 1 request and at no other count."""

from __future__ import annotations

import importlib.util
from pathlib import Path

from kcheck.client import Client
from kcheck.events import CaseVerdict
from kcheck.findings import Kind

BENCHMARK = Path(__file__).parent.parent.parent / "benchmarks" / "founding_table.py"


def test_the_founding_table(client: Client) -> None:
    spec = importlib.util.spec_from_file_location("founding_table", BENCHMARK)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    table = module.founding_table(client)
    right = table["builtin:paged_gather"]
    assert {count: judgement.verdict for count, judgement in right.items()} == dict.fromkeys(
        (1, 2, 4, 8, 16, 32, 64, 128, 256), CaseVerdict.MATCH
    )
    wrong = table["builtin:paged_gather_shape_stride"]
    assert wrong[1].verdict is CaseVerdict.MATCH
    for count in (2, 4, 8, 16, 32, 64, 128, 256):
        assert [(f.kind, f.argument) for f in wrong[count].findings] == [(Kind.OUT_OF_VIEW_READ, "block_table")]
