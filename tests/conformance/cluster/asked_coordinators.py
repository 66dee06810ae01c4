"""The requests of groups and transactions, each with its version."""

from collections.abc import Sequence

from odradek.protocol.messages.add_partitions_to_txn import AddPartitionsToTxnRequest
from odradek.protocol.messages.end_txn import EndTxnRequest
from odradek.protocol.messages.find_coordinator import FindCoordinatorRequest
from odradek.protocol.messages.heartbeat import HeartbeatRequest
from odradek.protocol.messages.init_producer_id import InitProducerIdRequest
from odradek.protocol.messages.join_group import JoinGroupRequest
from odradek.protocol.messages.offset_commit import OffsetCommitRequest
from odradek.protocol.messages.offset_fetch import OffsetFetchRequest
from odradek.protocol.messages.sync_group import SyncGroupRequest
from odradek.protocol.messages.txn_offset_commit import TxnOffsetCommitRequest
from tests.conformance.cluster.asked import produce
from tests.conformance.cluster.talk import Asked
from tests.support.requests import build

JOIN_VERSION = 3  # the last in which a member without an id joins at once


def find(key: str, *, kind: int = 0, version: int = 6) -> Asked:
    wanted = {"coordinator_keys": [key]} if version >= 4 else {"key": key}
    if version >= 1:
        wanted["key_type"] = kind
    return build(FindCoordinatorRequest, version, **wanted), version


def join(group: str, member: str = "", version: int = JOIN_VERSION) -> Asked:
    request = build(
        JoinGroupRequest,
        version,
        group_id=group,
        session_timeout_ms=30_000,
        rebalance_timeout_ms=30_000,
        member_id=member,
        protocol_type="consumer",
        protocols=[{"name": "range", "metadata": b"about"}],
    )
    return request, version


def sync(group: str, member: str, generation: int) -> Asked:
    request = build(
        SyncGroupRequest,
        5,
        group_id=group,
        generation_id=generation,
        member_id=member,
        protocol_type="consumer",
        protocol_name="range",
        assignments=[{"member_id": member, "assignment": b"all"}],
    )
    return request, 5


def heartbeat(group: str, member: str, generation: int) -> Asked:
    request = build(HeartbeatRequest, 4, group_id=group, generation_id=generation, member_id=member)
    return request, 4


def commit(
    group: str, topic: str, offset: int, member: str = "", generation: int = -1, version: int = 9
) -> Asked:
    at = {"partition_index": 0, "committed_offset": offset, "committed_metadata": ""}
    request = build(
        OffsetCommitRequest,
        version,
        group_id=group,
        generation_id_or_member_epoch=generation,
        member_id=member,
        topics=[{"name": topic, "partitions": [at]}],
    )
    return request, version


def commit_in_transaction(group: str, topic: str, offset: int) -> Asked:
    at = {"partition_index": 0, "committed_offset": offset, "committed_metadata": ""}
    request = build(
        TxnOffsetCommitRequest,
        5,
        transactional_id="of-nobody",
        group_id=group,
        producer_id=4000,
        producer_epoch=0,
        generation_id_or_member_epoch=-1,
        topics=[{"name": topic, "partitions": [at]}],
    )
    return request, 5


def committed(group: str, topic: str, version: int = 9, partitions: Sequence[int] = (0,)) -> Asked:
    wanted = [{"name": topic, "partition_indexes": [*partitions]}]
    if version < 8:
        return build(OffsetFetchRequest, version, group_id=group, topics=wanted), version
    one = {"group_id": group, "member_epoch": -1, "topics": wanted}
    return build(OffsetFetchRequest, version, groups=[one]), version


def start(name: str) -> Asked:
    request = build(
        InitProducerIdRequest,
        5,
        transactional_id=name,
        transaction_timeout_ms=60_000,
        producer_id=-1,
        producer_epoch=-1,
    )
    return request, 5


def add(name: str, producer: tuple[int, int], topic: str, version: int = 3) -> Asked:
    topics = [{"name": topic, "partitions": [0]}]
    if version >= 4:
        one = {
            "transactional_id": name,
            "producer_id": producer[0],
            "producer_epoch": producer[1],
            "topics": topics,
        }
        return build(AddPartitionsToTxnRequest, version, transactions=[one]), version
    request = build(
        AddPartitionsToTxnRequest,
        version,
        v3_and_below_transactional_id=name,
        v3_and_below_producer_id=producer[0],
        v3_and_below_producer_epoch=producer[1],
        v3_and_below_topics=topics,
    )
    return request, version


def end(name: str, producer: tuple[int, int], *, commit: bool = True, version: int = 5) -> Asked:
    request = build(
        EndTxnRequest,
        version,
        transactional_id=name,
        producer_id=producer[0],
        producer_epoch=producer[1],
        committed=commit,
    )
    return request, version


def write(
    name: str, producer: tuple[int, int], topic: str, sequence: int, version: int = 12
) -> Asked:
    return produce(
        topic,
        "value",
        producer=(*producer, sequence),
        transactional_id=name,
        version=version,
    )
