"""A job file: what may stand in it, and what is said of what may not. No Spark."""

from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path

import pytest

from odradek.pipeline.jobs import JobError
from odradek.pipeline.jobs.etl.job_file import (
    check_options,
    parse_job,
    read_job,
    read_yaml,
    written_topics,
)
from odradek.pipeline.jobs.etl.job_model import DecodingSpec, EtlJob, TriggerSpec

EXAMPLE = files("odradek.pipeline.jobs.etl").joinpath("example.yaml").read_text("utf-8")
BASE = Path("/srv/jobs")
SMALL = """\
name: copy
sources:
  orders: {options: {kafka.bootstrap.servers: one:9092, subscribe: orders}}
sql: SELECT key, value FROM orders
sink: {topic: copied, options: {kafka.bootstrap.servers: one:9092}}
checkpoint: file:/var/lib/etl/copy
"""


def parsed(text: str, variables: Mapping[str, str] | None = None) -> EtlJob:
    return parse_job(text, BASE, variables or {}, "job.yaml")


def refused(text: str, variables: Mapping[str, str] | None = None) -> str:
    with pytest.raises(JobError) as raised:
        check_options(parsed(text, variables))
    return str(raised.value)


def changed(old: str, new: str, text: str = EXAMPLE) -> str:
    assert old in text
    return text.replace(old, new)


def test_the_example_is_a_job() -> None:
    job = parsed(EXAMPLE)
    checked = check_options(job)
    assert checked.sink.client == {"bootstrap.servers": "localhost:9092"}
    assert checked.sources["orders"].client == checked.sink.client
    assert job.sources["orders"].value.kind == "json"
    assert job.trigger == TriggerSpec("10 seconds")
    assert job.checkpoint == "/srv/jobs/checkpoints/large-orders"
    assert job.spark == {"spark.sql.shuffle.partitions": "4"}
    assert [topic for _, topic in written_topics(job)] == ["orders.large", "orders.bad"]


def test_lines_commented_out_in_the_example_are_valid() -> None:
    """Its settings and the watermark; those that stand on a line of their own."""
    lines = [
        line.replace("# ", "", 1) if line.strip().startswith(("# s", "# w", "# path")) else line
        for line in EXAMPLE.splitlines()
    ]
    job = parsed("\n".join(lines), {"KAFKA_PASSWORD": "hush"})
    assert job.sources["orders"].watermark is not None
    assert job.sink_options["kafka.sasl.password"] == "hush"
    assert job.source_options("orders")["path"] == "/var/lib/odradek"


def test_a_small_job_has_defaults() -> None:
    job = parsed(SMALL)
    source = job.sources["orders"]
    assert (source.key, source.value) == (DecodingSpec("binary"), DecodingSpec("binary"))
    assert (source.on_bad_record, job.sink.value) == ("fail", "column")
    assert job.trigger == TriggerSpec("1 second")
    assert job.checkpoint == "file:/var/lib/etl/copy"
    assert job.statements == {"sql": "SELECT key, value FROM orders"}


def test_formats_of_a_schema_registry_need_its_url() -> None:
    text = changed("}}\nsql", "}, value: avro, key: {protobuf: ids}}\nsql", SMALL)
    assert "schema_registry.url is missing, which sources.orders needs" in refused(text)
    text += "schema_registry: {url: http://one}\n"
    source = parsed(text).sources["orders"]
    assert source.value == DecodingSpec("avro")
    assert source.key == DecodingSpec("protobuf", subject="ids")
    unnamed = changed("protobuf: ids", "avro: 3", text)
    assert "followed by the name of a subject" in refused(unnamed)
    option = "valueFormat: avro, schema.registry.url: http://one, subscribe: orders}}"
    assert "sources.orders.options: write value: avro" in refused(
        changed("subscribe: orders}}", option, SMALL)
    )


def test_words_have_the_types_of_yaml_1_2() -> None:
    text = "a: no\nb: 10:30\nc: 2024-02-29\nd: 010\ne: true\nf: 7\ng: 1.5\nh: ~\ni: on\nj: 1_0\n"
    assert read_yaml(text, "x").value == {
        "a": "no",
        "b": "10:30",
        "c": "2024-02-29",
        "d": "010",
        "e": True,
        "f": 7,
        "g": 1.5,
        "h": None,
        "i": "on",
        "j": "1_0",
    }


