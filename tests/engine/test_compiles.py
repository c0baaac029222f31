"""Counting compiles."""

from kcheck.engine.compiles import CompileCount
from kcheck.evidence import Evidence


def test_kernels_are_counted_apart_with_their_causes() -> None:
    count = CompileCount()
    count.update([("a", 0.5, False, ""), ("b", 0.01, True, "")])
    count.update([("a", 0.25, False, "stride: i32 → = 1")])
    first, second = Evidence(compiles=count.kernels).notes()
    assert first == (
        "kernel a has 2 specialisations: 2 compiled, 0 from the disk cache, 0.8 s in all; made anew for "
        "stride: i32 → = 1"
    )
    assert second == "kernel b has 1 specialisation: 0 compiled, 1 from the disk cache, 0.0 s in all"


def test_nothing_compiled_says_nothing() -> None:
    assert CompileCount().kernels == {}
