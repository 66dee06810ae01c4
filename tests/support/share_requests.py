"""What a member of a share group sends (KIP-932)."""

from odradek.protocol.messages.incremental_alter_configs import IncrementalAlterConfigsRequest
from odradek.protocol.messages.share_acknowledge import (
    ShareAcknowledgeAcknowledgementBatch,
    ShareAcknowledgePartition,
    ShareAcknowledgeRequest,
    ShareAcknowledgeTopic,
)
from odradek.protocol.messages.share_fetch import (
    ShareFetchPartition,
    ShareFetchRequest,
    ShareFetchTopic,
)
from odradek.protocol.messages.share_group_heartbeat import ShareGroupHeartbeatRequest
from tests.support.config_requests import alter_configs_request

SHARE_GROUP = "workers"
ACCEPT, RELEASE = 1, 2
FINAL_EPOCH = -1
_GROUP_RESOURCE = 32
_AT_ONCE = {"share.assignment.interval.ms": "0", "share.auto.offset.reset": "earliest"}


def settings_of_group() -> IncrementalAlterConfigsRequest:
    """Have the group begin with the first record, and assign at once."""
    return alter_configs_request(_GROUP_RESOURCE, SHARE_GROUP, _AT_ONCE)


def heartbeat(member: str, epoch: int, topic: str) -> ShareGroupHeartbeatRequest:
    return ShareGroupHeartbeatRequest(
        group_id=SHARE_GROUP, member_id=member, member_epoch=epoch, subscribed_topic_names=[topic]
    )


def fetch(
    member: str, epoch: int, topic_id: bytes, partition: int, max_records: int
) -> ShareFetchRequest:
    """Whole batches, of at least so many records if they are there."""
    partitions = [ShareFetchPartition(partition_index=partition, acknowledgement_batches=[])]
    return ShareFetchRequest(
        group_id=SHARE_GROUP,
        member_id=member,
        share_session_epoch=epoch,
        max_wait_ms=0,
        min_bytes=1,
        max_bytes=1 << 20,
        max_records=max_records,
        batch_size=max_records,
        topics=[ShareFetchTopic(topic_id=topic_id, partitions=partitions)],
        forgotten_topics_data=[],
    )


def acknowledge(
    member: str, epoch: int, topic_id: bytes, partition: int, types: dict[int, int]
) -> ShareAcknowledgeRequest:
    """`types`: what is done with each offset, ACCEPT or RELEASE."""
    batches = [
        ShareAcknowledgeAcknowledgementBatch(
            first_offset=offset, last_offset=offset, acknowledge_types=[kind]
        )
        for offset, kind in sorted(types.items())
    ]
    wanted = ShareAcknowledgePartition(partition_index=partition, acknowledgement_batches=batches)
    return ShareAcknowledgeRequest(
        group_id=SHARE_GROUP,
        member_id=member,
        share_session_epoch=epoch,
        topics=[ShareAcknowledgeTopic(topic_id=topic_id, partitions=[wanted])],
    )


def leave_session(member: str) -> ShareAcknowledgeRequest:
    return ShareAcknowledgeRequest(
        group_id=SHARE_GROUP, member_id=member, share_session_epoch=FINAL_EPOCH, topics=[]
    )
