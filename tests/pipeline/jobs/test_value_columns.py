"""JSON values as columns, and what is no JSON as dead letters."""

import json
import os
import pickle
import subprocess
import sys
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from odradek.pipeline.jobs import JobError
from odradek.pipeline.jobs.archive.parquet.parquet_format import RECORD_SCHEMA
from odradek.pipeline.jobs.archive.splitting.json_schema import parse_json_schema, read_json_schema
from odradek.pipeline.jobs.archive.splitting.value_columns import ValueColumns
from odradek.pipeline.jobs.archive.splitting.value_splitting import splitter_for
from tests.support.lengths import by_length

ORDER = {
    "id": "long",
    "tags": ["string"],
    "customer": {"name": "string", "born": "date"},
    "price": "decimal(10,2)",
}


def records(values: list[bytes | None]) -> pa.RecordBatch:
    count = len(values)
    rows = {
        "key": [b"k"] * count,
        "value": values,
        "partition": [3] * count,
        "offset": range(count),
        "timestamp": [0] * count,
        "timestampType": [0] * count,
        "headers": [None] * count,
    }
    return pa.record_batch(rows, schema=RECORD_SCHEMA)


def value_schema(schema: object = ORDER, **more: Any) -> ValueColumns:
    return ValueColumns(parse_json_schema(json.dumps(schema)), **more)


def test_fields_become_columns_beside_those_of_the_record() -> None:
    value = {"id": 1, "tags": ["a"], "customer": {"name": "x", "born": "2020-02-03"}, "price": 1.25}
    value["unknown"] = [1]
    sound, bad = splitter_for(value_schema()).split(records([json.dumps(value, indent=1).encode()]))
    assert bad is None
    (row,) = sound.to_pylist()
    assert row["value"] == json.dumps(value, indent=1).encode()
    assert (row["id"], row["tags"]) == (1, ["a"])
    assert row["customer"] == {"name": "x", "born": date(2020, 2, 3)}
    assert row["price"] == Decimal("1.25")
    assert sound.schema == value_schema().schema


def test_a_tombstone_and_missing_fields_are_nulls() -> None:
    sound, bad = splitter_for(value_schema()).split(records([None, b"{}", b'{"id": null}']))
    assert bad is None
    assert sound["id"].to_pylist() == sound["customer"].to_pylist() == [None] * 3


BAD = [
    b"no json",
    b"",
    b'{"id": 1',
    b'{"id": 1} {"id": 2}',
    b'{"id": 1}, {"id": 2}',
    b'{"id": 1}],"value":[{"id": 2}',
    b'{"id": 1}]}\n{"number":3,"value":[{"id": 2}',
    b'{"id": 1}],"other":[{"id": 2}',
    b'{"id": 1},{"id": 2}],"other":[{"id": 3}',
    b'{"id": 1},{"number":1}]}\n{"value":[{"id": 2}',
    b'{"id": "text"}',
    b'{"id": 1.5}',
    b'{"id": 99999999999999999999}',
    b'{"customer": {"born": "yesterday"}}',
    b'{"customer": 5}',
    b"5",
    b"[1]",
    b'{"tags": ["\xff"]}',
]


@pytest.mark.parametrize("value", BAD)
def test_a_bad_value_is_a_dead_letter_and_shifts_no_other(value: bytes) -> None:
    sound, bad = splitter_for(value_schema()).split(records([b'{"id": 10}', value, b'{"id": 12}']))
    assert bad is not None
    assert sound["id"].to_pylist() == [10, 12]
    assert sound["offset"].to_pylist() == [0, 2]
    (letter,) = bad.to_pylist()
    assert (letter["offset"], letter["value"], letter["key"]) == (1, value, b"k")
    assert letter["error"]


