"""Data types by torch's names: what kcheck must know of them without importing torch."""

from __future__ import annotations

from dataclasses import dataclass

from kcheck.errors import InvalidDocument


@dataclass(frozen=True, slots=True)
class DType:
    """One data type.

    Attributes:
        name: Its name in torch, ``float32`` for ``torch.float32``.
        itemsize: Bytes an element.
        is_float: Floating point, 8-bit formats included.
        digits: Floats only: k·2**-digits is exact for every integer k in [-2**digits, 2**digits).
        exponents: Floats only: least and greatest e such that k·2**(e - digits) is exact for these k.
        low: Smallest value (integers and bool), 0 for floats.
        high: Largest value (integers and bool), 0 for floats.
    """

    name: str
    itemsize: int
    is_float: bool = False
    digits: int = 0
    exponents: tuple[int, int] = (0, 0)
    low: int = 0
    high: int = 0


def _integer(name: str, itemsize: int, *, signed: bool) -> DType:
    bits = 8 * itemsize
    low, high = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else (0, 2**bits - 1)
    return DType(name, itemsize, low=low, high=high)


# `digits` is the number of stored mantissa bits, capped at 31 because a fill value comes from 32 hashed bits.
_ALL = (
    DType("float64", 8, is_float=True, digits=31, exponents=(-1043, 1023)),
    DType("float32", 4, is_float=True, digits=23, exponents=(-126, 127)),
    DType("float16", 2, is_float=True, digits=10, exponents=(-14, 15)),
    DType("bfloat16", 2, is_float=True, digits=7, exponents=(-126, 127)),
    DType("float8_e4m3fn", 1, is_float=True, digits=3, exponents=(-6, 8)),
    DType("float8_e5m2", 1, is_float=True, digits=2, exponents=(-14, 15)),
    _integer("int64", 8, signed=True),
    _integer("int32", 4, signed=True),
    _integer("int16", 2, signed=True),
    _integer("int8", 1, signed=True),
    _integer("uint8", 1, signed=False),
    DType("bool", 1, low=0, high=1),
)
DTYPES = {dtype.name: dtype for dtype in _ALL}


def dtype_named(name: str, where: str = "dtype") -> DType:
    """Look up a data type.

    Args:
        name: A name such as ``bfloat16`` or ``torch.bfloat16``.
        where: What to call the value in an error.

    Raises:
        InvalidDocument: kcheck has no such data type.
    """
    found = DTYPES.get(str(name).removeprefix("torch."))
    if found is None:
        raise InvalidDocument(where, f"{name!r} is not a data type kcheck knows; use one of {', '.join(DTYPES)}")
    return found
