"""The CPU stands in for a GPU: what a wrapper asks is answered, what cannot be answered is could-not-check by name."""
# mypy: disable-error-code="no-untyped-call,no-untyped-def,untyped-decorator"

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import triton
import triton.language as tl
from hypothesis import strategies as st
from torch.cuda import get_device_properties  # a wrapper may import a function by name, before anything is pretended

import kcheck
from kcheck.backend_spec import BackendSpec
from kcheck.case import Case, Role, Tensor
from kcheck.errors import UsageError
from kcheck.events import CaseVerdict
from kcheck.findings import Kind
from kcheck.layout import Dim, Layout
from kcheck.protocol import Judgement
from kcheck.worker.backends import open_backend
from kcheck.worker.judge import Judge


@triton.jit
def double_kernel(out, x, n, stride, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i * stride, mask=i < n) * 2, mask=i < n)


def launch(x: torch.Tensor, stride: int | None = None) -> torch.Tensor:
    out = torch.empty(x.shape, device="cuda")
    double_kernel[(triton.cdiv(x.numel(), 4),)](out, x, x.numel(), x.stride(0) if stride is None else stride, BLOCK=4)
    return out


NARROWED = Layout((Dim(6, after=3),))
STEPPED = Layout((Dim(6, step=2, after=1),))


def judge(function: Callable[..., Any], backend: str = "interpret", x: Layout = NARROWED) -> Judgement:
    """Judge a function of ``x`` that must double it."""
    target = kcheck.target(cases=st.nothing(), oracle=lambda x: x * 2)
    return Judge(open_backend(backend)).judge(target(function), Case(x=Tensor("float32", x)))


def says_yes_to(question: Callable[[torch.Tensor], object]) -> bool:
    """Whether a wrapper that asserts this runs; an assertion that fails is a rejection."""

    def wrapper(x: torch.Tensor) -> torch.Tensor:
        assert question(x)
        return launch(x)

    judgement = judge(wrapper)
    assert judgement.verdict in (CaseVerdict.MATCH, CaseVerdict.REJECTED), judgement
    return judgement.verdict is CaseVerdict.MATCH


@pytest.mark.parametrize(
    "question",
    [
        lambda x: x.is_cuda and not x.is_cpu,
        lambda x: x.device == torch.device("cuda:0") and x.device.type == "cuda" and x.get_device() == 0,
        lambda x: x.type() == "torch.cuda.FloatTensor",
        lambda x: torch.cuda.is_available() and torch.cuda.is_initialized() and torch.cuda.device_count() == 1,
        lambda x: torch.cuda.current_device() == 0,
        lambda x: torch.cuda.get_device_capability() == (9, 0) == torch.cuda.get_device_capability(x.device),
        lambda x: torch.cuda.get_device_properties(0).multi_processor_count == 132,
        lambda x: get_device_properties("cuda").major == 9,
        lambda x: "H100" in torch.cuda.get_device_name(),
        lambda x: torch.cuda.is_bf16_supported() and not torch.cuda.is_current_stream_capturing(),
        lambda x: torch.accelerator.is_available() and torch.accelerator.current_accelerator() == torch.device("cuda"),
        lambda x: torch.version.cuda is not None and torch.version.hip is None,
        lambda x: triton.runtime.driver.active.get_current_target().arch == 90,
        lambda x: triton.runtime.driver.active.get_active_torch_device() == x.device,
        lambda x: triton.runtime.driver.active.utils.get_device_properties(0)["multiprocessor_count"] == 132,
        lambda x: not hasattr(torch.cuda.get_device_properties(0), "no_such_property"),
    ],
)  # fmt: skip
def test_questions_are_answered(question: Callable[[torch.Tensor], object]) -> None:
    assert says_yes_to(question)
    assert not says_yes_to(lambda x: not question(x))


@pytest.mark.parametrize(
    ("make", "on_device"),
    [
        (lambda x: torch.empty(3, device="cuda"), True),
        (lambda x: torch.empty(3), False),
        (lambda x: torch.tensor([1, 2]), False),
        (lambda x: torch.tensor([1, 2]).cuda(), True),
        (lambda x: torch.arange(3).to("cuda", torch.float32, non_blocking=True), True),
        (lambda x: torch.ones(2).to(x), True),
        (lambda x: torch.ones(2).to(device=0), True),
        (lambda x: x.cpu(), False),
        (lambda x: x.to("cpu"), False),
        (lambda x: x.cpu().to(torch.float64)[1:], False),
        (lambda x: x.to(torch.float64), True),
        (lambda x: x.new_empty(3), True),
        (lambda x: torch.zeros_like(x), True),
        (lambda x: torch.zeros_like(torch.empty(2)), False),
        (lambda x: torch.empty_like(torch.empty(2), device="cuda"), True),
        (lambda x: torch.cat([x, x]), True),
        (lambda x: torch.stack((torch.ones(2), torch.ones(2))), False),
        (lambda x: x[:1] + torch.ones(1), True),
        (lambda x: torch.empty(2, pin_memory=True), False),
        (lambda x: torch.rand(3, device="cuda", generator=torch.Generator("cuda").manual_seed(1)), True),
        (lambda x: torch.nn.Linear(2, 2, device="cuda").weight, True),
        (lambda x: torch.nn.Linear(2, 2).cuda().weight, True),
    ],
)  # fmt: skip
def test_new_tensors_are_where_torch_puts_them(make: Callable[[torch.Tensor], torch.Tensor], on_device: bool) -> None:
    assert says_yes_to(lambda x: make(x).is_cuda is on_device)
    assert says_yes_to(lambda x: make(x).device.type == ("cuda" if on_device else "cpu"))


