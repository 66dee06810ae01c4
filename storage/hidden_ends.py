"""Transactions that have ended with a marker which readers do not see yet.

A marker at or after the high watermark is not synced (`flush.messages`). It may still be lost, and
the transaction may then end in another way. So until the marker is visible, the transaction is
unstable like an open one. Kafka: ProducerStateManager.unreplicatedTxns.
"""


class HiddenEnds:
    """The first offsets of such transactions, by the offset of the marker."""

    __slots__ = ("_first_offsets",)

    def __init__(self) -> None:
        self._first_offsets: dict[int, int] = {}

    def add(self, marker_offset: int, first_offset: int) -> None:
        """Add a transaction whose marker was appended and is not visible."""
        self._first_offsets[marker_offset] = first_offset

    def first_offset(self, high_watermark: int) -> int | None:
        """The first offset of the oldest one, or None."""
        if not self._first_offsets:
            return None
        for marker_offset in list(self._first_offsets):
            if marker_offset < high_watermark:
                del self._first_offsets[marker_offset]
        return min(self._first_offsets.values(), default=None)

    def truncate_to(self, offset: int) -> None:
        """Forget the markers at `offset` and after it."""
        for marker_offset in list(self._first_offsets):
            if marker_offset >= offset:
                del self._first_offsets[marker_offset]
