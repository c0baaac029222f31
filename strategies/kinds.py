"""Which layouts may be drawn, and which of them a shape can have."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from kcheck.dtypes import dtype_named
from kcheck.errors import SpecError
from kcheck.layout import LayoutKind

_K = LayoutKind
# The first two are what a case shrinks to where they will do: Hypothesis tries 0 and 1 for every choice, but not each
# value below the one it found. The others are sorted by how plain they look in a report.
PLAINEST_FIRST = (
    _K.CONTIGUOUS,
    _K.NARROWED,
    _K.OFFSET,
    _K.MISALIGNED,  # an offset too, and next to it, since Hypothesis tries the value below
    _K.STEPPED,
    _K.TRANSPOSED,
    _K.PADDED,
    _K.INTERLEAVED,
    _K.EXPANDED,
    _K.DEGENERATE,
    _K.EMPTY,
    _K.FAR,
)
# What real code combines: a narrowed slice of an offset buffer, one plane of a padded pool. The plainer kind is the
# partner, so that a case can shrink to either alone.
PARTNERS = {
    _K.OFFSET: (_K.NARROWED,),
    _K.STEPPED: (_K.OFFSET, _K.NARROWED),
    _K.TRANSPOSED: (_K.NARROWED, _K.OFFSET),
    _K.PADDED: (_K.OFFSET,),
    _K.INTERLEAVED: (_K.NARROWED, _K.OFFSET),
    _K.EXPANDED: (_K.OFFSET,),
    _K.MISALIGNED: (_K.NARROWED,),
    _K.DEGENERATE: (_K.NARROWED,),
}


@dataclass(frozen=True, slots=True)
class Kinds:
    """Which layouts a strategy may draw.

    Attributes:
        allowed: Kinds that a layout may have. A kind that follows from an allowed one may come along (a misaligned
            view of a flat tensor is offset), but misaligned, expanded and far never do. Contiguous is drawn where the
            shape leaves nothing else.
        unit_last: The last dimension has stride 1.
    """

    allowed: frozenset[LayoutKind]
    unit_last: bool = False

    def __repr__(self) -> str:
        """The constant's name, so that a signature can be read."""
        names = {ANY: "ANY", WRITABLE: "WRITABLE", CONTIGUOUS_LAST: "CONTIGUOUS_LAST", DENSE: "DENSE"}
        listed = ", ".join(sorted(self.allowed))
        return names.get(self, f"Kinds({listed}{'; last dimension contiguous' if self.unit_last else ''})")

    def without(self, *kinds: LayoutKind | str) -> Kinds:
        """The same without some kinds, for example ``CONTIGUOUS_LAST.without("misaligned")``."""
        return Kinds(self.allowed - Kinds.of(kinds).allowed, self.unit_last)

    @staticmethod
    def of(kinds: Kinds | Iterable[LayoutKind | str]) -> Kinds:
        """Kinds from one of the constants, or from names.

        Raises:
            SpecError: There is no such kind.
        """
        if isinstance(kinds, Kinds):
            return kinds
        try:
            return Kinds(frozenset(LayoutKind(kind) for kind in ((kinds,) if isinstance(kinds, str) else kinds)))
        except ValueError as error:
            raise SpecError(f"kinds: {error}; kinds are {', '.join(LayoutKind)}") from None


ANY = Kinds(frozenset(LayoutKind) - {LayoutKind.FAR})
"""Every kind but far, which needs sparse memory and is drawn only where it is pinned or asked for by name."""
WRITABLE = ANY.without(LayoutKind.EXPANDED)
"""Every layout that can be written: no two indices share an element."""
CONTIGUOUS_LAST = Kinds(ANY.allowed, unit_last=True)
"""Layouts whose last dimension has stride 1."""
DENSE = Kinds(frozenset({_K.CONTIGUOUS, _K.OFFSET, _K.MISALIGNED, _K.DEGENERATE, _K.EMPTY}))
"""Layouts that ``Tensor.is_contiguous()`` accepts, at any address."""


