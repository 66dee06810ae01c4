"""What each handler asks the authorizer, and what it answers when the authorizer refuses.

The table was written from the sources of Apache Kafka 4.3.0; each case names the method that makes
the checks. Refused requests change nothing, so that one broker serves them all.
"""

import asyncio
import inspect
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest

from odradek.broker.broker import Broker
from odradek.broker.handlers import HANDLERS
from odradek.broker.requests.dispatch import RefusedRequestError, request_class
from odradek.broker.security.authorizer import Authorizer
from odradek.broker.security.operations import NOT_REQUESTED, AclOperation, ResourceType
from odradek.broker.security.principal import Principal
from odradek.config.broker_config import BrokerConfig
from odradek.coordinator.metadata.configs import ConfigResourceType
from odradek.coordinator.metadata.topic_creation import NewTopic
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import ErrorCode
from odradek.protocol.record import Record
from odradek.protocol.record_batch import build_batch
from tests.support.contexts import handled, request_context
from tests.support.requests import build

NOW_MS = 1_700_000_000_000
ALL = frozenset(one.name for one in ResourceType)
TOPICS = frozenset({"TOPIC"})

TOPIC_REFUSED = ErrorCode.TOPIC_AUTHORIZATION_FAILED
GROUP_REFUSED = ErrorCode.GROUP_AUTHORIZATION_FAILED
CLUSTER_REFUSED = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
TRANSACTION_REFUSED = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED

BATCH = memoryview(bytes(build_batch([Record(None, b"x", NOW_MS)])))
TRANSACTIONAL_BATCH = memoryview(
    bytes(
        build_batch(
            [Record(None, b"x", NOW_MS)],
            producer_id=1,
            producer_epoch=0,
            base_sequence=0,
            is_transactional=True,
        )
    )
)


class Case(NamedTuple):
    """A request in a version, the checks in their order, and the error codes that are not 0.

    A check is written as "OPERATION TYPE name". It is refused if `refused` has its operation or
    its type.
    """

    source: str
    key: ApiKey
    version: int
    values: dict[str, Any]
    checks: list[str]
    codes: list[ErrorCode]
    refused: frozenset[str] = ALL


def cluster(
    source: str, key: ApiKey, version: int, operation: str, codes: Any, /, **values: Any
) -> Case:
    """A request that needs one operation on the cluster."""
    return Case(source, key, version, values, [f"{operation} CLUSTER kafka-cluster"], codes)


def group(
    source: str, key: ApiKey, version: int, operation: str, codes: Any, **values: Any
) -> Case:
    """A request that needs one operation on the group g."""
    return Case(source, key, version, values, [f"{operation} GROUP g"], codes)


def written(batch: memoryview) -> list[dict[str, Any]]:
    partitions = [{"index": 0, "records": batch}, {"index": 1, "records": batch}]
    return [{"name": name, "partition_data": partitions} for name in ("t", "absent")]


def resources(*types: ConfigResourceType) -> list[dict[str, Any]]:
    return [{"resource_type": one, "resource_name": "t" if one == 2 else "1"} for one in types]


PARTITIONS = [{"partition": 0}, {"partition": 1}]
INDEXES = [{"partition_index": 0}, {"partition_index": 1}]
OFFSETS = [{"name": "t", "partitions": INDEXES}, {"name": "absent", "partitions": INDEXES[:1]}]
TO_FETCH = [
    {"name": "t", "partition_indexes": [0, 1]},
    {"name": "absent", "partition_indexes": [0]},
]
IN_TRANSACTION = [{"name": "t", "partitions": [0, 1]}]
CONFIG_TYPES = (
    ConfigResourceType.TOPIC,
    ConfigResourceType.BROKER,
    ConfigResourceType.CLIENT_METRICS,
    ConfigResourceType.GROUP,
)
CONFIG_CODES = [TOPIC_REFUSED, CLUSTER_REFUSED, CLUSTER_REFUSED, GROUP_REFUSED]
CONFIG_CHECKS = ["TOPIC t", "CLUSTER kafka-cluster", "CLUSTER kafka-cluster", "GROUP 1"]

