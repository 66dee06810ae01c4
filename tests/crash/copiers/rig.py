"""A broker, a topic that is written, and a copier of each client, with readers of all copies."""

import contextlib
import time
from collections.abc import Iterable
from pathlib import Path

from confluent_kafka import Consumer, Producer, TopicPartition

from tests.crash.copiers import source
from tests.crash.copiers.clients import Client
from tests.crash.copiers.copier import Copier
from tests.crash.copiers.reader import Reader
from tests.crash.copiers.source import Source
from tests.crash.copiers.task import COPY_PARTITIONS
from tests.crash.exactly_once import History
from tests.crash.transaction_log import log_faults, read_log
from tests.support.broker_process import BrokerProcess
from tests.support.topics import create_topic

SOURCE = "source"
OFFSETS_PARTITIONS = 3
TIMEOUT_S = 20.0
STALL_SECONDS = 15.0
MAX_STALLS = 4
LOOK_SECONDS = 0.02
# Sessions are short, so that a client that was killed does not hold its group up; so are
# transactions, and the partitions of the internal topics are shared by several clients.
SETTINGS = {
    "log.segment.bytes": str(1 << 20),
    "offsets.topic.num.partitions": str(OFFSETS_PARTITIONS),
    "transaction.state.log.num.partitions": "3",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "500",
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "1000",
    "group.consumer.min.session.timeout.ms": "1000",
    "group.consumer.session.timeout.ms": "3000",
    "group.consumer.min.heartbeat.interval.ms": "100",
    "group.consumer.heartbeat.interval.ms": "500",
}


class Stall:
    """How long a copier has made no progress. Its patience grows, for a machine that is slow."""

    def __init__(self) -> None:
        self.count = 0  # since the last progress
        self._copied = 0
        self._since = time.monotonic()

    def is_over(self, copied: int) -> bool:
        """Whether the copier hangs; the next one gets twice the time."""
        now = time.monotonic()
        if copied > self._copied:
            self.count, self._copied, self._since = 0, copied, now
        elif now > self._since + STALL_SECONDS * 2**self.count:
            self.count, self._since = self.count + 1, now
            return True
        return False


class Rig:
    """Copiers that are started again when they end, until all is copied."""

    def __init__(self, broker: BrokerProcess, clients: Iterable[Client], directory: Path) -> None:
        """Raises LookupError if one of the clients cannot run here."""
        self.broker = broker
        self.copiers = [Copier(each, broker.bootstrap, SOURCE, directory) for each in clients]
        self.source = Source(broker.bootstrap, SOURCE)
        create_topic(broker.bootstrap, SOURCE, source.PARTITIONS)
        self._targets = {copier.target: COPY_PARTITIONS for copier in self.copiers}
        for target in self._targets:
            create_topic(broker.bootstrap, target, COPY_PARTITIONS)
        self._live = {
            isolation: Reader(broker.bootstrap, self._targets, isolation)
            for isolation in ("read_committed", "read_uncommitted")
        }
        for reader in self._live.values():
            reader.start()

    def close(self) -> None:
        """End the copiers and the readers."""
        for copier in self.copiers:
            copier.close()
        for reader in self._live.values():
            reader.stop()

    def start_all(self) -> None:
        """Start each copier that does not run."""
        for copier in self.copiers:
            copier.start()

    def drain(self) -> None:
        """Let the copiers finish, end them, and leave no transaction open."""
        stalls = {copier: Stall() for copier in self.copiers}
        while stalls:
            for copier in list(stalls):
                copied = self._live["read_committed"].count(copier.target)
                if copied >= len(self.source.written):
                    del stalls[copier]
                    continue
                if stalls[copier].is_over(copied):
                    assert stalls[copier].count < MAX_STALLS, self.told()
                    copier.kill()
                copier.start()
            time.sleep(LOOK_SECONDS)
        for copier in self.copiers:
            copier.close()
            settings = {"bootstrap.servers": self.broker.bootstrap, "log_level": 0}
            Producer({**settings, "transactional.id": copier.name}).init_transactions(TIMEOUT_S)

    def histories(self) -> dict[str, History]:
        """What is known of each copy, after `drain`, by the copier's name."""
        for reader in self._live.values():
            reader.stop()
        views = {}
        for isolation in self._live:
            topics = self._targets | {SOURCE: source.PARTITIONS}
            reader = Reader(self.broker.bootstrap, topics, isolation)
            reader.read_to_end()
            views[isolation] = reader.views
        data = self.broker.data
        source_log = {
            each: read_log(data / f"{SOURCE}-{each}") for each in range(source.PARTITIONS)
        }
        return {
            copier.name: History(
                written=self.source.written,
                source=views["read_committed"][SOURCE],
                source_log=source_log,
                log={
                    each: read_log(data / f"{copier.target}-{each}")
                    for each in range(COPY_PARTITIONS)
                },
                committed=views["read_committed"][copier.target],
                uncommitted=views["read_uncommitted"][copier.target],
                early_committed=[self._live["read_committed"].views[copier.target]],
                early_uncommitted=[self._live["read_uncommitted"].views[copier.target]],
                offsets=self._committed_offsets(copier.name),
                told_committed=frozenset(copier.reports("committed")),
                told_aborted=frozenset(copier.reports("aborted")),
            )
            for copier in self.copiers
        }

    def offsets_faults(self) -> list[str]:
        """The faults of the log in which the groups' offsets are."""
        found = []
        for partition in range(OFFSETS_PARTITIONS):
            batches = read_log(self.broker.data / f"__consumer_offsets-{partition}")
            found += [f"__consumer_offsets-{partition}: {each}" for each in log_faults(batches)]
        return found

    def told(self) -> str:
        """What the copiers have reported, in short, and what they wrote to standard error."""
        kinds = ("committed", "aborted", "failed", "fenced")
        lines = []
        for copier in self.copiers:
            counts = ", ".join(f"{len(copier.reports(kind))} {kind}" for kind in kinds)
            errors = sorted({*copier.reports("failed"), *copier.reports("fenced")})
            lines.append(
                f"{copier.name}: {counts}: {' '.join(errors)}\n{copier.complaints()[-1000:]}"
            )
        return "\n".join(lines)

    def _committed_offsets(self, group: str) -> dict[int, int]:
        settings = {"bootstrap.servers": self.broker.bootstrap, "group.id": group, "log_level": 0}
        consumer = Consumer({**settings, "isolation.level": "read_committed"})
        wanted = [TopicPartition(SOURCE, each) for each in range(source.PARTITIONS)]
        with contextlib.closing(consumer):
            return {each.partition: each.offset for each in consumer.committed(wanted, TIMEOUT_S)}
