"""The worker under the tools, run without one: placement, wild values, the progress file."""

from __future__ import annotations

import math
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from kcheck import loader
from kcheck.case import Backing, Case, Role, View
from kcheck.dtypes import DTYPES, dtype_named
from kcheck.engine.draw import simplest
from kcheck.errors import CouldNotCheck, InvalidDocument
from kcheck.fill import Fill
from kcheck.job import Job, ProgressFile, Status, read_progress
from kcheck.layout import Dim, Layout, Plane
from kcheck.plan import Plan
from kcheck.sanitizer.launch import allocations_of
from kcheck.worker.arena import dense_values
from kcheck.worker.exact import place_exact, wild_value
from kcheck.worker.sanitized import run_job

KERNELS = Path(__file__).parent.parent / "kernels"
NARROWED = Layout((Dim(3), Dim(2, before=1, after=2)))  # torch.empty((3, 5))[:, 1:3]
EXPANDED = Layout((Dim(4, expanded=True), Dim(3, after=1)))


def case_of(dtype: str = "int32", layout: Layout = NARROWED, role: Role = Role.INPUT, bound: int | None = None) -> Case:
    view = View("x", dtype, layout, Fill(low=0, high=1), role, bound)
    return Case.of({"x": view}, {"x": Backing(dtype, layout.backing_numel)})


def elements_of(tensor: torch.Tensor) -> torch.Tensor:
    """The whole backing of a view."""
    storage = tensor.untyped_storage()
    count = storage.nbytes() // tensor.element_size()
    return torch.empty(0, dtype=tensor.dtype).set_(storage, 0, (count,), (1,))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("layout", [NARROWED, EXPANDED], ids=["narrowed", "expanded"])
def test_a_view_has_its_values_and_everything_around_it_is_wild(dtype: str, layout: Layout) -> None:
    case = case_of(dtype, layout)
    contents = dense_values(case)
    placement = place_exact(case, contents, "cpu")
    tensor = placement.tensors["x"]
    assert (tensor.shape, tensor.stride(), tensor.storage_offset()) == (layout.shape, layout.strides, layout.first)
    assert torch.equal(tensor.double(), contents["x"].double())
    memory = elements_of(tensor)
    assert memory.numel() == layout.backing_numel  # exact: no red zones
    gaps = [i for i in range(layout.backing_numel) if layout.index_at(i) is None]
    assert gaps
    for gap in gaps:
        value = float(memory[gap])
        assert math.isnan(value) if dtype_named(dtype).is_float else value == wild_value(case.views["x"])


@pytest.mark.parametrize(("dtype", "least"), [("int64", 1 << 28), ("int32", 1 << 28), ("int16", 32767), ("uint8", 255)])
def test_a_wild_index_is_far_out_of_range(dtype: str, least: int) -> None:
    assert wild_value(case_of(dtype).views["x"]) >= least
    assert wild_value(case_of("int64", bound=1 << 40).views["x"]) >= 1 << 40


def test_a_wild_index_does_not_wrap_back_to_the_beginning() -> None:
    wild = wild_value(case_of("int32").views["x"])
    assert isinstance(wild, int)
    for factor in (2**i for i in range(24)):
        assert abs((wild * factor + 2**31) % 2**32 - 2**31) > 1 << 24


def test_every_backing_is_an_allocation_of_its_own() -> None:
    two = Layout((Dim(2),), (1, 0), (Plane(2, 1),))
    views = {name: View(name, "int8", NARROWED) for name in "ab"}
    views |= {"k": View("pool", "int8", replace(two, planes=(Plane(2, 0),))), "v": View("pool", "int8", two)}
    backings = {name: Backing("int8", NARROWED.backing_numel) for name in "ab"} | {"pool": Backing("int8", 4)}
    case = Case.of(views, backings)
    placement = place_exact(case, dense_values(case), "cpu")
    storages = {name: tensor.untyped_storage().data_ptr() for name, tensor in placement.tensors.items()}
    assert storages["k"] == storages["v"]
    assert len(set(storages.values())) == 3
    assert placement.addresses == {"a": storages["a"], "b": storages["b"], "pool": storages["k"]}
    assert sorted(size for _, size in placement.spans) == [4, 15, 15]


@pytest.mark.parametrize("role", [Role.OUTPUT, Role.SCRATCH])
def test_outputs_hold_wild_values_or_nothing_that_kcheck_wrote(role: Role) -> None:
    case = case_of("float32", role=role)
    wild = place_exact(case, dense_values(case), "cpu").tensors["x"]
    assert bool(wild.isnan().all())
    unwritten = case_of("int32", role=role)
    marked = torch.full((NARROWED.backing_numel * 4,), 7, dtype=torch.uint8)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(torch, "empty", lambda *args, **kwargs: marked)
        tensor = place_exact(unwritten, dense_values(unwritten), "cpu", unwritten=True).tensors["x"]
    assert bool((tensor == 0x07070707).all())
    memory = marked.view(torch.int32)
    gaps = [i for i in range(NARROWED.backing_numel) if NARROWED.index_at(i) is None]
    assert bool((memory[gaps] == wild_value(unwritten.views["x"])).all())


