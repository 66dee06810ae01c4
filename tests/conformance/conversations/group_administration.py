"""Groups and offsets as an administrator sees them: lists, filters, deletions, many at once."""

from collections.abc import Sequence
from typing import Any

from msgspec.structs import replace

from odradek.protocol.messages.delete_groups import DeleteGroupsRequest
from odradek.protocol.messages.delete_topics import DeleteTopicsRequest
from odradek.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
)
from odradek.protocol.messages.describe_groups import DescribeGroupsRequest
from odradek.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from odradek.protocol.messages.leave_group import LeaveGroupMemberIdentity, LeaveGroupRequest
from odradek.protocol.messages.list_groups import ListGroupsRequest
from odradek.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
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
from odradek.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from odradek.protocol.primitives import ZERO_UUID
from odradek.protocol.records.consumer_protocol import (
    ConsumerProtocolSubscription,
    encode_versioned,
)
from tests.conformance.conversation import Conversation, patiently, unknown_id

COMMIT, JOIN, SYNC, FETCH = 8, 5, 5, 8
BY_ID = 10
OFFSETS_TOPIC = "__consumer_offsets"


def _joined(talk: Conversation, group: str, *topics: str, kind: str = "consumer") -> str:
    """A group of one member that has joined, and has not synchronised yet; the member's id."""
    talk.wait_for_coordinator(group)
    metadata = encode_versioned(ConsumerProtocolSubscription(topics=list(topics)), 0)
    member = ""
    while True:
        request = JoinGroupRequest(
            group_id=group,
            session_timeout_ms=60_000,
            rebalance_timeout_ms=60_000,
            member_id=member,
            protocol_type=kind,
            protocols=[JoinGroupRequestProtocol(name="range", metadata=metadata)],
        )
        answer = talk.silently(request, JOIN)
        member = answer.member_id
        if answer.error_code == 0:
            return member


def _stable(talk: Conversation, group: str, *topics: str, kind: str = "consumer") -> str:
    """A stable group of one member."""
    member = _joined(talk, group, *topics, kind=kind)
    request = SyncGroupRequest(
        group_id=group,
        generation_id=1,
        member_id=member,
        protocol_type=kind,
        protocol_name="range",
        assignments=[SyncGroupRequestAssignment(member_id=member, assignment=b"x")],
    )
    assert talk.silently(request, SYNC).error_code == 0
    return member


def _leave(talk: Conversation, group: str, member: str) -> None:
    leaver = LeaveGroupMemberIdentity(member_id=member)
    talk.silently(LeaveGroupRequest(group_id=group, members=[leaver]), 5)


def _commit(
    talk: Conversation, group: str, *topics: str, member: str = "", generation: int = -1
) -> None:
    """Offset 5 in the first two partitions of each topic."""
    talk.wait_for_coordinator(group)
    places = [
        OffsetCommitRequestPartition(
            partition_index=index, committed_offset=5, committed_metadata="note"
        )
        for index in range(2)
    ]
    request = OffsetCommitRequest(
        group_id=group,
        generation_id_or_member_epoch=generation,
        member_id=member,
        topics=[OffsetCommitRequestTopic(name=name, partitions=places) for name in topics],
    )
    answer = talk.silently(request, COMMIT)
    assert all(one.error_code == 0 for topic in answer.topics for one in topic.partitions), answer


def _deletion(group: str, *places: tuple[str, Sequence[int]]) -> OffsetDeleteRequest:
    return OffsetDeleteRequest(
        group_id=group,
        topics=[
            OffsetDeleteRequestTopic(
                name=name,
                partitions=[OffsetDeleteRequestPartition(partition_index=one) for one in indexes],
            )
            for name, indexes in places
        ],
    )


def _look(talk: Conversation, *groups: str) -> None:
    """What the groups have committed."""
    wanted = [OffsetFetchRequestGroup(group_id=group, topics=None) for group in groups]
    talk.ask(OffsetFetchRequest(groups=wanted), FETCH)


