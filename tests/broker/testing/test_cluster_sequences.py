"""One seed gives one sequence: what a cluster answers while nodes fail can be repeated."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

import pytest

from odradek.broker.testing import Broker, Fault
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import ErrorCode
from tests.conformance.cluster.asked import fetch, produce
from tests.conformance.cluster.talk import ClusterTalk, metadata
from tests.conformance.compared_conversations import Lines, kept_lines
from tests.support.clusters import NODE_IDS
from tests.support.lengths import by_length
from tests.support.odradek_cluster import OdradekCluster

pytestmark = pytest.mark.slow

REPEATS = by_length(3, 100)
SEEDS = by_length(2, 10)
STEPS = 30
TOPIC = "sequences"


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker(nodes=3) as broker:
        yield broker


@pytest.mark.parametrize("seed", range(SEEDS))
def test_a_seed_gives_the_same_answers_each_time(broker: Broker, seed: int) -> None:
    first = sequence(broker, seed)
    assert len(first) > STEPS
    for _ in range(REPEATS - 1):
        assert sequence(broker, seed) == first


def sequence(broker: Broker, seed: int) -> Lines:
    """What is said in one run: nodes fail, leaders move, and requests fail with a probability."""
    broker.reset()
    random = Random(seed)
    talk = ClusterTalk(OdradekCluster(broker))
    try:
        # The records are old: retention would delete them when it happens to run.
        talk.create_topic(TOPIC, [1, 2, 3], retention_ms="-1")
        broker.inject(
            Fault(
                api=ApiKey.PRODUCE,
                probability=0.3,
                seed=seed,
                times=None,
                error=ErrorCode.NOT_ENOUGH_REPLICAS,
            )
        )
        for _ in range(STEPS):
            step(broker, talk, random)
        return kept_lines(talk.transcript)
    finally:
        broker.clear_faults()
        talk.start_all()
        talk.close()


def step(broker: Broker, talk: ClusterTalk, random: Random) -> None:
    down = sorted(set(NODE_IDS) - talk.running)
    happens = random.choice(("lose", "start", "move", "write", "write", "read"))
    if happens == "lose" and len(talk.running) > 1:
        end = random.choice((talk.kill, talk.stop))
        end(random.choice(sorted(talk.running)))
    elif happens == "start" and down:
        talk.start(random.choice(down))
    elif happens == "move":
        in_sync = broker.partition(TOPIC, 0).isr
        if in_sync:
            broker.move_leader(TOPIC, 0, random.choice(in_sync))
    node = random.choice(sorted(talk.running))
    if happens == "write":
        talk.ask(node, produce(TOPIC, "value"))
    elif happens == "read":
        talk.ask(node, fetch(TOPIC))
    talk.ask(node, metadata(TOPIC), change=lambda answer: answer.topics[0].partitions)
