"""Which errors of the operating system pass by themselves, and which are a disk's end.

Known difference: Kafka takes a log directory offline for every IOException, a full disk too.
"""

import errno

_FULL_DISK = frozenset({errno.ENOSPC, errno.EDQUOT})
_NO_DESCRIPTORS = frozenset({errno.EMFILE, errno.ENFILE})
# The disk is full, or we hold too many files: that passes, and reading goes on.
_PASSING = _FULL_DISK | _NO_DESCRIPTORS


def is_full_disk(error: OSError) -> bool:
    """Whether there is no room on the disk, or none for us."""
    return error.errno in _FULL_DISK


def lacks_descriptors(error: OSError) -> bool:
    """Whether a file could not be opened because too many are open."""
    return error.errno in _NO_DESCRIPTORS


def passes(error: OSError) -> bool:
    """Whether what failed may be tried again later, in the same directory."""
    return error.errno in _PASSING
