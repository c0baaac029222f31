"""Reads the ``<record>`` elements of an XML file one by one, and refuses XML that is made to do harm.

The file is written by compute-sanitizer on behalf of a program that nobody vouches for, and it ends early where the
tool was killed. Expat is driven directly because `xml.etree.ElementTree.iterparse` offers no hook for a document type.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from pathlib import Path
from xml.etree.ElementTree import Element, TreeBuilder
from xml.parsers import expat

from kcheck.errors import CouldNotCheck

ROOT = "ComputeSanitizerOutput"
MAX_BYTES = 256 << 20  # of the file; 100 records take 0.5 MB
MAX_RECORD_BYTES = 4 << 20  # of one record; those with a deep Python stack take 6 kB
MAX_DEPTH = 32  # of elements; real ones go to 5
_CHUNK = 1 << 16


class RecordElements:
    """The complete ``<record>`` elements of a file, in order; iterate once.

    Args:
        path: The XML file.
        max_bytes: Largest file that is read.
        max_record_bytes: Largest record that is read.

    Attributes:
        problem: Why the file is not a whole report, a sentence; ``""`` if it is. Known when the iteration is over.
    """

    def __init__(self, path: Path, *, max_bytes: int = MAX_BYTES, max_record_bytes: int = MAX_RECORD_BYTES) -> None:
        self.problem = ""
        self._path = path
        self._max_bytes = max_bytes
        self._max_record_bytes = max_record_bytes
        self._depth = 0
        self._builder: TreeBuilder | None = None
        self._record_at = 0
        self._ready: deque[Element] = deque()
        self._parser = expat.ParserCreate()
        self._parser.buffer_text = True
        self._parser.StartDoctypeDeclHandler = self._doctype
        self._parser.StartElementHandler = self._start
        self._parser.EndElementHandler = self._end
        self._parser.CharacterDataHandler = self._text

    def __iter__(self) -> Iterator[Element]:
        """Yield the records.

        Raises:
            CouldNotCheck: The XML is hostile (a document type, too deep, too large) or no report of compute-sanitizer.
        """
        try:
            with self._path.open("rb") as file:
                read = 0
                while chunk := file.read(_CHUNK):
                    read += len(chunk)
                    self._check_sizes(read)
                    self._parser.Parse(chunk, False)
                    yield from self._drain()
                self._parser.Parse(b"", True)
        except FileNotFoundError:
            self.problem = f"compute-sanitizer wrote no {self._path.name}"
        except OSError as error:
            self.problem = f"{self._path.name} cannot be read: {error}"
        except expat.ExpatError as error:
            yield from self._drain()
            self.problem = f"{self._path.name} ends early or is damaged: {error}"

    def _drain(self) -> Iterator[Element]:
        while self._ready:
            yield self._ready.popleft()

    def _check_sizes(self, read: int) -> None:
        if read > self._max_bytes:
            raise self._refusal(f"is larger than {self._max_bytes:,} bytes; lower --print-limit")
        # Expat holds text and unfinished tags back, so this looks at what was read since the last complete record.
        if read - self._record_at > self._max_record_bytes + _CHUNK:
            raise self._refusal(f"has a record of more than {self._max_record_bytes:,} bytes")

    def _refusal(self, problem: str) -> CouldNotCheck:
        return CouldNotCheck(f"{self._path.name} is refused as a report of compute-sanitizer: it {problem}")

    def _doctype(self, *_: object) -> None:
        raise self._refusal("declares a document type, which may define entities")

    def _start(self, tag: str, _attributes: dict[str, str]) -> None:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise self._refusal(f"nests more than {MAX_DEPTH} elements")
        if self._depth == 1 and tag != ROOT:
            raise self._refusal(f"begins with <{tag[:40]}> instead of <{ROOT}>")
        if self._depth == 2 and tag == "record":
            self._builder = TreeBuilder()
        if self._builder is not None:
            self._builder.start(tag, {})

    def _end(self, tag: str) -> None:
        if self._builder is not None:
            self._builder.end(tag)
        if self._depth == 2:
            self._record_at = self._parser.CurrentByteIndex
            if self._builder is not None:
                self._ready.append(self._builder.close())
                self._builder = None
        self._depth -= 1

    def _text(self, data: str) -> None:
        if self._builder is not None:
            self._builder.data(data)
