"""`odradek produce` and `odradek consume`."""

import io
import json
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
from click.testing import Result
from confluent_kafka import Producer

from odradek.broker.console.messages.partitioning import partition_of
from odradek.broker.testing import Broker, Record
from odradek.coordinator.runtime.steps import no_step
from odradek.protocol.api_keys import ApiKey
from odradek.tools.client import producing
from odradek.tools.client.failure import CommandError
from odradek.tools.client.producing import ProduceOptions, produce
from odradek.tools.client.record_json import parse_json

Run = Callable[..., Result]
COMMAND = str(Path(sys.executable).with_name("odradek"))
LIMIT_S = 120.0
ALL = r"%p %k|%K %s|%S %h\n"
JSON_TO_ORDERS = ProduceOptions(
    topic="orders",
    partition=None,
    separator=None,
    key=None,
    headers=[],
    null_if_empty=False,
    parse=parse_json,
    keep_partitions=False,
)


def lines(run: Run, *arguments: str) -> list[str]:
    done = run("consume", *arguments)
    assert done.exit_code == 0, done.stderr
    return done.stdout.splitlines()


def test_one_record_is_not_called_records(run: Run) -> None:
    assert run("produce", "orders", stdin=b"one").stderr == "sent 1 record to orders\n"


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
    assert lines(run, "orders", "-p", "2", "--max", "1", "--format", "ä%kä") == ["äaä"]
    run("produce", "orders", "-k", "same", "-p", "0", stdin=b"1\n")
    assert lines(run, "orders", "-p", "0", "--format", ALL) == ["0 same|4 1|1 "]


def test_a_key_is_in_the_partition_that_javas_producers_choose(
    run: Run, broker: Broker, tmp_path: Path
) -> None:
    """It may not be if the file of --config names another partitioner."""
    broker.create_topic("orders", 8)
    keys = [f"key-{number}" for number in range(16)]
    chosen = [f"{partition_of(key.encode(), 8, no_step)} {key}" for key in keys]
    stdin = "".join(f"{key}:\n" for key in keys).encode()
    run("produce", "orders", "-K", ":", stdin=stdin)
    assert sorted(lines(run, "orders", "--format", r"%p %k\n")) == sorted(chosen)
    file = tmp_path / "client.properties"
    file.write_text("partitioner=consistent\n")
    broker.create_topic("others", 8)
    run("produce", "others", "-K", ":", "--config", str(file), stdin=stdin)
    assert sorted(lines(run, "others", "--format", r"%p %k\n")) != sorted(chosen)


def test_settings_that_only_javas_clients_accept_together_do_no_harm(
    run: Run, tmp_path: Path
) -> None:
    file = tmp_path / "client.properties"
    file.write_text(
        "acks=1\nfetch.max.bytes=524288\ngroup.protocol=consumer\ngroup.id=\n"
        "session.timeout.ms=45000\nmax.poll.interval.ms=10000\n"
    )
    done = run("produce", "orders", "--config", str(file), stdin=b"one")
    assert done.exit_code == 0, done.stderr
    assert lines(run, "orders", "--config", str(file)) == ["one"]
    for setting in (
        *("message.send.max.retries=0", "retries=0", "request.required.acks=0"),
        *("max.in.flight=6", "queuing.strategy=lifo"),
    ):
        file.write_text(setting)
        done = run("produce", "others", "--config", str(file), stdin=b"one")
        assert done.exit_code == 0, (setting, done.stderr)
    # No administrator's client refuses these, but a consumer does.
    file.write_text("fetch.max.bytes=2000000\nmax.request.size=3000000\n")
    done = run("consume", "orders", "--config", str(file))
    (line,) = done.stderr.splitlines()
    assert line.startswith("odradek: the settings of the client are refused: ")
    assert done.exit_code == 1


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


def test_lines_as_kcat_prints_them_are_printed_and_sent(run: Run, broker: Broker) -> None:
    """The first line is one of kcat 1.7, whose broker had the id 1."""
    broker.create_topic("orders", 2)
    line = (
        '{"topic":"orders","partition":1,"offset":0,"tstype":"create","ts":1234,"broker":1,'
        '"headers":["a","1","null",null],"key":"k","payload":"ä"}\n'
        '{"topic":"orders","partition":1,"offset":1,"tstype":"create","ts":1235,"broker":1,'
        '"key":null,"payload":null}\n'
    )
    done = run("produce", "orders", "-J", "--keep-partitions", stdin=line.encode())
    assert (done.exit_code, done.stderr) == (0, "sent 2 records to orders\n")
    first, second = broker.records("orders", 1)
    assert (first.key, first.value, first.timestamp_ms) == (b"k", "ä".encode(), 1234)
    assert list(first.headers) == [("a", b"1"), ("null", None)]
    assert (second.key, second.value) == (None, None)
    assert run("consume", "orders", "-J").stdout == line.replace('"broker":1', '"broker":-1')
    broker.produce("orders", b"\xff")
    refused = run("consume", "orders", "-J", "-p", "0")
    assert refused.exit_code == 1
    assert "orders-0, offset 0" in refused.stderr
    assert "--json" in refused.stderr


