"""Records of an archive as a producer takes them, and as a consumer gives them back."""

from collections.abc import Iterator
from typing import NamedTuple

import pyarrow as pa

from odradek.pipeline.client_values import Headers, headers_of, times_ms
from odradek.pipeline.jobs.job_error import JobError

COLUMNS = ("key", "value", "offset", "timestamp", "headers")
_US_PER_MS = 1000


class OutgoingRecord(NamedTuple):
    """One record; `offset` is the source's. Without headers they are []."""

    offset: int
    key: bytes | None
    value: bytes | None
    timestamp_ms: int
    headers: Headers

    def content(self, *, with_time: bool) -> tuple[object, ...]:
        """What tells whether two are the same."""
        return self.key, self.value, self.headers, self.timestamp_ms if with_time else None


def outgoing(table: pa.Table) -> Iterator[OutgoingRecord]:
    """Each of the records."""
    none: Headers = []
    return map(
        OutgoingRecord,
        table["offset"].to_pylist(),
        table["key"].to_pylist(),
        table["value"].to_pylist(),
        times_ms(table["timestamp"]).tolist(),
        (headers or none for headers in headers_of(table["headers"])),
    )


def without_time(table: pa.Table) -> int:
    """How many get another timestamp."""
    stamps = table["timestamp"].cast(pa.int64()).to_numpy() // _US_PER_MS
    return int((stamps == 0).sum())


def check_columns(schema: pa.Schema, place: str) -> None:
    """Raises JobError where values have not been kept."""
    missing = [name for name in COLUMNS if name not in schema.names]
    if missing:
        raise JobError(f"{place} has no column {', '.join(missing)}: it cannot be replayed")
