"""``python -m kcheck.worker FD BACKEND``: started by the supervisor, never by hand."""

import sys

from kcheck.worker.zygote import main

main(int(sys.argv[1]), sys.argv[2])
