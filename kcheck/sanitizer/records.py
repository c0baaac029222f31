"""The records of compute-sanitizer's XML as data.

Tags as observed with compute-sanitizer 2025.3.1; one that is missing leaves its field empty. The number of errors and
the nearest allocation are not in the XML: `kcheck.sanitizer.log` has them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from xml.etree.ElementTree import Element

from kcheck.sanitizer.tool import Tool
from kcheck.sanitizer.xml_stream import MAX_BYTES, MAX_RECORD_BYTES, RecordElements

Index3 = tuple[int, int, int]

_PARAMETERS = re.compile(r"\([^()]*\)$")
_LEAKED = re.compile(r"Leaked ([\d,]+) bytes? at (0x[0-9a-fA-F]+)")  # the manual's wording; its XML was not observed


@dataclass(frozen=True, slots=True)
class Frame:
    """One frame of a stack.

    Attributes:
        function: Its name, ``""`` if unknown. Parameters are left out.
        file: Source file, ``""`` without line information; a C frame of the host has none.
        line: From 1, 0 if unknown.
        module: The binary, ``""`` for a Python or a device frame.
    """

    function: str
    file: str = ""
    line: int = 0
    module: str = ""


@dataclass(frozen=True, slots=True)
class Site:
    """One side of a race.

    Attributes:
        access: ``read`` or ``write``.
        frame: Where.
        hazards: Bytes of shared memory in conflict, where the tool counts them.
    """

    access: str
    frame: Frame
    hazards: int = 0


@dataclass(frozen=True, slots=True)
class Record:
    """One report of one tool.

    Attributes:
        tool: The tool.
        kind: The tool's own word: ``Precise``, ``Imprecise``, ``Api``, ``Initcheck``, ``Analysis``, ``Synccheck``, ….
        level: ``error``, ``warning``, ``info``, or ``""`` where the tool gives none.
        message: Its sentence.
        access: ``read``, ``write``, ``atomic``, …, or ``""``.
        size: Bytes accessed, or leaked.
        space: ``global``, ``shared``, ``local``, or ``""``.
        error: What is wrong with the address (``out of bounds``, ``misaligned``), the class of a barrier error, or the
            name of an API error.
        address: Address accessed, or of the allocation that leaked.
        kernel: Name of the kernel, without parameters.
        file: Source file, ``""`` without line information.
        line: From 1, 0 if unknown.
        thread: ``threadIdx``.
        block: ``blockIdx``.
        api: The CUDA function that failed.
        result: What it returned.
        sites: Both sides of a race.
        device_frames: Device stack, innermost first: the faulty line, then its callers.
        host_frames: Host stack, innermost first: C frames, then Python frames.
    """

    tool: Tool
    kind: str
    level: str = ""
    message: str = ""
    access: str = ""
    size: int = 0
    space: str = ""
    error: str = ""
    address: int | None = None
    kernel: str = ""
    file: str = ""
    line: int = 0
    thread: Index3 | None = None
    block: Index3 | None = None
    api: str = ""
    result: int = 0
    sites: tuple[Site, ...] = ()
    device_frames: tuple[Frame, ...] = ()
    host_frames: tuple[Frame, ...] = ()

    @property
    def python_frames(self) -> tuple[Frame, ...]:
        """Host frames with a source line, innermost first: Python's, which come after the interpreter's own."""
        return tuple(frame for frame in self.host_frames if frame.file and frame.line)


class Records:
    """The complete records of one XML file, one at a time; iterate once.

    Args:
        path: The XML file.
        tool: The tool that wrote it.
        max_bytes: Largest file that is read.
        max_record_bytes: Largest record that is read.
    """

    def __init__(
        self, path: Path, tool: Tool, *, max_bytes: int = MAX_BYTES, max_record_bytes: int = MAX_RECORD_BYTES
    ) -> None:
        self._elements = RecordElements(path, max_bytes=max_bytes, max_record_bytes=max_record_bytes)
        self._tool = tool

    @property
    def problem(self) -> str:
        """Why the file is not a whole report, a sentence; ``""`` if it is. Known when the iteration is over."""
        return self._elements.problem

    def __iter__(self) -> Iterator[Record]:
        """Yield the records.

        Raises:
            CouldNotCheck: The XML is hostile or no report of compute-sanitizer.
        """
        for element in self._elements:
            yield _record(element, self._tool)


def _record(element: Element, tool: Tool) -> Record:
    what, who = element.find("what"), element.find("who")
    message = _text(what, "text")
    leak = _LEAKED.search(message)
    sites = _sites(what)
    frames = _device_frames(element, sites)
    return Record(
        tool=tool,
        kind=_text(element, "kind"),
        level=_text(element, "level").lower(),
        message=message,
        access=_text(what, "direction").lower() or ("read" if "memory read" in message else ""),
        size=_number(what, "size") or (int(leak[1].replace(",", "")) if leak else 0),
        space=_text(what, "space").strip("_") or _space(message),
        error=_text(what, "error") or _text(what, "type"),
        address=int(leak[2], 16) if leak else _address(what, "address"),
        kernel=frames[-1].function if frames else "",
        file=frames[0].file if frames else "",
        line=frames[0].line if frames else 0,
        thread=_index(who, "threadIdx"),
        block=_index(who, "blockIdx"),
        api=_text(what, "api"),
        result=_number(what, "result"),
        sites=sites,
        device_frames=frames,
        host_frames=_frames(element.find("hostStack")),
    )


def _sites(what: Element | None) -> tuple[Site, ...]:
    sides = [side for side in (what if what is not None else ()) if side.tag in ("source", "destination")]
    return tuple(
        Site(_text(side, "direction").lower(), _frame(side.find("where")), _number(side, "count")) for side in sides
    )


def _device_frames(element: Element, sites: tuple[Site, ...]) -> tuple[Frame, ...]:
    """The faulty line and its callers. Of a race, the write's line: every race has one."""
    if sites:
        return (next((site for site in sites if site.access == "write"), sites[0]).frame,)
    where = element.find("where")
    callers = _frames(element.find("deviceStack"))
    if where is None:
        return callers
    innermost = _frame(where)
    return (innermost, *(callers[1:] if callers[:1] == (innermost,) else callers))


def _frames(stack: Element | None) -> tuple[Frame, ...]:
    return tuple(_frame(frame) for frame in stack.findall("frame")) if stack is not None else ()


def _frame(element: Element | None) -> Frame:
    function = _PARAMETERS.sub("", _text(element, "func"))
    return Frame(function, _text(element, "path"), _number(element, "line"), _text(element, "module"))


def _space(message: str) -> str:
    match = re.search(r"__(global|shared|local)__", message)
    return match[1] if match else ""


def _text(element: Element | None, tag: str) -> str:
    return (element.findtext(tag) or "").strip() if element is not None else ""


def _number(element: Element | None, tag: str) -> int:
    text = _text(element, tag)
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= 20 else 0


def _address(element: Element | None, tag: str) -> int | None:
    match = re.fullmatch(r"0x([0-9a-fA-F]{1,16})", _text(element, tag))
    return int(match[1], 16) if match else None


def _index(who: Element | None, tag: str) -> Index3 | None:
    index = who.find(tag) if who is not None else None
    return (_number(index, "x"), _number(index, "y"), _number(index, "z")) if index is not None else None
