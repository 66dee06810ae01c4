"""`odradek transactions`."""

import json
from collections.abc import Callable
from functools import partial
from typing import Any

import msgspec
import pytest
from click.testing import Result
from confluent_kafka import KafkaException, Producer

from odradek.broker.testing import Broker, Fault
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.describe_producers import DescribeProducersRequest
from odradek.protocol.messages.list_transactions import (
    ListTransactionsRequest,
    ListTransactionsTransaction,
)
from odradek.protocol.messages.metadata import MetadataRequest, MetadataResponse
from odradek.protocol.messages.produce import ProduceResponse
from odradek.protocol.record import Record
from odradek.protocol.record_batch import build_batch
from odradek.protocol.schema import Message
from odradek.tools.client import request_parts
from odradek.tools.client.wire import WireConnection
from tests.support.bystander import PRODUCE_VERSION, produce_request
from tests.support.wire import WireClient

Run = Callable[..., Result]
LIMIT_S = 20.0
STRANGER = 4711


def open_transaction(broker: Broker, name: str) -> Producer:
    """A producer of that transactional id that has sent a record and not committed it."""
    producer = Producer(
        {"bootstrap.servers": broker.bootstrap_servers, "transactional.id": name, "log_level": 0}
    )
    producer.init_transactions(LIMIT_S)
    producer.begin_transaction()
    producer.produce("orders", b"open")
    assert producer.flush(LIMIT_S) == 0
    return producer


def hang(run: Run, broker: Broker, producer_id: int = STRANGER, epoch: int = 0) -> None:
    """Leave a record of a transaction that no coordinator knows."""
    setting = "transaction.partition.verification.enable"
    assert run("configs", "alter", "broker", "0", "--set", f"{setting}=false").exit_code == 0
    batch = build_batch(
        [Record(None, b"hanging", 0)],
        producer_id=producer_id,
        producer_epoch=epoch,
        base_sequence=0,
        is_transactional=True,
    )
    request = produce_request("orders", bytes(batch))
    request = msgspec.structs.replace(request, transactional_id="stranger")
    with WireClient(int(broker.bootstrap_servers.partition(":")[2])) as client:
        answer = client.ask(request, ProduceResponse, PRODUCE_VERSION)
    assert answer.responses[0].partition_responses[0].error_code == 0


def test_ids_are_listed_and_described(run: Run, broker: Broker) -> None:
    broker.create_topic("orders")
    done = open_transaction(broker, "done")
    done.commit_transaction(LIMIT_S)
    open_transaction(broker, "waiting")
    listed = json.loads(run("transactions", "list", "--json").stdout)
    states = {each["transactional_id"]: each["state"] for each in listed}
    assert states == {"done": "CompleteCommit", "waiting": "Ongoing"}
    ongoing = json.loads(run("transactions", "list", "--state", "Ongoing", "--json").stdout)
    assert [each["transactional_id"] for each in ongoing] == ["waiting"]
    (described,) = json.loads(run("transactions", "describe", "waiting", "--json").stdout)
    assert described["producer_id"] == ongoing[0]["producer_id"]
    assert (described["state"], described["partitions"]) == ("Ongoing", {"orders": [0]})
    assert "waiting: Ongoing" in run("transactions", "describe", "waiting").stdout


def test_a_terminated_producer_is_fenced(run: Run, broker: Broker) -> None:
    broker.create_topic("orders")
    producer = open_transaction(broker, "stuck")
    (found,) = json.loads(run("transactions", "open", "--json").stdout)
    assert (found["transactional_id"], found["state"]) == ("stuck", "Ongoing")
    done = run("transactions", "terminate", "stuck")
    assert (done.exit_code, done.stdout) == (0, "fenced stuck\n")
    assert json.loads(run("transactions", "open", "--json").stdout) == []
    with pytest.raises(KafkaException):
        producer.commit_transaction(LIMIT_S)
    assert broker.records("orders") == []


