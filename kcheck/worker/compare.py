"""Comparing results: how far apart two tensors may be, and how they differ."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch

from kcheck.findings import Mismatch

EXAMPLES = 8
ORACLE_ERROR_FACTOR = 4.0
# A library sums in a tree, a correct kernel in sequence. Over K terms of spread s, with machine epsilon e, the sequence
# loses about 0.2·e·s·K, while inputs that move by e move the sum by about 0.8·e·s·sqrt(K): a factor of 0.25·sqrt(K).
# Three standard deviations, and K up to some 16,000, make this. Equal terms, whose errors add up, need less of it.
SUMMATION_FACTOR = 64.0

# torch.testing.assert_close's defaults (https://docs.pytorch.org/docs/stable/testing.html). It has none for the 8-bit
# formats: there, one unit in the last place, since a result may round either way.
TOLERANCES: dict[torch.dtype, tuple[float, float]] = {
    torch.float64: (1e-7, 1e-7),
    torch.float32: (1.3e-6, 1e-5),
    torch.float16: (1e-3, 1e-5),
    torch.bfloat16: (1.6e-2, 1e-5),
    torch.float8_e4m3fn: (2**-3, 2**-9),
    torch.float8_e5m2: (2**-2, 2**-16),
}


@dataclass(frozen=True, slots=True)
class Tolerance:
    """How far a result may be off.

    Attributes:
        exact: Compare bits; NaN equals NaN.
        rtol: Relative tolerance instead of the data type's.
        atol: Absolute tolerance instead of the data type's.
    """

    exact: bool = False
    rtol: float | None = None
    atol: float | None = None

    @property
    def adaptive(self) -> bool:
        """Nothing was given, so the oracle's own error against float64 may widen it."""
        return not self.exact and self.rtol is None

    def of(self, *dtypes: torch.dtype) -> tuple[float, float]:
        """``(rtol, atol)`` for values of these data types, of each the largest; zeros for integers, unless given."""
        if self.exact:
            return 0.0, 0.0
        if self.rtol is not None and self.atol is not None:
            return self.rtol, self.atol
        found = [TOLERANCES.get(dtype, (0.0, 0.0)) for dtype in dtypes]
        return max(rtol for rtol, _ in found), max(atol for _, atol in found)


@dataclass(frozen=True, slots=True)
class Precise:
    """What the oracle gives in float64, and how well a rounded computation can be expected to meet it.

    Attributes:
        value: The result in float64.
        move: How far it moves when the inputs move by a rounding error; of the same shape. None: not worked out.
    """

    value: torch.Tensor
    move: torch.Tensor | None = None


def wrong_elements(
    actual: torch.Tensor, expected: torch.Tensor, tolerance: Tolerance, precise: Precise | None = None
) -> tuple[torch.Tensor, torch.Tensor]:
    """Which elements are too far off.

    Args:
        actual: The result, any shape.
        expected: What it should be, of the same shape; its own data type may differ.
        tolerance: Allowed difference.
        precise: The same in float64. Then an element is right too if it is within the tolerance of that, and may be off
            by 4 times the largest error of `expected`, or by what another order of summation can lose.

    Returns:
        ``(wrong, allowed)``: bool and float64, of the shape of `actual`.
    """
    given = tolerance.rtol is not None and actual.dtype != torch.bool
    if tolerance.exact or not (actual.dtype.is_floating_point or given):
        return ~_same(actual, expected.to(actual.dtype)), torch.zeros_like(actual, dtype=torch.float64)
    rtol, atol = tolerance.of(actual.dtype, expected.dtype)
    a, e = actual.double(), expected.double()
    allowed = atol + rtol * e.abs().nan_to_num(posinf=math.inf)
    if precise is None:
        return ~_close(a, e, allowed), allowed
    p = precise.value.double()
    error = (e - p).abs()
    error = error[error.isfinite()]
    if error.numel():
        allowed = allowed.clamp(min=ORACLE_ERROR_FACTOR * float(error.max()))
    if precise.move is not None:
        allowed = torch.maximum(allowed, SUMMATION_FACTOR * row_scale(precise.move))
    return ~(_close(a, e, allowed) | _close(a, p, allowed)), allowed


