"""Every checked load, store and atomic against a model that walks the view in plain Python."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kcheck.worker.backends.base import Place, Region
from kcheck.worker.backends.interpret import InterpretBackend

BACKING = 96  # elements
LANES = 16
DTYPES = [torch.float32, torch.int64, torch.int16, torch.uint8, torch.bfloat16, torch.float64]


@st.composite
def accesses(draw: st.DrawFn) -> dict[str, Any]:
    """A view of a backing of `BACKING` elements, offsets from its first element, and a mask."""
    rank = draw(st.integers(1, 3))
    shape, stride, room = [], [], BACKING - 1
    for _ in range(rank):
        step = draw(st.integers(0, 12))
        size = draw(st.integers(1, min(6, room // step + 1) if step else 6))
        room -= step * (size - 1)
        shape.append(size)
        stride.append(step)
    start = draw(st.integers(0, room))
    low, high = -start - 6, BACKING - start + 6
    return {
        "shape": shape,
        "stride": stride,
        "start": start,
        "offsets": draw(st.lists(st.integers(low, high), min_size=LANES, max_size=LANES, unique=True)),
        "mask": draw(st.lists(st.booleans(), min_size=LANES, max_size=LANES)),
        "dtype": draw(st.sampled_from(DTYPES)),
    }


def _cells(access: dict[str, Any]) -> set[int]:
    """Offsets, from the first element of the view, of its cells."""
    grid = torch.zeros(access["shape"], dtype=torch.int64)
    for dimension, step in enumerate(access["stride"]):
        size = access["shape"][dimension]
        grid = grid + (torch.arange(size) * step).view([-1 if d == dimension else 1 for d in range(grid.dim())])
    return set(grid.flatten().tolist())


@pytest.mark.parametrize("write", [False, True])
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(access=accesses())
def test_every_access_equals_the_model(bugs: Any, write: bool, access: dict[str, Any]) -> None:
    dtype = access["dtype"]
    backing = (torch.arange(BACKING) + 1).to(dtype)
    x = backing.as_strided(access["shape"], access["stride"], access["start"])
    before = backing.clone()
    offsets = torch.tensor(access["offsets"], dtype=torch.int32)
    mask = torch.tensor(access["mask"]).to(torch.int8)
    values, out = (torch.arange(LANES) + 101).to(dtype), torch.zeros(LANES).to(dtype)
    storage = backing.untyped_storage()
    with InterpretBackend().watch([Region("x", x, True)], spans=[(storage.data_ptr(), storage.nbytes())]) as watch:
        bugs.touch[(1,)](x, offsets, mask, out, values, LANES, WRITE=write, BLOCK=LANES)

    cells = _cells(access)
    active = [offset for offset, on in zip(access["offsets"], access["mask"], strict=True) if on]
    bad = [offset for offset in active if offset not in cells]
    expected = before.clone()
    for lane, (offset, on) in enumerate(zip(access["offsets"], access["mask"], strict=True)):
        place = offset + access["start"]
        if write and on and offset in cells:
            expected[place] = values[lane]
        if not write and on and 0 <= place < BACKING:  # a stray read of safe memory yields what is there
            assert out[lane] == before[place]
        if not write and not on:
            assert out[lane] == 0
    assert torch.equal(backing, expected)

    assert len(watch.faults) == bool(bad)
    if bad:
        fault = watch.faults[0]
        inside = 0 <= bad[0] + access["start"] < BACKING
        assert (fault.access, fault.argument, fault.lanes) == ("write" if write else "read", "x", len(bad))
        assert fault.place is (Place.GAP if inside else Place.OUTSIDE)
        assert fault.byte_offset == bad[0] * dtype.itemsize
        if any(access["stride"]):
            reached = sum(i * s for i, s in zip(fault.index, access["stride"], strict=True))
            assert fault.between == (reached != bad[0])


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(size=st.integers(1, 16), extra=st.integers(0, 16), used=st.integers(0, 16))
def test_atomics_equal_the_model(bugs: Any, size: int, extra: int, used: int) -> None:
    backing = torch.zeros(size + extra)
    x = backing[:size]
    with InterpretBackend().watch([Region("x", x, True)]) as watch:
        bugs.add_atomically[(3,)](x, used, BLOCK=16)
    good = min(used, size)
    assert backing.tolist() == [3.0] * good + [0.0] * (size + extra - good)
    assert [fault.lanes for fault in watch.faults] == ([3 * (used - size)] if used > size else [])


def test_model_walks_strided_views() -> None:
    access = {"shape": [2, 3], "stride": [7, 2]}
    reference = np.lib.stride_tricks.as_strided(np.arange(20), (2, 3), (7 * 8, 2 * 8))
    assert _cells(access) == set(reference.ravel().tolist())
