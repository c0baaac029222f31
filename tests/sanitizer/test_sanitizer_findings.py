"""Records become findings: the planted line, honest counts, places, the user's own line of the launch."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import kcheck.targets
from kcheck.findings import Finding, Kind, Severity
from kcheck.layout import Layout
from kcheck.sanitizer.findings import Collected, collect
from kcheck.sanitizer.log import LogSummary, read_log
from kcheck.sanitizer.places import Allocation
from kcheck.sanitizer.records import Frame, Record, Records, Site
from kcheck.sanitizer.tool import Tool

FIXTURES = Path(__file__).parent / "fixtures"
LINE = Frame("k", "/a/k.py", 7)
READ = Record(
    Tool.MEMCHECK, "Precise", "error", "Invalid __global__ read of size 4 bytes is out of bounds", "read", 4, "global",
    "out of bounds", 0x1000, "k", "/a/k.py", 7, (0, 0, 0), (0, 0, 0), device_frames=(LINE,),
)  # fmt: skip
IMPRECISE = replace(READ, kind="Imprecise", access="", size=0, space="", error="", address=None)
FAILED = Record(Tool.MEMCHECK, "Api", message="Program hit cudaErrorLaunchFailure", api="cudaFree", result=719)


def fixture(name: str, *allocations: Allocation) -> Collected:
    records = Records(FIXTURES / f"{name}.xml", Tool(name.split("_")[0]))
    return collect(records, read_log(FIXTURES / f"{name}.log"), allocations=allocations)


def one(*records: Record, total: int | None = None, allocations: tuple[Allocation, ...] = ()) -> Finding:
    log = LogSummary(total=len(records) if total is None else total)
    (finding,) = collect(records, log, allocations=allocations).findings
    return finding


@pytest.mark.parametrize(
    ("name", "kind", "file", "line", "kernel"),
    [
        ("memcheck_read_oob", Kind.OUT_OF_BOUNDS_READ, "gather.py", 43, "_dequantize_and_gather_k_kernel"),
        ("memcheck_write_oob", Kind.OUT_OF_BOUNDS_WRITE, "faults.py", 7, "copy_rows_unmasked"),
        ("memcheck_atomic_oob", Kind.OUT_OF_BOUNDS_WRITE, "faults.py", 19, "atomic_histogram"),
        ("initcheck_uninitialized_read", Kind.UNINITIALIZED_READ, "faults.py", 12, "add_one"),
        ("racecheck_shared", Kind.SHARED_RACE, "faults.cu", 3, "shared_race"),
        ("synccheck_divergent", Kind.BARRIER_DIVERGENCE, "faults.cu", 4, "divergent_barrier"),
    ],
)
def test_findings_name_the_planted_line(name: str, kind: Kind, file: str, line: int, kernel: str) -> None:
    (finding,) = fixture(name).findings
    assert (finding.kind, finding.file.rpartition("/")[2], finding.line) == (kind, file, line)
    assert (finding.kernel, finding.severity) == (kernel, Severity.ERROR)
    assert finding.chain[-1].line == line
    assert Finding.from_json(finding.to_json()) == finding


def test_an_api_error_without_line_information_names_the_calling_function() -> None:
    (finding,) = fixture("memcheck_api_error").findings
    assert (finding.kind, finding.count) == (Kind.API_ERROR, 1)
    assert "cudaErrorInvalidValue" in finding.message
    assert finding.notes[0] == "Called in main of /home/user/project/faults, which has no line information."


def test_the_users_own_line_of_the_launch_is_noted() -> None:
    (finding,) = fixture("memcheck_read_oob").findings
    assert "Launched at /home/user/project/gather.py:58 in gather" in finding.notes


def test_threads_and_blocks_are_ranges() -> None:
    (finding,) = fixture("memcheck_read_oob").findings
    assert finding.message.endswith("(threads (96–98, 0, 0) in block (1, 4, 0))")
    assert (finding.program, finding.programs) == ((1, 4, 0), 1)
    spread = one(READ, replace(READ, thread=(31, 2, 0), block=(5, 0, 0)))
    assert spread.message.endswith("(threads (0–31, 0–2, 0) in blocks (0–5, 0, 0))")
    assert spread.programs == 2


def test_an_address_becomes_a_page_of_the_cache() -> None:
    page = 64 * 1024
    base = 0x7F1D50A09020 - 1048576 * page - 32
    cache = Allocation("k_cache", base, 512 * page, Layout.contiguous((512, page)), 1)
    (finding,) = fixture("memcheck_read_oob", cache).findings
    assert (finding.argument, finding.index) == ("", ())  # the log names an allocation that is no argument
    (finding,) = collect(
        Records(FIXTURES / "memcheck_read_oob.xml", Tool.MEMCHECK), LogSummary(total=7810), allocations=(cache,)
    ).findings
    assert (finding.argument, finding.index) == ("k_cache", (1048576, 32))
    assert "64 GiB past the end of k_cache, index 1048576 of 512 in dimension 0" in finding.message
    assert finding.cells == (1048576 * page + 32,)


def test_the_stray_write_of_the_fixture_in_elements() -> None:
    out = Allocation("out", 0x7F9332802000, 4000, Layout.contiguous((1000,)), 4)
    (finding,) = fixture("memcheck_write_oob", out).findings
    assert (finding.argument, finding.index) == ("out", (1000,))
    assert "1 byte past the end of out, index 1000 of 1000 in dimension 0" in finding.message
    assert finding.cells == tuple(range(1000, 1016))


def test_the_total_is_the_summarys_where_all_that_is_listed_is_one_fault() -> None:
    (finding,) = fixture("memcheck_read_oob").findings
    assert finding.count == 7810
    assert "counted 7,810 errors in this run and listed 3 of them, all of this one fault" in finding.notes[0]


def test_several_faults_of_a_truncated_list_are_at_least() -> None:
    found = collect([READ, READ, replace(READ, device_frames=(replace(LINE, line=9),), line=9)], LogSummary(total=900))
    assert [finding.count for finding in found.findings] == [2, 1]
    assert found.findings[0].notes[0].startswith("At least 2: compute-sanitizer counted 900 errors")


def test_a_whole_list_is_exact_and_says_nothing_about_it() -> None:
    finding = one(READ, READ)
    assert finding.count == 2
    assert finding.notes == ("Found by compute-sanitizer's memcheck.",)


def test_without_a_summary_the_count_is_at_least() -> None:
    (finding,) = collect([READ], LogSummary()).findings
    assert finding.notes[0] == "At least 1: compute-sanitizer's own total is missing."


def test_calls_that_fail_after_a_fault_are_no_faults() -> None:
    finding = one(READ, FAILED, FAILED)
    assert (finding.kind, finding.count) == (Kind.OUT_OF_BOUNDS_READ, 1)


def test_calls_that_fail_on_their_own_are() -> None:
    finding = one(FAILED, FAILED)
    assert (finding.kind, finding.count) == (Kind.API_ERROR, 2)


@pytest.mark.parametrize(
    ("record", "kind"),
    [
        (replace(READ, access="atomic"), Kind.OUT_OF_BOUNDS_WRITE),
        (replace(READ, error="misaligned"), Kind.MISALIGNED_ACCESS),
        (replace(IMPRECISE, message="Lane misaligned address"), Kind.MISALIGNED_ACCESS),
        (replace(IMPRECISE, message="Illegal instruction"), Kind.CRASH),
        (Record(Tool.MEMCHECK, "Leak", message="Leaked 16 bytes at 0x10", size=16, address=16), Kind.LEAK),
        (Record(Tool.MEMCHECK, "Api", api="cudaMemcpy", result=1, message="Program hit …"), Kind.API_ERROR),
    ],
)  # fmt: skip
def test_kinds(record: Record, kind: Kind) -> None:
    finding = one(record)
    assert finding.kind is kind
    assert finding.message


def test_a_misaligned_access_names_the_element() -> None:
    view = Allocation("x", 0xFFE, 64, Layout.contiguous((32,)), 2)
    finding = one(replace(READ, error="misaligned"), allocations=(view,))
    assert finding.message.startswith("k reads 4 bytes of global memory at a misaligned address: x[1] (thread (0,")


def test_shared_memory_has_no_place_among_the_tensors() -> None:
    view = Allocation("x", 0x1000, 64, Layout.contiguous((64,)), 1)
    assert one(replace(READ, space="shared"), allocations=(view,)).argument == ""


def test_races_name_both_sides_and_a_warning_stays_one() -> None:
    sides = (Site("write", LINE), Site("write", replace(LINE, line=9), 64))
    race = Record(
        Tool.RACECHECK, "Analysis", "warning", "Race condition", kernel="k", sites=sides, device_frames=(LINE,)
    )
    finding = one(race)
    assert (finding.severity, finding.count) == (Severity.WARNING, 64)
    assert finding.message.startswith("the write at k.py:7 and the write at k.py:9 touch the same shared memory")
    assert "(write after write)" in finding.message


def test_memory_of_the_worker_and_of_torch_is_no_leak_of_the_target() -> None:
    own = Frame("_allocate", f"{Path(kcheck.targets.__file__).parent.parent}/worker/exact.py", 70)
    leak = Record(Tool.MEMCHECK, "Leak", message="Leaked 16 bytes at 0x10", size=16, address=16, host_frames=(own,))
    collected = collect([leak], LogSummary(total=1))
    assert (collected.findings, collected.listed, collected.foreign) == ((), 1, 1)
    user = replace(leak, host_frames=(own, Frame("gather", "/a/gather.py", 9)))
    assert one(user).line == 9


def test_leaks_are_told_apart_by_the_line_that_allocated() -> None:
    frames = (Frame("cudaMalloc", module="/a/libcudart.so"), Frame("main", "/a/drive.py", 12))
    leak = Record(Tool.MEMCHECK, "Leak", message="Leaked 16 bytes at 0x10", size=16, address=16, host_frames=frames)
    finding = one(leak, replace(leak, address=64))
    assert (finding.file, finding.line, finding.count) == ("/a/drive.py", 12, 2)
    assert "2 allocations are listed, 32 bytes together." in finding.notes


def test_a_record_of_an_unknown_kind_is_not_passed_over() -> None:
    found = collect([Record(Tool.MEMCHECK, "Novel")], LogSummary(total=1))
    assert (found.findings, found.unknown) == ((), ("Novel",))


def test_initcheck_records_of_other_kernels_are_not_the_targets() -> None:
    own = Record(Tool.INITCHECK, "Initcheck", message="Uninitialized __global__ memory read", kernel="_gather_kernel")
    records = [own, replace(own, kernel="vectorized_elementwise_kernel"), replace(own, kernel="")]
    found = collect(records, LogSummary(total=3), kernels=["gather"])
    assert (len(found.findings), found.foreign, found.listed) == (1, 2, 3)


def test_the_source_line_and_its_occurrence_are_those_of_the_function(tmp_path: Path) -> None:
    file = tmp_path / "k.py"
    file.write_text("x = 1\n\n@jit\ndef k():\n    load(p)\n    load(p)\n\ndef other():\n    load(p)\n")
    frame = Frame("k", str(file), 6)
    finding = one(replace(READ, device_frames=(frame,), file=str(file), line=6))
    assert (finding.source, finding.occurrence) == ("load(p)", 1)
    frame = replace(frame, line=9)
    assert one(replace(READ, device_frames=(frame,), file=str(file), line=9)).occurrence == 0


@pytest.mark.parametrize("file", ["/dev/zero", "/no/such/file.py", "/", ""])
def test_a_report_cannot_make_kcheck_read_a_device(file: str) -> None:
    finding = one(replace(READ, device_frames=(Frame("k", file, 1),), file=file, line=1))
    assert (finding.source, finding.occurrence) == ("", 0)


def test_the_machinery_of_the_launch_is_not_the_users() -> None:
    target = Path(kcheck.targets.__file__).with_name("paged_gather.py")
    site = "/v/lib/python3.12/site-packages"
    frames = [
        Frame("__call__", f"{site}/triton/backends/nvidia/driver.py", 1),
        Frame("run", "/src/triton/python/triton/runtime/jit.py", 1),
        Frame("decorate_context", f"{site}/torch/utils/_contextlib.py", 1),
        Frame("inner", "/usr/lib/python3.12/contextlib.py", 1),
        Frame("run_case", str(target.parent.parent / "worker" / "run.py"), 1),
        Frame("boot", "<frozen runpy>", 1),
    ]
    for mine in (str(target), f"{site}/vllm/ops.py", "/home/u/ops.py"):
        record = replace(READ, host_frames=(*frames, Frame("wrapper", mine, 3), Frame("main", "/home/u/main.py", 4)))
        assert f"Launched at {mine}:3 in wrapper" in one(record).notes[0]
