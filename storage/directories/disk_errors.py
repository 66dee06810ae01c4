"""Which errors of the operating system pass by themselves, and which are a disk's end.

Known difference: Kafka takes a log directory offline for every IOException, a full disk too.
"""

import errno

_FULL_DISK = frozenset({errno.ENOSPC, errno.EDQUOT})
# The disk is full, or we hold too many files: that passes, and reading goes on.
_PASSING = _FULL_DISK | {errno.EMFILE, errno.ENFILE}


def is_full_disk(error: OSError) -> bool:
    """Whether there is no room on the disk, or none for us."""
    return error.errno in _FULL_DISK


def passes(error: OSError) -> bool:
    """Whether what failed may be tried again later, in the same directory."""
    return error.errno in _PASSING