CASES = [
    # -- records and offsets
    Case(
        "KafkaApis.handleProduceRequest",
        ApiKey.PRODUCE,
        9,
        {"acks": -1, "topic_data": written(BATCH)},
        # The quick path of Produce ends at the first refusal, and the careful path asks again.
        ["WRITE TOPIC t", "WRITE TOPIC t", "WRITE TOPIC absent"],
        [TOPIC_REFUSED] * 4,
    ),
    Case(
        "KafkaApis.handleProduceRequest, RequestUtils.hasTransactionalRecords",
        ApiKey.PRODUCE,
        9,
        {"acks": -1, "transactional_id": "x", "topic_data": written(TRANSACTIONAL_BATCH)},
        ["WRITE TRANSACTIONAL_ID x"],
        [TRANSACTION_REFUSED] * 4,
    ),
    Case(
        "KafkaApis.handleProduceRequest: the id is not used",
        ApiKey.PRODUCE,
        9,
        {"acks": -1, "transactional_id": "x", "topic_data": written(BATCH)},
        ["WRITE TOPIC t", "WRITE TOPIC absent"],
        [TOPIC_REFUSED] * 4,
    ),
    Case(
        "KafkaApis.handleFetchRequest",
        ApiKey.FETCH,
        12,
        {
            "min_bytes": 1,
            "max_wait_ms": 60_000,
            "topics": [
                {"topic": "t", "partitions": PARTITIONS},
                {"topic": "absent", "partitions": PARTITIONS},
            ],
        },
        ["READ TOPIC t", "READ TOPIC absent"],
        [TOPIC_REFUSED] * 4,
    ),
    Case(
        "KafkaApis.handleFetchRequest: an unknown id is no topic to be authorized for",
        ApiKey.FETCH,
        13,
        {"topics": [{"topic_id": b"unknown topic id", "partitions": PARTITIONS}]},
        [],
        [ErrorCode.UNKNOWN_TOPIC_ID] * 2,
    ),
    Case(
        "KafkaApis.handleFetchRequest: a follower",
        ApiKey.FETCH,
        12,
        {"replica_id": 2, "topics": [{"topic": "t", "partitions": PARTITIONS}]},
        ["CLUSTER_ACTION CLUSTER kafka-cluster"],
        [TOPIC_REFUSED] * 2,
    ),
    Case(
        "KafkaApis.handleListOffsetRequest",
        ApiKey.LIST_OFFSETS,
        7,
        {"topics": OFFSETS},
        ["DESCRIBE TOPIC t", "DESCRIBE TOPIC absent"],
        [TOPIC_REFUSED] * 3,
    ),
    Case(
        "KafkaApis.handleOffsetForLeaderEpochRequest",
        ApiKey.OFFSET_FOR_LEADER_EPOCH,
        4,
        {"topics": [{"topic": "t", "partitions": PARTITIONS}]},
        ["CLUSTER_ACTION CLUSTER kafka-cluster", "DESCRIBE TOPIC t"],
        [TOPIC_REFUSED] * 2,
    ),
    Case(
        "KafkaApis.handleDeleteRecordsRequest",
        ApiKey.DELETE_RECORDS,
        2,
        {"topics": OFFSETS},
        ["DELETE TOPIC t", "DELETE TOPIC absent"],
        [TOPIC_REFUSED] * 3,
    ),
    Case(
        "KafkaApis.handleDescribeProducersRequest",
        ApiKey.DESCRIBE_PRODUCERS,
        0,
        {
            "topics": [
                {"name": "t", "partition_indexes": [0, 1]},
                {"name": "not legal", "partition_indexes": [0]},
            ]
        },
        ["READ TOPIC t"],
        [TOPIC_REFUSED, TOPIC_REFUSED, ErrorCode.INVALID_TOPIC_EXCEPTION],
    ),
    Case(
        "KafkaApis.handleInitProducerIdRequest",
        ApiKey.INIT_PRODUCER_ID,
        4,
        {"transactional_id": None, "producer_id": -1, "producer_epoch": -1},
        ["IDEMPOTENT_WRITE CLUSTER kafka-cluster", "WRITE TOPIC (any)"],
        [CLUSTER_REFUSED],
    ),
    Case(
        "KafkaApis.handleInitProducerIdRequest",
        ApiKey.INIT_PRODUCER_ID,
        4,
        {"transactional_id": "x"},
        ["WRITE TRANSACTIONAL_ID x"],
        [TRANSACTION_REFUSED],
    ),
    # -- transactions
    Case(
        "KafkaApis.handleAddPartitionsToTxnRequest",
        ApiKey.ADD_PARTITIONS_TO_TXN,
        3,
        {"v3_and_below_transactional_id": "x", "v3_and_below_topics": IN_TRANSACTION},
        ["WRITE TRANSACTIONAL_ID x"],
        [TRANSACTION_REFUSED] * 2,
    ),
    Case(
        "KafkaApis.handleAddPartitionsToTxnRequest: topics",
        ApiKey.ADD_PARTITIONS_TO_TXN,
        3,
        {"v3_and_below_transactional_id": "x", "v3_and_below_topics": IN_TRANSACTION},
        ["WRITE TRANSACTIONAL_ID x", "WRITE TOPIC t"],
        [TOPIC_REFUSED] * 2,
        TOPICS,
    ),
    Case(
        "KafkaApis.handleAddPartitionsToTxnRequest: from brokers",
        ApiKey.ADD_PARTITIONS_TO_TXN,
        5,
        {"transactions": [{"transactional_id": "x", "topics": IN_TRANSACTION}]},
        ["CLUSTER_ACTION CLUSTER kafka-cluster"],
        [CLUSTER_REFUSED],
    ),
    Case(
        "KafkaApis.handleAddOffsetsToTxnRequest",
        ApiKey.ADD_OFFSETS_TO_TXN,
        4,
        {"transactional_id": "x", "group_id": "g"},
        ["WRITE TRANSACTIONAL_ID x"],
        [TRANSACTION_REFUSED],
    ),
    Case(
        "KafkaApis.handleAddOffsetsToTxnRequest: the group",
        ApiKey.ADD_OFFSETS_TO_TXN,
        4,
        {"transactional_id": "x", "group_id": "g"},
        ["WRITE TRANSACTIONAL_ID x", "READ GROUP g"],
        [GROUP_REFUSED],
        frozenset({"GROUP"}),
    ),
    Case(
        "KafkaApis.handleTxnOffsetCommitRequest",
        ApiKey.TXN_OFFSET_COMMIT,
        5,
        {"transactional_id": "x", "group_id": "g", "topics": OFFSETS},
        ["WRITE TRANSACTIONAL_ID x"],
        [TRANSACTION_REFUSED] * 3,
    ),
    Case(
        "KafkaApis.handleTxnOffsetCommitRequest: the group",
        ApiKey.TXN_OFFSET_COMMIT,
        5,
        {"transactional_id": "x", "group_id": "g", "topics": OFFSETS},
        ["WRITE TRANSACTIONAL_ID x", "READ GROUP g"],
        [GROUP_REFUSED] * 3,
        frozenset({"GROUP"}),
    ),
    Case(
        "KafkaApis.handleTxnOffsetCommitRequest: topics",
        ApiKey.TXN_OFFSET_COMMIT,
        5,
        {"transactional_id": "x", "group_id": "g", "topics": OFFSETS},
        ["WRITE TRANSACTIONAL_ID x", "READ GROUP g", "READ TOPIC t", "READ TOPIC absent"],
        [TOPIC_REFUSED] * 3,
        TOPICS,
    ),
    Case(
        "KafkaApis.handleEndTxnRequest",
        ApiKey.END_TXN,
        5,
        {"transactional_id": "x", "committed": True},
        ["WRITE TRANSACTIONAL_ID x"],
        [TRANSACTION_REFUSED],
    ),
    Case(
        "KafkaApis.handleWriteTxnMarkersRequest",
        ApiKey.WRITE_TXN_MARKERS,
        2,
        {"markers": [{"producer_id": 1, "topics": [{"name": "t", "partition_indexes": [0, 1]}]}]},
        ["ALTER CLUSTER kafka-cluster", "CLUSTER_ACTION CLUSTER kafka-cluster"],
        [CLUSTER_REFUSED] * 2,
    ),
    Case(
        "KafkaApis.handleDescribeTransactionsRequest",
        ApiKey.DESCRIBE_TRANSACTIONS,
        0,
        {"transactional_ids": ["x", "y"]},
        ["DESCRIBE TRANSACTIONAL_ID x", "DESCRIBE TRANSACTIONAL_ID y"],
        [TRANSACTION_REFUSED] * 2,
    ),
    Case(
        "KafkaApis.handleListTransactionsRequest: only those that may be described",
        ApiKey.LIST_TRANSACTIONS,
        2,
        {},
        ["DESCRIBE TRANSACTIONAL_ID known"],
        [],
    ),
    # -- topics
    Case(
        "KafkaApis.handleTopicMetadataRequest",
        ApiKey.METADATA,
        12,
        {"topics": [{"name": "t"}, {"name": "absent"}], "allow_auto_topic_creation": True},
        ["DESCRIBE TOPIC t", "DESCRIBE TOPIC absent"],
        [TOPIC_REFUSED] * 2,
    ),
    Case(
        "KafkaApis.handleTopicMetadataRequest: all topics are those that may be described",
        ApiKey.METADATA,
        12,
        {"topics": None},
        [
            "DESCRIBE TOPIC t",
            "DESCRIBE TOPIC __consumer_offsets",
            "DESCRIBE TOPIC __transaction_state",
        ],
        [],
    ),
    Case(
        "KafkaApis.handleTopicMetadataRequest: operations on the cluster",
        ApiKey.METADATA,
        9,
        {"topics": [], "include_cluster_authorized_operations": True},
        ["DESCRIBE CLUSTER kafka-cluster"],
        [],
    ),
    Case(
        "DescribeTopicPartitionsRequestHandler.handleDescribeTopicPartitionsRequest",
        ApiKey.DESCRIBE_TOPIC_PARTITIONS,
        0,
        {"topics": [{"name": "t"}, {"name": "absent"}], "response_partition_limit": 9},
        ["DESCRIBE TOPIC absent", "DESCRIBE TOPIC t"],
        [TOPIC_REFUSED] * 2,
    ),
    Case(
        "DescribeTopicPartitionsRequestHandler.handleDescribeTopicPartitionsRequest: all topics",
        ApiKey.DESCRIBE_TOPIC_PARTITIONS,
        0,
        {"topics": []},
        [
            "DESCRIBE TOPIC __consumer_offsets",
            "DESCRIBE TOPIC __transaction_state",
            "DESCRIBE TOPIC t",
        ],
        [],
    ),
    Case(
        "ControllerApis.createTopics",
        ApiKey.CREATE_TOPICS,
        7,
        {"topics": [{"name": "new"}, {"name": "twice"}, {"name": "twice"}]},
        [
            "CREATE CLUSTER kafka-cluster",
            "CREATE TOPIC new",
            "DESCRIBE_CONFIGS TOPIC new",
        ],
        [ErrorCode.INVALID_REQUEST, TOPIC_REFUSED],
    ),
    Case(
        "ControllerApis.deleteTopics",
        ApiKey.DELETE_TOPICS,
        6,
        {"topics": [{"name": "t"}, {"name": "absent"}, {"name": "twice"}, {"name": "twice"}]},
        [
            "DELETE CLUSTER kafka-cluster",
            "DESCRIBE TOPIC t",
            "DELETE TOPIC t",
            "DESCRIBE TOPIC absent",
            "DELETE TOPIC absent",
        ],
        [ErrorCode.INVALID_REQUEST, TOPIC_REFUSED, TOPIC_REFUSED],
    ),
    Case(
        "ControllerApis.createPartitions",
        ApiKey.CREATE_PARTITIONS,
        3,
        {"topics": [{"name": "t", "count": 9}, {"name": "twice"}, {"name": "twice"}]},
        ["ALTER TOPIC t"],
        [ErrorCode.INVALID_REQUEST, TOPIC_REFUSED],
    ),
    # -- configs
    Case(
        "ConfigHelper.handleDescribeConfigsRequest",
        ApiKey.DESCRIBE_CONFIGS,
        4,
        {"resources": resources(*CONFIG_TYPES, ConfigResourceType.BROKER_LOGGER)},
        [f"DESCRIBE_CONFIGS {one}" for one in [*CONFIG_CHECKS, "CLUSTER kafka-cluster"]],
        [*CONFIG_CODES, CLUSTER_REFUSED],
    ),
    Case(
        "ControllerApis.authorizeAlterResource",
        ApiKey.ALTER_CONFIGS,
        2,
        {"resources": resources(*CONFIG_TYPES)},
        [f"ALTER_CONFIGS {one}" for one in CONFIG_CHECKS],
        CONFIG_CODES,
    ),
    Case(
        "ControllerApis.authorizeAlterResource, KafkaApis.handleIncrementalAlterConfigsRequest",
        ApiKey.INCREMENTAL_ALTER_CONFIGS,
        1,
        {"resources": resources(*CONFIG_TYPES, ConfigResourceType.BROKER_LOGGER)},
        [f"ALTER_CONFIGS {one}" for one in [*CONFIG_CHECKS, "CLUSTER kafka-cluster"]],
        [*CONFIG_CODES, CLUSTER_REFUSED],
    ),
    cluster(
        "KafkaApis.handleListConfigResources",
        ApiKey.LIST_CONFIG_RESOURCES,
        1,
        "DESCRIBE_CONFIGS",
        [CLUSTER_REFUSED],
    ),
    # -- groups
    Case(
        "KafkaApis.getCoordinator",
        ApiKey.FIND_COORDINATOR,
        6,
        {"key_type": 0, "coordinator_keys": ["g", "h"]},
        ["DESCRIBE GROUP g", "DESCRIBE GROUP h"],
        [GROUP_REFUSED] * 2,
    ),
    Case(
        "KafkaApis.getCoordinator",
        ApiKey.FIND_COORDINATOR,
        3,
        {"key_type": 1, "key": "x"},
        ["DESCRIBE TRANSACTIONAL_ID x"],
        [TRANSACTION_REFUSED],
    ),
    Case(
        "KafkaApis.getCoordinator: a share coordinator",
        ApiKey.FIND_COORDINATOR,
        6,
        {"key_type": 2, "coordinator_keys": ["s"]},
        ["CLUSTER_ACTION CLUSTER kafka-cluster"],
        [CLUSTER_REFUSED],
    ),
    group(
        "KafkaApis.handleJoinGroupRequest",
        ApiKey.JOIN_GROUP,
        9,
        "READ",
        [GROUP_REFUSED],
        group_id="g",
    ),
    group(
        "KafkaApis.handleSyncGroupRequest",
        ApiKey.SYNC_GROUP,
        5,
        "READ",
        [GROUP_REFUSED],
        group_id="g",
        protocol_type="consumer",
        protocol_name="range",
    ),
    group(
        "KafkaApis.handleHeartbeatRequest",
        ApiKey.HEARTBEAT,
        4,
        "READ",
        [GROUP_REFUSED],
        group_id="g",
    ),
    group(
        "KafkaApis.handleLeaveGroupRequest",
        ApiKey.LEAVE_GROUP,
        5,
        "READ",
        [GROUP_REFUSED],
        group_id="g",
    ),
    group(
        "KafkaApis.handleDescribeGroupsRequest",
        ApiKey.DESCRIBE_GROUPS,
        5,
        "DESCRIBE",
        [GROUP_REFUSED],
        groups=["g"],
        include_authorized_operations=True,
    ),
    Case(
        "KafkaApis.handleListGroupsRequest: groups that may not be described are left out",
        ApiKey.LIST_GROUPS,
        5,
        {},
        ["DESCRIBE CLUSTER kafka-cluster", "DESCRIBE GROUP g"],
        [],
    ),
    Case(
        "KafkaApis.handleDeleteGroupsRequest",
        ApiKey.DELETE_GROUPS,
        2,
        {"groups_names": ["g", "h", "g"]},
        ["DELETE GROUP g", "DELETE GROUP h"],
        [GROUP_REFUSED] * 2,
    ),
    group(
        "KafkaApis.handleConsumerGroupHeartbeat",
        ApiKey.CONSUMER_GROUP_HEARTBEAT,
        1,
        "READ",
        [GROUP_REFUSED],
        group_id="g",
        subscribed_topic_names=["t"],
    ),
    Case(
        "KafkaApis.handleConsumerGroupHeartbeat: topics that may not be described",
        ApiKey.CONSUMER_GROUP_HEARTBEAT,
        1,
        {"group_id": "g", "subscribed_topic_names": ["t"]},
        ["READ GROUP g", "DESCRIBE TOPIC t"],
        [TOPIC_REFUSED],
        TOPICS,
    ),
    group(
        "KafkaApis.handleConsumerGroupDescribe",
        ApiKey.CONSUMER_GROUP_DESCRIBE,
        1,
        "DESCRIBE",
        [GROUP_REFUSED],
        group_ids=["g"],
    ),
    group(
        "KafkaApis.handleStreamsGroupHeartbeat",
        ApiKey.STREAMS_GROUP_HEARTBEAT,
        1,
        "READ",
        [GROUP_REFUSED],
        group_id="g",
    ),
    Case(
        "KafkaApis.handleStreamsGroupHeartbeat: topics that may not be described",
        ApiKey.STREAMS_GROUP_HEARTBEAT,
        1,
        {"group_id": "g", "topology": {"subtopologies": [{"source_topics": ["t"]}]}},
        ["READ GROUP g", "DESCRIBE TOPIC t"],
        [TOPIC_REFUSED],
        TOPICS,
    ),
    group(
        "KafkaApis.handleStreamsGroupTopologyDescriptionUpdate (of 4.4)",
        ApiKey.STREAMS_GROUP_TOPOLOGY_DESCRIPTION_UPDATE,
        0,
        "READ",
        [GROUP_REFUSED],
        group_id="g",
    ),
    group(
        "KafkaApis.handleStreamsGroupDescribe",
        ApiKey.STREAMS_GROUP_DESCRIBE,
        1,
        "DESCRIBE",
        [GROUP_REFUSED],
        group_ids=["g"],
    ),
    group(
        "KafkaApis.handleOffsetCommitRequest",
        ApiKey.OFFSET_COMMIT,
        9,
        "READ",
        [GROUP_REFUSED] * 3,
        group_id="g",
        topics=OFFSETS,
    ),
    Case(
        "KafkaApis.handleOffsetCommitRequest",
        ApiKey.OFFSET_COMMIT,
        9,
        {"group_id": "g", "topics": OFFSETS},
        ["READ GROUP g", "READ TOPIC t", "READ TOPIC absent"],
        [TOPIC_REFUSED] * 3,
        TOPICS,
    ),
    Case(
        "KafkaApis.handleOffsetCommitRequest: an unknown id is no topic to be authorized for",
        ApiKey.OFFSET_COMMIT,
        10,
        {
            "group_id": "g",
            "topics": [{"topic_id": b"unknown topic id", "partitions": INDEXES}],
        },
        ["READ GROUP g"],
        [ErrorCode.UNKNOWN_TOPIC_ID] * 2,
        TOPICS,
    ),
    group(
        "KafkaApis.handleOffsetFetchRequest",
        ApiKey.OFFSET_FETCH,
        9,
        "DESCRIBE",
        [GROUP_REFUSED],
        groups=[{"group_id": "g", "topics": TO_FETCH, "member_epoch": -1}],
    ),
    Case(
        "KafkaApis.fetchOffsetsForGroup",
        ApiKey.OFFSET_FETCH,
        9,
        {"groups": [{"group_id": "g", "topics": TO_FETCH, "member_epoch": -1}]},
        ["DESCRIBE GROUP g", "DESCRIBE TOPIC t", "DESCRIBE TOPIC absent"],
        [TOPIC_REFUSED] * 3,
        TOPICS,
    ),
    Case(
        "KafkaApis.fetchAllOffsetsForGroup: topics that may not be described are left out",
        ApiKey.OFFSET_FETCH,
        9,
        {"groups": [{"group_id": "g", "topics": None, "member_epoch": -1}]},
        ["DESCRIBE GROUP g", "DESCRIBE TOPIC t"],
        [],
        TOPICS,
    ),
    group(
        "KafkaApis.handleOffsetDeleteRequest",
        ApiKey.OFFSET_DELETE,
        0,
        "DELETE",
        [GROUP_REFUSED],
        group_id="g",
        topics=OFFSETS,
    ),
    Case(
        "KafkaApis.handleOffsetDeleteRequest",
        ApiKey.OFFSET_DELETE,
        0,
        {"group_id": "g", "topics": OFFSETS},
        ["DELETE GROUP g", "READ TOPIC t", "READ TOPIC absent"],
        [TOPIC_REFUSED] * 3,
        TOPICS,
    ),
    # -- share groups
    group(
        "KafkaApis.handleShareGroupHeartbeat",
        ApiKey.SHARE_GROUP_HEARTBEAT,
        1,
        "READ",
        [GROUP_REFUSED],
        group_id="g",
        subscribed_topic_names=["t"],
    ),
    Case(
        "KafkaApis.handleShareGroupHeartbeat: topics that may not be described",
        ApiKey.SHARE_GROUP_HEARTBEAT,
        1,
        {"group_id": "g", "subscribed_topic_names": ["t"]},
        ["READ GROUP g", "DESCRIBE TOPIC t"],
        [TOPIC_REFUSED],
        TOPICS,
    ),
    group(
        "KafkaApis.handleShareGroupDescribe",
        ApiKey.SHARE_GROUP_DESCRIBE,
        1,
        "DESCRIBE",
        [GROUP_REFUSED],
        group_ids=["g"],
    ),
    group(
        "KafkaApis.handleShareFetchRequest",
        ApiKey.SHARE_FETCH,
        2,
        "READ",
        [GROUP_REFUSED],
        group_id="g",
        member_id="m",
    ),
    group(
        "KafkaApis.handleShareAcknowledgeRequest",
        ApiKey.SHARE_ACKNOWLEDGE,
        2,
        "READ",
        [GROUP_REFUSED],
        group_id="g",
        member_id="m",
    ),
    *(
        cluster(
            "KafkaApis: requests to the share coordinator",
            key,
            0,
            "CLUSTER_ACTION",
            [CLUSTER_REFUSED] * 2,
            group_id="g",
            topics=[{"topic_id": b"unknown topic id", "partitions": PARTITIONS}],
        )
        for key in (
            ApiKey.INITIALIZE_SHARE_GROUP_STATE,
            ApiKey.READ_SHARE_GROUP_STATE,
            ApiKey.WRITE_SHARE_GROUP_STATE,
            ApiKey.DELETE_SHARE_GROUP_STATE,
            ApiKey.READ_SHARE_GROUP_STATE_SUMMARY,
        )
    ),
    group(
        "KafkaApis.handleDescribeShareGroupOffsetsRequest",
        ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS,
        1,
        "DESCRIBE",
        [GROUP_REFUSED],
        groups=[{"group_id": "g", "topics": [{"topic_name": "t", "partitions": [0]}]}],
    ),
    Case(
        "KafkaApis.describeShareGroupOffsetsForGroup",
        ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS,
        1,
        {"groups": [{"group_id": "g", "topics": [{"topic_name": "t", "partitions": [0]}]}]},
        ["DESCRIBE GROUP g", "DESCRIBE TOPIC t"],
        [TOPIC_REFUSED],
        TOPICS,
    ),
    group(
        "KafkaApis.handleAlterShareGroupOffsetsRequest",
        ApiKey.ALTER_SHARE_GROUP_OFFSETS,
        0,
        "READ",
        [GROUP_REFUSED],
        group_id="g",
    ),
    Case(
        "KafkaApis.handleAlterShareGroupOffsetsRequest",
        ApiKey.ALTER_SHARE_GROUP_OFFSETS,
        0,
        {
            "group_id": "s",
            "topics": [{"topic_name": name, "partitions": INDEXES[:1]} for name in ("t", "absent")],
        },
        ["READ GROUP s", "READ TOPIC t", "READ TOPIC absent"],
        [TOPIC_REFUSED] * 2,
        TOPICS,
    ),
    group(
        "KafkaApis.handleDeleteShareGroupOffsetsRequest",
        ApiKey.DELETE_SHARE_GROUP_OFFSETS,
        0,
        "DELETE",
        [GROUP_REFUSED],
        group_id="g",
    ),
    Case(
        "KafkaApis.handleDeleteShareGroupOffsetsRequest: a group of another type",
        ApiKey.DELETE_SHARE_GROUP_OFFSETS,
        0,
        {"group_id": "g", "topics": [{"topic_name": "t"}]},
        ["DELETE GROUP g", "READ TOPIC t"],
        [ErrorCode.GROUP_ID_NOT_FOUND],
        TOPICS,
    ),
    # -- delegation tokens, on a connection that is not authenticated: test_delegation_tokens.py
    *(
        Case(
            "KafkaApis.allowTokenRequests",
            key,
            2,
            {},
            [],
            [ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED],
        )
        for key in (
            ApiKey.CREATE_DELEGATION_TOKEN,
            ApiKey.RENEW_DELEGATION_TOKEN,
            ApiKey.EXPIRE_DELEGATION_TOKEN,
            ApiKey.DESCRIBE_DELEGATION_TOKEN,
        )
    ),
    # -- the cluster
    Case("KafkaApis.handleApiVersionsRequest: no checks", ApiKey.API_VERSIONS, 2, {}, [], []),
    Case(
        "KafkaApis.handleGetTelemetrySubscriptionsRequest: no checks",
        ApiKey.GET_TELEMETRY_SUBSCRIPTIONS,
        0,
        {"client_instance_id": bytes(16)},
        [],
        [],
    ),
    Case(
        "KafkaApis.handlePushTelemetryRequest: no checks",
        ApiKey.PUSH_TELEMETRY,
        0,
        {
            "client_instance_id": bytes(16),
            "subscription_id": 0,
            "terminating": False,
            "compression_type": 0,
            "metrics": b"",
        },
        [],
        [ErrorCode.INVALID_REQUEST],
    ),
    Case(
        "KafkaApis.handleSaslHandshakeRequest: no checks",
        ApiKey.SASL_HANDSHAKE,
        1,
        {"mechanism": "PLAIN"},
        [],
        [ErrorCode.ILLEGAL_SASL_STATE],
    ),
    Case(
        "KafkaApis.handleSaslAuthenticateRequest: no checks",
        ApiKey.SASL_AUTHENTICATE,
        2,
        {"auth_bytes": b""},
        [],
        [ErrorCode.ILLEGAL_SASL_STATE],
    ),
    cluster(
        "KafkaApis.handleDescribeUserScramCredentialsRequest",
        ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS,
        0,
        "DESCRIBE",
        [CLUSTER_REFUSED],
    ),
    cluster(
        "ControllerApis.handleAlterUserScramCredentials",
        ApiKey.ALTER_USER_SCRAM_CREDENTIALS,
        0,
        "ALTER",
        [CLUSTER_REFUSED],
        deletions=[{"name": "a", "mechanism": 1}],
        upsertions=[],
    ),
    Case(
        "KafkaApis.handleDescribeCluster: no checks",
        ApiKey.DESCRIBE_CLUSTER,
        1,
        {"endpoint_type": 1},
        [],
        [],
    ),
    cluster(
        "AuthHelper.computeDescribeClusterResponse: 0 operations",
        ApiKey.DESCRIBE_CLUSTER,
        1,
        "DESCRIBE",
        [],
        endpoint_type=1,
        include_cluster_authorized_operations=True,
    ),
    cluster(
        "AclApis.handleDescribeAcls",
        ApiKey.DESCRIBE_ACLS,
        3,
        "DESCRIBE",
        [CLUSTER_REFUSED],
        resource_type_filter=1,
        pattern_type_filter=1,
        operation=1,
        permission_type=1,
    ),
    cluster(
        "AclApis.handleCreateAcls",
        ApiKey.CREATE_ACLS,
        3,
        "ALTER",
        [CLUSTER_REFUSED],
        creations=[
            {
                "resource_type": 2,
                "resource_name": "t",
                "principal": "User:a",
                "host": "*",
                "operation": 3,
                "permission_type": 3,
            }
        ],
    ),
    cluster(
        "AclApis.handleDeleteAcls",
        ApiKey.DELETE_ACLS,
        3,
        "ALTER",
        [CLUSTER_REFUSED],
        filters=[{"resource_type_filter": 1, "operation": 1, "permission_type": 1}],
    ),
    cluster(
        "KafkaApis.handleAlterReplicaLogDirsRequest",
        ApiKey.ALTER_REPLICA_LOG_DIRS,
        2,
        "ALTER",
        [CLUSTER_REFUSED] * 2,
        dirs=[{"path": "/d", "topics": [{"name": "t", "partitions": [0, 1]}]}],
    ),
    cluster(
        "KafkaApis.handleDescribeLogDirsRequest",
        ApiKey.DESCRIBE_LOG_DIRS,
        4,
        "DESCRIBE",
        [CLUSTER_REFUSED],
        topics=None,
    ),
    cluster(
        "ControllerApis.handleElectLeaders",
        ApiKey.ELECT_LEADERS,
        2,
        "ALTER",
        [CLUSTER_REFUSED] * 3,
        topic_partitions=[{"topic": "t", "partitions": [0, 1]}],
    ),
    cluster(
        "ControllerApis.handleAlterPartitionReassignments",
        ApiKey.ALTER_PARTITION_REASSIGNMENTS,
        1,
        "ALTER",
        [CLUSTER_REFUSED] * 3,
        topics=OFFSETS[:1],
    ),
    cluster(
        "ControllerApis.handleListPartitionReassignments",
        ApiKey.LIST_PARTITION_REASSIGNMENTS,
        0,
        "DESCRIBE",
        [CLUSTER_REFUSED],
    ),
    cluster(
        "KafkaApis.handleDescribeClientQuotasRequest",
        ApiKey.DESCRIBE_CLIENT_QUOTAS,
        1,
        "DESCRIBE_CONFIGS",
        [CLUSTER_REFUSED],
    ),
    cluster(
        "ControllerApis.handleAlterClientQuotas",
        ApiKey.ALTER_CLIENT_QUOTAS,
        1,
        "ALTER_CONFIGS",
        [CLUSTER_REFUSED],
        entries=[{"entity": [{"entity_type": "user", "entity_name": "u"}], "ops": []}],
    ),
    cluster(
        "ControllerApis.handleDescribeQuorum",
        ApiKey.DESCRIBE_QUORUM,
        2,
        "DESCRIBE",
        [CLUSTER_REFUSED],
    ),
    cluster(
        "ControllerApis.handleUpdateFeatures", ApiKey.UPDATE_FEATURES, 1, "ALTER", [CLUSTER_REFUSED]
    ),
    cluster(
        "ControllerApis.handleUnregisterBroker",
        ApiKey.UNREGISTER_BROKER,
        0,
        "ALTER",
        [CLUSTER_REFUSED],
    ),
    cluster(
        "ControllerApis.handleUnregisterController (of 4.4)",
        ApiKey.UNREGISTER_CONTROLLER,
        0,
        "ALTER",
        [CLUSTER_REFUSED],
    ),
    cluster(
        "ControllerApis.handleAddRaftVoter", ApiKey.ADD_RAFT_VOTER, 0, "ALTER", [CLUSTER_REFUSED]
    ),
    cluster(
        "ControllerApis.handleRemoveRaftVoter",
        ApiKey.REMOVE_RAFT_VOTER,
        0,
        "ALTER",
        [CLUSTER_REFUSED],
    ),
]


