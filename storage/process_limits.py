"""Limits and use of resources of this process, on systems that tell them (not Windows)."""

import sys
from contextlib import suppress

try:
    import resource
except ImportError:
    _HAS_LIMITS = False
else:
    _HAS_LIMITS = True

# OPEN_MAX of macOS, whose maximum is "unlimited", and which refuses to set that.
PLAIN_DESCRIPTOR_LIMIT = 10_240


def descriptor_limits() -> tuple[int, int]:
    """How many descriptors this process may have, and may raise that to; any: sys.maxsize."""
    if not _HAS_LIMITS:
        return sys.maxsize, sys.maxsize
    soft, hard = (
        sys.maxsize if limit == resource.RLIM_INFINITY else limit
        for limit in resource.getrlimit(resource.RLIMIT_NOFILE)
    )
    return soft, hard


def raise_descriptor_limit() -> None:
    """Raise the limit to the maximum, because every log holds several files.

    If the system refuses the maximum, the limit is raised to PLAIN_DESCRIPTOR_LIMIT, or left.
    """
    if not _HAS_LIMITS:
        return
    soft, hard = descriptor_limits()
    if soft == hard:
        return
    _, maximum = resource.getrlimit(resource.RLIMIT_NOFILE)
    for limit in (maximum, min(hard, max(soft, PLAIN_DESCRIPTOR_LIMIT))):
        with suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (limit, maximum))
            return


def largest_memory() -> int:
    """The most memory that this process had, in KiB on Linux; 0 if the system does not tell."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss if _HAS_LIMITS else 0
