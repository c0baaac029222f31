"""Fills as tensors: the numbers that `kcheck.fill` defines, by integer arithmetic on arrays."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import numpy.typing as npt
import torch

from kcheck.dtypes import DType, dtype_named
from kcheck.fill import MASK, Fill, mix

_KEEP = 1 << 16  # elements


def torch_dtype(name: str) -> torch.dtype:
    """The torch data type of that name."""
    found: torch.dtype = getattr(torch, dtype_named(name).name)
    return found


def _mix(x: npt.NDArray[np.uint32]) -> npt.NDArray[np.uint32]:
    """`kcheck.fill.mix`, in place."""
    for shift, factor in ((16, 0x7FEB352D), (15, 0x846CA68B)):
        x ^= x >> np.uint32(shift)
        x *= np.uint32(factor)
    x ^= x >> np.uint32(16)
    return x


@lru_cache(maxsize=64)
def _kept(seed: int, start: int, count: int, device: str) -> torch.Tensor:
    return _hashed(seed, start, count, device)


def hashed(seed: int, start: int, count: int, device: torch.device | str = "cpu") -> torch.Tensor:
    """32 hashed bits for each index in [start, start + count), as int64 of shape (count,); not to be written to.

    Small ones are kept: the cases of a sweep, or of a shrink, have the same seeds.
    """
    make = _kept if count <= _KEEP else _hashed
    return make(seed, start, count, str(device))


def _hashed(seed: int, start: int, count: int, device: str) -> torch.Tensor:
    if device.startswith("cuda"):
        from kcheck.worker.hash_kernel import hashed_on_gpu

        return hashed_on_gpu(seed, start, count, device)
    first = (start + 0x9E3779B9 * seed) & MASK
    index = np.arange(first, first + count, dtype=np.int64).astype(np.uint32)
    return torch.from_numpy(_mix(_mix(index) ^ np.uint32(mix(seed))).astype(np.int64)).to(device)


def floats(bits: torch.Tensor, dtype: DType, exponent: int) -> torch.Tensor:
    """Hashed bits as floats k·2**(exponent - digits), k in [-2**digits, 2**digits); every step is exact."""
    k = (bits >> (31 - dtype.digits)) - (1 << dtype.digits)
    wide = torch.float64 if dtype.name == "float64" else torch.float32
    return (k.to(wide) * 2.0 ** (exponent - dtype.digits)).to(torch_dtype(dtype.name))


def values(fill: Fill, dtype_name: str, shape: tuple[int, ...], device: torch.device | str = "cpu") -> torch.Tensor:
    """The elements of a view, dense and row-major.

    Args:
        fill: How they are made.
        dtype_name: Data type.
        shape: Sizes, expanded dimensions given as 1.
        device: Where.

    Returns:
        A contiguous tensor of that shape.
    """
    dtype = dtype_named(dtype_name)
    target = torch_dtype(dtype_name)
    if fill.kind != "hashed":
        plain = torch.float64 if dtype.is_float else torch.int64
        given = torch.tensor(fill.values, dtype=plain).to(device=device, dtype=target)
        return given.expand(shape).contiguous() if fill.kind == "constant" else given.reshape(shape)
    count = 1
    for size in shape:
        count *= size
    if dtype.is_float and str(device).startswith("cuda"):
        from kcheck.worker.hash_kernel import FLOATS, floats_on_gpu

        if target in FLOATS:
            return floats_on_gpu(fill.seed, count, target, dtype.digits, fill.exponent, device).reshape(shape)
    bits = hashed(fill.seed, 0, count, device)
    if dtype.is_float:
        return floats(bits, dtype, fill.exponent).reshape(shape)
    return (bits % (fill.high - fill.low + 1) + fill.low).to(target).reshape(shape)
