"""Long work in the background: one part in each turn of the event loop, whatever is waiting."""

from collections import deque
from collections.abc import Callable, Iterator


class PartQueue:
    """Iterators that are advanced in turn. Each item is a part that takes a millisecond or two."""

    def __init__(self, call_soon: Callable[..., object]) -> None:
        """`call_soon` is that of the event loop."""
        self._call_soon = call_soon
        self._waiting: deque[Iterator[object]] = deque()

    def add(self, parts: Iterator[object]) -> None:
        """Advance `parts` until it ends: now if nothing else waits, and then in later turns.

        What it has looked up before a yield may have changed after it. An error ends it, and no
        other.
        """
        self._waiting.append(parts)
        if len(self._waiting) == 1:
            self._advance()

    def _advance(self) -> None:
        """Make one part of the first iterator, which is the last one after it."""
        parts = self._waiting[0]
        is_over = True
        try:
            for _ in parts:
                is_over = False
                break
        finally:
            self._waiting.popleft()
            if not is_over:
                self._waiting.append(parts)
            if self._waiting:
                self._call_soon(self._advance)
