"""Converts Arrow's rows to records for the client, with the columns of Spark's Kafka sink."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import repeat
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from odradek.pipeline.client_values import NOW_MS, Headers, headers_of, times_ms
from odradek.pipeline.option_values import OptionError

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

ANY_PARTITION = -1
_TYPES = {
    "key": ("binary", "string"),
    "value": ("binary", "string"),
    "topic": ("string",),
    "partition": ("int",),
    "headers": ("array<struct<key:string,value:binary>>",),
    "timestamp": ("timestamp",),
}


class WriteError(RuntimeError):
    """Rows could not be written; the message says why."""


# One record: topic, value, key, partition, milliseconds since 1970, headers. A partition of -1 is
# chosen by the key, as Java clients do. A plain tuple, because there are millions of them.
OutgoingRow = tuple[str, bytes | None, bytes | None, int, int, Headers | None]


@dataclass(frozen=True, kw_only=True)
class OutgoingBatch:
    """Rows as records, part by part. A part is None if no row has it.

    `topics` is None if all rows go to `topic`. `value_column` and `key_column` are binary.
    """

    topic: str | None
    topics: Sequence[str] | None
    value_column: pa.Array
    key_column: pa.Array | None
    partitions: Sequence[int] | None
    timestamps_ms: Sequence[int] | None
    headers: Sequence[Headers | None] | None

    @cached_property
    def values(self) -> Sequence[bytes | None]:
        """The value of each row."""
        found: list[bytes | None] = self.value_column.to_pylist()
        return found

    @cached_property
    def keys(self) -> Sequence[bytes | None] | None:
        """The key of each row."""
        return None if self.key_column is None else self.key_column.to_pylist()

    @property
    def has_only_columns(self) -> bool:
        """Whether all that the rows have is in `topic`, `key_column` and `value_column`."""
        others = (self.topics, self.partitions, self.timestamps_ms, self.headers)
        return all(each is None for each in others)

    def rows(self) -> Iterator[OutgoingRow]:
        """Return the rows one by one."""
        return zip(
            self.topics or repeat(self.topic or ""),
            self.values,
            self.keys or repeat(None),
            self.partitions or repeat(ANY_PARTITION),
            self.timestamps_ms or repeat(NOW_MS),
            self.headers or repeat(None),
            strict=False,
        )


def check_columns(schema: "StructType", topic: str | None, *, with_timestamp: bool) -> None:
    """Check that these columns can be written. Raises OptionError."""
    found = {field.name: field.dataType.simpleString() for field in schema}
    if len(found) < len(schema):
        raise OptionError(f"Duplicate column: {schema.simpleString()}")
    if "value" not in found:
        raise OptionError(f"Required attribute 'value' not found: columns are {', '.join(found)}")
    if topic is None and "topic" not in found:
        raise OptionError(
            "topic option required when no 'topic' attribute is present. "
            "Use the topic option for setting a topic."
        )
    if with_timestamp and "timestamp" not in found:
        raise OptionError("includeTimestamp requires a column 'timestamp'")
    ignored = {"topic": topic is not None, "timestamp": not with_timestamp}
    for name, kinds in _TYPES.items():
        if name in found and found[name] not in kinds and not ignored.get(name):
            raise OptionError(f"Column '{name}' is {found[name]}; cast it to {' or '.join(kinds)}")


def outgoing_batch(
    batch: pa.RecordBatch, topic: str | None, *, with_timestamp: bool
) -> OutgoingBatch:
    """Return the rows as records; `topic` overrides their topics. Raises WriteError."""
    columns = dict(zip(batch.schema.names, batch.columns, strict=True))
    has = columns.keys().__contains__
    return OutgoingBatch(
        topic=topic,
        topics=_topics(columns["topic"]) if topic is None else None,
        value_column=_binary(columns["value"]),
        key_column=_binary(columns["key"]) if has("key") else None,
        partitions=_partitions(columns["partition"]) if has("partition") else None,
        timestamps_ms=_timestamps_ms(columns["timestamp"]) if with_timestamp else None,
        headers=list(headers_of(columns["headers"])) if has("headers") else None,
    )


def distinct_topics(batch: pa.RecordBatch) -> set[str]:
    """Return the topics that the rows name. Raises WriteError."""
    return set(_topics(pc.unique(batch.column("topic"))))


def _topics(column: pa.Array) -> Sequence[str]:
    if column.null_count:
        raise WriteError(
            "null topic present in the data. Use the topic option for setting a topic."
        )
    topics: list[str] = column.to_pylist()
    return topics


def _binary(column: pa.Array) -> pa.Array:
    """Return the column as bytes. Arrow's text is UTF-8 already."""
    if pa.types.is_string(column.type):
        return column.cast(pa.binary())
    if pa.types.is_large_string(column.type):
        return column.cast(pa.large_binary())
    return column


def _partitions(column: pa.Array) -> Sequence[int]:
    least = pc.min(column).as_py()
    if least is not None and least < 0:
        raise WriteError(f"Invalid partition: {least}. Partition number should be 0 or more")
    numbers: list[int] = column.fill_null(ANY_PARTITION).to_pylist()
    return numbers


def _timestamps_ms(column: pa.Array) -> Sequence[int]:
    numbers = times_ms(column)
    if (numbers < 0).any():
        raise WriteError(f"Invalid timestamp: {numbers.min()} ms. It should be 0 or more")
    found: list[int] = numbers.tolist()
    return found
