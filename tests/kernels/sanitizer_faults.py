"""One planted fault a target, for compute-sanitizer on a GPU; a comment marks each line that must be named."""
# mypy: ignore-errors

import ctypes
import os

import triton
import triton.language as tl
from hypothesis import strategies as st

import kcheck
from kcheck import strategies as ks

FAR = 1 << 20  # elements behind the end, where nothing is


@triton.jit
def read_kernel(out_ptr, x_ptr, far):
    lane = tl.arange(0, 16)
    value = tl.load(x_ptr + lane + far)  # planted: read
    tl.store(out_ptr + lane, value)


@triton.jit
def write_kernel(out_ptr, x_ptr, far):
    lane = tl.arange(0, 16)
    value = tl.load(x_ptr + lane)
    tl.store(out_ptr + lane + far, value)  # planted: write


@triton.jit
def atomic_kernel(out_ptr, x_ptr, far):
    lane = tl.arange(0, 16)
    value = tl.load(x_ptr + lane)
    tl.atomic_add(out_ptr + lane + far, value)  # planted: atomic


@triton.jit
def misaligned_kernel(out_ptr, x_ptr, far):
    lane = tl.arange(0, 16)
    odd_ptr = (x_ptr.to(tl.uint64) + 2 + far * 0).to(tl.pointer_type(tl.float32))
    value = tl.load(odd_ptr)  # planted: misaligned
    tl.store(out_ptr + lane, value)


@triton.jit
def uninitialized_kernel(out_ptr, x_ptr, far):
    lane = tl.arange(0, 16)
    value = tl.load(x_ptr + lane)
    before = tl.load(out_ptr + lane)  # planted: uninitialized
    tl.store(out_ptr + lane, value + before)


@triton.jit
def copy_kernel(out_ptr, x_ptr, far):
    lane = tl.arange(0, 16)
    tl.store(out_ptr + lane, tl.load(x_ptr + lane))


@st.composite
def cases(draw):
    kinds = ks.Kinds.of(["contiguous"])
    x = draw(ks.tensors((16,), "float32", kinds=kinds))
    return kcheck.Case(out=draw(ks.outputs((16,), "float32", kinds=kinds)), x=x)


def declare(*kernels):
    return kcheck.target(cases=cases(), kernels=kernels, outputs=["out"])


@declare(read_kernel)
def read(out, x):
    read_kernel[(1,)](out, x, FAR)


@declare(write_kernel)
def write(out, x):
    write_kernel[(1,)](out, x, FAR)


@declare(atomic_kernel)
def atomic(out, x):
    atomic_kernel[(1,)](out, x, FAR)


@declare(misaligned_kernel)
def misaligned(out, x):
    misaligned_kernel[(1,)](out, x, FAR)


@declare(uninitialized_kernel)
def uninitialized(out, x):
    uninitialized_kernel[(1,)](out, x, FAR)


@declare(copy_kernel)
def fine(out, x):
    copy_kernel[(1,)](out, x, FAR)


@declare(copy_kernel)
def leak(out, x):
    copy_kernel[(1,)](out, x, FAR)
    pointer = ctypes.c_uint64()
    ctypes.CDLL("libcuda.so.1").cuMemAlloc_v2(ctypes.byref(pointer), ctypes.c_size_t(4096))  # planted: leak


@declare(copy_kernel)
def api_error(out, x):
    copy_kernel[(1,)](out, x, FAR)
    nothing, count = ctypes.c_uint64(0), ctypes.c_size_t(64)
    ctypes.CDLL("libcuda.so.1").cuMemcpyDtoD_v2(nothing, nothing, count)  # planted: api


def _cuda_faults():
    """The library that the tests build from ``cuda_faults.cu``."""
    return ctypes.CDLL(os.environ["KCHECK_CUDA_FAULTS"])


@declare("shared_race")
def shared_race(out, x):
    _cuda_faults().launch_shared_race(ctypes.c_void_p(out.data_ptr()))


@declare("divergent_barrier")
def divergent_barrier(out, x):
    _cuda_faults().launch_divergent_barrier(ctypes.c_void_p(out.data_ptr()))
