"""Fills: the same numbers by the definition, by numpy, and by the worker's tensors; exact in every data type."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import numpy.typing as npt
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from kcheck.document import case_from_json, case_to_json
from kcheck.dtypes import DTYPES, DType, dtype_named
from kcheck.errors import InvalidDocument
from kcheck.fill import MASK, Fill, hashed, mix
from kcheck.worker.values import values

SEEDS = st.integers(0, MASK)
NAMES = sorted(DTYPES)


def fills(dtype: DType) -> st.SearchStrategy[Fill]:
    if dtype.is_float:
        return st.builds(Fill, seed=SEEDS, exponent=st.integers(*dtype.exponents))
    spans = st.tuples(st.integers(dtype.low, dtype.high), st.integers(0, MASK))
    return st.builds(
        lambda seed, span: Fill(seed=seed, low=span[0], high=min(span[0] + span[1], dtype.high)), SEEDS, spans
    )


def numpy_mix(x: npt.NDArray[np.uint32]) -> npt.NDArray[np.uint32]:
    x = x ^ (x >> np.uint32(16))
    x = x * np.uint32(0x7FEB352D)
    x = x ^ (x >> np.uint32(15))
    x = x * np.uint32(0x846CA68B)
    return x ^ (x >> np.uint32(16))


def numpy_hashed(seed: int, count: int) -> npt.NDArray[np.uint32]:
    """The formula in arithmetic modulo 2**32, which numpy's unsigned integers do by themselves."""
    start = np.arange(count, dtype=np.uint32) + np.uint32(0x9E3779B9 * seed & MASK)
    return numpy_mix(numpy_mix(start) ^ numpy_mix(np.array([seed], dtype=np.uint32)))


@given(SEEDS)
def test_hash_by_numpy(seed: int) -> None:
    assert numpy_hashed(seed, 50).tolist() == [hashed(seed, index) for index in range(50)]


def test_hash_is_frozen() -> None:
    """A change would change every recorded case."""
    assert mix(0) == 0
    assert mix(1) == 0x688990C0
    assert mix(0xDEADBEEF) == 0xE628C683
    assert len({mix(x) for x in range(1 << 16)}) == 1 << 16


@pytest.mark.parametrize("name", NAMES)
@given(data=st.data())
def test_values_by_numpy(name: str, data: st.DataObject) -> None:
    dtype = dtype_named(name)
    fill = data.draw(fills(dtype))
    bits = numpy_hashed(fill.seed, 20).astype(np.uint64)
    if dtype.is_float:
        k = (bits >> np.uint64(31 - dtype.digits)).astype(np.int64) - (1 << dtype.digits)
        expected = np.ldexp(k.astype(np.float64), fill.exponent - dtype.digits).tolist()
    else:
        expected = [fill.low + int(one) % (fill.high - fill.low + 1) for one in bits]
    assert [fill.value(dtype, index) for index in range(20)] == expected


@pytest.mark.parametrize("name", NAMES)
@given(data=st.data())
def test_values_are_exact_and_the_worker_makes_the_same(name: str, data: st.DataObject) -> None:
    dtype = dtype_named(name)
    fill = data.draw(fills(dtype))
    fill.check(dtype, 12)
    made = values(fill, name, (3, 4))
    assert made.dtype == getattr(torch, name)
    assert made.shape == (3, 4)
    wide = made.to(torch.float64 if dtype.is_float else torch.int64).flatten().tolist()
    assert wide == [fill.value(dtype, index) for index in range(12)]


@pytest.mark.parametrize("name", NAMES)
def test_given_and_constant_values_in_the_worker(name: str) -> None:
    assert values(Fill.of((1, 0, 1)), name, (3,)).tolist() == [1, 0, 1]
    assert values(Fill.constant(1), name, (2, 2)).tolist() == [[1, 1], [1, 1]]
    assert values(Fill.of(()), name, (0, 3)).shape == (0, 3)


@pytest.mark.parametrize("name", [name for name in NAMES if DTYPES[name].is_float])
def test_the_exponents_are_the_last_exact_ones(name: str) -> None:
    dtype = dtype_named(name)
    least, greatest = dtype.exponents
    for exponent, fits in ((least, True), (greatest, True), (least - 1, False), (greatest + 1, False)):
        largest = -math.ldexp(1, exponent) if exponent <= 1023 else -math.inf
        smallest = math.ldexp(1, exponent - dtype.digits)
        as_tensor = torch.tensor([largest, smallest], dtype=torch.float64).to(getattr(torch, name))
        exact = as_tensor.to(torch.float64).tolist() == [largest, smallest] and math.isfinite(largest) and smallest > 0
        assert exact is fits
        if fits:
            Fill(exponent=exponent).check(dtype, 1)
        else:
            with pytest.raises(InvalidDocument, match="exponent"):
                Fill(exponent=exponent).check(dtype, 1)


def test_values_are_spread_out() -> None:
    dtype = dtype_named("int32")
    counts = Counter(Fill(seed=5, low=0, high=15).value(dtype, index) for index in range(16_000))
    assert set(counts) == set(range(16))
    assert all(800 < count < 1200 for count in counts.values())
    floats = [Fill(seed=5).value(dtype_named("float32"), index) for index in range(4000)]
    assert abs(sum(floats) / 4000) < 0.05
    assert abs(sum(x * x for x in floats) / 4000 - 1 / 3) < 0.03


@pytest.mark.parametrize("seeds", [(0, 1), (0, 8), (1, 2), (7, 8), (0, MASK)])
def test_seeds_differ_at_every_shift(seeds: tuple[int, int]) -> None:
    """No seed's values are another's, moved along: a wrong offset would go unseen."""
    first, second = ([hashed(seed, index) for index in range(200)] for seed in seeds)
    assert not set(first) & set(second)
    assert len(set(first)) == 200


@pytest.mark.parametrize(
    ("fill", "name", "place"),
    [
        (Fill.of((1, 2)), "int32", "values"),
        (Fill.of((1, 2, 300)), "uint8", "values"),
        (Fill.of((1, 2, 0.5)), "int64", "values"),
        (Fill.of((1, 2, math.nan)), "int64", "values"),
        (Fill.of((1, 2, math.inf)), "int64", "values"),
        (Fill.of((1, 2, 10**400)), "int64", "values"),
        (Fill.of((1, 2, 10**400)), "float32", "values"),
        (Fill(low=-1, high=1), "bool", "values"),
        (Fill(low=0, high=2**31), "int32", "values"),
        (Fill(exponent=5000), "float64", "exponent"),
    ],
)
def test_values_that_do_not_exist_in_a_data_type(fill: Fill, name: str, place: str) -> None:
    with pytest.raises(InvalidDocument) as caught:
        fill.check(dtype_named(name), 3)
    assert caught.value.where == place


def test_values_that_are_not_numbers_in_json_come_back() -> None:
    from kcheck.case import Case, Tensor
    from kcheck.layout import Layout

    special = Fill.of((math.nan, math.inf, -math.inf, -0.0))
    case = Case(x=Tensor("float32", Layout.contiguous((4,)), special))
    back = case_from_json(case_to_json(case)).views["x"].fill.values
    assert str(back) == "(nan, inf, -inf, -0.0)"
