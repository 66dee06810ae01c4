"""Requests that ask for a lot of work: long ones, and short ones that read much state."""

from collections.abc import Callable, Mapping
from typing import NamedTuple

from odradek.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatTopicPartitions,
)
from odradek.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
)
from odradek.protocol.messages.describe_groups import DescribeGroupsRequest
from odradek.protocol.messages.find_coordinator import FindCoordinatorRequest
from odradek.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from odradek.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from odradek.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
)
from odradek.protocol.schema import Message

MANY = 99_000  # below the limit of items of a request
BROKER = 4  # the resource type of a broker's configuration
EPOCH = 2  # of the first member of a consumer group


class HostileRequest(NamedTuple):
    """A request and its version, and what one client sends `first` and once."""

    make: Callable[[], Message]
    version: int
    first: Message | None = None


def offset_fetch() -> OffsetFetchRequest:
    topic = OffsetFetchRequestTopic(name="honest", partition_indexes=list(range(MANY)))
    return OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id="g", topics=[topic])])


def list_offsets() -> ListOffsetsRequest:
    partitions = [ListOffsetsPartition(partition_index=i, timestamp=-1) for i in range(MANY)]
    topic = ListOffsetsTopic(name="honest", partitions=partitions)
    return ListOffsetsRequest(replica_id=-1, topics=[topic])


def describe_configs() -> DescribeConfigsRequest:
    broker = DescribeConfigsResource(
        resource_type=BROKER, resource_name="0", configuration_keys=None
    )
    return DescribeConfigsRequest(resources=[broker] * 1000)


def heartbeat(
    member_epoch: int, partitions: list[ConsumerGroupHeartbeatTopicPartitions]
) -> ConsumerGroupHeartbeatRequest:
    return ConsumerGroupHeartbeatRequest(
        group_id="g",
        member_id="m",
        member_epoch=member_epoch,
        rebalance_timeout_ms=1000,
        subscribed_topic_names=["nowhere"],
        topic_partitions=partitions,
    )


def long_heartbeat() -> ConsumerGroupHeartbeatRequest:
    one = ConsumerGroupHeartbeatTopicPartitions(topic_id=bytes(16), partitions=[0])
    return heartbeat(EPOCH, [one] * (MANY // 2))


def metadata() -> MetadataRequest:
    topics = [MetadataRequestTopic(name=f"topic-{number}") for number in range(MANY)]
    return MetadataRequest(topics=topics, allow_auto_topic_creation=False)


REQUESTS: Mapping[str, HostileRequest] = {
    "describe_groups": HostileRequest(lambda: DescribeGroupsRequest(groups=[""] * MANY), 5),
    "find_coordinator": HostileRequest(
        lambda: FindCoordinatorRequest(coordinator_keys=["g"] * MANY), 4
    ),
    "offset_fetch": HostileRequest(offset_fetch, 8),
    "list_offsets": HostileRequest(list_offsets, 7),
    "describe_configs": HostileRequest(describe_configs, 4),
    "consumer_heartbeat": HostileRequest(long_heartbeat, 0, first=heartbeat(0, [])),
    "metadata": HostileRequest(metadata, 9),
}
