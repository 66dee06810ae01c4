"""What a test does with a node of a played cluster while that node still answers requests."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from odradek.broker.cluster.played_cluster import PlayedCluster, reserve_ports
from odradek.broker.handlers import HANDLERS
from odradek.broker.lifecycle.running import open_broker
from odradek.broker.network.connection import Connection
from odradek.broker.requests.context import RequestContext
from odradek.config.broker_config import BrokerConfig
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import ApiError
from odradek.protocol.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
)
from odradek.protocol.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from tests.support.broker_in_loop import until
from tests.support.wire import WireClient

LIMIT_SECONDS = 100.0


class Stopping:
    """A cluster whose node 1 is being stopped, and has a request that is not answered yet."""

    def __init__(self) -> None:
        self.is_asked = asyncio.Event()
        self.may_answer = asyncio.Event()
        self.cluster: PlayedCluster
        self.stop: asyncio.Task[None]

    async def describe(
        self, context: RequestContext, request: DescribeUserScramCredentialsRequest
    ) -> Any:
        """Answer as late as the test says."""
        self.is_asked.set()
        await self.may_answer.wait()
        return HANDLERS[ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS](context, request)

    def can_be_asked(self) -> bool:
        """Whether node 1 answers. For a thread."""
        try:
            with WireClient(self.port) as client:
                client.ask(ListGroupsRequest(), ListGroupsResponse, 4)
        except OSError:
            return False
        return True

    @property
    def port(self) -> int:
        """The port of node 1."""
        return self.cluster.nodes[1]._reserved[0].port


@pytest.fixture
async def stopping(tmp_path: Path) -> AsyncIterator[Stopping]:
    config = BrokerConfig.from_texts(
        {
            "listeners": "PLAINTEXT://127.0.0.1:0",
            "log.dirs": str(tmp_path),
            "node.id": "1",
            "odradek.nodes": "2",
        }
    )
    made = Stopping()
    handlers = {**HANDLERS, ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS: made.describe}
    running = await open_broker(config, nodes=reserve_ports(config), handlers=handlers)
    assert running.cluster is not None
    made.cluster = running.cluster
    try:
        client = await asyncio.to_thread(WireClient, made.port)
        client.send(client.frame_of(DescribeUserScramCredentialsRequest(users=None), 0))
        await asyncio.wait_for(made.is_asked.wait(), LIMIT_SECONDS)
        made.stop = asyncio.create_task(made.cluster.stop(1))
        await until(lambda: 1 not in made.cluster.state.live)
        yield made
        made.may_answer.set()
        client.close()
        await made.stop
    finally:
        made.may_answer.set()
        await running.stop()


def kill_and_start(cluster: PlayedCluster) -> None:
    cluster.kill(1)
    cluster.start(1)


@pytest.mark.parametrize(
    "begin", [kill_and_start, lambda cluster: cluster.start(1), PlayedCluster.heal]
)
async def test_a_node_that_is_started_while_it_stops_goes_on(
    stopping: Stopping, begin: Callable[[PlayedCluster], object]
) -> None:
    begin(stopping.cluster)
    stopping.may_answer.set()
    await stopping.stop
    assert stopping.cluster.nodes[1].runs
    assert stopping.cluster.state.live == {1, 2}
    assert await asyncio.to_thread(stopping.can_be_asked)
    stopping.cluster.kill(1)
    assert not await asyncio.to_thread(stopping.can_be_asked)


async def test_a_node_that_stops_does_not_run(stopping: Stopping) -> None:
    with pytest.raises(ApiError, match="node 1 does not run"):
        stopping.cluster.resume(1)
    assert stopping.cluster.state.live == {2}
    assert not await asyncio.to_thread(stopping.can_be_asked)


async def test_a_node_that_is_killed_while_it_stops_answers_nothing_more(
    stopping: Stopping,
) -> None:
    assert len(connections(stopping)) == 1
    stopping.cluster.kill(1)
    await stopping.stop
    assert connections(stopping) == []


async def test_a_paused_node_that_is_killed_serves_no_request_that_it_has_not_read(
    stopping: Stopping,
) -> None:
    cluster = stopping.cluster
    node = cluster.nodes[2]
    stopping.is_asked.clear()
    cluster.pause(2)
    with await asyncio.to_thread(WireClient, node._reserved[0].port) as client:
        client.send(client.frame_of(DescribeUserScramCredentialsRequest(users=None), 0))
        await until(lambda: node.gate._changed._waiters)
        cluster.kill(2)
        assert await asyncio.to_thread(client.is_closed_by_peer)
    assert not stopping.is_asked.is_set()


def connections(stopping: Stopping) -> list[Connection]:
    return [each for server in stopping.cluster.servers() for each in server.connections]
