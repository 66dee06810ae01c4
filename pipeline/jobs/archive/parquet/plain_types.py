"""Gives the columns of files the types of Arrow that the archive's own files have.

Parquet has one type for strings; which of Arrow's a reader gets is stored beside them by the
writer. Delta's library, for example, writes the rows that a DELETE leaves with views of strings;
other writers use dictionaries or large strings. Columns of different types cannot be concatenated,
and not all functions take them.
"""

import pyarrow as pa
from pyarrow import types


def with_plain_types(table: pa.Table) -> pa.Table:
    """Return the table with plain types; the same one if it has them."""
    schema = plain_schema(table.schema)
    return table if schema.equals(table.schema) else table.cast(schema)


def plain_schema(schema: pa.Schema) -> pa.Schema:
    """Return the schema with plain types."""
    return pa.schema([_plain_field(field) for field in schema])


def _plain_field(field: pa.Field) -> pa.Field:
    return field.with_type(_plain(field.type))


def _plain(kind: pa.DataType) -> pa.DataType:
    if types.is_dictionary(kind):
        return _plain(kind.value_type)
    if types.is_large_string(kind) or types.is_string_view(kind):
        return pa.string()
    if types.is_large_binary(kind) or types.is_binary_view(kind):
        return pa.binary()
    if types.is_list(kind) or types.is_large_list(kind):
        return pa.list_(_plain_field(kind.value_field))
    if types.is_struct(kind):
        return pa.struct([_plain_field(field) for field in kind])
    if types.is_map(kind):
        return pa.map_(_plain_field(kind.key_field), _plain_field(kind.item_field))
    return kind
