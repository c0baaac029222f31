"""What ``torch.cuda`` and ``torch.accelerator`` answer while the CPU backend stands in for a GPU."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch

from kcheck.gpus import Gpu
from kcheck.worker.backends.interpret.patches import PatchSet
from kcheck.worker.backends.interpret.pretend_tensors import CPU, CUDA, Unanswered

# Names of torch.cuda that need no GPU: its exceptions, and what is built on other functions.
_EXCEPTIONS = ("AcceleratorError", "CudaError", "DeferredCudaCallError", "OutOfMemoryError")
_HARMLESS = (
    *_EXCEPTIONS,
    "StreamContext",
    "cudaStatus",
    "device",
    "device_of",
    "get_device_capability",
    "get_device_name",
)
# Device properties that torch has and no table knows; it has no others.
_UNKNOWN = (
    "clock_rate",
    "memory_bus_width",
    "memory_clock_rate",
    "pci_bus_id",
    "pci_device_id",
    "pci_domain_id",
    "uuid",
)
_CUDA_VERSION = "12.8"


class Properties:
    """Device properties.

    Args:
        gpu: What they are of.
        unanswered: Makes the error for one that is not known.
    """

    def __init__(self, gpu: Gpu, unanswered: Unanswered) -> None:
        self._gpu = gpu
        self._unanswered = unanswered

    def __getattr__(self, name: str) -> Any:
        if name in _UNKNOWN:
            raise self._unanswered(f"torch.cuda.get_device_properties().{name}")
        if name.startswith("_") or name == "arch":
            raise AttributeError(name)
        return getattr(self._gpu, name)


class Stream:
    """The one stream: everything has happened when a call returns."""

    device = CUDA
    device_index = 0
    device_type = 1
    stream_id = 0
    cuda_stream = 0
    priority = 0

    def __init__(self, *_: Any, **__: Any) -> None:
        pass

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def synchronize(self) -> None:
        """Nothing is left to wait for."""

    def query(self) -> bool:
        """All work is done."""
        return True

    def wait_stream(self, stream: Any) -> None:
        """Nothing is left to wait for."""

    def wait_event(self, event: Any) -> None:
        """Nothing is left to wait for."""

    def record_event(self, event: Any = None) -> Any:
        """An event that has happened."""
        return Event() if event is None else event


class Event:
    """An event: it has happened."""

    def __init__(self, *_: Any, **__: Any) -> None:
        pass

    def record(self, stream: Any = None) -> None:
        """Nothing to record."""

    def wait(self, stream: Any = None) -> None:
        """Nothing is left to wait for."""

    def query(self) -> bool:
        """It has happened."""
        return True

    def synchronize(self) -> None:
        """Nothing is left to wait for."""


@contextmanager
def _entered(stream: Any) -> Iterator[None]:
    yield


def cuda_patches(gpu: Gpu, unanswered: Unanswered) -> PatchSet:
    """All replacements of attributes of torch.

    Args:
        gpu: What is there.
        unanswered: Makes the error for a call that cannot be answered, from its name.
    """
    patches = PatchSet()
    answers = _answers(gpu, unanswered)
    for name, value in list(vars(torch.cuda).items()):
        public = callable(value) and not name.startswith("_") and getattr(value, "__module__", "").startswith("torch.")
        if name.endswith(("Tensor", "Storage")):
            continue  # legacy types, which may be asked about; torch refuses to make one
        if public and name not in answers and name not in _HARMLESS:
            patches.put(torch.cuda, name, _refusing(f"torch.cuda.{name}", unanswered))
    for name, value in answers.items():
        patches.put(torch.cuda, name, value)
    # What functions that were imported by name go down to.
    patches.put(torch._C, "_cuda_getDevice", lambda: 0)
    patches.put(torch._C, "_cuda_getDeviceCount", lambda: 1)
    patches.put(torch._C, "_cuda_getCurrentRawStream", lambda device: 0)
    for name in ("mark", "range_end", "range_pop", "range_push", "range_start"):
        patches.put(torch.cuda.nvtx, name, lambda *_, **__: 0)
    patches.put(torch.backends.cuda, "is_built", lambda: True)
    patches.put(torch.version, "cuda", _CUDA_VERSION)
    patches.put(torch.version, "hip", None)
    patches.put(torch, "Generator", _Generator)
    patches.put(torch.Tensor, "record_stream", lambda tensor, stream: None)  # torch takes streams of its own alone
    patches.put(torch.autocast, "__enter__", _autocast(unanswered))
    _patch_accelerator(patches, unanswered)
    return patches


def _answers(gpu: Gpu, unanswered: Unanswered) -> dict[str, Any]:
    def index(device: Any = None) -> int:
        named = (
            torch.device("cuda", device)
            if isinstance(device, int)
            else torch.device("cuda" if device is None else device)
        )
        if named.type != "cuda" or named.index:
            raise unanswered(f"device {str(named)!r}; it is one GPU, cuda:0")
        return 0

    def exchange(device: int) -> int:
        return -1 if device < 0 else index(device)

    def properties(device: Any = None) -> Properties:
        index(device)
        return Properties(gpu, unanswered)

    def set_device(device: Any) -> None:
        index(device)

    def nothing(*_: Any, **__: Any) -> None:
        return None

    return {
        "_exchange_device": exchange,
        "_get_device_properties": properties,
        "_is_compiled": lambda: True,
        "_lazy_init": nothing,
        "_maybe_exchange_device": exchange,
        "Event": type("Event", (Event,), {"elapsed_time": _refusing("torch.cuda.Event.elapsed_time", unanswered)}),
        "Stream": Stream,
        "can_device_access_peer": lambda device, peer: False,
        "current_device": lambda: 0,
        "current_stream": Stream,
        "default_stream": Stream,
        "device_count": lambda: 1,
        "empty_cache": nothing,
        "get_arch_list": lambda: [gpu.arch],
        "get_device_properties": properties,
        "get_rng_state": lambda device="cuda": torch.default_generator.get_state(),
        "init": nothing,
        "initial_seed": torch.default_generator.initial_seed,
        "ipc_collect": nothing,
        "is_available": lambda: True,
        "is_bf16_supported": lambda including_emulation=True: including_emulation or gpu.major >= 8,
        "is_current_stream_capturing": lambda: False,
        "is_initialized": lambda: True,
        "is_tf32_supported": lambda: gpu.major >= 8,
        "manual_seed": torch.default_generator.manual_seed,
        "manual_seed_all": torch.default_generator.manual_seed,
        "set_device": set_device,
        "set_rng_state": lambda state, device="cuda": torch.default_generator.set_state(state),
        "set_stream": nothing,
        "stream": _entered,
        "synchronize": nothing,
    }


def _patch_accelerator(patches: PatchSet, unanswered: Unanswered) -> None:
    accelerator = torch.accelerator
    answers: dict[str, Any] = {
        "current_accelerator": lambda check_available=False: torch.device("cuda"),
        "current_device_idx": lambda: 0,
        "current_device_index": lambda: 0,
        "current_stream": Stream,
        "device_count": lambda: 1,
        "is_available": lambda: True,
        "set_device_idx": lambda device: None,
        "set_device_index": lambda device: None,
        "set_stream": lambda stream: None,
        "synchronize": lambda device=None: None,
    }
    for name in accelerator.__all__:
        if callable(getattr(accelerator, name, None)):
            patches.put(accelerator, name, answers.get(name) or _refusing(f"torch.accelerator.{name}", unanswered))


def _refusing(name: str, unanswered: Unanswered) -> Callable[..., Any]:
    def refuse(*_: Any, **__: Any) -> Any:
        raise unanswered(name)

    return refuse


class _Generator(torch.Generator):
    """``torch.Generator("cuda")``: its numbers are not a GPU's."""

    def __new__(cls, device: Any = "cpu") -> Any:
        return super().__new__(cls, CPU)  # type: ignore[call-arg]


def _autocast(unanswered: Unanswered) -> Callable[[Any], Any]:
    enter = torch.autocast.__enter__

    def guarded(self: Any) -> Any:
        if self.device == "cuda" and self._enabled:
            raise unanswered("torch.autocast('cuda')")
        return enter(self)  # type: ignore[no-untyped-call]

    return guarded