# -- deleting --------------------------------------------------------------------------------------


def offsets_are_deleted(talk: Conversation) -> None:
    for name in ("deleted-a", "deleted-b"):
        talk.create_topic(name, 2)
    both = (("deleted-a", [0, 1]), ("deleted-b", [0, 1]))
    talk.wait_for_coordinator("deletes-never")
    talk.ask(_deletion("deletes-never", *both), 0)
    talk.ask(_deletion("deletes-never", ("deleted-not-there", [0])), 0)
    talk.ask(_deletion("deletes-never"), 0)
    talk.ask(_deletion("", *both), 0)
    _commit(talk, "deletes", "deleted-a", "deleted-b")
    talk.ask(_deletion("deletes"), 0)
    talk.ask(_deletion("deletes", ("deleted-a", []), ("deleted-not-there", [])), 0)
    talk.ask(_deletion("deletes", ("deleted-not-there", [0, 1]), ("deleted-a", [0, 7])), 0)
    talk.ask(_deletion("deletes", ("deleted-a", [0, 9])), 0)
    talk.ask(_deletion("deletes", ("deleted-b", [1]), ("deleted-not-there", [0])), 0)
    _look(talk, "deletes")
    talk.ask(_deletion("deletes", *both), 0)
    _look(talk, "deletes")
    talk.ask(DeleteGroupsRequest(groups_names=["deletes", "deletes", "deletes-never"]), 2)


def offsets_of_members_are_deleted(talk: Conversation) -> None:
    for name in ("consumed", "consumed-once"):
        talk.create_topic(name, 2)
    both = (("consumed", [0, 1]), ("consumed-once", [0]), ("consumed-not-there", [0]))
    _commit(talk, "consumes", "consumed", "consumed-once")
    member = _joined(talk, "consumes", "consumed")
    talk.ask(_deletion("consumes", *both), 0, title="while it completes a rebalance")
    _leave(talk, "consumes", member)
    _commit(talk, "consumes-stably", "consumed", "consumed-once")
    member = _stable(talk, "consumes-stably", "consumed")
    talk.ask(_deletion("consumes-stably", *both), 0, title="while it is stable")
    _leave(talk, "consumes-stably", member)
    talk.ask(_deletion("consumes-stably", *both), 0, title="after the last has left")
    _commit(talk, "connects", "consumed")
    member = _stable(talk, "connects", kind="connect")
    talk.ask(_deletion("connects", *both), 0, title="no consumers")
    _leave(talk, "connects", member)
    talk.ask(_deletion("connects", *both), 0, title="no consumers any more")
    _look(talk, "consumes", "consumes-stably", "connects")


def offsets_go_with_their_topic(talk: Conversation) -> None:
    talk.create_topic("goes", 2)
    talk.create_topic("stays", 2)
    _commit(talk, "outlives", "goes", "stays")
    talk.silently(DeleteTopicsRequest(topic_names=["goes"], timeout_ms=9_000), 5)
    request = OffsetFetchRequest(group_id="outlives", topics=None)
    patiently(lambda: len(talk.silently(request, 7).topics) == 1 or None)
    _look(talk, "outlives")
    talk.wait_until_gone("goes")
    talk.create_topic("goes", 2)
    _look(talk, "outlives")


def groups_are_deleted(talk: Conversation) -> None:
    talk.create_topic("deleted-with", 2)
    for version in talk.versions_of(DeleteGroupsRequest):
        _commit(talk, "goes-simple", "deleted-with")
        _leave(talk, "goes-left", _stable(talk, "goes-left"))
        stays = [_stable(talk, "stays-stable"), _joined(talk, "stays-syncing")]
        names = ["goes-simple", "goes-left", "stays-stable", "stays-syncing", "was-never", ""]
        talk.ask(DeleteGroupsRequest(groups_names=names), version)
        talk.ask(DeleteGroupsRequest(groups_names=["goes-simple", "goes-left"]), version)
        _look(talk, "goes-simple", "goes-left")
        for group, member in zip(names[2:4], stays, strict=True):
            _leave(talk, group, member)
        talk.ask(DeleteGroupsRequest(groups_names=names[2:4]), version)


