"""compute-sanitizer's XML: every real report is read, what ends early gives what is whole, harmful XML is refused."""

from __future__ import annotations

import tracemalloc
from itertools import islice
from pathlib import Path

import pytest

from kcheck.errors import CouldNotCheck
from kcheck.sanitizer.records import Frame, Record, Records
from kcheck.sanitizer.tool import Tool

FIXTURES = Path(__file__).parent / "fixtures"
REPORTS = sorted(path.stem for path in FIXTURES.glob("*.xml"))
HEAD = '<?xml version="1.0" encoding="utf-8"?>\n'
RECORD = "<record><kind>Precise</kind><what><text>Invalid __global__ read of size 1 bytes</text></what></record>"


def read(name: str) -> list[Record]:
    records = Records(FIXTURES / f"{name}.xml", Tool.MEMCHECK)
    found = list(records)
    assert records.problem == ""
    return found


def write(folder: Path, text: str) -> Path:
    path = folder / "report.xml"
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("name", "count"),
    [
        ("clean", 0),
        ("initcheck_uninitialized_read", 4),
        ("memcheck_api_error", 1),
        ("memcheck_atomic_oob", 4),
        ("memcheck_read_oob", 3),
        ("memcheck_write_oob", 4),
        ("racecheck_shared", 1),
        ("synccheck_divergent", 4),
    ],
)
def test_every_report_is_read_whole(name: str, count: int) -> None:
    assert len(read(name)) == count


def test_a_memory_error_record() -> None:
    record = read("memcheck_read_oob")[2]
    assert (record.kind, record.level, record.error) == ("Precise", "error", "out of bounds")
    assert (record.access, record.size, record.space, record.address) == ("read", 1, "global", 0x7F1D50A09020)
    assert (record.kernel, record.file, record.line) == (
        "_dequantize_and_gather_k_kernel", "/home/user/project/gather.py", 43,
    )  # fmt: skip
    assert (record.thread, record.block) == ((98, 0, 0), (1, 4, 0))


def test_python_frames_come_after_the_interpreters_own_innermost_first() -> None:
    record = read("memcheck_read_oob")[0]
    assert [(frame.function, frame.line) for frame in record.python_frames] == [
        ("__call__", 713), ("run", 744), ("<lambda>", 370), ("gather", 58), ("<module>", 34),
    ]  # fmt: skip
    assert record.host_frames[0].function == "launch"
    assert record.host_frames[0].module.endswith(".so")


def test_an_atomic_and_a_write() -> None:
    assert read("memcheck_atomic_oob")[0].access == "atomic"
    write_record = read("memcheck_write_oob")[0]
    assert (write_record.access, write_record.size) == ("write", 16)


def test_an_uninitialized_read_has_no_direction_tag_but_is_a_read() -> None:
    record = read("initcheck_uninitialized_read")[0]
    assert (record.access, record.space, record.size, record.address) == ("read", "global", 4, 0x7EF95E800600)


def test_both_sides_of_a_race() -> None:
    (record,) = read("racecheck_shared")
    assert [(site.access, site.frame.line, site.hazards) for site in record.sites] == [
        ("write", 3, 0),
        ("read", 3, 512),
    ]
    assert (record.kernel, record.line, record.level) == ("shared_race", 3, "error")


def test_a_barrier_error_names_its_class() -> None:
    record = read("synccheck_divergent")[3]
    assert (record.message, record.error) == ("Barrier error", "Divergent thread(s) in warp")
    assert (record.thread, record.line) == ((3, 0, 0), 4)


def test_an_api_error_has_its_function_and_result() -> None:
    (record,) = read("memcheck_api_error")
    assert (record.api, record.result, record.error) == ("cudaMemcpy", 1, "cudaErrorInvalidValue")
    assert record.address is None


def test_a_device_stack_ends_in_the_kernel_and_names_lose_their_parameters(tmp_path: Path) -> None:
    where = "<where><func>helper(float *)</func><path>/a/k.cu</path><line>9</line></where>"
    stack = (
        "<deviceStack><frame><func>helper(float *)</func><path>/a/k.cu</path><line>9</line></frame>"
        "<frame><func>kernel(int *, int)</func><path>/a/k.cu</path><line>20</line></frame></deviceStack>"
    )
    xml = f"<ComputeSanitizerOutput><record><kind>Precise</kind>{where}{stack}</record></ComputeSanitizerOutput>"
    (record,) = Records(write(tmp_path, xml), Tool.MEMCHECK)
    assert (record.kernel, record.line) == ("kernel", 9)
    assert record.device_frames == (Frame("helper", "/a/k.cu", 9), Frame("kernel", "/a/k.cu", 20))


