"""Share groups: records are delivered by the leader only."""

from odradek.protocol.messages.share_acknowledge import ShareAcknowledgeRequest
from odradek.protocol.messages.share_fetch import ShareFetchRequest
from odradek.protocol.messages.share_group_heartbeat import ShareGroupHeartbeatRequest
from odradek.protocol.primitives import random_uuid, uuid_text
from tests.conformance.cluster.asked import produce
from tests.conformance.cluster.talk import ClusterTalk
from tests.support.requests import build

LEADER, FOLLOWER, OTHER = 2, 3, 1


def records_are_shared_at_the_leader_only(talk: ClusterTalk) -> None:
    topic_id = talk.create_topic("shared", [LEADER, FOLLOWER])
    talk.ask(LEADER, produce("shared", "one"), "written")
    group, member = "at-shares", uuid_text(random_uuid())
    talk.coordinate(group, OTHER)
    join = build(
        ShareGroupHeartbeatRequest,
        1,
        group_id=group,
        member_id=member,
        member_epoch=0,
        subscribed_topic_names=["shared"],
    )
    joined = talk.silently(OTHER, (join, 1))
    assert joined.error_code == 0, joined
    whole = {"partition_index": 0, "acknowledgement_batches": []}
    start = build(
        ShareFetchRequest,
        2,
        group_id=group,
        member_id=member,
        share_session_epoch=0,
        max_wait_ms=0,
        min_bytes=1,
        max_bytes=1 << 20,
        max_records=10,
        batch_size=10,
        topics=[{"topic_id": topic_id, "partitions": [whole]}],
    )
    for node in (FOLLOWER, OTHER):
        talk.ask(node, (start, 2), "a session starts")
    batch = {"first_offset": 0, "last_offset": 0, "acknowledge_types": [1]}
    acknowledged = {"partition_index": 0, "acknowledgement_batches": [batch]}
    acknowledge = build(
        ShareAcknowledgeRequest,
        2,
        group_id=group,
        member_id=member,
        share_session_epoch=1,
        topics=[{"topic_id": topic_id, "partitions": [acknowledged]}],
    )
    for node in (FOLLOWER, OTHER):
        talk.ask(node, (acknowledge, 2), "in that session")
    leave = build(ShareGroupHeartbeatRequest, 1, group_id=group, member_id=member, member_epoch=-1)
    talk.silently(OTHER, (leave, 1))
