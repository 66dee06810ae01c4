"""StreamsGroupHeartbeat at a whole broker: when it is served, internal topics, and settings."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from odradek.broker.handlers import streams_group_heartbeat
from odradek.broker.turns import slices
from odradek.coordinator.metadata.topic_creation import NewTopic
from odradek.coordinator.streams_groups.status import StatusCode
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.create_topics import (
    CreateTopicsRequest,
    CreateTopicsResponse,
    CreateTopicsTopic,
)
from odradek.protocol.messages.find_coordinator import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from odradek.protocol.messages.incremental_alter_configs import IncrementalAlterConfigsResponse
from odradek.protocol.messages.streams_group_describe import (
    StreamsGroupDescribeRequest,
    StreamsGroupDescribeResponse,
)
from odradek.protocol.messages.streams_group_heartbeat import (
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatResponse,
    StreamsGroupHeartbeatTopology,
)
from odradek.protocol.messages.update_features import (
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
    UpdateFeaturesUpdate,
)
from odradek.storage.files import Files
from tests.support.broker_in_loop import BrokerInLoop, broker_in_loop
from tests.support.config_requests import alter_configs_request
from tests.support.streams_members import (
    WORD_COUNT,
    internal,
    statuses,
    subtopology,
    tasks_of,
    topology,
)

MANY = 50
GROUP_RESOURCE, UNSAFE_DOWNGRADE = 32, 3
AT_ONCE = {
    "offsets_topic_num_partitions": "1",
    "group_streams_initial_rebalance_delay_ms": "0",
    "group_streams_assignment_interval_ms": "0",
}


@pytest.fixture
async def broker(tmp_path: Path) -> AsyncIterator[BrokerInLoop]:
    async with broker_in_loop([tmp_path], Files(), **AT_ONCE) as broker:
        await coordinator_of(broker)
        yield broker


async def coordinator_of(broker: BrokerInLoop) -> None:
    """Have `__consumer_offsets` made."""
    request = FindCoordinatorRequest(coordinator_keys=["g"])
    answer = await broker.ask(request, FindCoordinatorResponse, 4)
    assert answer.coordinators[0].error_code == ErrorCode.NONE


async def join(
    broker: BrokerInLoop, sent: StreamsGroupHeartbeatTopology = WORD_COUNT
) -> StreamsGroupHeartbeatResponse:
    request = StreamsGroupHeartbeatRequest(
        group_id="g",
        member_id="m",
        member_epoch=0,
        endpoint_information_epoch=0,
        rebalance_timeout_ms=60_000,
        topology=sent,
        active_tasks=[],
        standby_tasks=[],
        warmup_tasks=[],
        process_id="process",
        client_tags=[],
    )
    return await broker.ask(request, StreamsGroupHeartbeatResponse, 1)


async def go_on(broker: BrokerInLoop, epoch: int) -> StreamsGroupHeartbeatResponse:
    request = StreamsGroupHeartbeatRequest(
        group_id="g", member_id="m", member_epoch=epoch, endpoint_information_epoch=0
    )
    return await broker.ask(request, StreamsGroupHeartbeatResponse, 1)


async def create_topic(broker: BrokerInLoop, name: str) -> None:
    wish = CreateTopicsTopic(
        name=name, num_partitions=2, replication_factor=1, assignments=[], configs=[]
    )
    answer = await broker.ask(CreateTopicsRequest(topics=[wish]), CreateTopicsResponse, 5)
    assert answer.topics[0].error_code == ErrorCode.NONE


async def test_internal_topics_are_there_at_the_next_heartbeat(broker: BrokerInLoop) -> None:
    await create_topic(broker, "lines")
    assert statuses(await join(broker)) == [StatusCode.MISSING_INTERNAL_TOPICS]
    answer = await go_on(broker, 2)
    assert statuses(answer) == []
    assert tasks_of(answer.active_tasks) == {"0": [0, 1], "1": [0, 1]}
    request = StreamsGroupDescribeRequest(
        group_ids=["g"], include_authorized_operations=False, include_topology_description=True
    )
    [group] = (await broker.ask(request, StreamsGroupDescribeResponse, 1)).groups
    assert (group.group_state, group.assignor_name) == ("Stable", "sticky")
    assert group.topology is not None
    assert group.topology.subtopologies is not None
    assert group.topology.subtopologies[1].state_changelog_topics[0].partitions == 2


async def test_why_internal_topics_cannot_be_created_is_in_the_status(
    broker: BrokerInLoop,
) -> None:
    await create_topic(broker, "lines")
    wrong = internal("log", configs={"no.such.config": "1"})
    sent = topology(subtopology("0", "lines", changelogs=[wrong]))
    answer = await join(broker, sent)
    assert statuses(answer) == [StatusCode.MISSING_INTERNAL_TOPICS]
    assert answer.status is not None
    assert "Creation failed: log (" in answer.status[0].status_detail
    assert "log" not in broker.broker.metadata.topics


async def test_many_internal_topics_are_created_in_slices(
    broker: BrokerInLoop, monkeypatch: pytest.MonkeyPatch
) -> None:
    loop = asyncio.get_running_loop()
    turns_of_topics: list[int] = []
    turn, is_answered = 0, False

    def next_turn() -> None:
        nonlocal turn
        turn += 1
        if not is_answered:
            loop.call_soon(next_turn)

    def noted(**fields: Any) -> NewTopic:
        turns_of_topics.append(turn)
        return NewTopic(**fields)

    await create_topic(broker, "lines")
    wrong = [internal(f"log-{number:02}", configs={"no.such": "1"}) for number in range(MANY)]
    await join(broker, topology(subtopology("0", "lines", changelogs=wrong)))
    monkeypatch.setattr(slices, "SLICE_S", 0.0)
    monkeypatch.setattr(streams_group_heartbeat, "NewTopic", noted)
    next_turn()
    answer = await go_on(broker, 2)  # a short request
    is_answered = True
    assert len(set(turns_of_topics)) == MANY
    assert answer.status is not None
    detail = answer.status[0].status_detail
    assert detail.count("no.such") == 3
    assert detail.endswith(f" and {MANY - 3} more.")


async def test_what_is_set_on_the_group_counts_from_the_next_heartbeat_on(
    broker: BrokerInLoop,
) -> None:
    await create_topic(broker, "lines")
    sent = topology(subtopology("0", "lines"))
    assert (await join(broker, sent)).member_epoch == 2
    for name, value in (
        ("streams.heartbeat.interval.ms", "7000"),
        ("streams.num.standby.replicas", "1"),
    ):
        change = alter_configs_request(GROUP_RESOURCE, "g", {name: value})
        done = await broker.ask(change, IncrementalAlterConfigsResponse, 1)
        assert done.responses[0].error_code == ErrorCode.NONE, done
    answer = await go_on(broker, 2)
    assert (answer.heartbeat_interval_ms, answer.member_epoch) == (7_000, 3)


async def test_without_its_feature_level_the_protocol_is_not_served(broker: BrokerInLoop) -> None:
    update = UpdateFeaturesUpdate(
        feature="streams.version", max_version_level=0, upgrade_type=UNSAFE_DOWNGRADE
    )
    answer = await broker.ask(
        UpdateFeaturesRequest(feature_updates=[update]), UpdateFeaturesResponse, 1
    )
    assert answer.error_code == ErrorCode.NONE
    assert (await join(broker)).error_code == ErrorCode.UNSUPPORTED_VERSION
    request = StreamsGroupDescribeRequest(group_ids=["g"], include_authorized_operations=False)
    [group] = (await broker.ask(request, StreamsGroupDescribeResponse, 0)).groups
    assert group.error_code == ErrorCode.UNSUPPORTED_VERSION


async def test_where_the_settings_leave_streams_out_they_are_not_served(tmp_path: Path) -> None:
    async with broker_in_loop(
        [tmp_path], Files(), **AT_ONCE, group_coordinator_rebalance_protocols="classic,consumer"
    ) as broker:
        await coordinator_of(broker)
        assert (await join(broker)).error_code == ErrorCode.UNSUPPORTED_VERSION
