"""What a target's cases cost in compiles: a compile in the middle of serving is a problem of its own."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

CAUSES = 3  # told for each kernel


@dataclass(slots=True)
class _Kernel:
    compiled: int = 0
    cached: int = 0
    seconds: float = 0.0
    causes: Counter[str] = field(default_factory=Counter)


class CompileCount:
    """Specialisations by kernel: how many, what they took, and which argument made the difference."""

    def __init__(self) -> None:
        self._kernels: dict[str, _Kernel] = {}

    def update(self, compiles: Iterable[tuple[str, float, bool, str]]) -> None:
        """Add the compiles of one case, as `kcheck.protocol.Judgement` has them."""
        for name, seconds, cached, cause in compiles:
            kernel = self._kernels.setdefault(name, _Kernel())
            kernel.cached += cached
            kernel.compiled += not cached
            kernel.seconds += seconds
            if cause:
                kernel.causes[cause] += 1

    def notes(self) -> Iterator[str]:
        """A sentence for each kernel."""
        for name, kernel in self._kernels.items():
            total = kernel.compiled + kernel.cached
            text = f"kernel {name} has {total} specialisation{'s' if total != 1 else ''}: {kernel.compiled} compiled, "
            text += f"{kernel.cached} from the disk cache, {kernel.seconds:.1f} s in all"
            if kernel.causes:
                text += "; made anew for " + " | ".join(cause for cause, _ in kernel.causes.most_common(CAUSES))
            yield text
