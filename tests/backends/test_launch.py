"""How a launch binds arguments, chooses programs and is recorded."""

from __future__ import annotations

from collections import namedtuple
from typing import Any

import pytest
import torch
import triton
import triton.language as tl

from kcheck.worker.backends.base import Region, Unsupported
from kcheck.worker.backends.interpret import InterpretBackend

Pair = namedtuple("Pair", ["first", "second"])


def test_grid_function_gets_plain_values(bugs: Any) -> None:
    x, seen = torch.zeros(8), {}

    def grid(meta: dict[str, Any]) -> tuple[int]:
        seen.update(meta)
        return (triton.cdiv(meta["n"], meta["BLOCK"]),)

    with InterpretBackend().watch([]):
        bugs.clear[grid](x, 8, BLOCK=8)
    assert seen["x"] is x
    assert (seen["n"], seen["BLOCK"]) == (8, 8)
    assert type(seen["n"]) is int


@pytest.mark.parametrize("grid", [(0,), (4, 0), (1, 1, 0)])
def test_an_empty_grid_runs_nothing_and_is_recorded(bugs: Any, grid: tuple[int, ...]) -> None:
    x = torch.ones(8)
    with InterpretBackend().watch([Region("x", x, True)]) as watch:
        bugs.clear[grid](x, 8, BLOCK=8)
    assert torch.equal(x, torch.ones(8))
    assert [launch.programs for launch in watch.launches] == [0]
    assert watch.launches[0].grid == (*grid, 1, 1)[:3]


def test_the_line_that_launches_is_recorded(bugs: Any) -> None:
    x = torch.ones(8)
    with InterpretBackend().watch([Region("x", x, True)]) as watch:
        bugs.run_double(x, x, fixed=True)
        bugs.clear[(1,)](x, 8, BLOCK=8)
    first, second = watch.launches
    assert (first.kernel, first.frame.function) == ("double", "run_double")
    assert first.frame.source.startswith("double[(triton.cdiv(")
    assert second.frame.function == "test_the_line_that_launches_is_recorded"


def test_run_with_a_grid_and_warmup(bugs: Any) -> None:
    x = torch.ones(8)
    with InterpretBackend().watch([Region("x", x, True)]) as watch:
        bugs.clear.run(x, 8, BLOCK=8, grid=(1,), warmup=True)
        bugs.clear.warmup(x, 8, BLOCK=8, grid=(1,))
        assert not watch.launches
        bugs.clear.run(x, 8, BLOCK=8, grid=(1,), warmup=False)
    assert len(watch.launches) == 1
    assert torch.equal(x, torch.zeros(8))


def test_the_compiled_kernel_cannot_be_looked_at(bugs: Any) -> None:
    x = torch.ones(8)
    with InterpretBackend().watch([]), pytest.raises(Unsupported, match="n_regs"):
        print(bugs.clear[(1,)](x, 8, BLOCK=8).n_regs)


