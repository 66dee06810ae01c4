"""The messages whose codecs are compared, as clients of today send and get them."""

from typing import NamedTuple

from odradek.protocol.messages.fetch import (
    FetchPartition,
    FetchPartitionData,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    FetchTopicResponse,
)
from odradek.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from odradek.protocol.messages.join_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
    JoinGroupResponseMember,
)
from odradek.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from odradek.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from odradek.protocol.messages.produce import (
    ProducePartitionData,
    ProducePartitionResponse,
    ProduceRequest,
    ProduceResponse,
    ProduceTopicData,
    ProduceTopicResponse,
)
from odradek.protocol.schema import Message

PARTITIONS = 6
BATCH = bytes(range(256)) * 64  # 16 KiB
TOPIC_ID = bytes(range(16))
GROUP = "orders-billing"
MEMBER = "consumer-orders-billing-1-9c5cbd2e-1f08-4f0e-9d83-0f4f1e7a1c55"
ASSIGNOR_METADATA = bytes(40)


class Workload(NamedTuple):
    """A request and its response, in the newest version that all libraries have."""

    title: str
    version: int
    request: Message
    response: Message


def produce() -> Workload:
    """Six batches to six partitions of one topic."""
    data = [ProducePartitionData(index=n, records=BATCH) for n in range(PARTITIONS)]
    topic = ProduceTopicData(topic_id=TOPIC_ID, partition_data=data)
    done = [
        ProducePartitionResponse(index=n, base_offset=n * 1000, log_start_offset=0)
        for n in range(PARTITIONS)
    ]
    answer = ProduceTopicResponse(topic_id=TOPIC_ID, partition_responses=done)
    return Workload(
        f"Produce, {PARTITIONS} x 16 KiB",
        13,
        ProduceRequest(acks=-1, timeout_ms=30_000, topic_data=[topic]),
        ProduceResponse(responses=[answer]),
    )


def fetch() -> Workload:
    """Six batches from six partitions of one topic, as a consumer without a session."""
    wanted = [
        FetchPartition(partition=n, fetch_offset=n * 1000, partition_max_bytes=2**20)
        for n in range(PARTITIONS)
    ]
    topic = FetchTopic(topic_id=TOPIC_ID, partitions=wanted)
    found = [
        FetchPartitionData(
            partition_index=n,
            high_watermark=5000,
            last_stable_offset=5000,
            log_start_offset=0,
            records=BATCH,
        )
        for n in range(PARTITIONS)
    ]
    answer = FetchTopicResponse(topic_id=TOPIC_ID, partitions=found)
    return Workload(
        f"Fetch, {PARTITIONS} x 16 KiB",
        18,
        FetchRequest(max_wait_ms=500, min_bytes=1, session_epoch=0, topics=[topic]),
        FetchResponse(session_id=77, responses=[answer]),
    )


def heartbeat() -> Workload:
    """A member is alive."""
    request = HeartbeatRequest(group_id=GROUP, generation_id=3, member_id=MEMBER)
    return Workload("Heartbeat", 4, request, HeartbeatResponse())


def join_group(members: int = 10) -> Workload:
    """The leader of a group joins, and gets all members."""
    offered = [
        JoinGroupRequestProtocol(name=name, metadata=ASSIGNOR_METADATA)
        for name in ("range", "cooperative-sticky")
    ]
    request = JoinGroupRequest(
        group_id=GROUP,
        session_timeout_ms=45_000,
        rebalance_timeout_ms=300_000,
        member_id=MEMBER,
        protocol_type="consumer",
        protocols=offered,
        reason="rebalance failed due to MemberIdRequiredException",
    )
    joined = [
        JoinGroupResponseMember(member_id=f"{MEMBER}-{n}", metadata=ASSIGNOR_METADATA)
        for n in range(members)
    ]
    response = JoinGroupResponse(
        generation_id=3,
        protocol_type="consumer",
        protocol_name="range",
        leader=MEMBER,
        member_id=MEMBER,
        members=joined,
    )
    return Workload(f"JoinGroup, {members}", 9, request, response)


def offset_commit(partitions: int = 50) -> Workload:
    """Positions in one topic; without metadata, as clients commit unless told otherwise."""
    positions = [
        OffsetCommitRequestPartition(
            partition_index=n,
            committed_offset=n * 1000,
            committed_leader_epoch=4,
            committed_metadata="",
        )
        for n in range(partitions)
    ]
    topic = OffsetCommitRequestTopic(topic_id=TOPIC_ID, partitions=positions)
    request = OffsetCommitRequest(
        group_id=GROUP, generation_id_or_member_epoch=3, member_id=MEMBER, topics=[topic]
    )
    done = [OffsetCommitResponsePartition(partition_index=n) for n in range(partitions)]
    answer = OffsetCommitResponseTopic(topic_id=TOPIC_ID, partitions=done)
    return Workload(
        f"OffsetCommit, {partitions}",
        10,
        request,
        OffsetCommitResponse(topics=[answer]),
    )


def metadata(topics: int = 10, partitions: int = 100) -> Workload:
    """What a cluster of one node answers: all partitions lie on that node."""
    names = [f"orders-{n}" for n in range(topics)]
    found = [
        MetadataResponseTopic(
            name=name,
            topic_id=TOPIC_ID,
            partitions=[
                MetadataResponsePartition(
                    partition_index=n,
                    leader_id=1,
                    leader_epoch=4,
                    replica_nodes=[1],
                    isr_nodes=[1],
                )
                for n in range(partitions)
            ],
        )
        for name in names
    ]
    response = MetadataResponse(
        brokers=[MetadataResponseBroker(node_id=1, host="broker-1.example.org", port=9092)],
        cluster_id="Y45AvnC3Rhqkz8Ak_NyCPA",
        controller_id=1,
        topics=found,
    )
    return Workload(
        f"Metadata, {topics * partitions:,}",
        13,
        MetadataRequest(topics=[MetadataRequestTopic(name=name) for name in names]),
        response,
    )


WORKLOADS = (produce, fetch, heartbeat, join_group, offset_commit, metadata)
