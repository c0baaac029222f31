"""How reports write counts, times, numbers, indices, paths, and text that came from the user."""

from __future__ import annotations

import math
import os
import unicodedata
from collections.abc import Sequence
from pathlib import Path


def plain(text: str) -> str:
    """User text without what would steer a terminal: control and direction characters are spelled out."""
    return "".join(
        char if char == "\n" or unicodedata.category(char) not in ("Cc", "Cf", "Cs") else _spelled(char)
        for char in text.expandtabs(4)
    )


def _spelled(char: str) -> str:
    code = ord(char)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


def cut(text: str, most: int = 4_000) -> str:
    """The text; of one that is longer than `most` characters the beginning, and how much is left out."""
    return text if len(text) <= most else f"{text[:most]} … ({len(text) - most:,} more characters)"


def counted(count: int, noun: str, plural: str = "") -> str:
    """A count with its noun: ``1 finding``, ``1,234 cases``."""
    return f"{count:,} {noun if count == 1 else plural or noun + 's'}"


def duration(seconds: float) -> str:
    """A time: ``0.04 s``, ``12.3 s``, ``2 min 5 s``."""
    if seconds < 10:
        return f"{seconds:.2f} s" if seconds < 1 else f"{seconds:.1f} s"
    if seconds < 99.95:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s"


def rate(cases: int, seconds: float) -> str:
    """Cases a second, ``98/s``; empty before there is anything to divide."""
    if not cases or seconds <= 0:
        return ""
    value = cases / seconds
    return f"{value:,.0f}/s" if value >= 10 else f"{value:.1f}/s"


def number(value: float) -> str:
    """A value with the digits that tell it apart: integers in full, floats to 9 digits."""
    if isinstance(value, int) or (math.isfinite(value) and value == int(value) and abs(value) < 1e9):
        return str(int(value))
    return f"{value:.9g}"


def bracketed(index: Sequence[int | str]) -> str:
    """An index: ``[1, 0]``."""
    return f"[{', '.join(map(str, index))}]"


def nearest_path(file: str) -> str:
    """A path as the user would type it: relative to the working directory where it lies below it."""
    try:
        return str(Path(file).relative_to(os.getcwd()))
    except (ValueError, OSError):
        return file


def size(nbytes: int) -> str:
    """Memory: ``128 bytes``, ``32.0 GiB``."""
    if nbytes < 1024:
        return counted(nbytes, "byte")
    exponent = min((nbytes.bit_length() - 1) // 10, 5)
    return f"{nbytes / 1024**exponent:.1f} {('KiB', 'MiB', 'GiB', 'TiB', 'PiB')[exponent - 1]}"
