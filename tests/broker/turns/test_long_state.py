"""No request keeps the event loop for long, however much of something the broker has.

These are the requests that test_long_requests.py does not make: topologies, filters and patterns,
long values of configurations, and short requests that read much state. The CPU time of the longest
turn of the loop is measured.
"""

import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from odradek.broker.handlers import HANDLERS
from odradek.broker.requests.dispatch import request_class
from odradek.coordinator.metadata.configs import ConfigResourceType
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.record import Record
from odradek.protocol.record_batch import build_batch
from tests.support.requests import build
from tests.support.topics import create_topic
from tests.support.turns import TURN_MS, MeasuredBroker, measured_broker
from tests.support.wire import WireClient

pytestmark = pytest.mark.slow

# A turn that was long is measured again: the first one may have compiled a codec.
ATTEMPTS = 15
ANSWER_SECONDS = 60.0
NOW_MS = int(time.time() * 1000)
TOPIC, WIDE = "topic", "wide"
WIDE_PARTITIONS = 100
ACLS = 20_000
ACL_TYPES = (2, 3, 5)  # topics, groups and transactional ids
PRODUCERS = 10_000
GROUPS = 3_000
SUBSCRIPTIONS = 3_000
LONG_IDS = 200
TOPICS = 300
SETTINGS = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
    "group.streams.initial.rebalance.delay.ms": "0",
    "group.streams.assignment.interval.ms": "0",
    "group.consumer.assignment.interval.ms": "0",
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
}
SET, APPEND, SUBTRACT = 0, 2, 3
PREFIXED, LITERAL, ANY = 4, 3, 1
JOINING = {
    "member_id": "m",
    "member_epoch": 0,
    "rebalance_timeout_ms": 60_000,
    "process_id": "p",
    "active_tasks": [],
    "standby_tasks": [],
    "warmup_tasks": [],
}
LISTED = "leader.replication.throttled.replicas"

Fields = dict[str, Any]


def version_of(api: ApiKey) -> int:
    """The newest version that is announced, or in which topics have names."""
    with_names = {ApiKey.PRODUCE: 12, ApiKey.OFFSET_COMMIT: 9}
    return with_names.get(api, request_class(HANDLERS[api]).SPEC.advertised.highest)


def frame_of(client: WireClient, api: ApiKey, values: Fields) -> bytes:
    version = version_of(api)
    return client.frame_of(build(request_class(HANDLERS[api]), version, **values), version)


def send_all(client: WireClient, api: ApiKey, requests: Iterable[Fields]) -> None:
    """Send many requests, a hundred at a time, and read their answers."""
    frames = [frame_of(client, api, values) for values in requests]
    for start in range(0, len(frames), 100):
        some = frames[start : start + 100]
        client.send(b"".join(some))
        for _ in some:
            client.read_frame()


# -- what the broker has ---------------------------------------------------------------------------


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MeasuredBroker]:
    with measured_broker(Path(tmp_path_factory.mktemp("long")), SETTINGS) as started:
        create_topic(started.bootstrap, TOPIC, config={"message.timestamp.type": "CreateTime"})
        create_topic(started.bootstrap, WIDE, WIDE_PARTITIONS)
        with WireClient(started.port, timeout_s=ANSWER_SECONDS) as client:
            fill(client)
        yield started


