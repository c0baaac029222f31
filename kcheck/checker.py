"""The engine inside a process of the user's: one target after another, all in workers of one zygote."""

from __future__ import annotations

import contextlib
import random
import threading
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

from kcheck import config, loader
from kcheck.client import Client
from kcheck.engine import Campaign, Settings
from kcheck.errors import UsageError
from kcheck.events import BugFound, Discovery, RunDone, TargetResult
from kcheck.loader import LoadedTarget
from kcheck.machine import chosen_backend, worker_environment
from kcheck.spec import spec_of
from kcheck.store import DEFAULT_ROOT, Store
from kcheck.target import Target

BACKENDS = ("auto", "interpret", "cuda")
OPTIONS = ("max_examples", "max_time", "seed", "case_timeout", "fail_on")  # and backend
_OWN_VARIABLES = ("PYTEST_CURRENT_TEST", "PYTHONPATH")  # change from test to test, and mean nothing to a kernel


class Checker:
    """Checks targets; to be used in a ``with`` statement.

    Args:
        folder: The workers run there, and replay commands are meant for there.
        options: What holds where a check does not say otherwise: `OPTIONS` and ``backend``. Below them stand those of
            the project (``[tool.kcheck]``).
        directory: Where findings are kept, relative to `folder`.

    Attributes:
        cut_short: What was found by checks that came to no result.

    Raises:
        UsageError: An option, or the project's table, is wrong.
    """

    def __init__(
        self, folder: Path, options: Mapping[str, Any] | None = None, directory: Path = Path(DEFAULT_ROOT)
    ) -> None:
        self._folder, self._directory = folder, directory
        with contextlib.chdir(folder):
            project = {key.replace("-", "_"): value for key, value in config.read().defaults("", {}).items()}
        self._options = {name: project[name] for name in OPTIONS if name in project} | given(options or {})
        self.cut_short: list[Discovery] = []
        self._client: Client | None = None
        self._store: Store | None = None
        self._started: tuple[str, Mapping[str, str]] | None = None
        self._lock = threading.Lock()

    def __enter__(self) -> Checker:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the workers. A later check starts others."""
        client, self._client, self._store = self._client, None, None
        if client is not None:
            client.close()

    def warm_up(self) -> None:
        """Start the workers: they import torch while this process does something else.

        Raises:
            UsageError: The ``.kcheck`` directory cannot be made.
        """
        self._workers(chosen_backend(self._options.get("backend", "auto")))

    def load(self, target: Target | str) -> LoadedTarget:
        """The target, and how the workers find it.

        Raises:
            UsageError: It cannot be loaded, or it is not one target.
        """
        if isinstance(target, Target):
            return LoadedTarget(target, spec_of(target, self._folder))
        if not isinstance(target, str):
            raise UsageError(
                f"{target!r} is no target; give what @kcheck.target made of a function, or the name of a target: "
                f"{loader.FORMS}"
            )
        named = loader.load(target)
        if len(named) != 1:
            raise UsageError(f"{target} names {len(named)} targets; give one: {', '.join(one.spec for one in named)}")
        place, colons, name = named[0].spec.partition("::")
        return LoadedTarget(named[0].target, f"{self._shown(Path(place))}::{name}") if colons else named[0]

    def run(self, one: LoadedTarget, options: Mapping[str, Any]) -> tuple[TargetResult, dict[str, Any]]:
        """Check a target.

        Args:
            one: The target.
            options: `OPTIONS` and ``backend``; None stands for one that is not given.

        Returns:
            What came out, and the options with which.

        Raises:
            UsageError: An option has a bad value.
            KcheckError: The run itself failed.
        """
        chosen: dict[str, Any] = {"backend": "auto", "fail_on": "error", "seed": random.SystemRandom().getrandbits(32)}
        chosen |= self._options | given(options)
        settings = Settings(**{name: chosen[name] for name in OPTIONS if name in chosen and name != "fail_on"})
        with self._lock:
            return self._campaign(one, settings, chosen_backend(chosen["backend"])), chosen

    def _shown(self, file: Path) -> Path:
        file = file.absolute()
        return file.relative_to(self._folder) if file.is_relative_to(self._folder) else file

    def _campaign(self, one: LoadedTarget, settings: Settings, backend: str) -> TargetResult:
        client, store = self._workers(backend)
        client.case_timeout = settings.case_timeout
        campaign = Campaign([one], client, store, settings, backend)
        found: list[Discovery] = []
        results: tuple[TargetResult, ...] = ()
        try:
            for event in campaign.run():
                match event:
                    case BugFound(discovery):
                        found.append(discovery)
                    case RunDone():
                        results = event.results
        except BaseException:  # Ctrl-C, or a time limit of pytest's
            self.cut_short += found
            campaign.interrupt()
            self.close()  # the engine may still use them for a moment
            raise
        return results[0]

    def _workers(self, backend: str) -> tuple[Client, Store]:
        """Workers with this process's environment: a test may set a variable that a kernel's wrapper reads."""
        environment = {name: value for name, value in worker_environment().items() if name not in _OWN_VARIABLES}
        if self._client is None or self._store is None or self._started != (backend, environment):
            self.close()
            with contextlib.chdir(self._folder):  # a test may have left it
                self._store = Store(self._directory).open(own_process=False)
                self._client = Client(backend, self._store.log)
            self._started = backend, environment
        return self._client, self._store


def given(options: Mapping[str, Any]) -> dict[str, Any]:
    """The options that are not None.

    Raises:
        UsageError: One has a bad value.
    """
    there = {name: value for name, value in options.items() if value is not None}
    for name, value in there.items():
        if name == "backend":
            problem = "" if value in BACKENDS else f"{value!r}; expected one of {', '.join(BACKENDS)}"
        else:
            problem = config.problem(name.replace("_", "-"), value)
        if problem:
            raise UsageError(f"{name} is {problem}")
    return there
