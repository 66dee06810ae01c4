"""kafka-transactions.sh in all its commands: what it says of odradek, it says of Apache Kafka.

One script, run against both, with the tool in one JVM. The brokers do not verify transactions
(`transaction.partition.verification.enable=false`), so that raw requests can make hanging ones.
Times and durations are named away. Rows are compared sorted, because their order is that of hash
tables.
"""

import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka import Producer

from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.list_transactions import (
    ListTransactionsRequest,
    ListTransactionsResponse,
)
from odradek.protocol.messages.produce import ProduceResponse
from tests.conformance.requests import batch_of, request_with
from tests.support.broker_process import BrokerProcess
from tests.support.kafka_answers import kafka_answers, kafka_when_asked
from tests.support.lengths import only_long
from tests.support.topics import create_topic
from tests.support.warm_tools import WarmTools
from tests.support.wire import WireClient

pytestmark = [
    pytest.mark.java,
    pytest.mark.slow,
    pytest.mark.recorded,
    only_long("the answers are in test_same_answers.py"),
]

SETTINGS = {
    "transaction.partition.verification.enable": "false",
    "transaction.state.log.num.partitions": "2",
    "offsets.topic.num.partitions": "1",
}
# Of producers that no coordinator knows. The records are old enough for find-hanging.
HANGING = ((7001, 0), (7002, 3), (7003, 0), (7004, 1))
OLD_MS = 1_700_000_000_000
PATIENCE_S = 20.0
TIMES = re.compile(r"\b\d{13}\b|(?<=adminclient-)\d+|(?<=TIME )\d+")
# What the client says depends on what it waited for last.
TIMED_OUT = re.compile(
    r"Call\(callName=(\w+)\(.* timed out at .* attempt\(s\)"
    r"|Timed out waiting for a node assignment. Call: (\w+)\(.*?\)"
)
FRAME = re.compile(r"^\s+at |^\s+\.\.\. \d+ more")


@contextmanager
def made_transactions(broker: BrokerProcess) -> Iterator[None]:
    """Transactions in every state that lasts, and four that hang in orders-0."""
    for topic in ("orders", "bills"):
        create_topic(broker.bootstrap, topic, 2)
    started(broker, "empty")
    committed, aborted = started(broker, "committed"), started(broker, "aborted")
    write(committed, ("bills", 0))
    committed.commit_transaction(PATIENCE_S)
    write(aborted, ("bills", 0))
    aborted.abort_transaction(PATIENCE_S)
    settle(broker)
    kept = [started(broker, name) for name in ("open-1", "open-2")]
    for producer in kept:  # one that is collected would abort its transaction
        write(producer, ("bills", 1), ("orders", 1))
    with WireClient(broker.port) as client:
        for producer_id, epoch in HANGING:
            write_unverified(client, producer_id, epoch)
    yield


def started(broker: BrokerProcess, name: str) -> Producer:
    """A transactional producer that has its id."""
    producer = Producer(
        {
            "bootstrap.servers": broker.bootstrap,
            "transactional.id": name,
            "transaction.timeout.ms": 600_000,
            "log_level": 0,
        }
    )
    producer.init_transactions(PATIENCE_S)
    return producer


def write(producer: Producer, *places: tuple[str, int]) -> None:
    """Begin a transaction, and write a record of long ago to each topic and partition."""
    producer.begin_transaction()
    for topic, partition in places:
        producer.produce(topic, b"value", partition=partition, timestamp=OLD_MS)
        assert producer.flush(PATIENCE_S) == 0


def write_unverified(client: WireClient, producer_id: int, epoch: int) -> None:
    """A transactional batch of which no coordinator is told."""
    batch = batch_of("x", at_ms=OLD_MS, producer=(producer_id, epoch, 0), transactional=True)
    request = request_with("orders", bytes(batch), transactional_id=f"lost-{producer_id}")
    answer = client.ask(request, ProduceResponse, 11)
    [partition] = answer.responses[0].partition_responses
    assert partition.error_code == ErrorCode.NONE


def settle(broker: BrokerProcess) -> None:
    """Wait until no transaction is being completed."""
    deadline = time.monotonic() + PATIENCE_S
    request = ListTransactionsRequest(
        state_filters=["PrepareCommit", "PrepareAbort"], producer_id_filters=[]
    )
    with WireClient(broker.port) as client:
        while client.ask(request, ListTransactionsResponse, 1).transaction_states:
            assert time.monotonic() < deadline
            time.sleep(0.01)


def script(quick: Path) -> Iterator[tuple[str, ...]]:
    """Command lines, in this order: what one changes, the next ones show."""
    yield from looks()
    yield from errors(quick)
    yield from aborts()
    yield from terminations()


