"""Commits offsets of groups as an administrator does, without members."""

from collections.abc import Mapping

from confluent_kafka import Producer

from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.find_coordinator import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from odradek.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from odradek.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchResponse,
)
from tests.support.broker_process import BrokerProcess
from tests.support.waiting import wait_until
from tests.support.wire import WireClient

FIND_VERSION, COMMIT_VERSION, FETCH_VERSION = 4, 9, 8

LIMIT_SECONDS = 100.0


def commit(broker: BrokerProcess, group_id: str, topic: str, offsets: Mapping[int, int]) -> None:
    """Commit offsets by partition. The group begins with that if it does not exist."""
    partitions = [
        OffsetCommitRequestPartition(
            partition_index=index, committed_offset=offset, committed_metadata=""
        )
        for index, offset in offsets.items()
    ]
    topics = [OffsetCommitRequestTopic(name=topic, partitions=partitions)]
    request = OffsetCommitRequest(group_id=group_id, topics=topics)
    with WireClient(broker.port) as client:
        find = FindCoordinatorRequest(coordinator_keys=[group_id])
        client.ask(find, FindCoordinatorResponse, FIND_VERSION)  # creates the internal topic

        def is_committed() -> bool:
            answer = client.ask(request, OffsetCommitResponse, COMMIT_VERSION)
            codes = {each.error_code for each in answer.topics[0].partitions}
            return codes == {ErrorCode.NONE}

        wait_until(is_committed)


def committed(broker: BrokerProcess, group_id: str, topic: str) -> dict[int, int]:
    """The offsets that a group has committed in a topic, by partition."""
    request = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id=group_id, topics=None)])
    with WireClient(broker.port) as client:
        answer = client.ask(request, OffsetFetchResponse, FETCH_VERSION)
    return {
        partition.partition_index: partition.committed_offset
        for found in answer.groups[0].topics
        if found.name == topic
        for partition in found.partitions
    }


def produce(broker: BrokerProcess, topic: str, count: int, partition: int = 0) -> None:
    """Append records."""
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    for _ in range(count):
        producer.produce(topic, b"x", partition=partition)
    assert producer.flush(LIMIT_SECONDS) == 0
