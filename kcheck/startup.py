"""Ctrl-C before `kcheck.cli.main` can take it: it ends the command without a traceback.

`kcheck` imports this first. In a process of the user's it does nothing.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from itertools import pairwise


def _is_command() -> bool:
    """Whether the process was started as ``kcheck`` or ``python -m kcheck``."""
    return os.path.basename(sys.argv[0]) == "kcheck" or ("-m", "kcheck") in pairwise(sys.orig_argv)


def over() -> None:
    """From now on Ctrl-C is an exception again."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_DFL:
        signal.signal(signal.SIGINT, signal.default_int_handler)


if (
    _is_command()
    and threading.current_thread() is threading.main_thread()
    and signal.getsignal(signal.SIGINT) is signal.default_int_handler  # not where a shell has it ignored
):
    signal.signal(signal.SIGINT, signal.SIG_DFL)