def test_a_record_that_is_too_large_is_named_with_the_setting(
    run: Run, broker: Broker, tmp_path: Path
) -> None:
    """max.request.size is the name that Java clients have for it; others of theirs are ignored."""
    broker.create_topic("orders", 1, {"max.message.bytes": "3000000"})
    stdin = b"a\n" + b"x" * 2_000_000 + b"\n"
    done = run("produce", "orders", stdin=stdin)
    (line,) = done.stderr.splitlines()
    assert done.exit_code == 1
    assert all(each in line for each in ("line 2", "max.request.size", "records sent: 1"))
    file = tmp_path / "client.properties"
    file.write_text("max.request.size=4000000\nmax.poll.records=500\nbuffer.memory=33554432\n")
    done = run("produce", "orders", "--config", str(file), stdin=stdin)
    assert (done.exit_code, done.stderr) == (0, "sent 2 records to orders\n")
    run("topics", "alter", "orders", "--set", "max.message.bytes=1500000")
    done = run("produce", "orders", "--config", str(file), stdin=stdin)
    (line,) = done.stderr.splitlines()
    assert done.exit_code == 1
    assert all(each in line for each in ("line 2", "max.message.bytes", "records sent: 1"))


def test_many_small_records_are_sent_to_a_topic_of_small_batches(run: Run, broker: Broker) -> None:
    broker.create_topic("orders", 1, {"max.message.bytes": "1000"})
    done = run("produce", "orders", stdin=(b"x" * 100 + b"\n") * 200)
    assert (done.exit_code, done.stderr) == (0, "sent 200 records to orders\n")


@pytest.mark.slow
def test_control_c_ends_produce_also_while_the_broker_hangs(tmp_path: Path) -> None:
    with Broker(tmp_path) as broker:
        words = [COMMAND, "produce", "orders", "-b", broker.bootstrap_servers]
        # A shell starts what it runs in the background with SIGINT ignored.
        heeded = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"
        words[:1] = [sys.executable, "-c", f"{heeded}; from odradek.tools.cli import main; main()"]
        with subprocess.Popen(
            words, stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        ) as process:
            assert process.stdin is not None
            assert process.stderr is not None
            process.stdin.write("first\n")
            process.stdin.flush()
            # Less than a buffer is read before the input ends, so the first record is not sent yet.
            process.stdin.write("x\n" * 10_000)
            process.stdin.flush()
            sent = len(broker.wait_for_records("orders", 1))
            broker.delay(ApiKey.PRODUCE, 60_000)
            # More than a pipe holds: when this returns, some of it was read.
            process.stdin.write("more\n" * 100_000)
            process.stdin.flush()
            process.send_signal(signal.SIGINT)
            said = process.stderr.read()
            assert process.wait(LIMIT_S) == 130
    (line,) = said.splitlines()
    found = re.fullmatch(
        r"odradek: interrupted: sent (\d+) records; (\d+) more were not acknowledged", line
    )
    assert found, line
    assert int(found[1]) >= sent


def test_control_c_counts_a_record_whose_report_has_arrived(
    broker: Broker, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class LateProducer(Producer):
        """The report is not there when the record is sent, but at the next poll."""

        polls = 0

        def poll(self, _: float) -> int:
            self.polls += 1
            return super().poll(0 if self.polls == 1 else LIMIT_S)

    def interrupted() -> Iterator[bytes]:
        yield b'{"value":"x"}\n'
        raise KeyboardInterrupt

    broker.create_topic("orders")
    monkeypatch.setattr(producing, "Producer", LateProducer)
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=interrupted()))
    with pytest.raises(KeyboardInterrupt):
        produce(JSON_TO_ORDERS, broker.bootstrap_servers, None)
    assert capsys.readouterr().err == "odradek: interrupted: sent 1 record\n"


