"""A group of real clients, watched from outside: by what its members say, and its broker.

with Group(KAFKA_PYTHON, broker.bootstrap, topic, name, tmp_path) as group:
    group.add()
    group.add(JAVA)
    group.wait_until_shared(3, 3)
    ...
    group.assert_sound(ends)
"""

import time
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Self

from confluent_kafka import ConsumerGroupTopicPartitions, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec

from tests.conformance import group_verdict
from tests.conformance.group_described import STABLE, GroupWatch
from tests.conformance.group_member import PATIENCE_SECONDS, Member, Partition, Place
from tests.conformance.member_kinds import MemberKind

LIMIT_SECONDS = 100.0


class Group:
    """The members of one group on one topic, dead ones included."""

    def __init__(
        self, kind: MemberKind, bootstrap: str, topic: str, name: str, scratch: Path
    ) -> None:
        self._kind = kind
        self._bootstrap = bootstrap
        self._topic = topic
        self._scratch = scratch
        self.name = name
        self.members: list[Member] = []
        self.watch = GroupWatch(bootstrap, name)

    def __enter__(self) -> Self:
        self.watch.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        for member in self.members:
            member.end()
        self.watch.__exit__(None, None, None)

    def add(
        self,
        kind: MemberKind | None = None,
        *,
        instance: str | None = None,
        topic: str | None = None,
    ) -> Member:
        """Start one more member: of the group's kind and topic, if nothing else is said."""
        kind = kind or self._kind
        command = kind.command(
            self._bootstrap, topic or self._topic, self.name, instance, self._scratch
        )
        self.members.append(Member(f"member {len(self.members)}, {kind}", command))
        return self.members[-1]

    def leave(self) -> None:
        """All members leave, and end."""
        living = self.living
        for member in living:
            member.ask_to_leave()
        for member in living:
            member.assert_left()

    @property
    def living(self) -> list[Member]:
        """The members whose processes run."""
        return [member for member in self.members if member.is_running]

    # -- waiting -----------------------------------------------------------------------------------

    def wait_until_shared(self, *sizes: int) -> None:
        """Wait until the living members own disjoint parts of these sizes, in any order.

        They say so, and their broker: it has the same members, and calls the group stable.
        """

        def shared() -> bool:
            owned = [member.partitions for member in self.living]
            disjoint = len(set().union(*owned)) == sum(map(len, owned))
            if not disjoint or sorted(map(len, owned)) != sorted(sizes):
                return False
            told = self.watch.look()
            return (
                told is not None
                and told.state == STABLE
                and Counter(told.shares.values()) == Counter(map(frozenset, owned))
            )

        self.wait_until(shared, f"shares of {sizes}")

    def wait_until_read(self, ends: Mapping[Partition, int]) -> None:
        """Wait until the members have read so many records, and their last commits are answered."""
        total = sum(ends.values())

        def is_done() -> bool:
            if sum(member.records_read for member in self.members) < total:
                return False
            return group_verdict.committed_in_the_end(self.members) == {
                at: end for at, end in ends.items() if end
            }

        self.wait_until(is_done, "everything read and committed")

    def wait_until(
        self, condition: Callable[[], bool], what: str, patience_s: float = PATIENCE_SECONDS
    ) -> None:
        """Wait; fails with the members' stories."""
        deadline = time.monotonic() + patience_s
        while not condition():
            stories = "\n".join(member.story() for member in self.members)
            fallen = [member.name for member in self.members if member.fell]
            in_time = time.monotonic() < deadline and not fallen
            assert in_time, f"no {what}, ended: {fallen}\n{self.watch.last}\n{stories}"
            time.sleep(0.05)

    # -- judging -----------------------------------------------------------------------------------

    def read(self) -> Counter[Place]:
        """How often each offset was read."""
        return sum((member.read() for member in self.members), Counter[Place]())

    def assert_sound(self, ends: Mapping[Partition, int]) -> None:
        """All was read, and nothing twice that was committed; see group_verdict."""
        group_verdict.assert_sound(self.members, ends)
        self.watch.assert_sound()

    def assert_lag(self, ends: Mapping[Partition, int]) -> None:
        """Offsets and lag by the admin API are what the members were told."""
        told = group_verdict.committed_in_the_end(self.members)
        found = committed(self._bootstrap, self.name)
        assert found == told
        assert lag(self._bootstrap, found) == {at: ends[at] - told[at] for at in told}


def committed(bootstrap: str, group: str) -> dict[Partition, int]:
    """The group's committed offsets, as an admin client gets them."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    asked = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)])
    answer = asked[group].result(LIMIT_SECONDS)
    return {(each.topic, each.partition): each.offset for each in answer.topic_partitions}


def lag(bootstrap: str, offsets: Mapping[Partition, int]) -> dict[Partition, int]:
    """How far each partition's end is behind the offset, as an admin client gets it."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    latest = {TopicPartition(*at): OffsetSpec.latest() for at in offsets}
    ends = admin.list_offsets(latest)
    return {
        (at.topic, at.partition): end.result(LIMIT_SECONDS).offset - offsets[at.topic, at.partition]
        for at, end in ends.items()
    }
