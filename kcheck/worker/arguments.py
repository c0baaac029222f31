"""From a case to what its target is called with: tensors, numbers, data types, members, generators, objects."""

from __future__ import annotations

import dataclasses
import enum
import sys
from collections.abc import Mapping
from typing import Any

import torch

from kcheck.case import Case, DTypeValue, Value, View
from kcheck.errors import SpecError
from kcheck.objects import EnumValue, GeneratorValue, ObjectValue, map_leaves
from kcheck.worker.host import mark_host
from kcheck.worker.values import torch_dtype


def arguments(case: Case, tensors: Mapping[str, torch.Tensor]) -> dict[str, Any]:
    """All arguments of a case over these tensors (by path).

    Raises:
        SpecError: An argument's class cannot be found.
    """
    device = next((tensor.device for tensor in tensors.values() if tensor.device.type != "cpu"), torch.device("cpu"))
    return {name: _resolved(value, name, tensors, device) for name, value in case.args.items()}


def _resolved(value: Value, name: str, tensors: Mapping[str, torch.Tensor], device: torch.device) -> Any:
    def resolve(path: str, leaf: Any) -> Any:
        if isinstance(leaf, View):
            return mark_host(tensors[path]) if leaf.host else tensors[path]
        if isinstance(leaf, DTypeValue):
            return torch_dtype(leaf.name)
        if isinstance(leaf, EnumValue):
            return class_named(leaf.kind, path)[leaf.name]
        if isinstance(leaf, GeneratorValue):
            return torch.Generator(device).manual_seed(leaf.seed)
        return leaf

    def make(value: ObjectValue, fields: dict[str, Any]) -> Any:
        return class_named(value.kind, name)(**fields)

    return map_leaves(name, value, resolve, make)


def class_named(kind: str, path: str) -> Any:
    """The enumeration, dataclass or named tuple that a case names.

    Only what the target has imported already is looked at: a case is data and must not choose code. A file that was
    loaded under another name in the process that drew the case is found by the last part of its name.

    Args:
        kind: ``module:QualName``.
        path: Of the argument, for errors.

    Raises:
        SpecError: There is no such class.
    """
    module_name, _, qualified = kind.partition(":")
    last = module_name.rpartition(".")[2].removesuffix("_target")
    namesakes = (m for n, m in list(sys.modules.items()) if n.rpartition(".")[2].removesuffix("_target") == last)
    for module in (sys.modules.get(module_name), *namesakes):
        found: Any = module
        for part in qualified.split("."):
            found = getattr(found, part, None)
        if isinstance(found, type) and _may_be_made(found):
            return found
    raise SpecError(f"{path}: the class {qualified} of {module_name} is not there; import it in the target's file")


def _may_be_made(kind: type) -> bool:
    return issubclass(kind, enum.Enum) or dataclasses.is_dataclass(kind) or hasattr(kind, "_asdict")
