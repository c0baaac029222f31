"""Layouts, drawn alone or under a plan."""

from __future__ import annotations

from collections.abc import Iterable

from hypothesis import strategies as st

from kcheck.layout import Layout, LayoutKind
from kcheck.plan import Drawing
from kcheck.strategies.dims import unmet
from kcheck.strategies.direct import direct
from kcheck.strategies.kinds import ANY, Kinds, Site, can_have, partners, table
from kcheck.strategies.makers import make

# Bits of one choice, since Hypothesis tries to clear the upper ones: first the variant gets plainer, then the kind.
_KIND_BITS = 4
_VARIANT = st.integers(0, 511)
_LAYOUT = st.integers(0, (512 << _KIND_BITS) - 1)


def layouts(
    shape: tuple[int, ...], *, dtype: str = "float32", kinds: Kinds | Iterable[LayoutKind | str] = ANY
) -> st.SearchStrategy[Layout]:
    """Layouts of a shape: of one kind, or of two that occur together in practice.

    One choice: the kind and its variant. Shrinks towards contiguous, then towards one kind in its plainest variant:
    one element cut off, the first dimension that will do. It reads no plan; tensors do.

    Args:
        shape: Sizes of the view.
        dtype: Name of the data type, for the alignment.
        kinds: What may be drawn; see `ANY`, `WRITABLE`, `CONTIGUOUS_LAST`, `DENSE`. Kinds that the shape cannot have
            are left out.

    Raises:
        SpecError: There is no such kind.
    """
    return _layouts(Site.of(tuple(shape), dtype, kinds))


@direct
def _layouts(draw: st.DrawFn, site: Site) -> Layout:
    return _draw_layout(draw, site)


def _draw_layout(draw: st.DrawFn, site: Site, start: Layout | None = None) -> Layout:
    kinds = table(site)
    if kinds == (LayoutKind.CONTIGUOUS,):
        return make(site, (), start=start)
    bits = draw(_LAYOUT)
    kind = kinds[(bits & (1 << _KIND_BITS) - 1) % len(kinds)]
    a, b, partner = _variant(bits >> _KIND_BITS)
    others = partners(site, kind)
    both = (kind, others[partner % len(others)]) if others and partner >= 0 else (kind,)
    return make(site, both, a, b, start)


def _variant(bits: int) -> tuple[int, int, int]:
    """Two selectors, three bits each, and above them the partner: below 0 for none, in half of the cases and more.

    Bits, since Hypothesis tries to clear the upper ones: the partner goes first, then the second selector.
    """
    return bits & 7, bits >> 3 & 7, (bits >> 6) - 4


def planned_layout(
    draw: st.DrawFn,
    record: Drawing,
    site: Site,
    *,
    parts: int = 1,
    start: Layout | None = None,
    own: LayoutKind | None = None,
) -> Layout:
    """The layout of the tensor drawn next: the pinned kind, the plainest in a sweep, else drawn.

    A pinned kind that the tensor cannot have is noted as unmet, and the layout is the plainest.

    Args:
        draw: Hypothesis's.
        record: The case being drawn.
        site: What the layout is made for.
        parts: Number of tensors that will share it: a pin of any of them counts.
        start: The plainest layout, if not contiguous.
        own: Kind that the tensors have already, and for which none of them is contiguous.
    """
    small = record.plan.small
    named = [record.name_of_next(i) for i in range(parts)] if record.plan.layouts else []
    pins = [(name, record.plan.layouts.get(name)) for name in named]
    for name, kind in pins:
        if kind is not None and _may_pin(site, kind, own):
            a, b, _ = _variant(0 if small or kind is LayoutKind.CONTIGUOUS else draw(_VARIANT))
            return make(site, (kind,), a, b, start)
        if kind not in (None, own):
            unmet(record, f"{name} cannot be {kind}: {_why_not(site, kind)}")
    if small or any(kind not in (None, own) for _, kind in pins):
        return make(site, (), start=start)
    return _draw_layout(draw, site, start)


def _may_pin(site: Site, kind: LayoutKind, own: LayoutKind | None) -> bool:
    if kind is LayoutKind.FAR:  # needs no permission: nobody pins it by accident
        return can_have(site, kind)
    return site.allows(kind) and not (kind is LayoutKind.CONTIGUOUS and own is not None)


def _why_not(site: Site, kind: LayoutKind) -> str:
    if not can_have(site, kind):
        return f"its shape {site.shape} and its values leave no such layout"
    return "its strategy does not allow it"