def test_contexts_streams_and_events_do_nothing_harmful() -> None:
    def wrapper(x: torch.Tensor) -> torch.Tensor:
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.device(x.device), torch.cuda.stream(side), torch.device("cuda"):
            assert torch.empty(1).is_cuda
            out = launch(x)
        x.record_stream(side)
        event = torch.cuda.Event()
        event.record()
        assert event.query()
        with torch.cuda.device_of(x):
            torch.cuda.synchronize()
        torch.cuda.nvtx.range_push("scale")
        torch.cuda.nvtx.range_pop()
        return out

    assert judge(wrapper).verdict is CaseVerdict.MATCH


def test_a_move_to_the_device_is_a_copy() -> None:
    def wrapper(x: torch.Tensor) -> torch.Tensor:
        host = x.cpu()
        there = host.to("cuda")
        host.zero_()
        return launch(there, stride=1)

    assert judge(wrapper).verdict is CaseVerdict.MATCH


def test_bugs_behind_an_assertion_are_found() -> None:
    def wrong(x: torch.Tensor) -> torch.Tensor:
        assert x.is_cuda
        return launch(x, stride=1)

    def right(x: torch.Tensor) -> torch.Tensor:
        assert x.is_cuda
        return launch(x)

    assert [finding.kind for finding in judge(wrong, x=STEPPED).findings] == [Kind.OUT_OF_VIEW_READ]
    assert judge(right, x=STEPPED).verdict is CaseVerdict.MATCH


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda: torch.cuda.mem_get_info(), "torch.cuda.mem_get_info"),
        (lambda: torch.cuda.CUDAGraph(), "torch.cuda.CUDAGraph"),
        (lambda: torch.cuda.get_device_properties(0).uuid, "torch.cuda.get_device_properties().uuid"),
        (lambda: torch.empty(1, device="cuda:1"), "cuda:1"),
        (lambda: torch.autocast("cuda").__enter__(), "torch.autocast('cuda')"),
        (lambda: triton.runtime.driver.active.launcher_cls, "triton.runtime.driver.active.launcher_cls"),
        (lambda: torch.cuda.Event().elapsed_time(torch.cuda.Event()), "elapsed_time"),
    ],
)
def test_what_has_no_answer_is_could_not_check_with_its_name(call: Callable[[], object], name: str) -> None:
    def wrapper(x: torch.Tensor) -> torch.Tensor:
        call()
        return launch(x)

    judgement = judge(wrapper)
    assert judgement.verdict is CaseVerdict.COULD_NOT_CHECK
    assert name in judgement.reason
    assert "test_pretend.py" in judgement.reason


@torch.library.custom_op("kcheck_tests::double", mutates_args=(), device_types="cuda")
def registered_double(x: torch.Tensor) -> torch.Tensor:
    assert x.is_cuda
    return launch(x)


def double_into(out: torch.Tensor, x: torch.Tensor) -> None:
    out.copy_(launch(x))


library = torch.library.Library("kcheck_tests", "FRAGMENT")
library.define("double_into(Tensor(a!) out, Tensor x) -> ()")
library.impl("double_into", double_into, dispatch_key="CUDA")


def test_operators_that_a_library_registers_for_gpus_run() -> None:
    def into(x: torch.Tensor) -> torch.Tensor:
        out = torch.empty_like(x)
        torch.ops.kcheck_tests.double_into(out, x)
        return out

    for wrapper in (lambda x: registered_double(x), lambda x: torch.ops.kcheck_tests.double(x), into):
        judgement = judge(wrapper)
        assert judgement.verdict is CaseVerdict.MATCH
        assert judgement.launches == {"double_kernel": 1}


def test_what_runs_on_gpus_alone_is_could_not_check_and_no_finding() -> None:
    def wrapper(x: torch.Tensor) -> torch.Tensor:
        launch(x)
        raise NotImplementedError("Could not run 'lib::op' with arguments from the 'CPU' backend. There may be …")

    judgement = judge(wrapper)
    assert judgement.verdict is CaseVerdict.COULD_NOT_CHECK
    assert "lib::op" in judgement.reason


