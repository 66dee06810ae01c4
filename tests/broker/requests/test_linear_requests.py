"""The work of a request is linear in its size, also if it names what the broker has much of."""

import inspect
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from odradek.broker.broker import Broker
from odradek.broker.handlers import HANDLERS
from odradek.broker.requests.dispatch import request_class
from odradek.coordinator.metadata.configs import ConfigResourceType
from odradek.coordinator.metadata.record_limit import MAX_RECORDS
from odradek.coordinator.metadata.topic_creation import NewTopic
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import ErrorCode
from odradek.protocol.schema import Message
from odradek.storage.topic_partition import TopicPartition
from tests.support.contexts import broker_with_topic, handled, request_context
from tests.support.growth import AsyncWork, assert_linear_async
from tests.support.log_box import NOW_MS
from tests.support.requests import build

Prepared = Callable[[Broker, int], Awaitable[AsyncWork]]

SET, METRICS = 0, int(ConfigResourceType.CLIENT_METRICS)
TRANSACTIONS = 1  # the key type of FindCoordinator


def request_of(api: ApiKey, **values: Any) -> Message:
    """A request in the newest version."""
    declared = request_class(HANDLERS[api])
    made: Message = build(declared, declared.SPEC.versions.highest, **values)
    return made


async def ask(broker: Broker, api: ApiKey, request: Message) -> Any:
    version = type(request).SPEC.versions.highest
    answer = handled(request_context(broker, version, NOW_MS, api), request)
    return await answer if inspect.isawaitable(answer) else answer


async def elect_leaders(broker: Broker, size: int) -> AsyncWork:
    """Topics that do not exist."""
    request = request_of(
        ApiKey.ELECT_LEADERS,
        topic_partitions=[{"topic": f"{at}", "partitions": [0]} for at in range(size)],
    )
    return lambda: ask(broker, ApiKey.ELECT_LEADERS, request)


async def list_transactions(broker: Broker, size: int) -> AsyncWork:
    """As many producer ids as there are transactions."""
    for at in range(len(list(broker.coordinators.transactions.transactions())), size):
        await ask(
            broker,
            ApiKey.INIT_PRODUCER_ID,
            request_of(
                ApiKey.INIT_PRODUCER_ID, transactional_id=f"x{at}", transaction_timeout_ms=1000
            ),
        )
    request = request_of(
        ApiKey.LIST_TRANSACTIONS,
        duration_filter=-1,
        producer_id_filters=list(range(10**6, 10**6 + size)),
        state_filters=[f"none {at}" for at in range(size)],
    )
    return lambda: ask(broker, ApiKey.LIST_TRANSACTIONS, request)


async def alter_client_metrics(broker: Broker, size: int) -> AsyncWork:
    """As many subscriptions."""
    request = request_of(
        ApiKey.INCREMENTAL_ALTER_CONFIGS,
        resources=[
            {
                "resource_type": METRICS,
                "resource_name": f"subscription {at:05}",
                "configs": [{"name": "interval.ms", "config_operation": SET, "value": "1000"}],
            }
            for at in range(size)
        ],
    )
    return lambda: ask(broker, ApiKey.INCREMENTAL_ALTER_CONFIGS, request)


KINDS: dict[str, tuple[Prepared, int]] = {
    "elect leaders": (elect_leaders, 500),
    "filters of transactions": (list_transactions, 300),
    "client metrics": (alter_client_metrics, 100),
}


@pytest.fixture
async def broker(tmp_path: Path) -> Any:
    async with broker_with_topic(tmp_path, partitions=1) as broker:
        await ask(
            broker,
            ApiKey.FIND_COORDINATOR,
            request_of(ApiKey.FIND_COORDINATOR, key_type=TRANSACTIONS, coordinator_keys=["x"]),
        )
        yield broker


@pytest.mark.parametrize("kind", KINDS)
async def test_four_times_the_size_takes_four_times_as_long(broker: Broker, kind: str) -> None:
    prepared, size = KINDS[kind]
    await assert_linear_async(lambda size: prepared(broker, size), size)


async def test_the_entries_of_one_producer_are_added_to_its_transaction_together(
    broker: Broker,
) -> None:
    """Each addition writes all partitions of the transaction again."""
    await broker.admin.topics.create([NewTopic(name="two", partition_count=2)])
    init = request_of(ApiKey.INIT_PRODUCER_ID, transactional_id="x", transaction_timeout_ms=1000)
    producer = await ask(broker, ApiKey.INIT_PRODUCER_ID, init)
    log = broker.coordinators.transactions.shards.of("x").journal.log
    end = log.log_end_offset
    of_x, of_y = (
        {"transactional_id": name, "producer_id": producer.producer_id, "producer_epoch": 0}
        for name in "xy"
    )
    first, second = ([{"name": "two", "partitions": [at]}] for at in range(2))
    request = request_of(
        ApiKey.ADD_PARTITIONS_TO_TXN,
        transactions=[
            of_x | {"topics": first},
            of_y | {"topics": first},
            of_x | {"topics": second},
        ],
    )
    answer = await ask(broker, ApiKey.ADD_PARTITIONS_TO_TXN, request)
    assert [
        (
            one.transactional_id,
            [(p.partition_index, p.partition_error_code) for p in topic.results_by_partition],
        )
        for one in answer.results_by_transaction
        for topic in one.topic_results
    ] == [("x", [(0, 0)]), ("y", [(0, ErrorCode.INVALID_PRODUCER_ID_MAPPING)]), ("x", [(1, 0)])]
    assert log.log_end_offset == end + 1
    partitions = broker.coordinators.transactions.describe("x").partitions
    assert partitions == {TopicPartition("two", 0), TopicPartition("two", 1)}


async def test_a_partition_whose_producers_are_asked_for_again_is_described_once(
    broker: Broker,
) -> None:
    topic = {"name": "t", "partition_indexes": [0, 7, 0]}
    request = request_of(ApiKey.DESCRIBE_PRODUCERS, topics=[topic, topic | {"name": "u"}, topic])
    answer = await ask(broker, ApiKey.DESCRIBE_PRODUCERS, request)
    assert [
        (topic.name, [(one.partition_index, one.error_code) for one in topic.partitions])
        for topic in answer.topics
    ] == [
        ("t", [(0, ErrorCode.NONE), (7, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)]),
        ("u", [(index, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION) for index in (0, 7)]),
    ]


async def test_a_transactional_id_that_is_asked_for_again_is_described_once(
    broker: Broker,
) -> None:
    request = request_of(ApiKey.DESCRIBE_TRANSACTIONS, transactional_ids=["y", "x", "y"])
    answer = await ask(broker, ApiKey.DESCRIBE_TRANSACTIONS, request)
    assert [each.transactional_id for each in answer.transaction_states] == ["y", "x"]


async def test_metadata_of_more_topics_than_can_be_created_at_once_is_answered(
    broker: Broker,
) -> None:
    topics = [{"name": f"new-{number}"} for number in range(MAX_RECORDS // 2 + 1)]
    request = request_of(ApiKey.METADATA, topics=topics, allow_auto_topic_creation=True)
    answer = await ask(broker, ApiKey.METADATA, request)
    codes = {topic.error_code for topic in answer.topics}
    assert codes == {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