def fill(client: WireClient) -> None:
    for _ in range(10):
        for kind in (0, 1):
            send_all(
                client, ApiKey.FIND_COORDINATOR, [{"key_type": kind, "coordinator_keys": ["x"]}]
            )
        time.sleep(0.05)
    send_all(client, ApiKey.PRODUCE, map(first_batch_of, range(PRODUCERS)))
    send_all(client, ApiKey.OFFSET_COMMIT, map(commit_of, range(GROUPS)))
    names = [
        {"name": f"t{number}", "num_partitions": 1, "replication_factor": 1}
        for number in range(TOPICS)
    ]
    send_all(client, ApiKey.CREATE_TOPICS, [{"topics": names, "timeout_ms": 1000}])
    ids = [f"{number:05}".ljust(32_000, "x") for number in range(LONG_IDS)]
    send_all(
        client,
        ApiKey.INIT_PRODUCER_ID,
        ({"transactional_id": one, "transaction_timeout_ms": 60_000} for one in ids),
    )
    creations = [
        {
            "resource_type": ACL_TYPES[number % len(ACL_TYPES)],
            "resource_name": f"prefix-{number}",
            "resource_pattern_type": PREFIXED if number % 2 else LITERAL,
            "principal": f"User:{number % 50}",
            "host": "*",
            "operation": 3,
            "permission_type": 3,
        }
        for number in range(ACLS)
    ]
    subscriptions = [
        alteration(
            ConfigResourceType.CLIENT_METRICS,
            f"s{number}",
            (
                "match",
                SET,
                f"client_source_port=[0-9]+,client_id=.*,client_source_address={number}",
            ),
        )["resources"][0]
        for number in range(SUBSCRIPTIONS)
    ]
    send_all(
        client,
        ApiKey.INCREMENTAL_ALTER_CONFIGS,
        [{"resources": subscriptions, "validate_only": False}],
    )
    send_all(client, ApiKey.ALTER_SHARE_GROUP_OFFSETS, [start_offsets([0])])
    for start in range(0, ACLS, 100):
        send_all(client, ApiKey.CREATE_ACLS, [{"creations": creations[start : start + 100]}])


def first_batch_of(producer_id: int) -> Fields:
    batch = build_batch(
        [Record(None, b"a", NOW_MS + producer_id)],
        producer_id=producer_id,
        producer_epoch=0,
        base_sequence=0,
    )
    partition = {"index": 0, "records": batch}
    return {
        "acks": -1,
        "timeout_ms": 1000,
        "topic_data": [{"name": TOPIC, "partition_data": [partition]}],
    }


def commit_of(number: int) -> Fields:
    return {
        "group_id": f"group-{number}",
        "generation_id_or_member_epoch": -1,
        "topics": [{"name": TOPIC, "partitions": [{"partition_index": 0, "committed_offset": 1}]}],
    }


# -- requests --------------------------------------------------------------------------------------


def topology(*subtopologies: Fields) -> Fields:
    """A join of a streams group."""
    named = [{"subtopology_id": f"s{at}", **each} for at, each in enumerate(subtopologies)]
    return {
        "group_id": "streams",
        "endpoint_information_epoch": -1,
        "topology": {"epoch": 1, "subtopologies": named},
        **JOINING,
    }


def acl_filter(**values: Any) -> Fields:
    return {
        "resource_type_filter": 1,
        "resource_name_filter": None,
        "pattern_type_filter": ANY,
        "principal_filter": None,
        "host_filter": None,
        "operation": 1,
        "permission_type": 1,
        **values,
    }


def alteration(kind: ConfigResourceType, name: str, *changes: tuple[str, int, str]) -> Fields:
    configs = [
        {"name": key, "config_operation": operation, "value": value}
        for key, operation, value in changes
    ]
    resource = {"resource_type": int(kind), "resource_name": name, "configs": configs}
    return {"resources": [resource], "validate_only": False}


def heartbeat(group: str, **values: Any) -> Fields:
    return {
        "group_id": group,
        "member_id": "AAAAAAAAAAAAAAAAAAAAAQ",
        "member_epoch": 0,
        "rebalance_timeout_ms": 60_000,
        "topic_partitions": [],
        **values,
    }


def quotas(*entries: tuple[Fields, list[Fields]]) -> Fields:
    named = [{"entity": [entity], "ops": ops} for entity, ops in entries]
    return {"entries": named, "validate_only": True}


def start_offsets(partitions: list[int]) -> Fields:
    """Requests for a share group, which is created."""
    offsets = [{"partition_index": each, "start_offset": 0} for each in partitions]
    return {"group_id": "shares", "topics": [{"topic_name": TOPIC, "partitions": offsets}]}


MANY = list(range(99_000))
LONG_LIST = ",".join(f"{number}:1" for number in range(4_000))
OTHER_LIST = ",".join(f"{number}:2" for number in range(4_000))

