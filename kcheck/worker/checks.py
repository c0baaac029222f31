"""Checks: from what was observed to findings. Each function is one kind of proof."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

import torch

from kcheck.case import Case, Role, View
from kcheck.dtypes import dtype_named
from kcheck.findings import Finding, Kind, Mismatch, Severity, SourceFrame
from kcheck.layout import Layout
from kcheck.objects import argument_of
from kcheck.target import Target
from kcheck.worker.arena import Placement
from kcheck.worker.backends.base import Fault, Frame, Launch, Place, Watch
from kcheck.worker.compare import flat_bytes
from kcheck.worker.run import Observation

MAX_CELLS = 64
HARMLESS = "the value read has no effect on the result in this case"
UNPROVEN = "it is not shown that the result depends on it"
_MEMORY_KINDS = {
    (Place.GAP, False): Kind.OUT_OF_VIEW_READ,
    (Place.GAP, True): Kind.OUT_OF_VIEW_WRITE,
    (Place.OUTSIDE, False): Kind.OUT_OF_BOUNDS_READ,
    (Place.OUTSIDE, True): Kind.OUT_OF_BOUNDS_WRITE,
}


def source_frame(frame: Frame) -> SourceFrame:
    """The same frame as plain data."""
    return SourceFrame(frame.file, frame.line, frame.function, frame.source)


def merged_faults(watches: Iterable[Watch]) -> list[Fault]:
    """Distinct faults of several runs; each with the counts of the first run that had it."""
    found: dict[tuple[object, ...], Fault] = {}
    for watch in watches:
        for fault in watch.faults:
            read_only = fault.place is Place.READ_ONLY  # the same line may stray as well
            found.setdefault((fault.access, fault.frame.file, fault.frame.line, fault.argument, read_only), fault)
    return list(found.values())


def memory_findings(case: Case, layouts: Mapping[str, Layout], faults: Iterable[Fault], effect: bool) -> list[Finding]:
    """Accesses outside of the argument that the pointer came from.

    Args:
        case: The case that ran.
        layouts: Layouts as placed.
        faults: What the backend saw.
        effect: Whether results depend on what such reads yield (two sets of decoys disagree, or the oracle does). If
            not, a read within the backing is a warning: its value provably has no effect here.
    """
    findings = []
    for fault in faults:
        if fault.place is Place.READ_ONLY:
            continue
        kind = _MEMORY_KINDS[fault.place, fault.access != "read"]
        harmless = kind is Kind.OUT_OF_VIEW_READ and not effect and not fault.landed
        findings.append(_memory_finding(case, layouts, fault, kind, harmless))
    return findings


def _memory_finding(case: Case, layouts: Mapping[str, Layout], fault: Fault, kind: Kind, harmless: bool) -> Finding:
    own = "" if fault.scratch else fault.argument
    layout, view = layouts.get(own), case.views.get(own)
    verb = {"read": "reads", "write": "writes", "atomic": "updates"}[fault.access]
    name = fault.argument or fault.parameter or "memory"
    argument = f"{name} (made by the target)" if fault.scratch else fault.argument or fault.parameter
    place = f"{name}[{', '.join(map(str, fault.index))}]" if fault.index else name
    if fault.between:
        place = f"between the elements of {name}, behind {place}"
    message = f"{fault.kernel} {verb} {place}, {_where(fault, layout, view)}"
    notes = [HARMLESS] if harmless else []
    cells: tuple[int, ...] = ()
    if layout is not None and view is not None:
        size = dtype_named(view.dtype).itemsize
        offsets = dict.fromkeys(offset // size for offset in (fault.byte_offset, *fault.offsets))
        cells = tuple(layout.first + offset for offset in offsets)[:MAX_CELLS]
    landed = f"{fault.landed}[{', '.join(map(str, fault.landed_index))}]" if fault.landed else ""
    return Finding(
        kind=kind,
        severity=Severity.WARNING if harmless else Severity.ERROR,
        message=message,
        kernel=fault.kernel,
        file=fault.frame.file,
        line=fault.frame.line,
        source=fault.frame.source,
        occurrence=fault.occurrence,
        argument=argument,
        parameter=fault.parameter,
        index=fault.index,
        landed=landed,
        program=fault.program,
        count=fault.lanes,
        programs=fault.programs,
        cells=cells,
        chain=tuple(source_frame(frame) for frame in fault.chain),
        notes=tuple(notes),
    )


def _where(fault: Fault, layout: Layout | None, view: View | None) -> str:
    """Where an access landed, in words."""
    if fault.landed:
        index = ", ".join(map(str, fault.landed_index))
        return f"which is {fault.landed}[{index}], another argument's element"
    if fault.scratch:
        return "outside of the memory of that tensor, which the target made itself"
    if layout is None or view is None:
        return "outside of every tensor it was given"
    cut = layout.suffix()
    size = dtype_named(view.dtype).itemsize
    element = layout.first + fault.byte_offset // size
    if fault.place is Place.GAP:
        return f"outside of its view {cut or tuple(layout.shape)} (shape {tuple(layout.shape)})"
    before = element < 0
    distance = (-element - 1 if before else element - layout.backing_numel) * size
    side = "in front of" if before else "behind"
    how_far = f"{distance:,} bytes {side}" if distance else f"right {side}"
    return f"{how_far} the memory of its view (shape {tuple(layout.shape)})"


def disturbance_findings(
    target: Target, case: Case, placement: Placement, faults: Iterable[Fault], launches: list[Launch]
) -> list[Finding]:
    """Memory that changed although no writable view covers it: the canary, byte-exact.

    A kernel's own stray store was seen as a fault and is not reported twice.
    """
    faults = list(faults)
    seen = {fault.argument for fault in faults if fault.access != "read" and fault.place is not Place.READ_ONLY}
    findings = []
    for backing, offsets in placement.disturbed().items():
        names = placement.views_of(backing)
        size = dtype_named(case.views[names[0]].dtype).itemsize
        elements = torch.unique_consecutive(torch.div(offsets, size, rounding_mode="floor"))
        hit, stray = _sort_out(placement, names, elements)
        for name, cells in hit.items():
            findings.append(_mutation(case, placement, name, cells, faults, launches))
        if stray and not seen:
            findings.append(_stray_write(target, placement, names, stray, launches))
    return findings


def _sort_out(placement: Placement, names: list[str], elements: torch.Tensor) -> tuple[dict[str, list[int]], list[int]]:
    """Changed elements by the read-only view they belong to, and those of no view; at most `MAX_CELLS` of them."""
    hit: dict[str, list[int]] = {}
    stray = []
    for element in elements[:MAX_CELLS].tolist():
        owner = next((n for n in names if placement.layouts[n].index_at(element) is not None), None)
        if owner is None:
            stray.append(element)
        else:
            hit.setdefault(owner, []).append(element)
    return hit, stray


def _mutation(
    case: Case, placement: Placement, name: str, cells: list[int], faults: list[Fault], launches: list[Launch]
) -> Finding:
    index = placement.layouts[name].index_at(cells[0]) or ()
    by = next((f for f in faults if f.argument == name and f.place is Place.READ_ONLY), None)
    frame = by.frame if by else launches[-1].frame if launches else None
    return Finding(
        kind=Kind.INPUT_MUTATED,
        message=f"{name}[{', '.join(map(str, index))}] changed, but {name} is an {case.views[name].role.value}",
        kernel=by.kernel if by else sole_kernel(launches),
        file=frame.file if frame else "",
        line=frame.line if frame else 0,
        source=frame.source if frame else "",
        occurrence=by.occurrence if by else 0,
        argument=name,
        parameter=by.parameter if by else "",
        index=index,
        program=by.program if by else (),
        count=len(cells),
        programs=by.programs if by else 0,
        cells=tuple(cells),
    )


def _stray_write(
    target: Target, placement: Placement, names: list[str], cells: list[int], launches: list[Launch]
) -> Finding:
    """A write outside of every view that the backend did not see: by torch, by an extension, by a compiled kernel."""
    name = names[0]
    inside = 0 <= cells[0] < placement.layouts[name].backing_numel
    finding = Finding(
        kind=Kind.OUT_OF_VIEW_WRITE if inside else Kind.OUT_OF_BOUNDS_WRITE,
        message=f"memory around {' and '.join(names)} changed outside of every view, first at element {cells[0]}",
        argument=name,
        count=len(cells),
        cells=tuple(cells),
    )
    return at_launch(finding, target, launches)


def sole_kernel(launches: Iterable[Launch]) -> str:
    """The kernel that launched, ``""`` if there were several or none."""
    names = {launch.kernel for launch in launches}
    return names.pop() if len(names) == 1 else ""


def unwritten(case: Case, first: Observation, second: Observation, poisons: tuple[int, int]) -> dict[str, torch.Tensor]:
    """Elements that still hold the poison after both runs.

    Returns:
        A bool mask by output path, of the output's shape; of outputs with such elements only.
    """
    masks = {}
    for name in first.outputs.keys() & second.outputs.keys():
        view = case.views.get(name)  # None: a returned tensor
        if view is not None and view.role is Role.INOUT:  # it began with the same values in both runs
            continue
        kept = [_holds(run.outputs[name], byte) for run, byte in zip((first, second), poisons, strict=True)]
        mask = kept[0] & kept[1]
        if bool(mask.any()):
            masks[name] = mask
    return masks


_SAME_SIZE = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


def _holds(tensor: torch.Tensor, byte: int) -> torch.Tensor:
    wanted = byte & 1 if tensor.dtype == torch.bool else byte
    size = tensor.element_size()
    if size not in _SAME_SIZE:
        return (raw_bytes(tensor) == wanted).all(-1)
    pattern = int.from_bytes(bytes([wanted]) * size, "little", signed=size > 1)
    return flat_bytes(tensor).view(_SAME_SIZE[size]).reshape(tensor.shape) == pattern


def raw_bytes(tensor: torch.Tensor) -> torch.Tensor:
    """The bytes of every element: uint8, of the tensor's shape and one more dimension."""
    return flat_bytes(tensor).reshape(*tensor.shape, tensor.element_size())


