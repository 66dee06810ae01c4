"""Groups: requests at their coordinator and at other nodes, and the loss of the coordinator."""

from typing import Any

from odradek.protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from odradek.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from odradek.protocol.messages.delete_groups import DeleteGroupsRequest
from odradek.protocol.messages.describe_groups import DescribeGroupsRequest
from odradek.protocol.messages.incremental_alter_configs import IncrementalAlterConfigsRequest
from odradek.protocol.messages.leave_group import LeaveGroupRequest
from odradek.protocol.messages.list_groups import ListGroupsRequest
from odradek.protocol.messages.offset_delete import OffsetDeleteRequest
from odradek.protocol.messages.share_group_heartbeat import ShareGroupHeartbeatRequest
from odradek.protocol.messages.streams_group_heartbeat import StreamsGroupHeartbeatRequest
from odradek.protocol.primitives import random_uuid
from tests.conformance.cluster.asked_coordinators import (
    commit,
    commit_in_transaction,
    committed,
    find,
    heartbeat,
    join,
    sync,
)
from tests.conformance.cluster.talk import OFFSETS_TOPIC, Asked, ClusterTalk
from tests.support.requests import build
from tests.support.waiting import wait_until

COORDINATOR, NEXT = 2, 3


def _listed(answer: Any) -> Any:
    """Of ListGroups, what this script has made."""
    return [answer.error_code, [one for one in answer.groups if one.group_id.startswith("at-")]]


def groups_belong_to_their_coordinator(talk: ClusterTalk) -> None:
    talk.create_topic("grouped", [1, 2])
    for group, node in (("at-two", 2), ("at-three", 3)):
        talk.coordinate(group, node)
    for version in (0, 3, 4, 6):
        talk.ask_each(find("at-two", version=version))
    for node in (1, 3):
        talk.ask(node, join("at-two"), "join")
    _joined(talk, "at-two", COORDINATOR)  # with its assignment: a group without one is not stored
    members = [one.member_id for one in _joined(talk, "at-three", 3)]
    talk.ask(3, heartbeat("at-three", members[0], 1), "at its coordinator")
    for node in (1, 2):
        for asked in _requests("at-three", members[0]):
            talk.ask(node, asked)
    talk.ask(3, commit("at-three", "grouped", 5, members[0], 1), "at its coordinator")
    talk.ask_each((build(ListGroupsRequest, 5), 5), change=_listed)
    describe = build(DescribeGroupsRequest, 6, groups=["at-two", "at-three"])
    talk.ask_each((describe, 6))


def _joined(talk: ClusterTalk, group: str, node: int) -> Any:
    answer = talk.ask(node, join(group), "join")
    talk.ask(node, sync(group, answer.member_id, answer.generation_id), "sync")
    return answer.members


def _requests(group: str, member: str) -> list[Asked]:
    return [
        join(group),
        join(group, version=9),
        sync(group, member, 1),
        heartbeat(group, member, 1),
        (build(LeaveGroupRequest, 5, group_id=group, members=[{"member_id": member}]), 5),
        (build(LeaveGroupRequest, 2, group_id=group, member_id=member), 2),
        commit(group, "grouped", 5, member, 1),
        commit(group, "grouped", 5, member, 1, version=2),
        committed(group, "grouped"),
        committed(group, "grouped", version=7),
        committed(group, "grouped", version=1),
        (build(DescribeGroupsRequest, 6, groups=[group]), 6),
        (build(DescribeGroupsRequest, 0, groups=[group]), 0),
        (build(DeleteGroupsRequest, 2, groups_names=[group]), 2),
        (
            build(
                OffsetDeleteRequest,
                0,
                group_id=group,
                topics=[{"name": "grouped", "partitions": [{"partition_index": 0}]}],
            ),
            0,
        ),
        commit_in_transaction(group, "grouped", 5),
        (_consumer_heartbeat(group, "member", 0), 1),
        (build(ConsumerGroupDescribeRequest, 1, group_ids=[group]), 1),
        (
            build(
                ShareGroupHeartbeatRequest,
                1,
                group_id=group,
                member_id="member",
                member_epoch=0,
                subscribed_topic_names=["grouped"],
            ),
            1,
        ),
        (
            build(
                StreamsGroupHeartbeatRequest,
                0,
                group_id=group,
                member_id="member",
                member_epoch=5,
            ),
            0,
        ),
    ]


