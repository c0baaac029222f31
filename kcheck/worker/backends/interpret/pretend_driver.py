"""Triton's active driver while the CPU backend stands in for a GPU."""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any

import torch

from kcheck.gpus import Gpu
from kcheck.worker.backends.interpret.pretend_tensors import CUDA, Unanswered


class _Answers(dict[str, int]):
    """Device properties as Triton's driver gives them."""

    def __init__(self, unanswered: Unanswered, **known: int) -> None:
        super().__init__(known)
        self._unanswered = unanswered

    def __missing__(self, name: str) -> int:
        raise self._unanswered(f"triton.runtime.driver.active.utils.get_device_properties()[{name!r}]")


class Driver:
    """Triton's active driver.

    Args:
        gpu: What it drives.
        unanswered: Makes the error for what it cannot do.
        make_target: ``GPUTarget``.
    """

    def __init__(self, gpu: Gpu, unanswered: Unanswered, make_target: Callable[..., Any]) -> None:
        self._gpu = gpu
        self._unanswered = unanswered
        self._make_target = make_target
        self.utils = types.SimpleNamespace(get_device_properties=self._properties)

    def _properties(self, device: int = 0) -> dict[str, int]:
        return _Answers(
            self._unanswered,
            max_shared_mem=self._gpu.shared_memory_per_block_optin,
            max_num_regs=self._gpu.regs_per_multiprocessor,
            multiprocessor_count=self._gpu.multi_processor_count,
            warpSize=self._gpu.warp_size,
        )

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise self._unanswered(f"triton.runtime.driver.active.{name}")

    def get_current_target(self) -> Any:
        """The GPU, as the compiler knows it."""
        return self._make_target("cuda", self._gpu.major * 10 + self._gpu.minor, self._gpu.warp_size)

    def get_device_capability(self, device: int = 0) -> tuple[int, int]:
        """Compute capability."""
        return self._gpu.major, self._gpu.minor

    def get_active_torch_device(self) -> torch.device:
        """The GPU as torch names it."""
        return CUDA

    def get_current_device(self) -> int:
        """The only one."""
        return 0

    def set_current_device(self, device: int) -> None:
        """There is only one."""

    def get_current_stream(self, device: int = 0) -> int:
        """The default stream."""
        return 0

    def get_device_interface(self) -> Any:
        """``torch.cuda``."""
        return torch.cuda