class RecordingAuthorizer(Authorizer):
    """Refuses some operations and resource types, and records what it is asked."""

    has_rules = True

    def __init__(self, refused: frozenset[str]) -> None:
        self.refused = refused
        self.checks: list[str] = []

    def allows(
        self,
        principal: Principal,
        client_host: str,
        operation: AclOperation,
        resource_type: ResourceType,
        name: str,
    ) -> bool:
        assert (str(principal), client_host) == ("User:ANONYMOUS", "127.0.0.1")
        self.checks.append(f"{operation.name} {resource_type.name} {name}")
        return self.refused.isdisjoint((operation.name, resource_type.name))

    def allows_on_any(
        self,
        principal: Principal,
        client_host: str,
        operation: AclOperation,
        resource_type: ResourceType,
    ) -> bool:
        return self.allows(principal, client_host, operation, resource_type, "(any)")


class Rig:
    """A broker with the topic t, on which the group g has committed, and a client of it."""

    def __init__(self, directory: Path) -> None:
        config = BrokerConfig.from_texts(
            {
                "log.dirs": str(directory),
                "listeners": "PLAINTEXT://localhost:9092",
                "offsets.topic.num.partitions": "1",
                "node.id": "1",
            }
        )
        loop = asyncio.get_running_loop()
        self.broker = Broker(config, loop, {"PLAINTEXT": 9092}, now_ms=lambda: NOW_MS)

    async def ask(
        self,
        api: ApiKey,
        version: int,
        values: dict[str, Any],
        refused: frozenset[str] = frozenset(),
    ) -> tuple[Any, list[str]]:
        """The answer and the checks that were made for it."""
        authorizer = RecordingAuthorizer(refused)
        self.broker.security.authorizer = authorizer
        request = build(request_class(HANDLERS[api]), version, **values)
        answer = handled(request_context(self.broker, version, NOW_MS), request)
        if inspect.isawaitable(answer):
            answer = await answer
        answer.encode(version)
        return answer, authorizer.checks


