"""Classic groups whose members are of different clients: one of them leads, all understand it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conformance.group_watch import Group
from tests.conformance.member_kinds import AIOKAFKA, CONFLUENT, JAVA, KAFKA_PYTHON
from tests.conformance.record_stream import Stream
from tests.support.broker_process import BrokerProcess
from tests.support.lengths import by_length
from tests.support.topics import create_topic

pytestmark = [pytest.mark.java, pytest.mark.slow]

PARTITIONS = 8
COOPERATIVE = "cooperative-sticky"


@pytest.fixture
def stream(broker: BrokerProcess, topic: str) -> Iterator[Stream]:
    create_topic(broker.bootstrap, topic, PARTITIONS)
    with Stream(broker.bootstrap, topic, PARTITIONS) as writing:
        yield writing


def test_four_clients_share_the_work_when_they_come_die_leave_and_come_back(
    broker: BrokerProcess, topic: str, stream: Stream, group: str, tmp_path: Path
) -> None:
    with Group(KAFKA_PYTHON, broker.bootstrap, topic, group, tmp_path) as members:
        stays = members.add()
        leaves = members.add(AIOKAFKA)
        static = members.add(CONFLUENT.patient(), instance="the static one")
        dies = members.add(JAVA)
        members.wait_until_shared(2, 2, 2, 2)
        dies.kill()
        members.wait_until_shared(2, 3, 3)
        leaves.leave()
        members.wait_until_shared(4, 4)
        owned, assignments = static.partitions, len(stays.heard("partitions_assigned"))
        static.kill()
        again = members.add(CONFLUENT.patient(), instance="the static one")
        members.wait_until_shared(4, 4)
        assert again.partitions == owned
        assert len(stays.heard("partitions_assigned")) == assignments
        for _ in range(by_length(0, 4)):
            members.add(JAVA)
            members.add(AIOKAFKA)
            members.wait_until_shared(2, 2, 2, 2)
            members.living[-1].kill()
            members.living[-1].leave()
            members.wait_until_shared(4, 4)
        ends = stream.stop()
        members.wait_until_read(ends)
        members.assert_sound(ends)
        members.assert_lag(ends)


def test_cooperating_clients_move_only_what_must_move(
    broker: BrokerProcess, topic: str, stream: Stream, group: str, tmp_path: Path
) -> None:
    kind = CONFLUENT.by(COOPERATIVE)
    with Group(kind, broker.bootstrap, topic, group, tmp_path) as members:
        first, second = members.add(), members.add(JAVA.by(COOPERATIVE))
        members.wait_until_shared(4, 4)
        owned = [first.partitions, second.partitions]
        third = members.add(KAFKA_PYTHON.by(COOPERATIVE))
        members.wait_until_shared(2, 3, 3)
        assert first.partitions <= owned[0]
        assert second.partitions <= owned[1]
        third.kill()
        members.wait_until_shared(4, 4)
        second.leave()
        members.wait_until_shared(8)
        ends = stream.stop()
        members.wait_until_read(ends)
        members.assert_sound(ends)
        members.assert_lag(ends)
