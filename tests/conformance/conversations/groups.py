"""Groups of one member, and offsets without any."""

from collections.abc import Sequence
from typing import Any

from odradek.protocol.messages.delete_groups import DeleteGroupsRequest
from odradek.protocol.messages.describe_groups import DescribeGroupsRequest
from odradek.protocol.messages.find_coordinator import FindCoordinatorRequest
from odradek.protocol.messages.heartbeat import HeartbeatRequest
from odradek.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from odradek.protocol.messages.leave_group import LeaveGroupMemberIdentity, LeaveGroupRequest
from odradek.protocol.messages.list_groups import ListGroupsRequest
from odradek.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from odradek.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
)
from odradek.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from odradek.protocol.primitives import ZERO_UUID
from tests.conformance.conversation import Conversation, unknown_id

# A subscription to no topics, version 0, as the consumer protocol writes it.
SUBSCRIPTION = b"\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"
MEMBER_ID_REQUIRED_SINCE = 4
STATIC_MEMBERS_SINCE = 5


def coordinators_are_found(talk: Conversation) -> None:
    talk.wait_for_coordinator("found")
    for version in talk.versions_of(FindCoordinatorRequest):
        if version < 4:
            for key in ("found", ""):
                talk.ask(FindCoordinatorRequest(key=key), version)
            if version >= 1:
                talk.ask(FindCoordinatorRequest(key="found", key_type=7), version)
                talk.ask(FindCoordinatorRequest(key="found", key_type=-1), version)
        else:
            keys = ["found", "other", "", "found"]
            talk.ask(FindCoordinatorRequest(coordinator_keys=keys), version)
            talk.ask(FindCoordinatorRequest(coordinator_keys=[]), version)
            talk.ask(FindCoordinatorRequest(coordinator_keys=["a", "b"], key_type=7), version)


def _join(
    group: str,
    member: str = "",
    *,
    instance: str | None = None,
    session_ms: int = 10_000,
    rebalance_ms: int = 10_000,
    protocol_type: str = "consumer",
    protocols: Sequence[str] = ("range",),
) -> JoinGroupRequest:
    return JoinGroupRequest(
        group_id=group,
        session_timeout_ms=session_ms,
        rebalance_timeout_ms=rebalance_ms,
        member_id=member,
        group_instance_id=instance,
        protocol_type=protocol_type,
        protocols=[
            JoinGroupRequestProtocol(name=name, metadata=SUBSCRIPTION) for name in protocols
        ],
        reason=None,
    )


def _sync(
    group: str,
    generation: int,
    member: str,
    assignments: Sequence[tuple[str, bytes]] = (),
    *,
    instance: str | None = None,
    protocol: tuple[str | None, str | None] = ("consumer", "range"),
) -> SyncGroupRequest:
    return SyncGroupRequest(
        group_id=group,
        generation_id=generation,
        member_id=member,
        group_instance_id=instance,
        protocol_type=protocol[0],
        protocol_name=protocol[1],
        assignments=[
            SyncGroupRequestAssignment(member_id=one, assignment=what) for one, what in assignments
        ],
    )


def _beat(
    group: str, generation: int, member: str, instance: str | None = None
) -> HeartbeatRequest:
    return HeartbeatRequest(
        group_id=group, generation_id=generation, member_id=member, group_instance_id=instance
    )


def _join_for_real(
    talk: Conversation, group: str, version: int, instance: str | None = None
) -> str:
    """Join, a second time where a member id must be fetched first; the member's id."""
    answer = talk.ask(_join(group, instance=instance), version)
    if version >= MEMBER_ID_REQUIRED_SINCE and instance is None:
        answer = talk.ask(_join(group, answer.member_id), version)
    member: str = answer.member_id
    return member


