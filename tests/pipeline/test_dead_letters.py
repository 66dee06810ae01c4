"""Rows that a schema or a condition refuses: decoded with a reason, and sent to their own topic."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

pytest.importorskip("pyspark")

from confluent_kafka import Producer

from odradek.pipeline.dead_letters import (
    decode_json,
    decode_registry,
    fail_at_errors,
    with_dead_letters,
)
from odradek.pipeline.option_values import OptionError
from odradek.pipeline.registry.values import RegistryError
from tests.conformance.clients.client import Got
from tests.conformance.clients.confluent_client import ConfluentKafka
from tests.pipeline.registry.test_registry_values import avro, record
from tests.support.broker_process import BrokerProcess
from tests.support.lengths import only_long
from tests.support.schema_registry import framed, schema_registry
from tests.support.topics import create_topic

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

LIMIT_SECONDS = 60.0
SCHEMA = "id BIGINT NOT NULL, name STRING, at TIMESTAMP, inner STRUCT<x: INT NOT NULL>"
MISFIT = "value: not JSON that matches the schema"
JSON_VALUES: dict[bytes | None, str | None] = {
    b'{"id": 1}': None,
    b' {"id": 1, "unknown": [1, {}], "inner": {"x": 1}} ': None,
    b'{"id": 1, "at": "2024-02-29T12:00:00Z", "name": "\\u00e9"}': None,
    None: None,
    b"": MISFIT,
    b"null": MISFIT,
    b"1": MISFIT,
    b'{"id": 1': MISFIT,
    b'{"id": 1} x': MISFIT,
    b'{"id": 1}{"id": 2}': MISFIT,
    b'{"id": 1}, {"id": 2}': MISFIT,
    b'{"id": 1}],"other":[{"id": 2}': MISFIT,
    b'{"id": 1}],"r":[{"id": 2}': MISFIT,
    b'{"id": 1}] [{"id": 2}': MISFIT,
    b'[{"id": 1}]': MISFIT,
    b'{"id": 1.5}': MISFIT,
    b'{"id": "1"}': MISFIT,
    b'{"id": 9223372036854775808}': MISFIT,
    b'{"id": 1, "at": "yesterday"}': MISFIT,
    b'{"id": 1, "inner": 5}': MISFIT,
    b'{"id": 1, "inner": {"x": "y"}}': MISFIT,
    b'{"name": "x"}': "value: id is missing",
    b'{"id": null}': "value: id is missing",
    b'{"id": 1, "inner": {}}': "value: inner.x is missing",
    b'{"id": 1, "name": "\xff"}': "value: not UTF-8",
}


def frame_of(spark: "SparkSession", *values: bytes | None) -> "DataFrame":
    rows = [(None if value is None else bytearray(value),) for value in values]
    return spark.createDataFrame(rows, "value binary")


def test_json_is_decoded_and_the_error_says_why_it_is_not(spark: "SparkSession") -> None:
    rows = decode_json(frame_of(spark, *JSON_VALUES), SCHEMA).collect()
    found = {None if row.value is None else bytes(row.value): row.error for row in rows}
    assert found == JSON_VALUES
    first, spaced, third = (row.decoded for row in rows[:3])
    assert (first.id, first.name, first.inner) == (1, None, None)
    assert spaced.inner.x == 1
    assert (str(third["at"]), third.name) == ("2024-02-29 12:00:00", "é")
    assert all(row.decoded is None for row in rows if row.error)


def test_errors_of_several_columns_and_of_the_users_condition_come_together(
    spark: "SparkSession",
) -> None:
    frame = spark.sql(
        "SELECT 'x' AS key, '{\"id\": 1}' AS value UNION ALL SELECT '7', '{' UNION ALL SELECT '8', "
        "'{\"id\": 2}'"
    )
    frame = decode_json(frame, "id BIGINT")
    frame = decode_json(frame, "INT", column="key", into="number")
    found = frame.selectExpr(
        "number", "decoded.id", "coalesce(error, if(number = 8, 'an 8', null)) AS error"
    )
    assert sorted(map(tuple, found.collect()), key=str) == [
        (7, None, MISFIT),
        (8, 2, "an 8"),
        (None, 1, "key: not JSON that matches the schema"),
    ]


def test_a_schema_that_cannot_be_checked_is_refused(spark: "SparkSession") -> None:
    with pytest.raises(OptionError, match="NOT NULL in an array or a map cannot be checked"):
        decode_json(frame_of(spark, b""), "a ARRAY<STRUCT<x: INT NOT NULL>>")


def test_no_filter_hides_a_row_at_which_the_query_shall_fail(spark: "SparkSession") -> None:
    frame = decode_json(frame_of(spark, b'{"id": 1}', b'{"id": 2}'), "id BIGINT")
    assert fail_at_errors(frame).where("decoded.id > 1").count() == 1
    frame = decode_json(frame_of(spark, b'{"id": 1}', b"{"), "id BIGINT")
    with pytest.raises(Exception, match="cannot be decoded: value: not JSON that matches"):
        fail_at_errors(frame).where("decoded.id > 0").collect()


def test_dead_letters_need_the_columns_that_they_are_made_of(spark: "SparkSession") -> None:
    rows = spark.sql("SELECT 'a' AS value, 't' AS topic, 'wrong' AS error")
    for checked, columns in (
        (rows, ["value"]),
        (rows.drop("error"), ["topic", "value"]),
        (rows.drop("value"), ["topic"]),
    ):
        with pytest.raises(OptionError, match=r"need a column '(topic|error|value)'"):
            with_dead_letters(checked, lambda good, names=columns: good.select(*names), "bad")
    # What a row does not have is not in its dead letter, either.
    [letter] = with_dead_letters(rows.drop("topic"), lambda _: rows.where("false"), "bad").collect()
    assert (letter.topic, bytes(letter.value)) == ("bad", b"a")
    assert [(each.key, bytes(each.value)) for each in letter.headers] == [
        ("odradek.error.message", b"wrong")
    ]


# --- streams


def order(number: int) -> bytes:
    """Every tenth is bad; amounts go from 0 to 19."""
    return b"{" if number % 10 == 7 else json.dumps({"id": number, "amount": number % 20}).encode()


class Stream:
    """A stream from the topic to its topics -large and -bad, both with two partitions."""

    def __init__(self, broker: BrokerProcess, topic: str, root: Path) -> None:
        self.topic, self._bootstrap, self._root = topic, broker.bootstrap, root
        self._path = str(broker.data)
        self._producer = Producer({"bootstrap.servers": broker.bootstrap})
        for name in (topic, f"{topic}-large", f"{topic}-bad"):
            create_topic(broker.bootstrap, name, 2)

    def send(self, values: Sequence[bytes]) -> None:
        """To the partitions in turn, with its number as the key."""
        for number, value in enumerate(values):
            self._producer.produce(
                self.topic, value, str(number), partition=number % 2, headers=[("own", b"1")]
            )
        assert self._producer.flush(LIMIT_SECONDS) == 0

    def source(self, spark: "SparkSession") -> "DataFrame":
        reader = spark.readStream.format("odradek").option("path", self._path)
        reader = reader.option("subscribe", self.topic).option("startingOffsets", "earliest")
        return reader.option("includeHeaders", "true").load()

    def large(self, orders: "DataFrame") -> "DataFrame":
        return orders.where("decoded.amount >= 10").selectExpr(
            f"'{self.topic}-large' AS topic", "key", "to_json(decoded) AS value"
        )

    def run(self, rows: "DataFrame", checkpoint: str = "checkpoint") -> None:
        """Until all that is there has been read."""
        writer = rows.writeStream.format("odradek")
        query = (
            writer.option("kafka.bootstrap.servers", self._bootstrap)
            .option("checkpointLocation", str(self._root / checkpoint))
            .trigger(availableNow=True)
            .start()
        )
        assert query.awaitTermination(LIMIT_SECONDS)

    def written(self, name: str, count: int) -> list[Got]:
        reader = ConfluentKafka().reader(self._bootstrap, f"{self.topic}-{name}", [0, 1])
        try:
            return sorted(reader.read(count), key=lambda each: each.value or b"")
        finally:
            reader.close()


@pytest.fixture
def stream(broker: BrokerProcess, topic: str, tmp_path: Path) -> Stream:
    return Stream(broker, topic, tmp_path)


def values(got: Sequence[Got]) -> list[bytes | None]:
    return [each.value for each in got]


def headers(got: Got) -> Mapping[str, bytes | None]:
    return dict(got.headers)


def test_a_stream_writes_each_row_once_either_as_a_result_or_as_a_dead_letter(
    spark: "SparkSession", stream: Stream
) -> None:
    stream.send([order(number) for number in range(100)])
    orders = decode_json(stream.source(spark), "id BIGINT NOT NULL, amount BIGINT")
    rows = with_dead_letters(orders, stream.large, f"{stream.topic}-bad")
    stream.run(rows)
    large = [order(number).replace(b" ", b"") for number in range(100)]
    large = sorted(each for each in large if each != b"{" and json.loads(each)["amount"] >= 10)
    assert values(stream.written("large", len(large))) == large
    bad = stream.written("bad", 10)
    assert values(bad) == [b"{"] * 10
    [letter] = [each for each in bad if each.key == b"17"]
    found = dict(headers(letter))
    assert found.pop("odradek.error.timestamp") is not None
    assert found == {
        "own": b"1",
        "odradek.error.topic": stream.topic.encode(),
        "odradek.error.partition": b"1",
        "odradek.error.offset": b"8",
        "odradek.error.message": MISFIT.encode(),
    }
    stream.send([b'{"id": 200, "amount": 15}', b"}"])
    stream.run(rows)
    assert len(stream.written("large", len(large) + 1)) == len(large) + 1
    assert values(stream.written("bad", 11))[-1] == b"}"
    with pytest.raises(Exception, match=rf"{stream.topic} 1 3 .* cannot be decoded: value: not"):
        stream.run(stream.large(fail_at_errors(orders)), "another checkpoint")


@only_long("dead letters of JSON are written above")
def test_values_of_a_schema_registry_are_decoded_and_bad_ones_are_dead_letters(
    spark: "SparkSession", stream: Stream
) -> None:
    schema = record({"name": "id", "type": "long"}, {"name": "amount", "type": "double"})
    old = record({"name": "id", "type": "int"}, {"name": "amount", "type": "float"})
    subject = f"{stream.topic}-value"
    with schema_registry() as registry:
        at = {"url": registry.url}
        with pytest.raises(RegistryError, match=r"the schema of .*not found"):
            decode_registry(stream.source(spark), "avro", subject, at)
        numbers = {each: registry.register(subject, each) for each in (old, schema)}
        good = [
            framed(numbers[each], avro(each, {"id": number, "amount": 5.0 * number}))
            for number, each in enumerate([schema, old, schema, old])
        ]
        stream.send([*good, b"bad"])
        orders = decode_registry(stream.source(spark), "avro", subject, at)
        stream.run(with_dead_letters(orders, stream.large, f"{stream.topic}-bad"))
    large = values(stream.written("large", 2))
    assert large == [b'{"id":2,"amount":10.0}', b'{"id":3,"amount":15.0}']
    [letter] = stream.written("bad", 1)
    assert letter.value == b"bad"
    assert (headers(letter)["odradek.error.message"] or b"").startswith(b"value: ")
