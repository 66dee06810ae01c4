"""What producers, consumers, transactions and share groups live through while nodes fail.

Each function is a script for any library. It asserts that every acknowledged record is there once,
and that consumers get every committed record. It returns what else the application saw: names of
errors, for example, which must be the same with Apache Kafka.
"""

import time
from collections.abc import Callable, Collection
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from dataclasses import dataclass

from tests.conformance.cluster.asked_coordinators import committed
from tests.conformance.cluster.client import (
    Consumer,
    ConsumerSettings,
    Library,
    Producer,
    ProducerSettings,
)
from tests.conformance.cluster.talk import TRANSACTION, ClusterTalk
from tests.conformance.share_reader import prepare_group
from tests.support.clusters import NODE_IDS, CuttableCluster
from tests.support.committed import committed_by_partition, committed_values, wait_until_decided
from tests.support.waiting import wait_until
from tests.support.wire import WireClient

READ_SECONDS = 90.0
CUT_SECONDS = 5.0
REQUEST_MS = 2_000  # a client that is cut off gives up a request after this time
FOLLOWER_SECONDS = 8.0  # less than a client waits for a leader that does not answer
PARTITIONS = (0, 1)


@dataclass(frozen=True, slots=True)
class Stage:
    """What a script has to do with: the cluster, a library, and names that no other script uses."""

    cluster: CuttableCluster
    talk: ClusterTalk
    library: Library
    topic: str
    stack: ExitStack

    @property
    def group(self) -> str:
        """A group id."""
        return f"group-of-{self.topic}"

    @property
    def transactional_id(self) -> str:
        """A transactional id."""
        return f"id-of-{self.topic}"

    def producer(
        self,
        *,
        transactional_id: str | None = None,
        retries: int | None = None,
        timeout_ms: int | None = None,
        cuttable: bool = False,
    ) -> Producer:
        """A producer, which ends with the script."""
        settings = ProducerSettings(
            bootstrap=self._bootstrap(cuttable),
            transactional_id=transactional_id,
            retries=retries,
            timeout_ms=timeout_ms,
        )
        return self.stack.enter_context(closing(self.library.producer(settings)))

    def consumer(self, *, rack: str | None = None, cuttable: bool = False) -> Consumer:
        """A member of the group, which leaves with the script's end."""
        settings = ConsumerSettings(
            bootstrap=self._bootstrap(cuttable),
            group=self.group,
            topic=self.topic,
            rack=rack,
        )
        return self.stack.enter_context(closing(self.library.consumer(settings)))

    def share_consumer(self) -> Consumer:
        """A member of a share group."""
        settings = ConsumerSettings(
            bootstrap=self._bootstrap(False), group=self.group, topic=self.topic
        )
        return self.stack.enter_context(closing(self.library.share_consumer(settings)))

    def _bootstrap(self, cuttable: bool) -> str:
        return self.cluster.cuttable_bootstrap if cuttable else self.cluster.bootstrap_servers

    def assert_there_once(self, values: list[str], seen: list[str]) -> None:
        """The values, sent to two partitions in turn, are there once and in order."""
        places = [(self.topic, each) for each in PARTITIONS]
        found = committed_by_partition(self.talk.address_of_running(), places)
        for place in places:
            here = [one.decode() for one in found[place]]
            assert here == values[place[1] :: 2], f"{seen}: {here}"

    def assert_committed(self, values: list[str]) -> None:
        """The transactions have ended, and readers of committed records find just these values."""
        bootstrap = self.talk.address_of_running()
        wait_until_decided(bootstrap, self.topic, len(PARTITIONS))
        found = committed_values(bootstrap, self.topic, len(PARTITIONS))
        assert sorted(one.decode() for one in found) == sorted(values)

    def committed_offsets(self, coordinator: int) -> list[int]:
        """The offsets that the group has committed."""
        asked = committed(self.group, self.topic, partitions=PARTITIONS)
        (one,) = self.talk.silently(coordinator, asked).groups[0].topics
        return [partition.committed_offset for partition in one.partitions]


