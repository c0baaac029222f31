"""``tl.reduce`` and ``tl.associative_scan``: numpy where it has the operation, else a tree of block operations."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from kcheck.worker.backends.interpret.numerics import RAW
from kcheck.worker.backends.interpret.patches import PatchSet
from kcheck.worker.backends.interpret.triton_seams import core, semantic, standard, tl
from kcheck.worker.backends.interpret.types import Tensor, block_type, new

Array = npt.NDArray[Any]

_REDUCTIONS: dict[Any, Any] = {
    standard._sum_combine.fn: np.add,
    standard._elementwise_max.fn: np.fmax,
    standard._elementwise_min.fn: np.fmin,
}
# By combine function.
SCANS: dict[Any, Any] = {standard._sum_combine.fn: np.add, standard._prod_combine.fn: np.multiply}
_ARGUMENT_REDUCTIONS: dict[Any, tuple[Any, Any]] = {
    standard._argmax_combine_tie_break_left.fn: (np.max, np.argmax),
    standard._argmin_combine_tie_break_left.fn: (np.min, np.argmin),
}


def install(patches: PatchSet) -> None:
    """Replace the two builtins."""
    for owner in (tl, core, Tensor):
        patches.put(owner, "reduce", _reduce)
        patches.put(owner, "associative_scan", _scan)


def _reduce(input: Any, axis: Any, combine_fn: Any, keep_dims: Any = False, **_: Any) -> Any:
    inputs = tuple(input) if isinstance(input, (tuple, core.tuple)) else (input,)
    elements = [tensor.dtype for tensor in inputs]
    axis, keep = core._unwrap_if_constexpr(axis), core._unwrap_if_constexpr(keep_dims)
    arrays = [tensor.handle.data for tensor in inputs]
    shape = arrays[0].shape
    if axis is None:
        arrays, axis = [array.reshape(-1) for array in arrays], 0
        kept: tuple[int, ...] = (1,) * len(shape)
    else:
        axis = axis % len(shape)
        kept = (*shape[:axis], 1, *shape[axis + 1 :])
    results = quick_reduction(arrays, elements, axis, combine_fn)
    if results is None:
        results = _tree(arrays, elements, axis, combine_fn)
    tensors = [
        _wrap(result, kept if keep else result.shape, kind) for result, kind in zip(results, elements, strict=True)
    ]
    return tensors[0] if inputs[0] is input else tuple(tensors)


def _wrap(data: Array, shape: tuple[int, ...], element: Any) -> Any:
    if shape:
        return new(data.reshape(shape), block_type(element, shape), element)
    return new(data.reshape(1), element, element)


def quick_reduction(arrays: list[Array], elements: list[Any], axis: int, combine: Any) -> list[Array] | None:
    """A reduction by numpy's own; None where it has none that is exact.

    Args:
        arrays: What is reduced, of equal shape.
        elements: Triton's types of them.
        axis: Along which.
        combine: The ``JITFunction`` that joins two.
    """
    first = arrays[0]
    if elements[0] in RAW or elements[0] is tl.int1:
        return None
    ufunc = _REDUCTIONS.get(combine.fn)
    if ufunc is not None and len(arrays) == 1:
        return [np.asarray(ufunc.reduce(first, axis=axis, dtype=first.dtype))]
    pair = _ARGUMENT_REDUCTIONS.get(combine.fn)
    if pair is None or len(arrays) != 2 or np.isnan(first).any() or not _counts_up(arrays[1], axis):
        return None
    return [np.asarray(pair[0](first, axis=axis)), np.asarray(pair[1](first, axis=axis)).astype(arrays[1].dtype)]


def _counts_up(indices: Array, axis: int) -> bool:
    shape = [1] * indices.ndim
    shape[axis] = -1
    return bool((indices == np.arange(indices.shape[axis]).reshape(shape)).all())


def _combiner(combine: Any, elements: list[Any]) -> Callable[[list[Array], list[Array]], list[Array]]:
    """`combine` as a function of lists of arrays of equal shape."""

    def call(left: list[Array], right: list[Array]) -> list[Array]:
        shape = left[0].shape
        tensors = [
            _block(data, element) for side in (left, right) for data, element in zip(side, elements, strict=True)
        ]
        result = combine(*tensors)
        results = tuple(result) if isinstance(result, (tuple, core.tuple)) else (result,)
        converted = [
            semantic.cast(semantic.to_tensor(one), element) for one, element in zip(results, elements, strict=True)
        ]
        return [np.broadcast_to(one.handle.data, shape) for one in converted]

    def call_by_lane(left: list[Array], right: list[Array]) -> list[Array]:
        shape = left[0].shape
        lanes = [
            call([data[i : i + 1] for data in map(np.ravel, left)], [data[i : i + 1] for data in map(np.ravel, right)])
            for i in range(left[0].size)
        ]
        return [np.concatenate(parts).reshape(shape) for parts in zip(*lanes, strict=True)]

    return call_by_lane if branches(combine.fn) else call


def _block(data: Array, element: Any) -> Any:
    if data.size == 1:
        return new(data.reshape(1), element, element)
    return new(data, block_type(element, data.shape), element)


@lru_cache(maxsize=256)
def branches(function: Any) -> bool:
    """Whether a combine function decides on values: then it must see one lane at a time, as on a GPU."""
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    except (OSError, TypeError, SyntaxError):
        return True
    return any(isinstance(node, (ast.If, ast.IfExp, ast.While)) for node in ast.walk(tree)) and (
        function.__module__ != standard.__name__
    )


def _tree(arrays: list[Array], elements: list[Any], axis: int, combine: Any) -> list[Array]:
    """Combine neighbours until one is left: the order of operands is kept, so `combine` need not commute."""
    function = _combiner(combine, elements)
    parts = [np.moveaxis(array, axis, 0) for array in arrays]
    while (length := parts[0].shape[0]) > 1:
        even = length // 2 * 2
        joined = function([part[0:even:2] for part in parts], [part[1:even:2] for part in parts])
        parts = [np.concatenate([new_part, part[even:]]) for new_part, part in zip(joined, parts, strict=True)]
    return [np.array(part[0]) for part in parts]  # 0-dimensional where nothing is left


def _scan(input: Any, axis: Any, combine_fn: Any, reverse: Any = False, **_: Any) -> Any:
    inputs = tuple(input) if isinstance(input, (tuple, core.tuple)) else (input,)
    elements = [tensor.dtype for tensor in inputs]
    arrays = [np.moveaxis(tensor.handle.data, core._unwrap_if_constexpr(axis), 0) for tensor in inputs]
    backwards = bool(core._unwrap_if_constexpr(reverse))
    if backwards:
        arrays = [array[::-1] for array in arrays]
    ufunc = SCANS.get(combine_fn.fn)
    if ufunc is not None and len(arrays) == 1 and elements[0] not in RAW and elements[0] is not tl.int1:
        results = [ufunc.accumulate(arrays[0], axis=0, dtype=arrays[0].dtype)]
    else:
        results = _doubling(arrays, elements, combine_fn)
    if backwards:
        results = [result[::-1] for result in results]
    results = [np.ascontiguousarray(np.moveaxis(result, 0, core._unwrap_if_constexpr(axis))) for result in results]
    tensors = [_wrap(result, result.shape, element) for result, element in zip(results, elements, strict=True)]
    return tensors[0] if inputs[0] is input else tuple(tensors)


def _doubling(arrays: list[Array], elements: list[Any], combine: Any) -> list[Array]:
    """Inclusive scan: after step k, position i holds the combination of the last 2**k positions up to i."""
    function = _combiner(combine, elements)
    distance = 1
    while distance < arrays[0].shape[0]:
        # Whole arrays, since blocks have sizes that are powers of two: what wraps around is thrown away.
        joined = function([np.roll(array, distance, axis=0) for array in arrays], arrays)
        arrays = [
            np.concatenate([array[:distance], new_part[distance:]])
            for array, new_part in zip(arrays, joined, strict=True)
        ]
        distance *= 2
    return arrays