@pytest.mark.parametrize(
    "error", [ErrorCode.CONCURRENT_TRANSACTIONS, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS]
)
def test_terminate_asks_again_until_the_producer_is_fenced(
    run: Run, broker: Broker, error: ErrorCode
) -> None:
    broker.create_topic("orders")
    open_transaction(broker, "stuck")
    before, timeout_ms = epoch_and_timeout(run, "stuck")
    broker.fail_next(ApiKey.INIT_PRODUCER_ID, error)
    assert run("transactions", "terminate", "stuck").exit_code == 0
    after, new_timeout_ms = epoch_and_timeout(run, "stuck")
    assert after > before
    assert new_timeout_ms == min(timeout_ms, 30_000)
    assert json.loads(run("transactions", "open", "--json").stdout) == []


def test_only_a_coordinator_that_may_come_is_awaited(run: Run, broker: Broker) -> None:
    broker.create_topic("orders")
    open_transaction(broker, "known")
    broker.fail_next(ApiKey.FIND_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE)
    assert run("transactions", "describe", "known").exit_code == 0
    refusal = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    broker.inject(Fault(api=ApiKey.FIND_COORDINATOR, error=refusal))
    done = run("transactions", "describe", "known")
    assert done.exit_code == 1
    (line,) = done.stderr.splitlines()
    assert "TRANSACTIONAL_ID_AUTHORIZATION_FAILED" in line
    assert "--config FILE" in line


def epoch_and_timeout(run: Run, name: str) -> tuple[int, int]:
    (described,) = json.loads(run("transactions", "describe", name, "--json").stdout)
    return described["producer_epoch"], described["timeout_ms"]


def test_a_hanging_transaction_is_found_and_aborted(run: Run, broker: Broker) -> None:
    broker.create_topic("orders")
    open_transaction(broker, "known")
    hang(run, broker)
    (found,) = json.loads(run("transactions", "open", "--hanging", "--json").stdout)
    expected = (STRANGER, 1, None, "hanging")
    names = ("producer_id", "start_offset", "transactional_id", "state")
    assert tuple(found[name] for name in names) == expected
    several = run("transactions", "abort", "orders", "0")
    assert several.exit_code == 1
    assert "--start-offset" in several.stderr
    done = run("transactions", "abort", "orders", "0", "--start-offset", "1")
    assert done.exit_code == 0, done.stderr
    assert json.loads(run("transactions", "open", "--hanging", "--json").stdout) == []
    assert run("transactions", "open", "--topic", "orders").stdout.startswith(
        "1 open transaction\n"
    )


def after_first(
    monkeypatch: pytest.MonkeyPatch, request_type: type[Message], act: Callable[[Any], object]
) -> None:
    """Let something happen after the command's first request of a type; `act` gets the response."""
    ask, left = WireConnection.ask, [act]

    def ask_and_act(self: WireConnection, request: Message, *others: Any) -> Any:
        answer = ask(self, request, *others)
        if isinstance(request, request_type) and left:
            left.pop()(answer)
        return answer

    monkeypatch.setattr(WireConnection, "ask", ask_and_act)


