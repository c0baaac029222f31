"""compute-sanitizer's log: totals, nearest allocations, refusals."""

from __future__ import annotations

from pathlib import Path

import pytest

from kcheck.sanitizer.log import LogSummary, Nearest, read_log

FIXTURES = Path(__file__).parent / "fixtures"


def read_text(folder: Path, *lines: str) -> LogSummary:
    path = folder / "run.log"
    path.write_text("".join(f"{line}\n" for line in lines))
    return read_log(path)


@pytest.mark.parametrize(
    ("name", "total"),
    [
        ("clean", 0),
        ("initcheck_uninitialized_read", 1000),
        ("memcheck_api_error", 1),
        ("memcheck_atomic_oob", 66),
        ("memcheck_read_oob", 7810),
        ("memcheck_write_oob", 8),
        ("no_cuda", None),
        ("racecheck_shared", 1),
        ("synccheck_divergent", 16),
    ],
)
def test_the_total_stands_in_the_summary(name: str, total: int | None) -> None:
    summary = read_log(FIXTURES / f"{name}.log")
    assert summary.total == total
    assert summary.finished == (total is not None)
    assert bool(summary.refusals) == (name == "no_cuda")
    assert summary.quotes == ()


def test_the_nearest_allocation_of_every_address() -> None:
    nearest = read_log(FIXTURES / "memcheck_write_oob.log").nearest
    assert set(nearest) == {0x7F9332802FA0, 0x7F9332802FB0, 0x7F9332802FC0, 0x7F9332802FD0}
    assert set(nearest.values()) == {Nearest(0x7F9332802000, 4000)}
    far = read_log(FIXTURES / "memcheck_read_oob.log").nearest
    assert far == {0x7F1D50A09020: Nearest(0x7F16A6C00000, 512)}


def test_thousands_are_separated_or_not(tmp_path: Path) -> None:
    assert read_text(tmp_path, "========= ERROR SUMMARY: 117,122 errors").total == 117_122
    assert read_text(tmp_path, "========= ERROR SUMMARY: 117122 errors").total == 117_122
    assert read_text(tmp_path, "========= ERROR SUMMARY: 1 error").total == 1


def test_races_that_were_not_displayed_count(tmp_path: Path) -> None:
    summary = read_text(
        tmp_path,
        "========= RACECHECK SUMMARY: 3 hazards displayed (1 error, 2 warnings)",
        "========= RACECHECK SUMMARY: 4 hazards were not printed. Use --print-limit option",
    )
    assert (summary.total, summary.warnings) == (7, 2)


def test_leaks_in_the_manuals_words(tmp_path: Path) -> None:
    summary = read_text(
        tmp_path,
        "========= LEAK SUMMARY: 1024 bytes leaked in 1 allocations",
        "========= ERROR SUMMARY: 1 error",
    )
    assert (summary.leaked_bytes, summary.leaks, summary.total) == (1024, 1, 1)


def test_the_programs_own_lines_are_not_the_tools(tmp_path: Path) -> None:
    summary = read_text(tmp_path, "ERROR SUMMARY: 0 errors", "Error: mine")
    assert summary == LogSummary()


@pytest.mark.parametrize(
    ("lines", "says"),
    [
        (("Unable to find injection library libsanitizer-collection.so",), "does not find its own libraries"),
        (("Error: Target application terminated before first instrumented API call",), "made no CUDA call"),
        (
            (
                "Error: Target application terminated before first instrumented API call",
                "Error: couldn't find exit code.",
            ),
            "could not start the worker",
        ),
        (
            (
                "Error: process didn't terminate successfully",
                "Error: Target application terminated before first instrumented API call",
            ),
            "without a CUDA driver",
        ),
        (("Target application doesn't exist or is not a valid executable",), "could not start the worker"),
        (("Error: Device not supported. Please refer to the documentation.",), "does not support this GPU"),
        (("Warning: Detected overflow of tracked cuda::barrier structures. Results might be incorrect.",), "incorrect"),
    ],
)
def test_refusals_are_understood_the_most_telling_first(lines: tuple[str, ...], says: str, tmp_path: Path) -> None:
    summary = read_text(tmp_path, *(f"========= {line}" for line in lines))
    assert says in summary.refusals[0]
    assert not summary.finished
    assert summary.quotes == ()


def test_a_refusal_that_nobody_knows_is_quoted(tmp_path: Path) -> None:
    summary = read_text(tmp_path, "========= Error: the moon is full", "========= Error: Race reported between x")
    assert summary.quotes == ("Error: the moon is full",)


def test_a_missing_log_says_nothing(tmp_path: Path) -> None:
    assert read_log(tmp_path / "run.log") == LogSummary()


def test_a_line_without_an_end_is_read_in_pieces(tmp_path: Path) -> None:
    path = tmp_path / "run.log"
    path.write_bytes(b"\xff" * 300_000 + b"\n========= ERROR SUMMARY: 2 errors\n")
    assert read_log(path).total == 2
