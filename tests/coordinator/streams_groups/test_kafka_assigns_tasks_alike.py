"""The sticky assignor gives the same loads as Apache Kafka's, and moves as many tasks.

Which of several equally loaded processes gets a task depends on Java's hash tables. So each member
is a process of its own here, and targets are compared by what they cost: the loads of the members,
and the tasks that have stayed or are copied.
"""

import random
from collections.abc import Iterator, Mapping

import pytest

from odradek.coordinator.streams_groups.configuration import ConfiguredSubtopology
from odradek.coordinator.streams_groups.sticky_assignor import MemberSpec, assign
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


def count(tasks: Tasks) -> tuple[int, int]:
    """The numbers of active and of standby tasks."""
    return sum(map(len, tasks.active.values())), sum(map(len, tasks.standby.values()))


def cost(specs: Mapping[str, MemberSpec], targets: Mapping[str, Tasks]) -> tuple[object, ...]:
    """The members' numbers of active tasks, those that stayed, and the number of standby tasks."""
    stayed = sum(
        len(partitions & targets[member_id].active.get(name, frozenset()))
        for member_id, spec in specs.items()
        for name, partitions in spec.target.active.items()
    )
    active = sorted(count(tasks)[0] for tasks in targets.values())
    return active, stayed, sum(count(tasks)[1] for tasks in targets.values())


def test_loads_and_moves_are_those_of_kafka(kafka: KafkaTaskAssignor) -> None:
    rng = random.Random(SEED)
    different = []
    for number in range(by_length(300, 10_000)):
        topology, replicas = some_topology(rng), rng.choice([0, 0, 1, 2])
        targets: dict[str, Tasks] = {}
        for _ in range(3):
            ids = rng.sample([f"m{one}" for one in range(10)], rng.randint(1, 8))
            specs = {one: MemberSpec(one, targets.get(one, Tasks())) for one in ids}
            ours, kafkas = (
                cost(specs, one(specs, topology, replicas)) for one in (assign, kafka.assign)
            )
            if ours != kafkas:
                different.append((number, replicas, specs, ours, kafkas))
            targets = kafka.assign(specs, topology, replicas)
    assert not different, f"{len(different)} differ, for example {different[0]}"