def test_a_transaction_that_begins_meanwhile_is_not_hanging(
    run: Run, broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    broker.create_topic("orders")
    open_transaction(broker, "known")
    begin = partial(open_transaction, broker, "new")
    after_first(monkeypatch, ListTransactionsRequest, lambda _: begin())
    assert json.loads(run("transactions", "open", "--hanging", "--json").stdout) == []


def test_a_transaction_that_ends_meanwhile_is_not_hanging(
    run: Run, broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    broker.create_topic("orders")
    known = open_transaction(broker, "known")
    after_first(monkeypatch, DescribeProducersRequest, lambda _: known.commit_transaction(LIMIT_S))
    assert json.loads(run("transactions", "open", "--hanging", "--json").stdout) == []


def test_an_id_that_expires_meanwhile_does_not_end_the_command(
    run: Run, broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    broker.create_topic("orders")
    open_transaction(broker, "known")
    expired = ListTransactionsTransaction(
        transactional_id="expired", producer_id=STRANGER, transaction_state="Empty"
    )
    after_first(
        monkeypatch,
        ListTransactionsRequest,
        lambda answer: answer.transaction_states.insert(0, expired),
    )
    (found,) = json.loads(run("transactions", "open", "--json").stdout)
    assert found["transactional_id"] == "known"


def test_the_owners_of_many_transactions_are_asked_for_in_parts(
    run: Run, broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask, sizes = WireConnection.ask, []

    def ask_and_count(self: WireConnection, request: Message, *others: Any) -> Any:
        if isinstance(request, ListTransactionsRequest):
            sizes.append(len(request.producer_id_filters))
        return ask(self, request, *others)

    broker.create_topic("orders")
    for name in ("one", "other"):
        open_transaction(broker, name)
    monkeypatch.setattr(WireConnection, "ask", ask_and_count)
    monkeypatch.setattr(request_parts, "ITEMS_OF_A_REQUEST", 1)
    found = json.loads(run("transactions", "open", "--json").stdout)
    assert [each["transactional_id"] for each in found] == ["one", "other"]
    assert sizes == [1, 1]


def test_a_partition_without_an_answer_does_not_hide_the_others(run: Run, broker: Broker) -> None:
    broker.create_topic("orders")
    broker.create_topic("lost", 2)
    open_transaction(broker, "known")
    error = ErrorCode.NOT_LEADER_OR_FOLLOWER
    broker.inject(Fault(api=ApiKey.DESCRIBE_PRODUCERS, topic="lost", error=error, times=2))
    done = run("transactions", "open", "--json")
    (found,) = json.loads(done.stdout)
    assert found["transactional_id"] == "known"
    (line,) = done.stderr.splitlines()
    assert done.exit_code == 1
    assert "lost-0" in line
    assert line.endswith("NOT_LEADER_OR_FOLLOWER; 1 more failed")


def test_a_transaction_of_a_newer_epoch_than_its_coordinator_has_is_hanging(
    run: Run, broker: Broker
) -> None:
    broker.create_topic("orders")
    open_transaction(broker, "known")
    (known,) = json.loads(run("transactions", "describe", "known", "--json").stdout)
    hang(run, broker, known["producer_id"], known["producer_epoch"] + 1)
    (found,) = json.loads(run("transactions", "open", "--hanging", "--json").stdout)
    assert (found["producer_id"], found["state"]) == (known["producer_id"], "hanging")


@pytest.mark.parametrize("words", [["open"], ["abort", "orders", "0"]])
def test_a_topic_that_may_not_be_described_is_not_called_missing(
    run: Run, broker: Broker, monkeypatch: pytest.MonkeyPatch, words: list[str]
) -> None:
    def refuse(answer: MetadataResponse) -> None:
        code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        answer.topics[0] = msgspec.structs.replace(answer.topics[0], error_code=code, partitions=[])

    broker.create_topic("orders")
    after_first(monkeypatch, MetadataRequest, refuse)
    done = run("transactions", *words)
    assert done.exit_code == 1
    (line,) = done.stderr.splitlines()
    assert "TOPIC_AUTHORIZATION_FAILED; give --config FILE" in line


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["describe", "missing"], "odradek transactions list"),
        (["terminate", "missing"], "odradek transactions list"),
        (["list", "--state", "Sleeping"], "Sleeping"),
        (["abort", "orders", "0"], "no such transaction"),
        (["abort", "orders", "9"], "orders-9"),
        (["open", "--topic", "missing"], "missing"),
    ],
)
def test_a_mistake_is_one_line(run: Run, broker: Broker, words: list[str], text: str) -> None:
    broker.create_topic("orders")
    open_transaction(broker, "done").abort_transaction(LIMIT_S)
    done = run("transactions", *words)
    assert done.exit_code == 1
    (line,) = done.stderr.splitlines()
    assert text in line