def a_member_lives_in_every_version(talk: Conversation) -> None:
    talk.wait_for_coordinator("lived")
    for version in talk.versions_of(JoinGroupRequest):
        group = f"lived-{version}"
        talk.wait_for_coordinator(group)
        member = _join_for_real(talk, group, version)
        sync_version = min(version, talk.versions_of(SyncGroupRequest)[-1])
        beat_version = min(version, talk.versions_of(HeartbeatRequest)[-1])
        talk.ask(_beat(group, 1, member), beat_version)
        talk.ask(_sync(group, 1, member, [(member, b"mine")]), sync_version)
        talk.ask(_sync(group, 1, member), sync_version)
        talk.ask(_beat(group, 1, member), beat_version)
        for described in talk.versions_of(DescribeGroupsRequest):
            talk.ask(DescribeGroupsRequest(groups=[group]), described)
        talk.ask(_join(group, member), version)
        talk.ask(_sync(group, 2, member, [(member, b"mine again")]), sync_version)
        leave_version = min(version, talk.versions_of(LeaveGroupRequest)[-1])
        if leave_version < 3:
            talk.ask(LeaveGroupRequest(group_id=group, member_id=member), leave_version)
            talk.ask(LeaveGroupRequest(group_id=group, member_id=member), leave_version)
        else:
            leaver = LeaveGroupMemberIdentity(member_id=member)
            talk.ask(LeaveGroupRequest(group_id=group, members=[leaver]), leave_version)
            talk.ask(LeaveGroupRequest(group_id=group, members=[leaver]), leave_version)
        talk.ask(DescribeGroupsRequest(groups=[group], include_authorized_operations=True), 5)


def joins_are_refused(talk: Conversation) -> None:
    talk.wait_for_coordinator("joins")
    for version in talk.versions_of(JoinGroupRequest):
        talk.ask(_join(""), version)
        talk.ask(_join("joins", "who-is-this"), version)
        talk.ask(_join("joins", session_ms=1), version)
        talk.ask(_join("joins", session_ms=2_000_000_000), version)
        talk.ask(_join("joins", protocols=()), version)
        talk.ask(_join("joins", protocol_type=""), version)
    group = "joined"
    talk.wait_for_coordinator(group)
    member = _join_for_real(talk, group, 5)
    talk.ask(_sync(group, 1, member, [(member, b"x")]), 3)
    talk.ask(_join(group, protocol_type="connect"), 5)
    talk.ask(_join(group, protocols=("roundrobin",)), 5)
    talk.ask(_join(group, member, protocol_type="connect"), 5)
    talk.ask(_beat(group, 1, member), 3)


def strangers_are_told(talk: Conversation) -> None:
    group = "strange"
    talk.wait_for_coordinator(group)
    for version in talk.versions_of(HeartbeatRequest):
        talk.ask(_beat("strange-never", 1, "x"), version)
        talk.ask(_beat("", 1, "x"), version)
    for version in talk.versions_of(SyncGroupRequest):
        talk.ask(_sync("strange-never", 1, "x"), version)
        talk.ask(_sync("", 1, "x"), version)
    member = _join_for_real(talk, group, 5)
    talk.ask(_sync(group, 0, member), 5)
    talk.ask(_sync(group, 1, "x"), 5)
    talk.ask(_sync(group, 1, member, protocol=("connect", "range")), 5)
    talk.ask(_sync(group, 1, member, protocol=("consumer", "roundrobin")), 5)
    talk.ask(_sync(group, 1, member, protocol=(None, None)), 5)
    talk.ask(_sync(group, 1, member, [(member, b"x")]), 5)
    talk.ask(_sync(group, 1, member, protocol=("consumer", "roundrobin")), 5)
    for generation in (0, 2, -1):
        talk.ask(_beat(group, generation, member), 4)
        talk.ask(_sync(group, generation, member), 5)
    talk.ask(_beat(group, 1, "x"), 4)
    talk.ask(_beat(group, 1, member, "unknown-instance"), 4)
    for version in talk.versions_of(LeaveGroupRequest):
        for name in (group, "strange-never", ""):
            stranger = LeaveGroupMemberIdentity(member_id="x")
            request = (
                LeaveGroupRequest(group_id=name, member_id="x")
                if version < 3
                else LeaveGroupRequest(group_id=name, members=[stranger])
            )
            talk.ask(request, version)


