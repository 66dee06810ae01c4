"""Writes the Parquet files of an archive.

Compression is zstd, which suits the records of most topics. The level is 1: level 3 takes twice the
time and saves nothing on JSON in pages of 1 MiB. Dictionaries are used only for columns with
repeated values: for the values of messages, they would be tried and abandoned each time. Offsets
and timestamps are stored as differences. Statistics are written only for columns that queries
search by.
"""

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.parquet as pq

from odradek.pipeline.decoding.columns import schema_of

# Not the topic: the directory's name contains it, and some readers fail on a column in both.
RECORD_COLUMNS = ("key", "value", "partition", "offset", "timestamp", "timestampType", "headers")
RECORD_SCHEMA = schema_of(RECORD_COLUMNS)
ROW_GROUP_BYTES = 64 << 20
ZSTD_LEVEL = 1

_DELTA_ENCODED = frozenset({"offset", "timestamp"})
_NOT_REPEATED = frozenset({"value", "error", "headers.list.element.value"})
_NOT_SEARCHED = frozenset({"key", "timestampType", "headers.list.element.key"})


def open_writer(output: pa.NativeFile, schema: pa.Schema) -> pq.ParquetWriter:
    """Return a writer of a new file."""
    leaves = [leaf for field in schema for leaf in _leaves(field.name, field.type)]
    repeating = [leaf for leaf in leaves if leaf not in _NOT_REPEATED | _DELTA_ENCODED]
    searched = [leaf for leaf in leaves if leaf not in _NOT_REPEATED | _NOT_SEARCHED]
    return pq.ParquetWriter(
        output,
        schema,
        compression="zstd",
        compression_level=ZSTD_LEVEL,
        use_dictionary=repeating,
        column_encoding={leaf: "DELTA_BINARY_PACKED" for leaf in leaves if leaf in _DELTA_ENCODED},
        write_statistics=searched,
    )


def _leaves(path: str, kind: pa.DataType) -> Iterator[str]:
    """Yield the names of Parquet's columns for one of Arrow's."""
    if pa.types.is_struct(kind):
        for field in kind:
            yield from _leaves(f"{path}.{field.name}", field.type)
    elif pa.types.is_list(kind):
        yield from _leaves(f"{path}.list.element", kind.value_type)
    elif pa.types.is_map(kind):
        yield from _leaves(f"{path}.key_value.key", kind.key_type)
        yield from _leaves(f"{path}.key_value.value", kind.item_type)
    else:
        yield path