@pytest.mark.parametrize(
    ("args", "kwargs"), [((8,), {"BLOCK": 8}), ((torch.ones(8), 8, 8), {"BLOK": 8}), ((torch.ones(8), 8, 8, 9), {})]
)
def test_wrong_arguments_are_type_errors(bugs: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    with InterpretBackend().watch([]) as watch, pytest.raises(TypeError):
        bugs.clear[(1,)](*args, **kwargs)
    assert not watch.launches


@pytest.mark.parametrize("order", ["forward", "reverse"])
def test_order_of_programs(features: Any, order: Any) -> None:
    o = torch.zeros(1, dtype=torch.int32)
    with InterpretBackend().watch([Region("o", o, True)], order=order):
        # Every program writes its number to the same element: the last one wins.
        features.last_program[(5, 2)](o)
    assert o.item() == (9 if order == "forward" else 0)


@pytest.mark.parametrize("order", ["forward", "reverse"])
def test_a_sampled_grid_says_so(features: Any, order: Any) -> None:
    o = torch.full((1000,), -1, dtype=torch.int32)
    with InterpretBackend(max_programs=50).watch([Region("o", o, True)], order=order) as watch:
        features.program_numbers[(10, 10, 10)](o)
        features.last_program[(5, 2)](o)
    ran = [number for number, value in enumerate(o.tolist()) if value == number]
    assert watch.launches[0].programs == len(ran) == 50
    assert {0, 9, 90, 99, 900, 909, 990, 999} <= set(ran)
    assert list(watch.partial) == ["program_numbers", "last_program"]
    assert watch.partial["program_numbers"].startswith("50 of 1,000 programs of kernel program_numbers ran (5.00%)")
    # What a later kernel would read is not there.
    assert watch.launches[1].programs == 0


def test_a_small_grid_is_not_sampled(features: Any) -> None:
    o = torch.zeros(24, dtype=torch.int32)
    with InterpretBackend(max_programs=24).watch([Region("o", o, True)]) as watch:
        features.program_numbers[(2, 3, 4)](o)
    assert not watch.partial
    assert watch.launches[0].programs == 24


def test_max_programs_is_validated() -> None:
    with pytest.raises(ValueError, match="max_programs"):
        InterpretBackend(max_programs=0)


def test_named_tuples(features: Any) -> None:
    x, o = torch.ones(8), torch.zeros(8)
    with InterpretBackend().watch([Region("x", x, False), Region("o", o, True)]) as watch:
        features.named_tuple_argument[(1,)](Pair(x, 3), o, B=8)
    assert not watch.faults
    assert torch.equal(o, torch.full((8,), 4.0))


def test_reinterpreted_tensor(features: Any) -> None:
    x, o = torch.tensor([1.0, -2.0, 0.5, 448.0]).to(torch.float8_e4m3fn), torch.zeros(4)
    raw = x.view(torch.uint8)
    with InterpretBackend().watch([Region("raw", raw, False), Region("o", o, True)]) as watch:
        features.cast_to_output[(1,)](triton.reinterpret(raw, tl.float8e4nv), o, 4, B=4)
    assert not watch.faults
    assert torch.equal(o, x.float())


def test_empty_tensors(bugs: Any) -> None:
    x, out = torch.zeros(0), torch.zeros(0)
    with InterpretBackend().watch([Region("x", x, False), Region("out", out, True)]) as watch:
        bugs.shift[(1,)](x, out, 0, 0, BLOCK=8)
        assert not watch.faults
        bugs.shift[(1,)](x, out, 1, 0, BLOCK=8)
    assert [(fault.access, fault.argument, fault.lanes) for fault in watch.faults] == [
        ("read", "x", 1),
        ("write", "out", 1),
    ]


def test_program_counts_add_up_over_launches(bugs: Any) -> None:
    backing = torch.zeros(16)
    x = backing[:8]
    with InterpretBackend().watch([Region("x", x, True)]) as watch:
        for _ in range(3):
            bugs.add_atomically[(2,)](x, 9, BLOCK=16)
    assert [(fault.lanes, fault.programs) for fault in watch.faults] == [(6, 6)]


def test_pre_run_hooks(bugs: Any) -> None:
    x, seen = torch.ones(8), []
    bugs.clear.pre_run_hooks.append(lambda *args, **kwargs: seen.append(args[1]))
    try:
        with InterpretBackend().watch([]):
            bugs.clear[(1,)](x, 8, BLOCK=8)
    finally:
        bugs.clear.pre_run_hooks.clear()
    assert seen == [8]


def test_autograd_function_launches_in_both_directions(bugs: Any) -> None:
    class Double(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
            out = torch.empty_like(x)
            bugs.run_double(x, out, fixed=True)
            return out

        @staticmethod
        def backward(ctx: Any, *gradients: torch.Tensor) -> torch.Tensor:
            out = torch.empty_like(gradients[0])
            bugs.run_double(gradients[0].contiguous(), out, fixed=True)
            return out

    x = torch.randn(13, requires_grad=True)
    with InterpretBackend().watch([Region("x", x, False)]) as watch:
        y: torch.Tensor = Double.apply(x)  # type: ignore[no-untyped-call]
        torch.autograd.backward(y.sum())
    assert len(watch.launches) == 2
    assert not watch.faults
    assert torch.equal(y, x * 2)
    assert torch.equal(x.grad if x.grad is not None else torch.empty(0), torch.full((13,), 2.0))
