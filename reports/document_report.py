"""A report that is one document, written when the run is over or stopped."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from kcheck.errors import UsageError
from kcheck.events import Event
from kcheck.reports.record import Recorder, RunRecord


class DocumentReport:
    """Gathers a run and writes it as one document.

    Args:
        render: Makes the document of the run.
        path: Where to write it; None: stdout.

    Raises:
        UsageError: The path cannot be written. It is tried at once, not after the run.
    """

    def __init__(self, render: Callable[[RunRecord], str], path: Path | None) -> None:
        self._render = render
        self._path = path
        self._recorder = Recorder()
        self._closed = False
        if path is not None:
            _make_ready(path)

    def handle(self, event: Event) -> None:
        """Take one event."""
        self._recorder.handle(event)

    def close(self) -> None:
        """Write the document, if the run had begun.

        Raises:
            UsageError: The path cannot be written any more.
        """
        if self._closed:
            return
        self._closed = True
        if not self._recorder.started:
            return
        self.write(self._recorder.record())

    def write(self, record: RunRecord) -> None:
        """Write the document of a run.

        Raises:
            UsageError: The path cannot be written any more.
        """
        text = self._render(record)
        if self._path is not None:
            write_atomically(self._path, text)
        else:
            _print(text)


def _print(text: str) -> None:
    """Write to stdout, in UTF-8 as to a file: XML says that it is, whatever the locale."""
    sys.stdout.flush()
    stream = getattr(sys.stdout, "buffer", None)
    if stream is None:
        sys.stdout.write(text)
    else:
        stream.write(_encoded(text))
    sys.stdout.flush()


def _encoded(text: str) -> bytes:
    """UTF-8; a surrogate, as in a file name that is not UTF-8, is spelled out."""
    return text.encode("utf-8", errors="backslashreplace")


def _make_ready(path: Path) -> None:
    """Make the folder and see that a file can be put there."""
    if path.is_dir():
        raise UsageError(f"the report cannot be written to {path}: it is a folder; name a file in it")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if not _is_special(path):
            tempfile.TemporaryFile(dir=path.resolve().parent).close()
    except OSError as error:
        raise _cannot_write(path, error) from None


def write_atomically(path: Path, text: str) -> None:
    """Write a file so that a reader sees the old one or the whole new one, never a part.

    Raises:
        UsageError: It cannot be written.
    """
    try:
        if _is_special(path):
            path.write_bytes(_encoded(text))
            return
        target = path.resolve()
        temporary = target.with_name(f".{target.name}.{os.getpid()}.part")
        try:
            temporary.write_bytes(_encoded(text))
            temporary.replace(target)
        finally:
            temporary.unlink(missing_ok=True)
    except OSError as error:
        raise _cannot_write(path, error) from None


def _is_special(path: Path) -> bool:
    """A pipe or a device, ``/dev/stdout``: it must be written to, not replaced."""
    return path.exists() and not path.is_file()


def _cannot_write(path: Path, error: OSError) -> UsageError:
    return UsageError(f"the report cannot be written to {path}: {error.strerror}; give another path")