def unwritten_findings(
    target: Target, case: Case, layouts: Mapping[str, Layout], masks: Mapping[str, torch.Tensor], launches: list[Launch]
) -> list[Finding]:
    """Output elements that nobody wrote."""
    findings = []
    for name, mask in masks.items():
        view = case.views.get(name)  # None: a returned tensor
        if (view is not None and view.role is not Role.OUTPUT) or argument_of(name) in target.unwritten_ok:
            continue
        count = int(mask.sum())
        if not count:
            continue
        where = [tuple(index) for index in mask.nonzero()[:MAX_CELLS].tolist()]
        finding = Finding(
            kind=Kind.UNWRITTEN_OUTPUT,
            message=f"{name}[{', '.join(map(str, where[0]))}] was never written "
            f"({count:,} of {mask.numel():,} elements were not)",
            argument=name,
            index=where[0],
            count=count,
            cells=tuple(layouts[name].offset_of(index) for index in where) if name in layouts else (),
        )
        findings.append(at_launch(finding, target, launches))
    return findings


def difference_finding(
    target: Target,
    kind: Kind,
    message: str,
    mismatch: Mismatch,
    wrong: torch.Tensor,
    layouts: Mapping[str, Layout],
    launches: list[Launch],
) -> Finding:
    """A finding about values that differ.

    Args:
        target: What is tested.
        kind: What was proven by the difference.
        message: One sentence.
        mismatch: The difference.
        wrong: Mask of the wrong elements.
        layouts: Layouts as placed.
        launches: Of the run that was wrong.
    """
    layout = layouts.get(mismatch.output)
    cells = [tuple(index) for index in wrong.nonzero()[:MAX_CELLS].tolist()] if layout else []
    finding = Finding(
        kind=kind,
        message=message,
        argument=mismatch.output,
        index=mismatch.examples[0][0] if mismatch.examples else (),
        count=mismatch.count,
        cells=tuple(layout.offset_of(index) for index in cells) if layout else (),
        mismatch=mismatch,
    )
    return at_launch(finding, target, launches)


def at_launch(finding: Finding, target: Target, launches: list[Launch]) -> Finding:
    """A finding with the place of the last launch, or of the target where nothing was launched."""
    frame = launches[-1].frame if launches else None
    return replace(
        finding,
        kernel=sole_kernel(launches),
        file=frame.file if frame else target.file,
        line=frame.line if frame else target.line,
        source=frame.source if frame else "",
    )
