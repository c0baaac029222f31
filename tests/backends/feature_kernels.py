# mypy: ignore-errors
# ruff: noqa: RET505, RUF059, B007
"""Kernels that each use one feature of Triton."""

import triton
import triton.language as tl
from triton.language import arange as imported_arange
from triton.language import load as imported_load
from triton.language.extra import libdevice
from triton.language.extra.libdevice import tanh as imported_tanh
from triton.language.math import exp as imported_exp

FIVE = tl.constexpr(5)


@triton.jit
def add(x, y, o, n, B: tl.constexpr):
    offs = tl.program_id(0) * B + tl.arange(0, B)
    m = offs < n
    tl.store(o + offs, tl.load(x + offs, mask=m) + tl.load(y + offs, mask=m), mask=m)


@triton.jit
def row_sum(x, o, n, s, B: tl.constexpr):
    r = tl.program_id(0)
    acc = tl.zeros((B,), tl.float32)
    for i in range(0, n, B):
        offs = i + tl.arange(0, B)
        acc += tl.load(x + r * s + offs, mask=offs < n, other=0.0).to(tl.float32)
    tl.store(o + r, tl.sum(acc, axis=0))


@triton.jit
def softmax(x, o, n, s, B: tl.constexpr):
    r = tl.program_id(0)
    offs = tl.arange(0, B)
    v = tl.load(x + r * s + offs, mask=offs < n, other=-float("inf"))
    v = v - tl.max(v, axis=0)
    e = tl.exp(v)
    tl.store(o + r * s + offs, e / tl.sum(e, axis=0), mask=offs < n)


