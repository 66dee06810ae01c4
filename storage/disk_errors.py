"""Tells transient errors of the operating system from those that take a log directory offline.

Known difference: Kafka takes a log directory offline for every IOException, a full disk too.
"""

import errno

_FULL_DISK = frozenset({errno.ENOSPC, errno.EDQUOT})
_NO_DESCRIPTORS = frozenset({errno.EMFILE, errno.ENFILE})
# The disk is full, or too many files are open. Logs can still be read, and a retry may succeed.
_TRANSIENT = _FULL_DISK | _NO_DESCRIPTORS


def is_full_disk(error: OSError) -> bool:
    """Whether the disk or our quota is full."""
    return error.errno in _FULL_DISK


def lacks_descriptors(error: OSError) -> bool:
    """Whether a file could not be opened because too many are open."""
    return error.errno in _NO_DESCRIPTORS


def is_transient(error: OSError) -> bool:
    """Whether the operation may be retried later, in the same directory."""
    return error.errno in _TRANSIENT
