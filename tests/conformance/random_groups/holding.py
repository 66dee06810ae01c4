"""Holds random conversations with both brokers, and fails with a short script of a difference."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

import pytest

from tests.support.broker_process import ApacheKafkaProcess, BrokerProcess
from tests.support.java_tools import why_no_java
from tests.support.lengths import SEED

from .play import ComparedBrokers, Played, script_of

SHORTENING_S = 120.0
# With these, requests come to Kafka's coordinators in the order in which they were sent.
ONE_AFTER_THE_OTHER = {
    "num.io.threads": "1",
    "num.network.threads": "1",
    "group.coordinator.threads": "1",
    "group.coordinator.append.linger.ms": "0",
}


@contextmanager
def both_brokers(
    tmp_path_factory: pytest.TempPathFactory,
    settings: Mapping[str, str],
    kafkas_settings: Mapping[str, str],
    wait_until_loaded: Callable[[BrokerProcess], object],
) -> Iterator[tuple[ApacheKafkaProcess, BrokerProcess]]:
    """Apache Kafka and odradek, whose coordinators are loaded; skips the test without Java."""
    reason = why_no_java()
    if reason:
        pytest.skip(reason)
    kafka = ApacheKafkaProcess(tmp_path_factory.mktemp("k"), {**settings, **kafkas_settings})
    ours = BrokerProcess(tmp_path_factory.mktemp("o"), settings)
    try:
        for broker in (kafka, ours):
            broker.start_without_waiting()
        for broker in (kafka, ours):
            wait_until_loaded(broker)
        yield kafka, ours
        assert ours.crashes_in_log() == [], ours.log_text()
    finally:
        for broker in (kafka, ours):
            broker.stop()


def hold(compared: ComparedBrokers, conversations: int, together: int, max_ties: float) -> None:
    """Hold conversations by the seeds from SEED on; fails at a difference that comes again.

    `together`: so many have the restart between their acts together. `max_ties`: the share that
    may end early (excuses.py). If more do, because Kafka is slow on a busy machine, as many
    conversations are held again, with other seeds.
    """
    ends: Counter[str | None] = Counter()
    fewest_whole = conversations * (1 - max_ties)
    for start in range(SEED, SEED + 2 * conversations, together):
        if start >= SEED + conversations and ends[None] >= fewest_whole:
            break
        seeds = range(start, start + together)
        for seed, played in zip(seeds, compared.play_at_random(seeds), strict=True):
            ends[played.tie] += 1
            if played.difference and compared.differs_again(played):
                short = compared.shortened(played, SHORTENING_S)
                pytest.fail(report(short, seed), pytrace=False)
    assert ends[None] >= fewest_whole, ends


def report(played: Played, seed: int) -> str:
    """What was said, and how it differed."""
    return f"seed {seed}:\n{script_of(played.steps)}\n{played.difference}"
