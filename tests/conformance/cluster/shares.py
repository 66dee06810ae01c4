"""Share groups: records are delivered by the leader only."""

from odradek.protocol.messages.share_acknowledge import ShareAcknowledgeRequest
from odradek.protocol.messages.share_fetch import ShareFetchRequest
from odradek.protocol.messages.share_group_heartbeat import ShareGroupHeartbeatRequest
from odradek.protocol.primitives import random_uuid, uuid_text
from tests.conformance.cluster.asked import produce
from tests.conformance.cluster.talk import Asked, ClusterTalk
from tests.support.requests import build
from tests.support.waiting import wait_until

LEADER, FOLLOWER, OTHER = 2, 3, 1


class _ShareMember:
    """The requests of one member of a share group, for partition 0 of a topic."""

    def __init__(self, group: str, topic: str, topic_id: bytes) -> None:
        self.group = group
        self.member = uuid_text(random_uuid())
        self._topic = topic
        self._topic_id = topic_id

    def heartbeat(self, epoch: int) -> Asked:
        request = build(
            ShareGroupHeartbeatRequest,
            1,
            group_id=self.group,
            member_id=self.member,
            member_epoch=epoch,
            subscribed_topic_names=None if epoch else [self._topic],
        )
        return request, 1

    def fetch(self, session_epoch: int) -> Asked:
        whole = {"partition_index": 0, "acknowledgement_batches": []}
        request = build(
            ShareFetchRequest,
            2,
            group_id=self.group,
            member_id=self.member,
            share_session_epoch=session_epoch,
            max_wait_ms=0,
            min_bytes=1,
            max_bytes=1 << 20,
            max_records=10,
            batch_size=10,
            topics=[{"topic_id": self._topic_id, "partitions": [whole]}],
        )
        return request, 2

    def acknowledge(self, session_epoch: int) -> Asked:
        batch = {"first_offset": 0, "last_offset": 0, "acknowledge_types": [1]}
        acknowledged = {"partition_index": 0, "acknowledgement_batches": [batch]}
        request = build(
            ShareAcknowledgeRequest,
            2,
            group_id=self.group,
            member_id=self.member,
            share_session_epoch=session_epoch,
            topics=[{"topic_id": self._topic_id, "partitions": [acknowledged]}],
        )
        return request, 2


def _joined(talk: ClusterTalk, group: str, topic: str, topic_id: bytes) -> _ShareMember:
    member = _ShareMember(group, topic, topic_id)
    talk.coordinate(group, OTHER)
    joined = talk.silently(OTHER, member.heartbeat(0))
    assert joined.error_code == 0, joined
    return member


def records_are_shared_at_the_leader_only(talk: ClusterTalk) -> None:
    topic_id = talk.create_topic("shared", [LEADER, FOLLOWER])
    talk.ask(LEADER, produce("shared", "one"), "written")
    member = _joined(talk, "at-shares", "shared", topic_id)
    for node in (FOLLOWER, OTHER):
        talk.ask(node, member.fetch(0), "a session starts")
    for node in (FOLLOWER, OTHER):
        talk.ask(node, member.acknowledge(1), "in that session")
    talk.silently(OTHER, member.heartbeat(-1))


def a_share_session_stays_when_the_leader_moves(talk: ClusterTalk) -> None:
    topic_id = talk.create_topic("shared-elsewhere", [LEADER, FOLLOWER])
    member = _joined(talk, "at-moved-shares", "shared-elsewhere", topic_id)

    def is_shared() -> bool:
        answer = talk.silently(LEADER, member.fetch(0))
        return answer.responses == [] or answer.responses[0].partitions[0].error_code == 0

    wait_until(is_shared)
    talk.cluster.move_leader("shared-elsewhere", 0, FOLLOWER)
    talk.wait_for_state("shared-elsewhere", leader=FOLLOWER)
    talk.ask(LEADER, member.fetch(1), "the leader has moved")
    talk.ask(LEADER, member.acknowledge(2), "the leader has moved")
    talk.silently(OTHER, member.heartbeat(-1))
