"""Tolerances: what a correct kernel may do, and what is a bug."""

from __future__ import annotations

import pytest
import torch
from hypothesis import strategies as st

import kcheck
from kcheck.case import Tensor
from kcheck.layout import Layout
from kcheck.worker.compare import TOLERANCES, Precise, Tolerance, describe, differ, wrong_elements
from kcheck.worker.oracle import expected_precise, sensitivity

DEFAULT = Tolerance()


def wrong(
    actual: torch.Tensor, expected: torch.Tensor, tolerance: Tolerance = DEFAULT, precise: Precise | None = None
) -> list[bool]:
    return [bool(w) for w in wrong_elements(actual, expected, tolerance, precise)[0].flatten()]


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16])
def test_the_table_is_that_of_torch_testing(dtype: torch.dtype) -> None:
    expected = torch.linspace(-3, 3, 64, dtype=torch.float64)
    for factor in (0.9, 1.1):
        off = TOLERANCES[dtype][1] + TOLERANCES[dtype][0] * expected.abs()
        actual = expected + factor * off
        try:
            torch.testing.assert_close(actual, expected, rtol=TOLERANCES[dtype][0], atol=TOLERANCES[dtype][1])
            accepted = True
        except AssertionError:
            accepted = False
        given = Tolerance(rtol=TOLERANCES[dtype][0], atol=TOLERANCES[dtype][1])
        assert (not any(wrong(actual, expected, given))) == accepted


def product(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return a @ b


@pytest.mark.parametrize("shape", [(32, 32), (1, 1), (8, 1), (1, 8)])
def test_a_matmul_summed_in_sequence_is_right(shape: tuple[int, int]) -> None:
    """Also where there are few elements to tell the oracle's error by, and where they cancel."""
    target = kcheck.target(cases=st.nothing(), oracle=product)(product)
    case = kcheck.Case(
        a=Tensor("float32", Layout.contiguous((shape[0], 1024))),
        b=Tensor("float32", Layout.contiguous((1024, shape[1]))),
    )
    seen = 0
    for seed in range(40 if shape != (32, 32) else 2):
        generator = torch.Generator().manual_seed(seed)
        a = torch.rand(shape[0], 1024, generator=generator) * 2 - 1
        b = torch.rand(1024, shape[1], generator=generator) * 2 - 1
        sequential = torch.zeros(shape)
        for k in range(1024):
            sequential += a[:, k : k + 1] * b[k : k + 1]
        contents = {"a": a, "b": b}
        values = expected_precise(target, case, contents, ["return"])
        assert values is not None
        precise = Precise(values["return"], sensitivity(target, case, contents, values)["return"])
        seen += any(wrong(sequential, a @ b))  # torch.testing's tolerance alone calls some wrong
        assert not any(wrong(sequential, a @ b, precise=precise))
        assert not bool(differ(sequential, a @ b, DEFAULT, precise).any())
        sequential[0, 0] += 0.01
        assert sum(wrong(sequential, a @ b, precise=precise)) == 1
    assert seen or shape != (32, 32)


def test_a_row_of_small_values_is_not_excused_by_a_row_of_large_ones() -> None:
    expected = torch.tensor([[1e6, 1e6], [1e-2, 1e-2]])
    actual = expected.clone()
    actual[1, 0] += 1e-3
    precise = Precise(expected.double(), expected.double() * 2**-23)
    assert wrong(actual, expected, precise=precise) == [False, False, True, False]


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32, torch.uint8, torch.bool])
def test_integers_are_exact(dtype: torch.dtype) -> None:
    expected = torch.tensor([0, 1, 1], dtype=dtype)
    assert wrong(expected.clone(), expected) == [False] * 3
    assert wrong(torch.tensor([1, 1, 1], dtype=dtype), expected) == [True, False, False]


def test_large_integers_do_not_go_through_floats() -> None:
    assert wrong(torch.tensor([2**62 + 1]), torch.tensor([2**62])) == [True]


def test_nan_equals_nan_and_infinities_have_signs() -> None:
    nan, inf = float("nan"), float("inf")
    expected = torch.tensor([nan, inf, -inf, 1.0, nan, 1.0])
    actual = torch.tensor([nan, inf, inf, nan, 1.0, inf])
    assert wrong(actual, expected) == [False, False, True, True, True, True]


def test_of_two_data_types_the_looser_one_counts() -> None:
    """As in torch.testing: a kernel that returns float32 is not held to that by an oracle that returns bfloat16."""
    actual = torch.tensor([0.15476, 0.15476])
    expected = torch.tensor([0.1553, 0.1592], dtype=torch.bfloat16)  # 0.3 % and 2.9 % off
    for one, other in ((actual, expected), (expected, actual)):
        assert wrong(one, other) == [False, True]
        with pytest.raises(AssertionError, match=r"Mismatched elements: 1 / 2"):
            torch.testing.assert_close(one, other, check_dtype=False)


def test_exact_compares_bits() -> None:
    expected = torch.tensor([1.0, float("nan"), 0.0])
    assert wrong(expected.clone(), expected, Tolerance(exact=True)) == [False] * 3
    nearly = torch.tensor([1.0 + 2**-23, float("nan"), -0.0])
    assert wrong(nearly, expected, Tolerance(exact=True)) == [True, False, True]


def test_the_description_says_count_worst_and_allowed() -> None:
    expected, actual = torch.zeros(2, 3), torch.tensor([[0.0, 0.5, 0.0], [-2.0, 0.0, 0.0]])
    mask, allowed = wrong_elements(actual, expected, DEFAULT)
    found = describe("out", actual, expected, mask, allowed, "oracle")
    assert (found.count, found.total, found.worst, found.actual, found.expected) == (2, 6, (1, 0), -2.0, 0.0)
    assert found.allowed == pytest.approx(1e-5)
    assert found.examples == (((0, 1), 0.5, 0.0), ((1, 0), -2.0, 0.0))