def _consumer_heartbeat(group: str, member: str, epoch: int, **more: Any) -> Any:
    return build(
        ConsumerGroupHeartbeatRequest,
        1,
        group_id=group,
        member_id=member,
        member_epoch=epoch,
        rebalance_timeout_ms=30_000,
        subscribed_topic_names=["grouped"],
        topic_partitions=[],
        **more,
    )


def a_group_survives_its_coordinator(talk: ClusterTalk) -> None:
    talk.create_topic("survived", [1, 2])
    group, newer = "at-survivors", "at-newer-survivors"
    for one in (group, newer):
        talk.place_coordinator(one, [COORDINATOR, NEXT, 1])
    (member,) = (one.member_id for one in _joined(talk, group, COORDINATOR))
    talk.ask(COORDINATOR, commit(group, "survived", 7, member, 1), "commit")
    member_id = f"newer-{_text_uuid()}"
    joining = (_consumer_heartbeat(newer, member_id, 0), 1)
    epoch = talk.ask(COORDINATOR, joining, "join", _without_topics).member_epoch
    talk.kill(COORDINATOR)
    for one in (group, newer):
        talk.wait_for_state(OFFSETS_TOPIC, talk.partition_of(one, OFFSETS_TOPIC), leader=NEXT)
        talk.wait_for_coordinator(one, NEXT)
    talk.ask_each(find(group))
    talk.ask_each(heartbeat(group, member, 1), "after the coordinator was killed")
    talk.ask_each(committed(group, "survived"))
    talk.ask(NEXT, commit(group, "survived", 8, member, 1), "commit")
    talk.ask(NEXT, (build(DescribeGroupsRequest, 6, groups=[group]), 6))
    talk.ask(NEXT, (build(ListGroupsRequest, 5), 5), "after", _survivors)
    going_on = (_consumer_heartbeat(newer, member_id, epoch), 1)
    talk.ask(NEXT, going_on, "goes on", _without_topics)
    talk.start(COORDINATOR)
    in_sync = [1, COORDINATOR, NEXT]
    for one in (group, newer):
        partition = talk.partition_of(one, OFFSETS_TOPIC)
        talk.wait_for_state(OFFSETS_TOPIC, partition, leader=NEXT, isr=in_sync)
    talk.ask_each(heartbeat(group, member, 1), "after its restart")
    talk.ask_each(find(group))
    talk.cluster.move_leader(OFFSETS_TOPIC, talk.partition_of(group, OFFSETS_TOPIC), COORDINATOR)
    talk.wait_for_coordinator(group, COORDINATOR)
    talk.ask_each(heartbeat(group, member, 1), "after it is the coordinator again")
    talk.ask_each(committed(group, "survived"))


def a_parked_join_ends_with_its_coordinator(talk: ClusterTalk) -> None:
    """The coordinator moves while a member waits for the others to join."""
    group = "at-parked"
    talk.place_coordinator(group, [COORDINATOR, NEXT, 1])
    (member,) = (one.member_id for one in _joined(talk, group, COORDINATOR))
    talk.ask_while(
        COORDINATOR,
        join(group),
        lambda: talk.cluster.move_leader(
            OFFSETS_TOPIC, talk.partition_of(group, OFFSETS_TOPIC), NEXT
        ),
        "a member joins and the coordinator moves",
    )
    talk.wait_for_coordinator(group, NEXT)
    talk.ask_each(heartbeat(group, member, 1), "the member before")


