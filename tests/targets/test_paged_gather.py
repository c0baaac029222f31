"""The built-in pair: byte format, oracle against a loop over tokens, kernel against the oracle, compilation."""

from __future__ import annotations

import math
import struct
from typing import Any

import pytest
import torch
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource, compile

from kcheck.target import Target
from kcheck.targets import paged_gather as gather
from kcheck.targets.paged_gather_shape_stride import paged_gather_shape_stride
from kcheck.worker.backends.base import Fault, Region
from kcheck.worker.backends.interpret import InterpretBackend


def e4m3(byte: int) -> float:
    """A float8 e4m3 (bias 7, no infinities), by its definition."""
    sign = -1.0 if byte & 0x80 else 1.0
    exponent, mantissa = byte >> 3 & 0xF, byte & 7
    if (exponent, mantissa) == (15, 7):
        return math.nan
    scaled = mantissa * 2.0**-9 if exponent == 0 else (8 + mantissa) * 2.0 ** (exponent - 10)
    return sign * scaled


def row_of(page: bytes, slot: int, block_size: int) -> list[float]:
    """The 512 values of a token, byte by byte."""
    record = page[576 * slot : 576 * (slot + 1)]
    scales = page[576 * block_size + 8 * slot :]
    quantised = [e4m3(byte) * 2.0 ** (scales[i // 64] - 127) for i, byte in enumerate(record[:448])]
    halves = [record[448 + 2 * i : 450 + 2 * i] for i in range(64)]
    return quantised + [struct.unpack("<f", b"\0\0" + half)[0] for half in halves]


def reference(
    out: torch.Tensor,
    pool: torch.Tensor,
    block_table: torch.Tensor,
    seq_lens: torch.Tensor,
    gather_lens: torch.Tensor | None,
    block_size: int,
    row_start: int,
) -> torch.Tensor:
    """Token by token."""
    for request, length in enumerate(seq_lens.tolist()):
        count = length if gather_lens is None else min(int(gather_lens[request]), length)
        for row, position in enumerate(range(length - count, length)):
            page = bytes(pool[int(block_table[request, position // block_size])].tolist())
            out[request, row_start + row] = torch.tensor(row_of(page, position % block_size, block_size))
    return out


def arguments(block_size: int, *, last: bool, dtype: torch.dtype = torch.int32, seed: int = 0) -> dict[str, Any]:
    """Five requests on a narrowed table of three columns, over one plane of an interleaved pool."""
    random = torch.Generator().manual_seed(seed)

    def ints(low: int, high: int, *shape: int) -> torch.Tensor:
        return torch.randint(low, high, shape, generator=random, dtype=dtype)

    rows = 3 * block_size
    pool = torch.randint(0x20, 0x7F, (7, 2, gather.page_bytes(block_size)), generator=random, dtype=torch.uint8)
    return {
        "out": torch.full((5, 512, rows + 2), -1.0, dtype=torch.bfloat16).transpose(1, 2),
        "pool": pool[:, 1],
        "block_table": ints(0, 7, 5, 8)[:, :3],
        "seq_lens": torch.tensor([0, 1, block_size, block_size + 1, rows], dtype=dtype),
        "gather_lens": ints(0, rows + 1, 5) if last else None,
        "block_size": block_size,
        "row_start": 2,
    }


def cloned(args: dict[str, Any]) -> dict[str, Any]:
    """Copies, whose layouts are dense."""
    return {name: arg.clone() if isinstance(arg, torch.Tensor) else arg for name, arg in args.items()}


def run(target: Target, args: dict[str, Any]) -> tuple[torch.Tensor, list[Fault]]:
    """The target's output on the interpreter, and the invalid accesses."""
    tensors = {name: arg for name, arg in args.items() if isinstance(arg, torch.Tensor)}
    regions = [Region(name, tensor, name == "out") for name, tensor in tensors.items()]
    storages = [tensor.untyped_storage() for tensor in tensors.values()]
    spans = [(storage.data_ptr(), storage.nbytes()) for storage in storages]
    with InterpretBackend().watch(regions, spans=spans) as watch:
        target(**args)
    assert [launch.kernel for launch in watch.launches] == ["_paged_gather_kernel"]
    return args["out"], watch.faults


@pytest.mark.parametrize(("block_size", "size"), [(1, 1152), (4, 2880), (16, 9792), (64, 37440), (72, 42048)])
def test_page_is_padded_to_a_multiple_of_a_record(block_size: int, size: int) -> None:
    assert gather.page_bytes(block_size) == size
    assert size % 576 == 0
    assert 0 <= size - block_size * 584 < 576


@pytest.mark.parametrize("block_size", [1, 4, 16])
@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("dtype", [torch.int32, torch.int64])
def test_oracle_is_the_loop_over_tokens(block_size: int, last: bool, dtype: torch.dtype) -> None:
    args = arguments(block_size, last=last, dtype=dtype)
    assert torch.equal(gather.gather_oracle(**cloned(args)), reference(**cloned(args)))


@pytest.mark.parametrize("block_size", [1, 4, 16, 20])
@pytest.mark.parametrize("last", [False, True])
def test_kernel_is_the_oracle(block_size: int, last: bool) -> None:
    args = arguments(block_size, last=last)
    expected = gather.gather_oracle(**cloned(args))
    out, faults = run(gather.paged_gather, args)
    assert torch.equal(out, expected)
    assert not faults


def test_every_finite_byte_is_decoded() -> None:
    """All e4m3 values but NaN, denormals and both zeros included, and pages at an odd address."""
    args = arguments(4, last=False) | {"seq_lens": torch.full((5,), 12, dtype=torch.int32)}
    finite = torch.tensor([byte for byte in range(256) if byte & 0x7F != 0x7F], dtype=torch.uint8)
    pages = torch.full((7, gather.page_bytes(4) + 1), 0x70, dtype=torch.uint8)[:, 1:]
    pages[:, : 4 * 576] = finite[torch.arange(7 * 4 * 576) % len(finite)].view(7, -1)
    pages[:, : 4 * 576].view(7, 4, 576)[:, :, 448:] = 0x3F  # finite as bf16 too
    args["pool"] = pages
    expected = reference(**cloned(args))
    assert torch.equal(gather.gather_oracle(**cloned(args)), expected)
    assert torch.equal(run(gather.paged_gather, args)[0], expected)


def test_rows_not_gathered_keep_their_value() -> None:
    out, _ = run(gather.paged_gather, arguments(4, last=False))
    for request, length in enumerate([0, 1, 4, 5, 12]):
        kept = torch.cat([out[request, :2], out[request, 2 + length :]])
        assert bool((kept == -1).all())


def test_wrong_twin_is_right_only_where_the_table_is_dense() -> None:
    args = arguments(4, last=False)
    expected = gather.gather_oracle(**cloned(args))
    out, faults = run(paged_gather_shape_stride, args | {"out": args["out"].clone()})
    assert not torch.equal(out, expected)
    assert torch.equal(out[0], expected[0])
    assert {fault.argument for fault in faults} == {"block_table"}
    args["block_table"] = args["block_table"].contiguous()
    out, faults = run(paged_gather_shape_stride, args)
    assert torch.equal(out, expected)
    assert not faults


@pytest.mark.parametrize("requests", [0, 5])
def test_nothing_to_gather(requests: int) -> None:
    args = arguments(4, last=False)
    args |= {name: args[name][:requests] for name in ("out", "block_table", "seq_lens")}
    args["block_table"] = args["block_table"][:, :0]
    args["seq_lens"] = torch.zeros_like(args["seq_lens"])
    gather.paged_gather(**args)
    assert bool((args["out"] == -1).all())
    assert bool((gather.gather_oracle(**args) == -1).all())


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("pool", torch.zeros(gather.page_bytes(4), 7, dtype=torch.uint8).T, "pool: its last stride is 7; expected 1"),
        ("pool", torch.zeros(7, 100, dtype=torch.uint8), "expected pages of 2880 uint8"),
        ("pool", torch.zeros(7, gather.page_bytes(4)), "pool is torch.float32"),
        ("out", torch.zeros(5, 14, 512), "out is torch.float32"),
        ("out", torch.zeros(4, 14, 512, dtype=torch.bfloat16), r"expected bfloat16 \(5, rows, 512\)"),
    ],
)
def test_rejections(name: str, value: torch.Tensor, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        gather.paged_gather(**(arguments(4, last=False) | {name: value}))


@pytest.mark.parametrize("capability", [80, 90])
@pytest.mark.parametrize("gather_lens", ["constexpr", "*i32", "*i64"])
@pytest.mark.parametrize("block_size", [4, 64])
def test_kernel_compiles(capability: int, gather_lens: str, block_size: int) -> None:
    kernel = gather._paged_gather_kernel
    constants: dict[str, Any] = {"BLOCK_SIZE": block_size, "TILE": min(block_size, 16)}
    if gather_lens == "constexpr":
        constants["gather_lens_ptr"] = None
    pointers = {"out_ptr": "*bf16", "pool_ptr": "*u8", "table_ptr": "*i32", "seq_lens_ptr": "*i32"}
    types = {name: "constexpr" if name in constants else "i64" for name in kernel.arg_names}
    source = ASTSource(kernel, types | pointers | {"gather_lens_ptr": gather_lens, "row_start": "i32"}, constants)
    assert "cubin" in compile(source, target=GPUTarget("cuda", capability, 32)).asm
