"""Builds a v2 record batch record by record, up to a size.

record_batch.build_batch takes all records at once. This one lets the caller do something else
between two records, and says when there is no room for another one.
"""

from .batch_header import HEADER_BYTES, NO_TIMESTAMP
from .record import Record, append_record
from .record_batch import with_header


class GrowingBatch:
    """An uncompressed batch of no producer, of at most `max_bytes`, or of one larger record."""

    def __init__(self, max_bytes: int) -> None:
        self.record_count = 0
        self._max_bytes = max_bytes
        self._content = bytearray()
        self._base_timestamp = NO_TIMESTAMP
        self._max_timestamp = NO_TIMESTAMP

    def add(self, record: Record) -> bool:
        """Add a record. Returns False, and adds nothing, if there is no room for it."""
        content, size = self._content, len(self._content)
        if not self.record_count:
            self._base_timestamp = record.timestamp_ms
        append_record(
            content, record, record.timestamp_ms - self._base_timestamp, self.record_count
        )
        if self.record_count and HEADER_BYTES + len(content) > self._max_bytes:
            del content[size:]
            return False
        self.record_count += 1
        self._max_timestamp = max(self._max_timestamp, record.timestamp_ms)
        return True

    def build(self) -> bytearray:
        """Return the batch. It must have a record."""
        return with_header(
            self._content, self.record_count, self._base_timestamp, self._max_timestamp
        )
