"""Workloads of many group members: odradek, and Apache Kafka beside it where Java is at hand.

The brokers are measured in turns, or at the same time where that is what the workload is about.
What counts is the CPU that a broker uses: it is the same on a machine with other things to do.
"""

import itertools
import multiprocessing
import os
import time
from collections.abc import Callable, Mapping, Sequence
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Protocol

from tests.bench.classic_members import ClassicGroup
from tests.bench.compaction import round_trips
from tests.bench.consumer_members import ConsumerGroup
from tests.bench.figures import Figures, Results, at, compared, latencies
from tests.bench.swarm import Swarm, now
from tests.bench.two_brokers import (
    WARM_ROUNDS,
    allow_files,
    await_topic,
    in_turns,
    running,
    timed,
)
from tests.support.broker_process import BrokerProcess
from tests.support.topics import create_topic

MEMBERS = 1000
GROUPS = 5000
TOPIC = "bench-of-groups"
SMALL_TOPIC = "bench-of-small-groups"
PARTITIONS = 1000
FEW_PARTITIONS = 6
TOPICS = {TOPIC: PARTITIONS, SMALL_TOPIC: FEW_PARTITIONS}
EVERY_S = 3.0  # a Java consumer's heartbeats
OFTEN_S = 0.5  # so that chance does not decide how soon a group of many is stable
WARM_S = 20.0
MEASURED_S = 30.0
BESIDE_S = 20.0
REBALANCE_EVERY_S = 2.0
ASK_AFTER_S = 0.01
ASK_AGAIN_S = 0.25
JOIN_S = 60.0
SETTINGS = {
    "socket.listen.backlog.size": "4096",  # with 50 the kernel lets a thousand wait a second
    "group.consumer.min.heartbeat.interval.ms": "500",
    "group.consumer.heartbeat.interval.ms": "500",
}
_names = (f"group-{number}" for number in itertools.count())


class Member(Protocol):
    """A member of either protocol."""

    def join(self) -> None: ...
    def beat(self) -> None: ...


class Group(Protocol):
    """A group of either protocol."""

    swarm: Swarm
    trips: list[float]

    @property
    def members(self) -> "Sequence[Member]": ...
    @property
    def generation(self) -> int: ...
    def add(self, count: int) -> "Sequence[Member]": ...
    def is_stable(self) -> bool: ...
    def disturb(self) -> None: ...
    def leave(self) -> None: ...


MakeGroup = Callable[[Swarm, BrokerProcess, float], Group]


def classic(swarm: Swarm, broker: BrokerProcess, beat_every_s: float) -> Group:
    """A classic group without members."""
    return ClassicGroup(swarm, broker.port, next(_names), beat_every_s)


def consumer(swarm: Swarm, broker: BrokerProcess, beat_every_s: float) -> Group:
    """A consumer group without members, of a topic with a partition for each of many."""
    return ConsumerGroup(swarm, broker.port, next(_names), beat_every_s, TOPIC, PARTITIONS)


def small_consumer(swarm: Swarm, broker: BrokerProcess, beat_every_s: float) -> Group:
    """A consumer group without members, of a topic with few partitions."""
    return ConsumerGroup(
        swarm, broker.port, next(_names), beat_every_s, SMALL_TOPIC, FEW_PARTITIONS
    )


def measured(
    scratch: Path,
    rounds: int,
    measure: Callable[[BrokerProcess], Figures],
    warm_rounds: int = WARM_ROUNDS,
) -> Results:
    """The figures of both brokers, in turns."""
    with running(scratch, SETTINGS, TOPICS) as brokers:
        return in_turns(brokers, rounds, measure, warm_rounds)


# -- 1,000 members of one group --------------------------------------------------------------------


