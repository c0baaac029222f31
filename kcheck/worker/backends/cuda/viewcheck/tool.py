"""The view check on a GPU: kernels are compiled with checks, told what they may touch, and their log is read."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any

import numpy as np
import torch

from kcheck.worker.backends.base import Fault, Place, Region, Unsupported, Watch
from kcheck.worker.backends.cuda import triton_seams
from kcheck.worker.backends.cuda.viewcheck import layout
from kcheck.worker.backends.cuda.viewcheck.device import DeviceWords
from kcheck.worker.backends.cuda.viewcheck.instrument import Site, instrument
from kcheck.worker.backends.cuda.viewcheck.report import Noted, faults
from kcheck.worker.backends.cuda.viewcheck.table import Shadows, Slot, TooLarge, Words, table
from kcheck.worker.backends.cuda.viewcheck.ttir import UnknownText
from kcheck.worker.backends.interpret.arguments import Argument, Cells, data_ptr, match

VERSION = "1"  # of the checks in compiled kernels that are kept on disk
HOT = 8  # launches of a kernel after which it is worth to compile it again, so that checks do not cost it occupancy
_WINDOWS = 8  # launches of a kernel that have records of their own; the later ones share the last


class ViewCheck:
    """Compiles kernels with checks. One lives as long as a worker; its memory is made when the first kernel comes."""

    def __init__(self) -> None:
        self._words: DeviceWords | None = None
        self._caches: dict[Any, Any] = {}
        self._told = np.zeros(0, np.int64)
        self.shadows = Shadows()
        self.launched: Counter[Any] = Counter()

    @property
    def words(self) -> DeviceWords:
        """The table and the log."""
        if self._words is None:
            self._words = DeviceWords(layout.WORDS)
        return self._words

    @contextmanager
    def watch(
        self, watch: Watch, regions: Sequence[Region], spans: Sequence[tuple[int, int]], *, exact: bool
    ) -> Iterator[Launches]:
        """Check every launch until the context ends.

        Args:
            watch: Where faults go.
            regions: The tensor arguments of this run.
            spans: ``(address, bytes)`` that are safe to read.
            exact: Have all kernels look at every lane.
        """
        launches = Launches(self, watch, regions, spans, exact)
        self.words.tensor[layout.SUSPECTED].zero_()
        try:
            yield launches
        except BaseException:
            with suppress(RuntimeError):  # the context may be lost
                launches.collect()
            raise
        launches.collect()

    @contextmanager
    def compiling(self, kernel: Any, *, exact: bool, registers: int) -> Iterator[None]:
        """Launch a kernel with checks; others that launch it get the one without.

        Args:
            kernel: A ``JITFunction``.
            exact: Whether the checks are.
            registers: Most that a thread may have; 0: as many as the compiler wants.
        """
        plain = kernel.device_caches
        kernel.device_caches = self._caches.setdefault((kernel, exact, registers), defaultdict(plain.default_factory))
        rewrite = partial(self._rewrite, exact=exact, registers=registers)
        key = f"kcheck view check {VERSION}, exact {exact}, {registers} registers, at {self.words.address:x}"
        try:
            with triton_seams.rewriting(rewrite, key):
                yield
        finally:
            kernel.device_caches = plain

    def tell(self, words: Words) -> None:
        """Have kernels that are launched from now on read this table."""
        if not np.array_equal(words, self._told):
            self.words.tensor[: len(words)].copy_(torch.from_numpy(words))
            self._told = words

    def _rewrite(self, text: str, *, exact: bool, registers: int) -> tuple[str, dict[str, Any]]:
        try:
            done = instrument(text, self.words.address, exact=exact, registers=registers)
        except UnknownText as error:
            raise Unsupported(f"the view check does not understand the kernel's IR: {error}") from None
        return done.text, {
            "kcheck_sites": [site.plain() for site in done.sites],
            "kcheck_unchecked": list(done.unchecked),
            "kcheck_parameters": done.parameters,
        }


def most_registers(used: int, threads: int) -> int:
    """Registers of a thread with which as many blocks run at once as with those that are used now.

    A multiprocessor has 65,536, given out by eights (CUDA C++ Programming Guide, Compute Capabilities).

    Args:
        used: By each thread.
        threads: Of a block.
    """
    blocks = max(65536 // (-(-used // 8) * 8 * threads), 1)
    return min(65536 // (blocks * threads) // 8 * 8, 255)


class Launches:
    """The launches of one watch.

    Args:
        tool: Compiles kernels.
        watch: Where faults go.
        regions: The target's tensor arguments.
        spans: ``(address, bytes)`` that are safe to read: one stretch of memory.
        exact: Have all kernels look at every lane.
    """

    def __init__(
        self, tool: ViewCheck, watch: Watch, regions: Sequence[Region], spans: Sequence[tuple[int, int]], exact: bool
    ) -> None:
        self._tool = tool
        self._watch = watch
        self._regions = [Cells.of(region) for region in regions]
        ends = [(first, first + size) for first, size in spans if size]
        first, end = min((first for first, _ in ends), default=0), max((end for _, end in ends), default=0)
        self._safe = (first, end - first)
        self._exact = exact
        self._noted: list[Noted] = []
        self._windows: Counter[str] = Counter()
        self._records = 0

    @contextmanager
    def launch(self, kernel: Any, values: Iterable[Any], compiled: Callable[[], Any]) -> Iterator[None]:
        """A launch of a kernel.

        Args:
            kernel: A ``JITFunction``.
            values: What it is given.
            compiled: Compiles it without checks.
        """
        exact = self._exact or not all(self._has_no_gaps(value) for value in values)
        registers = 0
        if not exact:
            self._tool.launched[kernel] += 1
            if self._tool.launched[kernel] > HOT:
                registers = most_registers(*triton_seams.registers(compiled()))
        with self._tool.compiling(kernel, exact=exact, registers=registers), triton_seams.before_launch(self._begin):
            yield

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
        slots = {
            number: Slot(number, address, tuple(zip(argument.views, argument.may_write, strict=True)))
            for number, (argument, address) in arguments.items()
        }
        sites = [Site.read(plain) for plain in facts.kcheck_sites]
        if not all(site.slots for site in sites):
            arena = tuple((cells.view, cells.region.writable) for cells in self._regions)
            slots[layout.ELSEWHERE] = Slot(layout.ELSEWHERE, 0, arena)
        records = self._window(Noted(launch, sites, arguments, slots, facts.hash))
        address = self._tool.words.address + 8 * (layout.LOG + records * layout.RECORD)
        try:
            self._tool.tell(table(list(slots.values()), self._tool.shadows, self._safe, address))
        except TooLarge as error:
            raise Unsupported(f"kernel {launch.kernel}: {error}", launch.frame) from None
        for operation in facts.kcheck_unchecked:
            sentence = f"kernel {launch.kernel} has accesses by {operation}, which the view check does not see."
            if sentence not in self._watch.gaps:
                self._watch.gaps.append(sentence)

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
        count = len(noted.sites)
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
        self._tool.words.tensor[start : start + count * layout.RECORD].zero_()
        self._noted.append(noted)
        return noted.first

    def collect(self) -> None:
        """Read the log into the watch's faults."""
        if not self._records:
            return
        words = self._tool.words.tensor
        log = words[layout.LOG : layout.LOG + self._records * layout.RECORD].view(self._records, layout.RECORD)
        self._watch.suspected, some = torch.stack((words[layout.SUSPECTED], log[:, layout.LANES].sum())).ne(0).tolist()
        if not some:
            return
        records = log.cpu().numpy()
        merged: dict[tuple[object, ...], Fault] = {}
        for noted in self._noted:
            own = records[noted.first : noted.first + len(noted.sites)]
            for fault in faults(noted, own, self._regions):
                read_only = fault.place is Place.READ_ONLY
                key = (fault.access, fault.frame.file, fault.frame.line, fault.argument, read_only)
                known = merged.setdefault(key, fault)
                if known is not fault:
                    known.lanes += fault.lanes
                    known.programs += fault.programs
                    known.offsets += fault.offsets[: layout.MAX_OFFSETS - len(known.offsets)]
        self._watch.faults += merged.values()
