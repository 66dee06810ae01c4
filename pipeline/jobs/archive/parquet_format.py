"""How the Parquet files of an archive are written.

zstd, for that is what the records of most topics gain from; of level 1, for level 3 takes twice the
time and saves nothing of JSON in pages of a mebibyte. Dictionaries only where values come again: of
values of messages they would be tried and given up each time. Offsets and times are stored as
differences. Statistics of what is searched by; those of values would only cost.
"""

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from odradek.pipeline.decoding.columns import schema_of

# Not the topic: the directory's name tells it, and some readers stumble over a column in both.
RECORD_COLUMNS = ("key", "value", "partition", "offset", "timestamp", "timestampType", "headers")
RECORD_SCHEMA = schema_of(RECORD_COLUMNS)
ROW_GROUP_BYTES = 64 << 20
ZSTD_LEVEL = 1

_AS_DIFFERENCES = frozenset({"offset", "timestamp"})
_NEVER_AGAIN = frozenset({"value", "error", "headers.list.element.value"})
_NEVER_SEARCHED = frozenset({"key", "timestampType", "headers.list.element.key"})


def open_writer(path: Path, schema: pa.Schema) -> pq.ParquetWriter:
    """A writer of a new file."""
    leaves = [leaf for field in schema for leaf in _leaves(field.name, field.type)]
    repeating = [leaf for leaf in leaves if leaf not in _NEVER_AGAIN | _AS_DIFFERENCES]
    searched = [leaf for leaf in leaves if leaf not in _NEVER_AGAIN | _NEVER_SEARCHED]
    return pq.ParquetWriter(
        path,
        schema,
        compression="zstd",
        compression_level=ZSTD_LEVEL,
        use_dictionary=repeating,
        column_encoding={leaf: "DELTA_BINARY_PACKED" for leaf in leaves if leaf in _AS_DIFFERENCES},
        write_statistics=searched,
    )


def _leaves(path: str, kind: pa.DataType) -> Iterator[str]:
    """The columns that Parquet makes of one of Arrow's."""
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
