"""The verdict of a target: what must hold besides the absence of findings for a run to be a pass."""

from __future__ import annotations

import time

from kcheck.engine.known import settle
from kcheck.engine.turn import Turn
from kcheck.events import CaseVerdict, Discovery, TargetResult

WEAK_ORACLE_CASES = 5  # constant results in fewer cases may be chance


def result(turn: Turn, discoveries: tuple[Discovery, ...], failure: str, interrupted: bool) -> TargetResult:
    """Sum up a turn.

    Args:
        turn: The target's turn, over.
        discoveries: What was found.
        failure: Why the turn could not go on, ``""`` if it could.
        interrupted: The user stopped it.
    """
    reasons = [failure] if failure else ["the run was interrupted"] if interrupted else []
    known = settle(turn)
    discoveries += tuple(known.unlaunched)
    if not failure:
        reasons += [] if interrupted else known.reasons
        reasons += _unchecked(turn)
        if not interrupted or turn.counts[CaseVerdict.MATCH]:
            reasons += _unproven(turn, interrupted)
    verdict = CaseVerdict.MATCH
    if discoveries:
        verdict = CaseVerdict.FINDINGS
    elif reasons:
        verdict = CaseVerdict.COULD_NOT_CHECK
    return TargetResult(
        name=turn.title,
        verdict=verdict,
        reasons=tuple(reasons),
        notes=(*turn.notes, *turn.partial.values(), *turn.sequential.values(), *known.notes, *turn.compiles.notes()),
        cases=dict(turn.counts),
        seconds=time.monotonic() - turn.began,
        matrix=turn.matrix,
        discoveries=discoveries,
        launches=dict(turn.launches),
        gone=tuple(known.gone),
    )


def _unchecked(turn: Turn) -> list[str]:
    """Cases that could not be checked, by reason."""
    return [f"{reason} ({_cases(count)})" for reason, count in turn.unchecked.most_common(3)]


def _unproven(turn: Turn, interrupted: bool) -> list[str]:
    """What a run without findings does not prove."""
    judged = turn.counts[CaseVerdict.MATCH] + turn.counts[CaseVerdict.FINDINGS]
    quote, times = turn.rejections.most_common(1)[0] if turn.rejections else ("", 0)
    if not sum(turn.counts.values()):
        left_out = turn.ledger.left_out.total()
        why = f": {_cases(left_out)} hold the case of a crash that is known from the baseline" if left_out else ""
        return [f"no case ran{why}"]
    if not judged:
        return [f"every case was rejected: {quote} ({_cases(times)})"] if quote else []
    reasons = []
    if not interrupted:
        declined = {n: why for n, why in turn.strided_declined.items() if n not in turn.strided_accepted}
        reasons = [
            f"no layout of {name} but contiguous ones was accepted: {why}; if so meant, draw it with kinds=ks.DENSE"
            for name, why in declined.items()
        ]
    if judged > turn.exempt:
        names = turn.target.kernels or (("",) if not turn.launches else ())
        for name in names:
            if not turn.launches.get(name):
                what = f"kernel {name} never launched" if name else "no kernel ever launched"
                reasons.append(f"{what}, so the result proves nothing about it")
    if len(turn.constants) == 1 and None not in turn.constants:
        ((value, count),) = turn.constants.items()
        if count >= WEAK_ORACLE_CASES:
            reasons.append(f"the oracle is weak: every result is {value} in all {_cases(count)}")
    return reasons


def _cases(count: int) -> str:
    return "1 case" if count == 1 else f"{count:,} cases"