def error_codes(answer: Any) -> Iterator[int]:
    """Every error code of an answer that is not 0."""
    if isinstance(answer, list):
        for item in answer:
            yield from error_codes(item)
    elif isinstance(answer, msgspec.Struct):
        for name in answer.__struct_fields__:
            value = getattr(answer, name)
            if name in ("error_code", "partition_error_code") and value:
                yield value
            yield from error_codes(value)


@pytest.fixture
async def rig(tmp_path: Path) -> AsyncIterator[Rig]:
    made = Rig(tmp_path / "data")
    await made.broker.admin.topics.create([NewTopic(name="t", partition_count=2)])
    await made.ask(ApiKey.FIND_COORDINATOR, 6, {"coordinator_keys": ["g"]})
    offsets = [{"name": "t", "partitions": INDEXES}]
    group = {"group_id": "g", "generation_id_or_member_epoch": -1, "topics": offsets}
    answer, _ = await made.ask(ApiKey.OFFSET_COMMIT, 9, group)
    assert not list(error_codes(answer))
    await made.ask(ApiKey.FIND_COORDINATOR, 6, {"key_type": 1, "coordinator_keys": ["known"]})
    new = {"transactional_id": "known", "transaction_timeout_ms": 1000}
    new |= {"producer_id": -1, "producer_epoch": -1}
    answer, _ = await made.ask(ApiKey.INIT_PRODUCER_ID, 4, new)
    assert not answer.error_code
    yield made
    await made.broker.close()


