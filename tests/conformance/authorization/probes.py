"""The requests whose answers are compared: at least one of each API."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

import msgspec

from odradek.broker.handlers import HANDLERS
from odradek.broker.requests.dispatch import request_class
from odradek.broker.security.operations import ResourceType
from odradek.coordinator.metadata.configs import ConfigResourceType
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.record import Record
from odradek.protocol.record_batch import build_batch
from odradek.protocol.schema import Message
from tests.conformance.authorization.exceptions import created_later
from tests.support.requests import build

# Names with the prefix are granted one by one in literal rows; the others exist and are not.
DATA, DOOMED, NEW, AUTO, ABSENT = "m-data", "m-doomed", "m-new", "m-auto", "m-absent"
OTHER = "other"
GROUP, CONSUMERS, BEATING, JOINED, NO_GROUP = "m-group", "m-consumers", "m-beat", "m-join", "m-none"
STREAMS, STREAMING = "m-streams", "m-streaming"
SHARED, SHARING, ALTERED = "m-shared", "m-sharing", "m-altered"
OTHER_GROUP = "other-group"
TRANSACTION, NO_TRANSACTION, OTHER_TRANSACTION = "m-txn", "m-no-txn", "other-txn"
NAMES = {
    ResourceType.TOPIC: [DATA, DOOMED, NEW, AUTO, ABSENT],
    ResourceType.GROUP: [
        GROUP,
        CONSUMERS,
        BEATING,
        JOINED,
        STREAMS,
        STREAMING,
        SHARED,
        SHARING,
        NO_GROUP,
    ],
    ResourceType.TRANSACTIONAL_ID: [TRANSACTION, NO_TRANSACTION],
}
BEATING_MEMBER = "member-of-the-matrix"
# APIs that ask for no authorization.
WITHOUT_CHECKS = {
    ApiKey.API_VERSIONS,
    ApiKey.SASL_HANDSHAKE,
    ApiKey.SASL_AUTHENTICATE,
    ApiKey.GET_TELEMETRY_SUBSCRIPTIONS,
    ApiKey.PUSH_TELEMETRY,
}

BATCH = bytes(build_batch([Record(None, b"x", 1_700_000_000_000)]))
TRANSACTIONAL_BATCH = bytes(
    build_batch(
        [Record(None, b"x", 1_700_000_000_000)],
        producer_id=987_654,
        producer_epoch=0,
        base_sequence=0,
        is_transactional=True,
    )
)
Change = Callable[[Any], Any]


class IdOf(NamedTuple):
    """Stands for the id of a topic, which each broker draws."""

    topic: str


@dataclass(frozen=True)
class Probe:
    """A request. `change` takes from its answer what is no matter of authorization.

    `topic` is created, deleted or left by the request, and restored after it.
    """

    title: str
    key: ApiKey
    version: int
    values: dict[str, Any]
    change: Change | None = None
    topic: str | None = None
    has_answer: bool = True

    def request(self, topic_id: Callable[[str], bytes]) -> Message:
        """The message; `topic_id` finds the id that a broker has given to a topic."""

        def with_ids(value: Any) -> Any:
            if isinstance(value, IdOf):
                return topic_id(value.topic)
            if isinstance(value, dict):
                return {name: with_ids(one) for name, one in value.items()}
            return [with_ids(one) for one in value] if isinstance(value, list) else value

        request = request_class(HANDLERS[self.key])
        message: Message = build(request, self.version, **with_ids(self.values))
        return message


def probe(
    key: ApiKey,
    version: int,
    variant: str = "",
    change: Change | None = None,
    /,
    *,
    topic: str | None = None,
    has_answer: bool = True,
    **values: Any,
) -> Probe:
    title = f"{key.name} v{version} {variant}".rstrip()
    return Probe(title, key, version, values, change, topic, has_answer)


def _without(*fields: str) -> Change:
    """Takes these fields away, wherever they are in an answer."""

    def change(value: Any) -> Any:
        if isinstance(value, list):
            return [change(one) for one in value]
        if not isinstance(value, msgspec.Struct):
            return value
        changes = {
            name: None if name in fields else change(getattr(value, name))
            for name in value.__struct_fields__
        }
        return msgspec.structs.replace(value, **changes)  # type: ignore[type-var] # any message

    return change


def _topics(*names: str, **fields: Any) -> list[dict[str, Any]]:
    return [{"name": name, **fields} for name in names]


def _named(*names: str, **fields: Any) -> list[dict[str, Any]]:
    return [{"topic_name": name, **fields} for name in names]


def _by_id(*names: str, **fields: Any) -> list[dict[str, Any]]:
    unknown = {"topic_id": b"unknown topic id", **fields}
    return [*({"topic_id": IdOf(name), **fields} for name in names), unknown]


def _written(records: bytes) -> list[dict[str, Any]]:
    return _topics(DATA, ABSENT, OTHER, partition_data=[{"index": 0, "records": records}])


_OFFSETS = _topics(DATA, ABSENT, OTHER, partitions=[{"partition_index": 0}])
_TO_FETCH = _topics(DATA, ABSENT, OTHER, partition_indexes=[0])
_IN_TRANSACTION = _topics(DATA, OTHER, partitions=[0])
_CONFIGS = [
    {"resource_type": ConfigResourceType.TOPIC, "resource_name": DATA},
    {"resource_type": ConfigResourceType.TOPIC, "resource_name": OTHER},
    {"resource_type": ConfigResourceType.BROKER, "resource_name": "0"},
    {"resource_type": ConfigResourceType.CLIENT_METRICS, "resource_name": "metrics"},
    {"resource_type": ConfigResourceType.GROUP, "resource_name": GROUP},
    {"resource_type": ConfigResourceType.GROUP, "resource_name": OTHER_GROUP},
]
_LOGGER = {"resource_type": ConfigResourceType.BROKER_LOGGER, "resource_name": "0"}
_ENTRY = {
    "resource_type": ResourceType.TOPIC,
    "resource_name": DATA,
    "resource_pattern_type": 3,
    "principal": "User:nobody",
    "host": "10.0.0.1",
    "operation": 3,
    "permission_type": 3,
}
_ENTRIES = {"resource_type_filter": 1, "pattern_type_filter": 1, "operation": 1}
_OF_NOBODY = {
    **_ENTRIES,
    "resource_name_filter": None,
    "principal_filter": "User:nobody",
    "host_filter": None,
    "permission_type": 1,
}


def _records() -> Iterable[Probe]:
    yield probe(ApiKey.PRODUCE, 9, acks=-1, timeout_ms=5000, topic_data=_written(BATCH))
    yield probe(
        ApiKey.PRODUCE, 9, "without acks", has_answer=False, acks=0, topic_data=_written(BATCH)
    )
    yield probe(
        ApiKey.PRODUCE,
        9,
        "without acks, to one topic",
        has_answer=False,
        acks=0,
        topic_data=_written(BATCH)[:1],
    )
    by_id = _by_id(DATA, OTHER, partition_data=[{"index": 0, "records": BATCH}])
    yield probe(ApiKey.PRODUCE, 13, "by id", acks=-1, timeout_ms=5000, topic_data=by_id)
    for transactional_id in (TRANSACTION, OTHER_TRANSACTION, None):
        yield probe(
            ApiKey.PRODUCE,
            11,
            f"in a transaction of {transactional_id}",
            acks=-1,
            timeout_ms=5000,
            transactional_id=transactional_id,
            topic_data=_written(TRANSACTIONAL_BATCH),
        )
    topics = [
        {"topic": name, "partitions": [{"partition": 0, "partition_max_bytes": 1}]}
        for name in (DATA, ABSENT, OTHER)
    ]
    positions = _without("records", "high_watermark", "last_stable_offset", "log_start_offset")
    yield probe(ApiKey.FETCH, 12, "", positions, topics=topics, session_epoch=-1)
    yield probe(
        ApiKey.FETCH,
        12,
        "of a follower",
        positions,
        topics=topics,
        session_epoch=-1,
        replica_id=2,
    )
    partitions = [{"partition": 0, "partition_max_bytes": 1}]
    by_id = _by_id(DATA, OTHER, partitions=partitions)
    yield probe(ApiKey.FETCH, 13, "by id", positions, topics=by_id, session_epoch=-1)
    yield probe(ApiKey.LIST_OFFSETS, 7, "", _without("offset"), topics=_OFFSETS)
    epochs = [
        {"topic": name, "partitions": [{"partition": 0, "current_leader_epoch": -1}]}
        for name in (DATA, OTHER)
    ]
    ends = _without("end_offset", "leader_epoch")
    yield probe(ApiKey.OFFSET_FOR_LEADER_EPOCH, 4, "", ends, replica_id=-2, topics=epochs)
    yield probe(
        ApiKey.DELETE_RECORDS, 2, "", _without("low_watermark"), topics=_OFFSETS, timeout_ms=9000
    )
    producers = _topics(DATA, OTHER, "not legal", partition_indexes=[0])
    yield probe(ApiKey.DESCRIBE_PRODUCERS, 0, "", _without("active_producers"), topics=producers)


def _transactions() -> Iterable[Probe]:
    new = {"producer_id": -1, "producer_epoch": -1, "transaction_timeout_ms": 60_000}
    yield probe(ApiKey.INIT_PRODUCER_ID, 4, "idempotent", transactional_id=None, **new)
    for name in (TRANSACTION, OTHER_TRANSACTION):
        yield probe(ApiKey.INIT_PRODUCER_ID, 4, name, transactional_id=name, **new)
        yield probe(
            ApiKey.INIT_PRODUCER_ID,
            6,
            f"two-phase {name}",
            transactional_id=name,
            enable2_pc=True,
            **new,
        )
    wrong = {"producer_id": 987_654, "producer_epoch": 0}
    for name in (TRANSACTION, NO_TRANSACTION, OTHER_TRANSACTION):
        before = {f"v3_and_below_{field}": value for field, value in wrong.items()}
        yield probe(
            ApiKey.ADD_PARTITIONS_TO_TXN,
            3,
            name,
            v3_and_below_transactional_id=name,
            v3_and_below_topics=_topics(DATA, OTHER, "__consumer_offsets", partitions=[0]),
            **before,
        )
        yield probe(
            ApiKey.ADD_PARTITIONS_TO_TXN,
            3,
            f"{name}, one topic",
            v3_and_below_transactional_id=name,
            v3_and_below_topics=_IN_TRANSACTION[:1],
            **before,
        )
        for group in (GROUP, OTHER_GROUP):
            names = {"transactional_id": name, "group_id": group}
            yield probe(ApiKey.ADD_OFFSETS_TO_TXN, 4, f"{name} {group}", **names, **wrong)
            for version in (4, 5):
                yield probe(
                    ApiKey.TXN_OFFSET_COMMIT,
                    version,
                    f"{name} {group}",
                    topics=_OFFSETS,
                    **names,
                    **wrong,
                )
        yield probe(ApiKey.END_TXN, 4, name, transactional_id=name, committed=True, **wrong)
    checked = {
        "transactional_id": TRANSACTION,
        "verify_only": True,
        "topics": _IN_TRANSACTION,
        **wrong,
    }
    yield probe(ApiKey.ADD_PARTITIONS_TO_TXN, 5, "of brokers", transactions=[checked])
    marker = {"producer_id": 1, "topics": _topics(ABSENT, partition_indexes=[0])}
    yield probe(ApiKey.WRITE_TXN_MARKERS, 1, markers=[marker])
    ids = [TRANSACTION, NO_TRANSACTION, OTHER_TRANSACTION]
    yield probe(ApiKey.DESCRIBE_TRANSACTIONS, 0, transactional_ids=ids)
    yield probe(ApiKey.LIST_TRANSACTIONS, 1, duration_filter=-1)
    yield probe(
        ApiKey.LIST_TRANSACTIONS, 2, "by pattern", duration_filter=-1, transactional_id_pattern=".*"
    )


def _topics_of_the_cluster() -> Iterable[Probe]:
    operations = {"include_topic_authorized_operations": True}
    names = _topics(DATA, ABSENT, OTHER)
    for version in (0, 4, 12):
        asked = operations if version == 12 else {}
        creating = {"allow_auto_topic_creation": False} if version else {}
        # v0 cannot forbid that topics are created.
        there = names if version else _topics(DATA, OTHER)
        yield probe(ApiKey.METADATA, version, "by name", topics=there, **asked, **creating)
    by_id = _by_id(DATA, OTHER, name=None)
    yield probe(ApiKey.METADATA, 12, "by id", topics=by_id, **operations)
    yield probe(ApiKey.METADATA, 12, "all", topics=None, **operations)
    yield probe(ApiKey.METADATA, 0, "all", topics=[])
    yield probe(
        ApiKey.METADATA,
        9,
        "operations on the cluster",
        topics=[],
        include_cluster_authorized_operations=True,
    )
    yield probe(
        ApiKey.METADATA,
        12,
        "creates",
        created_later,
        topic=AUTO,
        topics=_topics(AUTO),
        allow_auto_topic_creation=True,
    )
    yield probe(
        ApiKey.DESCRIBE_TOPIC_PARTITIONS, 0, "by name", topics=names, response_partition_limit=9
    )
    yield probe(ApiKey.DESCRIBE_TOPIC_PARTITIONS, 0, "all", response_partition_limit=99)
    new = {"num_partitions": 1, "replication_factor": 1}
    yield probe(
        ApiKey.CREATE_TOPICS,
        7,
        "",
        _without("configs"),
        timeout_ms=30_000,
        topic=NEW,
        topics=[{"name": NEW, **new}, {"name": DATA, **new}, *_topics("twice", "twice")],
    )
    yield probe(
        ApiKey.DELETE_TOPICS,
        6,
        timeout_ms=30_000,
        topic=DOOMED,
        topics=_topics(DOOMED, ABSENT, "twice", "twice"),
    )
    yield probe(
        ApiKey.DELETE_TOPICS,
        6,
        "by id",
        timeout_ms=30_000,
        topic=DOOMED,
        topics=_by_id(DOOMED, name=None),
    )
    yield probe(
        ApiKey.CREATE_PARTITIONS,
        3,
        timeout_ms=30_000,
        topics=[
            {"name": DATA, "count": 1, "assignments": None},
            {"name": ABSENT, "count": 3, "assignments": None},
            {"name": OTHER, "count": 1, "assignments": None},
            *_topics("twice", "twice"),
        ],
    )


def _configs() -> Iterable[Probe]:
    yield probe(ApiKey.DESCRIBE_CONFIGS, 4, "", _without("configs"), resources=[*_CONFIGS, _LOGGER])
    retention = [{"name": "retention.ms", "value": "1000"}]
    yield probe(
        ApiKey.ALTER_CONFIGS,
        2,
        validate_only=True,
        resources=[
            {**resource, "configs": retention if resource in _CONFIGS[:2] else []}
            for resource in _CONFIGS
        ],
    )
    yield probe(
        ApiKey.INCREMENTAL_ALTER_CONFIGS,
        1,
        validate_only=True,
        resources=[*_CONFIGS, _LOGGER],
    )
    for version in (0, 1):
        yield probe(ApiKey.LIST_CONFIG_RESOURCES, version)


def _groups() -> Iterable[Probe]:
    keys = {0: [GROUP, NO_GROUP, OTHER_GROUP], 1: [TRANSACTION, OTHER_TRANSACTION], 2: ["share"]}
    for key_type, names in keys.items():
        yield probe(
            ApiKey.FIND_COORDINATOR,
            6,
            f"type {key_type}",
            key_type=key_type,
            coordinator_keys=names,
        )
    yield probe(ApiKey.FIND_COORDINATOR, 3, "group", key_type=0, key=GROUP)
    yield probe(ApiKey.FIND_COORDINATOR, 3, "transaction", key_type=1, key=TRANSACTION)
    for group in (GROUP, OTHER_GROUP):
        member = {"group_id": group, "generation_id": 1, "member_id": "nobody"}
        yield probe(ApiKey.HEARTBEAT, 4, group, **member)
        protocol = {"protocol_type": "consumer", "protocol_name": "range"}
        yield probe(ApiKey.SYNC_GROUP, 5, group, **member, **protocol)
        yield probe(ApiKey.SYNC_GROUP, 5, f"{group}, without a protocol", **member)
        leaving = [{"member_id": "nobody"}]
        yield probe(ApiKey.LEAVE_GROUP, 4, group, group_id=group, members=leaving)
        commit = {"group_id": group, "generation_id_or_member_epoch": -1}
        yield probe(ApiKey.OFFSET_COMMIT, 9, group, topics=_OFFSETS, **commit)
        by_id = _by_id(DATA, OTHER, partitions=[{"partition_index": 0}])
        yield probe(ApiKey.OFFSET_COMMIT, 10, f"{group}, by id", topics=by_id, **commit)
        yield probe(ApiKey.OFFSET_DELETE, 0, group, group_id=group, topics=_OFFSETS)
    yield probe(
        ApiKey.JOIN_GROUP,
        9,
        group_id=JOINED,
        protocol_type="consumer",
        session_timeout_ms=10_000,
        rebalance_timeout_ms=10_000,
        protocols=[{"name": "range", "metadata": b""}],
    )
    wanted = [GROUP, NO_GROUP, OTHER_GROUP]
    for version in (5, 6):
        yield probe(
            ApiKey.DESCRIBE_GROUPS, version, groups=wanted, include_authorized_operations=True
        )
    yield probe(ApiKey.LIST_GROUPS, 5)
    yield probe(ApiKey.DELETE_GROUPS, 2, groups_names=[NO_GROUP, "other-none"])
    for version in (1, 7):
        yield probe(
            ApiKey.OFFSET_FETCH,
            version,
            "one group",
            group_id=GROUP,
            topics=_TO_FETCH,
            **({"require_stable": False} if version > 6 else {}),
        )
    groups = [{"group_id": name, "topics": _TO_FETCH, "member_epoch": -1} for name in wanted]
    every = [{"group_id": name, "topics": None, "member_epoch": -1} for name in wanted]
    yield probe(ApiKey.OFFSET_FETCH, 9, "by topic", groups=groups)
    yield probe(ApiKey.OFFSET_FETCH, 9, "all topics", groups=every)
    yield probe(ApiKey.OFFSET_FETCH, 10, "all topics", groups=every)
    by_id = [{**group, "topics": _by_id(DATA, OTHER, partition_indexes=[0])} for group in groups]
    yield probe(ApiKey.OFFSET_FETCH, 10, "by id", groups=by_id)
    beat = {
        "group_id": BEATING,
        "member_id": BEATING_MEMBER,
        "rebalance_timeout_ms": 10_000,
        "topic_partitions": [],
    }
    for names in ([DATA], [DATA, OTHER]):
        yield probe(
            ApiKey.CONSUMER_GROUP_HEARTBEAT,
            1,
            f"to {' and '.join(names)}",
            _without("heartbeat_interval_ms", "member_epoch"),
            subscribed_topic_names=names,
            **beat,
        )
    yield probe(
        ApiKey.CONSUMER_GROUP_DESCRIBE,
        1,
        group_ids=[CONSUMERS, NO_GROUP, OTHER_GROUP],
        include_authorized_operations=True,
    )


def _streams_groups() -> Iterable[Probe]:
    for names in ([DATA], [DATA, OTHER]):
        yield probe(
            ApiKey.STREAMS_GROUP_HEARTBEAT,
            0,
            f"reads {' and '.join(names)}",
            _without("member_epoch"),
            **streams_member(STREAMING, names),
        )
    yield probe(ApiKey.STREAMS_GROUP_TOPOLOGY_DESCRIPTION_UPDATE, 0, group_id=STREAMS)
    yield probe(
        ApiKey.STREAMS_GROUP_DESCRIBE,
        0,
        group_ids=[STREAMS, NO_GROUP, OTHER_GROUP],
        include_authorized_operations=True,
    )


def streams_member(group: str, topics: list[str]) -> dict[str, Any]:
    """A member of a streams group joins, with a topology that reads topics."""
    return {
        "group_id": group,
        "member_id": BEATING_MEMBER,
        "rebalance_timeout_ms": 10_000,
        "topology": {"subtopologies": [{"subtopology_id": "0", "source_topics": topics}]},
        "active_tasks": [],
        "standby_tasks": [],
        "warmup_tasks": [],
        "process_id": "process",
        "client_tags": [],
    }


def _share_groups() -> Iterable[Probe]:
    for names in ([DATA], [DATA, OTHER]):
        yield probe(
            ApiKey.SHARE_GROUP_HEARTBEAT,
            1,
            f"reads {' and '.join(names)}",
            _without("member_epoch", "assignment"),
            group_id=SHARING,
            member_id=BEATING_MEMBER,
            subscribed_topic_names=names,
        )
    yield probe(
        ApiKey.SHARE_GROUP_DESCRIBE,
        1,
        group_ids=[SHARED, NO_GROUP, OTHER_GROUP],
        include_authorized_operations=True,
    )
    partitions = [{"partition_index": 0}]
    yield probe(
        ApiKey.SHARE_FETCH,
        2,
        "",
        _without("records", "acquired_records"),
        group_id=SHARED,
        member_id=BEATING_MEMBER,
        max_wait_ms=500,
        min_bytes=1,
        max_records=1,
        batch_size=1,
        topics=[{"topic_id": IdOf(name), "partitions": partitions} for name in (DATA, OTHER)],
    )
    # There is no such session: what may be read of the topics is not looked at.
    yield probe(
        ApiKey.SHARE_ACKNOWLEDGE,
        2,
        group_id=SHARED,
        member_id="nobody",
        share_session_epoch=1,
    )
    starts = [{"partition_index": 0, "start_offset": 0}]
    yield probe(
        ApiKey.ALTER_SHARE_GROUP_OFFSETS,
        0,
        group_id=ALTERED,
        topics=_named(DATA, OTHER, ABSENT, partitions=starts),
    )
    named = _named(DATA, OTHER, partitions=[0])
    for variant, topics in (("named", named), ("all", None)):
        yield probe(
            ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS,
            1,
            variant,
            groups=[
                {"group_id": name, "topics": topics} for name in (ALTERED, NO_GROUP, OTHER_GROUP)
            ],
        )
    yield probe(
        ApiKey.DELETE_SHARE_GROUP_OFFSETS,
        0,
        group_id=ALTERED,
        topics=_named(OTHER, ABSENT),
    )


def _share_states() -> Iterable[Probe]:
    """Requests of one broker to another about a topic that does not exist."""
    for key in (
        ApiKey.INITIALIZE_SHARE_GROUP_STATE,
        ApiKey.READ_SHARE_GROUP_STATE,
        ApiKey.WRITE_SHARE_GROUP_STATE,
        ApiKey.DELETE_SHARE_GROUP_STATE,
        ApiKey.READ_SHARE_GROUP_STATE_SUMMARY,
    ):
        topics = [{"topic_id": b"unknown topic id", "partitions": [{"partition": 0}]}]
        yield probe(key, 0, group_id=SHARED, topics=topics)


def _cluster() -> Iterable[Probe]:
    yield probe(
        ApiKey.DESCRIBE_CLUSTER, 1, endpoint_type=1, include_cluster_authorized_operations=True
    )
    yield probe(ApiKey.DESCRIBE_CLUSTER, 1, "without operations", endpoint_type=1)
    yield probe(
        ApiKey.ALTER_REPLICA_LOG_DIRS,
        2,
        dirs=[{"path": "/nowhere", "topics": _topics(DATA, partitions=[0])}],
    )
    yield probe(ApiKey.DESCRIBE_LOG_DIRS, 4, "", _without("results"), topics=None)
    yield probe(ApiKey.ELECT_LEADERS, 2, topic_partitions=[{"topic": DATA, "partitions": [0]}])
    yield probe(
        ApiKey.ALTER_PARTITION_REASSIGNMENTS,
        0,
        topics=_topics(ABSENT, partitions=[{"partition_index": 0, "replicas": [0]}]),
    )
    yield probe(ApiKey.LIST_PARTITION_REASSIGNMENTS, 0, topics=None)
    yield probe(ApiKey.DESCRIBE_CLIENT_QUOTAS, 1)
    yield probe(ApiKey.ALTER_CLIENT_QUOTAS, 1, validate_only=True)
    yield probe(ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, 0, users=[{"name": "nobody"}])
    yield probe(
        ApiKey.ALTER_USER_SCRAM_CREDENTIALS, 0, deletions=[{"name": "nobody", "mechanism": 1}]
    )
    yield probe(ApiKey.DESCRIBE_QUORUM, 2, "", _without("topics", "nodes"))
    yield probe(ApiKey.UPDATE_FEATURES, 1, validate_only=True)
    yield probe(ApiKey.UNREGISTER_BROKER, 0, broker_id=99)
    yield probe(ApiKey.UNREGISTER_CONTROLLER, 0, controller_id=99)
    yield probe(ApiKey.ADD_RAFT_VOTER, 0, cluster_id="another")
    yield probe(ApiKey.REMOVE_RAFT_VOTER, 0, cluster_id="another")
    yield probe(ApiKey.DESCRIBE_ACLS, 3, **_OF_NOBODY)
    yield probe(ApiKey.CREATE_ACLS, 3, creations=[_ENTRY, _ENTRY, {**_ENTRY, "resource_name": ""}])
    yield probe(ApiKey.DELETE_ACLS, 3, filters=[_OF_NOBODY, {**_OF_NOBODY, "operation": 99}])
    owner = {"owner_principal_type": "User", "owner_principal_name": "somebody"}
    yield probe(ApiKey.CREATE_DELEGATION_TOKEN, 3, **owner)
    yield probe(ApiKey.RENEW_DELEGATION_TOKEN, 2, hmac=b"x")
    yield probe(ApiKey.EXPIRE_DELEGATION_TOKEN, 2, hmac=b"x")
    yield probe(ApiKey.DESCRIBE_DELEGATION_TOKEN, 3, owners=None)


def all_probes() -> list[Probe]:
    """The probes of the APIs that odradek serves."""
    parts = (
        *(_records, _transactions, _topics_of_the_cluster, _configs),
        *(_groups, _share_groups, _share_states, _streams_groups, _cluster),
    )
    return [one for part in parts for one in part() if one.key in HANDLERS]
