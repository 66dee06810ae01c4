"""Kafka Streams counts words exactly once, while it and its broker are killed.

The counts are kept in a store with a changelog, behind a repartition topic. With no cache every
count is written: a word's counts in the output must be 1, 2, 3 and so on, without gap or repeat.

Apache Kafka is not killed here: a single node of 4.3 that starts again may find no leader for the
partitions of a prepared transaction, and then ends it without its markers. Readers wait for ever.
"""

import itertools
import random
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.broker_process import BrokerProcess, against_apache_kafka
from tests.support.lengths import SEED, by_length
from tests.support.topics import create_topic
from tests.support.word_count import Counts, Instance, Lines, why_no_streams

pytestmark = [pytest.mark.java, pytest.mark.slow]

PARTITIONS = 2
LIMIT_SECONDS = 120.0
ROUNDS = by_length(10, 60)
QUICK_TRANSACTIONS = {"transaction.abort.timed.out.transaction.cleanup.interval.ms": "100"}
APPLICATION = {
    "application.id": "words",
    "processing.guarantee": "exactly_once_v2",
    "statestore.cache.max.bytes": "0",
    "commit.interval.ms": "100",
    "session.timeout.ms": "2000",
    "heartbeat.interval.ms": "300",
    "transaction.timeout.ms": "3000",
    "reconnect.backoff.max.ms": "200",
}

# The answer to the commit of a transaction that timed out while the broker was down. Apache Kafka
# answers the same. Kafka Streams does not expect it: the thread ends, and another one takes over.
MAY_FAIL = {"InvalidTxnStateException"}


class Application:
    """The instances that run together, with their directories."""

    def __init__(self, bootstrap: str, scratch: Path, rng: random.Random) -> None:
        self.instances: list[Instance] = []
        self._bootstrap, self._scratch, self._rng = bootstrap, scratch, rng

    def __enter__(self) -> "Application":
        return self

    def __exit__(self, *_: object) -> None:
        for instance in self.instances:
            instance.kill()

    def start(self, count: int) -> None:
        """Start instances, and choose at random what they have in common with the killed ones.

        Without its directory an instance has a new transactional id, and the transaction of the
        killed one ends by its timeout. A static member replaces the killed one at once; otherwise
        the killed member leaves the group by its session timeout.
        """
        is_static, standbys = self._rng.random() < 0.5, self._rng.choice(["0", "1"])
        for number in range(count):
            state = self._scratch / f"state-{number}"
            store = self._rng.choice(["memory", "rocksdb"])
            if self._rng.random() < 0.5:
                shutil.rmtree(state, ignore_errors=True)
            settings = APPLICATION | {
                "bootstrap.servers": self._bootstrap,
                "state.dir": str(state),
                "num.standby.replicas": standbys,
            }
            if is_static:
                settings["group.instance.id"] = f"instance-{number}"
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


def test_words_are_counted_exactly_once_while_all_are_killed(
    start_broker: Callable[..., BrokerProcess], tmp_path: Path
) -> None:
    reason = why_no_streams()
    if reason:
        pytest.skip(reason)
    rng = random.Random(SEED)
    broker = start_broker(**QUICK_TRANSACTIONS)
    for topic in ("lines", "counts"):
        create_topic(broker.bootstrap, topic, PARTITIONS)
    with (
        Lines(broker.bootstrap, "lines", PARTITIONS) as lines,
        Counts(broker.bootstrap, "counts", PARTITIONS) as counts,
        Application(broker.bootstrap, tmp_path, rng) as application,
    ):
        kinds = itertools.cycle([(1, False), (2, False), (1, True), (2, True)])
        for number, (instances, with_broker) in zip(range(ROUNDS), kinds, strict=False):
            application.start(instances)
            _wait_until_counting(application, counts)
            assert number == 0 or application.restored() > 0, application.story()
            if with_broker and not against_apache_kafka():
                broker.kill()
                time.sleep(rng.uniform(0, 0.3))
                broker.start()
                if rng.random() < 0.5:
                    _wait_until_counting(application, counts)
            time.sleep(rng.uniform(0, 0.7))
            application.kill()
        lines.stop()
        application.start(1)
        _wait_until_counted(application, lines, counts)
        application.instances.pop().close()
        counts.read(1.0)
        assert counts.words == lines.words


def _wait_until_counting(application: Application, counts: Counts) -> None:
    """Read until all instances run, and on until the next count."""
    deadline = time.monotonic() + LIMIT_SECONDS
    while counts.read(0.1) == 0 or not application.is_running:
        assert time.monotonic() < deadline, application.story()


def _wait_until_counted(application: Application, lines: Lines, counts: Counts) -> None:
    """Read until as many words are counted as were written."""
    deadline = time.monotonic() + LIMIT_SECONDS
    while counts.words.total() < lines.words.total():
        counts.read(0.1)
        assert time.monotonic() < deadline, application.story()