def leader_killed(stage: Stage) -> list[str]:
    talk = stage.talk
    talk.create_topic(stage.topic, [1, 2, 3], [2, 3, 1])
    values = _values(400)
    producer = stage.producer()
    seen = _send(producer, stage.topic, values[:100])
    for number, value in enumerate(values[100:]):
        if number == 100:  # the hundred before have had no answer, or are not sent
            talk.cluster.node(1).kill()
            talk.lost(1)
        producer.send(stage.topic, number % 2, value)
    seen += producer.flush()
    talk.wait_for_state(stage.topic, 0, leader=2, isr=[2, 3])
    talk.wait_for_state(stage.topic, 1, leader=2, isr=[2, 3])
    stage.assert_there_once(values, seen)
    return seen


def coordinator_killed_while_consuming(stage: Stage) -> list[str]:
    talk = stage.talk
    talk.create_topic(stage.topic, [1, 3], [3, 1])
    talk.place_coordinator(stage.group, [2, 3, 1])
    values = _values(300)
    producer, consumer = stage.producer(), stage.consumer()
    seen = _send(producer, stage.topic, values[:200])
    found = _read(consumer, 50)
    consumer.commit()
    talk.kill(2)
    seen += _send(producer, stage.topic, values[200:])
    found |= _read(consumer, 300 - len(found), found)
    assert found == {*values}
    talk.wait_for_coordinator(stage.group, 3)
    _commit_until(stage, consumer, 3, [150, 150])
    return seen


def coordinator_moved_during_a_rebalance(stage: Stage) -> list[str]:
    """The second member has asked to join, and the first may not know it yet."""
    talk = stage.talk
    talk.create_topic(stage.topic, [1, 3], [3, 1])
    talk.place_coordinator(stage.group, [2, 3, 1])
    values = _values(100)
    producer, first = stage.producer(), stage.consumer()
    seen = _send(producer, stage.topic, values)
    found = _read(first, 100)
    first.commit()
    second = stage.consumer()
    found |= {*second.poll()}
    talk.coordinate(stage.group, 3)
    sent = {*values}
    has_read = [False, False]  # since then
    deadline = time.monotonic() + READ_SECONDS
    while not (all(has_read) and sent <= found):
        assert time.monotonic() < deadline, f"{has_read}, not read: {sent - found}"
        if not all(has_read):
            pair = [f"value-{number}" for number in range(len(sent), len(sent) + 2)]
            seen += _send(producer, stage.topic, pair)
            sent |= {*pair}
        for number, consumer in enumerate((first, second)):
            new = {*consumer.poll()} - {*values}
            has_read[number] |= bool(new)
            found |= new
    return seen


def transaction_coordinator_killed(stage: Stage) -> list[str]:
    talk = stage.talk
    values = _values(20)
    producer = _in_transaction(stage)
    seen = _send(producer, stage.topic, values[:10])
    talk.kill(2)
    seen += _send(producer, stage.topic, values[10:])
    producer.commit()
    producer.begin()  # and the next
    seen += _send(producer, stage.topic, ["after"])
    producer.commit()
    stage.assert_committed([*values, "after"])
    return seen


def transaction_coordinator_moved(stage: Stage) -> list[str]:
    """In the middle of a transaction that is committed, and of one that is aborted."""
    talk = stage.talk
    values = _values(20)
    producer = _in_transaction(stage)
    seen = _send(producer, stage.topic, values[:10])
    talk.coordinate(stage.transactional_id, 3, TRANSACTION)
    seen += _send(producer, stage.topic, values[10:])
    producer.commit()
    producer.begin()
    seen += _send(producer, stage.topic, ["aborted", "aborted"])
    talk.coordinate(stage.transactional_id, 1, TRANSACTION)
    producer.abort()
    producer.begin()
    seen += _send(producer, stage.topic, ["after"])
    producer.commit()
    stage.assert_committed([*values, "after"])
    return seen


def coordinator_of_group_and_transaction_killed(stage: Stage) -> list[str]:
    """One node coordinates both; the transaction commits an offset after it."""
    talk = stage.talk
    talk.place_coordinator(stage.group, [2, 3, 1])
    values = _values(20)
    producer = _in_transaction(stage)
    seen = _send(producer, stage.topic, values)
    producer.offset(stage.group, stage.topic, 0, 5)
    talk.kill(2)
    producer.offset(stage.group, stage.topic, 1, 7)
    producer.commit()
    stage.assert_committed(values)
    talk.wait_for_coordinator(stage.group, 3)
    wait_until(lambda: stage.committed_offsets(3) == [5, 7])
    return seen


