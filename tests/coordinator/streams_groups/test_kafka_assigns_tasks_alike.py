"""The sticky assignor gives each member the tasks that Apache Kafka's gives it."""

import random
from collections.abc import Iterator, Mapping

import pytest

from odradek.coordinator.streams_groups.configuration import ConfiguredSubtopology
from odradek.coordinator.streams_groups.sticky_assignor import MemberSpec, assign
from odradek.coordinator.streams_groups.task_offsets import Task
from odradek.coordinator.streams_groups.tasks import Tasks
from tests.support.kafka_task_assignor import KafkaTaskAssignor
from tests.support.lengths import SEED, by_length

pytestmark = pytest.mark.java

Topology = Mapping[str, ConfiguredSubtopology]


@pytest.fixture(scope="module")
def kafka() -> Iterator[KafkaTaskAssignor]:
    with KafkaTaskAssignor() as process:
        yield process


def some_topology(rng: random.Random) -> Topology:
    return {
        str(number): ConfiguredSubtopology(
            task_count=rng.choice([1, 2, 3, 6, 12]),
            source_topics=frozenset(),
            repartition_sources={},
            repartition_sinks=frozenset(),
            changelogs={"log": None} if rng.random() < 0.6 else {},  # type: ignore[dict-item] # only whether there are any counts
        )
        for number in range(rng.randint(1, 3))
    }


def some_offsets(rng: random.Random) -> dict[Task, int]:
    """How far a member has restored tasks, most of which exist."""
    count = rng.choice([0, 0, 3])
    tasks = [(str(rng.randrange(3)), rng.randrange(6)) for _ in range(count)]
    return {task: rng.randrange(4) for task in tasks}


def test_targets_are_those_of_kafka(kafka: KafkaTaskAssignor) -> None:
    """Members come and go, and some share a process."""
    rng = random.Random(SEED)
    for number in range(by_length(300, 10_000)):
        topology = some_topology(rng)
        process_of = {f"m{one}": f"p{rng.randrange(8)}" for one in range(20)}
        targets: dict[str, Tasks] = {}
        for _ in range(4):
            ids = rng.sample(sorted(process_of), rng.randint(1, 12))
            specs = {
                one: MemberSpec(process_of[one], targets.get(one, Tasks()), some_offsets(rng))
                for one in ids
            }
            replicas = rng.choice([0, 0, 1, 2])
            ours = assign(specs, topology, replicas)
            targets = kafka.assign(specs, topology, replicas)
            assert ours == targets, f"number {number}, {replicas} copies of {topology}: {specs}"