def test_anchors_and_merges_are_understood() -> None:
    text = "x: &x {a: 1, b: 2}\ny: {<<: *x, b: 3}\nz: [*x]\n"
    assert read_yaml(text, "x").value == {
        "x": {"a": 1, "b": 2},
        "y": {"a": 1, "b": 3},
        "z": [{"a": 1, "b": 2}],
    }


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: [", "job.yaml:1:5: invalid YAML"),
        ("a: 1\na: 2\n", "job.yaml:2:1: invalid YAML: duplicate key 'a'"),
        ("a: {b: 1,\n b: 2}\n", "job.yaml:2:2: invalid YAML: duplicate key 'b'"),
        ("", "job.yaml is empty"),
        ("a: &a [*a]", "an alias (*) refers to a value that contains it"),
        ("a: !!python/object:os.system x", "could not determine a constructor"),
        ("a: \x00", "invalid YAML"),
        ("- name", "job.yaml:1: must be a mapping with name, kafka, schema_registry"),
    ],
)
def test_invalid_yaml_is_reported_with_its_line(text: str, message: str) -> None:
    assert message in refused(text)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("name: large-orders\n", "\n", "name: is missing"),
        (
            "key: string",
            "kee: string",
            "job.yaml:20: sources.orders.kee: unknown key; known keys are",
        ),
        (
            "key: string",
            "key: text",
            "sources.orders.key: must be binary, string, avro, protobuf, json-schema, or json:",
        ),
        (
            "key: string",
            "key: {jason: a}",
            "sources.orders.key.jason: unknown key; known keys are json",
        ),
        ("key: string", "key: {json: }", "sources.orders.key: json must be a schema"),
        (
            "key: string",
            "key: {json: a int, options: {mode: FAILFAST}}",
            "sources.orders.key: options: mode cannot be set",
        ),
        ("topic: orders.large", "topic: 5", "sink.topic: must be text (put it in quotes)"),
        ("every: 10 seconds", "every: often", "trigger: must be a duration such as 10 seconds"),
        ("{every: 10 seconds}", "once", "trigger: must be available-now, or every:"),
        ("dead_letter_topic: orders.bad", "", "dead-letter requires dead_letter_topic"),
        ("record: dead-letter", "record: skip", "input should be 'fail', 'drop' or 'dead-letter'"),
        ("  orders:  ", "  or-ders:  ", "sources.or-ders: string should match pattern"),
        ("value: json ", "value: column ", "sink: key requires value: json"),
        ("topic: orders.large", "", "sink: topic is missing"),
        ("key: customer", "key: customer\n  topic_column: x", "topic and topic_column"),
        ("sql: |", "steps: |", "steps: input should be a valid dictionary"),
        ("sql: |", "steps: {a: SELECT 1}\nsql: |", "one of sql and steps is required, not both"),
        ("subscribe: orders", "subscribe: ", "sources.orders.options: subscribe has no value"),
        ("subscribe: orders", "subcribe: x", "sources.orders.options: Unknown option"),
        (
            "subscribe: orders",
            "path: x\n      view: batches\n      subscribe: x",
            "view=batches has no",
        ),
        ("bootstrap.servers:", "kafka.bootstrap.servers:", "without the prefix"),
        (
            "bootstrap.servers:",
            "client.id:",
            "sink.options: Option 'kafka.bootstrap.servers' is required",
        ),
        ("key: customer", "options: {topic: x}", "set the topic as sink.topic"),
        ("key: customer", "options: {delivery: never}", "sink.options: delivery must be one of"),
        ("subscribe: orders", "subscribePattern: orders.*", "the job would read its own output"),
        (
            "subscribe: orders",
            "subscribe: 'orders.bad,x'",
            "dead_letter_topic: sources.orders reads orders.bad",
        ),
        ("subscribe: orders", "assign: {orders.large: [0]}", "would read its own output"),
    ],
)
def test_errors_are_reported_with_their_key(old: str, new: str, message: str) -> None:
    assert message in refused(changed(old, new))


def test_all_errors_are_reported_at_once() -> None:
    text = changed("output_mode: append", "output_mode: some", changed("name: large", "nam: large"))
    assert "nam: unknown key" in refused(text)
    text = changed("output_mode: append", "output_mode: some", changed("key: string", "key: some"))
    assert refused(text).count("\njob.yaml:") == 1


