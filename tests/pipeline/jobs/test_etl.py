"""Jobs as Spark runs them, against a broker: from topics to topics."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest

pytest.importorskip("pyspark")

from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition

from odradek.pipeline.jobs import JobError
from odradek.pipeline.jobs.etl.job import Stop, dry_run, etl
from odradek.pipeline.jobs.etl.job_file import check_options, parse_job
from odradek.pipeline.jobs.etl.job_model import DecodingSpec, EtlJob, Sink
from odradek.pipeline.jobs.etl.plan import sink_rows
from odradek.pipeline.jobs.etl.sources import decode, decoded_column, error_column
from odradek.pipeline.jobs.etl.spark_reports import EtlBatch, EtlSummary
from odradek.pipeline.sink.write_options import Delivery
from odradek.tools.pipeline.etl_report import show_plan, topics_of
from tests.pipeline.jobs.test_etl_file import changed
from tests.pipeline.registry.test_registry_values import avro, record
from tests.support.broker_process import BrokerProcess
from tests.support.lengths import LONG
from tests.support.quick_spark import quick_java_options
from tests.support.schema_registry import framed, schema_registry
from tests.support.spark_versions import needs_limits
from tests.support.topics import create_topic

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LIMIT_SECONDS = 60.0
DELIVERY = "exactly-once"
SCHEMA = "id BIGINT NOT NULL, name STRING, at TIMESTAMP, inner STRUCT<x: INT NOT NULL>"


class Sent(NamedTuple):
    """A record as a consumer sees it."""

    key: bytes | None
    value: bytes | None
    headers: dict[str, bytes | None]


class Topics:
    """Topics of one test, with its name in front."""

    def __init__(self, broker: BrokerProcess, prefix: str) -> None:
        self.broker, self.prefix = broker, prefix
        self._producer = Producer({"bootstrap.servers": broker.bootstrap})

    def create(self, *names: str, partitions: int = 2) -> None:
        for name in names:
            create_topic(self.broker.bootstrap, f"{self.prefix}.{name}", partitions)

    def send(self, name: str, values: Sequence[bytes]) -> None:
        """To the partitions in turn, with its number as the key."""
        for number, value in enumerate(values):
            self._producer.produce(
                f"{self.prefix}.{name}",
                value,
                str(number),
                partition=number % 2,
                headers=[("own", b"1")],
            )
        assert self._producer.flush(LIMIT_SECONDS) == 0

    def records(self, name: str) -> list[Sent]:
        """All that is there, partition by partition."""
        found: list[Sent] = []
        settings = {
            "bootstrap.servers": self.broker.bootstrap,
            "group.id": self.prefix,
            "fetch.wait.max.ms": 10,
            "enable.partition.eof": True,  # the last offset may be that of a commit
        }
        reader = Consumer(settings)
        try:
            for partition in range(2):
                reader.assign([TopicPartition(f"{self.prefix}.{name}", partition, 0)])
                found += iter(lambda: _next(reader), None)
        finally:
            reader.close()
        return found

    def values(self, name: str) -> list[bytes]:
        return sorted(each.value or b"" for each in self.records(name))

    def job(self, root: Path, text: str) -> EtlJob:
        """`kafka`, a checkpoint and a trigger are added where there are none."""
        added = {
            "kafka": {"bootstrap.servers": self.broker.bootstrap},
            "checkpoint": "checkpoint",
            "trigger": "available-now",
        }
        head = "".join(
            f"{name}: {json.dumps(value)}\n"
            for name, value in added.items()
            if f"\n{name}:" not in text
        )
        return parse_job(head + self.filled(text), root, {}, "job.yaml")

    def filled(self, text: str) -> str:
        """With what is in capitals, and `~`."""
        text = text.replace("~", self.prefix).replace("DATA", str(self.broker.data))
        return text.replace("BROKER", self.broker.bootstrap).replace("DELIVERY", DELIVERY)


def _next(reader: Consumer) -> Sent | None:
    """None at the end of the partition."""
    message = reader.poll(LIMIT_SECONDS)
    assert message is not None
    error = message.error()
    if error is not None:
        assert error.code() == KafkaError._PARTITION_EOF
        return None
    return Sent(message.key(), message.value(), dict(message.headers() or ()))


@pytest.fixture
def topics(broker: BrokerProcess, topic: str) -> Topics:
    return Topics(broker, topic)


# -- values ----------------------------------------------------------------------------------------

JSON_VALUES: dict[bytes | None, str | None] = {
    b'{"id": 1}': None,
    b' {"id": 1, "unknown": [1, {}], "inner": {"x": 1}} ': None,
    b'{"id": 1, "at": "2024-02-29T12:00:00Z", "name": "\\u00e9"}': None,
    None: None,
    b"": "not JSON that matches the schema",
    b"null": "not JSON that matches the schema",
    b"1": "not JSON that matches the schema",
    b'{"id": 1': "not JSON that matches the schema",
    b'{"id": 1} x': "not JSON that matches the schema",
    b'{"id": 1}{"id": 2}': "not JSON that matches the schema",
    b'{"id": 1}, {"id": 2}': "not JSON that matches the schema",
    b'[{"id": 1}]': "not JSON that matches the schema",
    b'{"id": 1.5}': "not JSON that matches the schema",
    b'{"id": "1"}': "not JSON that matches the schema",
    b'{"id": 9223372036854775808}': "not JSON that matches the schema",
    b'{"id": 1, "at": "yesterday"}': "not JSON that matches the schema",
    b'{"id": 1, "inner": 5}': "not JSON that matches the schema",
    b'{"id": 1, "inner": {"x": "y"}}': "not JSON that matches the schema",
    b'{"name": "x"}': "id is missing",
    b'{"id": null}': "id is missing",
    b'{"id": 1, "inner": {}}': "inner.x is missing",
    b'{"id": 1, "name": "\xff"}': "not UTF-8",
}


def test_values_are_decoded_and_errors_are_reported(spark: "SparkSession") -> None:
    rows = [(None if value is None else bytearray(value),) for value in JSON_VALUES]
    frame = spark.createDataFrame(rows, "value binary")
    frame = decode(frame, "value", DecodingSpec("json", SCHEMA), "here")
    frame = frame.selectExpr(f"{decoded_column('value')} v", f"{error_column('value')} e", "value")
    text = spark.createDataFrame([(bytearray(b"\xff"),), (bytearray(b"a"),)], "key binary")
    text = decode(text, "key", DecodingSpec("string"), "here")
    found = [(row.value if row.value is None else bytes(row.value), row) for row in frame.collect()]
    assert {value: row.e for value, row in found} == JSON_VALUES
    first, spaced, third = (row.v for _, row in found[:3])
    assert (first.id, first.name, first.inner) == (1, None, None)
    assert spaced.inner.x == 1
    assert (str(third["at"]), third.name) == ("2024-02-29 12:00:00", "é")
    assert [row[error_column("key")] for row in text.collect()] == ["not UTF-8", None]


@pytest.mark.parametrize(
    ("ddl", "message"),
    [
        ("id lang", r"sources\.a\.value\.json: .*LANG"),
        ("a ARRAY<STRUCT<x: INT NOT NULL>>", "NOT NULL in an array or a map cannot be checked"),
    ],
)
def test_an_invalid_schema_is_reported(spark: "SparkSession", ddl: str, message: str) -> None:
    frame = spark.range(1).selectExpr("cast(null as binary) value")
    with pytest.raises(JobError, match=message):
        decode(frame, "value", DecodingSpec("json", ddl), "sources.a.value")


def test_rows_become_records(spark: "SparkSession") -> None:
    frame = spark.sql(
        "SELECT 7 k, struct(1 AS x) s, 'a' AS `odd.name`, CAST(NULL AS STRING) n, 't' t, "
        "TIMESTAMP '2024-02-29' at, 1 p"
    )
    sink = Sink(
        value="json",
        key="k",
        topic_column="t",
        timestamp="at",
        partition="p",
        json_options={"ignoreNullFields": "false"},
    )
    (row,) = sink_rows(frame, sink).collect()
    assert list(row.asDict()) == ["topic", "key", "value", "partition", "timestamp"]
    assert bytes(row.value) == b'{"s":{"x":1},"odd.name":"a","n":null}'
    assert (row.topic, bytes(row.key), row.partition) == ("t", b"7", 1)
    (row,) = sink_rows(frame.select("s", "n"), Sink(value="json", key="s", topic="x")).collect()
    assert (row.topic, bytes(row.key), bytes(row.value)) == ("x", b'{"x":1}', b"{}")


@pytest.mark.parametrize(
    ("sql", "sink", "message"),
    [
        (
            "SELECT 'a' x, 'b' y",
            Sink(topic="t"),
            "the columns x, y. A column 'value' is required: rename one, or set",
        ),
        ("SELECT 'a' value, 1 x", Sink(topic="t"), "yields x, which a record cannot hold"),
        (
            "SELECT 'a' value, 't' topic",
            Sink(topic="t"),
            "sink.topic is set, and the SQL yields a column 'topic': use only one",
        ),
        ("SELECT 'a' value", Sink(), "sink.topic is missing, and the SQL yields no column"),
        ("SELECT 1 value", Sink(topic="t"), "Column 'value' is int; cast it to binary or string"),
        ("SELECT 'a' value, 1L partition", Sink(topic="t"), "Column 'partition' is bigint"),
        ("SELECT 1 a, 2 a", Sink(topic="t", value="json"), "yields two columns a"),
        (
            "SELECT 1 a",
            Sink(topic="t", value="json", key="b"),
            "sink.key: the SQL yields no column b",
        ),
        ("SELECT 1 a", Sink(topic="t", value="json", key="a"), "there is no other column to pack"),
    ],
)
def test_rows_that_cannot_become_records_are_reported(
    spark: "SparkSession", sql: str, sink: Sink, message: str
) -> None:
    with pytest.raises(JobError) as raised:
        sink_rows(spark.sql(sql), sink)
    assert message in str(raised.value)


# -- jobs that cannot be started -------------------------------------------------------------------

JOB = """\
name: totals
sources:
  orders:
    options: {path: DATA, subscribe: ~.orders, startingOffsets: earliest}
    key: string
    value: {json: "id BIGINT NOT NULL, amount DOUBLE"}
    on_bad_record: dead-letter
    dead_letter_topic: ~.bad
