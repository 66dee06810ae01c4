"""Consumer groups of the new protocol: heartbeats by hand (KIP-848).

Their offsets, and how they are described: consumer_group_offsets.py.

Targets are computed at once, for the groups' `consumer.assignment.interval.ms` is set to 0; what a
regular expression stands for is found out behind the scenes, so that is waited for.
"""

from typing import Any

from odradek.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatTopicPartitions,
)
from odradek.protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from odradek.protocol.messages.delete_topics import DeleteTopicsRequest
from odradek.protocol.messages.describe_groups import DescribeGroupsRequest
from odradek.protocol.messages.heartbeat import HeartbeatRequest
from odradek.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from tests.conformance.conversation import Conversation, patiently, unknown_id
from tests.support.config_requests import alter_configs_request

GROUP_RESOURCE = 32
V1 = 1
Owned = dict[bytes, list[int]]


def _beat(
    group: str,
    member: str,
    epoch: int,
    *,
    owned: Owned | None = None,
    topics: list[str] | None = None,
    **words: Any,
) -> ConsumerGroupHeartbeatRequest:
    return ConsumerGroupHeartbeatRequest(
        group_id=group,
        member_id=member,
        member_epoch=epoch,
        subscribed_topic_names=topics,
        topic_partitions=None
        if owned is None
        else [
            ConsumerGroupHeartbeatTopicPartitions(topic_id=topic_id, partitions=partitions)
            for topic_id, partitions in owned.items()
        ],
        **words,
    )


def _join(group: str, member: str, *topics: str, **words: Any) -> ConsumerGroupHeartbeatRequest:
    said = {"owned": {}, "topics": list(topics), "rebalance_timeout_ms": 60_000, **words}
    return _beat(group, member, 0, **said)


def _configure(talk: Conversation, group: str) -> None:
    """Have the group there, and its targets computed without delay."""
    talk.wait_for_coordinator(group)
    change = {"consumer.assignment.interval.ms": "0"}
    talk.silently(alter_configs_request(GROUP_RESOURCE, group, change), 1)


def heartbeats_are_checked(talk: Conversation) -> None:
    group = "beats-checked"
    talk.wait_for_coordinator(group)
    for version in talk.versions_of(ConsumerGroupHeartbeatRequest):
        for wrong in (
            _join("", "m"),
            _join(" \t", "m"),
            _join(group, "m", instance_id=""),
            _join(group, "m", rack_id=" "),
            _join(group, "m", rebalance_timeout_ms=-1),
            _join(group, "m", owned=None),
            _join(group, "m", owned={unknown_id(): [0]}),
            _join(group, "m", topics=None),
            _join(group, "m", server_assignor="nonsense"),
            _join(group, "m", server_assignor=""),
            _beat(group, "", 1),
            _beat(group, "", -1),
            _beat(group, "m", -2),
            _beat(group, "m", -3),
            _beat(group, "m", 1),
            _beat(group, "m", -1),
            _beat(group, "m", -2, instance_id="i"),
            _beat(group, "m", 5, instance_id="i", topics=["x"], owned={}),
        ):
            talk.ask(wrong, version)
    talk.ask(_join(group, ""), V1)
    talk.ask(_join(group, "m", topics=None, subscribed_topic_regex="(oops"), V1)
    talk.ask(_beat(group, "m", 1), V1)


def a_member_joins_goes_on_and_leaves_in_every_version(talk: Conversation) -> None:
    topic = talk.create_topic("beaten", 3)
    mine = {topic.topic_id: [0, 1, 2]}
    for version in talk.versions_of(ConsumerGroupHeartbeatRequest):
        group = f"beaten-{version}"
        _configure(talk, group)
        answer = talk.ask(_join(group, "" if version == 0 else "me", "beaten"), version)
        me = answer.member_id
        talk.ask(_beat(group, me, 2), version)
        talk.ask(_beat(group, me, 2, owned={}), version)
        talk.ask(_beat(group, me, 2, owned=mine), version)
        talk.ask(
            _beat(group, me, 2, owned=mine, topics=["beaten"], rebalance_timeout_ms=9), version
        )
        for epoch in (1, 3, 99):
            talk.ask(_beat(group, me, epoch, owned=mine), version)
        talk.ask(_beat(group, me, 1, owned={unknown_id(): [0]}), version)
        talk.ask(_beat(group, "stranger", 2), version)
        talk.ask(_join(group, me, "beaten"), version)
        talk.ask(_beat(group, me, 2, topics=["beaten-not"]), version)
        talk.ask(_beat(group, me, 2, owned={}), version)
        talk.ask(_beat(group, me, 3, topics=["beaten"]), version)
        talk.ask(_beat(group, me, 4, owned=mine), version)
        talk.ask(_beat(group, me, -1), version)
        talk.ask(_beat(group, me, -1), version)
        talk.ask(_beat(group, me, 4), version)