def a_rebalance_is_lost_with_its_coordinator(talk: ClusterTalk) -> None:
    """The coordinator moves before the leader has given the new generation its assignment."""
    group = "at-rebalanced"
    talk.place_coordinator(group, [COORDINATOR, NEXT, 1])
    (first,) = (one.member_id for one in _joined(talk, group, COORDINATOR))
    second = _promised_id(talk, group)
    talk.ask_while(
        COORDINATOR,
        join(group, second, version=9),
        lambda: talk.ask(COORDINATOR, join(group, first, version=9), "the first joins again"),
        "a second joins",
    )
    third = _promised_id(talk, group)
    talk.cluster.move_leader(OFFSETS_TOPIC, talk.partition_of(group, OFFSETS_TOPIC), NEXT)
    talk.wait_for_coordinator(group, NEXT)
    for node in (COORDINATOR, NEXT):
        talk.ask(node, (build(DescribeGroupsRequest, 6, groups=[group]), 6), "after the move")
        talk.ask(node, heartbeat(group, first, 2), "of the generation that is lost")
        talk.ask(node, sync(group, first, 2), "of the generation that is lost")
        talk.ask(node, heartbeat(group, second, 2), "the second")
        talk.ask(node, sync(group, second, 2), "the second")
        talk.ask(node, join(group, third, version=9), "the third, whose id was promised")
        talk.ask(node, join(group, second, version=9), "the second joins again")
    talk.ask(NEXT, heartbeat(group, first, 1), "of the generation that is stored")


def _promised_id(talk: ClusterTalk, group: str) -> str:
    """The id that a member gets who joins without one. It is in no log."""
    answer = talk.ask(COORDINATOR, join(group, version=9), "without an id")
    member_id: str = answer.member_id
    return member_id


def _survivors(answer: Any) -> Any:
    named = [one for one in answer.groups if one.group_id.endswith("survivors")]
    return sorted(named, key=lambda one: str(one.group_id))


def _without_topics(answer: Any) -> Any:
    return {
        "error_code": answer.error_code,
        "member_epoch": answer.member_epoch,
        "assignment": None if answer.assignment is None else "an assignment",
    }


def _text_uuid() -> str:
    text = random_uuid().hex()
    return "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))


def commits_need_enough_replicas(talk: ClusterTalk) -> None:
    """__consumer_offsets has min.insync.replicas=2, and one replica is left."""
    group, topic = "at-enough", "committed-by-one"
    talk.create_topic(topic, [1, 2])
    talk.place_coordinator(group, [1, 2, 3])
    talk.ask(1, commit(group, topic, 5), "three replicas")
    try:
        _require_in_sync(talk, "2")
        talk.kill(2)
        talk.kill(3)
        partition = talk.partition_of(group, OFFSETS_TOPIC)
        talk.wait_for_state(OFFSETS_TOPIC, partition, leader=1, isr=[1])
        talk.ask(1, committed(group, topic), "one replica")
        talk.ask(1, commit(group, topic, 6), "one replica")
        talk.ask(1, committed(group, topic), "one replica")
        talk.ask(1, find(group), "one replica")
    finally:
        _require_in_sync(talk, "1")
    talk.start(2)
    talk.start(3)
    talk.wait_for_state(OFFSETS_TOPIC, partition, leader=1, isr=[1, 2, 3])
    wait_until(
        lambda: talk.silently(1, commit(group, topic, 7)).topics[0].partitions[0].error_code == 0
    )
    talk.ask(1, committed(group, topic), "three replicas")


def _require_in_sync(talk: ClusterTalk, count: str) -> None:
    """Set min.insync.replicas of __consumer_offsets."""
    config = {"name": "min.insync.replicas", "config_operation": 0, "value": count}
    resource = {"resource_type": 2, "resource_name": OFFSETS_TOPIC, "configs": [config]}
    answer = talk.silently(1, (build(IncrementalAlterConfigsRequest, 1, resources=[resource]), 1))
    assert answer.responses[0].error_code == 0, answer
