"""Committed offsets and topics, promised one after another until the broker is gone."""

import itertools
import threading
from abc import ABC, abstractmethod

from confluent_kafka import Consumer, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from tests.support.topics import topic_partitions

ANSWER_SECONDS = 5.0
JOIN_SECONDS = 120.0


class Administrator(ABC):
    """A thread that asks for one thing after another; refusals and silence promise nothing."""

    def __init__(self, bootstrap: str, name: str) -> None:
        self._bootstrap = bootstrap
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """End."""
        self._stop.set()
        self._thread.join(JOIN_SECONDS)
        assert not self._thread.is_alive()

    def _run(self) -> None:
        for number in itertools.count(1):
            if self._stop.wait(0.01):
                return
            try:
                self._ask(number)
            except KafkaException:
                self._stop.wait(0.2)

    @abstractmethod
    def _ask(self, number: int) -> None:
        """Ask for one thing; raises KafkaException when it was not promised."""


class Committer(Administrator):
    """Commits rising offsets of a topic for a group."""

    group = "crash-group"

    def __init__(self, bootstrap: str, topic: str) -> None:
        super().__init__(bootstrap, "committer")
        self._topic = topic
        self._consumer = self._make_consumer()
        self.promised = 0
        self.asked = 0

    def _make_consumer(self) -> Consumer:
        settings = {"bootstrap.servers": self._bootstrap, "group.id": self.group, "log_level": 0}
        return Consumer(settings)

    def _ask(self, number: int) -> None:
        self.asked = number
        places = [TopicPartition(self._topic, partition, number) for partition in range(3)]
        for answer in self._consumer.commit(offsets=places, asynchronous=False):
            if answer.error is not None:
                raise KafkaException(answer.error)
        self.promised = number

    def broken_promises(self) -> list[str]:
        """Where the group's offsets are not what was promised, or asked for after that."""
        promised = self.promised
        consumer = self._make_consumer()
        places = [TopicPartition(self._topic, partition) for partition in range(3)]
        found = consumer.committed(places, timeout=30)
        consumer.close()
        return [
            f"partition {place.partition}: {place.offset} is not in {promised}..{self.asked}"
            for place in found
            if not (promised <= place.offset <= self.asked or promised == 0)
        ]


class TopicMaker(Administrator):
    """Creates topics, and deletes every third of them."""

    def __init__(self, bootstrap: str) -> None:
        super().__init__(bootstrap, "topic maker")
        self._admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
        self.created: dict[str, int] = {}
        self.deleted: set[str] = set()

    def _ask(self, number: int) -> None:
        name, partitions = f"made-{number}", number % 4 + 1
        asked = self._admin.create_topics(
            [NewTopic(name, partitions, 1)], request_timeout=ANSWER_SECONDS
        )
        asked[name].result()
        self.created[name] = partitions
        if number % 3 == 0:
            del self.created[name]
            self._admin.delete_topics([name], request_timeout=ANSWER_SECONDS)[name].result()
            self.deleted.add(name)
        self._stop.wait(0.05)

    def broken_promises(self) -> list[str]:
        """Topics that should be there and are not, or the other way round."""
        created, deleted = dict(self.created), set(self.deleted)
        found = topic_partitions(self._bootstrap)
        lost = [
            f"{name} has {found.get(name)} partitions, not {count}"
            for name, count in created.items()
            if found.get(name) != count
        ]
        return lost + [f"{name} is back" for name in deleted if name in found]