@triton.jit
def dot(a, b, c, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    m = tl.arange(0, M)
    n = tl.arange(0, N)
    k = tl.arange(0, K)
    x = tl.load(a + m[:, None] * K + k[None, :])
    y = tl.load(b + k[:, None] * N + n[None, :])
    tl.store(c + m[:, None] * N + n[None, :], tl.dot(x, y))


@triton.jit
def bitcast_bytes(x, o, B: tl.constexpr, DT: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(o + i, tl.load(x + i).to(tl.uint8).to(DT, bitcast=True).to(tl.float32))


@triton.jit
def cast_to_output(x, o, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(o + i, tl.load(x + i, mask=i < n).to(o.dtype.element_ty), mask=i < n)


@triton.jit
def branch_on_bool(x, o, flag, B: tl.constexpr):
    i = tl.arange(0, B)
    v = tl.load(x + i)
    if flag:
        v = v + 1
    tl.store(o + i, v)


@triton.jit
def optional_pointer(x, o, b, B: tl.constexpr):
    i = tl.arange(0, B)
    v = tl.load(x + i)
    if b is not None:
        v += tl.load(b + i)
    tl.store(o + i, v)


@triton.jit
def _multiply_add(a, b):
    return a * b + 1


@triton.jit
def nested(x, o, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(o + i, _multiply_add(tl.load(x + i), 2.0))


@triton.jit
def static_and_hints(x, o, B: tl.constexpr, N: tl.constexpr):
    i = tl.arange(0, B)
    v = tl.load(x + i)
    for _ in tl.static_range(N):
        v += 1
    for _ in tl.range(0, N, num_stages=2):
        v += 1
    tl.static_assert(B == 8)
    tl.device_assert(i < B, "in range")
    tl.assume(N > 0)
    tl.debug_barrier()
    v = tl.multiple_of(v, 8)
    tl.store(o + i, v)


@triton.jit
def failing_device_assert(x, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.device_assert(i < 4, "lane too high")


@triton.jit
def failing_python_assert(x, B: tl.constexpr):
    i = tl.arange(0, B)
    assert i < 4, "lane too high"


@triton.jit
def failing_static_assert(x, B: tl.constexpr):
    tl.static_assert(B == 16, "B must be 16")


@triton.autotune(configs=[triton.Config({"B": 64}), triton.Config({"B": 128})], key=["n"])
@triton.jit
def autotuned(x, o, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(o + i, tl.load(x + i, mask=i < n) + B, mask=i < n)


def _only_large(configs, named_args, **kwargs):
    return [config for config in configs if config.kwargs["B"] > 64]


HOOKED = []


@triton.autotune(
    configs=[triton.Config({"B": 64}), triton.Config({"B": 128}, pre_hook=lambda args: HOOKED.append(args["B"]))],
    key=["n"],
    prune_configs_by={"early_config_prune": _only_large},
    reset_to_zero=["o"],
)
@triton.jit
def autotuned_pruned(x, o, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.atomic_add(o + i, tl.load(x + i, mask=i < n) + B, mask=i < n)


@triton.autotune(configs=[triton.Config({"B": 64}, num_warps=4)], key=["n"])
@triton.heuristics({"EVEN": lambda args: args["n"] % args["B"] == 0})
@triton.jit(do_not_specialize=["n"])
def heuristic(x, o, n, B: tl.constexpr, EVEN: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    if EVEN:
        tl.store(o + i, tl.load(x + i) + 1)
    else:
        tl.store(o + i, tl.load(x + i, mask=i < n) + 1, mask=i < n)


@triton.jit
def atomics(x, o, B: tl.constexpr):
    i = tl.arange(0, B)
    v = tl.load(x + i)
    tl.atomic_add(o + i % 4, v)
    tl.atomic_max(o + 4 + i % 4, v)
    tl.atomic_min(o + 8 + i % 4, v)


@triton.jit
def atomic_add_only(x, o, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.atomic_add(o + i % 4, tl.load(x + i))


@triton.jit
def masked_atomic(x, before, n, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(before + i, tl.atomic_add(x + i, 1, mask=i < n))


@triton.jit
def atomic_integers(o):
    tl.atomic_cas(o, 0, 7)
    tl.atomic_xchg(o + 1, 5)
    tl.atomic_or(o + 2, 6)
    tl.atomic_and(o + 3, 3)
    tl.atomic_xor(o + 4, 1)


@triton.jit
def sort(x, o, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(o + i, tl.sort(tl.load(x + i)))


@triton.jit
def topk(x, o, B: tl.constexpr, K: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(o + tl.arange(0, K), tl.topk(tl.load(x + i), K))


@triton.jit
def gather(x, index, o, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(o + i, tl.gather(tl.load(x + i), tl.load(index + i), 0))


@triton.jit
def cumsum(x, o, B: tl.constexpr, REVERSE: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(o + i, tl.cumsum(tl.load(x + i), 0, reverse=REVERSE))


@triton.jit
def _affine(a1, b1, a2, b2):
    return a1 * a2, b1 * a2 + b2


@triton.jit
def recurrence(a, b, o, last, B: tl.constexpr):
    i = tl.arange(0, B)
    _, h = tl.associative_scan((tl.load(a + i), tl.load(b + i)), 0, _affine)
    tl.store(o + i, h)
    _, final = tl.reduce((tl.load(a + i), tl.load(b + i)), 0, _affine)
    tl.store(last, final)


@triton.jit
def _larger(a, b):
    if a > b:
        return a
    else:
        return b


@triton.jit
def reduce_with_branch(x, o, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(o, tl.reduce(tl.load(x + i), 0, _larger))


@triton.jit
def extremes(x, o, B: tl.constexpr):
    i = tl.arange(0, B)
    v = tl.load(x + i)
    tl.store(o, tl.argmax(v, 0))
    tl.store(o + 1, tl.argmin(v, 0))
    value, where = tl.max(v, 0, return_indices=True)
    tl.store(o + 2, where)


@triton.jit
def axis_sums(x, rows, columns, total, M: tl.constexpr, N: tl.constexpr):
    m = tl.arange(0, M)
    n = tl.arange(0, N)
    v = tl.load(x + m[:, None] * N + n[None, :])
    tl.store(rows + m, tl.sum(v, axis=1))
    tl.store(columns + n[None, :], tl.sum(v, axis=0, keep_dims=True))
    tl.store(total, tl.sum(v))


@triton.jit
def block_pointers(x, o, M, N, B: tl.constexpr):
    p = tl.make_block_ptr(x, (M, N), (N, 1), (0, 0), (B, B), (1, 0))
    q = tl.make_block_ptr(o, (M, N), (N, 1), (0, 0), (B, B), (1, 0))
    for i in range(0, N, B):
        tl.store(q, tl.load(p, boundary_check=(0, 1), padding_option="zero") + 1, boundary_check=(0, 1))
        p = tl.advance(p, (0, B))
        q = tl.advance(q, (0, B))


@triton.jit
def device_descriptors(x, o, M, N, B: tl.constexpr):
    d = tl.make_tensor_descriptor(x, [M, N], [N, 1], [B, B])
    e = tl.make_tensor_descriptor(o, [M, N], [N, 1], [B, B])
    e.store([0, 0], d.load([0, 0]) + 1)


@triton.jit
def host_descriptors(d, e, B: tl.constexpr):
    e.store([0, 0], d.load([0, 0]) + 1)


@triton.jit
def descriptor_atomics(x, o, M, N, B: tl.constexpr):
    d = tl.make_tensor_descriptor(x, [M, N], [N, 1], [B, B])
    e = tl.make_tensor_descriptor(o, [M, N], [N, 1], [B, B])
    e.atomic_add([0, 0], d.load([0, 0]))


@triton.jit
def inline_assembly(x, o, B: tl.constexpr):
    i = tl.arange(0, B)
    v = tl.inline_asm_elementwise("mov.b32 $0, $1;", "=r,r", [tl.load(x + i)], dtype=tl.float32, is_pure=True, pack=1)
    tl.store(o + i, v)


@triton.jit
def libdevice_functions(x, o, B: tl.constexpr):
    i = tl.arange(0, B)
    v = tl.load(x + i)
    tl.store(o + i, libdevice.tanh(v) + libdevice.pow(v, 2.0) + libdevice.rint(v))


@triton.jit
def unknown_libdevice(x, o, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(o + i, libdevice.byte_perm(tl.load(x + i), tl.load(x + i), 1))


@triton.jit
def names_imported_directly(x, o, B: tl.constexpr):
    i = imported_arange(0, B)
    tl.store(o + i, imported_exp(imported_load(x + i)) + imported_tanh(imported_load(x + i)))


def make_closure(factor):
    @triton.jit
    def scaled(x, o, B: tl.constexpr):
        i = tl.arange(0, B)
        tl.store(o + i, tl.load(x + i) * factor)

    return scaled


def make_closure_over_function():
    @triton.jit
    def plus_one(a):
        return a + 1

    @triton.jit
    def kernel(x, o, B: tl.constexpr):
        i = tl.arange(0, B)
        tl.store(o + i, plus_one(tl.load(x + i)))

    return kernel


@triton.jit
def global_constant(x, o, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(o + i, tl.load(x + i) + FIVE)


@triton.jit
def stepped_by_hand(x, s, o, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(o + i * 2, tl.load(x + i * 3) * tl.load(s))


@triton.jit
def times_scalar(x, o, a, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(o + i, tl.load(x + i) * a)


@triton.jit
def compare_and_max(x, o, B: tl.constexpr):
    i = tl.arange(0, B)
    v = tl.load(x + i)
    tl.store(o, tl.max(v, 0))
    tl.store(o + 1, tl.sum((v > 0).to(tl.float32) * 1.0, 0).to(o.dtype.element_ty))


@triton.jit
def math_functions(x, o, B: tl.constexpr):
    i = tl.arange(0, B)
    v = tl.load(x + i)
    v = (
        tl.sigmoid(v)
        + tl.exp2(v)
        + tl.math.rsqrt(tl.abs(v) + 1)
        + tl.erf(v)
        + tl.where(v > 0, v, 0.0)
        + tl.clamp(v, -1.0, 1.0)
        + tl.math.fma(v, v, v)
        + tl.log2(tl.abs(v) + 1)
    )
    tl.store(o + i, v)


@triton.jit
def rand(o, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(o + i, tl.rand(42, i))


@triton.jit
def reshaping(x, o, B: tl.constexpr):
    i = tl.arange(0, B)
    v = tl.load(x + i)
    w = tl.trans(tl.reshape(v, (4, 4)))
    a, b = tl.split(tl.join(v, v))
    tl.store(o + i, tl.ravel(w) + a - b)


@triton.jit
def histogram(x, o, B: tl.constexpr, BINS: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(o + tl.arange(0, BINS), tl.histogram(tl.load(x + i), BINS))


@triton.jit
def dot_scaled(a, a_scale, b, b_scale, c, FORMAT: tl.constexpr, K: tl.constexpr):
    m = tl.arange(0, 16)
    k = tl.arange(0, K)
    s = tl.arange(0, 2)
    x = tl.load(a + m[:, None] * K + k[None, :])
    y = tl.load(b + k[:, None] * 16 + m[None, :])
    xs = tl.load(a_scale + m[:, None] * 2 + s[None, :])
    ys = tl.load(b_scale + m[:, None] * 2 + s[None, :])
    tl.store(c + m[:, None] * 16 + m[None, :], tl.dot_scaled(x, xs, FORMAT, y, ys, FORMAT))


@triton.jit
def chained_comparison(o, n, B: tl.constexpr):
    i = tl.arange(0, B)
    m = 2 <= i < n
    tl.store(o + i, m.to(tl.int32))


@triton.jit
def block_and_scalar_mask(o, n, flag, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(o + i, 1, mask=(i < n) & flag)


@triton.jit
def chained_assignment(o, B: tl.constexpr):
    i = tl.arange(0, B)
    a = b = i + 1
    tl.store(o + i, a + b)


@triton.jit
def docstring(o, B: tl.constexpr):
    """First line
    def in a docstring
    """
    i = tl.arange(0, B)
    tl.store(o + i, i)


@triton.jit
def tuple_argument(ts, o, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(o + i, tl.load(ts[0] + i) + tl.load(ts[1] + i))


@triton.jit
def while_and_if(x, o):
    n = tl.load(x)
    i = 0
    while i < n:
        if i >= 2:
            tl.store(o + i, 1)
        i += 1


@triton.jit
def both_sides_evaluated(x, o, n):
    i = tl.program_id(0)
    if i < n and tl.load(x + i) > 0:
        tl.store(o + i, 1)


@triton.jit
def constant_short_cut(x, o, HAS: tl.constexpr):
    if HAS and tl.load(x) > 0:
        tl.store(o, 1)
    if not HAS or tl.load(x) > 0:
        tl.store(o + 1, 1)


@triton.jit
def pointer_from_memory(table, o, B: tl.constexpr):
    p = tl.load(table).to(tl.pointer_type(tl.float32))
    i = tl.arange(0, B)
    tl.store(o + i, tl.load(p + i))


@triton.jit
def nan_maximum(x, o, B: tl.constexpr):
    i = tl.arange(0, B)
    v = tl.load(x + i)
    tl.store(o, tl.max(v, 0))
    tl.store(o + 1, tl.max(tl.maximum(v, 0.0), 0))


@triton.jit
def division(x, o, q, r, B: tl.constexpr):
    i = tl.arange(0, B)
    v = tl.load(x + i)
    tl.store(o + i, tl.fdiv(v, 2.0) + tl.math.div_rn(v, 2.0))
    k = i - 4
    tl.store(q + i, k // 3)
    tl.store(r + i, k % 3)


@triton.jit
def flip(o, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(o + i, tl.flip(i, 0))


@triton.jit
def wrapping(o, n):
    i = tl.program_id(0) + 2147483647
    tl.store(o, i + n)


@triton.jit
def annotated(o, n: tl.int64, m):
    tl.store(o, n * 65536)
    tl.store(o + 1, m * 65536)


@triton.jit
def float_argument(x, o, a, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(o + i, (tl.load(x + i) * a).to(tl.float32))


@triton.jit
def constexpr_dtype(x, o, DT: tl.constexpr, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(o + i, tl.load(x + i).to(DT).to(tl.float32))


@triton.jit
def constexpr_function_argument(x, o, ACTIVATION: tl.constexpr, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(o + i, ACTIVATION(tl.load(x + i)))


@triton.jit
def relu(v):
    return tl.maximum(v, 0.0)


@triton.jit
def float_to_integer(x, o, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(o + i, tl.load(x + i).to(tl.int32))


@triton.jit
def program_numbers(o):
    x = tl.program_id(0)
    y = tl.program_id(1)
    z = tl.program_id(2)
    number = x + tl.num_programs(0) * (y + tl.num_programs(1) * z)
    tl.store(o + number, number)


@triton.jit
def spin(flag, o):
    while tl.load(flag) == 0:
        pass
    tl.store(o, 1)


@triton.jit
def spin_on_lock(lock, o):
    while tl.atomic_cas(lock, 0, 1) == 1:
        pass
    tl.store(o, 1)
    tl.atomic_xchg(lock, 0)


@triton.jit
def endless(o, step):
    i = 0
    while i < 10:
        i += step
    tl.store(o, i)


@triton.jit
def endless_reader(o, x, step):
    i = 0
    while i < 10:
        tl.store(o, tl.load(x + i)) if i > 10 else None
        value = tl.load(x + i)
        i += step
    tl.store(o, value)


@triton.jit
def long_loop(n_pointer, o):
    i = 0
    while i < tl.load(n_pointer):
        i += 1
    tl.store(o, i)


@triton.jit
def grow_bfloat16(x, o, B: tl.constexpr):
    i = tl.arange(0, B)
    v = tl.load(x + i)
    tl.store(o + i, -v * v + v / 3.0 - tl.abs(v))


@triton.jit
def unsupported_builtin(x, o, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(o + i, tl.reshape(tl.load(x + i), (B * 2,)))


@triton.jit
def last_program(o):
    tl.store(o, tl.program_id(0) + tl.num_programs(0) * tl.program_id(1))


@triton.jit
def named_tuple_argument(pair, o, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(o + i, tl.load(pair.first + i) + pair.second)


@triton.jit
def converts_argument(o, n):
    tl.store(o, n.to(tl.int64) * 4)


@triton.jit(do_not_specialize=["n"])
def converts_unspecialised_argument(o, n):
    tl.store(o, n.to(tl.int64) * 4)


@triton.jit
def one_cuts_short(x, o, n):
    if n == 1 or tl.load(x) > 0:
        tl.store(o, n)


@triton.jit
def copy_bools(x, o, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(o + i, tl.load(x + i) & (i < 5))


def make_kernel_with_far_left_string():
    @triton.jit
    def kernel(o):
        """A string
        that starts at the margin."""
        tl.store(o, 1)

    return kernel
