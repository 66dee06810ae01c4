"""A thread that writes records of all kinds into one topic, and notes what has become of them.

Three producers take turns: one that is not idempotent, one that is, and one with transactions, of
which some are aborted, left open for a while, or left to be fenced. The broker may be killed and
started again meanwhile; the topic may not be deleted.
"""

import functools
import itertools
import random
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from tests.support.sent_records import YEAR_10000_MS, Content, Fate, Place, Row, SentRecords

LIMIT_SECONDS = 120.0
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
# Beside those of now: the ends of what a table's column can hold, nanoseconds, and the largest.
ODD_TIMES_MS = (1, YEAR_10000_MS - 1, YEAR_10000_MS, 1_732_000_000 * 10**9, 2**63 - 1)
NOW_MS = 1_732_000_000_000
_NUMBERS = itertools.count()


class Topic(NamedTuple):
    """A topic of one id. `keys` is how many keys there are; 0 if keys do not matter."""

    name: str
    topic_id: str
    keys: int = 0
    is_log_append_time: bool = False


class TopicWriter:
    """Writes until `end`; then all it has sent is acknowledged, aborted, or of unknown fate.

    A transaction whose commit fails may be committed all the same: the answer may be lost.
    """

    def __init__(
        self,
        bootstrap: str,
        topic: Topic,
        partitions: int,
        sent: SentRecords,
        chance: random.Random,
        pause_s: float = 0.05,
    ) -> None:
        self.topic = topic
        self.aborted: list[str] = []  # why transactions were aborted that were to be committed
        self._bootstrap = bootstrap
        self._sent = sent
        self._chance = chance
        self._pause_s = pause_s
        self._partitions = self._wanted_partitions = partitions
        self._end = threading.Event()
        self._errors: list[BaseException] = []
        self._plain = self._producer({"enable.idempotence": False, "acks": "all"})
        self._idempotent = self._producer({"enable.idempotence": True})
        self._transactional = self._new_transactional()
        self._thread = threading.Thread(target=self._run, name=f"writing {topic.name}", daemon=True)
        self._thread.start()

    def grow(self, partitions: int) -> None:
        """Write to so many partitions from now on."""
        self._wanted_partitions = partitions

    def end(self) -> None:
        """Write no more, wait until everything is decided, and raise what `check` does."""
        self.stop()
        assert not self._thread.is_alive(), f"{self._thread.name} does not end"
        self.check()

    def stop(self) -> None:
        """Write no more, and wait until everything is decided."""
        self._end.set()
        self._thread.join(2 * LIMIT_SECONDS)

    def check(self) -> None:
        """Raise AssertionError if it has failed."""
        if self._errors:
            raise AssertionError(f"{self._thread.name} has failed") from self._errors[0]

    # -- the thread --------------------------------------------------------------------------------

    def _run(self) -> None:
        try:
            self._transactional.init_transactions(LIMIT_SECONDS)
            while not self._end.wait(self._chance.random() * self._pause_s):
                if self._partitions < self._wanted_partitions:
                    self._learn_partitions()
                kind = self._chance.randrange(4)
                if kind > 1:
                    self._write_transaction()
                else:
                    producer = self._idempotent if kind else self._plain
                    self._write(producer, may_repeat=not kind)
            for producer in (self._plain, self._idempotent):
                assert producer.flush(LIMIT_SECONDS) == 0
        except BaseException as error:  # noqa: BLE001 - `end` raises it
            self._errors.append(error)

    def _producer(self, settings: Mapping[str, str | bool]) -> Producer:
        return Producer(
            {
                "bootstrap.servers": self._bootstrap,
                "compression.type": self._chance.choice(CODECS),
                "linger.ms": self._chance.choice([0, 5, 50]),
                "batch.size": 100_000,  # fits into the smallest segment
                "reconnect.backoff.max.ms": 200,
                "log_level": 0,
                **settings,
            }
        )

    def _new_transactional(self) -> Producer:
        name = f"writes-{self.topic.name}-{self.topic.topic_id}"
        return self._producer({"transactional.id": name, "transaction.timeout.ms": "60000"})

    def _learn_partitions(self) -> None:
        producers = (self._plain, self._idempotent, self._transactional)
        wanted = self._wanted_partitions
        for producer in producers:
            listed = producer.list_topics(self.topic.name, LIMIT_SECONDS).topics[self.topic.name]
            if len(listed.partitions) < wanted:
                return
        self._partitions = wanted

    def _write(
        self,
        producer: Producer,
        written: list[tuple[Place, Content]] | None = None,
        *,
        may_repeat: bool = False,
    ) -> None:
        """Send a few records, and add them to `written`. Raises KafkaException."""
        is_large = self._chance.random() < 0.01
        for _ in range(1 if is_large else self._chance.randint(1, 20)):
            content = self._content(100_000 if is_large else 60)
            partition = self._chance.randrange(self._partitions)
            place = Place(self.topic.name, self.topic.topic_id, partition)
            self._sent.send(place, content, may_repeat=may_repeat)
            if written is not None:
                written.append((place, content))
            producer.produce(
                self.topic.name,
                content.value,
                content.key,
                partition,
                timestamp=content.timestamp_ms or 0,
                headers=list(content.headers) or None,
                on_delivery=functools.partial(self._delivered, place, content, written is None),
            )
            producer.poll(0)

    def _write_transaction(self) -> None:
        producer = self._transactional
        producer.begin_transaction()
        written: list[tuple[Place, Content]] = []
        end = self._chance.random()
        fate = Fate.ABORTED
        try:
            for _ in range(self._chance.randint(1, 3)):
                self._write(producer, written)
                self._end.wait(self._chance.random() * self._pause_s)
            if end < 0.05:  # others write meanwhile, and nothing of it is readable
                self._end.wait(self._chance.uniform(0, 3))
            if end < 0.7:
                _retried(producer.commit_transaction)
                self._sent.settle(written, Fate.COMMITTED)
                return
            if end > 0.8:
                assert producer.flush(LIMIT_SECONDS) == 0
        except KafkaException as error:
            fate = Fate.UNKNOWN  # an answer to a commit may be lost
            self._give_up(producer, error)
        if end > 0.95 or not _is_aborted(producer):  # a new producer fences this one
            self._transactional = self._new_transactional()
            self._transactional.init_transactions(LIMIT_SECONDS)
        self._sent.settle(written, fate)

    def _give_up(self, producer: Producer, error: KafkaException) -> None:
        """Note why a transaction must be aborted. Raises KafkaException if that is not the case."""
        if error.args[0].code() == KafkaError._STATE:  # the reason is given only to a commit
            try:
                _retried(producer.commit_transaction)
            except KafkaException as reason:
                error = reason
        if not error.args[0].txn_requires_abort():
            raise error
        self.aborted.append(str(error.args[0].str()))

    def _delivered(
        self,
        place: Place,
        content: Content,
        is_decided: bool,
        error: KafkaError | None,
        message: Message,
    ) -> None:
        if error is not None:
            if is_decided:  # those of an aborted transaction may fail
                self._sent.failures.append(f"{place}: {error}")
            return
        offset = message.offset()
        assert offset is not None
        # To a client, the answer for a batch that was sent twice looks like LogAppendTime.
        stamp_ms = content.timestamp_ms
        if stamp_ms is None:
            stamp_ms = message.timestamp()[1]
        row = Row(*content[:3], stamp_ms, int(self.topic.is_log_append_time))
        self._sent.acknowledge(place, offset, row)
        if is_decided:
            self._sent.settle([(place, content)], Fate.COMMITTED)

    # -- records -----------------------------------------------------------------------------------

    def _content(self, size: int) -> Content:
        """A record that no other is equal to."""
        chance, number = self._chance, b"%d" % next(_NUMBERS)
        value: bytes | None = b'{"id": %s}' % number
        if chance.random() < 0.5:
            value = number + b" " + chance.randbytes(chance.randrange(size))
        key: bytes | None = chance.choice([None, b"", number])
        if self.topic.keys:
            key = b"key-%d" % chance.randrange(self.topic.keys)
        headers: Sequence[tuple[str, bytes | None]] = ()
        odd = chance.random()
        if odd < 0.1:
            headers = [("number", number), ("empty", b""), ("none", None), ("number", b"\xff")]
        if odd < 0.05:
            value = chance.choice([None, b""])
        return Content(key, value, tuple(headers), self._timestamp_ms())

    def _timestamp_ms(self) -> int | None:
        if self.topic.is_log_append_time:
            return None
        if self._chance.random() < 0.02:
            return self._chance.choice(ODD_TIMES_MS)
        return NOW_MS + self._chance.randrange(3 * 86_400_000)


def _retried(end_transaction: Callable[[float], None]) -> None:
    """Commit or abort, again as long as the client asks for that. Raises KafkaException."""
    while True:
        try:
            return end_transaction(LIMIT_SECONDS)
        except KafkaException as error:
            if not error.args[0].retriable():
                raise


def _is_aborted(producer: Producer) -> bool:
    """Abort; returns whether that was done.

    After a kill of the broker, librdkafka may end a transaction of which the broker knows nothing.
    That is an error which ends the producer.
    """
    try:
        _retried(producer.abort_transaction)
    except KafkaException as error:
        if not error.args[0].fatal():
            raise
        return False
    return True
