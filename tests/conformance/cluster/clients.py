"""Producers and consumers of three libraries, for what they live through when nodes fail.

Values are text without spaces. Each class ends with its `close`.
"""

import time
from typing import Any, Protocol

from confluent_kafka import Consumer as LibrdkafkaConsumer
from confluent_kafka import KafkaException
from confluent_kafka import Producer as LibrdkafkaProducer
from kafka import KafkaConsumer, KafkaProducer
from kafka.errors import KafkaError

from tests.support.java_program import JavaProgram

LIMIT_SECONDS = 90.0
POLL_SECONDS = 0.2


class Producer(Protocol):
    """Idempotent, with acks=all; transactional if it was made with an id."""

    def send(self, topic: str, partition: int, value: str) -> None:
        """Send without waiting."""

    def flush(self) -> None:
        """Wait for what was sent; raises if a record was not delivered."""

    def begin(self) -> None:
        """Begin a transaction."""

    def commit(self) -> None:
        """Commit it; the library, or this class, tries again where the error allows it."""

    def close(self) -> None:
        """End it."""


class Consumer(Protocol):
    """A member of a group that subscribes to one topic and begins at its first record."""

    def poll(self) -> list[str]:
        """Some values, or none."""

    def commit(self) -> None:
        """Commit what was read."""

    def close(self) -> None:
        """Leave the group."""


class Library(Protocol):
    """Makes both."""

    def producer(self, bootstrap: str, transactional_id: str | None = None) -> Producer:
        """A producer; a transactional one has begun its session."""

    def consumer(self, bootstrap: str, group: str, topic: str) -> Consumer:
        """A consumer."""


class _KafkaPythonProducer:
    def __init__(self, bootstrap: str, transactional_id: str | None) -> None:
        self._producer = KafkaProducer(
            bootstrap_servers=bootstrap.split(","),
            acks="all",
            enable_idempotence=True,
            transactional_id=transactional_id,
            linger_ms=5,
        )
        self._sent: list[Any] = []
        if transactional_id:
            self._producer.init_transactions()

    def send(self, topic: str, partition: int, value: str) -> None:
        self._sent.append(self._producer.send(topic, value.encode(), partition=partition))

    def flush(self) -> None:
        self._producer.flush(LIMIT_SECONDS)
        for future in self._sent:
            future.get(LIMIT_SECONDS)
        self._sent.clear()

    def begin(self) -> None:
        self._producer.begin_transaction()

    def commit(self) -> None:
        self._producer.commit_transaction()

    def close(self) -> None:
        self._producer.close(timeout=5)


class _KafkaPythonConsumer:
    def __init__(self, bootstrap: str, group: str, topic: str) -> None:
        self._consumer = KafkaConsumer(
            topic,
            bootstrap_servers=bootstrap.split(","),
            group_id=group,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            session_timeout_ms=45_000,
            max_poll_records=50,
        )

    def poll(self) -> list[str]:
        polled = self._consumer.poll(timeout_ms=int(POLL_SECONDS * 1000))
        return [record.value.decode() for batch in polled.values() for record in batch]

    def commit(self) -> None:
        _patiently(self._consumer.commit, lambda error: getattr(error, "retriable", False))

    def close(self) -> None:
        self._consumer.close(autocommit=False)


class KafkaPython:
    """kafka-python."""

    def producer(self, bootstrap: str, transactional_id: str | None = None) -> Producer:
        return _KafkaPythonProducer(bootstrap, transactional_id)

    def consumer(self, bootstrap: str, group: str, topic: str) -> Consumer:
        return _KafkaPythonConsumer(bootstrap, group, topic)


