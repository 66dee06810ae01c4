"""A hash of all rows of a task, which does not depend on their order.

A task stores the hash when it commits its rows (written_batches.py). If Spark runs the task again,
the hash shows whether it has the same rows: then they are not written twice.

Spark promises the same rows when a task runs again, and not the same order: after a shuffle, a task
takes the blocks as they arrive. So the hashes of the rows are added up. XXH3 is fast, and its
results are the same in all versions.
"""

from collections.abc import Iterable, Sequence
from itertools import repeat

from xxhash import xxh3_64_intdigest as xxh3

from .rows import OutgoingBatch

_MODULUS = 1 << 64
_NULL = b"null: \xd1\x9c\x03\x8e\x5a\xb7\x44\x1f"  # no value that a user would write


class RowsDigest:
    """Takes the rows batch by batch. How they are divided into batches does not matter."""

    def __init__(self) -> None:
        self.rows = 0
        self._sum = 0

    def add(self, batch: OutgoingBatch) -> None:
        """Add rows. A part of a record is hashed with the hash of the parts before it as seed."""
        hashes: Iterable[int] = repeat(0, len(batch.value_column))
        for part in (batch.values, batch.keys):
            if part is not None:
                hashes = map(xxh3, _without_null(part), hashes)
        for others in (batch.topics, batch.partitions, batch.timestamps_ms, batch.headers):
            if others is not None:
                hashes = map(xxh3, map(str.encode, map(repr, others)), hashes)
        self._sum = (self._sum + sum(hashes)) % _MODULUS
        self.rows += len(batch.value_column)

    def text(self) -> str:
        """Return the hash as 16 hexadecimal digits."""
        return f"{self._sum:016x}"


def _without_null(part: Sequence[bytes | None]) -> Sequence[bytes]:
    return [_NULL if each is None else each for each in part]
