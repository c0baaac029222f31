"""Device memory at an address that is the same in every process, so that compiled kernels can be kept on disk.

Kernels have the address of the table built in. It is asked of the driver's virtual memory management
(https://docs.nvidia.com/cuda/cuda-driver-api/group__CUDA__VA.html); where the driver gives another one, that one is
part of the key under which a kernel is kept.
"""

from __future__ import annotations

import ctypes

import torch

from kcheck.errors import CouldNotCheck

WANTED = 0x2F00_0000_0000  # of the 47 bits that a GPU shares with the host, a place that allocators do not use
_PINNED, _ON_DEVICE, _READ_WRITE = 1, 1, 3


class _Location(ctypes.Structure):
    _fields_ = [("type", ctypes.c_int), ("id", ctypes.c_int)]


class _AllocationProperties(ctypes.Structure):
    _fields_ = [
        ("type", ctypes.c_int),
        ("handle_types", ctypes.c_int),
        ("location", _Location),
        ("win32", ctypes.c_void_p),
        ("flags", ctypes.c_ubyte * 8),
    ]


class _AccessDescription(ctypes.Structure):
    _fields_ = [("location", _Location), ("flags", ctypes.c_int)]


class DeviceWords:
    """int64 words on the current device, at `WANTED` where the driver agrees. They are never given back.

    Args:
        count: How many.

    Attributes:
        address: Where they are.
        tensor: int64 of shape (count,).

    Raises:
        CouldNotCheck: The driver does not give the memory.
    """

    def __init__(self, count: int) -> None:
        torch.cuda.current_stream()  # makes the context
        self._driver = ctypes.CDLL("libcuda.so.1")
        device = torch.cuda.current_device()
        location = _Location(_ON_DEVICE, device)
        properties = _AllocationProperties(_PINNED, 0, location, None)
        granularity = ctypes.c_size_t()
        self._call("cuMemGetAllocationGranularity", ctypes.byref(granularity), ctypes.byref(properties), 0)
        size = ctypes.c_size_t(-(-8 * count // granularity.value) * granularity.value)
        address, handle = ctypes.c_uint64(), ctypes.c_uint64()
        zero = ctypes.c_uint64(0)
        self._call(
            "cuMemAddressReserve", ctypes.byref(address), size, ctypes.c_size_t(0), ctypes.c_uint64(WANTED), zero
        )
        self._call("cuMemCreate", ctypes.byref(handle), size, ctypes.byref(properties), zero)
        self._call("cuMemMap", address, size, ctypes.c_size_t(0), handle, zero)
        access = _AccessDescription(location, _READ_WRITE)
        self._call("cuMemSetAccess", address, size, ctypes.byref(access), ctypes.c_size_t(1))
        self.address = address.value
        self.__cuda_array_interface__ = {
            "shape": (count,),
            "typestr": "<i8",
            "data": (self.address, False),
            "version": 3,
        }
        self.tensor = torch.as_tensor(self, device=f"cuda:{device}")

    def _call(self, function: str, *arguments: object) -> None:
        code = getattr(self._driver, function)(*arguments)
        if code:
            raise CouldNotCheck(f"the view check gets no memory on the GPU: {function} failed with CUDA error {code}")