def group_of_1000(scratch: Path, rounds: int, share: int) -> Results:
    """1,000 members join a classic group at once; then one more joins, and all must join again."""
    return measured(scratch, rounds, lambda broker: joined(classic, broker, MEMBERS // share))


def consumer_group_of_1000(scratch: Path, rounds: int, share: int) -> Results:
    """The same by the consumer protocol."""
    return measured(scratch, rounds, lambda broker: joined(consumer, broker, MEMBERS // share))


def joined(make: MakeGroup, broker: BrokerProcess, count: int) -> Figures:
    """Seconds, and the broker's CPU seconds, until all members have what is theirs."""
    figures: Figures = {}
    with Swarm() as swarm:
        group = make(swarm, broker, OFTEN_S)
        with timed(broker, figures, "connect"):
            members = group.add(count)
        with timed(broker, figures, "join"):
            for member in members:
                member.join()
            swarm.run_until(group.is_stable)
        figures["generations"] = group.generation
        with timed(broker, figures, "one_more"):
            rebalance(group, lambda: group.add(1)[0].join())
        with timed(broker, figures, "leave"):
            group.leave()
    return figures


def rebalance(group: Group, begin: Callable[[], None]) -> None:
    """Have something change, let the members ask soon what that means, and wait until they know."""
    swarm = group.swarm
    before = group.generation

    def is_over() -> bool:
        return group.generation > before and group.is_stable()

    begin()
    while not is_over():
        swarm.run_for(ASK_AFTER_S)
        for member in group.members:
            member.beat()
        swarm.run_for(ASK_AGAIN_S, is_over)


# -- 5,000 groups of one member --------------------------------------------------------------------


def groups_of_one(scratch: Path, rounds: int, share: int) -> Results:
    """5,000 classic groups of one member, each with a heartbeat every 3 s."""
    return heartbeats(scratch, classic, rounds, share)


def consumer_groups_of_one(scratch: Path, rounds: int, share: int) -> Results:
    """The same by the consumer protocol."""
    return heartbeats(scratch, small_consumer, rounds, share)


def heartbeats(scratch: Path, make: MakeGroup, rounds: int, share: int) -> Results:
    """CPU seconds of a broker per second; all brokers are under the same load at the same time."""
    count = GROUPS // share
    with running(scratch, SETTINGS, TOPICS) as brokers, Swarm() as swarm:
        allow_files(count * len(brokers) + 100)
        groups: dict[str, list[Group]] = {}
        memory: Figures = {}
        for name, broker in brokers.items():
            before = broker.memory_bytes()
            groups[name] = alone(swarm, broker, make, count)
            memory[name] = (broker.memory_bytes() - before) / 1024 / count
        swarm.run_for(WARM_S)
        found: dict[str, list[Figures]] = {name: [] for name in brokers}
        for _ in range(rounds):
            for name, figures in beaten(swarm, brokers, groups, MEASURED_S / share).items():
                found[name].append(figures | {"kB_per_member": memory[name]})
    return compared(found)


def alone(swarm: Swarm, broker: BrokerProcess, make: MakeGroup, count: int) -> list[Group]:
    """So many groups, each with one member that has joined; their heartbeats are spread evenly."""
    groups = [make(swarm, broker, EVERY_S) for _ in range(count)]
    members = [group.add(1)[0] for group in groups]
    began = now()
    for number, member in enumerate(members):
        swarm.call_at(began + EVERY_S * number / count, member.join)
    swarm.run_until(lambda: all(group.is_stable() for group in groups))
    return groups


def beaten(
    swarm: Swarm,
    brokers: Mapping[str, BrokerProcess],
    groups: Mapping[str, list[Group]],
    seconds: float,
) -> dict[str, Figures]:
    """What the heartbeats of some time cost, and how long they took."""
    for group in itertools.chain(*groups.values()):
        group.trips.clear()
    began = now()
    cpu = {name: broker.cpu_seconds() for name, broker in brokers.items()}
    swarm.run_for(seconds)
    took = now() - began
    found: dict[str, Figures] = {}
    for name, broker in brokers.items():
        used = broker.cpu_seconds() - cpu[name]
        trips = [trip * 1e6 for group in groups[name] for trip in group.trips]
        found[name] = {
            "cpu_percent": used / took * 100,
            "cpu_us_per_beat": used / len(trips) * 1e6,
            "beats_per_s": len(trips) / took,
            **latencies(trips),
        }
    return found


# -- a rebalance beside others ---------------------------------------------------------------------


def rebalance_beside_produce(scratch: Path, rounds: int, share: int) -> Results:
    """p99 of a producer of another topic, alone and while a group of 1,000 rebalances."""
    return measured(scratch, rounds, lambda broker: beside(classic, broker, share), 1)


def consumer_rebalance_beside_produce(scratch: Path, rounds: int, share: int) -> Results:
    """The same by the consumer protocol."""
    return measured(scratch, rounds, lambda broker: beside(consumer, broker, share), 1)


def beside(make: MakeGroup, broker: BrokerProcess, share: int) -> Figures:
    """Round trips of a producer, in microseconds; the members live in a process of their own."""
    topic = f"beside-{time.time_ns()}"
    create_topic(broker.bootstrap, topic)
    await_topic(broker, topic)
    seconds = BESIDE_S / share
    context = multiprocessing.get_context("fork")
    mine, its = context.Pipe()
    members = context.Process(target=rebalance_again_and_again, args=(its, make, broker, share))
    members.start()
    try:
        assert mine.recv() == "stable"
        quiet_until = now() + seconds
        alone = round_trips(broker, topic, lambda: now() < quiet_until)
        mine.send("begin")
        busy_until = now() + seconds
        busy = round_trips(broker, topic, lambda: now() < busy_until)
        mine.send("end")
        rebalances = mine.recv()
    finally:
        members.join(JOIN_S)
        members.kill()
    return {
        **tail_of(alone, "alone"),
        **tail_of(busy, "beside"),
        "p99_added_us": at(busy, 0.99) - at(alone, 0.99),
        "rebalances_per_s": rebalances / seconds,
    }


def tail_of(trips: list[float], name: str) -> Figures:
    """The middle, the tail and the end of sorted round trips."""
    return {
        f"p50_us_{name}": at(trips, 0.50),
        f"p99_us_{name}": at(trips, 0.99),
        f"p999_us_{name}": at(trips, 0.999),
        f"max_us_{name}": trips[-1],
    }


def rebalance_again_and_again(
    orders: Connection, make: MakeGroup, broker: BrokerProcess, share: int
) -> None:
    """A process of 1,000 members; it is nice, so that the producer need not wait for it."""
    os.nice(10)
    count = 0
    with Swarm() as swarm:
        group = make(swarm, broker, EVERY_S)
        for member in group.add(MEMBERS // share):
            member.join()
        swarm.run_until(group.is_stable)
        orders.send("stable")
        swarm.run_until(orders.poll)
        orders.recv()
        while not orders.poll():
            began = now()
            rebalance(group, group.disturb)
            count += 1
            swarm.run_for(max(0.0, began + REBALANCE_EVERY_S - now()))
        orders.send(count)
        group.leave()


WORKLOADS: dict[str, Callable[[Path, int, int], Results]] = {
    work.__name__: work
    for work in (
        group_of_1000,
        groups_of_one,
        rebalance_beside_produce,
        consumer_group_of_1000,
        consumer_groups_of_one,
        consumer_rebalance_beside_produce,
    )
}
