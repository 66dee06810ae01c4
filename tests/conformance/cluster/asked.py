"""The requests of the scripts, each with its version."""

from typing import Any

from odradek.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
)
from odradek.protocol.messages.create_partitions import CreatePartitionsRequest
from odradek.protocol.messages.create_topics import CreateTopicsRequest
from odradek.protocol.messages.delete_records import DeleteRecordsRequest
from odradek.protocol.messages.describe_cluster import DescribeClusterRequest
from odradek.protocol.messages.describe_configs import DescribeConfigsRequest
from odradek.protocol.messages.describe_log_dirs import DescribeLogDirsRequest
from odradek.protocol.messages.describe_producers import DescribeProducersRequest
from odradek.protocol.messages.describe_topic_partitions import DescribeTopicPartitionsRequest
from odradek.protocol.messages.elect_leaders import ElectLeadersRequest
from odradek.protocol.messages.fetch import FetchRequest
from odradek.protocol.messages.list_offsets import ListOffsetsRequest
from odradek.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
)
from odradek.protocol.messages.offset_for_leader_epoch import OffsetForLeaderEpochRequest
from odradek.protocol.messages.produce import ProduceRequest
from odradek.protocol.primitives import ZERO_UUID
from odradek.protocol.record import Record
from odradek.protocol.record_batch import build_batch
from tests.conformance.cluster.talk import Asked
from tests.support.requests import build

AT_MS = 1_700_000_000_000
SINCE_TOPIC_IDS = 13  # Produce and Fetch
PREFERRED, UNCLEAN = 0, 1


def produce(
    topic: str,
    *values: str,
    topic_id: bytes = ZERO_UUID,
    version: int = 12,
    acks: int = -1,
    timeout_ms: int = 10_000,
    producer: tuple[int, int, int] = (-1, -1, -1),
    transactional_id: str | None = None,
    partition: int = 0,
) -> Asked:
    """One batch; `producer` is id, epoch and base sequence."""
    batch = build_batch(
        [Record(None, value.encode(), AT_MS) for value in values],
        producer_id=producer[0],
        producer_epoch=producer[1],
        base_sequence=producer[2],
        is_transactional=transactional_id is not None,
    )
    data = {"index": partition, "records": bytes(batch)}
    request = build(
        ProduceRequest,
        version,
        transactional_id=transactional_id,
        acks=acks,
        timeout_ms=timeout_ms,
        topic_data=[{**_named(topic, topic_id, version), "partition_data": [data]}],
    )
    return request, version


def fetch(
    topic: str,
    offset: int = 0,
    *,
    topic_id: bytes = ZERO_UUID,
    version: int = 12,
    leader_epoch: int = -1,
    last_epoch: int = -1,
    session: tuple[int, int] = (0, -1),
    rack: str = "",
    isolation_level: int = 0,
    empty: bool = False,
    max_wait_ms: int = 0,
) -> Asked:
    """Records of partition 0; `empty`: names no topic, as a session goes on."""
    wanted: dict[str, Any] = {
        "partition": 0,
        "fetch_offset": offset,
        "partition_max_bytes": 1 << 20,
    }
    if version >= 9:
        wanted["current_leader_epoch"] = leader_epoch
    if version >= 12:
        wanted["last_fetched_epoch"] = last_epoch
    named = {**_named(topic, topic_id, version, "topic"), "partitions": [wanted]}
    extra: dict[str, Any] = {"rack_id": rack} if version >= 11 else {}
    if version >= 7:
        extra |= {"session_id": session[0], "session_epoch": session[1]}
    request = build(
        FetchRequest,
        version,
        max_wait_ms=max_wait_ms,
        min_bytes=1,
        max_bytes=1 << 25,
        isolation_level=isolation_level,
        topics=[] if empty else [named],
        **extra,
    )
    return request, version


def _named(topic: str, topic_id: bytes, version: int, field: str = "name") -> dict[str, Any]:
    return {"topic_id": topic_id} if version >= SINCE_TOPIC_IDS else {field: topic}


