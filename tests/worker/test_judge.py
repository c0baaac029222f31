"""The judge on targets that use torch alone: every check that needs no kernel, each with a control."""

from __future__ import annotations

import errno
import itertools
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest
import torch
from hypothesis import strategies as st

import kcheck
import kcheck.errors
from kcheck.case import Case, Role, Tensor
from kcheck.events import CaseVerdict
from kcheck.fill import Fill
from kcheck.findings import Kind
from kcheck.layout import Dim, Layout
from kcheck.protocol import Judgement
from kcheck.target import Target
from kcheck.worker.backends.base import PLAIN, Backend, Conditions, Frame, Launch, ProgramOrder, Region, Watch
from kcheck.worker.judge import Judge


class TorchOnly(Backend):
    """A backend for targets without kernels: it sees one launch, and nothing of what torch does."""

    name = "torch"
    device = "cpu"

    def __init__(self) -> None:
        self.order: ProgramOrder = "forward"

    @contextmanager
    def watch(
        self,
        regions: Sequence[Region],
        *,
        spans: Sequence[tuple[int, int]] = (),
        decoy_seed: int = 0,
        order: ProgramOrder = "forward",
        conditions: Conditions = PLAIN,
    ) -> Iterator[Watch]:
        self.order = order
        yield Watch(launches=[])


BACKEND = TorchOnly()
NARROWED = Layout((Dim(3), Dim(4, after=12)))
DENSE = Layout.contiguous((3, 4))


def make(function: Callable[..., Any], oracle: Callable[..., Any] | None = None, **options: Any) -> Target:
    return kcheck.target(cases=st.nothing(), oracle=oracle, **options)(function)


def judge(target: Target, x: Layout = NARROWED, out: Layout = DENSE, dtype: str = "float32") -> Judgement:
    case = Case(out=Tensor(dtype, out, role=Role.OUTPUT), x=Tensor(dtype, x, Fill(seed=7, low=0, high=9)))
    return Judge(BACKEND).judge(target, case)


def kinds(judgement: Judgement) -> list[Kind]:
    return [finding.kind for finding in judgement.findings]


def double(out: torch.Tensor, x: torch.Tensor) -> None:
    out.copy_(x * 2)


def double_oracle(out: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    return x * 2


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "bfloat16", "int64", "int32", "uint8"])
def test_a_right_target_matches(dtype: str) -> None:
    judgement = judge(make(double, double_oracle, outputs=["out"]), dtype=dtype)
    assert judgement.verdict is CaseVerdict.MATCH
    assert not judgement.findings


def test_an_oracle_that_writes_its_own_outputs_is_read() -> None:
    assert judge(make(double, double, outputs=["out"])).verdict is CaseVerdict.MATCH


def test_a_wrong_value_on_any_layout_is_a_logic_bug() -> None:
    def wrong(out: torch.Tensor, x: torch.Tensor) -> None:
        out.copy_(x * 2)
        out[1, 2] = 99

    judgement = judge(make(wrong, double_oracle, outputs=["out"]))
    assert kinds(judgement) == [Kind.VALUE_MISMATCH]
    mismatch = judgement.findings[0].mismatch
    assert mismatch is not None
    assert (mismatch.count, mismatch.total, mismatch.worst, mismatch.actual) == (1, 12, (1, 2), 99.0)


def dense_walk(out: torch.Tensor, x: torch.Tensor) -> None:
    """Takes the row stride from the shape: the founding bug, in torch."""
    out.copy_(x.as_strided(x.shape, (x.shape[1], 1), x.storage_offset()) * 2)


def test_a_wrong_stride_that_stays_inside_is_a_layout_bug() -> None:
    transposed = Layout((Dim(3), Dim(4)), order=(1, 0))
    assert kinds(judge(make(dense_walk, double_oracle, outputs=["out"]), x=transposed)) == [Kind.LAYOUT_VARIANCE]


