"""Kafka Streams counts words exactly once with workers."""

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.broker_with_workers import BrokerWithWorkers
from tests.support.lengths import SEED
from tests.support.streams_application import CLASSIC, QUICK_TRANSACTIONS, word_counting
from tests.support.word_count import why_no_streams

pytestmark = [pytest.mark.java, pytest.mark.slow]


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[BrokerWithWorkers]:
    reason = why_no_streams()
    if reason:
        pytest.skip(reason)
    made = BrokerWithWorkers(tmp_path / "broker", workers=1, overrides=QUICK_TRANSACTIONS).start()
    yield made
    assert made.terminate() == 0
    assert made.crashes_in_log() == []


def test_words_are_counted_exactly_once(broker: BrokerWithWorkers, tmp_path: Path) -> None:
    with word_counting(broker, tmp_path, random.Random(SEED), CLASSIC) as (
        lines,
        counts,
        application,
    ):
        application.start(1)
        application.wait_until_counting(counts)
        lines.stop()
        application.wait_until_counted(lines, counts)
        application.instances.pop().close()
        counts.read(1.0)
        assert counts.words == lines.words
