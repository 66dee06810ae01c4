"""Share and streams groups that Apache Kafka wrote: what each API of groups says of them.

Kafka makes the groups, whose members leave, and stops. Its directory is copied; Kafka itself is
asked on one copy, odradek on the other. A streams group is described by its own API, too, and takes
members again; the APIs of share groups are another matter.
"""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from odradek.protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from odradek.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from odradek.protocol.messages.delete_groups import DeleteGroupsRequest
from odradek.protocol.messages.describe_groups import DescribeGroupsRequest
from odradek.protocol.messages.heartbeat import HeartbeatRequest
from odradek.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from odradek.protocol.messages.leave_group import LeaveGroupMemberIdentity, LeaveGroupRequest
from odradek.protocol.messages.list_groups import ListGroupsRequest
from odradek.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from odradek.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from odradek.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
)
from odradek.protocol.messages.streams_group_describe import StreamsGroupDescribeRequest
from odradek.protocol.messages.streams_group_heartbeat import StreamsGroupHeartbeatRequest
from odradek.protocol.messages.sync_group import SyncGroupRequest
from odradek.protocol.schema import Message
from tests.conformance.conversation import Conversation, Versions, advertised_versions
from tests.conformance.exchange.first_turn import share_group, streams_group
from tests.conformance.transcript import Transcript, differences
from tests.conformance.wire_groups import commit
from tests.support.broker_process import ApacheKafkaProcess, BrokerProcess
from tests.support.lengths import only_long
from tests.support.streams_members import subtopology, topology

pytestmark = [
    pytest.mark.slow,
    pytest.mark.java,
    only_long("they are told of in coordinator/test_groups_of_other_types.py"),
]

TOPIC, MISSING = "of-others", "of-nobody"
SHARE = ("share-reads", "share-waits")  # the second has no partitions: its topic never came
STREAMS = ("streams-commits", "streams-taken", "streams-new", "streams-left")
SIMPLE, NEVER = "simple-beside", "never"
GROUPS = (*SHARE, *STREAMS, SIMPLE, NEVER)


def make_groups(kafka: BrokerProcess) -> Versions:
    """A group of each kind without members; returns what Kafka speaks."""
    versions = advertised_versions(kafka.port)
    talk = Conversation(kafka.port, versions)
    talk.create_topic(TOPIC, 1)
    share_group(talk.client, SHARE[0], TOPIC)
    share_group(talk.client, SHARE[1], MISSING, until_assigned=False)
    for group in STREAMS:
        streams_group(talk.client, group, TOPIC)
    for group in (STREAMS[0], STREAMS[1], SIMPLE):
        commit(talk.client, group, TOPIC, {0: 3})
    talk.close()
    return versions


def ask_of_all(talk: Conversation) -> None:
    """Every API that names groups, of every group: first what changes nothing."""
    for group in GROUPS:
        talk.wait_for_coordinator(group)
    for group in GROUPS:
        for request, version in (*looks(group), *members_calls(group)):
            talk.ask(request, version)
    lists(talk)
    for group in GROUPS:
        for request, version in changes(group):
            talk.ask(request, version)
    lists(talk)
    for group in GROUPS:
        for request, version in looks(group):
            talk.ask(request, version)
    for epoch in (0, 4, 9):
        talk.ask(streams_beat(STREAMS[3], epoch), 0)
    for request, version in looks(STREAMS[3]):
        talk.ask(request, version)
    for group in GROUPS[1:]:  # Kafka deletes the first, too; odradek keeps it, see OtherGroup
        talk.ask(DeleteGroupsRequest(groups_names=[group]), 2)
    lists(talk)


def looks(group: str) -> Iterator[tuple[Message, int]]:
    for version in (5, 6):
        yield DescribeGroupsRequest(groups=[group]), version
    yield ConsumerGroupDescribeRequest(group_ids=[group], include_authorized_operations=False), 1
    yield StreamsGroupDescribeRequest(group_ids=[group], include_authorized_operations=False), 0
    place = OffsetFetchRequestTopic(name=TOPIC, partition_indexes=[0, 1])
    for member, epoch in ((None, -1), ("nobody", 3), ("", -1)):
        for topics in ([place], None):
            wanted = OffsetFetchRequestGroup(
                group_id=group, member_id=member, member_epoch=epoch, topics=topics
            )
            yield OffsetFetchRequest(groups=[wanted]), 9


