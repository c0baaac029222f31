"""How a backend is asked for, as one text: ``cuda``, ``interpret``, ``interpret,pretend=sm_80,all-configs``."""

from __future__ import annotations

from dataclasses import dataclass

from kcheck.errors import UsageError
from kcheck.gpus import DEFAULT, gpu_named

VIEWCHECK = "viewcheck"  # a tool of kcheck sanitize: with wild values; on the CPU, of large grids a part
ENGINES = ("auto", "batched", "sequential")
DEFAULT_ENGINE = "auto"
_PRETEND, _ALL_CONFIGS, _ENGINE, _CHECKED, _ON_GPU = "pretend=", "all-configs", "engine=", "checked", "on-gpu"


@dataclass(frozen=True, slots=True)
class BackendSpec:
    """A backend and its options.

    Attributes:
        name: ``interpret``, ``cuda``, ``viewcheck``, or ``auto`` where it is yet to be chosen.
        pretend: GPU that the CPU stands in for; ``""``: the usual one.
        all_configs: Run every configuration of autotuned kernels.
        engine: How the CPU runs the programs of a launch: one of `ENGINES`; ``""``: the usual way.
        checked: Of ``cuda``: kernels are compiled with a check of every access.
        on_gpu: Of ``viewcheck``: that is the tool, not the CPU.

    Raises:
        UsageError: There is no such GPU, or an option is not for this backend.
    """

    name: str
    pretend: str = ""
    all_configs: bool = False
    engine: str = ""
    checked: bool = False
    on_gpu: bool = False

    def __post_init__(self) -> None:
        if self.pretend:
            gpu_named(self.pretend)
        on_cpu = [option for option in self.options if option not in ("--viewcheck", "--backend", "cuda")]
        if (self.name == "cuda" or self.on_gpu) and on_cpu:
            raise UsageError(f"{on_cpu[0]} is for the CPU; the backend is cuda (say --backend interpret)")
        if self.checked and self.name in ("interpret", VIEWCHECK):
            raise UsageError("--viewcheck is for a GPU; on the CPU every access is checked anyway")

    @staticmethod
    def parse(text: str) -> BackendSpec:
        """Read what `str` gives.

        Raises:
            UsageError: It is of another form.
        """
        name, *options = text.split(",")
        pretend = next((option.removeprefix(_PRETEND) for option in options if option.startswith(_PRETEND)), "")
        engine = next((option.removeprefix(_ENGINE) for option in options if option.startswith(_ENGINE)), "")
        spec = BackendSpec(name, pretend, _ALL_CONFIGS in options, engine, _CHECKED in options, _ON_GPU in options)
        if str(spec) != text or engine not in ("", *ENGINES):
            raise UsageError(f"there is no backend {text!r}")
        return spec

    def __str__(self) -> str:
        pretend = f",{_PRETEND}{self.pretend}" if self.pretend else ""
        all_configs = f",{_ALL_CONFIGS}" if self.all_configs else ""
        engine = f",{_ENGINE}{self.engine}" if self.engine else ""
        checked = f",{_CHECKED}" if self.checked else ""
        on_gpu = f",{_ON_GPU}" if self.on_gpu else ""
        return f"{self.name}{pretend}{all_configs}{engine}{checked}{on_gpu}"

    @property
    def tool(self) -> str:
        """The tool of ``kcheck sanitize`` that it is, ``""`` if it is none."""
        return self.name if self.name == VIEWCHECK else ""

    @property
    def options(self) -> tuple[str, ...]:
        """Options of the command line that give the same."""
        pretend = ("--pretend", self.pretend) if self.pretend not in ("", DEFAULT) else ()
        engine = ("--engine", self.engine) if self.engine not in ("", DEFAULT_ENGINE) else ()
        checked = ("--viewcheck",) if self.checked else ("--backend", "cuda") if self.on_gpu else ()
        return (*pretend, *(("--all-configs",) if self.all_configs else ()), *engine, *checked)