def leader_moved_in_a_share_session(stage: Stage) -> list[str]:
    talk = stage.talk
    talk.create_topic(stage.topic, [2, 3], [3, 2])
    with WireClient(talk.cluster.node(1).port) as client:
        prepare_group(client, stage.group, stage.topic)
    values = _values(300)
    producer, consumer = stage.producer(), stage.share_consumer()
    seen = _send(producer, stage.topic, values[:200])
    found = _read(consumer, 50)
    consumer.commit()
    talk.cluster.move_leader(stage.topic, 0, 3)
    seen += _send(producer, stage.topic, values[200:])
    while len(found) < len(values):
        found |= _read(consumer, 1, found)
        consumer.commit()
    assert found == {*values}
    return seen


def rolling_restart(stage: Stage) -> list[str]:
    """The client produces and consumes on."""
    talk = stage.talk
    talk.create_topic(stage.topic, [1, 2, 3], [2, 3, 1])
    producer, consumer = stage.producer(), stage.consumer()
    sent: list[str] = []
    found: set[str] = set()
    seen: list[str] = []

    def turn() -> None:
        values = [f"value-{number}" for number in range(len(sent), len(sent) + 20)]
        seen.extend(_send(producer, stage.topic, values))
        sent.extend(values)
        found.update(consumer.poll())

    _meanwhile(lambda: restart_each(talk, stage.topic), turn)
    found |= _read(consumer, len(sent) - len(found), found)
    assert found == {*sent}
    _commit_until(stage, consumer, None, [len(sent) // 2] * 2)
    stage.assert_there_once(sent, seen)
    return seen


def reads_in_its_rack(stage: Stage) -> list[str]:
    """A consumer in the follower's rack reads on when it cannot reach the leader."""
    talk = stage.talk
    talk.create_topic(stage.topic, [2, 3], [2, 3])
    talk.place_coordinator(stage.group, [1, 2, 3])
    values = _values(100)
    producer = stage.producer()
    seen = _send(producer, stage.topic, values[:50])
    for index in PARTITIONS:
        talk.wait_for_followers(stage.topic, index, 25)
    consumer = stage.consumer(rack="rack-3", cuttable=True)
    found = _read(consumer, 50)
    stage.cluster.cut(2, "consumer")
    stage.stack.callback(stage.cluster.heal_cuts)  # before the consumer leaves
    seen += _send(producer, stage.topic, values[50:])
    deadline = time.monotonic() + FOLLOWER_SECONDS
    while len(found) < len(values) and time.monotonic() < deadline:
        found |= {*consumer.poll()}
    assert found == {*values}, f"{len(found)} values: it waits for the leader"
    return seen


def too_few_in_sync(stage: Stage) -> list[str]:
    """A producer tries only a few times. It gives up, and goes on when there are enough again.

    Returns the errors. Producers of Java and kafka-python do not take back the sequence number of
    what they gave up: the next records are out of order, and lost, too.
    """
    talk = stage.talk
    talk.create_topic(stage.topic, [1, 2], [1, 2], min_insync_replicas="2")
    producer = stage.producer(retries=2)
    seen = _send(producer, stage.topic, ["before", "before"])
    talk.kill(2)
    talk.wait_for_state(stage.topic, 0, leader=1, isr=[1])
    talk.wait_for_state(stage.topic, 1, leader=1, isr=[1])
    seen += _send(producer, stage.topic, ["refused", "refused"])
    talk.start(2)
    talk.wait_for_state(stage.topic, 0, leader=1, isr=[1, 2])
    talk.wait_for_state(stage.topic, 1, leader=1, isr=[1, 2])
    again = _send(producer, stage.topic, ["again", "again"])
    seen += again + _send(stage.producer(), stage.topic, ["after", "after"])
    written = [] if again else ["again", "again"]
    stage.assert_there_once(["before", "before", *written, "after", "after"], seen)
    return seen


def producer_cut_off(stage: Stage) -> list[str]:
    """From one of two leaders, for longer than it waits for an answer."""
    talk = stage.talk
    talk.create_topic(stage.topic, [2, 3], [3, 2])
    values = _values(200)
    producer = stage.producer(timeout_ms=REQUEST_MS, cuttable=True)
    seen = _send(producer, stage.topic, values[:50])
    for number, value in enumerate(values[50:]):
        if number == 50:
            stage.cluster.cut(2, "producer")
        producer.send(stage.topic, number % 2, value)
    time.sleep(CUT_SECONDS)  # the client's clock
    stage.cluster.heal_cuts()
    seen += producer.flush()
    stage.assert_there_once(values, seen)
    return seen


def consumer_cut_off(stage: Stage) -> list[str]:
    """From a leader that is its coordinator, too."""
    talk = stage.talk
    talk.create_topic(stage.topic, [2, 3], [3, 2])
    talk.place_coordinator(stage.group, [2, 3, 1])
    values = _values(200)
    producer = stage.producer()
    consumer = stage.consumer(cuttable=True)
    seen = _send(producer, stage.topic, values[:100])
    found = _read(consumer, 50)
    stage.cluster.cut(2, "consumer")
    seen += _send(producer, stage.topic, values[100:])
    deadline = time.monotonic() + CUT_SECONDS
    while time.monotonic() < deadline:
        found |= {*consumer.poll()}
    stage.cluster.heal_cuts()
    found |= _read(consumer, len(values) - len(found), found)
    assert found == {*values}
    _commit_until(stage, consumer, 2, [100, 100])
    return seen


def restart_each(talk: ClusterTalk, topic: str) -> None:
    """Restart one node after the other; each is in sync again before the next one stops."""
    for node in NODE_IDS:
        talk.stop(node)
        talk.start(node)
        for index in PARTITIONS:
            wait_until(
                lambda index=index: all(
                    one is not None and sorted(one.isr_nodes) == [*NODE_IDS]
                    for one in (talk.partition(each, topic, index) for each in NODE_IDS)
                )
            )


ClientScript = Callable[[Stage], list[str]]
CLIENT_SCRIPTS: dict[str, ClientScript] = {
    script.__name__: script
    for script in (
        leader_killed,
        coordinator_killed_while_consuming,
        coordinator_moved_during_a_rebalance,
        transaction_coordinator_killed,
        transaction_coordinator_moved,
        coordinator_of_group_and_transaction_killed,
        leader_moved_in_a_share_session,
        rolling_restart,
        reads_in_its_rack,
        too_few_in_sync,
        producer_cut_off,
        consumer_cut_off,
    )
}


def _in_transaction(stage: Stage) -> Producer:
    """A producer that has begun one, which node 2 coordinates; the topic is there."""
    stage.talk.create_topic(stage.topic, [1, 3], [3, 1])
    stage.talk.place_coordinator(stage.transactional_id, [2, 3, 1], TRANSACTION)
    producer = stage.producer(transactional_id=stage.transactional_id)
    producer.begin()
    return producer


def _values(count: int) -> list[str]:
    return [f"value-{number}" for number in range(count)]


def _send(producer: Producer, topic: str, values: list[str]) -> list[str]:
    """To both partitions in turn, and wait; the errors."""
    for number, value in enumerate(values):
        producer.send(topic, number % 2, value)
    return producer.flush()


def _read(consumer: Consumer, count: int, known: Collection[str] = ()) -> set[str]:
    """At least so many values that are not known: a consumer may read some again."""
    deadline = time.monotonic() + READ_SECONDS
    found: set[str] = set()
    while len(found) < count:
        assert time.monotonic() < deadline, f"{len(found)} of {count} values"
        found |= {*consumer.poll()} - {*known}
    return found


def _commit_until(
    stage: Stage, consumer: Consumer, coordinator: int | None, offsets: list[int]
) -> None:
    """Commit until the coordinator has the offsets: sarama's commits have no answer."""

    def ends() -> bool:
        consumer.commit()
        node = coordinator or stage.talk.coordinator_of(stage.group)
        return stage.committed_offsets(node) == offsets

    wait_until(ends, poll_s=0.5)


def _meanwhile(act: Callable[[], None], turn: Callable[[], None]) -> None:
    """Take turns until the act, in another thread, has ended."""
    with ThreadPoolExecutor(1) as pool:
        acting = pool.submit(act)
        while not acting.done():
            turn()
        acting.result()
