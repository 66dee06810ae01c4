"""The broker is killed while groups work: they go on where they were, as they were."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conformance.conftest import QUICK_GROUPS
from tests.conformance.group_watch import Group
from tests.conformance.member_kinds import (
    AIOKAFKA,
    CONFLUENT,
    CONFLUENT_CONSUMER,
    JAVA,
    JAVA_CONSUMER,
    KAFKA_PYTHON,
    MemberKind,
)
from tests.conformance.record_stream import Stream
from tests.support.broker_process import BrokerProcess
from tests.support.lengths import by_length
from tests.support.topics import create_topic

PARTITIONS = 6
TOPIC = "goes-on"
PATIENT_MS = "5000"  # on a busy machine a member finds the broker late

of_python = [
    pytest.param(
        (KAFKA_PYTHON, AIOKAFKA, CONFLUENT),
        (CONFLUENT_CONSUMER, CONFLUENT_CONSUMER, CONFLUENT_CONSUMER),
        marks=pytest.mark.slow,
        id="python",
    ),
]
of_all = [
    pytest.param(
        (JAVA, CONFLUENT, AIOKAFKA),
        (JAVA_CONSUMER, CONFLUENT_CONSUMER, KAFKA_PYTHON),
        marks=[pytest.mark.java, pytest.mark.slow],
        id="java",
    ),
]


@pytest.mark.parametrize(("classic_kinds", "consumer_kinds"), by_length(of_all, of_python + of_all))
def test_groups_go_on_when_their_broker_was_killed(
    classic_kinds: tuple[MemberKind, ...],
    consumer_kinds: tuple[MemberKind, ...],
    start_broker: Callable[..., BrokerProcess],
    tmp_path: Path,
) -> None:
    broker = start_broker(**{**QUICK_GROUPS, "group.consumer.session.timeout.ms": PATIENT_MS})
    create_topic(broker.bootstrap, TOPIC, PARTITIONS)
    with (
        Stream(broker.bootstrap, TOPIC, PARTITIONS) as stream,
        Group(CONFLUENT, broker.bootstrap, TOPIC, "classic", tmp_path) as classic,
        Group(CONFLUENT_CONSUMER, broker.bootstrap, TOPIC, "consumer", tmp_path) as consumer,
    ):
        for kind in classic_kinds:
            classic.add(kind)
        for kind in consumer_kinds:
            consumer.add(kind)
        for _ in range(by_length(1, 4)):
            classic.wait_until_shared(2, 2, 2)
            consumer.wait_until_shared(2, 2, 2)
            broker.kill()
            broker.start()
            for group in (classic, consumer):
                _wait_until_all_read_on(group)
                group.wait_until_shared(2, 2, 2)
        broker.kill()
        classic.members[-1].kill()
        consumer.members[-1].kill()
        broker.start()
        for group in (classic, consumer):
            group.wait_until_shared(3, 3)
        ends = stream.stop()
        for group in (classic, consumer):
            group.wait_until_read(ends)
            group.assert_sound(ends)
            group.assert_lag(ends)


def _wait_until_all_read_on(group: Group) -> None:
    before = {member.name: member.records_read for member in group.living}
    group.wait_until(
        lambda: all(member.records_read > before[member.name] for member in group.living),
        "reading on",
    )
