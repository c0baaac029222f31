"""What the host and instrumented kernels have agreed on: the words of the table, and those of the log.

Everything is int64. The table says what each parameter of the launch may touch. The log has a record for each access
of a kernel.
"""

from __future__ import annotations

# The table: a header, then a slot for each parameter of the kernel.
RECORDS = 0  # address of the launch's records
SAFE_FIRST, SAFE_SIZE = 1, 2  # memory that is safe to read
MAX_SLOTS = 64
SLOTS, SLOT = 8, 8
ELSEWHERE = MAX_SLOTS  # the slot of pointers that come from no parameter
# Bytes, relative to the parameter's address, that lie in its view if the view is dense; 0 and 0 if it is not, or if it
# is to be written and must not.
READ_FIRST, READ_END, WRITE_FIRST, WRITE_END = 0, 1, 2, 3
# All views of the parameter lie in these bytes. Where they are dense, the shadow is 0, and they may be written or not.
ADDRESS, EXTENT, SHADOW, WRITABLE = 4, 5, 6, 7
TABLE = SLOTS + (MAX_SLOTS + 1) * SLOT

SUSPECTED = TABLE  # becomes 1 if lanes may be bad: which ones, only kernels with exact checks say
SINK = TABLE + 1  # a word that nobody reads

# A byte of a shadow has a bit for accesses of 1, 2, 4 and 8 bytes that begin there and stay inside, then one for
# each of those that may write.
WIDTHS = (1, 2, 4, 8)

# A record of the log.
LANES = 0  # how many
LOWEST = 1  # the complement of the least key of a lane
NOTED = 2  # how many of OFFSETS are asked for
OFFSETS, MAX_OFFSETS = 3, 64  # bytes, relative to ADDRESS
PROGRAMS, PROGRAM_WORDS = OFFSETS + MAX_OFFSETS, 256  # a bit for each program, modulo
RECORD = PROGRAMS + PROGRAM_WORDS
MAX_RECORDS = 8192
LOG = TABLE + 8
WORDS = LOG + MAX_RECORDS * RECORD

# A key is a program's number, then the offset in bytes: the first program, and there the lowest offset.
KEY_BITS = 42
KEY_BIAS = 1 << (KEY_BITS - 1)
