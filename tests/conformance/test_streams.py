"""Kafka Streams counts words exactly once, while it and its broker are killed.

The counts are kept in a store with a changelog, behind a repartition topic. With no cache every
count is written: a word's counts in the output must be 1, 2, 3 and so on, without gap or repeat.
The instances are members of a classic group, or of a streams group (KIP-1071).

Apache Kafka is not killed here: a single node of 4.3 that starts again may find no leader for the
partitions of a prepared transaction, and then ends it without its markers. Readers wait for ever.
"""

import itertools
import random
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from tests.support.broker_process import BrokerProcess, against_apache_kafka
from tests.support.lengths import SEED, by_length, only_long
from tests.support.streams_application import CLASSIC, QUICK_TRANSACTIONS, word_counting
from tests.support.word_count import why_no_streams

pytestmark = [pytest.mark.java, pytest.mark.slow]

STREAMS = {"group.protocol": "streams"}
ROUNDS = by_length(1, 60)
# One instance has standby tasks of the other's.
QUICK_STREAMS_GROUPS = {
    "group.streams.min.session.timeout.ms": "2000",
    "group.streams.session.timeout.ms": "2000",
    "group.streams.min.heartbeat.interval.ms": "300",
    "group.streams.heartbeat.interval.ms": "300",
    "group.streams.initial.rebalance.delay.ms": "100",
    "group.streams.num.standby.replicas": "1",
}


@pytest.fixture(autouse=True)
def _needs_streams() -> None:
    reason = why_no_streams()
    if reason:
        pytest.skip(reason)


def test_words_are_counted_exactly_once_while_all_are_killed(
    start_broker: Callable[..., BrokerProcess], tmp_path: Path
) -> None:
    """A static member replaces the killed one at once; other members leave by a timeout."""
    rng = random.Random(SEED)

    def settings_of_round() -> Callable[[int], Mapping[str, str]]:
        is_static, standbys = rng.random() < 0.5, {"num.standby.replicas": rng.choice(["0", "1"])}
        if not is_static:
            return lambda _: standbys
        return lambda number: standbys | {"group.instance.id": f"instance-{number}"}

    broker = start_broker(**QUICK_TRANSACTIONS)
    _count_while_all_are_killed(broker, tmp_path, rng, CLASSIC, ROUNDS, settings_of_round)


def test_words_are_counted_exactly_once_in_a_streams_group_while_all_are_killed(
    start_broker: Callable[..., BrokerProcess], tmp_path: Path
) -> None:
    broker = start_broker(**QUICK_TRANSACTIONS, **QUICK_STREAMS_GROUPS)
    rng = random.Random(SEED)
    _count_while_all_are_killed(broker, tmp_path, rng, STREAMS, ROUNDS, lambda: lambda _: {})


@only_long("one instance follows two that were killed above")
def test_a_streams_group_counts_exactly_once_while_instances_come_and_go(
    start_broker: Callable[..., BrokerProcess], tmp_path: Path
) -> None:
    """One instance, three, and one again; one of them is killed, and the others close."""
    broker = start_broker(**QUICK_TRANSACTIONS, **QUICK_STREAMS_GROUPS)
    with word_counting(broker, tmp_path, random.Random(SEED), STREAMS) as (
        lines,
        counts,
        application,
    ):
        application.start(1)
        application.wait_until_counting(counts)
        application.start(2)
        application.wait_until_counting(counts)
        application.instances.pop(0).kill()
        application.wait_until_counting(counts)
        application.instances.pop().close()
        application.wait_until_counting(counts)
        lines.stop()
        application.wait_until_counted(lines, counts)
        application.instances.pop().close()
        counts.read(1.0)
        assert counts.words == lines.words


def _count_while_all_are_killed(
    broker: BrokerProcess,
    scratch: Path,
    rng: random.Random,
    settings: Mapping[str, str],
    rounds: int,
    settings_of_round: Callable[[], Callable[[int], Mapping[str, str]]],
) -> None:
    with word_counting(broker, scratch, rng, settings) as (lines, counts, application):
        kinds = itertools.cycle([(2, True), (1, False), (2, False), (1, True)])
        for number, (instances, with_broker) in zip(range(rounds), kinds, strict=False):
            application.start(instances, settings_of_round())
            application.wait_until_counting(counts)
            assert number == 0 or application.restored() > 0, application.story()
            if with_broker and not against_apache_kafka():
                broker.kill()
                time.sleep(rng.uniform(0, 0.3))
                broker.start()
                if rng.random() < 0.5:
                    application.wait_until_counting(counts)
            time.sleep(rng.uniform(0, 0.7))
            application.kill()
        lines.stop()
        application.start(1, settings_of_round())
        application.wait_until_counted(lines, counts)
        assert application.restored() > 0, application.story()
        application.instances.pop().close()
        counts.read(1.0)
        assert counts.words == lines.words