@settings(deadline=None, max_examples=by_length(15, 100))
@given(st.lists(st.one_of(st.integers(0, 99), st.sampled_from(BAD), st.none()), max_size=40))
def test_every_record_comes_out_once(drawn: list[int | bytes | None]) -> None:
    values = [b'{"id": %d}' % each if isinstance(each, int) else each for each in drawn]
    sound, bad = splitter_for(value_schema()).split(records(values))
    expected = [(n, each) for n, each in enumerate(drawn) if not isinstance(each, bytes)]
    columns = (sound["offset"].to_pylist(), sound["id"].to_pylist())
    assert list(zip(*columns, strict=True)) == expected
    letters = [] if bad is None else bad["offset"].to_pylist()
    assert letters == [n for n, each in enumerate(drawn) if isinstance(each, bytes)]


def test_a_required_field_must_be_there() -> None:
    schema = {
        "type": "struct",
        "fields": [{"name": "id", "type": "long", "nullable": False, "metadata": {}}],
    }
    sound, bad = splitter_for(value_schema(schema)).split(
        records([b'{"id": 1}', b"{}", b'{"id": null}', None])
    )
    assert bad is not None
    assert sound["offset"].to_pylist() == [0, 3]
    assert set(bad["error"].to_pylist()) == {"the field id is missing or null"}


def test_values_can_be_dropped_where_columns_are_enough() -> None:
    sound, bad = splitter_for(value_schema(keep_value=False)).split(records([b'{"id": 1}', b"x"]))
    assert "value" not in sound.schema.names
    assert bad is not None
    assert bad["value"].to_pylist() == [b"x"]


def test_the_work_of_tasks_can_be_sent_to_them() -> None:
    assert pickle.loads(pickle.dumps(value_schema())) == value_schema()


def test_a_schema_as_spark_writes_it_is_the_brief_one() -> None:
    spark = {
        "type": "struct",
        "fields": [
            {"name": "id", "type": "long", "nullable": True, "metadata": {}},
            {
                "name": "tags",
                "type": {"type": "array", "elementType": "string", "containsNull": True},
            },
            {
                "name": "customer",
                "type": {
                    "type": "struct",
                    "fields": [
                        {"name": "name", "type": "string"},
                        {"name": "born", "type": "date"},
                    ],
                },
            },
            {"name": "price", "type": "decimal(10,2)"},
        ],
    }
    assert parse_json_schema(json.dumps(spark)) == parse_json_schema(json.dumps(ORDER))


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("{", "not JSON"),
        ("[]", "not a type"),
        ("{}", "a struct with fields"),
        ('"long"', "a struct with fields"),
        ('{"a": "longer"}', "a: unknown type 'longer'; types are string"),
        ('{"a": "decimal(39,2)"}', "unknown type"),
        ('{"a": {"b": 5}}', "b: not a type: 5"),
        ('{"a": {"type": "map", "keyType": "string", "valueType": "long"}}', "a: a map"),
        ('{"type": "struct", "fields": [{"type": "long"}]}', "a field needs a name and a type"),
    ],
)
def test_an_invalid_schema_is_refused(text: str, reason: str, tmp_path: Path) -> None:
    path = tmp_path / "schema.json"
    path.write_text(text)
    with pytest.raises(JobError, match=r"schema\.json: ") as raised:
        read_json_schema(path)
    assert reason in str(raised.value)


def test_a_schema_file_is_utf_8_in_any_locale(tmp_path: Path) -> None:
    path = tmp_path / "schema.json"
    path.write_text('{"größe": "long"}', encoding="utf-8")
    program = (
        "from pathlib import Path\n"
        f"from {read_json_schema.__module__} import read_json_schema\n"
        f"assert read_json_schema(Path({str(path)!r})).field(0).name == 'gr\\xf6\\xdfe'\n"
    )
    locale = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    subprocess.run([sys.executable, "-c", program], check=True, env={**os.environ, **locale})


@pytest.mark.parametrize("name", ["offset", "topic", "date", "error"])
def test_a_field_by_the_name_of_another_column_is_refused(name: str) -> None:
    with pytest.raises(JobError, match=f"names of other columns: \\['{name}'\\]"):
        value_schema({name: "long"})
