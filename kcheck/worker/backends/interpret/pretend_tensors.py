"""Tensors that say they are on a GPU: a mode that answers where a tensor is, and moves tensors between places.

Everything lies in host memory. A tensor counts as on the device unless it was marked as host memory: an argument that
the case says is there, what ``torch.empty(3)`` makes without a device, what was moved there, and what is computed from
such tensors alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache, partial
from typing import Any

import torch
from torch._ops import OpOverload, OpOverloadPacket
from torch.overrides import TorchFunctionMode

from kcheck.worker.backends.base import Unsupported
from kcheck.worker.host import is_host, mark_host
from kcheck.worker.modes import reentered

CUDA = torch.device("cuda", 0)
CPU = torch.device("cpu")
_Tensor: Any = torch.Tensor
_EVERYWHERE = ("CPU", "CompositeImplicitAutograd", "CompositeExplicitAutograd")  # dispatch keys
Unanswered = Callable[[str], Unsupported]  # makes the error for a call that cannot be answered, from its name
_Args = tuple[Any, ...]
_Kwargs = dict[str, Any]


class PretendedTensors(TorchFunctionMode):
    """While it is entered, tensors are on ``cuda:0`` unless they are marked as host memory.

    Args:
        unanswered: Makes the error for a call that cannot be answered, from its name.
    """

    def __init__(self, unanswered: Unanswered) -> None:
        super().__init__()
        self._unanswered = unanswered

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        """Answer a question about a tensor's place, or call the function and mark what it made."""
        answer = _ANSWERS.get(func)
        if answer is not None:
            return answer(args[0])
        special = _SPECIAL.get(func)
        if special is not None:
            return special(self, tuple(args), dict(kwargs or {}))
        operator = _gpu_operator(func) if isinstance(func, (OpOverload, OpOverloadPacket)) else None
        if operator is not None:
            with reentered():
                return operator(*args, **(kwargs or {}))
        if func in _REFUSED and not is_host(args[0]):
            raise self._unanswered(f"Tensor.{_REFUSED[func]}")
        return self._computed(func, tuple(args), dict(kwargs or {}))

    def _computed(self, func: Callable[..., Any], args: _Args, kwargs: _Kwargs) -> Any:
        place = kwargs.get("device")
        if place is not None:
            place = self.place(place)
            kwargs["device"] = CPU if place == CUDA else place
        if kwargs.get("pin_memory"):
            kwargs["pin_memory"] = False  # there is no driver to pin it for
        given = [one for one in _tensors((args, tuple(kwargs.values()))) if one is not None]
        made = func(*args, **kwargs)
        if (place.type == "cpu") if place is not None else all(map(is_host, given)):
            for tensor in _tensors((made,)):
                if not any(tensor is one for one in given):
                    mark_host(tensor)
        return made

    def place(self, device: Any) -> torch.device:
        """The device that a value names: ``cuda:0``, or one that is no GPU.

        Raises:
            Unsupported: It is a second GPU.
        """
        named = torch.device("cuda", device) if isinstance(device, int) else torch.device(device)
        if named.type != "cuda":
            return named
        if named.index:
            raise self._unanswered(f"device {str(named)!r}, a second GPU")
        return CUDA

    def move(self, tensor: torch.Tensor, place: torch.device, rest: _Args, kwargs: _Kwargs) -> torch.Tensor:
        """``tensor.to``, with a copy where it changes places as it would there."""
        crosses = (place == CUDA) == is_host(tensor)
        real = tensor.to(CPU if place == CUDA else place, *rest, **(kwargs | ({"copy": True} if crosses else {})))
        if place.type == "cpu" and real is not tensor:
            mark_host(real)
        return real


@lru_cache(maxsize=256)
def _gpu_operator(func: Any) -> Callable[..., Any] | None:
    """What runs an operator that a library has registered for GPUs alone; None for any other."""
    if isinstance(func, OpOverloadPacket):
        names = func.overloads()  # type: ignore[no-untyped-call]
        func = getattr(func, names[0]) if len(names) == 1 else None
    if func is None or not _has_kernel(func, "CUDA") or any(_has_kernel(func, key) for key in _EVERYWHERE):
        return None
    return partial(func._handle.redispatch_boxed, torch._C.DispatchKeySet(torch._C.DispatchKey.CUDA))