class _LibrdkafkaProducer:
    def __init__(self, bootstrap: str, transactional_id: str | None) -> None:
        settings: dict[str, Any] = {
            "bootstrap.servers": bootstrap,
            "enable.idempotence": True,
            "linger.ms": 5,
        }
        if transactional_id:
            settings["transactional.id"] = transactional_id
        self._producer = LibrdkafkaProducer(settings)
        self._failed: list[Any] = []
        if transactional_id:
            self._producer.init_transactions(LIMIT_SECONDS)

    def send(self, topic: str, partition: int, value: str) -> None:
        self._producer.produce(topic, value, partition=partition, on_delivery=self._delivered)
        self._producer.poll(0)

    def _delivered(self, error: Any, _: Any) -> None:
        if error is not None:
            self._failed.append(error)

    def flush(self) -> None:
        left = self._producer.flush(LIMIT_SECONDS)
        assert (left, self._failed) == (0, [])

    def begin(self) -> None:
        self._producer.begin_transaction()

    def commit(self) -> None:
        _patiently(
            lambda: self._producer.commit_transaction(LIMIT_SECONDS),
            lambda error: error.args[0].retriable(),
        )

    def close(self) -> None:
        self._producer.flush(5)


class _LibrdkafkaConsumer:
    def __init__(self, bootstrap: str, group: str, topic: str) -> None:
        self._consumer = LibrdkafkaConsumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": group,
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
            }
        )
        self._consumer.subscribe([topic])

    def poll(self) -> list[str]:
        messages = self._consumer.consume(50, POLL_SECONDS)
        return [(one.value() or b"").decode() for one in messages if one.error() is None]

    def commit(self) -> None:
        _patiently(
            lambda: self._consumer.commit(asynchronous=False),
            lambda error: error.args[0].retriable() or error.args[0].name() in _PASSES,
        )

    def close(self) -> None:
        self._consumer.close()


# librdkafka does not call these retriable for a commit; the next one goes to the new coordinator.
_PASSES = ("_WAIT_COORD", "_TRANSPORT", "_TIMED_OUT", "NOT_COORDINATOR", "REQUEST_TIMED_OUT")


class Librdkafka:
    """confluent-kafka."""

    def producer(self, bootstrap: str, transactional_id: str | None = None) -> Producer:
        return _LibrdkafkaProducer(bootstrap, transactional_id)

    def consumer(self, bootstrap: str, group: str, topic: str) -> Consumer:
        return _LibrdkafkaConsumer(bootstrap, group, topic)


class _JavaClient:
    """FailoverClient.java as a producer or a consumer."""

    def __init__(self, *begin: str) -> None:
        self._program = JavaProgram("FailoverClient.java")
        self._ask(*begin)

    def _ask(self, *words: str) -> list[str]:
        answer = self._program.ask(" ".join(words))
        assert answer.startswith("ok"), answer
        return answer.split(" ")[1:]

    def send(self, topic: str, partition: int, value: str) -> None:
        self._ask("send", topic, str(partition), value)

    def flush(self) -> None:
        self._ask("flush")

    def begin(self) -> None:
        self._ask("begin")

    def poll(self) -> list[str]:
        return self._ask("poll")

    def close(self) -> None:
        self._program.end()


class _JavaProducer(_JavaClient):
    def commit(self) -> None:
        self._ask("commit")


class _JavaConsumer(_JavaClient):
    def commit(self) -> None:
        self._ask("commit-offsets")


class Java:
    """kafka-clients of the newest version."""

    def producer(self, bootstrap: str, transactional_id: str | None = None) -> Producer:
        return _JavaProducer(
            "produce", bootstrap, *([transactional_id] if transactional_id else [])
        )

    def consumer(self, bootstrap: str, group: str, topic: str) -> Consumer:
        return _JavaConsumer("consume", bootstrap, group, topic)


LIBRARIES: dict[str, Library] = {
    "kafka-python": KafkaPython(),
    "confluent-kafka": Librdkafka(),
    "java": Java(),
}


def _patiently(act: Any, may_pass: Any) -> None:
    """Act until it succeeds; an error that may not pass, or that lasts, is raised."""
    deadline = time.monotonic() + LIMIT_SECONDS
    while True:
        try:
            act()
            return
        except (KafkaException, KafkaError) as error:
            if not may_pass(error) or time.monotonic() > deadline:
                raise
            time.sleep(POLL_SECONDS)