def test_a_result_that_depends_on_gaps_is_an_out_of_view_read_by_proof_of_two_decoys() -> None:
    (finding,) = judge(make(dense_walk, double_oracle, outputs=["out"])).findings
    assert (finding.kind, finding.argument) == (Kind.OUT_OF_VIEW_READ, "x")
    assert finding.mismatch is not None
    assert judge(make(dense_walk, double_oracle, outputs=["out"]), x=DENSE).verdict is CaseVerdict.MATCH


def test_without_an_oracle_the_contiguous_copy_is_the_reference() -> None:
    transposed = Layout((Dim(3), Dim(4)), order=(1, 0))
    assert kinds(judge(make(dense_walk, outputs=["out"]), x=transposed)) == [Kind.LAYOUT_VARIANCE]
    assert judge(make(double, outputs=["out"])).verdict is CaseVerdict.MATCH


def judge_returning(function: Callable[[torch.Tensor], Any], oracle: Callable[[torch.Tensor], Any]) -> Judgement:
    case = Case(x=Tensor("float32", NARROWED, Fill(seed=7)))
    return Judge(BACKEND).judge(make(function, oracle), case)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x + 1,
        lambda x: (x + 1, x.sum()),
        lambda x: {"a": x + 1, "b": [x * 2]},
        lambda x: x.sum(),
        lambda x: x[0, 0],
        lambda x: float(x[0, 0]),
        lambda x: x,
    ],
)
def test_what_is_returned_is_compared_too(function: Callable[[torch.Tensor], Any]) -> None:
    assert judge_returning(function, function).verdict is CaseVerdict.MATCH
    nested = function(torch.ones(3, 4))
    if not isinstance(nested, tuple | dict):
        assert kinds(judge_returning(function, lambda x: function(x) + 1)) == [Kind.VALUE_MISMATCH]


