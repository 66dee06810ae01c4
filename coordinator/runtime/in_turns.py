"""Work on soft state that is divided among turns of the event loop."""

from collections.abc import Callable, Iterator
from itertools import islice

# Each item takes a few microseconds.
ITEMS_PER_TURN = 100


class InTurns:
    """Does what need not be done at once, for example for each of a thousand members."""

    def __init__(self, call_soon: Callable[..., object]) -> None:
        """`call_soon` is that of the event loop."""
        self._call_soon = call_soon

    def run(self, work: Iterator[None]) -> None:
        """Advance `work` until it ends: ITEMS_PER_TURN times now, and in each turn after it.

        What it has looked up before a yield may have changed after it.
        """
        if sum(1 for _ in islice(work, ITEMS_PER_TURN)) == ITEMS_PER_TURN:
            self._call_soon(self.run, work)
