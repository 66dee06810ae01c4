"""ConsumerGroupHeartbeat at a whole broker: when it is served, and what changes it."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from odradek.protocol.messages.create_topics import (
    CreateTopicsRequest,
    CreateTopicsResponse,
    CreateTopicsTopic,
)
from odradek.protocol.messages.find_coordinator import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from odradek.protocol.messages.incremental_alter_configs import (
    IncrementalAlterConfigsResponse,
)
from odradek.protocol.messages.update_features import (
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
    UpdateFeaturesUpdate,
)
from odradek.storage.files import Files
from tests.support.broker_in_loop import BrokerInLoop, broker_in_loop
from tests.support.config_requests import alter_configs_request

BROKER, GROUP = 4, 32
UNSAFE_DOWNGRADE = 3


@pytest.fixture
async def broker(tmp_path: Path) -> AsyncIterator[BrokerInLoop]:
    async with broker_in_loop([tmp_path], Files(), offsets_topic_num_partitions="1") as broker:
        await coordinator_of(broker)
        yield broker


async def coordinator_of(broker: BrokerInLoop) -> None:
    """Have `__consumer_offsets` made."""
    request = FindCoordinatorRequest(coordinator_keys=["g"])
    answer = await broker.ask(request, FindCoordinatorResponse, 4)
    assert answer.coordinators[0].error_code == ErrorCode.NONE


async def join(broker: BrokerInLoop, *topics: str) -> ConsumerGroupHeartbeatResponse:
    request = ConsumerGroupHeartbeatRequest(
        group_id="g",
        member_id="m",
        member_epoch=0,
        rebalance_timeout_ms=60_000,
        subscribed_topic_names=list(topics),
        topic_partitions=[],
    )
    return await broker.ask(request, ConsumerGroupHeartbeatResponse, 1)


async def go_on(broker: BrokerInLoop, epoch: int) -> ConsumerGroupHeartbeatResponse:
    request = ConsumerGroupHeartbeatRequest(group_id="g", member_id="m", member_epoch=epoch)
    return await broker.ask(request, ConsumerGroupHeartbeatResponse, 1)


async def create_topic(broker: BrokerInLoop, name: str) -> None:
    wish = CreateTopicsTopic(
        name=name, num_partitions=2, replication_factor=1, assignments=[], configs=[]
    )
    answer = await broker.ask(CreateTopicsRequest(topics=[wish]), CreateTopicsResponse, 5)
    assert answer.topics[0].error_code == ErrorCode.NONE


async def alter(broker: BrokerInLoop, kind: int, resource: str, name: str, value: str) -> None:
    """Set one setting of a broker or a group."""
    request = alter_configs_request(kind, resource, {name: value})
    answer = await broker.ask(request, IncrementalAlterConfigsResponse, 1)
    assert answer.responses[0].error_code == ErrorCode.NONE, answer


async def test_what_is_set_on_the_broker_or_the_group_counts_from_the_next_heartbeat_on(
    broker: BrokerInLoop,
) -> None:
    interval = "consumer.assignment.interval.ms"
    await alter(broker, BROKER, "", f"group.{interval}", "15000")
    assert (await join(broker, "a", "b")).member_epoch == 2
    await create_topic(broker, "a")
    assert (await go_on(broker, 2)).assignment is None
    await alter(broker, GROUP, "g", interval, "0")
    answer = await go_on(broker, 2)
    assert answer.member_epoch == 3
    assert answer.assignment is not None
    assert [topic.partitions for topic in answer.assignment.topic_partitions] == [[0, 1]]
    await alter(broker, GROUP, "g", "consumer.heartbeat.interval.ms", "7000")
    assert (await go_on(broker, 3)).heartbeat_interval_ms == 7_000


async def test_without_its_feature_level_the_protocol_is_not_served(broker: BrokerInLoop) -> None:
    update = UpdateFeaturesUpdate(
        feature="group.version", max_version_level=0, upgrade_type=UNSAFE_DOWNGRADE
    )
    answer = await broker.ask(
        UpdateFeaturesRequest(feature_updates=[update]), UpdateFeaturesResponse, 1
    )
    assert answer.error_code == ErrorCode.NONE
    assert (await join(broker, "t")).error_code == ErrorCode.UNSUPPORTED_VERSION


async def test_where_the_settings_name_the_classic_protocol_only_it_is_not_served(
    tmp_path: Path,
) -> None:
    async with broker_in_loop(
        [tmp_path],
        Files(),
        offsets_topic_num_partitions="1",
        group_coordinator_rebalance_protocols="classic",
    ) as broker:
        await coordinator_of(broker)
        assert (await join(broker, "t")).error_code == ErrorCode.UNSUPPORTED_VERSION
