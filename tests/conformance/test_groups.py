"""Classic groups of one client each: members come, leave and die while records flow."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conformance.group_watch import Group
from tests.conformance.member_kinds import (
    AIOKAFKA,
    ASSIGNORS,
    CONFLUENT,
    JAVA,
    KAFKA_PYTHON,
    MemberKind,
)
from tests.conformance.record_stream import Stream
from tests.support.broker_process import BrokerProcess
from tests.support.lengths import by_length
from tests.support.topics import create_topic

PARTITIONS = 6

# The mixed groups have all of them in each run.
every_client = [
    pytest.param(kind, marks=pytest.mark.java if kind.is_java else pytest.mark.slow, id=str(kind))
    for kind in (KAFKA_PYTHON, AIOKAFKA, CONFLUENT, JAVA)
]


@pytest.fixture
def stream(broker: BrokerProcess, topic: str) -> Iterator[Stream]:
    create_topic(broker.bootstrap, topic, PARTITIONS)
    with Stream(broker.bootstrap, topic, PARTITIONS) as writing:
        yield writing


@pytest.mark.parametrize("kind", by_length(every_client[:1], every_client))
def test_three_members_share_the_work_when_one_is_added_killed_or_leaves(
    kind: MemberKind, broker: BrokerProcess, topic: str, stream: Stream, group: str, tmp_path: Path
) -> None:
    with Group(kind, broker.bootstrap, topic, group, tmp_path) as members:
        members.add()
        second = members.add()
        members.wait_until_shared(3, 3)
        third = members.add()
        members.wait_until_shared(2, 2, 2)
        third.kill()
        members.wait_until_shared(3, 3)
        second.leave()
        members.wait_until_shared(6)
        ends = stream.stop()
        members.wait_until_read(ends)
        members.assert_sound(ends)
        members.assert_lag(ends)


@pytest.mark.parametrize("kind", by_length(every_client[:1], every_client))
def test_a_static_member_that_comes_back_in_time_causes_no_rebalance(
    kind: MemberKind, broker: BrokerProcess, topic: str, stream: Stream, group: str, tmp_path: Path
) -> None:
    with Group(kind.patient(), broker.bootstrap, topic, group, tmp_path) as members:
        first, second = members.add(instance="one"), members.add(instance="two")
        members.wait_until_shared(3, 3)
        owned = second.partitions
        assignments = len(first.heard("partitions_assigned"))
        second.kill()
        again = members.add(instance="two")
        members.wait_until_shared(3, 3)
        assert again.partitions == owned
        assert len(first.heard("partitions_assigned")) == assignments
        ends = stream.stop()
        members.wait_until_read(ends)
        members.assert_sound(ends)


@pytest.mark.parametrize("kind", by_length(every_client[:1], every_client))
def test_each_of_the_clients_assignors_works(
    kind: MemberKind, broker: BrokerProcess, topic: str, stream: Stream, group: str, tmp_path: Path
) -> None:
    """One group for each of them, all at the same time; the other tests have `range`."""
    assignors = [name for name in ASSIGNORS[kind] if name != "range"]
    if kind.is_java:  # a JVM for each member is slow, and the mixed groups have its third one
        assignors = by_length(["roundrobin", "sticky"], assignors)
    with contextlib.ExitStack() as stack:
        groups = [
            stack.enter_context(
                Group(kind.by(name), broker.bootstrap, topic, f"{group}-{name}", tmp_path)
            )
            for name in assignors
        ]
        for members in groups:
            members.add()
            members.add()
        for turn in range(by_length(1, 4)):
            for members in groups:
                members.wait_until_shared(3, 3)
                members.living[turn % 2].kill()
            for members in groups:
                members.wait_until_shared(6)
                if turn + 1 < by_length(1, 4):
                    members.add()
        ends = stream.stop()
        for members in groups:
            members.wait_until_read(ends)
            members.assert_sound(ends)
            members.assert_lag(ends)