async def test_handlers_make_the_checks_of_kafka_and_answer_refusals_as_kafka_does(
    rig: Rig,
) -> None:
    results = []
    for case in CASES:
        answer, checks = await rig.ask(case.key, case.version, case.values, case.refused)
        codes = list(error_codes(answer))
        results.append((case.key.name, case.source, checks, codes))
    assert results == [(case.key.name, case.source, case.checks, case.codes) for case in CASES]
    assert set(rig.broker.metadata.topics) == {
        "t",
        "__consumer_offsets",
        "__transaction_state",
    }


def test_every_api_is_in_the_table() -> None:
    assert {case.key for case in CASES} == set(HANDLERS)


async def test_what_may_not_be_described_is_not_listed(rig: Rig) -> None:
    answer, _ = await rig.ask(ApiKey.METADATA, 12, {"topics": None}, ALL)
    assert answer.topics == []
    answer, _ = await rig.ask(ApiKey.DESCRIBE_TOPIC_PARTITIONS, 0, {}, ALL)
    assert answer.topics == []
    answer, _ = await rig.ask(ApiKey.LIST_GROUPS, 5, {}, ALL)
    assert answer.groups == []
    everything = {"groups": [{"group_id": "g", "topics": None, "member_epoch": -1}]}
    answer, _ = await rig.ask(ApiKey.OFFSET_FETCH, 9, everything, TOPICS)
    assert answer.groups[0].topics == []


