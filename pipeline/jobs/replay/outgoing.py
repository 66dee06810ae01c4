"""Converts an archive's records to a producer's, which can be compared with a consumer's."""

from collections.abc import Iterator
from typing import NamedTuple

import pyarrow as pa

from odradek.pipeline.client_values import Headers, headers_of, times_ms
from odradek.pipeline.jobs import JobError

COLUMNS = ("key", "value", "offset", "timestamp", "headers")
_US_PER_MS = 1000


class OutgoingRecord(NamedTuple):
    """One record. `offset` is the source's. `headers` is [] if there are none."""

    offset: int
    key: bytes | None
    value: bytes | None
    timestamp_ms: int
    headers: Headers

    def content(self, *, with_time: bool) -> tuple[object, ...]:
        """Return what must be equal in two copies of a record."""
        return self.key, self.value, self.headers, self.timestamp_ms if with_time else None


def outgoing_records(table: pa.Table) -> Iterator[OutgoingRecord]:
    """Return the records of a table."""
    none: Headers = []
    return map(
        OutgoingRecord,
        table["offset"].to_pylist(),
        table["key"].to_pylist(),
        table["value"].to_pylist(),
        times_ms(table["timestamp"]).tolist(),
        (headers or none for headers in headers_of(table["headers"])),
    )


def count_changed_timestamps(table: pa.Table) -> int:
    """Return how many records have a timestamp of 0, which becomes 1."""
    stamps = table["timestamp"].cast(pa.int64()).to_numpy() // _US_PER_MS
    return int((stamps == 0).sum())


def check_columns(schema: pa.Schema, place: str) -> None:
    """Raise JobError if a column is missing, as the values are if they were not archived."""
    missing = [name for name in COLUMNS if name not in schema.names]
    if missing:
        raise JobError(f"{place} cannot be replayed: it has no column {', '.join(missing)}")