REQUESTS: dict[str, tuple[ApiKey, Fields]] = {
    "a topology of many subtopologies": (
        ApiKey.STREAMS_GROUP_HEARTBEAT,
        topology(*({"source_topics": [TOPIC]} for _ in range(2_000))),
    ),
    "a topology of too many subtopologies": (
        ApiKey.STREAMS_GROUP_HEARTBEAT,
        topology(*({"source_topics": [TOPIC]} for _ in range(40_000))),
    ),
    "a topology of many tasks": (
        ApiKey.STREAMS_GROUP_HEARTBEAT,
        {**topology(*({"source_topics": [WIDE]} for _ in range(200))), "group_id": "tasks"},
    ),
    "a topology of many source topics": (
        ApiKey.STREAMS_GROUP_HEARTBEAT,
        {
            **topology({"source_topics": [f"missing-{at}" for at in range(40_000)]}),
            "group_id": "sources",
        },
    ),
    "a topology of many repartition topics": (
        ApiKey.STREAMS_GROUP_HEARTBEAT,
        {
            **topology(
                {
                    "source_topics": [TOPIC],
                    "repartition_sink_topics": [f"sink-{at}" for at in range(40_000)],
                }
            ),
            "group_id": "sinks",
        },
    ),
    "a topology of many co-partition groups": (
        ApiKey.STREAMS_GROUP_HEARTBEAT,
        {
            **topology(
                {
                    "source_topics": [TOPIC],
                    "copartition_groups": [{"source_topics": [0]}] * 20_000,
                }
            ),
            "group_id": "copartitioned",
        },
    ),
    "the removal of many quotas of a user": (
        ApiKey.ALTER_CLIENT_QUOTAS,
        quotas(
            (
                {"entity_type": "user", "entity_name": "u"},
                [{"key": f"rate-{each}", "value": 0.0, "remove": True} for each in MANY],
            )
        ),
    ),
    "a quota of an entity of many parts": (
        ApiKey.ALTER_CLIENT_QUOTAS,
        {
            "entries": [
                {
                    "entity": [
                        {"entity_type": f"type-{each}", "entity_name": None} for each in MANY
                    ],
                    "ops": [],
                }
            ],
            "validate_only": True,
        },
    ),
    "quotas of many addresses": (
        ApiKey.ALTER_CLIENT_QUOTAS,
        quotas(
            *(
                ({"entity_type": "ip", "entity_name": f"10.0.{each // 256}.{each % 256}"}, [])
                for each in range(49_000)
            )
        ),
    ),
    "start offsets of many partitions": (ApiKey.ALTER_SHARE_GROUP_OFFSETS, start_offsets(MANY)),
    "the deletion of start offsets in many topics": (
        ApiKey.DELETE_SHARE_GROUP_OFFSETS,
        {"group_id": "shares", "topics": [{"topic_name": f"none-{each}"} for each in MANY]},
    ),
    "transactions by pattern": (
        ApiKey.LIST_TRANSACTIONS,
        {"transactional_id_pattern": "0*(x+x+)+y?", "duration_filter": -1},
    ),
    "all transactions": (ApiKey.LIST_TRANSACTIONS, {"duration_filter": -1}),
    "all groups": (ApiKey.LIST_GROUPS, {}),
    "groups by many states": (
        ApiKey.LIST_GROUPS,
        {"states_filter": [f"state-{number}" for number in range(40_000)]},
    ),
    "all ACLs": (ApiKey.DESCRIBE_ACLS, acl_filter()),
    "ACLs that match a name": (
        ApiKey.DESCRIBE_ACLS,
        acl_filter(
            pattern_type_filter=2, resource_type_filter=2, resource_name_filter="p" * 32_000
        ),
    ),
    "ACLs by many filters that match nothing": (
        ApiKey.DELETE_ACLS,
        {
            "filters": [
                acl_filter(resource_type_filter=2, resource_name_filter=f"none-{number}")
                for number in range(2_000)
            ]
        },
    ),
    "a regular expression": (
        ApiKey.CONSUMER_GROUP_HEARTBEAT,
        heartbeat("by-pattern", subscribed_topic_regex="(t[0-9]+)+|" + "x?" * 200),
    ),
    "a long regular expression": (
        ApiKey.CONSUMER_GROUP_HEARTBEAT,
        heartbeat(
            "by-long-pattern", subscribed_topic_regex="|".join(f"t{n}a*" for n in range(4_000))
        ),
    ),
    "subscription of client metrics": (
        ApiKey.INCREMENTAL_ALTER_CONFIGS,
        alteration(
            ConfigResourceType.CLIENT_METRICS,
            "metrics",
            ("metrics", SET, ",".join(f"org.apache.kafka.m{n}" for n in range(900))),
            ("match", SET, "client_id=" + "(a|b)*" * 4_000),
        ),
    ),
    "metrics of a client": (ApiKey.GET_TELEMETRY_SUBSCRIPTIONS, {"client_instance_id": bytes(16)}),
    "metrics of a client of many subscriptions": (ApiKey.GET_TELEMETRY_SUBSCRIPTIONS, {}),
    "a change of one of many subscriptions": (
        ApiKey.INCREMENTAL_ALTER_CONFIGS,
        alteration(ConfigResourceType.CLIENT_METRICS, "s1", ("metrics", SET, "org.apache.kafka")),
    ),
    "a long list": (
        ApiKey.INCREMENTAL_ALTER_CONFIGS,
        alteration(ConfigResourceType.TOPIC, TOPIC, (LISTED, SET, LONG_LIST)),
    ),
    "a longer list": (
        ApiKey.INCREMENTAL_ALTER_CONFIGS,
        alteration(ConfigResourceType.TOPIC, TOPIC, (LISTED, APPEND, OTHER_LIST)),
    ),
    "a shorter list": (
        ApiKey.INCREMENTAL_ALTER_CONFIGS,
        alteration(ConfigResourceType.TOPIC, TOPIC, (LISTED, SUBTRACT, OTHER_LIST)),
    ),
    "offsets by time": (
        ApiKey.LIST_OFFSETS,
        {
            "replica_id": -1,
            "topics": [
                {
                    "name": TOPIC,
                    "partitions": [{"partition_index": 0, "timestamp": NOW_MS + PRODUCERS - 1}],
                }
            ],
        },
    ),
    "the producers of a partition": (
        ApiKey.DESCRIBE_PRODUCERS,
        {"topics": [{"name": TOPIC, "partition_indexes": [0]}]},
    ),
}