def test_control_c_while_a_record_is_queued_leaves_the_counts_right(
    broker: Broker, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class InterruptedProducer(Producer):
        """Control-C comes when the record is in the queue. Its report is there at the next poll."""

        def produce(self, *args: Any, **fields: Any) -> None:
            super().produce(*args, **fields)
            raise KeyboardInterrupt

        def poll(self, _: float) -> int:
            return super().poll(LIMIT_S)

    broker.create_topic("orders")
    monkeypatch.setattr(producing, "Producer", InterruptedProducer)
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(b'{"value":"x"}\n')))
    with pytest.raises(KeyboardInterrupt):
        produce(JSON_TO_ORDERS, broker.bootstrap_servers, None)
    assert capsys.readouterr().err == "odradek: interrupted: sent 1 record\n"


@pytest.mark.parametrize(("last", "end"), [(b"", "sent 5 records to orders\n"), (b"[]\n", "")])
def test_the_progress_on_a_terminal_ends_before_the_result(
    broker: Broker,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    last: bytes,
    end: str,
) -> None:
    broker.create_topic("orders")
    monkeypatch.setattr(producing, "REPORT_EVERY", 2)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    stdin = io.BytesIO(b'{"value":"x"}\n' * 5 + last)
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=stdin))
    fails = pytest.raises(CommandError, match=r"; records sent: 5$") if last else nullcontext()
    with fails:
        produce(JSON_TO_ORDERS, broker.bootstrap_servers, None)
    assert capsys.readouterr().err == f"\r2 records\r4 records\n{end}"


def test_one_line_end_is_cut(run: Run, broker: Broker) -> None:
    run("produce", "orders", stdin=b"a\r\r\nb\r\nc\n\r\nd\r")
    assert [each.value for each in broker.records("orders")] == [b"a\r", b"b", b"c", b"", b"d\r"]


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
        (["--from", "5"], []),
        (["--from", "@2000"], [2, 3, 4]),
        (["--until", "2"], [0, 1]),
        (["--until", "1970-01-01T00:00:02"], [0, 1]),
        (["--from", "1", "--until", "@3000"], [1, 2]),
        (["--last", "2", "--until", "4"], [2, 3]),
        (["--until", "1h"], [0, 1, 2, 3, 4]),
        (["--last", "2"], [3, 4]),
        (["--last", "99"], [0, 1, 2, 3, 4]),
        (["--last", str(1 << 63)], [0, 1, 2, 3, 4]),
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


def test_the_last_records_are_counted_without_markers_and_aborted_records(
    run: Run, broker: Broker
) -> None:
    """Ten committed transactions are followed by 40 aborted ones."""
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "transactional.id": "b"})
    producer.init_transactions(LIMIT_S)
    for number in range(50):
        producer.begin_transaction()
        producer.produce("orders", str(number))
        if number < 10:
            producer.commit_transaction(LIMIT_S)
        else:
            producer.flush(LIMIT_S)
            producer.abort_transaction(LIMIT_S)
    assert lines(run, "orders", "--last", "3") == ["7", "8", "9"]
    assert lines(run, "orders", "--last", "99") == [str(number) for number in range(10)]
    assert lines(run, "orders", "--last", "2", "--uncommitted") == ["48", "49"]
    assert lines(run, "orders", "--last", "2", "--until", "5") == ["1", "2"]


def test_the_last_records_of_a_compacted_topic_are_counted(run: Run, broker: Broker) -> None:
    broker.create_topic("orders", 2, {"cleanup.policy": "compact"})
    for number in range(60):
        key = b"many" if number >= 4 else b"%d" % number
        broker.produce("orders", b"%d" % number, key=key)
    broker.produce("orders", b"alone", key=b"a", partition=1)
    broker.run_compaction_now()
    assert sorted(lines(run, "orders")) == ["0", "1", "2", "3", "59", "alone"]
    assert sorted(lines(run, "orders", "--last", "3")) == ["2", "3", "59", "alone"]
    assert sorted(lines(run, "orders", "--last", "9")) == sorted(lines(run, "orders"))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--from", "6"], ["offset 6", "the end, 5", "@6"]),
        (["--from", "1795422600000"], ["@1795422600000"]),
        (["--until", "1795422600000"], ["@1795422600000"]),
        (["--from", "2999-01-01"], ["in the future"]),
        (["--from", "3", "--until", "3"], ["--until 3 is before --from 3"]),
        (["--until", "0"], ["no record before offset 0"]),
        (["--from", "\u0664"], ["is no time"]),
        (["--from", "-1"], ["is no time"]),
        (["--from", "@99999999999999999999"], ["is no time"]),
    ],
)
def test_a_position_without_records_is_refused(
    run: Run, broker: Broker, options: list[str], words: list[str]
) -> None:
    for number in range(5):
        broker.produce("orders", b"%d" % number)
    done = run("consume", "orders", *options)
    (line,) = done.stderr.splitlines()
    assert (done.exit_code, done.stdout) == (1, "")
    assert all(word in line for word in words), line


