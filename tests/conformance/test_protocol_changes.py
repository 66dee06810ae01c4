"""Groups that go from the classic protocol to the consumer protocol, and back, while they work."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conformance.group_watch import Group
from tests.conformance.member_kinds import (
    AIOKAFKA,
    CONFLUENT,
    CONFLUENT_CONSUMER,
    JAVA,
    JAVA_CONSUMER,
    KAFKA_PYTHON,
)
from tests.conformance.record_stream import Stream
from tests.support.broker_process import BrokerProcess
from tests.support.lengths import only_long
from tests.support.topics import create_topic

PARTITIONS = 6


@pytest.fixture
def stream(quick_broker: BrokerProcess, topic: str) -> Iterator[Stream]:
    create_topic(quick_broker.bootstrap, topic, PARTITIONS)
    with Stream(quick_broker.bootstrap, topic, PARTITIONS) as writing:
        yield writing


@pytest.fixture
def members(quick_broker: BrokerProcess, topic: str, group: str, tmp_path: Path) -> Iterator[Group]:
    with Group(CONFLUENT, quick_broker.bootstrap, topic, group, tmp_path) as found:
        yield found


def assert_type(members: Group, expected: str) -> None:
    found = members.watch.look()
    assert found is not None
    assert found.type == expected


@pytest.mark.java
def test_a_group_is_rolled_over_to_the_consumer_protocol_and_back(
    members: Group, stream: Stream
) -> None:
    classic = [members.add(JAVA), members.add(CONFLUENT)]
    members.wait_until_shared(3, 3)
    assert_type(members, "classic")
    consumers = [members.add(JAVA_CONSUMER)]
    members.wait_until_shared(2, 2, 2)
    assert_type(members, "consumer")
    classic.pop().leave()
    consumers.append(members.add(CONFLUENT_CONSUMER))
    members.wait_until_shared(2, 2, 2)
    classic.pop().leave()
    members.wait_until_shared(3, 3)
    members.add(JAVA)
    members.wait_until_shared(2, 2, 2)
    consumers.pop().leave()
    members.wait_until_shared(3, 3)
    assert_type(members, "consumer")
    consumers.pop().kill()
    members.wait_until_shared(6)
    assert_type(members, "classic")
    members.add(KAFKA_PYTHON)
    members.wait_until_shared(3, 3)
    ends = stream.stop()
    members.wait_until_read(ends)
    members.assert_sound(ends)
    members.assert_lag(ends)


@pytest.mark.slow
@only_long("a group of two clients changes its protocol above")
def test_classic_members_of_each_client_work_in_a_consumer_group(
    members: Group, stream: Stream
) -> None:
    first = members.add(KAFKA_PYTHON)
    members.add(AIOKAFKA)
    members.wait_until_shared(3, 3)
    newer = members.add(CONFLUENT_CONSUMER)
    members.wait_until_shared(2, 2, 2)
    assert_type(members, "consumer")
    members.add(CONFLUENT)
    members.wait_until_shared(1, 1, 2, 2)
    first.kill()
    members.wait_until_shared(2, 2, 2)
    newer.leave()
    members.wait_until_shared(3, 3)
    assert_type(members, "classic")
    ends = stream.stop()
    members.wait_until_read(ends)
    members.assert_sound(ends)
    members.assert_lag(ends)


@pytest.mark.slow
@only_long("members go on from committed offsets above")
def test_each_protocol_goes_on_from_the_offsets_that_the_other_committed(
    members: Group, stream: Stream
) -> None:
    for kind in (CONFLUENT, CONFLUENT_CONSUMER, KAFKA_PYTHON, CONFLUENT_CONSUMER):
        member = members.add(kind)
        members.wait_until_shared(6)
        assert_type(members, kind.protocol)
        members.wait_until(lambda member=member: member.records_read > 100, "reading")
        member.leave()
    last = members.add(AIOKAFKA)
    ends = stream.stop()
    members.wait_until_read(ends)
    members.assert_sound(ends)
    members.assert_lag(ends)
    assert last.records_read < sum(ends.values())