def looks() -> Iterator[tuple[str, ...]]:
    yield ("list",)
    for duration in ("-1", "0", "100000000000"):
        yield ("list", "--duration-filter", duration)
    for pattern in ("open-.*", "open", ".*ed", "", "a(b", "none"):
        yield ("list", "--transactional-id-pattern", pattern)
    yield ("list", "--duration-filter", "0", "--transactional-id-pattern", "open-1")
    for name in ("empty", "committed", "aborted", "open-1", "never", ""):
        yield ("describe", "--transactional-id", name)
    for topic in ("orders", "bills"):
        for partition in ("0", "1"):
            yield ("describe-producers", "--topic", topic, "--partition", partition)
    where = ("--topic", "orders", "--partition", "0")
    yield ("describe-producers", *where, "--broker-id", "0")
    yield ("find-hanging", "--topic", "orders")
    yield ("find-hanging", "--broker-id", "0")
    yield ("find-hanging", *where, "--broker-id", "0")
    yield ("find-hanging", *where, "--max-transaction-timeout", "0")
    yield ("find-hanging", *where, "--max-transaction-timeout", "100000000")
    yield ("find-hanging", "--topic", "bills")


def errors(quick: Path) -> Iterator[tuple[str, ...]]:
    """What the tool refuses, and what the broker does."""
    yield ("describe",)
    yield ("find-hanging",)
    yield ("find-hanging", "--partition", "0")
    yield ("abort", "--topic", "orders", "--partition", "0")
    yield ("abort", "--topic", "orders", "--partition", "0", "--producer-id", "7001")
    yield ("abort", "--topic", "orders", "--partition", "0", "--start-offset", "99")
    yield ("find-hanging", "--topic", "none")
    for words in (
        ("describe-producers", "--topic", "none", "--partition", "0"),
        ("describe-producers", "--topic", "orders", "--partition", "0", "--broker-id", "9"),
    ):
        yield ("--command-config", str(quick), *words)


def aborts() -> Iterator[tuple[str, ...]]:
    where = ("--topic", "orders", "--partition", "0")
    old = ("--coordinator-epoch", "-1")
    yield ("abort", *where, "--start-offset", "0")
    yield ("abort", *where, "--start-offset", "0")
    yield ("abort", *where, "--producer-id", "7002", "--producer-epoch", "2", *old)
    yield ("abort", *where, "--producer-id", "7002", "--producer-epoch", "3", *old)
    yield ("abort", *where, "--producer-id", "7003", "--producer-epoch", "5", *old)
    yield ("abort", *where, "--producer-id", "8000", "--producer-epoch", "0", *old)
    yield ("find-hanging", *where)
    yield ("describe-producers", *where)
    # Also of a transaction that its coordinator knows: it ends in this partition alone.
    yield ("abort", "--topic", "bills", "--partition", "1", "--start-offset", "0")
    yield ("describe-producers", "--topic", "bills", "--partition", "1")
    yield ("describe", "--transactional-id", "open-1")


def terminations() -> Iterator[tuple[str, ...]]:
    for name in ("open-1", "empty", "committed", "aborted"):
        yield ("forceTerminateTransaction", "--transactionalId", name)
        yield ("describe", "--transactional-id", name)
    yield ("forceTerminateTransaction",)
    yield ("describe-producers", "--topic", "orders", "--partition", "1")
    yield ("list",)


def told(broker: BrokerProcess, lines: list[tuple[str, ...]]) -> list[list[str]]:
    """What the tool says to each command line, with what must differ named away."""
    answers = []
    with WarmTools() as tools, made_transactions(broker):
        for words in lines:
            server = ("--bootstrap-server", broker.bootstrap)
            code, output = tools.run("TransactionsCommand", *server, *words)
            answers.append([f"exit {code}", *sorted(plain(output, broker))])
    return answers


def plain(output: str, broker: BrokerProcess) -> Iterator[str]:
    """Its lines without columns' widths, times, ports and stack frames."""
    for line in output.replace(f":{broker.port}", ":PORT").splitlines():
        if not FRAME.match(line):
            line = TIMED_OUT.sub(r"\1\2 timed out", " ".join(line.split()))
            yield TIMES.sub("N", TIMES.sub("TIME", line))


def test_the_tool_says_the_same_of_both_brokers(
    tmp_path: Path, start_broker: Callable[..., BrokerProcess]
) -> None:
    quick = tmp_path / "quick.properties"
    quick.write_text("request.timeout.ms=700\ndefault.api.timeout.ms=700\n")
    lines = list(script(quick))
    with kafka_when_asked(tmp_path / "kafka", SETTINGS) as kafka:
        expected = kafka_answers("tools/transactions", lambda: told(kafka(), lines))
    found = told(start_broker(**SETTINGS), lines)
    differing = [
        f"{' '.join(words)}\nKafka:   {theirs}\nodradek: {ours}"
        for words, theirs, ours in zip(lines, expected, found, strict=True)
        if theirs != ours
    ]
    assert not differing, "\n".join(differing)
    said = "\n".join(line for answer in found for line in answer)
    for words in ("orders 0 7002 3 -1 1", "could not find any open transactions", "CompleteAbort"):
        assert words.lower() in said.lower(), "the transactions were not made"