async def test_groups_are_listed_to_who_may_describe_the_cluster_or_the_group(rig: Rig) -> None:
    for refused in ({"GROUP"}, {"CLUSTER"}):
        answer, _ = await rig.ask(ApiKey.LIST_GROUPS, 5, {}, frozenset(refused))
        assert [one.group_id for one in answer.groups] == ["g"]


async def test_a_topic_is_created_automatically_only_where_creation_is_authorized(rig: Rig) -> None:
    request = {"topics": [{"name": "t"}, {"name": "new"}], "allow_auto_topic_creation": True}
    answer, checks = await rig.ask(ApiKey.METADATA, 12, request, frozenset({"CREATE"}))
    assert checks[2:] == ["CREATE CLUSTER kafka-cluster", "CREATE TOPIC new"]
    codes = {topic.name: topic.error_code for topic in answer.topics}
    assert codes == {"t": ErrorCode.NONE, "new": TOPIC_REFUSED}
    assert "new" not in rig.broker.metadata.topics


async def test_metadata_shows_no_name_for_the_id_of_a_topic_that_may_not_be_described(
    rig: Rig,
) -> None:
    topic_id = rig.broker.metadata.topics["t"].id
    request = {"topics": [{"topic_id": topic_id, "name": None}]}
    answer, _ = await rig.ask(ApiKey.METADATA, 12, request, TOPICS)
    [topic] = answer.topics
    assert (topic.error_code, topic.name, topic.topic_id) == (TOPIC_REFUSED, None, topic_id)


