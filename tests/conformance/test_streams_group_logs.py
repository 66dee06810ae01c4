"""Streams groups go from Apache Kafka to odradek and back, in the log that the other wrote."""

from pathlib import Path
from typing import Any

import pytest

from odradek.protocol.messages.streams_group_describe import StreamsGroupDescribeRequest
from odradek.protocol.messages.streams_group_heartbeat import StreamsGroupHeartbeatRequest
from tests.conformance.conversation import Conversation, advertised_versions
from tests.conformance.exchange.shared_directory import SharedDirectory
from tests.support.broker_process import BrokerProcess
from tests.support.java_tools import why_no_java
from tests.support.lengths import by_length
from tests.support.streams_members import subtopology, task_list, topology

pytestmark = [pytest.mark.java, pytest.mark.slow]

GROUP, TOPIC = "streams-moved", "moved"
SETTINGS = {
    "group.streams.assignment.interval.ms": "0",
    "group.streams.initial.rebalance.delay.ms": "0",
}


@pytest.mark.parametrize(
    ("first", "second"),
    by_length([("odradek", "kafka")], [("kafka", "odradek"), ("odradek", "kafka")]),
)
def test_streams_groups_are_served_as_the_other_broker_served_them(
    tmp_path: Path, first: str, second: str
) -> None:
    reason = why_no_java()
    if reason:
        pytest.skip(reason)
    shared = SharedDirectory(tmp_path, **SETTINGS)
    with shared.served_by(first, killed=False) as broker:
        left = make_group(broker)
    with shared.served_by(second, killed=False) as broker:
        talk = Conversation(broker.port, advertised_versions(broker.port))
        talk.wait_for_coordinator(GROUP)
        assert described(talk) == left
        for member, owned in (("one", [0, 1]), ("two", [2, 3])):
            answer = beat(talk, member, 3, owned)
            assert (answer.error_code, answer.member_epoch) == (0, 3), answer
        talk.close()


def make_group(broker: BrokerProcess) -> Any:
    """A stable group of two members, each a process with two tasks; returns its description."""
    talk = Conversation(broker.port, advertised_versions(broker.port))
    talk.create_topic(TOPIC, 4)
    talk.wait_for_coordinator(GROUP)
    for member in ("one", "two"):
        answer = beat(
            talk,
            member,
            0,
            [],
            topology=topology(subtopology("0", TOPIC)),
            rebalance_timeout_ms=60_000,
            process_id=member,
            client_tags=[],
        )
        assert answer.error_code == 0, answer
    beat(talk, "one", 2, [0, 1, 2, 3])
    beat(talk, "one", 2, [0, 1])
    beat(talk, "two", 3, [])
    found = described(talk)
    assert found.group_state == "Stable", found
    talk.close()
    return found


def beat(talk: Conversation, member: str, epoch: int, owned: list[int], **words: Any) -> Any:
    request = StreamsGroupHeartbeatRequest(
        group_id=GROUP,
        member_id=member,
        member_epoch=epoch,
        endpoint_information_epoch=0,
        active_tasks=task_list({"0": owned} if owned else {}),
        standby_tasks=[],
        warmup_tasks=[],
        **words,
    )
    return talk.silently(request, 0)


def described(talk: Conversation) -> Any:
    request = StreamsGroupDescribeRequest(group_ids=[GROUP], include_authorized_operations=False)
    [group] = talk.silently(request, 0).groups
    group.members.sort(key=lambda member: member.member_id)
    return group