# -- looking ---------------------------------------------------------------------------------------


def groups_are_filtered(talk: Conversation) -> None:
    def only_mine(answer: Any) -> object:
        return answer.error_code, sorted(
            (one.group_id, one.protocol_type, one.group_state, one.group_type)
            for one in answer.groups
            if one.group_id.startswith("filtered")
        )

    talk.create_topic("filtered", 2)
    _commit(talk, "filtered-simple", "filtered")
    _stable(talk, "filtered-stable")
    _joined(talk, "filtered-syncing")
    _stable(talk, "filtered-connect", kind="connect")
    _leave(talk, "filtered-left", _stable(talk, "filtered-left"))
    states = ["Stable", " stable ", "EMPTY", "completingrebalance", "PreparingRebalance", "Dead"]
    states += ["", "Assigning", "Reconciling", "NotReady", "unknown"]
    for state in states:
        talk.ask(ListGroupsRequest(states_filter=[state]), 4, only_mine)
    for kinds in (["CLASSIC"], [" classic"], ["consumer", "classic"], ["share"], ["unknown"], [""]):
        talk.ask(ListGroupsRequest(types_filter=kinds), 5, only_mine)
        talk.ask(ListGroupsRequest(types_filter=kinds, states_filter=["empty"]), 5, only_mine)
    names = ["simple", "stable", "syncing", "connect", "left", "never"]
    for version in talk.versions_of(DescribeGroupsRequest):
        groups = [f"filtered-{name}" for name in names]
        request = DescribeGroupsRequest(groups=groups, include_authorized_operations=version >= 3)
        # In one order, for members are named in the order in which they are met.
        talk.ask(request, version, lambda answer: sorted(answer.groups, key=lambda g: g.group_id))


def offsets_of_many_groups_are_fetched(talk: Conversation) -> None:
    ids = {name: talk.create_topic(name, 2).topic_id for name in ("many-a", "many-b")}
    _commit(talk, "many-1", "many-a")
    _commit(talk, "many-2", "many-a", "many-b")
    for version in talk.versions_of(OffsetFetchRequest):
        if version < 8:
            continue

        def wanted(*names: str, index: int = 0) -> list[OffsetFetchRequestTopic]:
            return [
                OffsetFetchRequestTopic(
                    name=name, topic_id=ids.get(name, ZERO_UUID), partition_indexes=[index, 5]
                )
                for name in names
            ]

        several = [
            OffsetFetchRequestGroup(group_id="many-1", topics=None),
            OffsetFetchRequestGroup(group_id="many-2", topics=wanted("many-b", "many-a")),
            OffsetFetchRequestGroup(group_id="many-never", topics=wanted("many-a")),
            OffsetFetchRequestGroup(group_id="many-never-2", topics=None),
            OffsetFetchRequestGroup(group_id="", topics=wanted("many-a")),
            OffsetFetchRequestGroup(group_id="many-2", topics=wanted("many-not", "many-a")),
            OffsetFetchRequestGroup(group_id="many-2", topics=[]),
        ]
        for stable in (False, True):
            talk.ask(OffsetFetchRequest(groups=several, require_stable=stable), version)
        talk.ask(OffsetFetchRequest(groups=[]), version)
        if version >= 9:
            told = [
                OffsetFetchRequestGroup(
                    group_id="many-1", member_id=member, member_epoch=epoch, topics=None
                )
                for member, epoch in (("", -1), ("nobody", 3), (None, 7))
            ]
            talk.ask(OffsetFetchRequest(groups=told), version)


