"""The GPU backend: kernels run compiled, as they ship. Launches and compiles are seen; single accesses are not."""

from kcheck.worker.backends.cuda.backend import CudaBackend

__all__ = ["CudaBackend"]
