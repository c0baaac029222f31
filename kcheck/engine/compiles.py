"""What a target's cases cost in compiles: a compile in the middle of serving is a problem of its own."""

from __future__ import annotations

from collections.abc import Iterable

from kcheck.evidence import Compiled


class CompileCount:
    """Specialisations by kernel: how many, what they took, and which argument made the difference.

    Attributes:
        kernels: The counts by kernel.
    """

    def __init__(self) -> None:
        self.kernels: dict[str, Compiled] = {}

    def update(self, compiles: Iterable[tuple[str, float, bool, str]]) -> None:
        """Add the compiles of one case, as `kcheck.protocol.Judgement` has them."""
        for name, seconds, cached, cause in compiles:
            one = Compiled(int(not cached), int(cached), seconds, {cause: 1} if cause else {})
            self.kernels[name] = self.kernels[name] + one if name in self.kernels else one
