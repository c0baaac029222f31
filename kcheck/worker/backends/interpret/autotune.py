"""Autotuned kernels run with one configuration of those that survive pruning: there is nothing to time here."""

from __future__ import annotations

from typing import Any

from kcheck.worker.backends.base import Unsupported
from kcheck.worker.backends.interpret.patches import PatchSet
from kcheck.worker.backends.interpret.triton_seams import autotuner


class _Choice:
    """Which configuration runs, and where to tell of it."""

    number = 0
    tuned: dict[str, tuple[int, str]] = {}  # noqa: RUF012  replaced by `choose`


def choose(number: int, tuned: dict[str, tuple[int, str]]) -> None:
    """Choose what runs from now on.

    Args:
        number: Of the configuration, modulo those that a kernel has.
        tuned: Filled with how many configurations a kernel has, and with the one that ran, by kernel.
    """
    _Choice.number, _Choice.tuned = number, tuned


def install(patches: PatchSet) -> None:
    """Replace ``Autotuner.run``."""
    patches.put(autotuner.Autotuner, "run", _run)


def _run(self: Any, *args: Any, **kwargs: Any) -> Any:
    self.nargs = dict(zip(self.arg_names, args, strict=False))
    try:
        config = _config(self, kwargs)
        self.best_config = config
        merged = {**self.nargs, **kwargs, **config.all_kwargs()}
        if len(self.configs) > 1:
            self.pre_hook(merged, reset_only=True)
        if config.pre_hook is not None:
            config.pre_hook(merged)
        return self.fn.run(*args, **kwargs, **config.all_kwargs())
    finally:
        self.nargs = None


def _config(tuner: Any, kwargs: dict[str, Any]) -> Any:
    configs = _kept(tuner, kwargs)
    config = configs[_Choice.number % len(configs)]
    if len(configs) > 1:
        _Choice.tuned[tuner.base_fn.__name__] = (len(configs), str(config))
    return config


def _kept(tuner: Any, kwargs: dict[str, Any]) -> list[Any]:
    """Only pruning that can rule a configuration out is honoured; a performance model merely ranks."""
    if not tuner.early_config_prune or len(tuner.configs) == 1:
        return list(tuner.configs)
    name = tuner.base_fn.__name__
    try:
        kept = list(tuner.early_config_prune(tuner.configs, tuner.nargs, **kwargs))
    except Exception as error:
        reason = f"the configuration pruning of kernel {name} failed without a GPU ({type(error).__name__}: {error})"
        raise Unsupported(reason) from error
    if not kept:
        raise Unsupported(f"the configuration pruning of kernel {name} left no configuration")
    return kept