def test_a_leak_in_the_manuals_words(tmp_path: Path) -> None:
    xml = (
        "<ComputeSanitizerOutput><record><kind>Leak</kind><what><text>Leaked 1,024 bytes at 0x7879c0800000</text>"
        "</what></record></ComputeSanitizerOutput>"
    )
    (record,) = Records(write(tmp_path, xml), Tool.MEMCHECK)
    assert (record.size, record.address) == (1024, 0x7879C0800000)


@pytest.mark.parametrize("tenth", range(10))
@pytest.mark.parametrize("name", REPORTS)
def test_a_report_that_ends_early_gives_its_whole_records(name: str, tenth: int, tmp_path: Path) -> None:
    data = (FIXTURES / f"{name}.xml").read_bytes()
    cut = data[: len(data) * tenth // 10]
    path = tmp_path / "report.xml"
    path.write_bytes(cut)
    records = Records(path, Tool.MEMCHECK)
    assert list(records) == read(name)[: cut.count(b"</record>")]
    assert "ends early" in records.problem


def test_a_missing_report_is_a_problem_not_an_error(tmp_path: Path) -> None:
    records = Records(tmp_path / "report.xml", Tool.MEMCHECK)
    assert list(records) == []
    assert records.problem == "compute-sanitizer wrote no report.xml"


def test_a_folder_in_place_of_the_report(tmp_path: Path) -> None:
    records = Records(tmp_path, Tool.MEMCHECK)
    assert list(records) == []
    assert "cannot be read" in records.problem


BILLION_LAUGHS = (
    HEAD + '<!DOCTYPE x [<!ENTITY a "ha">' + "".join(
        f'<!ENTITY {new} "{f"&{old};" * 10}">' for old, new in zip("abcdefgh", "bcdefghi", strict=True)
    ) + "]><ComputeSanitizerOutput><record><kind>&i;</kind></record></ComputeSanitizerOutput>"
)  # fmt: skip
EXTERNAL = (
    HEAD + '<!DOCTYPE x [<!ENTITY e SYSTEM "file:///etc/passwd">]>'
    "<ComputeSanitizerOutput><record><kind>&e;</kind></record></ComputeSanitizerOutput>"
)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        pytest.param(BILLION_LAUGHS, "document type", id="billion laughs"),
        pytest.param(EXTERNAL, "document type", id="external entity"),
        pytest.param(HEAD + '<!DOCTYPE x SYSTEM "http://localhost/x.dtd"><x/>', "document type", id="external DTD"),
        pytest.param(
            "<ComputeSanitizerOutput><record>" + "<a>" * 10_000 + "</a>" * 10_000, "nests more than 32", id="depth"
        ),
        pytest.param("<a>" * 10_000, "begins with <a>", id="depth of another document"),
        pytest.param("<html><body/></html>", "begins with <html>", id="another document"),
    ],
)
def test_harmful_xml_is_refused(text: str, says: str, tmp_path: Path) -> None:
    with pytest.raises(CouldNotCheck, match=says):
        list(Records(write(tmp_path, text), Tool.MEMCHECK))


def test_a_file_beyond_the_limit_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path, f"<ComputeSanitizerOutput>{RECORD * 3000}</ComputeSanitizerOutput>")
    with pytest.raises(CouldNotCheck, match="is larger than 100,000 bytes; lower --print-limit"):
        list(Records(path, Tool.MEMCHECK, max_bytes=100_000))


@pytest.mark.parametrize("opening", ["<record><kind>", "<record><kind a='", "", "<!--"])
def test_a_record_beyond_the_limit_is_refused(opening: str, tmp_path: Path) -> None:
    path = write(tmp_path, f"<ComputeSanitizerOutput>{opening}{'x' * 1_000_000}")
    with pytest.raises(CouldNotCheck, match="record of more than 50,000 bytes"):
        list(Records(path, Tool.MEMCHECK, max_record_bytes=50_000))


def test_entities_that_nobody_defined_end_the_report(tmp_path: Path) -> None:
    records = Records(write(tmp_path, f"<ComputeSanitizerOutput>{RECORD}<record>&e;"), Tool.MEMCHECK)
    assert len(list(records)) == 1
    assert "undefined entity" in records.problem


def test_memory_does_not_grow_with_the_file(tmp_path: Path) -> None:
    path = write(tmp_path, f"<ComputeSanitizerOutput>{RECORD * 40_000}</ComputeSanitizerOutput>")
    tracemalloc.start()
    count = sum(1 for _ in Records(path, Tool.MEMCHECK))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert count == 40_000
    assert peak < 2_000_000 < path.stat().st_size


def test_records_come_before_the_file_is_read_to_its_end(tmp_path: Path) -> None:
    path = write(tmp_path, f"<ComputeSanitizerOutput>{RECORD * 5000}<!DOCTYPE x>")
    assert len(list(islice(Records(path, Tool.MEMCHECK), 10))) == 10
