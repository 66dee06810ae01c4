"""Converts columns of Arrow to the values that librdkafka's client takes."""

from collections.abc import Iterator
from itertools import repeat
from typing import Final

import pyarrow as pa

from odradek.pipeline.decoding.varints import Ints

NOW_MS: Final = 0  # librdkafka stamps a record with this timestamp with the current time
_INSTEAD_OF_0_MS = 1
_US_PER_MS = 1000

Headers = list[tuple[str, str | bytes | None]]


def times_ms(column: pa.Array | pa.ChunkedArray) -> Ints:
    """Convert Spark's timestamps, which are microseconds, to milliseconds since 1970, as int64.

    Null becomes NOW_MS (0). A timestamp of 0 ms becomes 1, because it would mean "now".
    """
    numbers: Ints = column.cast(pa.int64()).fill_null(NOW_MS).to_numpy() // _US_PER_MS
    numbers[(numbers == NOW_MS) & column.is_valid().to_numpy(zero_copy_only=False)] = (
        _INSTEAD_OF_0_MS
    )
    return numbers


def headers_of(column: pa.Array | pa.ChunkedArray) -> Iterator[Headers | None]:
    """Return the headers of each row, or None for a row without headers."""
    if column.null_count == len(column):
        return repeat(None, len(column))
    return (
        [(each["key"], each["value"]) for each in pairs] if pairs else None
        for pairs in column.to_pylist()
    )
