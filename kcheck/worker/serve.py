"""The loop of one worker: a case comes in, a judgement goes out."""

from __future__ import annotations

import json
import traceback
from collections.abc import Callable, Mapping
from typing import Any

from kcheck.case import Case
from kcheck.document import case_from_json
from kcheck.errors import KcheckError
from kcheck.events import CaseVerdict
from kcheck.mutation import Mutation
from kcheck.protocol import Channel, ChannelClosed, Judgement, Measurement, Yardstick
from kcheck.target import Target
from kcheck.worker.backends.base import Backend
from kcheck.worker.judge import Judge
from kcheck.worker.measure import measure
from kcheck.worker.mutated import ensure
from kcheck.worker.yardstick import yardstick

Answer = Judgement | Measurement | Yardstick


def serve(channel: Channel, targets: Mapping[str, Target], backend: Backend) -> None:
    """Answer requests until the supervisor hangs up, or a case has cost this process the device.

    Args:
        channel: To the supervisor.
        targets: Loaded targets by spec.
        backend: Where kernels run.
    """
    judge = Judge(backend)
    while True:
        try:
            request = channel.receive()
            answer = _ANSWERS[request["op"]](judge, targets, request)
            channel.send(answer.to_json())
            if answer.fatal:
                return
        except ChannelClosed:
            return


def _case(request: Mapping[str, Any]) -> Case:
    return case_from_json(json.loads(request["case"]))


def _measured(judge: Judge, targets: Mapping[str, Target], request: Mapping[str, Any]) -> Measurement:
    try:
        variants = [targets[spec] for spec in request["targets"]]
        return measure(variants, _case(request), judge.backend, judge.arena, timed=request["timed"])
    except Exception as error:
        if not isinstance(error, KcheckError):
            traceback.print_exc()
        return Measurement(problem=f"{type(error).__name__}: {error}")


def _yardstick(judge: Judge, targets: Mapping[str, Target], request: Mapping[str, Any]) -> Yardstick:
    try:
        case = _case(request)
        return Yardstick(yardstick(targets[request["target"]], case, judge.backend, judge.arena))
    except Exception as error:
        if not isinstance(error, KcheckError):
            traceback.print_exc()
        return Yardstick(problem=str(error) or type(error).__name__)


def _answer(judge: Judge, targets: Mapping[str, Target], request: Mapping[str, Any]) -> Judgement:
    try:
        case = _case(request)
        ensure(request.get("mutation") and Mutation.from_json(request["mutation"]), judge.backend)
        dense, cuda_graph = frozenset(request["dense"]), bool(request["cuda_graph"])
        return judge.judge(targets[request["target"]], case, dense, cuda_graph=cuda_graph)
    except KcheckError as error:
        return Judgement(CaseVerdict.COULD_NOT_CHECK, str(error))
    except Exception as error:  # a fault of kcheck, never to be taken for one of the kernel
        traceback.print_exc()
        reason = f"internal error of kcheck, {type(error).__name__}: {error}; please report it with .kcheck/worker.log"
        return Judgement(CaseVerdict.COULD_NOT_CHECK, reason)


_ANSWERS: Mapping[str, Callable[[Judge, Mapping[str, Target], Mapping[str, Any]], Answer]] = {
    "run": _answer,
    "measure": _measured,
    "yardstick": _yardstick,
}