def test_an_inout_is_written_also_where_outputs_are_not() -> None:
    case = case_of("int32", role=Role.INOUT)
    contents = dense_values(case)
    assert torch.equal(place_exact(case, contents, "cpu", unwritten=True).tensors["x"], contents["x"])


def test_an_empty_tensor_has_no_address() -> None:
    case = case_of("int32", Layout.contiguous((0, 3)))
    placement = place_exact(case, dense_values(case), "cpu")
    assert (placement.tensors["x"].shape, placement.addresses) == ((0, 3), {})


def test_a_device_that_gives_no_memory_is_said() -> None:
    if torch.cuda.is_available():
        pytest.skip("this machine has a GPU")
    with pytest.raises(CouldNotCheck, match="cuda gives no memory for a tensor of 60 bytes"):
        place_exact(case_of(), dense_values(case_of()), "cuda")


def cases(spec: str, **pins: int | str) -> Iterator[Case]:
    (loaded,) = loader.load(spec)
    drawn = simplest(loaded.target, Plan(pins, small=True))
    assert drawn is not None
    yield drawn.case


def test_progress_tells_of_every_case_and_of_the_end(tmp_path: Path) -> None:
    spec = f"{KERNELS / 'controls.py'}::any_stride_copy"
    chosen = (*cases(spec), *cases(spec))
    run_job(Job("interpret", spec, chosen), ProgressFile(tmp_path / "progress"))
    progress = read_progress(tmp_path / "progress")
    assert (progress.loaded, progress.ended, progress.problem) == (True, True, "")
    assert list(progress.cases) == [0, 1]
    for number, case in progress.cases.items():
        assert (case.status, case.reason) == (Status.DONE, "")
        assert sum(case.launches.values()) == 1
        assert case.addresses.keys() == chosen[number].backings.keys()
        places = allocations_of(chosen[number], case)
        assert [place.name for place in places] == list(chosen[number].views)
        assert all(place.address % 4 == 0 and place.nbytes > 0 for place in places)


def test_a_rejection_and_an_exception_are_told_apart(tmp_path: Path) -> None:
    source = tmp_path / "kcheck_moody.py"
    source.write_text(
        "import kcheck\nfrom hypothesis import strategies as st\n\n"
        "@kcheck.target(cases=st.nothing())\ndef moody(mode):\n"
        "    if mode == 'decline':\n        raise ValueError('not this')\n"
        "    if mode == 'stop':\n        raise KeyError('lost')\n"
    )
    chosen = tuple(Case.of({"mode": mode}, {}) for mode in ("decline", "stop", "fine"))
    run_job(Job("interpret", f"{source}::moody", chosen), ProgressFile(tmp_path / "progress"))
    told = read_progress(tmp_path / "progress").cases
    assert [case.status for case in told.values()] == [Status.REJECTED, Status.UNCHECKED, Status.DONE]
    assert told[0].reason == "ValueError: not this"
    assert told[1].reason == f"{source}:9: moody raised KeyError: 'lost'"


def test_a_target_that_cannot_be_loaded_is_said(tmp_path: Path) -> None:
    run_job(Job("interpret", "nowhere.py::x", ()), ProgressFile(tmp_path / "progress"))
    progress = read_progress(tmp_path / "progress")
    assert not progress.loaded
    assert not progress.ended
    assert "nowhere.py" in progress.problem


def test_the_worker_is_a_module_that_reads_a_job_file(tmp_path: Path) -> None:
    job, progress = tmp_path / "job", tmp_path / "progress"
    spec = "builtin:paged_gather"
    Job("interpret", spec, tuple(cases(spec, num_requests=2)), unwritten=True).write(job)
    line = [sys.executable, "-P", "-m", "kcheck.worker.sanitized", str(job), str(progress)]
    subprocess.run(line, check=True, timeout=120)
    told = read_progress(progress)
    assert told.ended
    assert told.cases[0].launches == {"_paged_gather_kernel": 1}


def test_a_job_survives_its_file(tmp_path: Path) -> None:
    job = Job("cuda", "a.py::b", (case_of(),), unwritten=True, leaks=True)
    job.write(tmp_path / "job")
    assert Job.read(tmp_path / "job") == job


@pytest.mark.parametrize("text", ["", "{}", '{"schema": "other"}', "[1]"])
def test_a_file_that_is_no_job_is_refused(text: str, tmp_path: Path) -> None:
    (tmp_path / "job").write_text(text)
    with pytest.raises(InvalidDocument):
        Job.read(tmp_path / "job")


def test_half_a_line_of_progress_is_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "progress"
    file = ProgressFile(path)
    file.loaded()
    file.started(0)
    with path.open("a") as more:
        more.write('{"event": "finished", "ca')
    progress = read_progress(path)
    assert progress.cases[0].status is Status.RUNNING
    assert not progress.ended
