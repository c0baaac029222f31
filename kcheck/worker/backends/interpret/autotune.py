"""Autotuned kernels run once, with the first configuration that survives pruning: there is nothing to time here."""

from __future__ import annotations

from typing import Any

from kcheck.worker.backends.base import Unsupported
from kcheck.worker.backends.interpret.patches import PatchSet
from kcheck.worker.backends.interpret.triton_seams import autotuner


def install(patches: PatchSet) -> None:
    """Replace ``Autotuner.run``."""
    patches.put(autotuner.Autotuner, "run", _run)


def _run(self: Any, *args: Any, **kwargs: Any) -> Any:
    self.nargs = dict(zip(self.arg_names, args, strict=False))
    try:
        config = _first_config(self, kwargs)
        self.best_config = config
        merged = {**self.nargs, **kwargs, **config.all_kwargs()}
        if len(self.configs) > 1:
            self.pre_hook(merged, reset_only=True)
        if config.pre_hook is not None:
            config.pre_hook(merged)
        return self.fn.run(*args, **kwargs, **config.all_kwargs())
    finally:
        self.nargs = None


def _first_config(tuner: Any, kwargs: dict[str, Any]) -> Any:
    """Only pruning that can rule a configuration out is honoured; a performance model merely ranks."""
    if not tuner.early_config_prune or len(tuner.configs) == 1:
        return tuner.configs[0]
    try:
        return next(iter(tuner.early_config_prune(tuner.configs, tuner.nargs, **kwargs)))
    except Exception as error:
        name = tuner.base_fn.__name__
        raise Unsupported(
            f"the configuration pruning of kernel {name} failed without a GPU ({type(error).__name__}: {error})"
        ) from error
