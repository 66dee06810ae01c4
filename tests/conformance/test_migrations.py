"""Groups that move between the protocols, by Apache Kafka's own consumers.

The same script on both brokers looks alike at every step; and a group in the midst of its move goes
on where the other broker takes over the directory.
"""

import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
)
from odradek.protocol.messages.describe_groups import (
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)
from odradek.protocol.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from odradek.protocol.records.consumer_protocol import (
    ConsumerProtocolAssignment,
    decode_versioned,
)
from tests.conformance.exchange.shared_directory import SharedDirectory
from tests.support.broker_process import BrokerProcess
from tests.support.consumer_members_java import JavaMembers
from tests.support.java_tools import why_no_java
from tests.support.kafka_groups import SETTINGS, create_topics
from tests.support.lengths import only_long
from tests.support.wire import WireClient

pytestmark = [
    pytest.mark.java,
    pytest.mark.slow,
    only_long("groups are rolled over in test_protocol_changes.py"),
]

GROUP = "moving"
TOPIC, PARTITIONS = "orders", 3
QUICK = {**SETTINGS, "group.initial.rebalance.delay.ms": "0"}
LIMIT_SECONDS = 60.0
NOT_YET = (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.NOT_COORDINATOR)
Seen = tuple[Any, ...]


@pytest.fixture(autouse=True)
def _java() -> None:
    reason = why_no_java()
    if reason:
        pytest.skip(reason)


class Looker:
    """What an admin client is shown of the group."""

    def __init__(self, broker: BrokerProcess) -> None:
        self._client = WireClient(broker.port)
        self._broker = type(broker).__name__

    def __enter__(self) -> "Looker":
        return self

    def __exit__(self, *_: object) -> None:
        self._client.close()

    def settled(self, *names: str) -> Seen:
        """Its type, state and members, when these are they and all partitions are shared out."""
        deadline = time.monotonic() + LIMIT_SECONDS
        while True:
            seen = self.look()
            kind, state, members = seen
            shared = sum(len(partitions) for _, _, partitions in members)
            if state == "Stable" and shared == PARTITIONS and _names(members) == sorted(names):
                # Which of two equals gets the third one depends on random ids.
                counts = sorted(len(partitions) for _, _, partitions in members)
                return kind, [(name, speaks) for name, speaks, _ in members], counts
            assert time.monotonic() < deadline, seen
            time.sleep(0.1)

    def look(self) -> Seen:
        """Its type, state, and members: name, protocol, partitions."""
        listed = self._client.ask(
            ListGroupsRequest(states_filter=[], types_filter=[]), ListGroupsResponse, 5
        )
        for group in listed.groups:
            if group.group_id == GROUP:
                assert group.protocol_type == "consumer"
                described = self._consumer if group.group_type == "consumer" else self._classic
                return group.group_type, *described()
        return "none", "none", []

    def _consumer(self) -> Seen:
        request = ConsumerGroupDescribeRequest(
            group_ids=[GROUP], include_authorized_operations=False
        )
        [group] = self._client.ask(request, ConsumerGroupDescribeResponse, 1).groups
        return group.group_state, sorted(
            (
                member.client_id,
                "consumer" if member.member_type else "classic",
                [one for topic in member.assignment.topic_partitions for one in topic.partitions],
            )
            for member in group.members
        )

    def _classic(self) -> Seen:
        [group] = self._client.ask(
            DescribeGroupsRequest(groups=[GROUP]), DescribeGroupsResponse, 6
        ).groups
        return group.group_state, sorted(
            (member.client_id, "classic", _partitions(member.member_assignment))
            for member in group.members
        )

    def whole(self) -> Any:
        """All that ConsumerGroupDescribe says, members by name, once the group is loaded."""
        request = ConsumerGroupDescribeRequest(
            group_ids=[GROUP], include_authorized_operations=False
        )
        deadline = time.monotonic() + LIMIT_SECONDS
        while True:
            [group] = self._client.ask(request, ConsumerGroupDescribeResponse, 1).groups
            if group.error_code not in NOT_YET:
                assert group.error_code == ErrorCode.NONE, (self._broker, group)
                group.members.sort(key=lambda member: member.client_id)
                return group
            assert time.monotonic() < deadline, group
            time.sleep(0.1)


def _names(members: Sequence[Any]) -> list[str]:
    return sorted(member[0] for member in members)


def _partitions(assignment: bytes) -> list[int]:
    if not assignment:
        return []
    read = decode_versioned(ConsumerProtocolAssignment, assignment)
    return [one for topic in read.assigned_partitions for one in topic.partitions]


def join(members: JavaMembers, name: str, protocol: str, instance: str = "") -> None:
    words = {"topics": TOPIC, "group_protocol": protocol}
    if protocol == "classic":
        # Nobody may time out while a slow broker stops.
        words |= {"heartbeat_interval_ms": "300", "session_timeout_ms": "45000"}
    if instance:
        words["group_instance_id"] = instance
    members.join(name, GROUP, **words)


def script(members: JavaMembers, looker: Looker) -> Iterator[Seen]:
    """Two classic consumers are replaced one by one, new ones come back, and it begins again."""
    join(members, "a", "classic")
    join(members, "b", "classic")
    yield looker.settled("a", "b")
    join(members, "c", "consumer")
    yield looker.settled("a", "b", "c")
    members.commit("a", 1)
    members.commit("c", 1)
    members.close("a", stays=False)
    yield looker.settled("b", "c")
    members.close("b", stays=False)
    yield looker.settled("c")
    join(members, "d", "classic")
    yield looker.settled("c", "d")
    members.close("c", stays=False)
    yield looker.settled("d")
    members.commit("d", 2)
    join(members, "e", "consumer", instance="place")
    yield looker.settled("d", "e")
    members.close("e", stays=True)
    join(members, "f", "classic", instance="place")
    yield looker.settled("d", "f")
    members.commit("f", 3)
    members.close("d", stays=False)
    join(members, "g", "consumer")
    yield looker.settled("f", "g")


def test_a_group_moves_alike_on_both_brokers_and_the_other_one_serves_what_is_left(
    tmp_path: Path,
) -> None:
    seen = {}
    for first, second in (("kafka", "odradek"), ("odradek", "kafka")):
        shared = SharedDirectory(tmp_path / first, **QUICK)
        with shared.served_by(first, killed=False) as broker, Looker(broker) as looker:
            create_topics(broker)
            with JavaMembers(broker.bootstrap) as members:
                seen[first] = list(script(members, looker))
                left = looker.whole()
        with shared.served_by(second, killed=False) as broker, Looker(broker) as looker:
            assert looker.whole() == left
    assert seen["odradek"] == seen["kafka"]
    assert [kind for kind, _, _ in seen["kafka"]] == [
        *("classic", "consumer", "consumer", "consumer", "consumer"),
        *("classic", "consumer", "classic", "consumer"),
    ]