def a_static_member_keeps_its_place(talk: Conversation) -> None:
    group = "static-place"
    talk.wait_for_coordinator(group)
    first = _join_for_real(talk, group, 5, "instance-1")
    talk.ask(_sync(group, 1, first, [(first, b"mine")], instance="instance-1"), 3)
    again = talk.ask(_join(group, instance="instance-1"), 9)
    talk.ask(_sync(group, 1, again.member_id, instance="instance-1"), 5)
    talk.ask(_beat(group, 1, first, "instance-1"), 4)
    talk.ask(_beat(group, 1, again.member_id, "instance-1"), 4)
    talk.ask(_join(group, first, instance="instance-1"), 9)
    talk.ask(_sync(group, 1, first, instance="instance-1"), 5)
    talk.ask(DescribeGroupsRequest(groups=[group]), 5)
    commit = _commit("static-topic-not-there", group=group, member=first, generation=1)
    talk.ask(commit, 6)
    leavers = [
        LeaveGroupMemberIdentity(member_id="", group_instance_id="instance-1"),
        LeaveGroupMemberIdentity(member_id="", group_instance_id="instance-2"),
        LeaveGroupMemberIdentity(member_id="x", group_instance_id="instance-1"),
    ]
    talk.ask(LeaveGroupRequest(group_id=group, members=leavers[1:]), 5)
    talk.ask(LeaveGroupRequest(group_id=group, members=leavers), 5)
    talk.ask(DescribeGroupsRequest(groups=[group]), 5)


def a_static_leader_comes_back_in_every_version(talk: Conversation) -> None:
    for version in range(STATIC_MEMBERS_SINCE, talk.versions_of(JoinGroupRequest)[-1] + 1):
        group = f"static-leader-{version}"
        talk.wait_for_coordinator(group)
        first = _join_for_real(talk, group, version, "one")
        talk.ask(_join(group, instance="one"), version)  # before it has synced: a new generation
        again = talk.ask(_join(group, instance="one"), version).member_id
        talk.ask(_sync(group, 3, again, [(again, b"mine")], instance="one"), 5)
        other = _join(group, instance="one", session_ms=20_000, rebalance_ms=30_000)
        last = talk.ask(other, version).member_id
        talk.ask(_beat(group, 3, last, "one"), 4)
        talk.ask(_sync(group, 3, last, instance="one"), 5)
        talk.ask(_join(group, first, instance="one"), version)
        talk.ask(_join(group, last), version)
        talk.ask(DescribeGroupsRequest(groups=[group]), 5)


def groups_are_listed_described_and_deleted(talk: Conversation) -> None:
    def only_mine(answer: Any) -> object:
        groups = answer.groups
        return sorted(
            (one.group_id, one.protocol_type, one.group_state, one.group_type)
            for one in groups
            if one.group_id.startswith("listed")
        )

    talk.wait_for_coordinator("listed")
    talk.create_topic("topic-of-listed")
    member = _join_for_real(talk, "listed", 5)
    talk.ask(_sync("listed", 1, member, [(member, b"x")]), 3)
    talk.ask(_commit("topic-of-listed", group="listed-offsets"), 8)
    for version in talk.versions_of(ListGroupsRequest):
        talk.ask(ListGroupsRequest(), version, only_mine)
        if version >= 4:
            for states in (["Stable"], ["Empty"], ["stable"], ["Nonsense"], ["Dead", "Empty"]):
                talk.ask(ListGroupsRequest(states_filter=states), version, only_mine)
        if version >= 5:
            for types in (["classic"], ["Classic"], ["consumer"], ["nonsense"]):
                talk.ask(ListGroupsRequest(types_filter=types), version, only_mine)
    names = ["listed", "listed-offsets", "listed-never", ""]
    for version in talk.versions_of(DescribeGroupsRequest):
        request = DescribeGroupsRequest(groups=names, include_authorized_operations=version >= 3)
        talk.ask(request, version)
    talk.ask(DescribeGroupsRequest(groups=[]), 5)
    for version in talk.versions_of(DeleteGroupsRequest):
        talk.ask(_commit("topic-of-listed", group="listed-offsets"), 8)
        talk.ask(DeleteGroupsRequest(groups_names=names), version)
        talk.ask(DeleteGroupsRequest(groups_names=[]), version)
        talk.ask(DeleteGroupsRequest(groups_names=["listed", "listed"]), version)


def _commit(
    topic: str,
    *,
    group: str,
    member: str = "",
    generation: int = -1,
    instance: str | None = None,
    topic_id: bytes = ZERO_UUID,
    offsets: Sequence[tuple[int, int, int, str | None]] = ((0, 7, -1, "note"),),
) -> OffsetCommitRequest:
    """`offsets`: partition, offset, leader epoch, metadata."""
    return OffsetCommitRequest(
        group_id=group,
        generation_id_or_member_epoch=generation,
        member_id=member,
        group_instance_id=instance,
        topics=[
            OffsetCommitRequestTopic(
                name=topic,
                topic_id=topic_id,
                partitions=[
                    OffsetCommitRequestPartition(
                        partition_index=partition,
                        committed_offset=offset,
                        committed_leader_epoch=epoch,
                        committed_metadata=metadata,
                    )
                    for partition, offset, epoch, metadata in offsets
                ],
            )
        ],
    )


