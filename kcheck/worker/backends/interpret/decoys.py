"""What a bad read yields: small, valid-looking values that depend on the address and a seed alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from kcheck.worker.backends.interpret.membership import Addresses


def decoy_values(addresses: Addresses, seed: int, dtype: np.dtype[Any], kind: torch.dtype | None) -> npt.NDArray[Any]:
    """Values for reads at `addresses`.

    Args:
        addresses: Of the elements.
        seed: Two seeds give two different sets of values.
        dtype: Of the result; bfloat16 and the 8-bit floats are raw bits.
        kind: Element type of the argument that the pointer came from, if known: tells raw bits from integers.

    Returns:
        Integers from 0 to 7, floats between -1 and 1.
    """
    bits = _mix(addresses, seed)
    as_float = kind is not None and kind.is_floating_point and kind.itemsize == dtype.itemsize
    if dtype.kind == "f":
        return _unit_floats(bits).astype(dtype)
    if dtype.kind == "b":
        return (bits & np.uint64(1)).astype(bool)
    if as_float and kind is not None:
        values = torch.from_numpy(_unit_floats(bits)).to(kind)
        return values.view(torch.int16 if dtype.itemsize == 2 else torch.int8).numpy().view(dtype)
    return (bits & np.uint64(7)).astype(dtype)


def _mix(addresses: Addresses, seed: int) -> npt.NDArray[np.uint64]:
    """The finaliser of SplitMix64: every bit of the address and the seed reaches every bit of the result."""
    mixed = addresses + np.uint64((seed * 0x9E3779B97F4A7C15 + 0x632BE59BD9B4E019) % 2**64)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))


def _unit_floats(bits: npt.NDArray[np.uint64]) -> npt.NDArray[np.float32]:
    return ((bits >> np.uint64(41)).astype(np.float32) * np.float32(2.0**-22) - np.float32(1)).astype(np.float32)
