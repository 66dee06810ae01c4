"""Workloads of many group members: odradek, and Apache Kafka beside it where Java is at hand.

Both brokers live through the whole workload and are measured in turns, or at the same time where
time is what the workload is about; Kafka is warmed up first. What counts is the CPU that a broker
uses: it says the same on a machine that has other things to do.
"""

import itertools
import multiprocessing
import os
import resource
import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Protocol

from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.find_coordinator import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from tests.bench.classic_members import ClassicGroup
from tests.bench.compaction import at, round_trips
from tests.bench.consumer_members import ConsumerGroup
from tests.bench.swarm import Swarm, now
from tests.support.broker_process import BrokerProcess, WarmedKafkaProcess
from tests.support.java_tools import why_no_java
from tests.support.topics import create_topic, topic_partitions
from tests.support.wire import WireClient

MEMBERS = 1000
GROUPS = 5000
TOPIC = "bench-of-groups"
SMALL_TOPIC = "bench-of-small-groups"
PARTITIONS = 1000
FEW_PARTITIONS = 6
EVERY_S = 3.0  # a Java consumer's heartbeats
OFTEN_S = 0.5  # so that chance does not decide how soon a group of many is stable
WARM_S = 20.0
MEASURED_S = 30.0
BESIDE_S = 20.0
REBALANCE_EVERY_S = 2.0
WARM_ROUNDS = 3
SETTLE_S = 2.0
ASK_AFTER_S = 0.01
ASK_AGAIN_S = 0.25
JOIN_S = 60.0
COMPARED = ("_cpu_s", "join_s", "one_more_s", "_cpu_s_per_s", "_p99_us", "_p99_us_beside")
FIND_COORDINATOR_VERSION = 4
SETTINGS = {
    "socket.listen.backlog.size": "4096",  # with 50 the kernel lets a thousand wait a second
    "group.consumer.min.heartbeat.interval.ms": "500",
    "group.consumer.heartbeat.interval.ms": "500",
}
Figures = dict[str, float]
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


# -- 1,000 members of one group --------------------------------------------------------------------


