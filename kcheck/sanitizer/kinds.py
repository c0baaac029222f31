"""Which finding a record is, and in what words."""

from __future__ import annotations

from kcheck.findings import Kind
from kcheck.sanitizer.places import bytes_text
from kcheck.sanitizer.records import Record, Site
from kcheck.sanitizer.tool import Tool

# What a CUDA call returns once a kernel has failed, whatever the call: numbers of cudaError_t and CUresult, the same in
# both. https://docs.nvidia.com/cuda/cuda-runtime-api/group__CUDART__TYPES.html
_AFTERMATH = frozenset({700, 702, 709, 710, 714, 715, 716, 717, 718, 719})


def kind_of(record: Record) -> Kind | None:
    """The finding that a record proves; None if kcheck does not know this kind of record."""
    if record.message.startswith("Leaked"):
        return Kind.LEAK
    if record.kind == "Api":
        return Kind.API_ERROR
    by_tool = {
        Tool.RACECHECK: Kind.SHARED_RACE,
        Tool.SYNCCHECK: Kind.BARRIER_DIVERGENCE,
        Tool.INITCHECK: Kind.UNINITIALIZED_READ,
    }
    if record.tool in by_tool:
        return by_tool[record.tool] if _is_own(record) else None
    return _memory_fault(record)


def _is_own(record: Record) -> bool:
    """The record is of the kind that its tool is for, not a message about the tool."""
    if record.tool is Tool.RACECHECK:
        return bool(record.sites) or "hazard" in record.kind.lower() or record.message.startswith("Potential")
    if record.tool is Tool.SYNCCHECK:
        return record.kind == "Synccheck" or "Barrier error" in record.message
    return record.message.startswith("Uninitialized") or record.kind.startswith("Initcheck")


def _memory_fault(record: Record) -> Kind | None:
    if record.kind not in ("Precise", "Imprecise"):
        return None
    if "misaligned" in f"{record.error} {record.message}".lower():
        return Kind.MISALIGNED_ACCESS
    if record.kind == "Precise" and record.access in ("write", "atomic"):
        return Kind.OUT_OF_BOUNDS_WRITE
    if record.kind == "Precise" and record.access == "read":
        return Kind.OUT_OF_BOUNDS_READ
    return Kind.CRASH


def is_aftermath(record: Record) -> bool:
    """The record is a CUDA call that fails because a kernel failed before: no fault of its own."""
    return record.kind == "Api" and record.result in _AFTERMATH


def what_happened(record: Record, kind: Kind) -> str:
    """The record as a clause, without the place."""
    if record.kind == "Imprecise":  # the hardware's word: no address, no size
        return record.message
    does = {"write": "writes", "atomic": "updates"}.get(record.access, "reads")
    of_memory = f"{does} {bytes_text(record.size)} of {record.space or 'global'} memory"
    says: dict[Kind, str] = {
        Kind.OUT_OF_BOUNDS_READ: f"{of_memory} out of bounds",
        Kind.OUT_OF_BOUNDS_WRITE: f"{of_memory} out of bounds" + (", atomically" if does == "updates" else ""),
        Kind.MISALIGNED_ACCESS: f"{of_memory} at a misaligned address",
        Kind.UNINITIALIZED_READ: f"{of_memory} that nothing has written",
        Kind.SHARED_RACE: _race(record),
        Kind.BARRIER_DIVERGENCE: f"{record.message}: {record.error}" if record.error else record.message,
        Kind.LEAK: f"{bytes_text(record.size)} of device memory are never freed",
    }
    return says.get(kind) or record.message or f"compute-sanitizer reports a fault of kind {record.kind}"


def _race(record: Record) -> str:
    """Both sides. Of a write and a read, an analysis record does not say which comes first: RAW and WAR look alike."""
    if len(record.sites) < 2:
        return record.message
    sides = " and ".join(f"the {site.access} at {_line(site)}" for site in record.sites)
    only_writes = all(site.access == "write" for site in record.sites)
    hazard = "write after write" if only_writes else "read after write, or write after read"
    return f"{sides} touch the same shared memory and no barrier orders them ({hazard})"


def _line(site: Site) -> str:
    if not site.frame.file:
        return site.frame.function or "an unknown line"
    return f"{site.frame.file.rpartition('/')[2]}:{site.frame.line}"