def _fetch(
    talk: Conversation,
    version: int,
    group: str,
    topics: Sequence[tuple[str, bytes, list[int]]] | None,
    *,
    member: str | None = None,
    epoch: int = -1,
    stable: bool = False,
) -> None:
    wanted = (
        None
        if topics is None
        else [
            OffsetFetchRequestTopic(name=name, topic_id=topic_id, partition_indexes=indexes)
            for name, topic_id, indexes in topics
        ]
    )
    if version < 8:
        request = OffsetFetchRequest(group_id=group, topics=wanted, require_stable=stable)
    else:
        one = OffsetFetchRequestGroup(
            group_id=group, member_id=member, member_epoch=epoch, topics=wanted
        )
        request = OffsetFetchRequest(groups=[one], require_stable=stable)
    talk.ask(request, version)


def offsets_are_committed_and_fetched(talk: Conversation) -> None:
    topic = talk.create_topic("committed", 3)
    talk.wait_for_coordinator("committer")
    for version in talk.versions_of(OffsetCommitRequest):
        group = f"committer-{version}"
        talk.wait_for_coordinator(group)
        offsets = [(0, 5 + version, -1, "note"), (1, 0, 3, ""), (2, 1 << 40, 0, None)]
        talk.ask(
            _commit("committed", group=group, topic_id=topic.topic_id, offsets=offsets), version
        )
        for fetched in talk.versions_of(OffsetFetchRequest):
            _fetch(talk, fetched, group, [("committed", topic.topic_id, [2, 0, 1, 9])])
            if fetched >= 2:
                _fetch(talk, fetched, group, None)
            if fetched >= 7:
                _fetch(talk, fetched, group, [("committed", topic.topic_id, [0])], stable=True)
    for fetched in talk.versions_of(OffsetFetchRequest):
        _fetch(talk, fetched, "committer-never", [("committed", topic.topic_id, [0])])
        _fetch(talk, fetched, "", [("committed", topic.topic_id, [0])])
        _fetch(talk, fetched, "committer-5", [("committed-not", unknown_id(), [0])])
        _fetch(talk, fetched, "committer-5", [])


def commits_are_refused(talk: Conversation) -> None:
    topic = talk.create_topic("refused-commits", 2)
    group = "refused-committer"
    talk.wait_for_coordinator(group)
    for version in talk.versions_of(OffsetCommitRequest):
        here = {"topic_id": topic.topic_id}
        talk.ask(_commit("refused-commits", group="", **here), version)
        talk.ask(_commit("refused-not-there", group=group, topic_id=unknown_id()), version)
        talk.ask(_commit("refused-commits", group=group, offsets=[(9, 1, -1, "")], **here), version)
        talk.ask(
            _commit("refused-commits", group=group, offsets=[(0, -1, -1, "")], **here), version
        )
        long = [(0, 1, -1, "x" * 5000), (1, 1, -1, "x" * 4096)]
        talk.ask(_commit("refused-commits", group=group, offsets=long, **here), version)
        talk.ask(_commit("refused-commits", group=group, generation=3, **here), version)
        talk.ask(_commit("refused-commits", group=group, member="x", **here), version)
        talk.ask(_commit("refused-commits", group=group, member="x", generation=3, **here), version)
        empty = OffsetCommitRequest(group_id=group, member_id="", topics=[])
        talk.ask(empty, version)
    member = _join_for_real(talk, group + "-2", 5)
    group += "-2"
    talk.wait_for_coordinator(group)
    talk.ask(_commit("refused-commits", group=group, member=member, generation=1), 8)
    talk.ask(_sync(group, 1, member, [(member, b"x")]), 3)
    talk.ask(_commit("refused-commits", group=group, member=member, generation=1), 8)
    talk.ask(_commit("refused-commits", group=group, member=member, generation=2), 8)
    talk.ask(_commit("refused-commits", group=group, member="x", generation=1), 8)
    talk.ask(_commit("refused-commits", group=group, generation=1), 8)
    talk.ask(_commit("refused-commits", group=group), 8)
    talk.ask(
        _commit("refused-commits", group=group, member=member, generation=1, instance="static"), 8
    )