def group_of_1000(scratch: Path, rounds: int, share: int) -> Figures:
    """1,000 members join a classic group at once; then one more joins, and all must join again."""
    return in_turns(scratch, rounds, lambda broker: joined(classic, broker, MEMBERS // share))


def consumer_group_of_1000(scratch: Path, rounds: int, share: int) -> Figures:
    """The same by the consumer protocol."""
    return in_turns(scratch, rounds, lambda broker: joined(consumer, broker, MEMBERS // share))


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


def groups_of_one(scratch: Path, rounds: int, share: int) -> Figures:
    """5,000 classic groups of one member, each with a heartbeat every 3 s."""
    return heartbeats(scratch, classic, rounds, share)


def consumer_groups_of_one(scratch: Path, rounds: int, share: int) -> Figures:
    """The same by the consumer protocol."""
    return heartbeats(scratch, small_consumer, rounds, share)


def heartbeats(scratch: Path, make: MakeGroup, rounds: int, share: int) -> Figures:
    """CPU seconds of a broker per second; all brokers are under the same load at the same time."""
    count = GROUPS // share
    with running(scratch) as brokers, Swarm() as swarm:
        allow_files(count * len(brokers) + 100)
        groups: dict[str, list[Group]] = {}
        memory: Figures = {}
        for name, broker in brokers.items():
            before = broker.memory_bytes()
            groups[name] = alone(swarm, broker, make, count)
            memory[f"{name}_kB_per_member"] = (broker.memory_bytes() - before) / 1024 / count
        swarm.run_for(WARM_S)
        found = [beaten(swarm, brokers, groups, MEASURED_S / share) for _ in range(rounds)]
    return with_ratios({**medians(found), **memory})


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
) -> Figures:
    """What the heartbeats of some time cost, and how long they took."""
    for group in itertools.chain(*groups.values()):
        group.trips.clear()
    began = now()
    cpu = {name: broker.cpu_seconds() for name, broker in brokers.items()}
    swarm.run_for(seconds)
    took = now() - began
    figures: Figures = {}
    for name, broker in brokers.items():
        used = broker.cpu_seconds() - cpu[name]
        trips = sorted(trip * 1e6 for group in groups[name] for trip in group.trips)
        figures[f"{name}_cpu_s_per_s"] = used / took
        figures[f"{name}_cpu_us_per_beat"] = used / len(trips) * 1e6
        figures[f"{name}_beats_per_s"] = len(trips) / took
        figures[f"{name}_p50_us"] = at(trips, 0.50)
        figures[f"{name}_p99_us"] = at(trips, 0.99)
    return figures


# -- a rebalance beside others ---------------------------------------------------------------------


def rebalance_beside_produce(scratch: Path, rounds: int, share: int) -> Figures:
    """p99 of a producer of another topic, alone and while a group of 1,000 rebalances."""
    return in_turns(scratch, rounds, lambda broker: beside(classic, broker, share), 1)


def consumer_rebalance_beside_produce(scratch: Path, rounds: int, share: int) -> Figures:
    """The same by the consumer protocol."""
    return in_turns(scratch, rounds, lambda broker: beside(consumer, broker, share), 1)


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


# -- two brokers -----------------------------------------------------------------------------------


@contextmanager
def running(scratch: Path) -> Iterator[dict[str, BrokerProcess]]:
    """odradek, and Apache Kafka where it can run; their coordinators are at work."""
    directory = scratch / f"groups-{time.time_ns()}"
    brokers: dict[str, BrokerProcess] = {"odradek": BrokerProcess(directory / "o", SETTINGS)}
    if why_no_java() is None:
        brokers["kafka"] = WarmedKafkaProcess(directory / "k", SETTINGS)
    with ExitStack() as stack:
        for broker in brokers.values():
            stack.callback(broker.stop)
            broker.start()
            await_coordinator(broker)
            create_topic(broker.bootstrap, TOPIC, PARTITIONS)
            create_topic(broker.bootstrap, SMALL_TOPIC, FEW_PARTITIONS)
            await_topic(broker, TOPIC)
        yield brokers


def await_coordinator(broker: BrokerProcess) -> None:
    """Have `__consumer_offsets` made, and wait until the broker says who coordinates."""
    request = FindCoordinatorRequest(coordinator_keys=["any"])
    with WireClient(broker.port) as client:
        while True:
            answer = client.ask(request, FindCoordinatorResponse, FIND_COORDINATOR_VERSION)
            if answer.coordinators[0].error_code == ErrorCode.NONE:
                return
            time.sleep(0.1)


def await_topic(broker: BrokerProcess, topic: str) -> None:
    """Wait until the topic has a leader everywhere: in Kafka that comes after the answer."""
    while topic_partitions(broker.bootstrap).get(topic, 0) == 0:
        time.sleep(0.1)
    time.sleep(0.3)


def in_turns(
    scratch: Path,
    rounds: int,
    measure: Callable[[BrokerProcess], Figures],
    warm_rounds: int = WARM_ROUNDS,
) -> Figures:
    """Medians of each broker, and odradek's as a part of Kafka's; the first rounds do not count."""
    found: dict[str, list[Figures]] = {}
    with running(scratch) as brokers:
        allow_files(MEMBERS * 2)
        for number in range(rounds + warm_rounds):
            for name, broker in brokers.items():
                time.sleep(SETTLE_S)  # what the other one still does must not count
                figures = measure(broker)
                if number >= warm_rounds:
                    found.setdefault(name, []).append(figures)
    return with_ratios(
        {
            f"{name}_{figure}": value
            for name, figures in found.items()
            for figure, value in medians(figures).items()
        }
    )


@contextmanager
def timed(broker: BrokerProcess, figures: Figures, name: str) -> Iterator[None]:
    """Note the seconds, and the broker's CPU seconds, of what happens inside the `with`."""
    cpu = broker.cpu_seconds()
    began = now()
    yield
    figures[f"{name}_s"] = now() - began
    figures[f"{name}_cpu_s"] = broker.cpu_seconds() - cpu


def medians(rounds: list[Figures]) -> Figures:
    """Of each figure, the median of all rounds."""
    return {name: statistics.median(each[name] for each in rounds) for name in rounds[0]}


def with_ratios(figures: Figures) -> Figures:
    """The same, and odradek's CPU and seconds as a part of Kafka's, where both are there."""
    ratios = {}
    for name, value in figures.items():
        other = figures.get(f"kafka_{name.removeprefix('odradek_')}")
        if name.startswith("odradek_") and name.endswith(COMPARED) and other:
            ratios[f"ratio_{name.removeprefix('odradek_')}"] = value / other
    return figures | ratios


def allow_files(count: int) -> None:
    """Let this process open so many files. Raises OSError where the machine forbids it."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < count:
        raise OSError(f"{count} connections need as many open files; the limit is {hard}")
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


WORKLOADS: dict[str, Callable[[Path, int, int], Figures]] = {
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
