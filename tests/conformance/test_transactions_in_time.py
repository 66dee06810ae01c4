"""Transactions that time out, ids that expire, and settings that change: both brokers answer alike.

The brokers look for timeouts and expired ids several times a second. Nevertheless each conversation
waits for seconds, so that two are held in long runs only.
"""

import time
from collections.abc import Iterator

import pytest

from odradek.protocol.messages.describe_transactions import DescribeTransactionsRequest
from odradek.protocol.messages.update_features import UpdateFeaturesRequest, UpdateFeaturesUpdate
from tests.conformance.compared_conversations import Kafka, compare_with_kafka
from tests.conformance.conversation import Conversation
from tests.conformance.conversations import Talk
from tests.conformance.transactional_producer import TransactionalProducer, new_producer
from tests.support.broker_process import BrokerProcess
from tests.support.config_requests import alter_configs_request
from tests.support.kafka_answers import ASKS_KAFKA, kafka_when_asked

pytestmark = [pytest.mark.slow, pytest.mark.recorded]

TIMEOUT_MS = 3_000
PATIENCE_S = 60.0
SETTINGS = {
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "200",
    "transactional.id.expiration.ms": "8000",
    "transaction.remove.expired.transaction.cleanup.interval.ms": "500",
}
BROKER_RESOURCE = 4
UPGRADE, DOWNGRADE = 1, 2
VERIFICATION = "transaction.partition.verification.enable"


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kafka]:
    """The reference, if it is asked."""
    with kafka_when_asked(tmp_path_factory.mktemp("kafka"), SETTINGS) as kafka:
        yield kafka


@pytest.fixture(scope="module")
def odradek(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    process = BrokerProcess(tmp_path_factory.mktemp("odradek"), SETTINGS)
    try:
        yield process.start()
    finally:
        process.stop()


def wait_for(one: TransactionalProducer, state: str) -> None:
    """Until the transactional id is in that state; "": until it is not known any more."""
    request = DescribeTransactionsRequest(transactional_ids=[one.transactional_id])
    deadline = time.monotonic() + PATIENCE_S
    while True:
        (found,) = one.talk.silently(request, 0).transaction_states
        if found.transaction_state == state:
            return
        assert time.monotonic() < deadline, f"{one.transactional_id}: {found.transaction_state}"
        time.sleep(0.02)


def begin(one: TransactionalProducer, producer: tuple, partition: int = 0) -> None:
    if not one.is_v2:
        one.add(producer, partition)
    one.write(producer, 0, partition)


def time_out(talk: Conversation, *, is_v2: bool) -> None:
    one = new_producer(talk, "late", is_v2=is_v2)
    producer = one.start(timeout_ms=TIMEOUT_MS)
    begin(one, producer)
    wait_for(one, "CompleteAbort")
    one.describe()
    one.write(producer, 1)
    one.write(producer, 0, 1)
    one.add(producer, 1)
    one.commit_offset(producer, f"group-{one.transactional_id}", 3)
    one.end(producer, commit=True)
    one.end(producer, commit=False)
    one.read(1)
    again = one.start(expected=producer)
    one.describe()
    if again[0] < 0:
        again = one.start()
    begin(one, again)
    one.end(again, commit=True)
    one.read(1)


def time_out_v1(talk: Conversation) -> None:
    time_out(talk, is_v2=False)


def time_out_v2(talk: Conversation) -> None:
    time_out(talk, is_v2=True)


def expire(talk: Conversation) -> None:
    """An id that was used, one that was only started, and one with an open transaction."""
    used = new_producer(talk, "used", is_v2=True)
    begun = used.start()
    begin(used, begun)
    producer = used.end(begun, commit=True)
    started = new_producer(talk, "started", is_v2=True)
    idle = started.start()
    busy = new_producer(talk, "open", is_v2=True)
    held = busy.start(timeout_ms=120_000)
    begin(busy, held)
    wait_for(used, "")
    wait_for(started, "")
    for one, old in ((used, producer), (started, idle), (busy, held)):
        one.describe()
        one.write(old, 0, 2)
        one.add(old, 1)
        one.commit_offset(old, f"group-{one.transactional_id}", 3)
        one.end(old, commit=True)
    used.start(expected=producer)
    new = started.start()
    begin(started, new)
    started.end(new, commit=True)


def finalize(talk: Conversation, level: int, upgrade_type: int) -> None:
    update = UpdateFeaturesUpdate(
        feature="transaction.version", max_version_level=level, upgrade_type=upgrade_type
    )
    talk.ask(UpdateFeaturesRequest(feature_updates=[update]), 1, title=f"version {level}")


def change_versions(talk: Conversation) -> None:
    """Transactions of both versions stay open while transaction.version changes.

    At level 0 Kafka cannot write what producers of version 2 ask for, and answers them with
    CONCURRENT_TRANSACTIONS from then on. odradek serves them. So they do not ask here.
    """
    before = 2
    for level, upgrade_type in ((1, DOWNGRADE), (2, UPGRADE), (0, DOWNGRADE), (1, UPGRADE)):
        name = f"from-{before}-to-{level}"
        goes_on = [new_producer(talk, f"old-{name}", is_v2=False)]
        if before and level:
            goes_on.append(new_producer(talk, f"new-{name}", is_v2=True))
        fenced = new_producer(talk, f"fenced-{name}", is_v2=before > 0)
        late = new_producer(talk, f"late-{name}", is_v2=before > 0)
        producers = [each.start() for each in (*goes_on, fenced)]
        for each, producer in zip((*goes_on, fenced), producers, strict=True):
            begin(each, producer)
        timed = late.start(timeout_ms=TIMEOUT_MS)
        begin(late, timed)
        finalize(talk, level, upgrade_type)
        for each, producer in zip(goes_on, producers[:-1], strict=True):
            each.write(producer, 1)
            each.describe()
            after = each.end(producer, commit=True)
            each.end(producer, commit=True)
            each.describe()
            begin(each, after, 1)
            after = each.end(after, commit=False)
            again = each.start(expected=after)
            each.start(expected=after)
            begin(each, again)
            each.end(again, commit=True)
            each.describe()
            each.read(1)
        fenced.start()  # aborts the open transaction, and asks the producer to come again
        fenced.describe()
        fenced.start()
        wait_for(late, "CompleteAbort")
        late.describe()
        late.end(timed, commit=False)
        late.read(1)
        before = level


def trust_old_producers(talk: Conversation) -> None:
    """Verification is switched off and on again while a transaction is open."""
    one = new_producer(talk, "trusted", is_v2=False)
    group = f"group-{one.transactional_id}"
    producer = one.start()
    for value in ("false", "true"):
        talk.ask(alter_configs_request(BROKER_RESOURCE, "", {VERIFICATION: value}), 1)
        time.sleep(0.5)  # Kafka applies it after its answer
        one.write(producer, 0, 0)
        one.write(producer, 1, 0)
        one.commit_offset(producer, group, 3)
        one.end(producer, commit=True)
        one.add(producer, 1)
        one.write(producer, 0, 1)
        one.end(producer, commit=False)
        one.read(0)
        one.read(1)


TALKS = (time_out_v2, expire, trust_old_producers)
if ASKS_KAFKA:
    TALKS += (time_out_v1, change_versions)


@pytest.mark.parametrize("talk", TALKS, ids=lambda talk: talk.__name__)
def test_both_brokers_answer_alike(talk: Talk, kafka: Kafka, odradek: BrokerProcess) -> None:
    name = f"transactions_in_time/{talk.__name__}"
    compare_with_kafka(name, talk, kafka, odradek.port, to_the_end=True)