@dataclass(frozen=True, slots=True)
class Site:
    """What a layout is made for.

    Attributes:
        shape: Sizes of the view.
        itemsize: Bytes an element.
        kinds: What may be drawn.
        expandable: Dimensions whose elements may all be the same one.
    """

    shape: tuple[int, ...]
    itemsize: int
    kinds: Kinds
    expandable: tuple[int, ...]

    @staticmethod
    def of(
        shape: tuple[int, ...],
        dtype: str,
        kinds: Kinds | Iterable[LayoutKind | str] = ANY,
        expandable: tuple[int, ...] | None = None,
    ) -> Site:
        """A site; every dimension is expandable unless `expandable` says otherwise."""
        axes = tuple(range(len(shape))) if expandable is None else expandable
        return Site(shape, dtype_named(dtype).itemsize, Kinds.of(kinds), axes)

    @property
    def vector(self) -> int:
        """Elements in 16 bytes."""
        return 16 // self.itemsize

    @property
    def free(self) -> tuple[int, ...]:
        """Dimensions whose stride may be anything."""
        rank = len(self.shape)
        return tuple(range(rank - 1 if self.kinds.unit_last else rank))

    @property
    def wide(self) -> tuple[int, ...]:
        """Free dimensions with more than one index, where a stride matters."""
        return tuple(i for i in self.free if self.shape[i] > 1)

    def allows(self, kind: LayoutKind) -> bool:
        """Whether the kind may be drawn and the shape can have it."""
        return kind in possible(self)


def paddings(size: int) -> tuple[int, ...]:
    """Elements behind a row that round its pitch up to a power of two times 8, by less than a row; smallest first."""
    behind = (-size % multiple or multiple for multiple in (8, 16, 64, 128))
    return tuple(sorted({after for after in behind if after < size}))


@lru_cache(maxsize=4096)
def possible(site: Site) -> tuple[LayoutKind, ...]:
    """Kinds that may be drawn and that the shape can have, in the order of `LayoutKind`; far only where allowed."""
    return tuple(kind for kind in LayoutKind if kind in site.kinds.allowed and can_have(site, kind))


def can_have(site: Site, kind: LayoutKind) -> bool:
    """Whether the shape can have the kind, allowed or not."""
    if 0 in site.shape:
        return kind is LayoutKind.EMPTY
    rank = len(site.shape)
    match kind:
        case LayoutKind.EMPTY:
            return False
        case LayoutKind.NARROWED:
            return rank >= 1
        case LayoutKind.STEPPED | LayoutKind.FAR:
            return bool(site.wide)
        case LayoutKind.PADDED:
            return rank >= 2 and bool(paddings(site.shape[-1]))
        case LayoutKind.TRANSPOSED:
            return len(site.wide) >= 2
        case LayoutKind.EXPANDED:
            return any(i in site.expandable for i in site.wide)
        case LayoutKind.DEGENERATE:
            return any(site.shape[i] == 1 for i in site.free)
        case _:
            return True


@lru_cache(maxsize=4096)
def table(site: Site) -> tuple[LayoutKind, ...]:
    """Kinds to draw from, the plainest first."""
    kinds = possible(site)
    found = tuple(kind for kind in PLAINEST_FIRST if kind in kinds)
    return found or (LayoutKind.EMPTY if 0 in site.shape else LayoutKind.CONTIGUOUS,)


@lru_cache(maxsize=4096)
def partners(site: Site, kind: LayoutKind) -> tuple[LayoutKind, ...]:
    """Kinds that a layout of a kind may have too."""
    if kind is LayoutKind.EXPANDED and len(site.shape) < 2:
        return ()  # the one element is all there is to move
    return tuple(partner for partner in PARTNERS.get(kind, ()) if partner in possible(site))
