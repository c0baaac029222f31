"""``python -m kcheck.worker FD BACKEND``: started by the supervisor, never by hand.

With ``TELL SPEC…`` behind it: started by the zygote, as a worker that could not be forked.
"""

import sys

from kcheck.worker.zygote import main, main_of_spawned

if len(sys.argv) == 3:
    main(int(sys.argv[1]), sys.argv[2])
else:
    main_of_spawned(int(sys.argv[1]), sys.argv[2], int(sys.argv[3]), sys.argv[4:])
