"""Exact byte membership of strided views: does an access of some bytes stay inside the cells of a view?"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property

import numpy as np
import numpy.typing as npt

Addresses = npt.NDArray[np.uint64]
Bools = npt.NDArray[np.bool_]

U64 = np.uint64


class Intervals:
    """A set of bytes, held as sorted disjoint half-open runs.

    Args:
        runs: ``(start, bytes)`` in any order; they may overlap.
    """

    def __init__(self, runs: Iterable[tuple[int, int]]) -> None:
        merged: list[list[int]] = []
        for start, size in sorted(run for run in runs if run[1] > 0):
            if merged and start <= merged[-1][1]:
                merged[-1][1] = max(merged[-1][1], start + size)
            else:
                merged.append([start, start + size])
        self._starts = np.array([run[0] for run in merged], dtype=U64)
        self._ends = np.array([run[1] for run in merged], dtype=U64)

    @classmethod
    def of_equal_runs(cls, starts: npt.NDArray[np.int64], size: int) -> Intervals:
        """The union of runs of `size` bytes at the sorted, distinct `starts`."""
        new = cls(())
        if len(starts):
            breaks = np.flatnonzero(np.diff(starts) > size)
            new._starts = starts[np.concatenate(([0], breaks + 1))].astype(U64)
            new._ends = (starts[np.concatenate((breaks, [len(starts) - 1]))] + size).astype(U64)
        return new

    def contains(self, addresses: Addresses, width: int) -> Bools:
        """Which accesses of `width` bytes lie wholly in one run (adjacent runs are one)."""
        if not len(self._starts):
            return np.zeros(addresses.shape, bool)
        run = np.searchsorted(self._starts, addresses, side="right") - 1
        room = self._ends[run] - addresses
        return (run >= 0) & (addresses < self._ends[run]) & (room >= U64(width))


class View:
    """The cells of one strided view.

    Args:
        address: Address of the view's first element, bytes.
        itemsize: Size of an element, bytes.
        shape: Elements along each dimension.
        stride: Distance between neighbours along each dimension, elements; never negative.

    Attributes:
        outer: ``(step, count)`` of the dimensions that are left when those that continue each other are one, by falling
            step; bytes.
        run: Bytes of the innermost dense run.
        extent: Bytes from the first to the end of the last element.
        is_nested: Each step clears everything inside it: an offset has one decomposition.
        is_dense: The view has no gaps.
    """

    def __init__(self, address: int, itemsize: int, shape: Sequence[int], stride: Sequence[int]) -> None:
        self.address = address
        self.itemsize = itemsize
        self.shape = tuple(shape)
        self.stride = tuple(stride)
        self.outer, self.run = _merge_dimensions(itemsize, self.shape, self.stride)
        empty = 0 in self.shape
        self.extent = 0 if empty else sum(step * (count - 1) for step, count in self.outer) + self.run
        self.is_nested = _is_nested(self.outer, self.run)
        self._steps = [(U64(step), U64(count)) for step, count in self.outer]
        self.is_dense = not self.outer

    def outside(self, offsets: Addresses, width: int) -> Bools:
        """Which accesses touch a byte that is no cell of the view.

        Args:
            offsets: First byte of each access, relative to `address`; modulo 2**64, so that one in front of the view
                is a very large one.
            width: Bytes of each access.
        """
        if self.extent < width:
            return np.ones(offsets.shape, bool)
        bad: Bools = offsets > U64(self.extent - width)
        if self.is_dense:
            return bad
        if not self.is_nested:
            return ~self._cells.contains(offsets, width)
        if len(self._steps) == 1:
            offsets = offsets % self._steps[0][0]
        else:
            for step, count in self._steps:
                quotient = offsets // step
                bad |= quotient >= count
                offsets = offsets - quotient * step
        if self.run < width:
            return np.ones(offsets.shape, bool)
        bad |= offsets > U64(self.run - width)
        return bad

    def owns(self, address: int, width: int = 1) -> bool:
        """Whether `width` bytes at `address` all belong to the view."""
        offset = np.array([(address - self.address) % 2**64], dtype=U64)
        return not self.outside(offset, width)[0]

    def first_bad_byte(self, address: int, width: int) -> int:
        """Address of the first byte of an access that is no cell of the view."""
        return next((byte for byte in range(address, address + width) if not self.owns(byte)), address)

    def locate(self, address: int) -> tuple[tuple[int, ...], bool]:
        """Logical index of a byte on the grid that the view's strides span, and whether it lies between grid points.

        Entries may lie outside the shape: the strides are followed past the last element and in front of the first.
        """
        rest = address - self.address
        index = [0] * len(self.shape)
        for dimension in self._index_order:
            step = self.stride[dimension] * self.itemsize
            index[dimension], rest = divmod(rest, step)
        if not self._index_order:
            rest %= self.itemsize
        return tuple(index), rest != 0

    @cached_property
    def _cells(self) -> Intervals:
        offsets = np.zeros(1, np.int64)
        for step, count in self.outer:
            offsets = np.unique(offsets[:, None] + np.arange(count, dtype=np.int64) * step)
        return Intervals.of_equal_runs(offsets, self.run)

    @cached_property
    def _index_order(self) -> list[int]:
        """Dimensions by falling stride. One of size 1 counts only if its stride clears the inner ones."""
        rising = sorted(
            (d for d in range(len(self.shape)) if self.stride[d] > 0), key=lambda d: (self.stride[d], self.shape[d])
        )
        chosen: list[int] = []
        inner = 1
        for dimension in rising:
            if self.shape[dimension] == 1 and self.stride[dimension] < inner:
                continue
            chosen.append(dimension)
            inner += self.stride[dimension] * (self.shape[dimension] - 1)
        return chosen[::-1]


def _merge_dimensions(itemsize: int, shape: Sequence[int], stride: Sequence[int]) -> tuple[list[tuple[int, int]], int]:
    """Fuse dimensions that continue each other.

    Returns:
        ``(step, count)`` of the outer dimensions by falling step, in bytes, and the bytes of the innermost dense run.
    """
    dimensions = sorted(
        ((step * itemsize, count) for count, step in zip(shape, stride, strict=True) if count != 1 and step != 0),
        reverse=True,
    )
    merged: list[tuple[int, int]] = []
    for step, count in dimensions:
        if merged and merged[-1][0] == step * count:
            outer = merged.pop()
            merged.append((step, count * outer[1]))
        else:
            merged.append((step, count))
    run = itemsize
    if merged and merged[-1][0] == itemsize:
        run *= merged.pop()[1]
    return merged, run


def _is_nested(outer: Sequence[tuple[int, int]], run: int) -> bool:
    """Whether each step leaves a gap after everything inside it: then an offset has one decomposition."""
    inner = run
    for step, count in reversed(outer):
        if step <= inner:
            return False
        inner += step * (count - 1)
    return True
