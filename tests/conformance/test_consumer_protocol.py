"""Groups of the consumer protocol (KIP-848): the broker assigns, and real clients go along."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, NewPartitions
from kafka.admin import ConfigResource, ConfigResourceType, KafkaAdminClient

from tests.conformance.group_watch import Group
from tests.conformance.member_kinds import (
    CONFLUENT_CONSUMER,
    JAVA_CONSUMER,
    PATIENT_SESSION_TIMEOUT_MS,
    MemberKind,
)
from tests.conformance.record_stream import Stream
from tests.support.broker_process import BrokerProcess
from tests.support.lengths import by_length, only_long
from tests.support.topics import create_topic

PARTITIONS = 6
LIMIT_SECONDS = 100.0

each_client = [
    pytest.param(CONFLUENT_CONSUMER, marks=pytest.mark.slow, id="confluent-kafka"),
    pytest.param(JAVA_CONSUMER, marks=pytest.mark.java, id="java"),
]


@pytest.fixture
def stream(quick_broker: BrokerProcess, topic: str) -> Iterator[Stream]:
    create_topic(quick_broker.bootstrap, topic, PARTITIONS)
    with Stream(quick_broker.bootstrap, topic, PARTITIONS) as writing:
        yield writing


@pytest.fixture
def members(quick_broker: BrokerProcess, topic: str, group: str, tmp_path: Path) -> Iterator[Group]:
    """A group of confluent-kafka's members, if nothing else is said."""
    with Group(CONFLUENT_CONSUMER, quick_broker.bootstrap, topic, group, tmp_path) as found:
        yield found


def be_patient(bootstrap: str, group: str) -> None:
    """What `MemberKind.patient` is in a classic group; here the broker decides."""
    admin = KafkaAdminClient(bootstrap_servers=bootstrap)
    session = {"consumer.session.timeout.ms": str(PATIENT_SESSION_TIMEOUT_MS)}
    answer = admin.alter_configs([ConfigResource(ConfigResourceType.GROUP, group, session)])
    assert answer == {"group": {group: "OK"}}
    admin.close()


@pytest.mark.parametrize("kind", by_length(each_client[:1], each_client))
def test_a_static_member_that_comes_back_in_time_gets_what_it_had(
    quick_broker: BrokerProcess, kind: MemberKind, members: Group, stream: Stream
) -> None:
    be_patient(quick_broker.bootstrap, members.name)
    first, second = members.add(instance="one"), members.add(kind, instance="two")
    members.wait_until_shared(3, 3)
    owned = second.partitions
    assignments = len(first.heard("partitions_assigned"))
    second.leave()
    again = members.add(kind, instance="two")
    members.wait_until_shared(3, 3)
    assert again.partitions == owned
    assert len(first.heard("partitions_assigned")) == assignments
    ends = stream.stop()
    members.wait_until_read(ends)
    members.assert_sound(ends)


# Members by expression, below, are assigned to by the other one.
@pytest.mark.java
@pytest.mark.parametrize("assignor", by_length(["range"], ["range", "uniform"]))
def test_members_of_different_clients_form_one_group_by_either_assignor(
    assignor: str, members: Group, stream: Stream
) -> None:
    ours, theirs = CONFLUENT_CONSUMER.by(assignor), JAVA_CONSUMER.by(assignor)
    members.add(ours)
    members.add(theirs)
    members.wait_until_shared(3, 3)
    for turn in range(by_length(1, 4)):
        members.add((ours, theirs)[turn % 2])
        members.wait_until_shared(2, 2, 2)
        members.living[1].kill()
        members.wait_until_shared(3, 3)
    members.living[0].leave()
    members.wait_until_shared(6)
    ends = stream.stop()
    members.wait_until_read(ends)
    members.assert_sound(ends)
    members.assert_lag(ends)


@pytest.mark.parametrize("kind", by_length(each_client[:1], each_client))
@only_long("expressions are resolved in test_same_answers.py")
def test_an_expression_finds_the_topics_that_come_and_grow_later(
    kind: MemberKind, members: Group, stream: Stream, quick_broker: BrokerProcess, topic: str
) -> None:
    """librdkafka has an expression that begins with ^ matched by the broker, as Java's clients."""
    expression = f"^{topic}(-later)?$"
    create_topic(quick_broker.bootstrap, f"{topic}-other")
    members.add(kind, topic=expression)
    members.wait_until_shared(6)
    members.add(topic=expression)
    members.wait_until_shared(3, 3)
    admin = AdminClient({"bootstrap.servers": quick_broker.bootstrap})
    grown = admin.create_partitions([NewPartitions(topic, PARTITIONS + 2)])
    grown[topic].result(LIMIT_SECONDS)
    members.wait_until_shared(4, 4)
    stream.add(topic, range(PARTITIONS, PARTITIONS + 2))
    later = f"{topic}-later"
    create_topic(quick_broker.bootstrap, later, 2)
    stream.add(later, range(2))
    dies = members.add(topic=expression)
    members.wait_until(lambda: len(dies.partitions) > 0, "share of the third")
    dies.kill()
    members.wait_until_shared(5, 5)  # expressions are resolved every ten seconds
    members.living[0].leave()
    members.wait_until_shared(10)
    ends = stream.stop()
    members.wait_until_read(ends)
    members.assert_sound(ends)
    members.assert_lag(ends)
