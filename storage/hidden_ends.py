"""Transactions that have ended with a marker which readers do not see yet.

A marker at or after the high watermark is not synced (`flush.messages`). It may still be lost, and
the transaction may then end in another way. So until the marker is visible, the transaction is
unstable like an open one. Kafka: ProducerStateManager.unreplicatedTxns.
"""

from collections import deque


class HiddenEnds:
    """The first offsets of such transactions and the offsets of their markers, which ascend."""

    __slots__ = ("_ends",)

    def __init__(self) -> None:
        self._ends: deque[tuple[int, int]] = deque()

    def add(self, marker_offset: int, first_offset: int) -> None:
        """Add a transaction whose marker was appended and is not visible."""
        self._ends.append((marker_offset, first_offset))

    def drop_visible(self, high_watermark: int) -> None:
        """Forget the markers before `high_watermark`."""
        while self._ends and self._ends[0][0] < high_watermark:
            self._ends.popleft()

    def first_offset(self, high_watermark: int) -> int | None:
        """The first offset of the oldest transaction, or None."""
        if not self._ends:
            return None
        self.drop_visible(high_watermark)
        return min((first_offset for _, first_offset in self._ends), default=None)

    def truncate_to(self, offset: int) -> None:
        """Forget the markers at `offset` and after it."""
        while self._ends and self._ends[-1][0] >= offset:
            self._ends.pop()