@pytest.mark.parametrize(("arch", "capability", "count"), [("sm_80", (8, 0), 108), ("sm_100", (10, 0), 148)])
def test_the_gpu_can_be_chosen(arch: str, capability: tuple[int, int], count: int) -> None:
    def wrapper(x: torch.Tensor) -> torch.Tensor:
        assert torch.cuda.get_device_capability() == capability
        assert torch.cuda.get_device_properties(0).multi_processor_count == count
        return launch(x)

    assert judge(wrapper, f"interpret,pretend={arch}").verdict is CaseVerdict.MATCH
    assert judge(wrapper).verdict is CaseVerdict.REJECTED


def test_an_oracle_sees_the_same_gpu() -> None:
    def oracle(x: torch.Tensor) -> torch.Tensor:
        assert x.is_cuda
        return x * torch.full((), 2, device="cuda")

    target = kcheck.target(cases=st.nothing(), oracle=oracle)(lambda x: launch(x))
    judgement = Judge(open_backend("interpret")).judge(target, Case(x=Tensor("float32", Layout((Dim(6),)))))
    assert judgement.verdict is CaseVerdict.MATCH


def test_host_tensors_are_on_the_host_for_target_and_oracle() -> None:
    def double(x: torch.Tensor, factor: torch.Tensor) -> torch.Tensor:
        assert x.is_cuda
        assert factor.device.type == "cpu"
        return x * int(factor[0])

    target = kcheck.target(cases=st.nothing(), oracle=double)(double)
    host = Tensor("int32", Layout((Dim(1),)), host=True)
    case = Case(x=Tensor("float32", Layout((Dim(6),))), factor=host)
    assert Judge(open_backend("interpret")).judge(target, case).verdict is CaseVerdict.MATCH


def test_nothing_is_left_behind() -> None:
    before = dict(vars(torch.cuda)), dict(vars(torch._C)), dict(vars(triton.runtime.driver)), torch.Generator
    judge(lambda x: launch(x))
    assert before == (dict(vars(torch.cuda)), dict(vars(torch._C)), dict(vars(triton.runtime.driver)), torch.Generator)


def test_backend_texts() -> None:
    for text in ("interpret", "cuda", "interpret,pretend=sm_80", "interpret,pretend=sm_80,all-configs"):
        assert str(BackendSpec.parse(text)) == text
    assert BackendSpec.parse("interpret,pretend=sm_80").options == ("--pretend", "sm_80")
    for text in ("cuda,pretend=sm_80", "interpret,pretend=sm_1", "interpret,other"):
        with pytest.raises(UsageError):
            BackendSpec.parse(text)


def test_an_input_written_by_role_output_is_unaffected() -> None:
    target = kcheck.target(cases=st.nothing(), oracle=lambda out, x: x * 2, outputs=["out"])

    @target
    def into(out: torch.Tensor, x: torch.Tensor) -> None:
        assert out.is_cuda
        out.copy_(launch(x))

    case = Case(
        out=Tensor("float32", Layout((Dim(6),)), role=Role.OUTPUT), x=Tensor("float32", Layout((Dim(6, after=2),)))
    )
    assert Judge(open_backend("interpret")).judge(into, case).verdict is CaseVerdict.MATCH


@pytest.mark.parametrize(
    "call",
    [
        lambda: __import__("flash_attn_for_hopper"),
        lambda: torch.ops.no_such_extension.rms_norm,
        lambda: torch._C._cuda_getNoSuchThing(),  # type: ignore[attr-defined]
        lambda: __import__("ctypes").CDLL("libcuda_none.so.1"),
        lambda: torch.cuda.FloatTensor(3),  # type: ignore[attr-defined]
        lambda: triton.runtime.driver.active.utils.get_device_properties(0)["sm_clock_rate"],
    ],
)
def test_a_missing_gpu_package_is_never_a_finding(call: Callable[[], object]) -> None:
    def told(x: torch.Tensor) -> torch.Tensor:
        launch(x)
        call()
        return x

    def retold(x: torch.Tensor) -> torch.Tensor:
        launch(x)
        try:
            call()
        except Exception as error:
            raise KeyError("install the extension") from error
        return x

    for wrapper in (told, retold):
        judgement = judge(wrapper)
        assert judgement.verdict is CaseVerdict.COULD_NOT_CHECK, judgement.findings
        assert "use --backend cuda" in judgement.reason


def test_an_error_of_the_wrapper_stays_one() -> None:
    def wrong(x: torch.Tensor) -> torch.Tensor:
        launch(x)
        return {"out": x}["result"]

    assert [finding.kind for finding in judge(wrong).findings] == [Kind.TARGET_ERROR]