async def test_a_created_topic_has_no_configs_where_they_may_not_be_described(rig: Rig) -> None:
    new = {"name": "new", "num_partitions": 1, "replication_factor": 1}
    refused = frozenset({"DESCRIBE_CONFIGS"})
    answer, _ = await rig.ask(ApiKey.CREATE_TOPICS, 7, {"topics": [new]}, refused)
    [topic] = answer.topics
    assert (topic.error_code, topic.topic_config_error_code) == (ErrorCode.NONE, TOPIC_REFUSED)
    assert (topic.num_partitions, topic.replication_factor, topic.configs) == (-1, -1, [])
    assert "new" in rig.broker.metadata.topics


@pytest.mark.parametrize(("refused", "name"), [({"DELETE"}, "t"), (TOPICS | {"CLUSTER"}, None)])
async def test_a_refused_deletion_by_id_names_the_topic_only_where_it_may_be_described(
    rig: Rig, refused: set[str], name: str | None
) -> None:
    topic_id = rig.broker.metadata.topics["t"].id
    request = {"topics": [{"topic_id": topic_id, "name": None}]}
    answer, _ = await rig.ask(ApiKey.DELETE_TOPICS, 6, request, frozenset(refused))
    [topic] = answer.responses
    assert (topic.error_code, topic.name, topic.topic_id) == (TOPIC_REFUSED, name, topic_id)


async def test_an_absent_topic_is_unknown_to_who_may_describe_but_not_delete_it(rig: Rig) -> None:
    request = {"topics": [{"name": "absent"}]}
    answer, _ = await rig.ask(ApiKey.DELETE_TOPICS, 6, request, frozenset({"DELETE"}))
    assert [one.error_code for one in answer.responses] == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]


