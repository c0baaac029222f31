"""``tl.reduce`` and ``tl.associative_scan`` along an axis of blocks, the program axis in front."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from kcheck.worker.backends.batched.programs import Programs
from kcheck.worker.backends.batched.values import Array, Lanes, as_sequential, block, shape_of
from kcheck.worker.backends.interpret.numerics import RAW
from kcheck.worker.backends.interpret.reductions import SCANS, branches, quick_reduction
from kcheck.worker.backends.interpret.triton_seams import core, tl

if TYPE_CHECKING:
    from kcheck.worker.backends.batched.language import Language

Combine = Callable[[list[Array], list[Array]], list[Array]]


def reduction(language: Language) -> Callable[..., Any]:
    """The builtin ``reduce``."""

    def reduce(input: Any, axis: Any, combine_fn: Any, keep_dims: Any = False, **_: Any) -> Any:
        inputs = tuple(input) if isinstance(input, (tuple, core.tuple)) else (input,)
        elements = [tensor.dtype for tensor in inputs]
        axis, keep = core._unwrap_if_constexpr(axis), core._unwrap_if_constexpr(keep_dims)
        arrays = _arrays(inputs)
        shape = shape_of(inputs[0])
        if axis is None:
            arrays, axis = [array.reshape(len(array), -1) for array in arrays], 0
            kept: tuple[int, ...] = (1,) * len(shape)
        else:
            axis = axis % len(shape)
            kept = (*shape[:axis], 1, *shape[axis + 1 :])
        results = quick_reduction(arrays, elements, axis + 1, combine_fn)
        if results is None:
            results = _tree(arrays, axis + 1, _combiner(language, combine_fn, elements))
        made = []
        for result, element in zip(results, elements, strict=True):
            result = result.reshape(len(result), *kept) if keep else result
            made.append(block(Lanes(result, element), element, result.shape[1:]))
        return made[0] if inputs[0] is input else tuple(made)

    return reduce


def scan(language: Language) -> Callable[..., Any]:
    """The builtin ``associative_scan``."""

    def associative_scan(input: Any, axis: Any, combine_fn: Any, reverse: Any = False, **_: Any) -> Any:
        inputs = tuple(input) if isinstance(input, (tuple, core.tuple)) else (input,)
        elements = [tensor.dtype for tensor in inputs]
        axis = core._unwrap_if_constexpr(axis) % len(shape_of(inputs[0])) + 1
        arrays = [np.moveaxis(array, axis, 1) for array in _arrays(inputs)]
        backwards = bool(core._unwrap_if_constexpr(reverse))
        if backwards:
            arrays = [array[:, ::-1] for array in arrays]
        ufunc = SCANS.get(combine_fn.fn)
        if ufunc is not None and len(arrays) == 1 and elements[0] not in RAW and elements[0] is not tl.int1:
            results = [ufunc.accumulate(arrays[0], axis=1, dtype=arrays[0].dtype)]
        else:
            results = _doubling(arrays, _combiner(language, combine_fn, elements))
        if backwards:
            results = [result[:, ::-1] for result in results]
        results = [np.ascontiguousarray(np.moveaxis(result, 1, axis)) for result in results]
        made = [
            block(Lanes(result, element), element, result.shape[1:])
            for result, element in zip(results, elements, strict=True)
        ]
        return made[0] if inputs[0] is input else tuple(made)

    return associative_scan


def _arrays(inputs: tuple[Any, ...]) -> list[Array]:
    """Arrays with program axes of the same length, laid out in memory as the sequential engine has them."""
    arrays = [tensor.handle.data for tensor in inputs]
    count = max(len(array) for array in arrays)
    arrays = [array if len(array) == count else np.broadcast_to(array, (count, *array.shape[1:])) for array in arrays]
    return [as_sequential(array) for array in arrays]


def _combiner(language: Language, combine: Any, elements: list[Any]) -> Combine:
    """`combine` as a function of lists of arrays of equal shape, the program axis first."""
    semantic = language.semantic

    def call(left: list[Array], right: list[Array]) -> list[Array]:
        shape = left[0].shape
        tensors = [
            block(Lanes(data, element), element, data.shape[1:])
            for side in (left, right)
            for data, element in zip(side, elements, strict=True)
        ]
        result = combine(*tensors)
        results = tuple(result) if isinstance(result, (tuple, core.tuple)) else (result,)
        made = []
        for one, element in zip(results, elements, strict=True):
            data = semantic.cast(semantic.to_tensor(one), element).handle.data
            data = data if data.ndim == len(shape) else data.reshape(len(data), *(1,) * (len(shape) - 1))
            made.append(np.broadcast_to(data, shape))
        return made

    def call_by_lane(left: list[Array], right: list[Array]) -> list[Array]:
        """Each lane is a program of its own, so that it takes its own branches."""
        builder = language.builder
        programs, builder.programs = builder.programs, Programs.unnamed(left[0].size)
        try:
            made = call([data.reshape(-1) for data in left], [data.reshape(-1) for data in right])
        finally:
            builder.programs = programs
        return [data.reshape(left[0].shape) for data in made]

    return call_by_lane if branches(combine.fn) else call


def _tree(arrays: list[Array], axis: int, combine: Combine) -> list[Array]:
    """Combine neighbours until one is left, in the same order as the sequential engine."""
    parts = [np.moveaxis(array, axis, 1) for array in arrays]
    while (length := parts[0].shape[1]) > 1:
        even = length // 2 * 2
        joined = combine([part[:, 0:even:2] for part in parts], [part[:, 1:even:2] for part in parts])
        parts = [np.concatenate([new, part[:, even:]], axis=1) for new, part in zip(joined, parts, strict=True)]
    return [as_sequential(np.array(part[:, 0])) for part in parts]


def _doubling(arrays: list[Array], combine: Combine) -> list[Array]:
    """Inclusive scan: after step k, position i holds the combination of the last 2**k positions up to i."""
    distance = 1
    while distance < arrays[0].shape[1]:
        joined = combine([np.roll(array, distance, axis=1) for array in arrays], arrays)
        arrays = [
            np.concatenate([array[:, :distance], new[:, distance:]], axis=1)
            for array, new in zip(arrays, joined, strict=True)
        ]
        distance *= 2
    return arrays