sql: SELECT key, value.id, value.amount FROM orders WHERE value.amount >= 10
sink: {topic: ~.large, value: json, key: key, options: {delivery: DELIVERY}}
"""


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("SELECT key", "SELEC key", "sql: [PARSE_SYNTAX_ERROR] Syntax error at or near 'SELEC'"),
        ("value.amount >=", "value.amout >=", "sql: [FIELD_NOT_FOUND] No such struct field"),
        ("FROM orders", "FROM order_s", "sql: [TABLE_OR_VIEW_NOT_FOUND]"),
        ("SELECT key, v", "DROP VIEW orders; SELECT v", "sql: [PARSE_SYNTAX_ERROR]"),
        ("sql: S", "steps: {a: SELECT * FROM b, b: SELECT 1}\n#", "steps.a: [TABLE_OR_VIEW_NOT"),
        (
            "sql: SELECT key, value.id, value.amount FROM orders WHERE value.amount >= 10",
            "sql: SELECT key, count(*) n FROM orders GROUP BY key",
            "sink.output_mode: append: [STREAMING_OUTPUT_MODE.UNSUPPORTED_OPERATION]",
        ),
        ("SELECT key, v", "SELECT 'a' key, 1 x #", "the SQL reads none of the sources (orders)"),
        ("amount DOUBLE", "amount DOBLE", "sources.orders.value.json: [UNSUPPORTED_DATATYPE]"),
        (
            "    key: string",
            "    watermark: {event_time: value.amount, delay: 1 minute}",
            "sources.orders.watermark: [EVENT_TIME_IS_NOT_ON_TIMESTAMP_TYPE]",
        ),
        (
            "sources:\n",
            "sources:\n  more: {options: {path: DATA, subscribe: ~.orders}}\n",
            "sources.more: the SQL does not read it",
        ),
    ],
)
def test_errors_in_a_job_are_reported_before_it_is_started(
    spark: "SparkSession", topics: Topics, tmp_path: Path, old: str, new: str, message: str
) -> None:
    assert old in JOB
    text = JOB.replace(old, new.replace("#", "--") if old == "SELECT key, v" else new)
    with pytest.raises(JobError) as raised:
        dry_run(spark, topics.job(tmp_path, text))
    assert message in str(raised.value)
    assert "\n" not in str(raised.value)
    assert not (tmp_path / "checkpoint").exists()
    assert "orders" not in [each.name for each in spark.catalog.listTables()]


def test_a_dry_run_shows_the_plan_without_options(
    spark: "SparkSession", topics: Topics, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    topics.create("orders")
    text = changed("subscribe: orders", f"subscribe: {topics.prefix}.orders")
    text = changed("  # sasl.password", "  sasl.password", text)
    variables = {"KAFKA_BROKERS": topics.broker.bootstrap, "KAFKA_PASSWORD": "hush"}
    job = parse_job(text, tmp_path, variables)
    plan, is_resumed = dry_run(spark, job)
    assert plan.reads == ("orders",)
    assert plan.rows.columns == ["topic", "key", "value", "headers"]
    checked = check_options(job)
    assert (
        show_plan(job, plan, topics_of(checked), Delivery.EXACTLY_ONCE, is_resumed=is_resumed) == 0
    )
    shown = capsys.readouterr().out
    assert f"orders  {topics.prefix}.orders           2" in shown
    assert "view orders (key string, value json, bad records: dead-letter to orders.bad)" in shown
    assert "  value struct<id:bigint,customer:string,amount:decimal(12,2),at:timestamp>" in shown
    assert "sink.topic: orders.large\n" in shown
    assert "(new: sources begin at their startingOffsets)" in shown
    assert "hush" not in shown
    assert not (tmp_path / "checkpoints").exists()


# -- jobs that run ---------------------------------------------------------------------------------


def values(numbers: range) -> list[bytes]:
    """Every tenth is bad; amounts go from 0 to 19."""
    return [
        b"%d is bad" % number
        if number % 10 == 7
        else json.dumps({"id": number, "amount": number % 20}).encode()
        for number in numbers
    ]


def large(numbers: range) -> list[bytes]:
    """What JOB makes of them."""
    made = [
        f'{{"id":{number},"amount":{number % 20:.1f}}}'.encode()
        for number in numbers
        if number % 20 >= 10 and number % 10 != 7
    ]
    return sorted(made)


def test_a_job_resumes_from_its_checkpoint_and_loses_no_bad_record(
    spark: "SparkSession", topics: Topics, tmp_path: Path
) -> None:
    topics.create("orders", "large", "bad")
    topics.send("orders", values(range(100)))
    batches: list[EtlBatch] = []
    summary = etl(spark, topics.job(tmp_path, JOB), on_batch=batches.append)
    assert (summary.batches, summary.written, summary.is_resumed) == (1, 45, False)
    assert summary.sources["orders"][:2] == (100, 10)
    assert [batch.lag for batch in batches] == [0]
    assert topics.values("large") == large(range(100))
    bad = {each.key: each for each in topics.records("bad")}
    assert sorted(each.value or b"" for each in bad.values()) == sorted(values(range(100))[7::10])
    letter = bad[b"17"].headers
    assert letter.pop("odradek.error.timestamp") is not None
    assert letter == {
        "own": b"1",
        "odradek.error.topic": f"{topics.prefix}.orders".encode(),
        "odradek.error.partition": b"1",
        "odradek.error.offset": b"8",
        "odradek.error.message": b"value: not JSON that matches the schema",
        "odradek.error.job": b"totals",
    }
    # The same checkpoint serves a job that fails at bad records, and one that drops them.
    topics.send("orders", values(range(100, 110)))
    failing = JOB.replace("on_bad_record: dead-letter", "on_bad_record: fail")
    with pytest.raises(JobError) as raised:
        etl(spark, topics.job(tmp_path, failing))
    assert str(raised.value) == (
        f"orders: {topics.prefix}.orders-1 offset 53: value: not JSON that matches the schema"
        " (on_bad_record: drop or dead-letter would continue)"
    )
    dropping = JOB.replace("on_bad_record: dead-letter", "on_bad_record: drop")
    summary = etl(spark, topics.job(tmp_path, dropping))
    assert (summary.is_resumed, summary.sources["orders"][:2]) == (True, (10, 1))
    assert topics.values("large") == large(range(110))
    assert len(topics.records("bad")) == 10


def test_values_of_a_schema_registry_are_decoded_and_bad_ones_are_dead_letters(
    spark: "SparkSession", topics: Topics, tmp_path: Path
) -> None:
    schema = record({"name": "id", "type": "long"}, {"name": "amount", "type": "double"})
    old = record({"name": "id", "type": "int"}, {"name": "amount", "type": "float"})
    topics.create("orders", "large", "bad")
    text = changed('{json: "id BIGINT NOT NULL, amount DOUBLE"}', "avro", JOB)
    with schema_registry() as registry:
        text += f"schema_registry: {{url: '{registry.url}'}}\n"
        with pytest.raises(JobError, match=r"sources\.orders\.value: the schema of .*not found"):
            dry_run(spark, topics.job(tmp_path, text))
        subject = f"{topics.prefix}.orders-value"
        numbers = {each: registry.register(subject, each) for each in (old, schema)}
        good = [
            framed(numbers[each], avro(each, {"id": number, "amount": 5.0 * number}))
            for number, each in enumerate([schema, old, schema, old])
        ]
        topics.send("orders", [*good, b"bad"])
        summary = etl(spark, topics.job(tmp_path, text))
    assert summary.sources["orders"][:2] == (5, 1)
    assert topics.values("large") == [b'{"id":2,"amount":10.0}', b'{"id":3,"amount":15.0}']
    [letter] = topics.records("bad")
    assert letter.value == b"bad"
    assert (letter.headers["odradek.error.message"] or b"").startswith(b"value: ")


STEPS = """\
name: sums
sources:
  orders:
    options: {path: DATA, subscribe: ~.orders, startingOffsets: earliest}
    value: {json: "id BIGINT, amount DOUBLE"}
    on_bad_record: drop
    watermark: {event_time: timestamp_seconds(value.id * 60), delay: 10 minutes}
  names:
    options: {kafka.bootstrap.servers: BROKER, subscribe: ~.names, startingOffsets: earliest}
    key: string
    value: string
