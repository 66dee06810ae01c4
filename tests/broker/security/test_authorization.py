"""What each handler asks the authorizer, and what it answers when the authorizer refuses.

The table was written from the sources of Apache Kafka 4.3.0: the methods `handle…` of KafkaApis and
ControllerApis. Refused requests change nothing, so that one broker serves them all.
"""

import asyncio
import inspect
import re
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest

from odradek.broker.broker import Broker
from odradek.broker.handlers import HANDLERS
from odradek.broker.requests.answer import RefusedRequestError
from odradek.broker.requests.dispatch import request_class
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
    """A request, the checks in their order, and the error codes that are not 0.

    A check is written as "OPERATION TYPE name". It is refused if `refused` has its operation or
    its type.
    """

    name: str
    checks: list[str]
    codes: list[ErrorCode]
    refused: frozenset[str]

    @property
    def key(self) -> ApiKey:
        return ApiKey[self.name.split()[0]]

    @property
    def version(self) -> int:
        return int(self.name.split(",")[0].split()[1])

    @property
    def values(self) -> dict[str, Any]:
        return VALUES.get(self.name) or VALUES.get(self.name.split(",")[0], {})


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
VALUES: dict[str, dict[str, Any]] = {
    "PRODUCE 9": {"acks": -1, "topic_data": written(BATCH)},
    "PRODUCE 9, transactional": {
        "acks": -1,
        "transactional_id": "x",
        "topic_data": written(TRANSACTIONAL_BATCH),
    },
    "PRODUCE 9, the id is not used": {
        "acks": -1,
        "transactional_id": "x",
        "topic_data": written(BATCH),
    },
    "FETCH 12": {
        "min_bytes": 1,
        "max_wait_ms": 60_000,
        "topics": [
            {"topic": "t", "partitions": PARTITIONS},
            {"topic": "absent", "partitions": PARTITIONS},
        ],
    },
    "FETCH 13, an unknown id is no topic to be authorized for": {
        "topics": [{"topic_id": b"unknown topic id", "partitions": PARTITIONS}]
    },
    "FETCH 12, a follower": {"replica_id": 2, "topics": [{"topic": "t", "partitions": PARTITIONS}]},
    "LIST_OFFSETS 7": {"topics": OFFSETS},
    "OFFSET_FOR_LEADER_EPOCH 4": {"topics": [{"topic": "t", "partitions": PARTITIONS}]},
    "DELETE_RECORDS 2": {"topics": OFFSETS},
    "DESCRIBE_PRODUCERS 0": {
        "topics": [
            {"name": "t", "partition_indexes": [0, 1]},
            {"name": "not legal", "partition_indexes": [0]},
        ]
    },
    "INIT_PRODUCER_ID 4": {"transactional_id": None, "producer_id": -1, "producer_epoch": -1},
    "INIT_PRODUCER_ID 4, transactional": {"transactional_id": "x"},
    "ADD_PARTITIONS_TO_TXN 3": {
        "v3_and_below_transactional_id": "x",
        "v3_and_below_topics": IN_TRANSACTION,
    },
    "ADD_PARTITIONS_TO_TXN 5, from brokers": {
        "transactions": [{"transactional_id": "x", "topics": IN_TRANSACTION}]
    },
    "ADD_OFFSETS_TO_TXN 4": {"transactional_id": "x", "group_id": "g"},
    "TXN_OFFSET_COMMIT 5": {"transactional_id": "x", "group_id": "g", "topics": OFFSETS},
    "END_TXN 5": {"transactional_id": "x", "committed": True},
    "WRITE_TXN_MARKERS 2": {
        "markers": [{"producer_id": 1, "topics": [{"name": "t", "partition_indexes": [0, 1]}]}]
    },
    "DESCRIBE_TRANSACTIONS 0": {"transactional_ids": ["x", "y"]},
    "METADATA 12": {
        "topics": [{"name": "t"}, {"name": "absent"}],
        "allow_auto_topic_creation": True,
    },
    "METADATA 12, all topics are those that may be described": {"topics": None},
    "METADATA 9, operations on the cluster": {
        "topics": [],
        "include_cluster_authorized_operations": True,
    },
    "DESCRIBE_TOPIC_PARTITIONS 0": {
        "topics": [{"name": "t"}, {"name": "absent"}],
        "response_partition_limit": 9,
    },
    "DESCRIBE_TOPIC_PARTITIONS 0, all topics": {"topics": []},
    "CREATE_TOPICS 7": {"topics": [{"name": "new"}, {"name": "twice"}, {"name": "twice"}]},
    "DELETE_TOPICS 6": {
        "topics": [{"name": "t"}, {"name": "absent"}, {"name": "twice"}, {"name": "twice"}]
    },
    "CREATE_PARTITIONS 3": {
        "topics": [{"name": "t", "count": 9}, {"name": "twice"}, {"name": "twice"}]
    },
    "DESCRIBE_CONFIGS 4": {"resources": resources(*CONFIG_TYPES, ConfigResourceType.BROKER_LOGGER)},
    "ALTER_CONFIGS 2": {"resources": resources(*CONFIG_TYPES)},
    "INCREMENTAL_ALTER_CONFIGS 1": {
        "resources": resources(*CONFIG_TYPES, ConfigResourceType.BROKER_LOGGER)
    },
    "FIND_COORDINATOR 6": {"key_type": 0, "coordinator_keys": ["g", "h"]},
    "FIND_COORDINATOR 3": {"key_type": 1, "key": "x"},
    "FIND_COORDINATOR 6, a share coordinator": {"key_type": 2, "coordinator_keys": ["s"]},
    **{
        key: {"group_id": "g"}
        for key in (
            "JOIN_GROUP 9",
            "HEARTBEAT 4",
            "LEAVE_GROUP 5",
            "STREAMS_GROUP_HEARTBEAT 1",
            "STREAMS_GROUP_TOPOLOGY_DESCRIPTION_UPDATE 0",
            "ALTER_SHARE_GROUP_OFFSETS 0",
            "DELETE_SHARE_GROUP_OFFSETS 0",
        )
    },
    "SYNC_GROUP 5": {"group_id": "g", "protocol_type": "consumer", "protocol_name": "range"},
    "DESCRIBE_GROUPS 5": {"groups": ["g"], "include_authorized_operations": True},
    "DELETE_GROUPS 2": {"groups_names": ["g", "h", "g"]},
    "CONSUMER_GROUP_HEARTBEAT 1": {"group_id": "g", "subscribed_topic_names": ["t"]},
    **{
        key: {"group_ids": ["g"]}
        for key in (
            "CONSUMER_GROUP_DESCRIBE 1",
            "STREAMS_GROUP_DESCRIBE 1",
            "SHARE_GROUP_DESCRIBE 1",
        )
    },
    "STREAMS_GROUP_HEARTBEAT 1, topics that may not be described": {
        "group_id": "g",
        "topology": {"subtopologies": [{"source_topics": ["t"]}]},
    },
    "OFFSET_COMMIT 9": {"group_id": "g", "topics": OFFSETS},
    "OFFSET_COMMIT 10, an unknown id is no topic to be authorized for": {
        "group_id": "g",
        "topics": [{"topic_id": b"unknown topic id", "partitions": INDEXES}],
    },
    "OFFSET_FETCH 9": {"groups": [{"group_id": "g", "topics": TO_FETCH, "member_epoch": -1}]},
    "OFFSET_FETCH 9, topics that may not be described are left out": {
        "groups": [{"group_id": "g", "topics": None, "member_epoch": -1}]
    },
    "OFFSET_DELETE 0": {"group_id": "g", "topics": OFFSETS},
    "SHARE_GROUP_HEARTBEAT 1": {"group_id": "g", "subscribed_topic_names": ["t"]},
    "SHARE_FETCH 2": {"group_id": "g", "member_id": "m"},
    "SHARE_ACKNOWLEDGE 2": {"group_id": "g", "member_id": "m"},
    **{
        key: {
            "group_id": "g",
            "topics": [{"topic_id": b"unknown topic id", "partitions": PARTITIONS}],
        }
        for key in (
            "INITIALIZE_SHARE_GROUP_STATE 0",
            "READ_SHARE_GROUP_STATE 0",
            "WRITE_SHARE_GROUP_STATE 0",
            "DELETE_SHARE_GROUP_STATE 0",
            "READ_SHARE_GROUP_STATE_SUMMARY 0",
        )
    },
    "DESCRIBE_SHARE_GROUP_OFFSETS 1": {
        "groups": [{"group_id": "g", "topics": [{"topic_name": "t", "partitions": [0]}]}]
    },
    "ALTER_SHARE_GROUP_OFFSETS 0, the topics": {
        "group_id": "s",
        "topics": [{"topic_name": name, "partitions": INDEXES[:1]} for name in ("t", "absent")],
    },
    "DELETE_SHARE_GROUP_OFFSETS 0, a group of another type": {
        "group_id": "g",
        "topics": [{"topic_name": "t"}],
    },
    "GET_TELEMETRY_SUBSCRIPTIONS 0": {"client_instance_id": bytes(16)},
    "PUSH_TELEMETRY 0": {
        "client_instance_id": bytes(16),
        "subscription_id": 0,
        "terminating": False,
        "compression_type": 0,
        "metrics": b"",
    },
    "SASL_HANDSHAKE 1": {"mechanism": "PLAIN"},
    "SASL_AUTHENTICATE 2": {"auth_bytes": b""},
    "ALTER_USER_SCRAM_CREDENTIALS 0": {
        "deletions": [{"name": "a", "mechanism": 1}],
        "upsertions": [],
    },
    "DESCRIBE_CLUSTER 1": {"endpoint_type": 1},
    "DESCRIBE_CLUSTER 1, 0 operations": {
        "endpoint_type": 1,
        "include_cluster_authorized_operations": True,
    },
    "DESCRIBE_ACLS 3": {
        "resource_type_filter": 1,
        "pattern_type_filter": 1,
        "operation": 1,
        "permission_type": 1,
    },
    "CREATE_ACLS 3": {
        "creations": [
            {
                "resource_type": 2,
                "resource_name": "t",
                "principal": "User:a",
                "host": "*",
                "operation": 3,
                "permission_type": 3,
            }
        ]
    },
    "DELETE_ACLS 3": {
        "filters": [{"resource_type_filter": 1, "operation": 1, "permission_type": 1}]
    },
    "ALTER_REPLICA_LOG_DIRS 2": {
        "dirs": [{"path": "/d", "topics": [{"name": "t", "partitions": [0, 1]}]}]
    },
    "DESCRIBE_LOG_DIRS 4": {"topics": None},
    "ELECT_LEADERS 0": {"topic_partitions": [{"topic": "t", "partitions": [0, 1]}]},
    "ELECT_LEADERS 2": {"topic_partitions": [{"topic": "t", "partitions": [0, 1]}]},
    "ALTER_PARTITION_REASSIGNMENTS 1": {"topics": OFFSETS[:1]},
    "ALTER_CLIENT_QUOTAS 1": {
        "entries": [{"entity": [{"entity_type": "user", "entity_name": "u"}], "ops": []}]
    },
}
# API, version and what is particular | checks | error codes | what is refused if it is not all.
# `CLUSTER` alone is the one resource of that type.
TABLE = """
PRODUCE 9 | WRITE TOPIC t, WRITE TOPIC t, WRITE TOPIC absent | 4 TOPIC
PRODUCE 9, transactional | WRITE TRANSACTIONAL_ID x | 4 TRANSACTIONAL_ID
PRODUCE 9, the id is not used | WRITE TOPIC t, WRITE TOPIC absent | 4 TOPIC
FETCH 12 | READ TOPIC t, READ TOPIC absent | 4 TOPIC
FETCH 13, an unknown id is no topic to be authorized for | - | 2 UNKNOWN_TOPIC_ID
FETCH 12, a follower | CLUSTER_ACTION CLUSTER | 2 TOPIC
LIST_OFFSETS 7 | DESCRIBE TOPIC t, DESCRIBE TOPIC absent | 3 TOPIC
OFFSET_FOR_LEADER_EPOCH 4 | CLUSTER_ACTION CLUSTER, DESCRIBE TOPIC t | 2 TOPIC
DELETE_RECORDS 2 | DELETE TOPIC t, DELETE TOPIC absent | 3 TOPIC
DESCRIBE_PRODUCERS 0 | READ TOPIC t | 2 TOPIC, INVALID_TOPIC_EXCEPTION
INIT_PRODUCER_ID 4 | IDEMPOTENT_WRITE CLUSTER, WRITE TOPIC (any) | CLUSTER
INIT_PRODUCER_ID 4, transactional | WRITE TRANSACTIONAL_ID x | TRANSACTIONAL_ID
ADD_PARTITIONS_TO_TXN 3 | WRITE TRANSACTIONAL_ID x | 2 TRANSACTIONAL_ID
ADD_PARTITIONS_TO_TXN 3, topics | WRITE TRANSACTIONAL_ID x, WRITE TOPIC t | 2 TOPIC | TOPIC
ADD_PARTITIONS_TO_TXN 5, from brokers | CLUSTER_ACTION CLUSTER | CLUSTER
ADD_OFFSETS_TO_TXN 4 | WRITE TRANSACTIONAL_ID x | TRANSACTIONAL_ID
ADD_OFFSETS_TO_TXN 4, the group | WRITE TRANSACTIONAL_ID x, READ GROUP g | GROUP | GROUP
TXN_OFFSET_COMMIT 5 | WRITE TRANSACTIONAL_ID x | 3 TRANSACTIONAL_ID
TXN_OFFSET_COMMIT 5, the group | WRITE TRANSACTIONAL_ID x, READ GROUP g | 3 GROUP | GROUP
TXN_OFFSET_COMMIT 5, topics
    | WRITE TRANSACTIONAL_ID x, READ GROUP g, READ TOPIC t, READ TOPIC absent | 3 TOPIC | TOPIC
END_TXN 5 | WRITE TRANSACTIONAL_ID x | TRANSACTIONAL_ID
WRITE_TXN_MARKERS 2 | ALTER CLUSTER, CLUSTER_ACTION CLUSTER | 2 CLUSTER
DESCRIBE_TRANSACTIONS 0
    | DESCRIBE TRANSACTIONAL_ID x, DESCRIBE TRANSACTIONAL_ID y | 2 TRANSACTIONAL_ID
LIST_TRANSACTIONS 2, only those that may be described | DESCRIBE TRANSACTIONAL_ID known | -
METADATA 12 | DESCRIBE TOPIC t, DESCRIBE TOPIC absent | 2 TOPIC
METADATA 12, all topics are those that may be described
    | DESCRIBE TOPIC t, DESCRIBE TOPIC __consumer_offsets, DESCRIBE TOPIC __transaction_state | -
METADATA 9, operations on the cluster | DESCRIBE CLUSTER | -
DESCRIBE_TOPIC_PARTITIONS 0 | DESCRIBE TOPIC absent, DESCRIBE TOPIC t | 2 TOPIC
DESCRIBE_TOPIC_PARTITIONS 0, all topics
    | DESCRIBE TOPIC __consumer_offsets, DESCRIBE TOPIC __transaction_state, DESCRIBE TOPIC t | -
CREATE_TOPICS 7
    | CREATE CLUSTER, CREATE TOPIC new, DESCRIBE_CONFIGS TOPIC new | INVALID_REQUEST, TOPIC
DELETE_TOPICS 6
    | DELETE CLUSTER, DESCRIBE TOPIC t, DELETE TOPIC t, DESCRIBE TOPIC absent, DELETE TOPIC absent
    | INVALID_REQUEST, 2 TOPIC
CREATE_PARTITIONS 3 | ALTER TOPIC t | INVALID_REQUEST, TOPIC
DESCRIBE_CONFIGS 4
    | DESCRIBE_CONFIGS TOPIC t, DESCRIBE_CONFIGS CLUSTER, DESCRIBE_CONFIGS CLUSTER,
      DESCRIBE_CONFIGS GROUP 1, DESCRIBE_CONFIGS CLUSTER
    | TOPIC, 2 CLUSTER, GROUP, CLUSTER
ALTER_CONFIGS 2
    | ALTER_CONFIGS TOPIC t, ALTER_CONFIGS CLUSTER, ALTER_CONFIGS CLUSTER, ALTER_CONFIGS GROUP 1
    | TOPIC, 2 CLUSTER, GROUP
INCREMENTAL_ALTER_CONFIGS 1
    | ALTER_CONFIGS TOPIC t, ALTER_CONFIGS CLUSTER, ALTER_CONFIGS CLUSTER,
      ALTER_CONFIGS GROUP 1, ALTER_CONFIGS CLUSTER
    | TOPIC, 2 CLUSTER, GROUP, CLUSTER
LIST_CONFIG_RESOURCES 1 | DESCRIBE_CONFIGS CLUSTER | CLUSTER
FIND_COORDINATOR 6 | DESCRIBE GROUP g, DESCRIBE GROUP h | 2 GROUP
FIND_COORDINATOR 3 | DESCRIBE TRANSACTIONAL_ID x | TRANSACTIONAL_ID
FIND_COORDINATOR 6, a share coordinator | CLUSTER_ACTION CLUSTER | CLUSTER
JOIN_GROUP 9 | READ GROUP g | GROUP
SYNC_GROUP 5 | READ GROUP g | GROUP
HEARTBEAT 4 | READ GROUP g | GROUP
LEAVE_GROUP 5 | READ GROUP g | GROUP
DESCRIBE_GROUPS 5 | DESCRIBE GROUP g | GROUP
LIST_GROUPS 5, groups that may not be described are left out
    | DESCRIBE CLUSTER, DESCRIBE GROUP g | -
DELETE_GROUPS 2 | DELETE GROUP g, DELETE GROUP h | 2 GROUP
CONSUMER_GROUP_HEARTBEAT 1 | READ GROUP g | GROUP
CONSUMER_GROUP_HEARTBEAT 1, topics that may not be described
    | READ GROUP g, DESCRIBE TOPIC t | TOPIC | TOPIC
CONSUMER_GROUP_DESCRIBE 1 | DESCRIBE GROUP g | GROUP
STREAMS_GROUP_HEARTBEAT 1 | READ GROUP g | GROUP
STREAMS_GROUP_HEARTBEAT 1, topics that may not be described
    | READ GROUP g, DESCRIBE TOPIC t | TOPIC | TOPIC
STREAMS_GROUP_TOPOLOGY_DESCRIPTION_UPDATE 0 | READ GROUP g | GROUP
STREAMS_GROUP_DESCRIBE 1 | DESCRIBE GROUP g | GROUP
OFFSET_COMMIT 9 | READ GROUP g | 3 GROUP
OFFSET_COMMIT 9, the topics | READ GROUP g, READ TOPIC t, READ TOPIC absent | 3 TOPIC | TOPIC
OFFSET_COMMIT 10, an unknown id is no topic to be authorized for
    | READ GROUP g | 2 UNKNOWN_TOPIC_ID | TOPIC
OFFSET_FETCH 9 | DESCRIBE GROUP g | GROUP
OFFSET_FETCH 9, the topics
    | DESCRIBE GROUP g, DESCRIBE TOPIC t, DESCRIBE TOPIC absent | 3 TOPIC | TOPIC
OFFSET_FETCH 9, topics that may not be described are left out
    | DESCRIBE GROUP g, DESCRIBE TOPIC t | - | TOPIC
OFFSET_DELETE 0 | DELETE GROUP g | GROUP
OFFSET_DELETE 0, the topics | DELETE GROUP g, READ TOPIC t, READ TOPIC absent | 3 TOPIC | TOPIC
SHARE_GROUP_HEARTBEAT 1 | READ GROUP g | GROUP
SHARE_GROUP_HEARTBEAT 1, topics that may not be described
    | READ GROUP g, DESCRIBE TOPIC t | TOPIC | TOPIC
SHARE_GROUP_DESCRIBE 1 | DESCRIBE GROUP g | GROUP
SHARE_FETCH 2 | READ GROUP g | GROUP
SHARE_ACKNOWLEDGE 2 | READ GROUP g | GROUP
INITIALIZE_SHARE_GROUP_STATE 0 | CLUSTER_ACTION CLUSTER | 2 CLUSTER
READ_SHARE_GROUP_STATE 0 | CLUSTER_ACTION CLUSTER | 2 CLUSTER
WRITE_SHARE_GROUP_STATE 0 | CLUSTER_ACTION CLUSTER | 2 CLUSTER
DELETE_SHARE_GROUP_STATE 0 | CLUSTER_ACTION CLUSTER | 2 CLUSTER
READ_SHARE_GROUP_STATE_SUMMARY 0 | CLUSTER_ACTION CLUSTER | 2 CLUSTER
DESCRIBE_SHARE_GROUP_OFFSETS 1 | DESCRIBE GROUP g | GROUP
DESCRIBE_SHARE_GROUP_OFFSETS 1, the topics | DESCRIBE GROUP g, DESCRIBE TOPIC t | TOPIC | TOPIC
ALTER_SHARE_GROUP_OFFSETS 0 | READ GROUP g | GROUP
ALTER_SHARE_GROUP_OFFSETS 0, the topics
    | READ GROUP s, READ TOPIC t, READ TOPIC absent | 2 TOPIC | TOPIC
DELETE_SHARE_GROUP_OFFSETS 0 | DELETE GROUP g | GROUP
DELETE_SHARE_GROUP_OFFSETS 0, a group of another type
    | DELETE GROUP g, READ TOPIC t | GROUP_ID_NOT_FOUND | TOPIC
CREATE_DELEGATION_TOKEN 2 | - | DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
RENEW_DELEGATION_TOKEN 2 | - | DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
EXPIRE_DELEGATION_TOKEN 2 | - | DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
DESCRIBE_DELEGATION_TOKEN 2 | - | DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
API_VERSIONS 2 | - | -
GET_TELEMETRY_SUBSCRIPTIONS 0 | - | -
PUSH_TELEMETRY 0 | - | INVALID_REQUEST
SASL_HANDSHAKE 1 | - | ILLEGAL_SASL_STATE
SASL_AUTHENTICATE 2 | - | ILLEGAL_SASL_STATE
DESCRIBE_USER_SCRAM_CREDENTIALS 0 | DESCRIBE CLUSTER | CLUSTER
ALTER_USER_SCRAM_CREDENTIALS 0 | ALTER CLUSTER | CLUSTER
DESCRIBE_CLUSTER 1 | - | -
DESCRIBE_CLUSTER 1, 0 operations | DESCRIBE CLUSTER | -
DESCRIBE_ACLS 3 | DESCRIBE CLUSTER | CLUSTER
CREATE_ACLS 3 | ALTER CLUSTER | CLUSTER
DELETE_ACLS 3 | ALTER CLUSTER | CLUSTER
ALTER_REPLICA_LOG_DIRS 2 | ALTER CLUSTER | 2 CLUSTER
DESCRIBE_LOG_DIRS 4 | DESCRIBE CLUSTER | CLUSTER
ELECT_LEADERS 0 | ALTER CLUSTER | 2 CLUSTER
ELECT_LEADERS 2 | ALTER CLUSTER | 3 CLUSTER
ALTER_PARTITION_REASSIGNMENTS 1 | ALTER CLUSTER | 3 CLUSTER
LIST_PARTITION_REASSIGNMENTS 0 | DESCRIBE CLUSTER | CLUSTER
DESCRIBE_CLIENT_QUOTAS 1 | DESCRIBE_CONFIGS CLUSTER | CLUSTER
ALTER_CLIENT_QUOTAS 1 | ALTER_CONFIGS CLUSTER | CLUSTER
DESCRIBE_QUORUM 2 | DESCRIBE CLUSTER | CLUSTER
UPDATE_FEATURES 1 | ALTER CLUSTER | CLUSTER
UNREGISTER_BROKER 0 | ALTER CLUSTER | CLUSTER
UNREGISTER_CONTROLLER 0 | ALTER CLUSTER | CLUSTER
ADD_RAFT_VOTER 0 | ALTER CLUSTER | CLUSTER
REMOVE_RAFT_VOTER 0 | ALTER CLUSTER | CLUSTER
"""


