"""Reads topics at an isolation level, while the broker is killed or when all is done."""

import threading
import time
from collections.abc import Mapping

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, Message, TopicPartition

from tests.crash.ledger import Stored

LIMIT_SECONDS = 60.0
MAX_MESSAGES = 1000
POLL_SECONDS = 0.2


class Reader:
    """What it has been given of some topics, from their beginning on."""

    def __init__(self, bootstrap: str, topics: Mapping[str, int], isolation: str) -> None:
        """`topics` has the number of each topic's partitions."""
        self.views: dict[str, dict[int, list[Stored]]] = {
            topic: {partition: [] for partition in range(count)} for topic, count in topics.items()
        }
        self._consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": "reader",
                "enable.auto.commit": False,
                "isolation.level": isolation,
                "enable.partition.eof": True,
                "reconnect.backoff.max.ms": 200,
                "log_level": 0,
            }
        )
        self._consumer.assign(
            [
                TopicPartition(topic, partition, OFFSET_BEGINNING)
                for topic, view in self.views.items()
                for partition in view
            ]
        )
        self._ended: set[tuple[str | None, int | None]] = set()
        self._must_stop = threading.Event()
        self._thread = threading.Thread(target=self._read_on, name=isolation)

    def count(self, topic: str) -> int:
        """How many records it has of a topic."""
        return sum(len(seen) for seen in self.views[topic].values())

    def start(self) -> None:
        """Read in a thread, whatever happens to the broker."""
        self._thread.start()

    def stop(self) -> None:
        """Read no more."""
        self._must_stop.set()
        self._thread.join(LIMIT_SECONDS)
        self._consumer.close()

    def read_to_end(self) -> None:
        """Read all that is there now, and close. Without `start`."""
        wanted = {(topic, partition) for topic, view in self.views.items() for partition in view}
        deadline = time.monotonic() + LIMIT_SECONDS
        while missing := wanted - self._ended:
            assert time.monotonic() < deadline, f"no end of {missing}"
            self._add(self._consumer.consume(MAX_MESSAGES, POLL_SECONDS))
        self._consumer.close()

    def _read_on(self) -> None:
        while not self._must_stop.is_set():
            self._add(self._consumer.consume(MAX_MESSAGES, POLL_SECONDS))

    def _add(self, messages: list[Message]) -> None:
        for message in messages:
            topic, partition, error = message.topic(), message.partition(), message.error()
            if error is None:
                self.views[topic][partition].append(Stored(message.offset(), message.value()))
            elif error.code() == KafkaError._PARTITION_EOF:
                self._ended.add((topic, partition))
