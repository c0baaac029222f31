"""The GPUs that the CPU backend can answer for: what CUDA reports of one well-known model of each architecture.

Numbers are those of the "Technical Specifications per Compute Capability" of the CUDA C++ Programming Guide and of the
models' data sheets. A property that is not here cannot be answered.
"""

from __future__ import annotations

from dataclasses import dataclass

from kcheck.errors import UsageError

KIB, GIB = 1 << 10, 1 << 30
DEFAULT = "sm_90"


@dataclass(frozen=True, slots=True)
class Gpu:
    """One GPU.

    Attributes:
        name: What ``torch.cuda.get_device_name`` gives.
        major: Compute capability.
        minor: Compute capability.
        multi_processor_count: Streaming multiprocessors.
        total_memory: Bytes.
        max_threads_per_multi_processor: Threads.
        shared_memory_per_multiprocessor: Bytes.
        L2_cache_size: Bytes.
    """

    name: str
    major: int
    minor: int
    multi_processor_count: int
    total_memory: int
    max_threads_per_multi_processor: int
    shared_memory_per_multiprocessor: int
    L2_cache_size: int

    warp_size = 32
    max_threads_per_block = 1024
    regs_per_multiprocessor = 1 << 16
    shared_memory_per_block = 48 * KIB
    is_integrated = False
    is_multi_gpu_board = False

    @property
    def shared_memory_per_block_optin(self) -> int:
        """Bytes: all of a multiprocessor's, but for what the system keeps of it since Ampere."""
        return self.shared_memory_per_multiprocessor - (KIB if self.major >= 8 else 0)

    @property
    def arch(self) -> str:
        """Its architecture, ``sm_90`` for example."""
        return f"sm_{self.major}{self.minor}"


_GPUS = (
    Gpu("Tesla T4", 7, 5, 40, 16 * GIB, 1024, 64 * KIB, 4096 * KIB),
    Gpu("NVIDIA A100-SXM4-80GB", 8, 0, 108, 80 * GIB, 2048, 164 * KIB, 40960 * KIB),
    Gpu("NVIDIA RTX A6000", 8, 6, 84, 48 * GIB, 1536, 100 * KIB, 6144 * KIB),
    Gpu("NVIDIA L40S", 8, 9, 142, 48 * GIB, 1536, 100 * KIB, 98304 * KIB),
    Gpu("NVIDIA H100 80GB HBM3", 9, 0, 132, 80 * GIB, 2048, 228 * KIB, 51200 * KIB),
    Gpu("NVIDIA B200", 10, 0, 148, 180 * GIB, 2048, 228 * KIB, 129024 * KIB),
    Gpu("NVIDIA GeForce RTX 5090", 12, 0, 170, 32 * GIB, 1536, 100 * KIB, 98304 * KIB),
)
GPUS = {gpu.arch: gpu for gpu in _GPUS}


def gpu_named(arch: str) -> Gpu:
    """The GPU of an architecture.

    Raises:
        UsageError: There is none.
    """
    if arch not in GPUS:
        raise UsageError(f"there is no GPU {arch!r} to pretend; use one of {', '.join(GPUS)}")
    return GPUS[arch]