def members_calls(group: str) -> Iterator[tuple[Message, int]]:
    yield HeartbeatRequest(group_id=group, generation_id=1, member_id="nobody"), 4
    nobody = LeaveGroupMemberIdentity(member_id="nobody")
    for version, request in (
        (2, LeaveGroupRequest(group_id=group, member_id="nobody")),
        (5, LeaveGroupRequest(group_id=group, members=[nobody])),
    ):
        yield request, version
    yield (
        SyncGroupRequest(
            group_id=group,
            generation_id=1,
            member_id="nobody",
            protocol_type="consumer",
            protocol_name="range",
            assignments=[],
        ),
        5,
    )
    for epoch in (1, -1):
        yield beat(group, epoch), 1
    if group in (*SHARE, *STREAMS):
        yield beat(group, 0), 1
    if group not in STREAMS:  # Kafka forgets the group, until it starts again
        yield join(group, "nobody"), 5


def changes(group: str) -> Iterator[tuple[Message, int]]:
    for version, member, epoch in ((8, "nobody", 5), (9, "nobody", 5), (9, "", 2)):
        yield offsets(group, member, epoch), version
    if group != NEVER:
        yield offsets(group, "", -1), 8
        yield offsets(group, "", -1), 9
    if group != STREAMS[0]:
        place = OffsetDeleteRequestPartition(partition_index=0)
        topic = OffsetDeleteRequestTopic(name=TOPIC, partitions=[place])
        yield OffsetDeleteRequest(group_id=group, topics=[topic]), 0
    whole = OffsetFetchRequestGroup(group_id=group, topics=None)
    yield OffsetFetchRequest(groups=[whole]), 8
    if group in (*SHARE, STREAMS[1], STREAMS[2]):
        yield join(group, ""), 5


def beat(group: str, epoch: int) -> ConsumerGroupHeartbeatRequest:
    return ConsumerGroupHeartbeatRequest(
        group_id=group,
        member_id="nobody",
        member_epoch=epoch,
        rebalance_timeout_ms=60_000 if epoch == 0 else -1,
        subscribed_topic_names=[TOPIC] if epoch == 0 else None,
        topic_partitions=[] if epoch == 0 else None,
    )


def streams_beat(group: str, epoch: int) -> StreamsGroupHeartbeatRequest:
    is_join = epoch == 0
    return StreamsGroupHeartbeatRequest(
        group_id=group,
        member_id="nobody",
        member_epoch=epoch,
        endpoint_information_epoch=0,
        rebalance_timeout_ms=60_000 if is_join else -1,
        topology=topology(subtopology("0", TOPIC)) if is_join else None,
        active_tasks=[] if is_join else None,
        standby_tasks=[] if is_join else None,
        warmup_tasks=[] if is_join else None,
        process_id="process" if is_join else None,
        client_tags=[] if is_join else None,
    )


def join(group: str, member: str) -> JoinGroupRequest:
    return JoinGroupRequest(
        group_id=group,
        session_timeout_ms=60_000,
        rebalance_timeout_ms=60_000,
        member_id=member,
        protocol_type="consumer",
        protocols=[JoinGroupRequestProtocol(name="range", metadata=b"\0" * 10)],
    )


def offsets(group: str, member: str, epoch: int) -> OffsetCommitRequest:
    places = [
        OffsetCommitRequestPartition(
            partition_index=0, committed_offset=7, committed_metadata=metadata
        )
        for metadata in ("", "words")
    ]
    return OffsetCommitRequest(
        group_id=group,
        generation_id_or_member_epoch=epoch,
        member_id=member,
        topics=[OffsetCommitRequestTopic(name=TOPIC, partitions=places)],
    )


def lists(talk: Conversation) -> None:
    for kinds in ([], ["share"], ["Streams"], ["classic", "share"]):
        for states in ([], ["empty"], ["Stable", "NotReady"]):
            request = ListGroupsRequest(types_filter=kinds, states_filter=states)
            talk.ask(request, 5, in_order)
    talk.ask(ListGroupsRequest(), 0, in_order)


def in_order(answer: Any) -> object:
    groups = sorted(answer.groups, key=lambda group: group.group_id)
    return answer.error_code, [
        (one.group_id, one.protocol_type, one.group_state, one.group_type) for one in groups
    ]


def told_by(broker: BrokerProcess, versions: Versions) -> Transcript:
    talk = Conversation(broker.port, versions)
    try:
        broker.start()
        ask_of_all(talk)
    finally:
        talk.close()
        broker.stop()
    return talk.transcript


def test_groups_of_other_types_are_told_of_as_kafka_does(tmp_path: Path) -> None:
    kafka = ApacheKafkaProcess(tmp_path / "kafka")
    try:
        versions = make_groups(kafka.start())
    finally:
        kafka.stop()
    odradek = BrokerProcess(tmp_path / "odradek", {"node.id": "0"})
    shutil.copytree(kafka.data, odradek.data)
    expected, found = told_by(kafka, versions), told_by(odradek, versions)
    assert len(expected.lines) == len(found.lines)
    differing = [
        f"{title}\n    {line}"
        for (title, theirs), (_, ours) in zip(expected.lines, found.lines, strict=True)
        for line in differences(theirs, ours)
    ]
    assert not differing, "\n".join(differing)
