"""Kafka Streams counts words exactly once with workers."""

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.broker_with_workers import BrokerWithWorkers
from tests.support.lengths import SEED
from tests.support.streams_application import Application
from tests.support.topics import create_topic
from tests.support.word_count import Counts, Lines, why_no_streams

pytestmark = [pytest.mark.java, pytest.mark.slow]

PARTITIONS = 2
QUICK = {"transaction.abort.timed.out.transaction.cleanup.interval.ms": "100"}
CLASSIC = {"session.timeout.ms": "2000", "heartbeat.interval.ms": "300"}


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[BrokerWithWorkers]:
    reason = why_no_streams()
    if reason:
        pytest.skip(reason)
    made = BrokerWithWorkers(tmp_path / "broker", workers=1, overrides=QUICK).start()
    yield made
    assert made.terminate() == 0
    assert made.crashes_in_log() == []


def test_words_are_counted_exactly_once(broker: BrokerWithWorkers, tmp_path: Path) -> None:
    for topic in ("lines", "counts"):
        create_topic(broker.bootstrap, topic, PARTITIONS)
    with (
        Lines(broker.bootstrap, "lines", PARTITIONS) as lines,
        Counts(broker.bootstrap, "counts", PARTITIONS) as counts,
        Application(broker.bootstrap, tmp_path, random.Random(SEED), CLASSIC) as application,
    ):
        application.start(1)
        application.wait_until_counting(counts)
        lines.stop()
        application.wait_until_counted(lines, counts)
        application.instances.pop().close()
        counts.read(1.0)
        assert counts.words == lines.words
