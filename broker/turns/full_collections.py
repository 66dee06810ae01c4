"""Keeps garbage collections short while requests hold many objects.

A full collection looks at every object in one turn of the event loop. The objects of a request
contain no reference cycles, so it would find nothing among them: it is put off.

A young collection looks at the objects that were made since the last one, and at all that they
refer to. It begins when 2,000 more objects were made than freed. If one request is read while the
objects of another are freed, that may be never, and then a list of 100,000 entries is looked at in
one turn. So there is one after each slice. It takes some microseconds, and finds lists short that
are still being filled.
"""

import gc

_NEVER = 2**31 - 1
_YOUNG = 1  # the youngest generations, up to this one


def collect_young() -> None:
    """Look at the objects that a slice has made: no later collection but a full one does."""
    gc.collect(_YOUNG)


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