def offsets_are_committed_by_topic_id(talk: Conversation) -> None:
    first = talk.create_topic("by-id-a", 2).topic_id
    second = talk.create_topic("by-id-b", 2).topic_id
    talk.wait_for_coordinator("by-id")

    def places(*indexes: int) -> list[OffsetCommitRequestPartition]:
        return [
            OffsetCommitRequestPartition(
                partition_index=index,
                committed_offset=index + 10,
                committed_leader_epoch=index,
                committed_metadata="x" * 4_096 if index else "",
            )
            for index in indexes
        ]

    for ids in ([first, second], [unknown_id(), first], [first, first], [ZERO_UUID], []):
        topics = [OffsetCommitRequestTopic(topic_id=one, partitions=places(0, 1, 8)) for one in ids]
        talk.ask(OffsetCommitRequest(group_id="by-id", topics=topics), BY_ID, title="by id")
    for odd in (
        {"partition_index": -1},
        {"committed_offset": -1},
        {"committed_offset": -9},
        {"committed_leader_epoch": -1},
        {"committed_metadata": None},
        {"committed_metadata": "x" * 4_097},
    ):
        partitions = [replace(places(0)[0], **odd), *places(1, 1)]
        topics = [
            OffsetCommitRequestTopic(name="by-id-a", topic_id=first, partitions=partitions),
            OffsetCommitRequestTopic(name="by-id-a", topic_id=first, partitions=[]),
        ]
        for version in (BY_ID - 1, BY_ID):
            request = OffsetCommitRequest(group_id="by-id", topics=topics)
            talk.ask(request, version, title=f"odd {odd} in v{version}"[:60])
    named = [OffsetCommitRequestTopic(name="by-id-a", topic_id=first, partitions=places(0))]
    for change in (
        {"group_id": ""},
        {"member_id": "m"},
        {"member_id": "m", "generation_id_or_member_epoch": 3},
        {"generation_id_or_member_epoch": 3},
        {"group_instance_id": "i"},
        {"retention_time_ms": -1},
    ):
        request = OffsetCommitRequest(**{"group_id": "by-id", "topics": named, **change})
        for version in (BY_ID - 1, BY_ID):
            talk.ask(request, version, title=f"{sorted(change)} in v{version}")
    everything = OffsetFetchRequestGroup(group_id="by-id", topics=None)
    for version in (FETCH, BY_ID):
        talk.ask(OffsetFetchRequest(groups=[everything]), version)
    for ids, indexes in (
        ([first, second], [0, 1, 8]),
        ([first, first], [0]),
        ([first], [1, 1, -1]),
        ([first], []),
        ([unknown_id(), first], [0]),
        ([ZERO_UUID, first], [0]),
    ):
        asked = [
            OffsetFetchRequestTopic(name="by-id-b", topic_id=one, partition_indexes=indexes)
            for one in ids
        ]
        for group in ("by-id", "by-id-never", ""):
            wanted = OffsetFetchRequestGroup(group_id=group, topics=asked)
            for version in (BY_ID - 1, BY_ID):
                request = OffsetFetchRequest(groups=[wanted])
                talk.ask(request, version, title=f"offsets of {group!r} in v{version}")


def the_offsets_topic_is_as_kafka_makes_it(talk: Conversation) -> None:
    talk.wait_for_coordinator("made")
    asked = MetadataRequest(topics=[MetadataRequestTopic(name=OFFSETS_TOPIC)])
    talk.ask(asked, 12, lambda answer: [_plain(topic) for topic in answer.topics])
    resource = DescribeConfigsResource(
        resource_type=2, resource_name=OFFSETS_TOPIC, configuration_keys=None
    )
    talk.ask(
        DescribeConfigsRequest(resources=[resource]),
        4,
        lambda answer: [
            (one.name, one.value, one.config_source)
            for result in answer.results
            for one in sorted(result.configs, key=lambda one: one.name)
            if one.config_source == 1
        ],
    )


def _plain(topic: Any) -> object:
    partitions = [
        (one.partition_index, one.replica_nodes, one.isr_nodes) for one in topic.partitions
    ]
    return topic.error_code, topic.name, topic.is_internal, sorted(partitions)
