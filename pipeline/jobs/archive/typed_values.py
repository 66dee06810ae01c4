"""Values that are JSON objects, as columns of their own. No record becomes a Python object.

All values of a batch go through Arrow's JSON reader at once. It knows no records, only objects that
follow each other, so each value is wrapped with its number, in a list: whatever a value may be, it
can neither shift the others nor count twice. Where the reader stumbles, the batch is halved until
the records are found that it stumbles over.
"""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj

from odradek.pipeline.jobs.job_error import JobError

from .parquet_format import RECORD_SCHEMA

DEAD_LETTER_SCHEMA = RECORD_SCHEMA.append(pa.field("error", pa.string()))
_TAKEN = frozenset({*RECORD_SCHEMA.names, "topic", "date", "error"})


@dataclass(frozen=True, slots=True)
class TypedValues:
    """Makes columns of values as `kind` describes them. Raises JobError for names that clash."""

    kind: pa.StructType
    keep_value: bool = True

    def __post_init__(self) -> None:
        names = [field.name for field in self.kind]
        clashing = sorted({name for name in names if name in _TAKEN or names.count(name) > 1})
        if clashing:
            raise JobError(f"the schema has fields by names of other columns: {clashing}")

    @property
    def schema(self) -> pa.Schema:
        """Of sound records."""
        kept = [field for field in RECORD_SCHEMA if self.keep_value or field.name != "value"]
        return pa.schema([*kept, *(field.with_nullable(True) for field in self.kind)])

    def split(self, batch: pa.RecordBatch) -> tuple[pa.RecordBatch, pa.RecordBatch | None]:
        """The sound records with their columns, and the others with what is wrong with them."""
        parsed: list[pa.StructArray] = []
        sound: list[pa.RecordBatch] = []
        bad: list[pa.RecordBatch] = []
        for part, values, error in self._parts(batch):
            if values is None:
                errors = pa.array([error] * part.num_rows, pa.string())
                bad.append(pa.record_batch([*part.columns, errors], schema=DEAD_LETTER_SCHEMA))
            else:
                sound.append(part)
                parsed.append(values)
        return self._with_columns(sound, parsed), _one(bad, DEAD_LETTER_SCHEMA) if bad else None

    def _with_columns(
        self, sound: list[pa.RecordBatch], parsed: list[pa.StructArray]
    ) -> pa.RecordBatch:
        records = _one(sound, RECORD_SCHEMA)
        if not self.keep_value:
            records = records.drop_columns(["value"])
        fields = pa.concat_arrays(parsed).flatten() if parsed else self._nothing()
        return pa.record_batch([*records.columns, *fields], schema=self.schema)

    def _nothing(self) -> list[pa.Array]:
        return [pa.array([], field.type) for field in self.kind]

    def _parts(
        self, batch: pa.RecordBatch
    ) -> Iterator[tuple[pa.RecordBatch, pa.StructArray | None, str]]:
        """The records in their order: parts with their values, or what is wrong with one."""
        waiting = [batch] if batch.num_rows else []
        while waiting:
            part = waiting.pop()
            try:
                yield part, self._parse(part["value"]), ""
            except (pa.ArrowInvalid, pa.ArrowNotImplementedError, UnicodeDecodeError) as error:
                if part.num_rows == 1:
                    yield part, None, _said(error)
                    continue
                half = part.num_rows // 2
                waiting += [part.slice(half), part.slice(0, half)]

    def _parse(self, values: pa.BinaryArray) -> pa.StructArray:
        """One object per value; null for a null. Raises ArrowInvalid."""
        read_as = _as_text(self.kind)
        lines = _wrapped(values)
        table = pj.read_json(
            pa.BufferReader(lines),
            read_options=pj.ReadOptions(use_threads=False, block_size=len(lines) + 1),
            parse_options=pj.ParseOptions(
                explicit_schema=pa.schema(
                    [pa.field("number", pa.int64()), pa.field("value", pa.list_(read_as))]
                ),
                unexpected_field_behavior="ignore",
            ),
        ).combine_chunks()
        numbers = table["number"].combine_chunks()
        objects = table["value"].combine_chunks()
        alone = pc.all(pc.equal(objects.value_lengths(), 1)).as_py()
        if not alone or not numbers.equals(pa.array(np.arange(len(values)))):
            raise pa.ArrowInvalid("the value is not one JSON object")
        found = objects.flatten().cast(_nullable(self.kind))
        self._check_required(found, values)
        return found

    def _check_required(self, found: pa.StructArray, values: pa.BinaryArray) -> None:
        for field, column in zip(self.kind, found.flatten(), strict=True):
            if not field.nullable and column.null_count > values.null_count:
                raise pa.ArrowInvalid(f"the field {field.name} is missing or null")


def schema_id(schema: pa.Schema) -> str:
    """The same for the same columns, on any machine."""
    return hashlib.sha256(str(schema).encode()).hexdigest()[:12]


def _wrapped(values: pa.BinaryArray) -> memoryview:
    """A line for each value. A line break within one can only be white space."""
    texts = pc.fill_null(values, b"null").cast(pa.string())  # which makes sure that it is UTF-8
    numbers = pa.array(np.arange(len(values))).cast(pa.string())
    lines = pc.binary_join_element_wise(
        '{"number":', numbers, ',"value":[', pc.replace_substring(texts, "\n", " "), "]}\n", ""
    )
    # A string array's bytes are the lines, one behind the other.
    offsets = np.frombuffer(lines.buffers()[1], np.int32)[lines.offset :]
    data = lines.buffers()[2]
    return memoryview(data)[int(offsets[0]) : int(offsets[len(lines)])]


def _as_text(kind: pa.DataType) -> pa.DataType:
    """What Arrow's reader is told: it takes no text for a date, so that is cast afterwards."""
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(field.name, _as_text(field.type)) for field in kind])
    if pa.types.is_list(kind):
        return pa.list_(pa.field("element", _as_text(kind.value_type)))
    return pa.string() if pa.types.is_date(kind) else kind


def _nullable(kind: pa.StructType) -> pa.StructType:
    return pa.struct([field.with_nullable(True) for field in kind])


def _one(batches: list[pa.RecordBatch], schema: pa.Schema) -> pa.RecordBatch:
    if len(batches) == 1:
        return batches[0]
    return pa.concat_batches(batches) if batches else pa.RecordBatch.from_pylist([], schema)


def _said(error: Exception) -> str:
    return str(error).removesuffix(" in row 0").replace("/value/[]", "")