def flat_bytes(tensor: torch.Tensor) -> torch.Tensor:
    """The bytes of all elements, row-major: uint8, one dimension."""
    # A single element counts as contiguous in any stride, but only a stride of 1 can be seen as bytes.
    return tensor.contiguous().as_strided((tensor.numel(),), (1,)).view(torch.uint8)


def is_right(actual: torch.Tensor, expected: torch.Tensor, tolerance: Tolerance) -> bool:
    """Whether no element is wrong by `wrong_elements`, found out at once where that needs few operations.

    False may mean that it is not known yet.
    """
    if actual.dtype != expected.dtype or actual.shape != expected.shape:
        return False
    if torch.equal(flat_bytes(actual), flat_bytes(expected)):
        return True
    if tolerance.exact or actual.dtype not in TOLERANCES:
        return False
    rtol, atol = tolerance.of(actual.dtype)
    return torch.allclose(actual.double(), expected.double(), rtol=rtol, atol=atol, equal_nan=True)


def row_scale(values: torch.Tensor) -> torch.Tensor:
    """The largest finite magnitude of every element's row (along the last dimension), of a shape that broadcasts."""
    finite = torch.where(values.isfinite(), values.abs(), 0.0)
    return finite.amax(-1, keepdim=True) if finite.ndim and finite.shape[-1] else finite


def differ(a: torch.Tensor, b: torch.Tensor, tolerance: Tolerance, precise: Precise | None = None) -> torch.Tensor:
    """Which elements of two results of the same computation differ by more than another order of summation explains.

    Args:
        a: One result.
        b: The other, of the same shape and data type.
        tolerance: Allowed difference.
        precise: The oracle's word on it. Without it the scale is the largest value of the row.

    Returns:
        A mask, of their shape.
    """
    wrong, allowed = wrong_elements(a, b, tolerance)
    if not a.dtype.is_floating_point or tolerance.exact:
        return wrong
    rtol, _ = tolerance.of(a.dtype)
    x, y = a.double(), b.double()
    move = None if precise is None else precise.move
    lost = rtol * row_scale(y) if move is None else row_scale(move)
    return wrong & ~_close(x, y, torch.maximum(allowed, SUMMATION_FACTOR * lost))


def _same(actual: torch.Tensor, expected: torch.Tensor) -> torch.Tensor:
    if not actual.dtype.is_floating_point:
        return actual == expected
    # Comparing as float64 is exact; -0.0 and 0.0 differ in bits, so signs are compared too.
    a, e = actual.double(), expected.double()
    return ((a == e) & (a.signbit() == e.signbit())) | (a.isnan() & e.isnan())


def _close(actual: torch.Tensor, expected: torch.Tensor, allowed: torch.Tensor) -> torch.Tensor:
    """Within the tolerance; infinities must agree, NaN equals NaN."""
    near = (actual - expected).abs() <= allowed
    near &= actual.isfinite() & expected.isfinite()
    return near | (actual == expected) | (actual.isnan() & expected.isnan())


def describe(
    output: str,
    actual: torch.Tensor,
    expected: torch.Tensor,
    wrong: torch.Tensor,
    allowed: torch.Tensor,
    against: str,
) -> Mismatch:
    """A report of the wrong elements.

    Args:
        output: Name of the output.
        actual: The result.
        expected: What it should be.
        wrong: Mask from `wrong_elements`, with at least one element set.
        allowed: From `wrong_elements`.
        against: What `expected` is.
    """
    where = wrong.nonzero()
    a, e = actual[wrong].double(), expected[wrong].double()
    gap = (a - e).abs().nan_to_num(nan=math.inf)
    worst = int(gap.argmax())
    examples = tuple((tuple(where[i].tolist()), float(a[i]), float(e[i])) for i in range(min(EXAMPLES, len(where))))
    return Mismatch(
        output=output,
        count=len(where),
        total=actual.numel(),
        worst=tuple(where[worst].tolist()),
        actual=float(a[worst]),
        expected=float(e[worst]),
        allowed=float(allowed[wrong][worst]),
        against=against,
        examples=examples,
    )