@pytest.mark.parametrize("name", REQUESTS)
def test_a_request_about_much_keeps_nobody_waiting(broker: MeasuredBroker, name: str) -> None:
    api, values = REQUESTS[name]
    found = longest_turn_ms(broker, api, values)
    assert found <= TURN_MS, "the longest turn of the event loop, in milliseconds of CPU"


def test_the_deletion_of_many_acls_keeps_nobody_waiting(broker: MeasuredBroker) -> None:
    found = [
        turn_ms(broker, ApiKey.DELETE_ACLS, {"filters": [acl_filter(resource_type_filter=kind)]})
        for kind in ACL_TYPES
    ]
    assert min(found) <= TURN_MS, "the longest turn of the event loop, in milliseconds of CPU"


def longest_turn_ms(broker: MeasuredBroker, api: ApiKey, values: Fields) -> float:
    """The longest turn until the request is answered; the least of some attempts."""
    longest = float("inf")
    for _ in range(ATTEMPTS):
        longest = min(longest, turn_ms(broker, api, values))
        if longest <= TURN_MS:
            break
    return longest


def turn_ms(broker: MeasuredBroker, api: ApiKey, values: Fields) -> float:
    """The longest turn until the request is answered."""
    broker.turns()
    with WireClient(broker.port, timeout_s=ANSWER_SECONDS) as client:
        client.send(frame_of(client, api, values))
        with suppress(ConnectionError):
            client.read_frame()
    return broker.turns().longest_ms
