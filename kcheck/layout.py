"""How a view sits in its memory: pure integers, no torch.

A `Layout` starts from a dense backing tensor and cuts and turns it: padding and steps along each dimension, a
permutation of the dimensions, planes chosen by an index, dimensions expanded with stride 0, a base offset. Every view
that slicing, selecting, permuting and expanding can make is in this model. Named kinds (`LayoutKind`) are read off a
layout, never the other way round. All distances are in elements unless a name says bytes.
"""

from __future__ import annotations

import enum
import math
from dataclasses import dataclass
from functools import cached_property

from kcheck.errors import InvalidDocument

FAR = 2**31  # from this distance on (in elements) a 32-bit offset has wrapped
VECTOR_BYTES = 16  # the widest vector access; Triton specialises on divisibility by 16


class LayoutKind(enum.StrEnum):
    """A named property of a layout; a layout may have several."""

    CONTIGUOUS = "contiguous"
    NARROWED = "narrowed"
    OFFSET = "offset"
    MISALIGNED = "misaligned"
    STEPPED = "stepped"
    PADDED = "padded"
    INTERLEAVED = "interleaved"
    TRANSPOSED = "transposed"
    EXPANDED = "expanded"
    DEGENERATE = "degenerate"
    EMPTY = "empty"
    FAR = "far"


@dataclass(frozen=True, slots=True)
class Dim:
    """One dimension of a view.

    Attributes:
        size: Elements along the view.
        before: Backing elements in front of the used range.
        step: Distance between neighbours, in backing elements of this dimension.
        after: Backing elements behind the used range.
        expanded: Stride 0: all indices are the same backing element.
        free_stride: The stride to declare instead of the natural one; only for size 1, where it reaches nothing.
    """

    size: int
    before: int = 0
    step: int = 1
    after: int = 0
    expanded: bool = False
    free_stride: int | None = None

    def __post_init__(self) -> None:
        for name, least in (("size", 0), ("before", 0), ("step", 1), ("after", 0)):
            value = getattr(self, name)
            if hasattr(value, "example"):
                raise InvalidDocument(name, "is a strategy, not a number: draw(...) it")
            if type(value) is not int or value < least:
                raise InvalidDocument(name, f"is {value!r}; expected an integer >= {least}")
        if type(self.expanded) is not bool:
            raise InvalidDocument("expanded", f"is {self.expanded!r}; expected true or false")
        if self.expanded and self.step != 1:
            raise InvalidDocument("step", "must be 1 in an expanded dimension")
        if self.free_stride is not None:
            if type(self.free_stride) is not int or self.free_stride < 0:
                raise InvalidDocument("free_stride", f"is {self.free_stride!r}; expected an integer >= 0")
            if self.size != 1:
                raise InvalidDocument("free_stride", f"needs a dimension of size 1, not {self.size}")

    @property
    def used(self) -> int:
        """Backing elements from the first used one to the last, inclusive."""
        if self.size == 0:
            return 0
        return 1 if self.expanded else (self.size - 1) * self.step + 1

    @property
    def extent(self) -> int:
        """Backing elements along this dimension."""
        return self.before + self.used + self.after


@dataclass(frozen=True, slots=True)
class Plane:
    """A backing dimension that the view does not have: one index of it is chosen (``pool[:, 1]``)."""

    count: int
    index: int

    def __post_init__(self) -> None:
        if type(self.count) is not int or self.count < 1:
            raise InvalidDocument("count", f"is {self.count!r}; expected an integer >= 1")
        if type(self.index) is not int or not 0 <= self.index < self.count:
            raise InvalidDocument("index", f"is {self.index!r}; expected an integer in [0, {self.count})")


