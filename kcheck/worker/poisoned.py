"""Memory that a target takes without a value (``torch.empty``) holds poison, not what happened to be there."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from kcheck.worker.decoys import poison

_WITHOUT_VALUES: frozenset[Callable[..., Any]] = frozenset(
    (
        torch.empty,
        torch.empty_like,
        torch.empty_permuted,
        torch.empty_strided,
        torch.Tensor.new_empty,
        torch.Tensor.new_empty_strided,
    )
)


class PoisonedMemory(TorchFunctionMode):
    """Fills new tensors without values with a byte, while it is entered.

    Args:
        byte: Another one in another run: what depends on it is an uninitialised read, what keeps it was not written.
    """

    def __init__(self, byte: int) -> None:
        super().__init__()
        self._byte = byte

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        """Call the function; fill what it made."""
        made = func(*args, **(kwargs or {}))
        if func in _WITHOUT_VALUES and made.layout is torch.strided and made.device.type in ("cpu", "cuda"):
            poison(made, self._byte)
        return made