def two_members_share_and_hand_over(talk: Conversation) -> None:
    topic = talk.create_topic("shared", 4)
    group = "sharing"
    _configure(talk, group)
    everything, half = {topic.topic_id: [0, 1, 2, 3]}, {topic.topic_id: [0, 1]}
    talk.ask(_join(group, "first", "shared", server_assignor="range"), V1)
    talk.ask(_beat(group, "first", 2, owned=everything), V1)
    talk.ask(_join(group, "second", "shared", server_assignor="range"), V1)
    talk.ask(_beat(group, "second", 3), V1)
    talk.ask(_beat(group, "first", 2), V1)
    talk.ask(_beat(group, "first", 2, owned=everything), V1)
    talk.ask(_beat(group, "second", 3, owned={}), V1)
    talk.ask(_beat(group, "first", 2, owned=half), V1)
    talk.ask(_beat(group, "first", 2, owned=half), V1)
    talk.ask(_beat(group, "first", 2, owned=everything), V1)
    talk.ask(_beat(group, "second", 3, owned={}), V1)
    talk.ask(_beat(group, "second", 3), V1)
    talk.ask(_join(group, "third", "shared", server_assignor="range"), V1)
    talk.ask(_beat(group, "first", 3, owned=half), V1)
    talk.ask(_beat(group, "second", 3, owned={}), V1)
    talk.ask(_beat(group, "third", 4), V1)
    talk.ask(_beat(group, "second", -1), V1)
    talk.ask(_beat(group, "first", 4), V1)
    talk.ask(_beat(group, "third", 4), V1)
    talk.ask(_beat(group, "first", 4, owned={}), V1)
    talk.ask(_beat(group, "third", 5), V1)
    talk.ask(_beat(group, "third", 5, server_assignor="uniform", rack_id="r"), V1)


def static_members_leave_for_a_while(talk: Conversation) -> None:
    topic = talk.create_topic("kept", 2)
    group = "keeping"
    mine = {topic.topic_id: [0, 1]}
    _configure(talk, group)
    talk.ask(_join(group, "one", "kept", instance_id="i"), V1)
    talk.ask(_beat(group, "one", 2, owned=mine, instance_id="i"), V1)
    talk.ask(_beat(group, "one", 2, owned=mine), V1)
    talk.ask(_join(group, "two", "kept", instance_id="i"), V1)
    talk.ask(_join(group, "one", "kept", instance_id="i"), V1)
    talk.ask(_beat(group, "two", 2, instance_id="i"), V1)
    talk.ask(_beat(group, "two", -2, instance_id="i"), V1)
    talk.ask(_beat(group, "two", -1, instance_id="i"), V1)
    talk.ask(_beat(group, "one", 2, instance_id="j"), V1)
    talk.ask(_beat(group, "one", -2, instance_id="i"), V1)
    talk.ask(_beat(group, "one", -2, instance_id="i"), V1)
    talk.ask(_beat(group, "one", 2, instance_id="i"), V1)
    talk.ask(_join(group, "two", "kept", instance_id="i"), V1)
    talk.ask(_beat(group, "two", 2, owned=mine, instance_id="i"), V1)
    talk.ask(_beat(group, "one", 2, owned=mine, instance_id="i"), V1)
    talk.ask(_beat(group, "one", 2, owned=mine), V1)
    talk.ask(_beat(group, "two", -2, instance_id="i"), V1)
    talk.ask(_join(group, "two", "kept", "kept-not", instance_id="i"), V1)
    talk.ask(_beat(group, "two", -1, instance_id="i"), V1)
    talk.ask(_beat(group, "two", -1, instance_id="i"), V1)


