"""``python -P -m kcheck.worker.sanitized JOB PROGRESS``: runs a job's cases in this process, under compute-sanitizer.

Started by `kcheck.sanitizer`, never by hand. Results are not looked at: they are the fuzzer's business, and reading an
output that nothing wrote would itself be reported.
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import NoReturn

import torch

from kcheck import loader
from kcheck.case import Case
from kcheck.errors import KcheckError, quoted
from kcheck.job import Job, ProgressFile, Status
from kcheck.target import Target
from kcheck.worker.arena import dense_values
from kcheck.worker.arguments import arguments
from kcheck.worker.backends import open_backend
from kcheck.worker.backends.base import Backend, ContextLost, KernelStopped, Region, Watch
from kcheck.worker.call import invoke
from kcheck.worker.exact import ExactPlacement, place_exact
from kcheck.worker.judge import REJECTIONS
from kcheck.worker.run import user_frame
from kcheck.worker.sharing import prepared


def run_job(job: Job, progress: ProgressFile) -> None:
    """Run a job's cases, up to one that costs the CUDA context.

    Args:
        job: What to run.
        progress: Where to tell of it.
    """
    try:
        target = loader.load(job.spec)[0].target
        backend = open_backend(job.backend)
    except KcheckError as error:
        progress.failed(str(error))
        return
    progress.loaded()
    for number, case in enumerate(job.cases):
        progress.started(number)
        status, reason, launches = _run(target, case, backend, job, number, progress)
        progress.finished(number, status, reason, launches)
    if job.leaks and torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
        _destroy_context()
        _leave(progress)
    progress.ended()


def _run(
    target: Target, case: Case, backend: Backend, job: Job, number: int, progress: ProgressFile
) -> tuple[Status, str, Mapping[str, int]]:
    watch = Watch()
    try:
        case = prepared(target, case)
        contents = dense_values(case)
        placement = place_exact(case, contents, backend.device, unwritten=job.unwritten)
        placement.tensors |= {name: contents[name] for name, view in case.views.items() if view.host}
        progress.placed(number, placement.addresses)
        with backend.watch(_regions(case, placement), spans=placement.spans) as watch:
            invoke(target, arguments(case, placement.tensors), placement.tensors)
        status, reason = (Status.UNCHECKED, watch.gaps[0]) if watch.gaps else (Status.DONE, "")
    except KcheckError as error:
        status, reason = Status.UNCHECKED, str(error)
    except ContextLost as lost:
        progress.finished(number, Status.LOST, lost.reason, _counted(watch))
        _leave(progress)
    except KernelStopped as stopped:
        status, reason = Status.UNCHECKED, stopped.reason
    except Exception as error:
        status, reason = _raised(target, error, watch)
    return status, reason, _counted(watch)


def _counted(watch: Watch) -> Mapping[str, int]:
    return Counter(launch.kernel for launch in watch.launches if launch.programs)


def _regions(case: Case, placement: ExactPlacement) -> list[Region]:
    return [Region(name, tensor, case.views[name].role.writable) for name, tensor in placement.tensors.items()]


def _raised(target: Target, error: Exception, watch: Watch) -> tuple[Status, str]:
    quote = quoted(error)
    if isinstance(error, REJECTIONS) and not watch.launches:
        return Status.REJECTED, quote
    file, line = user_frame(error, target)
    return Status.UNCHECKED, f"{file}:{line}: {target.name} raised {quote}"


def _destroy_context() -> None:
    """What is not freed by now has leaked: memcheck counts when a context is destroyed, which the exit alone is not."""
    torch.cuda.synchronize()
    ctypes.CDLL("libcuda.so.1").cuDevicePrimaryCtxReset_v2(torch.cuda.current_device())


def _leave(progress: ProgressFile) -> NoReturn:
    """End at once: without a CUDA context whatever is still freed fails, and torch would abort the process."""
    progress.ended()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


if __name__ == "__main__":
    run_job(Job.read(Path(sys.argv[1])), ProgressFile(Path(sys.argv[2])))