async def test_a_group_is_not_described_if_a_topic_of_its_members_may_not_be(rig: Rig) -> None:
    member = {"group_id": "c", "member_id": "m", "rebalance_timeout_ms": 9000}
    join = {**member, "subscribed_topic_names": ["t"], "topic_partitions": []}
    answer, _ = await rig.ask(ApiKey.CONSUMER_GROUP_HEARTBEAT, 1, join)
    assert not answer.error_code
    request = {"group_ids": ["c"]}
    answer, checks = await rig.ask(ApiKey.CONSUMER_GROUP_DESCRIBE, 1, request, TOPICS)
    [group] = answer.groups
    assert checks == ["DESCRIBE GROUP c", "DESCRIBE TOPIC t"]
    assert (group.error_code, group.members) == (TOPIC_REFUSED, [])
    answer, _ = await rig.ask(ApiKey.CONSUMER_GROUP_DESCRIBE, 1, request)
    assert [len(group.members) for group in answer.groups] == [1]


STREAMS_JOIN = {
    "group_id": "s",
    "member_id": "m",
    "rebalance_timeout_ms": 9000,
    "topology": {
        "subtopologies": [
            {
                "subtopology_id": "0",
                "source_topics": ["t"],
                "state_changelog_topics": [{"name": "log"}],
            }
        ]
    },
    "active_tasks": [],
    "standby_tasks": [],
    "warmup_tasks": [],
    "process_id": "process",
    "client_tags": [],
}


async def test_internal_topics_are_created_only_where_creation_is_authorized(rig: Rig) -> None:
    refused = frozenset({"CREATE"})
    answer, checks = await rig.ask(ApiKey.STREAMS_GROUP_HEARTBEAT, 1, STREAMS_JOIN, refused)
    assert checks[-2:] == ["CREATE CLUSTER kafka-cluster", "CREATE TOPIC log"]
    details = [one.status_detail for one in answer.status]
    assert any(one.endswith("Unauthorized to CREATE on topics log.") for one in details), details
    assert "log" not in rig.broker.metadata.topics
    answer, _ = await rig.ask(ApiKey.STREAMS_GROUP_HEARTBEAT, 1, STREAMS_JOIN)
    assert not answer.error_code
    assert "log" in rig.broker.metadata.topics


async def test_a_streams_group_is_not_described_if_a_topic_of_it_may_not_be(rig: Rig) -> None:
    await rig.ask(ApiKey.STREAMS_GROUP_HEARTBEAT, 1, STREAMS_JOIN)
    request = {"group_ids": ["s"]}
    answer, checks = await rig.ask(ApiKey.STREAMS_GROUP_DESCRIBE, 1, request, TOPICS)
    [group] = answer.groups
    assert checks == ["DESCRIBE GROUP s", "DESCRIBE TOPIC t"]
    assert (group.error_code, group.members) == (TOPIC_REFUSED, [])
    answer, _ = await rig.ask(ApiKey.STREAMS_GROUP_DESCRIBE, 1, request)
    assert [len(group.members) for group in answer.groups] == [1]


async def test_a_member_of_a_share_group_reads_only_topics_that_it_may_read(rig: Rig) -> None:
    topic_id = rig.broker.metadata.topics["t"].id
    topics = [{"topic_id": topic_id, "partitions": INDEXES[:1]}]
    member = {"group_id": "s", "member_id": "m", "topics": topics}
    fetch = member | {"max_records": 1, "max_bytes": 1}
    answer, checks = await rig.ask(ApiKey.SHARE_FETCH, 2, fetch, TOPICS)
    assert checks == ["READ GROUP s", "READ TOPIC t"]
    assert list(error_codes(answer)) == [TOPIC_REFUSED]
    acknowledge = member | {"share_session_epoch": 1}
    answer, checks = await rig.ask(ApiKey.SHARE_ACKNOWLEDGE, 2, acknowledge, TOPICS)
    assert checks == ["READ GROUP s", "READ TOPIC t"]
    assert list(error_codes(answer)) == [TOPIC_REFUSED]


async def test_idempotent_writes_need_only_write_access_to_some_topic(rig: Rig) -> None:
    request = {"transactional_id": None, "producer_id": -1, "producer_epoch": -1}
    answer, _ = await rig.ask(ApiKey.INIT_PRODUCER_ID, 4, request, frozenset({"CLUSTER"}))
    assert not answer.error_code


async def test_a_refused_write_without_acks_closes_the_connection(rig: Rig) -> None:
    with pytest.raises(RefusedRequestError, match="TOPIC_AUTHORIZATION_FAILED"):
        await rig.ask(ApiKey.PRODUCE, 9, {"acks": 0, "topic_data": written(BATCH)}, ALL)


async def test_the_operations_in_an_answer_are_those_that_the_authorizer_allows(rig: Rig) -> None:
    refused = frozenset({"WRITE", "DELETE", "ALTER"})
    topics = {"topics": [{"name": "t"}], "include_topic_authorized_operations": True}
    answer, _ = await rig.ask(ApiKey.METADATA, 12, topics, refused)
    assert operations(answer.topics[0].topic_authorized_operations) == {
        "READ",
        "CREATE",
        "DESCRIBE",
        "DESCRIBE_CONFIGS",
        "ALTER_CONFIGS",
    }
    groups = {"groups": ["g"], "include_authorized_operations": True}
    answer, _ = await rig.ask(ApiKey.DESCRIBE_GROUPS, 5, groups, refused)
    assert operations(answer.groups[0].authorized_operations) == {
        "READ",
        "DESCRIBE",
        "DESCRIBE_CONFIGS",
        "ALTER_CONFIGS",
    }
    cluster = {"endpoint_type": 1, "include_cluster_authorized_operations": True}
    answer, _ = await rig.ask(ApiKey.DESCRIBE_CLUSTER, 1, cluster, refused)
    assert operations(answer.cluster_authorized_operations) == {
        "CREATE",
        "CLUSTER_ACTION",
        "DESCRIBE_CONFIGS",
        "ALTER_CONFIGS",
        "IDEMPOTENT_WRITE",
        "DESCRIBE",
    }
    answer, _ = await rig.ask(ApiKey.DESCRIBE_CLUSTER, 1, cluster, ALL)
    assert answer.cluster_authorized_operations == 0
    answer, _ = await rig.ask(ApiKey.DESCRIBE_CLUSTER, 1, {"endpoint_type": 1})
    assert answer.cluster_authorized_operations == NOT_REQUESTED


def operations(bit_field: int) -> set[str]:
    """The names of the operations in a bit field."""
    return {one.name for one in AclOperation if bit_field & 1 << one}
