"""kill -9 of the broker while its cleaner compacts transactions, tombstones and their markers.

Producers write all the while. After each kill they resolve what was not answered and pause, and a
reader of each isolation level must find the newest committed record of each key. Half of the time
the cleaner is switched off then: what the kill has left must be whole, before it is cleaned again.

A life is some kills of a broker of its own. `ODRADEK_TEST_MINUTES` says how long lives follow each
other in `make long`, `ODRADEK_TEST_SEED` which ones.
"""

import itertools
import logging
import random
import re
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, Message, TopicPartition

from tests.crash.keyed_history import Found, History
from tests.crash.keyed_writers import ID_HEADER, PARTITIONS, KeyedWriter, Style
from tests.crash.test_kill_while_cleaning import (
    CLEANS,
    SETTINGS,
    TOPIC_SETTINGS,
    children,
    is_there,
    unfinished,
)
from tests.support.broker_process import BrokerProcess
from tests.support.lengths import LONG, MINUTES, SEED, by_length, only_long
from tests.support.topics import create_topic
from tests.support.waiting import wait_until

pytestmark = [
    pytest.mark.slow,
    only_long("kills while a log is cleaned are in test_kill_while_cleaning.py"),
]

KILLS = by_length(2, 6)  # in a life
LIMIT_SECONDS = 60.0
STYLES = (Style(0, rests=False), Style(0, rests=True), Style(1, rests=False), Style(2, rests=False))
RESTING_STYLES = (Style(1, rests=True), Style(2, rests=True))

logger = logging.getLogger(__name__)


def test_kills_leave_the_newest_committed_records_of_a_topic_that_is_cleaned(
    start_broker: Callable[..., BrokerProcess],
) -> None:
    deadline = time.monotonic() + 60 * MINUTES if LONG else 0
    for seed in itertools.count(SEED):
        logger.info("the life of seed %d", seed)
        broker = start_broker(**SETTINGS)
        Life(broker, seed).play()
        broker.stop()
        if time.monotonic() >= deadline:
            return


