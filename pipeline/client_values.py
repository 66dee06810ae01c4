"""Values of Arrow's columns as librdkafka's client takes them."""

from collections.abc import Iterator
from itertools import repeat
from typing import Final

import pyarrow as pa

from .decoding.varints import Ints

NOW_MS: Final = 0  # what librdkafka takes for it
_INSTEAD_OF_0_MS = 1
_US_PER_MS = 1000

Headers = list[tuple[str, str | bytes | None]]


def times_ms(column: pa.Array | pa.ChunkedArray) -> Ints:
    """Milliseconds since 1970: int64, NOW_MS for null; the first becomes the second."""
    numbers: Ints = column.cast(pa.int64()).fill_null(NOW_MS).to_numpy() // _US_PER_MS
    numbers[(numbers == NOW_MS) & column.is_valid().to_numpy(zero_copy_only=False)] = (
        _INSTEAD_OF_0_MS
    )
    return numbers


def headers_of(column: pa.Array | pa.ChunkedArray) -> Iterator[Headers | None]:
    """Of each row; None where it has none."""
    if column.null_count == len(column):
        return repeat(None, len(column))
    return (
        [(each["key"], each["value"]) for each in pairs] if pairs else None
        for pairs in column.to_pylist()
    )
