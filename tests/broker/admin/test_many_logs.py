"""A request about all logs of a broker that has many of them keeps nobody waiting.

Each request is sent once, in an order in which each finds what it needs, because creating that many
logs takes seconds; a few times more if the machine was too busy. The longest turn of the event loop
is measured, in CPU time.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from odradek.broker.handlers import HANDLERS
from odradek.broker.requests.dispatch import request_class
from odradek.coordinator.metadata.configs import ConfigResourceType
from odradek.protocol.api_keys import ApiKey
from tests.support.lengths import by_length
from tests.support.requests import build
from tests.support.turns import TURN_MS, MeasuredBroker, measured_broker
from tests.support.wire import WireClient

pytestmark = pytest.mark.slow

WIDE = "wide"
PARTITIONS = by_length(4_950, 9_900)  # near the most that one request may create
ANSWER_SECONDS = 120.0

Fields = dict[str, Any]


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MeasuredBroker]:
    with measured_broker(Path(tmp_path_factory.mktemp("many"))) as started:
        yield started


def set_retention(kind: ConfigResourceType, name: str, key: str) -> Fields:
    change = {"name": key, "config_operation": 0, "value": "100000"}
    resource = {"resource_type": int(kind), "resource_name": name, "configs": [change]}
    return {"resources": [resource], "validate_only": False}


REQUESTS: dict[str, tuple[ApiKey, Fields]] = {
    "create": (
        ApiKey.CREATE_TOPICS,
        {
            "topics": [{"name": WIDE, "num_partitions": PARTITIONS, "replication_factor": 1}],
            "timeout_ms": 60_000,
        },
    ),
    "metadata": (ApiKey.METADATA, {"topics": [{"name": WIDE}]}),
    "describe partitions": (
        ApiKey.DESCRIBE_TOPIC_PARTITIONS,
        {"topics": [{"name": WIDE}], "response_partition_limit": 2_000},
    ),
    "describe log directories": (ApiKey.DESCRIBE_LOG_DIRS, {"topics": None}),
    "list offsets": (
        ApiKey.LIST_OFFSETS,
        {
            "replica_id": -1,
            "topics": [
                {
                    "name": WIDE,
                    "partitions": [
                        {"partition_index": index, "timestamp": -1} for index in range(PARTITIONS)
                    ],
                }
            ],
        },
    ),
    "delete records": (
        ApiKey.DELETE_RECORDS,
        {
            "topics": [
                {
                    "name": WIDE,
                    "partitions": [
                        {"partition_index": index, "offset": -1} for index in range(PARTITIONS)
                    ],
                }
            ],
            "timeout_ms": 60_000,
        },
    ),
    "change the topic's settings": (
        ApiKey.INCREMENTAL_ALTER_CONFIGS,
        set_retention(ConfigResourceType.TOPIC, WIDE, "retention.ms"),
    ),
    "change the broker's settings": (
        ApiKey.INCREMENTAL_ALTER_CONFIGS,
        set_retention(ConfigResourceType.BROKER, "", "log.retention.ms"),
    ),
    "elect leaders": (
        ApiKey.ELECT_LEADERS,
        {
            "election_type": 0,
            "topic_partitions": [{"topic": WIDE, "partitions": list(range(PARTITIONS))}],
            "timeout_ms": 60_000,
        },
    ),
    "elect leaders of all": (
        ApiKey.ELECT_LEADERS,
        {"election_type": 0, "topic_partitions": None, "timeout_ms": 60_000},
    ),
    "reassign": (
        ApiKey.ALTER_PARTITION_REASSIGNMENTS,
        {
            "timeout_ms": 60_000,
            "topics": [
                {
                    "name": WIDE,
                    "partitions": [
                        {"partition_index": index, "replicas": [1]} for index in range(PARTITIONS)
                    ],
                }
            ],
        },
    ),
    "list reassignments": (
        ApiKey.LIST_PARTITION_REASSIGNMENTS,
        {"timeout_ms": 60_000, "topics": None},
    ),
    "create partitions": (
        ApiKey.CREATE_PARTITIONS,
        {
            "topics": [{"name": WIDE, "count": 2 * PARTITIONS, "assignments": None}],
            "timeout_ms": 60_000,
        },
    ),
    "delete": (
        ApiKey.DELETE_TOPICS,
        {"topics": [{"name": WIDE, "topic_id": bytes(16)}], "timeout_ms": 60_000},
    ),
}


# What must come before a request that is sent again.
BEFORE_AGAIN = {
    "create": ["delete"],
    "create partitions": ["delete", "create"],
    "delete": ["create"],
}
ATTEMPTS = 4


def longest_turn_ms(broker: MeasuredBroker, name: str) -> float:
    """Send the request; return the longest turn until it is answered."""
    api, values = REQUESTS[name]
    broker.turns()
    with WireClient(broker.port, timeout_s=ANSWER_SECONDS) as client:
        version = request_class(HANDLERS[api]).SPEC.advertised.highest
        client.send(
            client.frame_of(build(request_class(HANDLERS[api]), version, **values), version)
        )
        client.read_frame()
    return broker.turns().longest_ms


@pytest.mark.parametrize("name", REQUESTS)
def test_a_request_about_all_logs_keeps_nobody_waiting(broker: MeasuredBroker, name: str) -> None:
    found = longest_turn_ms(broker, name)
    for _ in range(ATTEMPTS - 1):  # a busy machine takes longer for the same work
        if found > TURN_MS:
            for other in BEFORE_AGAIN.get(name, ()):
                longest_turn_ms(broker, other)
            found = longest_turn_ms(broker, name)
    assert found <= TURN_MS, "the longest turn of the event loop, in milliseconds of CPU"
