"""Groups that move between the classic and the consumer protocol, and groups that speak both.

Members are static, or named by the conversation where Kafka takes any name: what an assignor
chooses goes by names. Targets are computed at once, by the range assignor.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from odradek.protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from odradek.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatTopicPartitions,
)
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
from odradek.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
)
from odradek.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from odradek.protocol.records.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    ConsumerTopicPartitions,
    encode_versioned,
)
from tests.conformance.conversation import Conversation
from tests.support.config_requests import alter_configs_request

GROUP_RESOURCE = 32
JOIN, SYNC, BEAT, LEAVE, COMMIT, DESCRIBE = 9, 5, 4, 5, 9, 6
PARTITIONS = 4
STATIC_SINCE = 5
SEVERAL_LEAVE_SINCE = 3
Protocols = Mapping[str, bytes]


def _subscribed(*topics: str, version: int = 0, owned: Mapping[str, list[int]] = {}) -> bytes:
    return encode_versioned(
        ConsumerProtocolSubscription(topics=list(topics), owned_partitions=_entries(owned)), version
    )


def _assigned(places: Mapping[str, list[int]], user_data: bytes | None = None) -> bytes:
    said = ConsumerProtocolAssignment(assigned_partitions=_entries(places), user_data=user_data)
    return encode_versioned(said, 0)


def _entries(places: Mapping[str, list[int]]) -> list[ConsumerTopicPartitions]:
    return [ConsumerTopicPartitions(topic=one, partitions=ones) for one, ones in places.items()]


class _Group:
    """One group, and a topic that has its name."""

    def __init__(self, talk: Conversation, name: str) -> None:
        self.talk, self.name = talk, name
        self.topic_id = talk.create_topic(name, PARTITIONS).topic_id
        self.protocols: Protocols = {"range": _subscribed(name)}
        talk.wait_for_coordinator(name)
        change = {"consumer.assignment.interval.ms": "0"}
        talk.silently(alter_configs_request(GROUP_RESOURCE, name, change), 1)

    # -- the classic protocol ----------------------------------------------------------------------

    def join(
        self,
        member: str = "",
        instance: str | None = None,
        *,
        protocols: Protocols | None = None,
        protocol_type: str = "consumer",
        version: int = JOIN,
    ) -> Any:
        offered = self.protocols if protocols is None else protocols
        request = JoinGroupRequest(
            group_id=self.name,
            session_timeout_ms=30_000,
            rebalance_timeout_ms=30_000,
            member_id=member,
            group_instance_id=instance,
            protocol_type=protocol_type,
            protocols=[
                JoinGroupRequestProtocol(name=name, metadata=metadata)
                for name, metadata in offered.items()
            ],
        )
        return self.talk.ask(request, version)

    def sync(
        self,
        member: str,
        generation: int,
        instance: str | None = None,
        *,
        assignments: Mapping[str, bytes] = {},
        protocol: tuple[str | None, str | None] = ("consumer", "range"),
        version: int = SYNC,
    ) -> Any:
        request = SyncGroupRequest(
            group_id=self.name,
            generation_id=generation,
            member_id=member,
            group_instance_id=instance,
            protocol_type=protocol[0],
            protocol_name=protocol[1],
            assignments=[
                SyncGroupRequestAssignment(member_id=one, assignment=what)
                for one, what in assignments.items()
            ],
        )
        return self.talk.ask(request, version)

    def beat(self, member: str, generation: int, instance: str | None = None) -> Any:
        request = HeartbeatRequest(
            group_id=self.name,
            generation_id=generation,
            member_id=member,
            group_instance_id=instance,
        )
        return self.talk.ask(request, BEAT)

    def leave(self, *leaving: tuple[str, str | None], version: int = LEAVE) -> Any:
        if version < SEVERAL_LEAVE_SINCE:
            request = LeaveGroupRequest(group_id=self.name, member_id=leaving[0][0])
        else:
            identities = [
                LeaveGroupMemberIdentity(member_id=member, group_instance_id=instance)
                for member, instance in leaving
            ]
            request = LeaveGroupRequest(group_id=self.name, members=identities)
        return self.talk.ask(request, version)

    def classic_alone(self, instance: str = "classic") -> tuple[str, int]:
        """A classic group of one static member, which has the whole topic."""
        joined = self.join(instance=instance)
        member, generation = joined.member_id, joined.generation_id
        everything = {member: _assigned({self.name: [*range(PARTITIONS)]})}
        self.sync(member, generation, instance, assignments=everything)
        return member, generation

    # -- the consumer protocol ---------------------------------------------------------------------

    def consume(
        self,
        member: str,
        epoch: int = 0,
        instance: str | None = None,
        *,
        owned: Sequence[int] | None = None,
        topics: Sequence[str] | None = None,
        **words: Any,
    ) -> Any:
        joins = epoch == 0
        if joins:
            words = {"rebalance_timeout_ms": 30_000, "server_assignor": "range", **words}
            topics, owned = topics or [self.name], []
        if owned is not None:
            mine = ConsumerGroupHeartbeatTopicPartitions(
                topic_id=self.topic_id, partitions=list(owned)
            )
            words["topic_partitions"] = [mine] if owned else []
        request = ConsumerGroupHeartbeatRequest(
            group_id=self.name,
            member_id=member,
            member_epoch=epoch,
            instance_id=instance,
            subscribed_topic_names=None if topics is None else list(topics),
            **words,
        )
        return self.talk.ask(request, 1)

    # -- both --------------------------------------------------------------------------------------

    def commit(self, member: str, generation: int, instance: str | None = None) -> None:
        wanted = [
            OffsetCommitRequestPartition(
                partition_index=partition, committed_offset=5, committed_metadata=""
            )
            for partition in range(PARTITIONS)
        ]
        for version in (COMMIT - 1, COMMIT):
            request = OffsetCommitRequest(
                group_id=self.name,
                generation_id_or_member_epoch=generation,
                member_id=member,
                group_instance_id=instance,
                topics=[OffsetCommitRequestTopic(name=self.name, partitions=wanted)],
            )
            self.talk.ask(request, version)

    def fetch(self, member: str | None, epoch: int) -> None:
        topic = OffsetFetchRequestTopic(name=self.name, partition_indexes=[0])
        wanted = OffsetFetchRequestGroup(
            group_id=self.name, member_id=member, member_epoch=epoch, topics=[topic]
        )
        self.talk.ask(OffsetFetchRequest(groups=[wanted], require_stable=False), 9)

    def look(self) -> None:
        """What admin clients are shown of it."""
        write = self.talk.transcript.write
        listed = self.talk.silently(ListGroupsRequest(states_filter=[], types_filter=[]), 5)
        write("listed", [group for group in listed.groups if group.group_id == self.name])
        classic = self.talk.silently(DescribeGroupsRequest(groups=[self.name]), DESCRIBE)
        write("described as a classic group", [_classic(group) for group in classic.groups])
        asked = ConsumerGroupDescribeRequest(
            group_ids=[self.name], include_authorized_operations=False
        )
        consumer = self.talk.silently(asked, 1)
        write("described as a consumer group", [_consumer(group) for group in consumer.groups])


def _classic(group: Any) -> object:
    return (
        (group.error_code, group.group_state, group.protocol_type, group.protocol_data),
        sorted(
            (
                *(str(one.group_instance_id), one.client_id, one.client_host),
                *(bytes(one.member_metadata), bytes(one.member_assignment)),
            )
            for one in group.members
        ),
    )


def _consumer(group: Any) -> object:
    return (
        *(group.error_code, group.group_state, group.group_epoch, group.assignment_epoch),
        group.assignor_name,
        sorted((_member(one) for one in group.members), key=str),
    )


def _member(one: Any) -> tuple[object, ...]:
    return (
        *(one.instance_id, one.rack_id, one.member_epoch, one.client_id, one.member_type),
        *(sorted(one.subscribed_topic_names), one.subscribed_topic_regex),
        *(
            sorted((topic.topic_name, sorted(topic.partitions)) for topic in part.topic_partitions)
            for part in (one.assignment, one.target_assignment)
        ),
    )


def a_group_moves_there_and_back(talk: Conversation) -> None:
    group = _Group(talk, "moved")
    old, generation = group.classic_alone()
    group.commit(old, generation, "classic")
    group.look()
    group.consume("new", 1)
    group.consume("new")
    group.look()
    group.beat(old, generation, "classic")
    group.beat(old, generation)
    group.beat(old, generation + 1, "classic")
    group.beat("stranger", generation)
    group.beat("new", 2)
    group.beat("new", 2, "classic")
    group.sync(old, generation, "classic")
    group.commit(old, generation, "classic")
    group.commit(old, generation + 1, "classic")
    group.fetch(old, generation)
    group.fetch(old, generation + 5)
    group.fetch(None, -1)
    back = group.join(old, "classic")
    group.look()
    group.sync(old, back.generation_id, "classic")
    group.beat(old, back.generation_id, "classic")
    for wrong in (("connect", "range"), ("consumer", "sticky")):
        group.sync(old, back.generation_id, "classic", protocol=wrong)
    group.sync(old, back.generation_id, "classic", protocol=(None, None), version=4)
    group.sync(old, back.generation_id - 1, "classic")
    group.sync("new", 2)
    group.consume("new", 2, owned=[])
    group.consume("new", 3, owned=[2, 3])
    group.look()
    group.commit("new", 3)
    group.consume("new", -1)
    group.look()
    group.beat(old, back.generation_id, "classic")
    again = group.join(old, "classic")
    everything = {old: _assigned({group.name: [*range(PARTITIONS)]})}
    group.sync(old, again.generation_id, "classic", assignments=everything)
    group.look()
    group.fetch(None, -1)


def a_cooperative_member_gives_up_step_by_step(talk: Conversation) -> None:
    group = _Group(talk, "gradual")
    all_of_it = {"gradual": [*range(PARTITIONS)]}

    def owning(owned: Mapping[str, list[int]]) -> Protocols:
        return {"range": _subscribed("gradual", version=1, owned=owned)}

    group.protocols = owning({})
    old, generation = group.classic_alone()
    group.consume("new")
    group.beat(old, generation, "classic")
    step = group.join(old, "classic", protocols=owning(all_of_it)).generation_id
    group.look()
    group.beat(old, step, "classic")
    group.sync(old, step, "classic")
    group.consume("new", 2, owned=[])
    step = group.join(old, "classic", protocols=owning({"gradual": [0, 1]})).generation_id
    group.sync(old, step, "classic")
    group.beat(old, step, "classic")
    group.look()
    group.consume("new", 2, owned=[])
    # And the other way round: it waits for what the other one has.
    group.consume("new", 2, topics=["gradual-not"], owned=[2, 3])
    group.beat(old, step, "classic")
    step = group.join(old, "classic", protocols=owning({"gradual": [0, 1]})).generation_id
    group.sync(old, step, "classic")
    group.beat(old, step, "classic")
    group.consume("new", 3, owned=[])
    group.consume("new", 4, owned=[])
    group.beat(old, step, "classic")
    step = group.join(old, "classic", protocols=owning({"gradual": [0, 1]})).generation_id
    group.sync(old, step, "classic")
    group.beat(old, step, "classic")
    group.look()


def classic_members_join_a_consumer_group(talk: Conversation) -> None:
    group = _Group(talk, "hosted")
    group.consume("host")
    asked = group.join()
    group.beat(asked.member_id, 0)
    group.look()
    for wrong in ("connect", ""):
        group.join("guest", protocol_type=wrong)
    group.join("guest", protocols={})
    two = {"range": _subscribed("hosted"), "sticky": _subscribed("hosted", version=1)}
    joined = group.join("guest", protocols=two)
    group.sync("guest", joined.generation_id)
    group.look()
    group.join("other", protocols={"cooperative-sticky": _subscribed("hosted")})
    group.join("guest", protocols={"cooperative-sticky": _subscribed("hosted")})
    group.join("guest", protocols={"sticky": two["sticky"]})
    group.join("guest", protocols=two)
    group.join("guest", protocols={"sticky": two["sticky"], "range": two["range"]})
    group.join("guest", "i", protocols=two)
    group.join("nobody", "i2", protocols=two)
    group.join("", "i3", protocols=two)
    group.join("guest", "i3", protocols=two)
    for leaving in (
        [("stranger", None)],
        [("", None)],
        [("", "i4")],
        [("guest", "i3")],
        [("guest", None), ("stranger", None), ("", "i3")],
        [("host", None)],
    ):
        group.leave(*leaving)
    group.look()


def classic_members_join_in_every_version(talk: Conversation) -> None:
    group = _Group(talk, "versions")
    group.consume("host")
    for version in talk.versions_of(JoinGroupRequest):
        joined = group.join("" if version < 4 else f"guest-{version}", version=version)
        member = joined.member_id
        protocol = ("consumer", "range") if version >= SYNC else (None, None)
        group.sync(member, joined.generation_id, protocol=protocol, version=min(version, SYNC))
        group.leave((member, None), version=min(version, LEAVE))
        if version >= STATIC_SINCE:
            static = group.join("", f"static-{version}", version=version)
            group.join("", f"static-{version}", version=version)
            group.beat(static.member_id, static.generation_id, f"static-{version}")
            group.leave(("", f"static-{version}"))
    group.look()


def static_members_change_their_protocol(talk: Conversation) -> None:
    group = _Group(talk, "static")
    old, generation = group.classic_alone("i")
    group.consume("one", instance="i")
    group.beat(old, generation, "i")
    group.beat(old, generation)
    group.look()
    group.consume("two", instance="i")
    group.consume("one", 3, instance="i", owned=[*range(PARTITIONS)])
    back = group.join("", "i")
    group.look()
    group.consume("one", 3, instance="i")
    group.sync(back.member_id, back.generation_id, "i")
    group.beat(back.member_id, back.generation_id, "i")
    group.consume("one", instance="i")
    group.consume("one", -2, instance="i")
    group.look()
    other = {"range": _subscribed("static", "static-not")}
    back = group.join("", "i", protocols=other)
    group.look()
    group.sync(back.member_id, back.generation_id, "i")
    group.beat(back.member_id, back.generation_id, "i")
    again = group.join(back.member_id, "i", protocols=other)
    group.sync(again.member_id, again.generation_id, "i", assignments={})
    group.look()


def an_empty_group_is_taken_over(talk: Conversation) -> None:
    group = _Group(talk, "empty")
    member, generation = group.classic_alone()
    group.commit(member, generation, "classic")
    group.leave((member, "classic"))
    group.look()
    group.consume("one")
    group.look()
    group.fetch(None, -1)
    group.consume("one", -1)
    group.look()
    for stale in ("one", "stranger"):
        group.beat(stale, 2)
        group.sync(stale, 2)
        group.leave((stale, None))
    member, generation = group.classic_alone()
    group.look()
    group.fetch(None, -1)


def what_cannot_be_upgraded_is_refused(talk: Conversation) -> None:
    group = _Group(talk, "connect")
    joined = group.join(instance="worker", protocol_type="connect")
    group.consume("new")
    group.sync(
        joined.member_id,
        joined.generation_id,
        "worker",
        protocol=("connect", "range"),
        assignments={joined.member_id: _assigned({})},
    )
    group.consume("new")
    group.look()
    for name, assignment in (
        ("custom", _assigned({"custom": [0]}, b"secret")),
        ("malformed", b"\0"),
        ("unversioned", b"\xff\xff" + _assigned({})[2:]),
        ("cut", _assigned({"cut": [0]})[:-6]),
        ("unknown", _assigned({"unknown-not": [0]})),
        ("nothing", b""),
    ):
        group = _Group(talk, name)
        joined = group.join(instance="i")
        group.sync(
            joined.member_id, joined.generation_id, "i", assignments={joined.member_id: assignment}
        )
        group.consume("new")
        group.look()
