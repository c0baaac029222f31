"""A case on trial: the target is run with it as often as the proof needs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import torch

from kcheck.case import Case
from kcheck.layout import Layout
from kcheck.target import Target
from kcheck.worker.arena import Arena
from kcheck.worker.backends.base import Backend, Compile, ProgramOrder, Traced
from kcheck.worker.compare import Tolerance
from kcheck.worker.dead import with_dead
from kcheck.worker.decoys import Style
from kcheck.worker.run import Observation, run_target

FIRST = Style(decoys=0, poison=0xA5)
SECOND = Style(decoys=1, poison=0x5A, dead=1)


@dataclass(slots=True)
class Trial:
    """A case on trial.

    Attributes:
        target: What is tested.
        case: Its arguments, roles set.
        dense: Views made contiguous from the start.
        contents: Values of every view, as the oracle gets them.
        backend: Where kernels run.
        arena: Where tensors live.
        dead: Masks of dead elements, by view.
        named: Kernels to be looked for by name in the next run.
        seconds: Time spent, by part.
        layouts: As placed in the first run.
        unwritten: Masks of output elements that nobody wrote, by output.
        compiles: Specialisations made in all runs.
        sequential: Why programs could not run together: the feature, by kernel.
        tuned: Autotuned kernels: how many configurations each has, and the one that ran last.
        precise: What the oracle gives in float64, by output; None until it is asked for.
        moves: How far rounding can move that; None until it is asked for.
    """

    target: Target
    case: Case
    dense: frozenset[str]
    contents: dict[str, torch.Tensor]
    backend: Backend
    arena: Arena
    dead: Mapping[str, torch.Tensor] = field(default_factory=dict)
    named: tuple[str, ...] = ()
    seconds: dict[str, float] = field(default_factory=dict)
    layouts: dict[str, Layout] = field(default_factory=dict)
    unwritten: dict[str, torch.Tensor] = field(default_factory=dict)
    compiles: list[Compile] = field(default_factory=list)
    sequential: dict[str, str] = field(default_factory=dict)
    tuned: dict[str, tuple[int, str]] = field(default_factory=dict)
    precise: Mapping[str, torch.Tensor] | None = None
    moves: Mapping[str, torch.Tensor] | None = None

    @property
    def tolerance(self) -> Tolerance:
        """The target's."""
        return Tolerance(self.target.exact, self.target.rtol, self.target.atol)

    @property
    def is_dense(self) -> bool:
        """Every view is contiguous already, so that the contiguous copy is the same case."""
        return all(layout == Layout.contiguous(layout.shape) for layout in self.layouts.values())

    def run(self, style: Style, order: ProgramOrder = "forward", traced: Traced = frozenset()) -> Observation:
        """Run the target once. The tensors of an observation's placement are valid until the next run."""
        return self._run(style, order, self.dense, traced)

    def run_dense(self) -> Observation:
        """Run the target once on contiguous copies of every view."""
        return self._run(FIRST, "forward", frozenset(self.case.views))

    def _run(
        self, style: Style, order: ProgramOrder, dense: frozenset[str], traced: Traced = frozenset()
    ) -> Observation:
        observation = self._run_once(style, order, dense, traced)
        if observation.watch.suspected:
            observation = self._run_once(style, order, dense, traced, exact=True)
        self.named = ()
        return observation

    def _run_once(
        self, style: Style, order: ProgramOrder, dense: frozenset[str], traced: Traced, *, exact: bool = False
    ) -> Observation:
        observation = run_target(
            self.target,
            self.case,
            self._contents_in(style) if self.dead else self.contents,
            self.backend,
            self.arena,
            style=style,
            order=order,
            dense=dense,
            named=self.named,
            traced=traced,
            exact=exact,
        )
        self.compiles += observation.watch.compiles
        self.sequential |= observation.watch.sequential
        self.tuned |= observation.watch.tuned
        for part, seconds in observation.seconds.items():
            self.seconds[part] = self.seconds.get(part, 0.0) + seconds
        return observation

    def _contents_in(self, style: Style) -> dict[str, torch.Tensor]:
        masks = {name: mask for name, mask in self.dead.items() if style.dead_only in ("", name)}
        return with_dead(self.case, self.contents, masks, style.dead) if style.dead else self.contents
