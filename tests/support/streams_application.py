"""The instances of an application that counts words, which run together and are killed together."""

import random
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

from tests.support.topics import create_topic
from tests.support.word_count import Counts, Instance, Lines

PARTITIONS = 2
LIMIT_SECONDS = 120.0
# What a member of a classic group sets itself, so that its absence is noticed soon.
CLASSIC = {"session.timeout.ms": "2000", "heartbeat.interval.ms": "300"}
QUICK_TRANSACTIONS = {"transaction.abort.timed.out.transaction.cleanup.interval.ms": "100"}
APPLICATION = {
    "application.id": "words",
    "processing.guarantee": "exactly_once_v2",
    "statestore.cache.max.bytes": "0",
    "commit.interval.ms": "100",
    "transaction.timeout.ms": "3000",
    "reconnect.backoff.max.ms": "200",
}

# The answer to the commit of a transaction that timed out while the broker was down. Apache Kafka
# answers the same. Kafka Streams does not expect it: the thread ends, and another one takes over.
MAY_FAIL = {"InvalidTxnStateException"}


class Application:
    """The instances that run together, with their directories."""

    def __init__(
        self, bootstrap: str, scratch: Path, rng: random.Random, settings: Mapping[str, str]
    ) -> None:
        """`settings` of the protocol of its group."""
        self.instances: list[Instance] = []
        self._settings = APPLICATION | dict(settings) | {"bootstrap.servers": bootstrap}
        self._scratch, self._rng = scratch, rng

    def __enter__(self) -> "Application":
        return self

    def __exit__(self, *_: object) -> None:
        for instance in self.instances:
            instance.kill()

    def start(
        self, count: int, settings_of: Callable[[int], Mapping[str, str]] = lambda _: {}
    ) -> None:
        """Start instances, and choose at random which of them have the directory of a killed one.

        Without its directory an instance has a new transactional id, and the transaction of the
        killed one ends by its timeout. `settings_of` an instance are added.
        """
        for number in range(len(self.instances), len(self.instances) + count):
            state = self._scratch / f"state-{number}"
            store = self._rng.choice(["memory", "rocksdb"])
            if self._rng.random() < 0.5:
                shutil.rmtree(state, ignore_errors=True)
            settings = {**self._settings, "state.dir": str(state), **settings_of(number)}
            self.instances.append(Instance(store, settings, self._scratch / "streams.log"))

    def kill(self) -> None:
        """SIGKILL all instances. None may have ended or failed before."""
        for instance in self.instances:
            assert instance.is_running, self.story()
            instance.kill()
            assert set(instance.failures()) <= MAY_FAIL, self.story()
        self.instances.clear()

    @property
    def is_running(self) -> bool:
        """Whether all instances have their tasks, with their stores restored."""
        return all(instance.state() == "RUNNING" for instance in self.instances)

    def restored(self) -> int:
        """How many records of changelogs the instances have read."""
        return sum(instance.restored() for instance in self.instances)

    def story(self) -> str:
        """What the instances said."""
        return "\n".join("".join(instance.said) for instance in self.instances)

    def wait_until_counting(self, counts: Counts) -> None:
        """Read until all instances run, and on until the next count."""
        deadline = time.monotonic() + LIMIT_SECONDS
        while counts.read(0.1) == 0 or not self.is_running:
            assert time.monotonic() < deadline, self.story()

    def wait_until_counted(self, lines: Lines, counts: Counts) -> None:
        """Read until as many words are counted as were written."""
        deadline = time.monotonic() + LIMIT_SECONDS
        while counts.words.total() < lines.words.total():
            counts.read(0.1)
            assert time.monotonic() < deadline, self.story()


class Broker(Protocol):
    """A broker, or a node of a cluster."""

    @property
    def bootstrap(self) -> str:
        """What a client is told."""


@contextmanager
def word_counting(
    broker: Broker,
    scratch: Path,
    rng: random.Random,
    settings: Mapping[str, str],
    *,
    replicas: int = 1,
) -> Iterator[tuple[Lines, Counts, Application]]:
    """The topics, a producer of lines, a reader of counts, and an application."""
    for topic in ("lines", "counts"):
        create_topic(broker.bootstrap, topic, PARTITIONS, replicas=replicas)
    with (
        Lines(broker.bootstrap, "lines", PARTITIONS) as lines,
        Counts(broker.bootstrap, "counts", PARTITIONS) as counts,
        Application(broker.bootstrap, scratch, rng, settings) as application,
    ):
        yield lines, counts, application
