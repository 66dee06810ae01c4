"""All that a broker tells of its data, as plain values: Kafka and odradek must tell the same."""

import time
from typing import Any

from odradek.protocol.batch_header import read_header
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
)
from odradek.protocol.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    DescribeProducersTopic,
)
from odradek.protocol.messages.fetch import FetchResponse
from odradek.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from odradek.protocol.messages.metadata import MetadataRequest, MetadataResponse
from odradek.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchResponse,
)
from odradek.protocol.record import read_records
from tests.conformance.exchange.classic_groups import described
from tests.conformance.requests import BY_NAME, fetch_request
from tests.support.wire import WireClient

TOPIC, BROKER = 2, 4
DYNAMIC_SOURCES = (1, 2, 3)  # set on the topic, on this broker, on all brokers
LATEST, EARLIEST = -1, -2
COMMITTED = 1
WAIT_SECONDS = 90.0
# Kafka listens before its broker leads all that it will.
NOT_YET = (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.NOT_LEADER_OR_FOLLOWER)


def seen(port: int, groups: list[str], classic: list[str]) -> dict[str, Any]:
    """Topics with ids, configs, offsets, records, producers; groups' offsets; brokers' configs.

    Of `classic` groups also their members and states.
    """
    with WireClient(port) as client:
        answer = client.ask(MetadataRequest(topics=None), MetadataResponse, 12)
        topics = {str(topic.name): topic for topic in answer.topics}
        return {
            "cluster": answer.cluster_id,
            "topics": {
                name: {
                    "id": topic.topic_id.hex(),
                    "internal": topic.is_internal,
                    "replicas": [
                        (one.partition_index, one.leader_id, one.replica_nodes, one.isr_nodes)
                        for one in sorted(topic.partitions, key=lambda one: one.partition_index)
                    ],
                    "configs": configs(client, TOPIC, name),
                    "logs": {
                        one.partition_index: log_of(client, name, one.partition_index)
                        for one in topic.partitions
                        if not topic.is_internal
                    },
                }
                for name, topic in sorted(topics.items())
            },
            "brokers": {name: configs(client, BROKER, name) for name in ("", "0")},
            "classic": described(client, classic),
            "groups": {group: committed_offsets(client, group) for group in (*groups, *classic)},
        }


def configs(client: WireClient, kind: int, name: str) -> dict[str, str | None]:
    """What was set on a topic or broker, and what its topics inherit of that."""
    resource = DescribeConfigsResource(
        resource_type=kind, resource_name=name, configuration_keys=None
    )
    request = DescribeConfigsRequest(resources=[resource])
    [result] = client.ask(request, DescribeConfigsResponse, 4).results
    assert result.error_code == 0, (name, result.error_message)
    return {
        one.name: one.value
        for one in sorted(result.configs, key=lambda one: one.name)
        if one.config_source in DYNAMIC_SOURCES
    }


def log_of(client: WireClient, topic: str, partition: int) -> dict[str, Any]:
    """Offsets (start, last stable, end), all batches, those that are committed, and producers."""
    end = _offset(client, topic, partition, LATEST)
    stable = _offset(client, topic, partition, LATEST, isolation_level=COMMITTED)
    start = _offset(client, topic, partition, EARLIEST)
    return {
        "offsets": (start, stable, end),
        "records": _records(client, topic, partition, start, end, isolation_level=0),
        "committed": _records(client, topic, partition, start, stable, isolation_level=COMMITTED),
        "producers": _producers(client, topic, partition),
    }


def _offset(
    client: WireClient, topic: str, partition: int, place: int, *, isolation_level: int = 0
) -> int:
    wanted = ListOffsetsPartition(partition_index=partition, timestamp=place)
    request = ListOffsetsRequest(
        replica_id=-1,
        isolation_level=isolation_level,
        topics=[ListOffsetsTopic(name=topic, partitions=[wanted])],
    )
    deadline = time.monotonic() + WAIT_SECONDS
    while True:
        [told] = client.ask(request, ListOffsetsResponse, 7).topics[0].partitions
        if told.error_code not in NOT_YET or time.monotonic() > deadline:
            assert told.error_code == 0, (topic, partition, told)
            return told.offset
        time.sleep(0.05)


def _records(
    client: WireClient, topic: str, partition: int, start: int, end: int, *, isolation_level: int
) -> list[Any]:
    """Every batch up to `end` with its records, and the aborted transactions that were told of."""
    found: list[Any] = []
    offset = start
    while offset < end:
        request = fetch_request(
            topic, offset, partitions=[partition], isolation_level=isolation_level
        )
        [told] = client.ask(request, FetchResponse, BY_NAME).responses[0].partitions
        assert told.error_code == 0, (topic, partition, offset, told.error_code)
        data = memoryview(bytes(told.records))
        assert data, f"{topic}-{partition} ends at {offset}, and should at {end}"
        while data and len(data) >= (header := read_header(data)).size_bytes:
            batch, data = data[: header.size_bytes], data[header.size_bytes :]
            offset = header.next_offset
            records = [
                (one.offset, one.timestamp_ms, one.key, one.value, one.headers)
                for one in read_records(batch, header=header)
                if one.offset >= start
            ]
            found.append((header._replace(crc=0), records))
        if told.aborted_transactions:
            aborted = {(one.producer_id, one.first_offset) for one in told.aborted_transactions}
            found.append(("aborted", sorted(aborted)))
    return found


def _producers(client: WireClient, topic: str, partition: int) -> list[tuple[int, ...]]:
    wanted = DescribeProducersTopic(name=topic, partition_indexes=[partition])
    request = DescribeProducersRequest(topics=[wanted])
    [told] = client.ask(request, DescribeProducersResponse, 0).topics[0].partitions
    assert told.error_code == 0, (topic, partition, told)
    return sorted(
        (
            one.producer_id,
            one.producer_epoch,
            one.last_sequence,
            one.last_timestamp,
            one.coordinator_epoch,
            one.current_txn_start_offset,
        )
        for one in told.active_producers
    )


def committed_offsets(client: WireClient, group: str) -> list[list[tuple[Any, ...]]]:
    """What is committed, and what of it is stable."""
    return [_fetched(client, group, stable=stable) for stable in (False, True)]


def _fetched(client: WireClient, group: str, *, stable: bool) -> list[tuple[Any, ...]]:
    wanted = OffsetFetchRequestGroup(group_id=group, topics=None)
    request = OffsetFetchRequest(groups=[wanted], require_stable=stable)
    [told] = client.ask(request, OffsetFetchResponse, 8).groups
    assert told.error_code == 0, (group, told.error_code)
    return sorted(
        (topic.name, one.partition_index, one.committed_offset, one.committed_leader_epoch,
         one.metadata, one.error_code)
        for topic in told.topics
        for one in topic.partitions
    )  # fmt: skip
