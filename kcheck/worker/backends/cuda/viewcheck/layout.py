"""What the host and instrumented kernels have agreed on: the words of the table, and those of the log.

Everything is int64. The table says what each parameter of the launch may touch. The log has a record for each access
of a kernel.
"""

from __future__ import annotations

# The table: a header, then a slot for each parameter of the kernel.
RECORDS = 0  # address of the launch's records
SAFE_FIRST, SAFE_SIZE = 1, 2  # memory that is safe to read
MAX_SLOTS = 64
SLOTS, SLOT = 8, 16
ELSEWHERE = MAX_SLOTS  # the slot of pointers that come from no parameter
# Bytes, relative to the parameter's address, that lie in its view if the view is dense; 0 and 0 if it is not, or if it
# is to be written and must not.
READ_FIRST, READ_END, WRITE_FIRST, WRITE_END = 0, 1, 2, 3
# All views of the parameter lie in these bytes. Where they are dense, the shadow is 0, and they may be written or not.
ADDRESS, EXTENT, SHADOW, WRITABLE = 4, 5, 6, 7
# Where the parameter's memory begins; an int64 for every granule of it that says who wrote it last in this launch, and
# one for who read it; and the byte that fills it where nothing was written, + 1, or 0.
MEMORY, WRITERS, READERS, POISON = 8, 9, 10, 11
TABLE = SLOTS + (MAX_SLOTS + 1) * SLOT

SUSPECTED = TABLE  # becomes 1 if lanes may be bad: which ones, only kernels with exact checks say
SINK = TABLE + 1  # a word that nobody reads

# A byte of a shadow has a bit for accesses of 1, 2, 4 and 8 bytes that begin there and stay inside, then one for
# each of those that may write.
WIDTHS = (1, 2, 4, 8)

# A record of the log: of each access one of stray lanes, one of reads of what nobody wrote, one of races, and one of
# stores that another lane of the program overwrote with something else.
STRAY, UNWRITTEN, RACE, CONFLICT = 0, 1, 2, 3
PER_SITE = 4
LANES = 0  # how many
LOWEST = 1  # the complement of the least key of a lane
NOTED = 2  # how many notes are asked for
NOTES, NOTE, MAX_NOTES = 3, 3, 64  # offset in bytes, relative to ADDRESS; program; what WRITERS or READERS held
PROGRAMS, PROGRAM_WORDS = NOTES + NOTE * MAX_NOTES, 256  # a bit for each program, modulo
RECORD = PROGRAMS + PROGRAM_WORDS
MAX_RECORDS = 8192
LOG = TABLE + 8
WORDS = LOG + MAX_RECORDS * RECORD

# A key is a program's number, then the offset in bytes: the first program, and there the lowest offset.
KEY_BITS = 42
KEY_BIAS = 1 << (KEY_BITS - 1)

# What WRITERS and READERS hold: a program's number + 1, the access, and whether it is atomic.
MARK_PROGRAM, MARK_SITE = 16, 1  # shifts
MAX_SITES = 1 << 15
