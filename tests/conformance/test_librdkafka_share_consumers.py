"""librdkafka's share consumers: every record is settled, and none comes again after that."""

import threading
from random import Random

import pytest
from confluent_kafka import AcknowledgeType, Message, ShareConsumer

from tests.conformance.share_reader import fill_queue
from tests.support.broker_process import BrokerProcess
from tests.support.lengths import SEED

pytestmark = pytest.mark.slow

MEMBERS, PARTITIONS, RECORDS = 2, 3, 1_000
LIMIT_SECONDS = 60.0
KINDS = [AcknowledgeType.ACCEPT] * 7 + [AcknowledgeType.RELEASE] * 2 + [AcknowledgeType.REJECT]


class Ledger:
    """The records that the broker has confirmed as done, and those that came after that."""

    def __init__(self) -> None:
        self.settled: set[tuple[int, int]] = set()
        self.again: list[tuple[int, int]] = []
        self.deadline = threading.Event()
        self._lock = threading.Lock()

    @property
    def is_complete(self) -> bool:
        return len(self.settled) >= RECORDS or self.deadline.is_set()

    def received(self, place: tuple[int, int]) -> None:
        with self._lock:
            if place in self.settled:
                self.again.append(place)

    def confirmed(self, places: set[tuple[int, int]]) -> None:
        with self._lock:
            self.settled |= places


def test_every_record_is_settled_once(broker: BrokerProcess) -> None:
    fill_queue(
        broker,
        "shared-orders",
        "librdkafka",
        partitions=PARTITIONS,
        records=RECORDS,
        **{"share.delivery.count.limit": "10"},
    )
    ledger = Ledger()
    members = [
        threading.Thread(target=work, args=(broker.bootstrap, ledger, Random(SEED + number)))
        for number in range(MEMBERS)
    ]
    too_late = threading.Timer(LIMIT_SECONDS, ledger.deadline.set)
    too_late.start()
    for member in members:
        member.start()
    for member in members:
        member.join()
    too_late.cancel()
    assert len(ledger.settled) == RECORDS
    assert ledger.again == []


def work(bootstrap: str, ledger: Ledger, chance: Random) -> None:
    """One member: it settles what it gets, until all is settled."""
    settings = {
        "bootstrap.servers": bootstrap,
        "group.id": "librdkafka",
        "share.acknowledgement.mode": "explicit",
    }
    with ShareConsumer(settings) as consumer:
        consumer.subscribe(["shared-orders"])
        while not ledger.is_complete:
            settling: dict[int, set[tuple[int, int]]] = {}
            for message in consumer.poll(0.2):
                assert message.error() is None, message.error()
                place = place_of(message)
                ledger.received(place)
                kind = chance.choice(KINDS)
                consumer.acknowledge(message, kind)
                if kind is not AcknowledgeType.RELEASE:
                    settling.setdefault(place[0], set()).add(place)
            for partition, error in consumer.commit_sync(LIMIT_SECONDS).items():
                if error is None:
                    ledger.confirmed(settling.get(partition.partition, set()))


def place_of(message: Message) -> tuple[int, int]:
    partition, offset = message.partition(), message.offset()
    assert partition is not None
    assert offset is not None
    return partition, offset
