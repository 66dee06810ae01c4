"""Records of an archive as a producer takes them, and as a consumer gives them back."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import pyarrow as pa

from ..job_error import JobError

COLUMNS = ("key", "value", "offset", "timestamp", "headers")
_US_PER_MS = 1000
_INSTEAD_OF_0_MS = 1

Headers = list[tuple[str, str | bytes | None]]  # as librdkafka's client types them


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
    stamps = table["timestamp"].cast(pa.int64()).to_numpy() // _US_PER_MS
    stamps[stamps == 0] = _INSTEAD_OF_0_MS
    columns = (table["offset"].to_pylist(), table["key"].to_pylist(), table["value"].to_pylist())
    no_headers: Headers = []
    headers: Iterable[Headers] = [no_headers] * table.num_rows
    if table["headers"].null_count < table.num_rows:
        headers = [
            [(each["key"], each["value"]) for each in pairs] if pairs else no_headers
            for pairs in table["headers"].to_pylist()
        ]
    return map(OutgoingRecord, *columns, stamps.tolist(), headers)


def without_time(table: pa.Table) -> int:
    """How many get another timestamp."""
    stamps = table["timestamp"].cast(pa.int64()).to_numpy() // _US_PER_MS
    return int((stamps == 0).sum())


def check_columns(schema: pa.Schema, place: str) -> None:
    """Raises JobError where values have not been kept."""
    missing = [name for name in COLUMNS if name not in schema.names]
    if missing:
        raise JobError(f"{place} has no column {', '.join(missing)}: it cannot be replayed")
