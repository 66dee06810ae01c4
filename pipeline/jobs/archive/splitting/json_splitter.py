"""Parses values that are JSON objects into columns, without a Python object for each record.

Arrow's JSON reader parses all values of a batch at once. It reads a sequence of objects and does
not know which record each is from. So each value is wrapped in a list of two elements: the value,
and an object with the value's number, by a name that nobody can guess. Then no value can end the
list, shift the others or count twice, whatever it contains. If the reader fails, the batch is
halved repeatedly until the records that make it fail are found.
"""

import secrets
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj

from odradek.pipeline.jobs.archive.parquet.parquet_format import RECORD_SCHEMA

from .value_columns import DEAD_LETTER_SCHEMA, ValueColumns


class JsonSplitter:
    """A ValueSplitter of JSON objects."""

    def __init__(self, schema: ValueColumns) -> None:
        self._schema = schema
        self._kind = schema.kind
        self._number = secrets.token_hex(8)

    def split(self, batch: pa.RecordBatch) -> tuple[pa.RecordBatch, pa.RecordBatch | None]:
        """See ValueSplitter."""
        parsed: list[pa.StructArray] = []
        valid: list[pa.RecordBatch] = []
        invalid: list[pa.RecordBatch] = []
        for part, values, error in self._parts(batch):
            if values is None:
                errors = pa.array([error] * part.num_rows, pa.string())
                invalid.append(pa.record_batch([*part.columns, errors], schema=DEAD_LETTER_SCHEMA))
            else:
                valid.append(part)
                parsed.append(values)
        records = _concatenated(valid, RECORD_SCHEMA)
        values = pa.concat_arrays(parsed or [pa.array([], self._kind)])
        bad = _concatenated(invalid, DEAD_LETTER_SCHEMA) if invalid else None
        return self._schema.with_columns(records, values), bad

    def _parts(
        self, batch: pa.RecordBatch
    ) -> Iterator[tuple[pa.RecordBatch, pa.StructArray | None, str]]:
        """Yield the records in order, in parts: with values, or a single one with an error."""
        waiting = [batch] if batch.num_rows else []
        while waiting:
            part = waiting.pop()
            try:
                yield part, self._parse(part["value"]), ""
            except (pa.ArrowInvalid, pa.ArrowNotImplementedError, UnicodeDecodeError) as error:
                if part.num_rows == 1:
                    yield part, None, _message(error)
                    continue
                half = part.num_rows // 2
                waiting += [part.slice(half), part.slice(0, half)]

    def _parse(self, values: pa.BinaryArray) -> pa.StructArray:
        """Return one object per value; null for null. Raises ArrowInvalid."""
        number = pa.field(self._number, pa.int64())
        element = pa.struct([*_reader_type(self._kind), number])
        lines = _json_lines(values, self._number)
        table = pj.read_json(
            pa.BufferReader(lines),
            read_options=pj.ReadOptions(use_threads=False, block_size=len(lines) + 1),
            parse_options=pj.ParseOptions(
                explicit_schema=pa.schema([pa.field("value", pa.list_(element))]),
                unexpected_field_behavior="ignore",
            ),
        ).combine_chunks()
        pairs = table["value"].combine_chunks()
        elements = pairs.flatten()
        expected = np.arange(len(values))
        are_pairs = pairs.value_lengths().equals(pa.array([2] * len(values), pa.int32()))
        numbers = pc.struct_field(elements, self._number)
        if not are_pairs or not numbers.take(2 * expected + 1).equals(pa.array(expected)):
            raise pa.ArrowInvalid("the value is not one JSON object")
        objects = elements.take(2 * expected)
        parsed = pa.StructArray.from_arrays(
            objects.flatten()[:-1], fields=list(element)[:-1], mask=objects.is_null()
        ).cast(_nullable(self._kind))
        self._check_required(parsed, values)
        return parsed

    def _check_required(self, parsed: pa.StructArray, values: pa.BinaryArray) -> None:
        for field, column in zip(self._kind, parsed.flatten(), strict=True):
            if not field.nullable and column.null_count > values.null_count:
                raise pa.ArrowInvalid(f"the field {field.name} is missing or null")


def _json_lines(values: pa.BinaryArray, number: str) -> memoryview:
    """Return a line for each value. A line break in a value can only be white space in JSON."""
    texts = pc.fill_null(values, b"null").cast(pa.string())  # raises for invalid UTF-8
    numbers = pa.array(np.arange(len(values))).cast(pa.string())
    lines = pc.binary_join_element_wise(
        '{"value":[',
        pc.replace_substring(texts, "\n", " "),
        f',{{"{number}":',
        numbers,
        "}]}\n",
        "",
    )
    # The buffer of a string array is the concatenated lines.
    offsets = np.frombuffer(lines.buffers()[1], np.int32)[lines.offset :]
    data = lines.buffers()[2]
    return memoryview(data)[int(offsets[0]) : int(offsets[len(lines)])]


def _reader_type(kind: pa.DataType) -> pa.DataType:
    """Return the type to read with: the reader parses no dates, so they are cast afterwards."""
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(field.name, _reader_type(field.type)) for field in kind])
    if pa.types.is_list(kind):
        return pa.list_(pa.field("element", _reader_type(kind.value_type)))
    return pa.string() if pa.types.is_date(kind) else kind


def _nullable(kind: pa.StructType) -> pa.StructType:
    return pa.struct([field.with_nullable(True) for field in kind])


def _concatenated(batches: list[pa.RecordBatch], schema: pa.Schema) -> pa.RecordBatch:
    if len(batches) == 1:
        return batches[0]
    return pa.concat_batches(batches) if batches else pa.RecordBatch.from_pylist([], schema)


def _message(error: Exception) -> str:
    return str(error).removesuffix(" in row 0").replace("/value/[]", "")