def _has_kernel(operator: Any, key: str) -> bool:
    return torch._C._dispatch_has_kernel_for_dispatch_key(operator.name(), key)


def _tensors(values: Any, depth: int = 3) -> Iterator[torch.Tensor]:
    for value in values:
        if isinstance(value, torch.Tensor):
            yield value
        elif depth and isinstance(value, (list, tuple)):
            yield from _tensors(value, depth - 1)
        elif depth and isinstance(value, dict):
            yield from _tensors(value.values(), depth - 1)


def _to(mode: PretendedTensors, args: _Args, kwargs: _Kwargs) -> Any:
    tensor, *rest = args
    other = rest[0] if rest else kwargs.get("other")
    if isinstance(other, torch.Tensor):
        crosses = is_host(tensor) != is_host(other)
        made = tensor.to(*rest, **(kwargs | ({"copy": True} if crosses and len(rest) < 3 else {})))
        return mark_host(made) if is_host(other) and made is not tensor else made
    if rest and not isinstance(rest[0], torch.dtype):
        place = mode.place(rest.pop(0)) if rest[0] is not None else rest.pop(0)
    else:
        place = mode.place(kwargs["device"]) if kwargs.get("device") is not None else None
    kwargs.pop("device", None)
    if place is None:
        made = tensor.to(*rest, **kwargs) if rest or kwargs else tensor
        return mark_host(made) if is_host(tensor) and made is not tensor else made
    named = dict(zip(("dtype", "non_blocking", "copy"), rest, strict=False))
    return mode.move(tensor, place, (), {n: v for n, v in (named | kwargs).items() if v is not None})


def _cuda(mode: PretendedTensors, args: _Args, kwargs: _Kwargs) -> Any:
    tensor, *rest = args
    device = rest[0] if rest else kwargs.get("device")
    options = {"memory_format": kwargs["memory_format"]} if "memory_format" in kwargs else {}
    return mode.move(tensor, CUDA if device is None else mode.place(device), (), options)


def _cpu(mode: PretendedTensors, args: _Args, kwargs: _Kwargs) -> Any:
    return mode.move(args[0], CPU, (), kwargs)


def _pin_memory(mode: PretendedTensors, args: _Args, kwargs: _Kwargs) -> Any:
    return mark_host(args[0].clone())


def _type(mode: PretendedTensors, args: _Args, kwargs: _Kwargs) -> Any:
    if len(args) == 1 and not kwargs:
        name: str = args[0].type()
        return name if is_host(args[0]) else name.replace("torch.", "torch.cuda.")
    if isinstance(args[1], str) and "cuda" in args[1]:
        return mode.move(args[0], CUDA, (), {"dtype": torch.empty(0).type(args[1].replace("cuda.", "")).dtype})
    return mode._computed(_Tensor.type, args, kwargs)


_ANSWERS: dict[Any, Callable[[torch.Tensor], Any]] = {
    _Tensor.device.__get__: lambda x: CPU if is_host(x) else CUDA if x.device.type == "cpu" else x.device,
    _Tensor.is_cuda.__get__: lambda x: not is_host(x) and x.device.type == "cpu",
    _Tensor.is_cpu.__get__: lambda x: is_host(x),
    _Tensor.get_device: lambda x: -1 if is_host(x) else 0,
    _Tensor.is_pinned: lambda x: False,
}
_SPECIAL: dict[Any, Callable[[PretendedTensors, _Args, _Kwargs], Any]] = {
    _Tensor.to: _to,
    _Tensor.cuda: _cuda,
    _Tensor.cpu: _cpu,
    _Tensor.pin_memory: _pin_memory,
    _Tensor.type: _type,
}
_REFUSED: dict[Any, str] = {
    _Tensor.__dlpack__: "__dlpack__",
    _Tensor.__dlpack_device__: "__dlpack_device__",
    _Tensor.__cuda_array_interface__.__get__: "__cuda_array_interface__",
}