steps:
  hours: |
    SELECT window(event_time, '1 hour').start AS hour, sum(value.amount) AS amount, 'h' AS kind
    FROM orders GROUP BY window(event_time, '1 hour')
  both: |
    SELECT date_format(hour, 'HH') AS key, CAST(amount AS STRING) AS value FROM hours
    UNION ALL SELECT key, value FROM names
sink: {topic: ~.sums}
"""


def test_windows_close_by_their_watermark_and_checkpoints_know_their_job(
    spark: "SparkSession", topics: Topics, tmp_path: Path
) -> None:
    topics.create("orders", "names", "sums")
    amounts = [json.dumps({"id": minute, "amount": 1}).encode() for minute in range(150)]
    topics.send("orders", amounts)
    topics.send("names", [b"anne"])
    summary = etl(spark, topics.job(tmp_path, STEPS))
    found = sorted((each.key, each.value) for each in topics.records("sums"))
    assert found == [(b"0", b"anne"), (b"00", b"60.0"), (b"01", b"60.0")]
    assert summary.sources["orders"].records == 150
    assert summary.sources["names"].records == 1
    assert (summary.written, summary.delivery) == (3, DELIVERY)
    # Another job's, another order of the sources, and one that is not of a job at all.
    for old, new, message in (
        ("name: sums", "name: other", "belongs to the job 'sums', not to 'other'"),
        (
            "both: |",
            "both: |\n    SELECT key, value FROM names UNION ALL",
            "read orders, names, and now",
        ),
    ):
        with pytest.raises(JobError, match=message):
            etl(spark, topics.job(tmp_path, STEPS.replace(old, new)))
    (tmp_path / "checkpoint" / "odradek-etl.json").write_text("{")
    with pytest.raises(JobError, match="ChecksumException"):
        dry_run(spark, topics.job(tmp_path, STEPS))
    (tmp_path / "checkpoint" / ".odradek-etl.json.crc").unlink()
    with pytest.raises(JobError, match=r"odradek-etl\.json in it is damaged"):
        dry_run(spark, topics.job(tmp_path, STEPS))
    (tmp_path / "checkpoint" / "odradek-etl.json").unlink()
    with pytest.raises(JobError, match="belongs to another query, not to this job"):
        dry_run(spark, topics.job(tmp_path, STEPS))


def leave_as_a_kill_in_its_first_batch(checkpoint: Path) -> None:
    """It is known whose it is, and the first file of its own is not finished."""
    (checkpoint / "offsets").mkdir(parents=True)
    (checkpoint / "odradek-etl.json").write_text('{"job": "totals", "reads": ["orders"]}')
    (checkpoint / "offsets" / ".0.6f1c.tmp").write_text("v1")


@needs_limits
def test_a_job_that_is_stopped_has_written_what_it_has_counted(
    spark: "SparkSession", topics: Topics, tmp_path: Path
) -> None:
    topics.create("orders", "large", "bad")
    topics.send("orders", values(range(100)))
    leave_as_a_kill_in_its_first_batch(tmp_path / "checkpoint")
    stop = Stop()
    text = JOB.replace("startingOffsets", "maxOffsetsPerTrigger: 40, startingOffsets")
    job = topics.job(tmp_path, text + "trigger: {every: 1 hour}\n")
    stopped = etl(spark, job, on_batch=lambda batch: stop.after_batch.set(), stop=stop)
    assert (stopped.was_stopped, stopped.batches) == (True, 1)
    assert stopped.sources["orders"].records == 40
    assert topics.values("large") == large(range(40))
    assert stopped.delivery == DELIVERY


# -- a process that is killed ----------------------------------------------------------------------


@pytest.fixture
def command(
    spark: "SparkSession", topics: Topics, tmp_path: Path
) -> Iterator["subprocess.Popen[str]"]:
    """`odradek pipeline etl` on JOB, in small batches, with a Spark of its own."""
    topics.create("orders", "large", "bad")
    topics.send("orders", values(range(400)))
    (tmp_path / "job.yaml").write_text(
        topics.filled(JOB).replace("startingOffsets", "maxOffsetsPerTrigger: 40, startingOffsets")
        + "kafka: {bootstrap.servers: '${SERVER}'}\ncheckpoint: checkpoint\n"
        + "trigger: {every: 1 millisecond}\n"
    )
    process = subprocess.Popen(
        [
            *(Path(sys.executable).with_name("odradek"), "pipeline", "etl", tmp_path / "job.yaml"),
            *("--master", "local[2]", "--conf", "spark.ui.enabled=false"),
            *("--conf", f"spark.driver.extraJavaOptions={quick_java_options()}"),
            *("--conf", f"spark.local.dir={tmp_path}"),
        ],
        env={**os.environ, "SERVER": topics.broker.bootstrap},
        cwd=tmp_path,
        start_new_session=True,  # the JVM is killed with it
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    yield process
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
    process.communicate()


@pytest.mark.skipif(not LONG, reason="long only: it starts a Spark of its own")
def test_killed_and_started_again_a_job_loses_nothing(
    spark: "SparkSession",
    command: "subprocess.Popen[str]",
    topics: Topics,
    tmp_path: Path,
) -> None:
    commits = tmp_path / "checkpoint" / "commits"
    deadline = time.monotonic() + LIMIT_SECONDS
    while not (commits / "0").exists():
        assert command.poll() is None, command.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.02)
    os.killpg(command.pid, signal.SIGKILL)
    assert command.wait() == -signal.SIGKILL
    text = (tmp_path / "job.yaml").read_text().replace("maxOffsetsPerTrigger: 40, ", "")
    job = parse_job(text, tmp_path, {"SERVER": topics.broker.bootstrap})
    rest: EtlSummary = etl(spark, job, once=True)
    assert rest.is_resumed
    assert 0 < rest.sources["orders"].records < 400
    bad = sorted(values(range(400))[7::10])
    for name, expected in (("large", large(range(400))), ("bad", bad)):
        assert sorted(topics.values(name)) == expected