def test_deleted_records_are_mentioned(run: Run, broker: Broker) -> None:
    broker.create_topic("orders", 1, {"retention.ms": "1"})
    broker.produce("orders", b"old")
    broker.advance(10_000)
    broker.run_retention_now()
    run("topics", "alter", "orders", "--set", "retention.ms=-1")
    broker.produce("orders", b"new")
    done = run("consume", "orders", "--from", "0")
    assert (done.exit_code, done.stdout) == (0, "new\n")
    (line,) = done.stderr.splitlines()
    assert "begins at offset 1" in line
    assert run("consume", "orders").stderr == ""


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


@pytest.mark.parametrize("name", ["partition", "timestamp_ms"])
def test_what_comes_before_a_number_that_is_too_large_is_sent(
    run: Run, broker: Broker, name: str
) -> None:
    lines = f'{{"value":"1"}}\n{{"value":"2","{name}":{1 << 63}}}\n'.encode()
    done = run("produce", "orders", "--json", "--keep-partitions", stdin=lines)
    (line,) = done.stderr.splitlines()
    assert (done.exit_code, line.startswith("odradek: line 2 of standard input: ")) == (1, True)
    assert [record.value for record in broker.records("orders")] == [b"1"]


@pytest.mark.parametrize(
    "words",
    [
        "produce orders -p 2147483648",
        "produce orders -H \udcff=1",
        "produce orders -H a=\udcff",
        "topics create orders -p 2147483648",
        "topics alter orders -p 2147483648",
    ],
)
def test_an_option_that_cannot_be_sent_is_refused(run: Run, words: str) -> None:
    assert run(*words.split(), stdin=b"").exit_code == 2


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
    "words",
    [
        "produce orders -k a -K :",
        "produce orders --json -k a",
        "produce orders -J -K :",
        "produce orders --json -J",
        "produce orders --json --null",
        "produce orders --keep-partitions",
        "produce orders --json --keep-partitions -p 0",
        "consume orders --from 1 --last 1",
        "consume orders --follow --until 1",
        "consume orders --json --format %s",
        "consume orders --json -J",
        "topics alter orders --set a=1 --unset a",
        "topics create new --set a=1 --set a=2",
        "configs alter topic orders --set a=1 --unset a",
    ],
)
def test_options_that_contradict_each_other_are_refused(run: Run, words: str) -> None:
    assert run(*words.split()).exit_code == 2


@pytest.mark.parametrize(
    ("arguments", "stdin", "words"),
    [
        (["consume", "missing"], b"", ["missing", "odradek topics list"]),
        (["consume", "orders", "--from", "soon"], b"", ["soon", "15m"]),
        (["consume", "orders", "-p", "7"], b"", ["no partition 7"]),
        (["consume", "orders", "--format", "%q"], b"", ["%q", "%k"]),
        (["consume", "orders", "--format", "\\q"], b"", ["\\q"]),
        (["consume", "orders", "--format", "%é"], b"", ["%é is no token"]),
        (["consume", "orders", "--format", "\\é"], b"", ["\\é is no escape"]),
        (["produce", "orders", "-p", "7"], b"x", ["orders"]),
        (["produce", "orders", "-K", ":"], b"a:1\nb\n", ["line 2", "':'"]),
        (["produce", "orders", "--json"], b'{"value": 1}', ["line 1"]),
        (["produce", "orders", "--json"], b'{"value":"a"}\n\n{}', ["line 3", '"value": null']),
        (["produce", "orders", "--json"], b'{"key":"k1","payload":"v1"}', ["line 1", "payload"]),
        (["produce", "orders", "--json"], b'{"key":"k1","valeu":"v1"}', ["line 1", "valeu"]),
        (["produce", "orders", "--json"], b'{"value":"a","value_base64":"YQ=="}', ["twice"]),
        (["produce", "orders", "--json"], b'{"value":"a","headers":[{"name":"n"}]}', ["header n"]),
        (["produce", "orders", "--json"], b'{"value":"a","timestamp_ms":0}', ["timestamp 0"]),
        (["produce", "orders", "-J"], b'{"key":"k1"}', ["line 1", "payload"]),
        (["produce", "orders", "-J"], b'{"payload":"a","value":"b"}', ["line 1", "value"]),
        (["produce", "orders", "-J"], b'{"payload":"a","headers":["n"]}', ["header"]),
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
