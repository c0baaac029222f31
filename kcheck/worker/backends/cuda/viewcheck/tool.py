"""The view check of one watch on a GPU: kernels are told what they may touch, and their log is read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import torch

from kcheck.worker.backends.base import Conditions, Fault, Place, Region, Unsupported, Watch
from kcheck.worker.backends.cuda import triton_seams
from kcheck.worker.backends.cuda.viewcheck import layout
from kcheck.worker.backends.cuda.viewcheck.compiled import CheckedKernels
from kcheck.worker.backends.cuda.viewcheck.instrument import Manner, Site
from kcheck.worker.backends.cuda.viewcheck.report import Noted, faults, hazards
from kcheck.worker.backends.cuda.viewcheck.table import Slot, TooLarge, table
from kcheck.worker.backends.interpret.arguments import Argument, Backing, Cells, data_ptr, match

Launch = Callable[..., Any]
_LITTLE = 4096  # bytes between two backings of an arena, at most
HOT = 8  # launches of a kernel after which it is worth to compile it again, so that checks do not cost it occupancy
_WINDOWS = 8  # launches of a kernel that have records of their own; the later ones share the last


@contextmanager
def checked(
    kernels: CheckedKernels,
    watch: Watch,
    regions: Sequence[Region],
    spans: Sequence[tuple[int, int]],
    conditions: Conditions,
) -> Iterator[Launches]:
    """Check every launch until the context ends.

    Args:
        kernels: Compiled with checks.
        watch: Where faults go.
        regions: The tensor arguments of this run.
        spans: ``(address, bytes)`` that are safe to read.
        conditions: Of this run: what memory holds where nothing was written, and whether to be exact.
    """
    launches = Launches(kernels, watch, regions, spans, conditions)
    kernels.words.tensor[layout.SUSPECTED].zero_()
    try:
        yield launches
    except BaseException:
        with suppress(RuntimeError):  # the context may be lost
            launches.collect()
        raise
    launches.collect()


def _stretch(spans: Sequence[tuple[int, int]]) -> tuple[int, int]:
    """Address and size of the memory that most of some spans lie in; they may leave little gaps."""
    best, count, first, end = (0, 0), 0, 0, 0
    number = 0
    for address, size in sorted(spans):
        if address > end + _LITTLE:
            first, number = address, 0
        end, number = max(end, address + size) if number else address + size, number + 1
        if number > count:
            best, count = (first, end - first), number
    return best


def most_registers(used: int, threads: int) -> int:
    """Registers of a thread with which as many blocks run at once as with those that are used now.

    A multiprocessor has 65,536, given out by eights (CUDA C++ Programming Guide, Compute Capabilities).

    Args:
        used: By each thread.
        threads: Of a block.
    """
    blocks = max(65536 // (-(-used // 8) * 8 * threads), 1)
    return min(65536 // (blocks * threads) // 8 * 8, 255)


class NeedsExact(Exception):
    """A kernel was not launched: only exact checks can see what is asked for."""


class Launches:
    """The launches of one watch.

    Args:
        kernels: Compiled with checks.
        watch: Where faults go.
        regions: The target's tensor arguments.
        spans: ``(address, bytes)`` that are safe to read: one stretch of memory.
        conditions: Of this run.
    """

    def __init__(
        self, kernels: CheckedKernels, watch: Watch, regions: Sequence[Region], spans: Sequence[tuple[int, int]],
        conditions: Conditions,
    ) -> None:  # fmt: skip
        self._kernels = kernels
        self._watch = watch
        self._regions = [Cells.of(region) for region in regions]
        self._safe = _stretch(spans)
        self._conditions = conditions
        self._marked: dict[tuple[int, int, bool], torch.Tensor] = {}
        self._noted: list[Noted] = []
        self._windows: Counter[str] = Counter()
        self._records = 0
        self._manner = Manner(conditions.exact)

    def launch(self, kernel: Any, values: Iterable[Any], launch: Launch) -> Any:
        """Launch a kernel.

        Args:
            kernel: A ``JITFunction``.
            values: What it is given.
            launch: Launches it as it is compiled then; told whether to compile only.
        """
        if not self._conditions.exact and all(self._has_no_gaps(value) for value in values):
            registers = 0
            self._kernels.launched[kernel] += 1
            if self._kernels.launched[kernel] > HOT:
                registers = most_registers(*triton_seams.registers(launch(warmup=True)))
            with suppress(NeedsExact):
                return self._launch(kernel, launch, Manner(False, self._kernels.state, registers))
        return self._launch(kernel, launch, Manner(True, self._kernels.state))

    def _launch(self, kernel: Any, launch: Launch, manner: Manner) -> Any:
        self._manner = manner
        with self._kernels.compiling(kernel, manner), triton_seams.before_launch(self._begin):
            return launch(warmup=False)

    def _has_no_gaps(self, value: Any) -> bool:
        """Whether bounds are enough to see that accesses stay in a tensor."""
        tensor = triton_seams.tensor_of(value)
        if tensor is None:
            return True
        views = match(tensor, "", 1, self._regions).views
        return len(views) == 1 and views[0].is_dense

    def _begin(self, compiled: Any, grid: Sequence[int], values: Sequence[Any]) -> None:
        """Tell a kernel what it may touch; called just before it is launched."""
        launch, facts = self._watch.launches[-1], compiled.metadata
        arguments = self._arguments(compiled, values)
        sites = [Site.read(plain) for plain in facts.kcheck_sites]
        slots = self._slots(arguments, sites, facts.kcheck_granule, facts.kcheck_also_read)
        records = self._window(Noted(launch, sites, arguments, slots, facts.hash))
        address = self._kernels.words.address + 8 * (layout.LOG + records * layout.RECORD)
        try:
            self._kernels.tell(table(list(slots.values()), self._kernels.shadows, self._safe, address))
        except TooLarge as error:
            raise Unsupported(f"kernel {launch.kernel}: {error}", launch.frame) from None
        for operation in facts.kcheck_unchecked:
            sentence = f"kernel {launch.kernel} has accesses by {operation}, which the view check does not see."
            if sentence not in self._watch.gaps:
                self._watch.gaps.append(sentence)

    def _slots(
        self, arguments: Mapping[int, tuple[Argument, int]], sites: Sequence[Site], granule: int, also_read: bool
    ) -> dict[int, Slot]:
        """What the kernel is told of its parameters.

        Args:
            arguments: What they may touch, and their addresses.
            sites: Its accesses.
            granule: Bytes that are one to the check of races; 0: it does not look for them.
            also_read: It reads what it writes.

        Raises:
            NeedsExact: Its checks do not do.
        """
        read = {slot for site in sites if site.access == "read" for slot in site.slots}
        written = {slot for site in sites if site.access != "read" for slot in site.slots}
        memories = {argument.backing.address for number, (argument, _) in arguments.items() if number in written}
        marks = {
            address: self._marks(argument.backing, granule, readers=also_read or self._manner.exact)
            for argument, _ in arguments.values()
            for address in [argument.backing.address]
            if granule and address in memories
        }
        slots = {}
        for number, (argument, address) in arguments.items():
            views = tuple(zip(argument.views, argument.may_write, strict=True))
            memory = argument.backing.address
            writers, readers = marks.get(memory, (0, 0))
            poison = self._poison_of(argument)
            hidden = (poison is not None and self._kernels.state) or (writers and number not in written)
            if number in read and hidden and not self._manner.exact:
                raise NeedsExact
            slots[number] = Slot(number, address, views, memory, writers, readers, poison)
        if not all(site.slots for site in sites):
            arena = tuple((cells.view, cells.region.writable) for cells in self._regions)
            slots[layout.ELSEWHERE] = Slot(layout.ELSEWHERE, 0, arena)
        return slots

    def _marks(self, backing: Backing, granule: int, *, readers: bool) -> tuple[int, int]:
        """Addresses of words for who writes and who reads the granules of some memory, all 0."""
        key = backing.address, granule, self._manner.exact
        if key not in self._marked:
            kind = torch.int64 if self._manner.exact else torch.int16
            self._marked[key] = torch.empty(
                1 + readers, -(-backing.size // granule // 8) * 8 + 8, dtype=kind, device="cuda"
            )
        words = self._marked[key].zero_()
        return words[0].data_ptr(), words[-1].data_ptr()

    def _poison_of(self, argument: Argument) -> int | None:
        """The byte that fills a tensor where nobody wrote; None: it holds values."""
        cells = [one for one in self._regions if one.view in argument.views]
        made_by_target = not cells
        return self._conditions.poison if made_by_target or all(one.region.valueless for one in cells) else None

    def _arguments(self, compiled: Any, values: Sequence[Any]) -> dict[int, tuple[Argument, int]]:
        """What the tensors of a launch may touch, and their addresses, by their number in the kernel's IR."""
        arguments: dict[int, tuple[Argument, int]] = {}
        for number, name, value in triton_seams.parameters(compiled, values):
            tensor = triton_seams.tensor_of(value)
            if tensor is not None:
                argument = match(tensor, name, len(arguments) + 1, self._regions)
                arguments[number] = argument, data_ptr(tensor)
        return arguments

    def _window(self, noted: Noted) -> int:
        """Number of the first record of a launch."""
        count = len(noted.sites) * layout.PER_SITE
        last = next((one for one in reversed(self._noted) if one.key == noted.key), None)
        full = self._records + count > layout.MAX_RECORDS
        if last is not None and (full or self._windows[noted.key] >= _WINDOWS):
            return last.first
        if full:
            raise Unsupported(f"kernel {noted.launch.kernel}: its launches have too many accesses for the view check")
        noted.first = self._records
        self._windows[noted.key] += 1
        self._records += count
        start = layout.LOG + noted.first * layout.RECORD
        self._kernels.words.tensor[start : start + count * layout.RECORD].zero_()
        self._noted.append(noted)
        return noted.first

    def collect(self) -> None:
        """Read the log into the watch's faults."""
        if not self._records:
            return
        words = self._kernels.words.tensor
        log = words[layout.LOG : layout.LOG + self._records * layout.RECORD].view(self._records, layout.RECORD)
        self._watch.suspected, some = torch.stack((words[layout.SUSPECTED], log[:, layout.LANES].sum())).ne(0).tolist()
        if not some:
            return
        records = log.cpu().numpy()
        merged: dict[tuple[object, ...], Fault] = {}
        for noted in self._noted:
            own = records[noted.first : noted.first + len(noted.sites) * layout.PER_SITE]
            self._watch.hazards += hazards(noted, own, self._regions)
            for fault in faults(noted, own, self._regions):
                read_only = fault.place is Place.READ_ONLY
                key = (fault.access, fault.frame.file, fault.frame.line, fault.argument, read_only)
                known = merged.setdefault(key, fault)
                if known is not fault:
                    known.lanes += fault.lanes
                    known.programs += fault.programs
                    known.offsets += fault.offsets[: layout.MAX_NOTES - len(known.offsets)]
        self._watch.faults += merged.values()