def test_two_views_cannot_have_one_name() -> None:
    text = changed("sql: SELECT key, value FROM orders", "steps: {Orders: SELECT 1}", SMALL)
    assert "orders: two views have this name" in refused(text)


def test_a_missing_file_is_reported(tmp_path: Path) -> None:
    with pytest.raises(JobError, match=r"cannot read the job file: .*nothing.yaml"):
        read_job(tmp_path / "nothing.yaml")
    (tmp_path / "job.yaml").write_bytes(b"\xff\xfe\xff")
    with pytest.raises(JobError, match="cannot read the job file: 'utf-8' codec"):
        read_job(tmp_path / "job.yaml")
    (tmp_path / "job.yaml").write_text(SMALL.replace("file:/var/lib/etl/copy", "here"))
    assert read_job(tmp_path / "job.yaml").checkpoint == str(tmp_path / "here")


# -- the environment -------------------------------------------------------------------------------


def test_variables_stand_for_their_values_and_escaped_ones_for_themselves() -> None:
    text = changed("topic: copied", "topic: '${A}-${B:-b}-${C:-}-${D:-d}-$${A}-$A'", SMALL)
    job = parsed(text, {"A": "x: [", "D": ""})
    assert job.sink.topic == "x: [-b--d-${A}-$A"


def test_a_variable_is_never_yaml() -> None:
    job = parsed(changed("topic: copied", "topic: '${A}'", SMALL), {"A": "true"})
    assert job.sink.topic == "true"


def test_variables_that_are_not_set_are_reported_with_their_place() -> None:
    message = refused(changed("topic: copied", "topic: '${A} ${B}'", SMALL), {"B": ""})
    assert message.startswith("job.yaml:5: sink.topic: the environment variable A is not set")
    assert "B" not in message
    message = refused(changed("topic: copied", "topic: ${A}", SMALL))
    assert "job.yaml:5:16: invalid YAML" in message
    assert message.endswith("(inside { } or [ ], ${NAME} needs quotes)")
    assert "${a b} is neither ${NAME} nor" in refused(changed("copied", "'${a b}'", SMALL))


def test_a_password_is_in_no_message() -> None:
    text = changed("name: copy", "name: copy\nkafka: {sasl.password: '${P}'}", SMALL)
    for old, new in (
        ("topic: copied", "topic: 5"),
        ("subscribe: orders", "subskribe: orders"),
        ("kafka.bootstrap.servers: one:9092, s", "s"),
    ):
        assert "hush" not in refused(changed(old, new, text), {"P": "hush"})


# -- options ---------------------------------------------------------------------------------------


def test_options_are_texts_whatever_yaml_makes_of_them() -> None:
    given = "subscribe: a, minPartitions: 4, failOnDataLoss: false, startingOffsets: {a: {0: 5}}"
    job = parsed(changed("subscribe: orders", given, SMALL))
    options = job.source_options("orders")
    assert options["minPartitions"] == "4"
    assert options["failOnDataLoss"] == "false"
    assert options["startingOffsets"] == '{"a": {"0": 5}}'
    check_options(job)


def test_settings_of_kafka_are_for_who_names_no_broker() -> None:
    text = changed(
        "kafka.bootstrap.servers: one:9092, subscribe",
        "kafka.client.id: own, subscribe",
        changed("name: copy", "name: copy\nkafka: {bootstrap.servers: two, client.id: x}", SMALL),
    )
    job = parsed(text)
    assert job.source_options("orders")["kafka.bootstrap.servers"] == "two"
    assert job.source_options("orders")["kafka.client.id"] == "own"
    assert job.sink_options == {"kafka.bootstrap.servers": "one:9092"}


def test_one_topic_name_on_two_brokers_is_no_cycle() -> None:
    text = changed("topic: copied", "topic: orders", SMALL)
    assert "would read its own output" in refused(text)
    check_options(parsed(changed("one:9092, subscribe", "two:9092, path: x, subscribe", text)))


def test_paths_are_those_beside_the_file() -> None:
    text = changed("kafka.bootstrap.servers: one:9092, s", "path: 'data,/other', s", SMALL)
    assert parsed(text).source_options("orders")["path"] == "/srv/jobs/data,/other"


def test_options_of_sparks_connector_are_for_spark_to_check() -> None:
    text = changed("orders: {options", "orders: {format: kafka, options", SMALL)
    assert check_options(parsed(changed("subscribe:", "what:", text))).sources == {}
