"""kill -9 in the middle of everything, again and again, on one directory and one port.

Each round starts the broker, lets producers, a committer and a maker of topics work for a moment
that a seeded generator chooses, and kills it; now and then it is killed while it still recovers.
In between, what was promised is held against what is there.
"""

import contextlib
import random
import time
from collections.abc import Callable, Iterator, Sequence

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, TopicPartition

from tests.crash.administrators import Committer, TopicMaker
from tests.crash.ledger import Stored, broken, out_of_order
from tests.crash.pace import PARTITIONS
from tests.crash.writers import ConfluentWriter, KafkaPythonWriter, Writer
from tests.support.broker_process import BrokerProcess, against_apache_kafka
from tests.support.lengths import KILLS, SEED, by_length
from tests.support.topics import create_topic

pytestmark = pytest.mark.slow

ROUNDS = by_length(3, KILLS)
LIFE_SECONDS = (0.2, 1.5)
RECOVERY_KILLS = 0.3  # how often a broker is killed before it is ready, too
READ_SECONDS = 60.0
NO_LEADER_YET = {KafkaError.LEADER_NOT_AVAILABLE, KafkaError.NOT_LEADER_FOR_PARTITION}


@pytest.fixture
def writers(broker: BrokerProcess) -> Iterator[Sequence[Writer]]:
    found = [
        KafkaPythonWriter(broker.bootstrap),
        ConfluentWriter(broker.bootstrap, "idempotent", idempotent=True),
        ConfluentWriter(broker.bootstrap, "acks-all", idempotent=False),
    ]
    for writer in found:
        create_topic(broker.bootstrap, writer.topic, PARTITIONS)
        writer.start()
    yield found
    for writer in found:
        writer.stop()


@pytest.fixture
def broker(start_broker: Callable[..., BrokerProcess]) -> BrokerProcess:
    """Segments are small, so that a kill also meets a roll."""
    return start_broker(**{"log.segment.bytes": str(1 << 20), "log.index.interval.bytes": "1024"})


def stored_records(bootstrap: str, topic: str) -> dict[int, list[Stored]]:
    """Everything that is in a topic now; what comes while it is read may be there too."""
    settings = {
        "bootstrap.servers": bootstrap,
        "group.id": "none",
        "enable.auto.commit": False,
        "check.crcs": True,
    }
    consumer = Consumer(settings)
    places = [TopicPartition(topic, each, OFFSET_BEGINNING) for each in range(PARTITIONS)]
    deadline = time.monotonic() + READ_SECONDS
    ends = {place.partition: end_of(consumer, place, deadline) for place in places}
    consumer.assign(places)
    found: dict[int, list[Stored]] = {partition: [] for partition in range(PARTITIONS)}
    while any(len(found[partition]) < end for partition, end in ends.items()):
        assert time.monotonic() < deadline, f"{topic} cannot be read to its end"
        for message in consumer.consume(10_000, 0.1):
            assert message.error() is None, message.error()
            found[message.partition()].append(Stored(message.offset(), message.value()))
    consumer.close()
    return found


def end_of(consumer: Consumer, place: TopicPartition, deadline: float) -> int:
    """The high watermark; a partition may still be without a leader when the broker answers."""
    while True:
        try:
            return consumer.get_watermark_offsets(place, timeout=READ_SECONDS)[1]
        except KafkaException as error:
            if error.args[0].code() not in NO_LEADER_YET or time.monotonic() > deadline:
                raise
            time.sleep(0.05)


def assert_kept(bootstrap: str, writer: Writer) -> None:
    """What was acknowledged is in its place; an idempotent writer's records once, in order."""
    assert writer.errors == []
    promised = writer.ledger.promises()  # before the reading: the writer goes on meanwhile
    for partition, stored in stored_records(bootstrap, writer.topic).items():
        assert [record.offset for record in stored] == list(range(len(stored)))
        assert broken(promised.get(partition, {}), stored) == []
        if writer.is_idempotent:
            assert out_of_order(stored) == []


def settled(broken_promises: Callable[[], list[str]]) -> list[str]:
    """odradek keeps its promises from the first answer on; Kafka still reads its metadata then."""
    patience = 100 if against_apache_kafka() else 0
    for _ in range(patience):
        with contextlib.suppress(KafkaException):  # no coordinator yet
            if not broken_promises():
                break
        time.sleep(0.1)
    return broken_promises()


def test_what_was_acknowledged_survives_every_kill(
    broker: BrokerProcess, writers: Sequence[Writer]
) -> None:
    chance = random.Random(SEED)
    committer = Committer(broker.bootstrap, writers[0].topic)
    maker = TopicMaker(broker.bootstrap)
    committer.start()
    maker.start()
    try:
        for _ in range(ROUNDS):
            time.sleep(chance.uniform(*LIFE_SECONDS))
            broker.kill()
            if chance.random() < RECOVERY_KILLS:
                broker.start_without_waiting()
                time.sleep(chance.uniform(0.05, 0.6))
                broker.kill()
            broker.start()
            for writer in writers:
                assert_kept(broker.bootstrap, writer)
            assert settled(committer.broken_promises) == []
            assert settled(maker.broken_promises) == []
    finally:
        committer.stop()
        maker.stop()
        if not broker.is_running:
            broker.start()  # the writers need it to come to their end
    for writer in writers:
        writer.stop()
        assert_kept(broker.bootstrap, writer)
        assert len(writer.ledger) == writer.written, "not everything was acknowledged in the end"
    assert committer.promised > ROUNDS
    assert len(maker.created) > ROUNDS


def test_a_clean_stop_needs_no_recovery_and_loses_nothing(
    broker: BrokerProcess, writers: Sequence[Writer]
) -> None:
    for _ in range(2):
        time.sleep(0.5)
        assert broker.terminate() in broker.clean_exit_codes
        broker.start()
        for writer in writers:
            assert_kept(broker.bootstrap, writer)
    for writer in writers:
        writer.stop()
        assert_kept(broker.bootstrap, writer)