def _assigned_soon(talk: Conversation, title: str, group: str, member: str, epoch: int) -> Any:
    """Beat until there is an assignment, and write that down."""

    def assigned() -> Any:
        answer = talk.silently(_beat(group, member, epoch, owned={}), V1)
        return answer if answer.assignment is not None or answer.error_code else None

    answer = patiently(assigned)
    talk.transcript.write(title, answer)
    return answer


def patterns_are_resolved(talk: Conversation) -> None:
    one, two = talk.create_topic("pattern-a", 2), talk.create_topic("pattern-b", 2)
    talk.transcript.write("the topics", [{"topic_id": topic.topic_id} for topic in (one, two)])
    group = "patterns"
    _configure(talk, group)
    # The range assignor's choice does not depend on the topics' ids.
    said = {"topics": None, "server_assignor": "range"}
    pattern = {**said, "subscribed_topic_regex": "pattern-[ab]"}
    epoch = talk.ask(_join(group, "me", **pattern), V1).member_epoch
    talk.ask(_beat(group, "me", epoch, subscribed_topic_regex="pattern-("), V1)
    answer = _assigned_soon(talk, "resolved", group, "me", epoch)
    talk.ask(_beat(group, "me", answer.member_epoch, **pattern), V1)
    other = {**said, "subscribed_topic_regex": "pattern-a"}
    talk.ask(_join(group, "you", **pattern), V1)
    talk.ask(_beat(group, "me", answer.member_epoch, owned={}), V1)
    talk.ask(_beat(group, "you", answer.member_epoch + 1, **other), V1)
    talk.ask(_beat(group, "you", -1), V1)
    talk.ask(_beat(group, "me", answer.member_epoch + 1, subscribed_topic_regex=""), V1)
    talk.ask(_beat(group, "me", answer.member_epoch + 1, owned={}), V1)
    talk.ask(_beat(group, "me", answer.member_epoch + 3, topics=["pattern-a"]), V1)
    talk.ask(_beat(group, "me", answer.member_epoch + 4, owned={one.topic_id: [0]}), V1)


def topics_come_grow_and_go(talk: Conversation) -> None:
    group = "moving"
    _configure(talk, group)
    talk.ask(_join(group, "me", "moving-a", "moving-b"), V1)
    talk.create_topic("moving-a", 1)
    first = _assigned_soon(talk, "created", group, "me", 2)
    talk.silently(
        CreatePartitionsRequest(
            topics=[CreatePartitionsTopic(name="moving-a", count=3, assignments=None)],
            timeout_ms=9_000,
            validate_only=False,
        ),
        3,
    )
    more = _assigned_soon(talk, "grown", group, "me", first.member_epoch)
    talk.silently(DeleteTopicsRequest(topic_names=["moving-a"], timeout_ms=9_000), 5)
    talk.wait_until_gone("moving-a")
    _assigned_soon(talk, "deleted", group, "me", more.member_epoch)


def a_name_belongs_to_one_kind_of_group(talk: Conversation) -> None:
    topic = talk.create_topic("kinds", 1)
    for group in ("kinds", "kinds-offsets"):
        _configure(talk, group)
    commit = OffsetCommitRequestPartition(
        partition_index=0, committed_offset=4, committed_metadata=""
    )
    offsets = OffsetCommitRequest(
        group_id="kinds-offsets",
        topics=[
            OffsetCommitRequestTopic(name="kinds", topic_id=topic.topic_id, partitions=[commit])
        ],
    )
    talk.ask(offsets, 9)
    talk.ask(_beat("kinds-offsets", "me", 1), V1)
    talk.ask(_beat("kinds-offsets", "me", -1), V1)
    talk.ask(_join("kinds-offsets", "me", "kinds"), V1)
    talk.ask(offsets, 9)
    talk.ask(_beat("kinds-offsets", "me", 2), V1)
    talk.ask(DescribeGroupsRequest(groups=["kinds-offsets", "kinds"]), 6)
    talk.ask(HeartbeatRequest(group_id="kinds-offsets", generation_id=2, member_id="me"), 4)
