"""Reads Parquet files with the types of Arrow that the archive's own files have.

Parquet has one type for strings; which of Arrow's a reader gets is stored beside them by the
writer. Delta's library, for example, writes the rows that a DELETE leaves with views of strings;
other writers use dictionaries or large strings. Columns of different types cannot be concatenated,
and not all functions take them.

Timestamps have several types, too. Spark writes those of UTC as INT96 by default: nanoseconds
without a zone for Arrow. Other settings and writers use milliseconds. Those that have no zone in
another type are local times (`timestamp_ntz` in Delta), and stay so.
"""

from collections.abc import Iterator, Sequence
from typing import Self

import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq
from pyarrow import types

_UNIT = "us"
_UTC = pa.timestamp(_UNIT, tz="UTC")


class PlainFile:
    """A Parquet file that is open for reading, with plain types."""

    def __init__(self, filesystem: pafs.FileSystem, path: str) -> None:
        """Open it. Raises OSError, ArrowInvalid if it is damaged."""
        self._file = pq.ParquetFile(
            path, filesystem=filesystem, pre_buffer=False, coerce_int96_timestamp_unit=_UNIT
        )
        leaves = [self._file.schema.column(number) for number in range(len(self._file.schema))]
        int96 = tuple(f"{leaf.path}." for leaf in leaves if leaf.physical_type == "INT96")
        self.schema = pa.schema(
            _plain_field(field, is_int96=any(path.startswith(f"{field.name}.") for path in int96))
            for field in self._file.schema_arrow
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def row_group(self, number: int, columns: Sequence[str] | None = None) -> pa.Table:
        """Return a row group, with all columns or those of these that the file has."""
        table = self._file.read_row_group(number, columns)
        plain = pa.schema(self.schema.field(name) for name in table.column_names)
        return table if plain.equals(table.schema) else table.cast(plain)

    def row_groups(self) -> Iterator[pa.Table]:
        """Yield all row groups with all columns."""
        yield from map(self.row_group, range(self._file.num_row_groups))


def _plain_field(field: pa.Field, *, is_int96: bool) -> pa.Field:
    return field.with_type(_plain(field.type, is_int96=is_int96))


def _plain(kind: pa.DataType, *, is_int96: bool) -> pa.DataType:
    if types.is_dictionary(kind):
        return _plain(kind.value_type, is_int96=is_int96)
    if types.is_large_string(kind) or types.is_string_view(kind):
        return pa.string()
    if types.is_large_binary(kind) or types.is_binary_view(kind):
        return pa.binary()
    if types.is_timestamp(kind):
        return pa.timestamp(_UNIT) if kind.tz is None and not is_int96 else _UTC
    if types.is_list(kind) or types.is_large_list(kind):
        return pa.list_(_plain_field(kind.value_field, is_int96=is_int96))
    if types.is_struct(kind):
        return pa.struct([_plain_field(field, is_int96=is_int96) for field in kind])
    if types.is_map(kind):
        return pa.map_(
            _plain_field(kind.key_field, is_int96=is_int96),
            _plain_field(kind.item_field, is_int96=is_int96),
        )
    return kind
