"""`odradek produce` and `odradek consume`."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from click.testing import Result
from confluent_kafka import Producer

from odradek.broker.testing import Broker, Record

Run = Callable[..., Result]
COMMAND = str(Path(sys.executable).with_name("odradek"))
LIMIT_S = 20.0
ALL = r"%p %k|%K %s|%S %h\n"


def lines(run: Run, *arguments: str) -> list[str]:
    done = run("consume", *arguments)
    assert done.exit_code == 0, done.stderr
    return done.stdout.splitlines()


def test_lines_become_records_and_records_lines(run: Run) -> None:
    done = run("produce", "orders", stdin="first\nä\n\nlast".encode())
    assert (done.exit_code, done.stderr) == (0, "sent 4 records to orders\n")
    assert lines(run, "orders") == ["first", "ä", "", "last"]
    assert lines(run, "orders", "--format", r"%t %p %o %S%%\x0a") == [
        f"orders 0 {offset} {size}%" for offset, size in enumerate((5, 2, 0, 4))
    ]


def test_keys_headers_partitions_and_nulls_are_sent(run: Run, broker: Broker) -> None:
    broker.create_topic("orders", 3)
    options = ["-K", ":", "-H", "source=web", "-H", "empty=", "-p", "2", "--null"]
    run("produce", "orders", *options, stdin=b"a:1\nb:\n:x:y\n")
    assert lines(run, "orders", "--format", ALL) == [
        "2 a|1 1|1 source=web,empty=",
        "2 b|1 |-1 source=web,empty=",
        "2 |0 x:y|3 source=web,empty=",
    ]
    run("produce", "orders", "-k", "same", "-p", "0", stdin=b"1\n")
    assert lines(run, "orders", "-p", "0", "--format", ALL) == ["0 same|4 1|1 "]


def test_lines_of_json_are_sent_again_byte_for_byte(run: Run, broker: Broker) -> None:
    broker.create_topic("orders", 2)
    broker.create_topic("copies", 2)
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
    headers = [("text", b"a"), ("bytes", b"\xff"), ("null", None)]
    producer.produce("orders", b"\x00\xff", b"key", 1, timestamp=1234, headers=headers)
    producer.produce("orders", None, None, 0, timestamp=5678)
    producer.produce("orders", "ä\n", b"\xfe", 0, timestamp=5679)
    assert producer.flush(LIMIT_S) == 0
    read = run("consume", "orders", "--json").stdout_bytes
    assert {json.loads(line)["timestamp_ms"] for line in read.splitlines()} == {1234, 5678, 5679}
    done = run("produce", "copies", "--json", "--keep-partitions", stdin=read + b"\n")
    assert done.exit_code == 0, done.stderr

    def as_copy(record: Record) -> Record:
        return msgspec.structs.replace(record, topic="copies")

    assert broker.records("copies") == [as_copy(record) for record in broker.records("orders")]


def test_reading_ends_where_the_topic_ended_when_it_began(broker: Broker) -> None:
    broker.create_topic("orders")
    options = ["--bootstrap", broker.bootstrap_servers, "--json"]
    consume = [COMMAND, "consume", "orders", *options]
    produce = [COMMAND, "produce", "orders", *options]
    subprocess.run(produce, input=b'{"value":"a"}\n{"value":"b"}\n', check=True)
    with subprocess.Popen(consume, stdout=subprocess.PIPE) as reading:
        subprocess.run(produce, stdin=reading.stdout, check=True, timeout=LIMIT_S)
    assert [record.value for record in broker.records("orders")] == [b"a", b"b", b"a", b"b"]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["--from", "3"], [3, 4]),
        (["--from", "latest"], []),
        (["--from", "99"], []),
        (["--last", "2"], [3, 4]),
        (["--last", "99"], [0, 1, 2, 3, 4]),
        (["--last", "0"], []),
        (["--max", "2"], [0, 1]),
        (["--from", "1970-01-01T00:00:02"], [2, 3, 4]),
        (["--from", "1h"], []),
    ],
)
def test_a_part_of_a_topic_is_read(
    run: Run, broker: Broker, options: list[str], expected: list[int]
) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
    for number in range(5):
        producer.produce("orders", str(number), timestamp=number * 1000 or 1)
    assert producer.flush(LIMIT_S) == 0
    assert [int(line) for line in lines(run, "orders", *options)] == expected


def test_records_of_aborted_transactions_are_shown_when_asked_for(run: Run, broker: Broker) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "transactional.id": "a"})
    producer.init_transactions(LIMIT_S)
    producer.begin_transaction()
    producer.produce("orders", "aborted")
    producer.flush(LIMIT_S)
    producer.abort_transaction(LIMIT_S)
    assert lines(run, "orders") == []
    assert lines(run, "orders", "--uncommitted") == ["aborted"]


def test_what_comes_before_a_bad_line_is_sent(run: Run, broker: Broker) -> None:
    assert run("produce", "orders", "-K", ":", stdin=b"a:1\nb\nc:3\n").exit_code == 1
    assert [record.value for record in broker.records("orders")] == [b"1"]


def test_following_shows_records_as_they_come(broker: Broker) -> None:
    broker.create_topic("orders")
    words = [COMMAND, "consume", "orders", "--follow", "--max=2", "-b", broker.bootstrap_servers]
    with subprocess.Popen(words, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
        for value in (b"first", b"second"):
            producer.produce("orders", value)
            producer.flush(LIMIT_S)
            assert process.stdout.readline() == value + b"\n"
        assert process.wait(LIMIT_S) == 0


def test_the_reader_of_the_output_may_end_first(run: Run, broker: Broker) -> None:
    run("produce", "orders", stdin=(b"x" * 1000 + b"\n") * 2000)
    words = f"{COMMAND} consume orders -b {broker.bootstrap_servers} | head -n 1 | wc -c"
    done = subprocess.run(["bash", "-o", "pipefail", "-c", words], capture_output=True, check=False)
    assert (done.stdout.strip(), done.stderr) == (b"1001", b"")


@pytest.mark.parametrize(
    ("arguments", "stdin", "words"),
    [
        (["consume", "missing"], b"", ["missing", "odradek topics list"]),
        (["consume", "orders", "--from", "soon"], b"", ["soon", "15m"]),
        (["consume", "orders", "-p", "7"], b"", ["no partition 7"]),
        (["consume", "orders", "--format", "%q"], b"", ["%q", "%k"]),
        (["consume", "orders", "--format", "\\q"], b"", ["\\q"]),
        (["produce", "orders", "-p", "7"], b"x", ["orders"]),
        (["produce", "orders", "-K", ":"], b"a:1\nb\n", ["line 2", "':'"]),
        (["produce", "orders", "--json"], b'{"value": 1}', ["line 1"]),
        (["produce", "orders", "--json"], b'{"value_base64": "!"}', ["line 1"]),
    ],
)
def test_a_mistake_is_one_line(
    run: Run, broker: Broker, arguments: list[str], stdin: bytes, words: list[str]
) -> None:
    broker.create_topic("orders")
    done = run(*arguments, stdin=stdin)
    assert done.exit_code == 1
    (line,) = done.stderr.splitlines()
    assert all(word in line for word in words), line