def list_offsets(
    topic: str, timestamp: int, *, leader_epoch: int = -1, version: int = 11, replica_id: int = -1
) -> Asked:
    at: dict[str, Any] = {"partition_index": 0, "timestamp": timestamp}
    if version >= 4:
        at["current_leader_epoch"] = leader_epoch
    request = build(
        ListOffsetsRequest,
        version,
        replica_id=replica_id,
        topics=[{"name": topic, "partitions": [at]}],
    )
    return request, version


def epoch_end(topic: str, epoch: int, *, leader_epoch: int = -1) -> Asked:
    at = {"partition": 0, "current_leader_epoch": leader_epoch, "leader_epoch": epoch}
    request = build(
        OffsetForLeaderEpochRequest,
        4,
        replica_id=-1,
        topics=[{"topic": topic, "partitions": [at]}],
    )
    return request, 4


def delete_records(topic: str, offset: int) -> Asked:
    at = {"partition_index": 0, "offset": offset}
    request = build(
        DeleteRecordsRequest,
        2,
        topics=[{"name": topic, "partitions": [at]}],
        timeout_ms=10_000,
    )
    return request, 2


def describe_producers(topic: str) -> Asked:
    request = build(DescribeProducersRequest, 0, topics=[{"name": topic, "partition_indexes": [0]}])
    return request, 0


def describe_topic_partitions(*topics: str) -> Asked:
    request = build(DescribeTopicPartitionsRequest, 0, topics=[{"name": topic} for topic in topics])
    return request, 0


def describe_cluster(*, fenced: bool = False, endpoint_type: int = 1) -> Asked:
    request = build(
        DescribeClusterRequest, 2, include_fenced_brokers=fenced, endpoint_type=endpoint_type
    )
    return request, 2


def describe_log_dirs(topic: str, *partitions: int) -> Asked:
    request = build(
        DescribeLogDirsRequest, 5, topics=[{"topic": topic, "partitions": list(partitions)}]
    )
    return request, 5


def describe_config(resource_type: int, name: str, *keys: str) -> Asked:
    one = {"resource_type": resource_type, "resource_name": name, "configuration_keys": [*keys]}
    return build(DescribeConfigsRequest, 4, resources=[one]), 4


def elect(topic: str | None, *partitions: int, kind: int = PREFERRED) -> Asked:
    """ElectLeaders; of all partitions without a topic."""
    wanted = None if topic is None else [{"topic": topic, "partitions": list(partitions)}]
    request = build(
        ElectLeadersRequest, 2, election_type=kind, topic_partitions=wanted, timeout_ms=30_000
    )
    return request, 2


def reassign(
    topic: str, replicas: list[int] | None, *, partition: int = 0, may_grow: bool = True
) -> Asked:
    """Of one partition; without replicas the reassignment is cancelled."""
    one = {"partition_index": partition, "replicas": replicas}
    request = build(
        AlterPartitionReassignmentsRequest,
        1,
        timeout_ms=30_000,
        allow_replication_factor_change=may_grow,
        topics=[{"name": topic, "partitions": [one]}],
    )
    return request, 1


def reassignments(topic: str | None, *partitions: int) -> Asked:
    wanted = None if topic is None else [{"name": topic, "partition_indexes": [*partitions]}]
    return build(ListPartitionReassignmentsRequest, 0, timeout_ms=30_000, topics=wanted), 0


def create_topic(
    name: str,
    partitions: int,
    factor: int,
    *,
    replicas: dict[int, list[int]] | None = None,
    validate_only: bool = False,
) -> Asked:
    wish = {
        "name": name,
        "num_partitions": partitions,
        "replication_factor": factor,
        "assignments": [
            {"partition_index": index, "broker_ids": ids} for index, ids in (replicas or {}).items()
        ],
    }
    request = build(
        CreateTopicsRequest, 7, topics=[wish], timeout_ms=30_000, validate_only=validate_only
    )
    return request, 7


def create_partitions(name: str, count: int, *replicas: list[int]) -> Asked:
    wish = {
        "name": name,
        "count": count,
        "assignments": [{"broker_ids": ids} for ids in replicas] if replicas else None,
    }
    return build(CreatePartitionsRequest, 3, topics=[wish], timeout_ms=30_000), 3