def test_an_output_that_is_drawn_but_not_declared_is_compared() -> None:
    def wrong(out: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        out.copy_(x * 3)
        return out

    assert kinds(judge(make(wrong, double_oracle))) == [Kind.VALUE_MISMATCH]
    assert judge(make(double, double_oracle)).verdict is CaseVerdict.MATCH


def test_a_result_that_is_compared_with_nothing_is_could_not_check() -> None:
    nothing = judge_returning(lambda x: None, lambda x: x)
    too_many = judge_returning(lambda x: x + 1, lambda x: (x + 1, x))
    too_few = judge_returning(lambda x: (x + 1, x), lambda x: x + 1)
    for judgement in (nothing, too_many, too_few):
        assert judgement.verdict is CaseVerdict.COULD_NOT_CHECK
        assert "the oracle returned" in judgement.reason
        assert "outputs=[...]" in judgement.reason


def test_results_without_dimensions_are_compared_to_the_bit() -> None:
    scalar = Layout(())
    case = Case(out=Tensor("float32", scalar, role=Role.OUTPUT), x=Tensor("float32", scalar, Fill(seed=7)))
    assert Judge(BACKEND).judge(make(double, double_oracle), case).verdict is CaseVerdict.MATCH


def test_an_element_nobody_wrote_is_found() -> None:
    def partly(out: torch.Tensor, x: torch.Tensor) -> None:
        out[:2] = x[:2] * 2

    judgement = judge(make(partly, double_oracle, outputs=["out"]))
    assert kinds(judgement) == [Kind.UNWRITTEN_OUTPUT]
    assert (judgement.findings[0].index, judgement.findings[0].count) == ((2, 0), 4)
    assert judge(make(partly, double_oracle, outputs=["out"], unwritten_ok=["out"])).verdict is CaseVerdict.MATCH


def test_a_changed_input_is_found() -> None:
    def greedy(out: torch.Tensor, x: torch.Tensor) -> None:
        out.copy_(x * 2)
        x[2, 3] += 1

    judgement = judge(make(greedy, double_oracle, outputs=["out"]))
    assert kinds(judgement) == [Kind.INPUT_MUTATED]
    assert (judgement.findings[0].argument, judgement.findings[0].index) == ("x", (2, 3))


@pytest.mark.parametrize(("distance", "kind"), [(4, Kind.OUT_OF_VIEW_WRITE), (-1, Kind.OUT_OF_BOUNDS_WRITE)])
def test_a_write_beside_the_view_is_found_to_the_byte(distance: int, kind: Kind) -> None:
    def stray(out: torch.Tensor, x: torch.Tensor) -> None:
        out.copy_(x * 2)
        address = out.data_ptr() + distance * out.element_size()
        import ctypes

        ctypes.memset(address, 0x11, 1)

    judgement = judge(make(stray, double_oracle, outputs=["out"]), out=NARROWED)
    assert kinds(judgement) == [kind]
    assert judgement.findings[0].cells == (distance,)


def test_a_result_that_depends_on_old_output_is_an_uninitialised_read() -> None:
    def adding(out: torch.Tensor, x: torch.Tensor) -> None:
        out.view(torch.int32)[0, 0] &= 1  # differs by poison alone
        out[1:] = x[1:] * 2
        out[0, 1:] = x[0, 1:] * 2

    def right(out: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        result = x * 2
        result.view(torch.int32)[0, 0] = 1
        return result

    judgement = judge(make(adding, right, outputs=["out"], exact=True))
    assert kinds(judgement) == [Kind.UNINITIALIZED_READ]


def test_a_result_that_changes_from_call_to_call_is_nondeterministic() -> None:
    counter = itertools.count()

    def moody(out: torch.Tensor, x: torch.Tensor) -> None:
        out.copy_(x * 2 + next(counter))

    assert kinds(judge(make(moody, double_oracle, outputs=["out"]))) == [Kind.NONDETERMINISM]


def test_rounding_that_depends_on_order_is_no_finding_unless_bits_are_promised() -> None:
    def rounding(out: torch.Tensor, x: torch.Tensor) -> None:
        out.copy_(x * 2 * (1 + (1e-7 if BACKEND.order == "reverse" else 0)))

    assert judge(make(rounding, double_oracle, outputs=["out"])).verdict is CaseVerdict.MATCH
    strict = make(rounding, double_oracle, outputs=["out"], deterministic=True)
    assert kinds(judge(strict)) == [Kind.NONDETERMINISM]


def test_declined_layouts_and_declined_values_are_rejected() -> None:
    def contiguous_only(out: torch.Tensor, x: torch.Tensor) -> None:
        if not x.is_contiguous():
            raise ValueError("x must be contiguous")
        double(out, x)

    def never(out: torch.Tensor, x: torch.Tensor) -> None:
        raise NotImplementedError("float32")

    judgement = judge(make(contiguous_only, double_oracle, outputs=["out"]))
    assert (judgement.verdict, judgement.layout_rejected) == (CaseVerdict.REJECTED, True)
    assert judgement.reason.startswith(f"ValueError: x must be contiguous ({__file__}:")
    judgement = judge(make(never, double_oracle, outputs=["out"]))
    assert (judgement.verdict, judgement.layout_rejected) == (CaseVerdict.REJECTED, False)
    owed = make(contiguous_only, double_oracle, outputs=["out"], must_accept={"x": ["narrowed"]})
    assert kinds(judge(owed)) == [Kind.MUST_ACCEPT]


def test_an_exception_that_declines_nothing_is_a_finding() -> None:
    def broken(out: torch.Tensor, x: torch.Tensor) -> None:
        raise KeyError("scale")

    judgement = judge(make(broken, double_oracle, outputs=["out"]))
    assert kinds(judgement) == [Kind.TARGET_ERROR]
    assert judgement.findings[0].file == __file__


def oracle_that_raises(out: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    raise RuntimeError("no reference")


def oracle_of_another_shape(out: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    return x[:1]


@pytest.mark.parametrize(
    ("oracle", "says"),
    [(oracle_that_raises, "the oracle raised RuntimeError: no reference"), (oracle_of_another_shape, "shape (1, 4)")],
)
def test_a_broken_oracle_is_could_not_check_with_a_place(oracle: Callable[..., Any], says: str) -> None:
    judgement = judge(make(double, oracle, outputs=["out"]))
    assert judgement.verdict is CaseVerdict.COULD_NOT_CHECK
    assert says in judgement.reason
    assert __file__ in judgement.reason


def test_the_arguments_of_a_case_must_be_the_parameters() -> None:
    judgement = Judge(BACKEND).judge(make(double, double_oracle), Case(out=1, y=2))
    assert judgement.verdict is CaseVerdict.COULD_NOT_CHECK
    assert "(out, y)" in judgement.reason


def test_a_constant_oracle_is_told() -> None:
    def zeros(out: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        return torch.zeros_like(x)

    assert judge(make(double, zeros, outputs=["out"])).constant == "0.0"
    assert judge(make(double, double_oracle, outputs=["out"])).constant is None


def test_empty_outputs_are_exempt_from_the_launch_rule() -> None:
    empty = Layout((Dim(0), Dim(4)))
    judgement = judge(make(double, double_oracle, outputs=["out"]), x=empty, out=empty)
    assert (judgement.verdict, judgement.exempt) == (CaseVerdict.MATCH, True)


def test_a_launch_is_counted() -> None:
    class Launching(TorchOnly):
        @contextmanager
        def watch(self, regions: Sequence[Region], **options: Any) -> Iterator[Watch]:
            yield Watch([Launch("k", (1, 1, 1), 1, Frame(__file__, 1, "f", "k[1]()"))])

    case = Case(out=Tensor("float32", DENSE, role=Role.OUTPUT), x=Tensor("float32", DENSE))
    judgement = Judge(Launching()).judge(make(double, double_oracle, outputs=["out"]), case)
    assert judgement.launches == {"k": 1}


def test_a_fault_of_kcheck_itself_is_never_a_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    from kcheck.document import case_text
    from kcheck.worker import serve

    def fail(*_: object) -> None:
        raise ZeroDivisionError("kcheck's own")

    monkeypatch.setattr("kcheck.worker.judge.value_findings", fail)
    case = Case(out=Tensor("float32", DENSE, role=Role.OUTPUT), x=Tensor("float32", DENSE))
    request = {"case": case_text(case), "target": "t", "dense": [], "cuda_graph": False}
    judgement = serve._answer(Judge(BACKEND), {"t": make(double, double_oracle, outputs=["out"])}, request)
    assert judgement.verdict is CaseVerdict.COULD_NOT_CHECK
    assert "internal error of kcheck, ZeroDivisionError" in judgement.reason


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_an_oracle_that_writes_into_its_arguments_does_not_spoil_the_reference(dtype: str) -> None:
    def wrong(x: torch.Tensor) -> None:
        x.mul_(2.5)

    def in_place(x: torch.Tensor) -> torch.Tensor:
        return x.mul_(2)

    case = Case(x=Tensor(dtype, DENSE, Fill(seed=7), role=Role.INOUT))
    assert kinds(Judge(BACKEND).judge(make(wrong, in_place, inout=["x"]), case)) == [Kind.VALUE_MISMATCH]
    assert Judge(BACKEND).judge(make(in_place, in_place, inout=["x"]), case).verdict is CaseVerdict.MATCH


def test_an_oracle_that_is_another_function_in_float64_is_believed_in_its_own_type() -> None:
    def bits(out: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        return (x.view(torch.int32) & -65536).view(torch.float32) * 2

    def wrong(out: torch.Tensor, x: torch.Tensor) -> None:
        out.copy_(bits(out, x) + 1)

    def right(out: torch.Tensor, x: torch.Tensor) -> None:
        out.copy_(bits(out, x))

    assert kinds(judge(make(wrong, bits, outputs=["out"]), x=DENSE)) == [Kind.VALUE_MISMATCH]
    assert judge(make(right, bits, outputs=["out"]), x=DENSE).verdict is CaseVerdict.MATCH


def test_given_tolerances_hold_for_integers_too() -> None:
    def off_by_one(out: torch.Tensor, x: torch.Tensor) -> None:
        out.copy_(x * 2 + 1)

    assert kinds(judge(make(off_by_one, double_oracle, outputs=["out"]), dtype="int32")) == [Kind.VALUE_MISMATCH]
    lenient = make(off_by_one, double_oracle, outputs=["out"], rtol=0.0, atol=1.0)
    assert judge(lenient, dtype="int32").verdict is CaseVerdict.MATCH


@pytest.mark.parametrize("number", [-1.0, float("nan"), float("inf")])
def test_tolerances_must_be_finite_and_not_negative(number: float) -> None:
    with pytest.raises(kcheck.errors.TargetLoadError, match="expected a finite number"):
        make(double, double_oracle, outputs=["out"], rtol=number, atol=0.0)


def test_a_view_that_is_too_large_to_fill_is_could_not_check() -> None:
    huge = Layout((Dim(2**40), Dim(2**20)))
    judgement = judge(make(double, double_oracle, outputs=["out"]), x=huge)
    assert judgement.verdict is CaseVerdict.COULD_NOT_CHECK
    assert "kcheck fills at most" in judgement.reason


def test_a_line_that_writes_an_input_and_strays_is_told_of_both() -> None:
    from kcheck.worker.backends.base import Fault, Place
    from kcheck.worker.checks import memory_findings, merged_faults

    def fault(place: Place, offset: int) -> Fault:
        frame = Frame(__file__, 1, "k", "tl.store(x, 1)")
        return Fault(
            "write",
            place,
            "k",
            frame,
            0,
            "x",
            "x_ptr",
            (0, offset // 4),
            offset,
            False,
            "",
            (),
            (0, 0, 0),
            1,
            1,
            (frame,),
        )

    watch = Watch(faults=[fault(Place.READ_ONLY, 0), fault(Place.GAP, 16)])
    case = Case(x=Tensor("float32", NARROWED))
    found = memory_findings(case, {"x": NARROWED}, merged_faults([watch, watch]), effect=True)
    assert [finding.kind for finding in found] == [Kind.OUT_OF_VIEW_WRITE]


def test_a_single_element_in_an_odd_stride_is_compared() -> None:
    """It counts as contiguous, whatever its stride."""

    def every_other(out: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        out.copy_(x)
        return torch.zeros(2)[::2]

    def right(out: torch.Tensor, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return x, torch.zeros(2)[::2]

    def wrong(out: torch.Tensor, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return x, torch.ones(2)[::2]

    assert judge(make(every_other, right)).verdict is CaseVerdict.MATCH
    assert kinds(judge(make(every_other, wrong))) == [Kind.VALUE_MISMATCH]


def test_a_module_that_kcheck_itself_lacks_is_no_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    from kcheck.worker import poisoned

    code = compile("def broken(self, byte):\n    raise ModuleNotFoundError('none')", poisoned.__file__, "exec")
    names: dict[str, Any] = {}
    exec(code, names)
    monkeypatch.setattr(poisoned.PoisonedMemory, "__init__", names["broken"])
    with pytest.raises(ModuleNotFoundError):
        judge(make(double, double_oracle))


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EMFILE])
def test_a_full_disk_is_no_finding(number: int) -> None:
    def talks(out: torch.Tensor, x: torch.Tensor) -> None:
        raise OSError(number, os.strerror(number))

    judgement = judge(make(talks, double_oracle))
    assert judgement.verdict is CaseVerdict.COULD_NOT_CHECK
    assert os.strerror(number) in judgement.reason


def test_another_error_of_the_system_is_a_finding() -> None:
    def talks(out: torch.Tensor, x: torch.Tensor) -> None:
        raise OSError(errno.ENOENT, "no such file")

    assert kinds(judge(make(talks, double_oracle))) == [Kind.TARGET_ERROR]