class Life:
    """A broker with one topic, its writers and its history."""

    def __init__(self, broker: BrokerProcess, seed: int) -> None:
        self.broker = broker
        self.chance = random.Random(seed)
        self.topic = f"life-{seed}"
        self.history = History()
        self.writers = []
        for number, style in enumerate((*STYLES, self.chance.choice(RESTING_STYLES))):
            name = f"{self.topic}-{number}"
            writer = KeyedWriter(broker.port, self.topic, name, style, self.history, name)
            self.writers.append(writer)

    def play(self) -> None:
        settings = {"delete.retention.ms": self.chance.choice(["0", "300"])}
        create_topic(self.broker.bootstrap, self.topic, PARTITIONS, TOPIC_SETTINGS | settings)
        with ExitStack() as closed:
            for writer in self.writers:
                closed.callback(writer.close)
            self._write_and_be_killed()
            self._kill()
            self._restart(cleans=False)
            self._check()
            assert len(self._read(committed_only=False)) < len(self.history)

    def _write_and_be_killed(self) -> None:
        for writer in self.writers:
            writer.start()
        try:
            for _ in range(KILLS):
                self._wait_for_a_moment()
                self._kill()
                self._restart(cleans=self.chance.random() < 0.5)
                self._check()
                if not self._cleans:
                    self._kill()
                    self._restart(cleans=True)
        finally:
            if not self.broker.is_running:
                self._restart(cleans=True)
            for writer in self.writers:
                writer.stop()

    @property
    def _cleans(self) -> bool:
        return self.broker.settings[CLEANS] == "true"

    def _wait_for_a_moment(self) -> None:
        """Wait until a round has ended, and perhaps the next is under way."""
        for writer in self.writers:
            writer.wake()
        self._wait_for_a_round()
        if self.chance.random() < 0.7:
            wait_until(lambda: any(map(unfinished, self._directories())), poll_s=0.001)
        time.sleep(self.chance.choice([0, self.chance.uniform(0, 0.05)]))

    def _wait_for_a_round(self) -> None:
        before = self._rounds_done()
        wait_until(lambda: self._rounds_done() > before)

    def _rounds_done(self) -> int:
        return len(re.findall(rf"{self.topic}-\d: cleaned offsets", self.broker.log_text()))

    def _kill(self) -> None:
        processes = children(self.broker.pid)
        self.broker.kill()
        wait_until(lambda: not any(map(is_there, processes)))

    def _restart(self, *, cleans: bool) -> None:
        """Sometimes it is killed before it is ready."""
        self.broker.settings[CLEANS] = str(cleans).lower()
        if self.chance.random() < 0.3:
            self.broker.start_without_waiting()
            time.sleep(self.chance.uniform(0, 1))
            self._kill()
        self.broker.start()

    def _directories(self) -> Iterator[Path]:
        for partition in range(PARTITIONS):
            yield self.broker.data / f"{self.topic}-{partition}"

    def _check(self) -> None:
        """Both readers, and the producers' state."""
        with ExitStack() as paused:
            for writer in self.writers:
                paused.enter_context(writer.pause)
                assert writer.failure is None, writer.failure
            # The markers may be written after the answer to EndTxn.
            wait_until(lambda: self._ends(committed_only=True) == self._stable_ends())
            self._check_reader(committed_only=True)
            self._check_reader(committed_only=False)
            ends = self._ends(committed_only=False)
            for writer in self.writers:
                writer.repeat_last()
            assert self._ends(committed_only=False) == ends

    def _check_reader(self, *, committed_only: bool) -> None:
        ends = self._ends(committed_only=committed_only)
        found = self._read(committed_only=committed_only)
        if committed_only:
            self.history.settle(found)
        faults = self.history.faults(
            found, ends, committed_only=committed_only, while_cleaning=self._cleans
        )
        assert list(faults)[:20] == []

    def _stable_ends(self) -> list[int]:
        """The last stable offsets when no transaction is open but those of the writers."""
        ends = self._ends(committed_only=False)
        firsts = [self.history.open_from(partition) for partition in range(PARTITIONS)]
        return [end if first is None else first for end, first in zip(ends, firsts, strict=True)]

    def _ends(self, *, committed_only: bool) -> list[int]:
        """High watermarks or last stable offsets."""
        with closing(self._reader(committed_only=committed_only)) as consumer:
            places = [TopicPartition(self.topic, each) for each in range(PARTITIONS)]
            return [consumer.get_watermark_offsets(each, LIMIT_SECONDS)[1] for each in places]

    def _read(self, *, committed_only: bool) -> list[Found]:
        """All records that a consumer finds, from the start to the ends."""
        found: list[Found] = []
        ended: set[int | None] = set()
        with closing(self._reader(committed_only=committed_only)) as consumer:
            places = [
                TopicPartition(self.topic, each, OFFSET_BEGINNING) for each in range(PARTITIONS)
            ]
            consumer.assign(places)
            while len(ended) < PARTITIONS:
                message = consumer.poll(LIMIT_SECONDS)
                assert message is not None, "the end of a partition is not reached"
                error = message.error()
                if error is None:
                    found.append(found_of(message))
                else:
                    assert error.code() == KafkaError._PARTITION_EOF, error.str()
                    ended.add(message.partition())
        return found

    def _reader(self, *, committed_only: bool) -> Consumer:
        return Consumer(
            {
                "bootstrap.servers": self.broker.bootstrap,
                "group.id": "none",
                "enable.auto.commit": False,
                "enable.partition.eof": True,
                "isolation.level": "read_committed" if committed_only else "read_uncommitted",
            }
        )


def found_of(message: Message) -> Found:
    """What a consumer tells of a record."""
    partition, offset, key = message.partition(), message.offset(), message.key()
    headers: Any = message.headers()
    assert partition is not None
    assert offset is not None
    assert key is not None
    return Found(partition, offset, dict(headers)[ID_HEADER], key, message.value())
