"""A turn that is over, as a result."""

from __future__ import annotations

import time

from kcheck.engine.known import settle
from kcheck.engine.turn import Turn
from kcheck.events import CaseVerdict, Discovery, TargetResult
from kcheck.evidence import Evidence
from kcheck.join import judged

MOST_TEXTS = 100  # of each sort that are kept, the most common ones


def result(turn: Turn, discoveries: tuple[Discovery, ...], failure: str, interrupted: bool) -> TargetResult:
    """Sum up a turn.

    Args:
        turn: The target's turn, over.
        discoveries: What was found.
        failure: Why the turn could not go on, ``""`` if it could.
        interrupted: The user stopped it.
    """
    known = settle(turn)
    evidence = Evidence(
        failures=(failure,) if failure else (),
        interrupted=interrupted,
        settled=known.untried,
        kernels=turn.target.kernels,
        exempt=turn.exempt,
        rejections=dict(turn.rejections.most_common(MOST_TEXTS)),
        unchecked=dict(turn.unchecked.most_common(MOST_TEXTS)),
        constants={value: count for value, count in turn.constants.items() if value is not None},
        varied=turn.constants[None],
        accepted=tuple(sorted(turn.strided_accepted)),
        declined=dict(turn.strided_declined),
        left_out=known.left_out,
        swept=turn.swept,
        kernel_notes={
            **{f"{kernel}: partial": note for kernel, note in turn.partial.items()},
            **{f"{kernel}: sequential": note for kernel, note in turn.sequential.items()},
        },
        unseen=known.unseen,
        known_notes=tuple(known.notes),
        compiles=dict(turn.compiles.kernels),
    )
    return judged(
        TargetResult(
            name=turn.title,
            verdict=CaseVerdict.MATCH,
            cases=dict(turn.counts),
            seconds=time.monotonic() - turn.began,
            matrix=turn.matrix,
            discoveries=discoveries + tuple(known.unlaunched),
            launches=dict(turn.launches),
            gone=tuple(known.gone),
            evidence=evidence,
        )
    )
