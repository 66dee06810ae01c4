"""Puts off full garbage collections while requests hold many objects.

A full collection looks at every object in one turn of the event loop. The objects of a request
contain no reference cycles, so it would find nothing among them.
"""

import gc

_NEVER = 2**31 - 1


class FullCollections:
    """Counts those that have put off full collections."""

    def __init__(self) -> None:
        self._count = 0
        self._thresholds = gc.get_threshold()

    def put_off(self) -> None:
        """Begin no full collection until `allow` is called."""
        self._count += 1
        if self._count == 1:
            self._thresholds = gc.get_threshold()
            gc.set_threshold(*self._thresholds[:2], _NEVER)

    def allow(self) -> None:
        """Undo one call of `put_off`."""
        self._count -= 1
        if not self._count:
            gc.set_threshold(*self._thresholds)
