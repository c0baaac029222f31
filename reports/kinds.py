"""What each kind of finding means and how it is usually cured."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kcheck.findings import Kind


@dataclass(frozen=True, slots=True)
class Help:
    """Help on a kind of finding.

    Attributes:
        meaning: What was proven, a sentence.
        cure: Where to look, a sentence or two.
    """

    meaning: str
    cure: str


HELP: Mapping[Kind, Help] = {
    Kind.VALUE_MISMATCH: Help(
        "The result differs from the oracle beyond the tolerance.",
        "Look at the first wrong element: a wrong mask, a wrong stride or a reduction that leaves out elements. If the "
        "kernel accumulates in a 16-bit type, give the target rtol and atol.",
    ),
    Kind.LAYOUT_VARIANCE: Help(
        "The result is wrong, and on contiguous copies of the same values it is not.",
        "The kernel computes an address from a shape where it needs a stride. Pass x.stride(i) for every dimension.",
    ),
    Kind.OUT_OF_VIEW_READ: Help(
        "The kernel read memory that belongs to the tensor's storage, but not to the view it was given.",
        "The kernel computes an address from a shape where it needs a stride, or a mask ends at the wrong bound. "
        "Pass x.stride(i) for every dimension and mask by the view's shape.",
    ),
    Kind.OUT_OF_VIEW_WRITE: Help(
        "The kernel wrote memory that belongs to the tensor's storage, but not to the view it was given: it destroys "
        "a neighbour's data.",
        "The kernel computes an address from a shape where it needs a stride, or a mask ends at the wrong bound. "
        "Pass x.stride(i) for every dimension and mask by the view's shape.",
    ),
    Kind.OUT_OF_BOUNDS_READ: Help(
        "The kernel read outside the memory of its argument.",
        "A mask is missing or ends at the wrong bound, or an index that was read is used without a check.",
    ),
    Kind.OUT_OF_BOUNDS_WRITE: Help(
        "The kernel wrote outside the memory of its argument.",
        "A mask is missing or ends at the wrong bound, or an index that was read is used without a check.",
    ),
    Kind.MISALIGNED_ACCESS: Help(
        "The device refused an access at an address that is not a multiple of its width.",
        "A vectorised access assumes an alignment that an offset view does not have. Check the data pointer in the "
        "wrapper, or load narrower.",
    ),
    Kind.UNWRITTEN_OUTPUT: Help(
        "An element of an output still holds what was there before the kernel ran.",
        "The grid or a mask does not cover the output, often at a size that is no multiple of the block. If the "
        "element is meant to stay unwritten, name the output in unwritten_ok.",
    ),
    Kind.INPUT_MUTATED: Help(
        "An argument that is only read has changed.",
        "A store goes to the wrong pointer. If the kernel is meant to write the argument, give it the role inout.",
    ),
    Kind.UNINITIALIZED_READ: Help(
        "The result depends on what outputs, scratch or the wrapper's own torch.empty held before.",
        "Initialise the buffer (torch.zeros), or write every element before it is read.",
    ),
    Kind.RACE: Help(
        "Two programs of one launch touch the same memory, one of them writes, and nothing orders them.",
        "Give each element one program that writes it, or use atomics, with acquire and release where one program "
        "waits for another.",
    ),
    Kind.SCATTER_CONFLICT: Help(
        "One store writes two different values to the same address.",
        "Make the indices of a store distinct, or use an atomic.",
    ),
    Kind.OFFSET_OVERFLOW: Help(
        "An offset was computed in 32 bits, wrapped, and reached an address.",
        "Widen the index before it is multiplied: pid.to(tl.int64) * stride.",
    ),
    Kind.FALSE_HINT: Help(
        "A hint to the compiler is not true, and the result changes where it is taken at its word.",
        "Drop the hint, or give it only where it holds: check strides and data pointers in the wrapper.",
    ),
    Kind.SHARED_RACE: Help(
        "Two threads of a block touch the same shared memory, one of them writes, and no barrier orders them.",
        "Put a barrier between the two lines.",
    ),
    Kind.BARRIER_DIVERGENCE: Help(
        "Not all threads of a block reach the same barrier.",
        "Take the barrier out of the branch or loop that only some threads run.",
    ),
    Kind.GRAPH_VARIANCE: Help(
        "A replayed CUDA graph gives another result than an eager run on the same contents.",
        "The wrapper decides something on the host (a length read back, a pointer, a size): the graph keeps the value "
        "of the capture. Decide it on the device.",
    ),
    Kind.DEAD_READ: Help(
        "The result depends on elements that the target declares dead.",
        "Mask the load by the length or the table that says which elements are live.",
    ),
    Kind.NONDETERMINISM: Help(
        "The same case gives results that differ beyond the tolerance.",
        "The result depends on the order in which programs run: look for programs that write one element, or for a "
        "flag that is read before it is set.",
    ),
    Kind.CRASH: Help(
        "A fresh worker process dies over the case, again.",
        "The kernel or its wrapper destroys memory or faults on the device. Replay the case under kcheck sanitize.",
    ),
    Kind.TIMEOUT: Help(
        "A fresh worker process hangs over the case, again.",
        "A loop's bound comes out wrong (a negative or a huge length), or a program waits for one that never runs.",
    ),
    Kind.DEVICE_ASSERT: Help(
        "An assertion in the kernel failed.",
        "The assertion says what does not hold; if the wrapper should refuse such arguments, raise ValueError there.",
    ),
    Kind.COMPILE_ERROR: Help(
        "The kernel does not compile for these arguments.",
        "Replay the case to see the compiler's message; if the wrapper should refuse such arguments, raise ValueError "
        "there.",
    ),
    Kind.API_ERROR: Help(
        "A call of the CUDA API failed.",
        "The message names the call and its error; check its arguments for this case.",
    ),
    Kind.LEAK: Help(
        "Device memory was never freed.",
        "Free it, or keep it in a tensor, which frees it.",
    ),
    Kind.TARGET_ERROR: Help(
        "The target raised an exception after a kernel had launched, or one that is no refusal of its arguments.",
        "Handle the case. A wrapper that does not take such arguments must say so before any launch, by ValueError, "
        "TypeError, NotImplementedError, AssertionError or RuntimeError.",
    ),
    Kind.MUST_ACCEPT: Help(
        "The wrapper rejected a layout that the target says it must accept.",
        "Accept the layout, or take it out of must_accept.",
    ),
}
