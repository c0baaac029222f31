"""How simple a case is: of two that show the same bug, the lighter one is kept."""

from __future__ import annotations

from kcheck.case import Case, View
from kcheck.layout import Layout


def is_dense(view: View) -> bool:
    """The view is its own contiguous copy."""
    return view.layout == Layout.contiguous(view.layout.shape)


def weight(case: Case) -> tuple[int, int, int]:
    """Size of a case, for choosing the smaller one: elements, views that are not contiguous, elements of memory."""
    views = case.views.values()
    return (
        sum(view.layout.numel for view in views),
        sum(not is_dense(view) for view in views),
        sum(backing.numel for backing in case.backings.values()),
    )