def cases() -> Iterator[Case]:
    """The rows of the table."""
    for row in re.sub(r"\n +", " ", TABLE.strip()).splitlines():
        name, checks, codes, *refused = row.split(" | ")
        yield Case(
            name,
            [f"{one} kafka-cluster" if one.endswith(" CLUSTER") else one for one in cell(checks)],
            [code for one in cell(codes) for code in repeated(one)],
            frozenset(refused) or ALL,
        )


def cell(text: str) -> list[str]:
    return [] if text == "-" else text.split(", ")


def repeated(text: str) -> list[ErrorCode]:
    """`2 TOPIC` is TOPIC_AUTHORIZATION_FAILED twice."""
    *count, name = text.split()
    full = f"{name}_AUTHORIZATION_FAILED"
    return [ErrorCode[full if full in ErrorCode.__members__ else name]] * int("".join(count) or 1)


CASES = list(cases())


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
        results.append(case._replace(checks=checks, codes=list(error_codes(answer))))
    assert results == CASES
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


async def test_a_topic_whose_id_is_repeated_is_not_deleted_by_name(rig: Rig) -> None:
    by_id = {"topic_id": rig.broker.metadata.topics["t"].id, "name": None}
    request = {"topics": [by_id, by_id, {"name": "t"}]}
    answer, _ = await rig.ask(ApiKey.DELETE_TOPICS, 6, request, frozenset({"CLUSTER"}))
    assert [one.error_code for one in answer.responses] == [ErrorCode.INVALID_REQUEST] * 2
    assert "t" in rig.broker.metadata.topics


async def test_an_absent_topic_is_unknown_to_who_may_describe_but_not_delete_it(rig: Rig) -> None:
    request = {"topics": [{"name": "absent"}]}
    answer, _ = await rig.ask(ApiKey.DELETE_TOPICS, 6, request, frozenset({"DELETE"}))
    assert [one.error_code for one in answer.responses] == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]


async def test_a_topic_that_is_created_after_the_check_is_not_deleted(rig: Rig) -> None:
    admin, request = rig.broker.admin, {"topics": [{"name": "new"}]}
    async with admin.operations.decision_lock:
        creation = asyncio.create_task(admin.topics.create([NewTopic(name="new")]))
        deletion = asyncio.create_task(
            rig.ask(ApiKey.DELETE_TOPICS, 6, request, frozenset({"DELETE"}))
        )
        await asyncio.sleep(0)  # both have begun
    await creation
    answer, _ = await deletion
    assert [one.error_code for one in answer.responses] == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    assert "new" in rig.broker.metadata.topics


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