@dataclass(frozen=True)
class Layout:
    """A view's place in its backing.

    Attributes:
        dims: The view's dimensions, in the view's order.
        order: Memory order, outermost first. Entry i < rank is view dimension i; entry rank + j is plane j.
        planes: Backing dimensions chosen by an index.
        offset: Elements in front of the dense block (a base offset).
    """

    dims: tuple[Dim, ...]
    order: tuple[int, ...] = ()
    planes: tuple[Plane, ...] = ()
    offset: int = 0

    def __post_init__(self) -> None:
        count = len(self.dims) + len(self.planes)
        if not self.order and count:
            object.__setattr__(self, "order", tuple(range(count)))
        if sorted(self.order) != list(range(count)):
            raise InvalidDocument("order", f"is {list(self.order)}; expected a permutation of 0 … {count - 1}")
        if type(self.offset) is not int or self.offset < 0:
            raise InvalidDocument("offset", f"is {self.offset!r}; expected an integer >= 0")

    @staticmethod
    def contiguous(shape: tuple[int, ...]) -> Layout:
        """The dense row-major layout of a shape."""
        return Layout(tuple(Dim(size) for size in shape))

    @property
    def rank(self) -> int:
        """Number of view dimensions."""
        return len(self.dims)

    @cached_property
    def shape(self) -> tuple[int, ...]:
        """Sizes of the view."""
        return tuple(dim.size for dim in self.dims)

    @cached_property
    def numel(self) -> int:
        """Number of view elements; an expanded element counts each time."""
        return math.prod(self.shape)

    @cached_property
    def backing_shape(self) -> tuple[int, ...]:
        """Shape of the dense backing tensor, in memory order."""
        return tuple(self.dims[i].extent if i < self.rank else self.planes[i - self.rank].count for i in self.order)

    @cached_property
    def backing_numel(self) -> int:
        """Elements of memory, base offset included."""
        return self.offset + math.prod(self.backing_shape)

    @cached_property
    def _pitches(self) -> dict[int, int]:
        """Stride in the backing of every entry of `order`."""
        pitches, pitch = {}, 1
        for entry, extent in zip(reversed(self.order), reversed(self.backing_shape), strict=True):
            pitches[entry] = pitch
            pitch *= max(extent, 1)  # as torch does: an empty dimension does not make the outer strides 0
        return pitches

    @cached_property
    def strides(self) -> tuple[int, ...]:
        """Strides of the view, as torch gives them: also around an empty dimension, and for an expanded size of 1."""
        return tuple(self._stride(i, dim) for i, dim in enumerate(self.dims))

    def _stride(self, i: int, dim: Dim) -> int:
        if dim.free_stride is not None:
            return dim.free_stride
        return 0 if dim.expanded and dim.size > 1 else dim.step * self._pitches[i]

    @cached_property
    def first(self) -> int:
        """Backing element of the view's first element (``storage_offset`` in torch)."""
        befores = sum(dim.before * self._pitches[i] for i, dim in enumerate(self.dims))
        chosen = sum(plane.index * self._pitches[self.rank + j] for j, plane in enumerate(self.planes))
        return self.offset + befores + chosen

    @cached_property
    def reach(self) -> int:
        """Distance from the first element to the last."""
        return sum((dim.size - 1) * stride for dim, stride in zip(self.dims, self.strides, strict=True) if dim.size)

    @property
    def overlapping(self) -> bool:
        """Two indices share one backing element; such a view cannot be written."""
        return any(dim.expanded and dim.size > 1 for dim in self.dims)

    @property
    def is_contiguous(self) -> bool:
        """What ``torch.Tensor.is_contiguous`` says: dense and row-major; offset and strides of size 1 are free."""
        pitch = 1
        for dim, stride in zip(reversed(self.dims), reversed(self.strides), strict=True):
            if dim.size != 1 and stride != pitch:
                return self.numel == 0
            pitch *= dim.size
        return True

    def offset_of(self, index: tuple[int, ...]) -> int:
        """Backing element of a logical index (not checked against the shape)."""
        return self.first + sum(i * stride for i, stride in zip(index, self.strides, strict=True))

    def index_at(self, offset: int) -> tuple[int, ...] | None:
        """Logical index of a backing element, or None where the view has no cell. Expanded indices give 0."""
        rest = offset - self.offset
        if self.numel == 0 or not 0 <= rest < self.backing_numel - self.offset:
            return None
        index = [0] * self.rank
        for entry in self.order:
            position, rest = divmod(rest, self._pitches[entry])
            if entry >= self.rank:
                if position != self.planes[entry - self.rank].index:
                    return None
                continue
            dim = self.dims[entry]
            if not dim.before <= position < dim.before + dim.used or (position - dim.before) % dim.step:
                return None
            index[entry] = (position - dim.before) // dim.step
        return tuple(index)

    def kinds(self, itemsize: int) -> frozenset[LayoutKind]:
        """The named kinds of this layout.

        Args:
            itemsize: Bytes an element, for the alignment of the first element.
        """
        if self.numel == 0:
            return frozenset({LayoutKind.EMPTY})
        tests = {
            LayoutKind.INTERLEAVED: any(plane.count > 1 for plane in self.planes),
            LayoutKind.EXPANDED: self.overlapping,
            LayoutKind.STEPPED: any(dim.step > 1 and dim.size > 1 for dim in self.dims),
            LayoutKind.TRANSPOSED: self._is_transposed(),
            LayoutKind.PADDED: self._has_padded_rows(),
            LayoutKind.NARROWED: self._is_narrowed() and not self._has_padded_rows(),
            LayoutKind.OFFSET: self.offset > 0 or self._outermost_before() > 0,
            LayoutKind.MISALIGNED: self.first * itemsize % VECTOR_BYTES != 0,
            LayoutKind.DEGENERATE: any(
                dim.size == 1 and self.strides[i] != self._pitches[i] for i, dim in enumerate(self.dims)
            ),
            LayoutKind.FAR: self.reach >= FAR,
        }
        return frozenset(kind for kind, holds in tests.items() if holds) or frozenset({LayoutKind.CONTIGUOUS})

    def _is_transposed(self) -> bool:
        laid = [i for i in self.order if i < self.rank and self.dims[i].size > 1 and not self.dims[i].expanded]
        return laid != sorted(laid)

    def _outermost_before(self) -> int:
        entry = self.order[0] if self.order else 0
        return self.dims[entry].before if self.order and entry < self.rank else 0

    def _innermost(self) -> Dim | None:
        entry = self.order[-1] if self.order else 0
        return self.dims[entry] if self.order and entry < self.rank else None

    def _has_padded_rows(self) -> bool:
        """A row pitch rounded up to a multiple of 8 by less than a row, as a vocabulary is padded."""
        row = self._innermost()
        return (
            row is not None and len(self.order) > 1 and row.before == 0 and row.step == 1 and 0 < row.after < row.used
        ) and row.extent % 8 == 0

    def _is_narrowed(self) -> bool:
        """Some dimension has elements behind its used range, or an inner one in front (an outer one: an offset)."""
        inner = {i for i in self.order[1:] if i < self.rank}
        # The last step of a stepped dimension may leave less than a step behind it: that is stepping, not narrowing.
        return any(
            dim.after >= (dim.step if dim.size > 1 else 1) or (i in inner and dim.before > 0)
            for i, dim in enumerate(self.dims)
        )

    def code(self, dtype: str) -> str:
        """The layout as a torch expression, for example ``torch.empty((4, 16), dtype=torch.int32)[:, :3]``.

        Args:
            dtype: Name of the data type.
        """
        shape = f"({self.backing_shape[0]},)" if len(self.backing_shape) == 1 else str(self.backing_shape)
        if self.offset:
            text = f"torch.empty({self.backing_numel}, dtype=torch.{dtype})[{self.offset}:].view({shape})"
        else:
            text = f"torch.empty({shape}, dtype=torch.{dtype})"
        return text + self.suffix()

    def suffix(self) -> str:
        """The part of `code` behind the dense tensor, ``[:, :3]`` for example; empty for a contiguous view."""
        cuts = [self._cut(entry) for entry in self.order]
        while cuts and cuts[-1] == ":":
            cuts.pop()
        text = f"[{', '.join(cuts)}]" if cuts else ""
        laid = [i for i in self.order if i < self.rank]
        if laid != sorted(laid):
            turn = tuple(laid.index(i) for i in range(self.rank))
            text += ".T" if self.rank == 2 else f".permute{turn}"
        if any(dim.expanded and dim.size != 1 for dim in self.dims):
            text += f".expand({', '.join(map(str, self.shape))})"
        if any(dim.free_stride is not None for dim in self.dims):
            text += f".as_strided({self.shape}, {self.strides})"
        return text

    def _cut(self, entry: int) -> str:
        if entry >= self.rank:
            return str(self.planes[entry - self.rank].index)
        dim = self.dims[entry]
        start = str(dim.before) if dim.before else ""
        cut = dim.after >= dim.step or (dim.size == 0 and dim.after > 0)
        stop = str(dim.before + dim.used) if cut else ""
        return f"{start}:{stop}" + (f":{dim.step}" if dim.step > 1 else "")
