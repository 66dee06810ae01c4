"""Keeps garbage collections short.

A full collection looks at every object in one turn of the event loop: a quarter of a second for a
million. What a request makes has no reference cycles, so it is freed without the collector, and
objects that stay (topics, groups, members) are not garbage. A full collection finds almost nothing.
So none begins by Python's own rule, which counts what has survived younger collections and may be
met every ten seconds. One begins when the process has half as much more memory as after the last
one: cycles of any origin cost at most that much.

Nor is it useful to examine the objects of a request that is still served: a collection waits while
a request holds many.

A young collection examines the objects that were made since the last one, and all that they refer
to. It begins when 2,000 more objects were made than freed. While one request is read and the
objects of another are freed, that may not happen for long, and then a list of 100,000 entries is
examined in one turn. So there is a young collection after each slice. It takes some microseconds,
because a list that is still being filled is short then.
"""

import gc
from collections.abc import Callable
from pathlib import Path

from odradek.storage.process_limits import largest_memory

# The youngest generation is collected about a third as often as by default: most objects are freed
# without the collector. The third number is never reached.
THRESHOLDS = (2000, 5, 2**31 - 1)
GROWTH = 1.5
_YOUNG = 1  # the youngest generations, up to this one


def spare_what_stays() -> None:
    """Let the collector skip all objects that are there, and begin no full collection by itself."""
    gc.freeze()
    gc.set_threshold(*THRESHOLDS)
    gc.enable()


def collect_young() -> None:
    """Look at the objects that a slice has made: no later collection but a full one does."""
    gc.collect(_YOUNG)


_STATM = Path("/proc/self/statm")


def memory() -> int:
    """The memory of the process that does not belong to a file, in a unit that never changes.

    (Not `sys.getallocatedblocks`: it reads a word of each page, which takes tens of milliseconds in
    a large process whose pages are in no cache.)
    """
    try:
        _, resident, of_files, *_ = _STATM.read_bytes().split()
    except OSError:  # not Linux
        return largest_memory()
    return int(resident) - int(of_files)


class FullCollections:
    """Begins a full collection when it is due.

    `count` says how much memory there is, see `memory`.
    """

    def __init__(
        self,
        count: Callable[[], int] = memory,
        collect: Callable[[], object] = gc.collect,
    ) -> None:
        self._count = count
        self._collect = collect
        self._limit = 0.0
        self._put_off = 0

    def put_off(self) -> None:
        """Begin none until `allow` has been called once for each call of this."""
        self._put_off += 1

    def allow(self) -> None:
        """Undo one call of `put_off`."""
        self._put_off -= 1

    def collect_if_due(self) -> None:
        """Collect if there is much more memory than after the last call that has collected.

        The first call only counts. The broker has started by then.
        """
        if self._limit and (self._put_off or self._count() <= self._limit):
            return
        if self._limit:
            self._collect()
        self._limit = self._count() * GROWTH
