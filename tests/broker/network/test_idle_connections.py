"""connections.max.idle.ms closes clients that send or read nothing, but not those that wait."""

import asyncio
import socket
from collections.abc import AsyncIterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from odradek.broker.network.server import SWEEP_EVERY_S
from odradek.coordinator.metadata.topic_creation import NewTopic
from odradek.coordinator.metadata.topic_deletion import TopicRef
from odradek.protocol.messages.fetch import FetchResponse
from odradek.storage.files import Files
from tests.support.broker_in_loop import BrokerInLoop, broker_in_loop, until
from tests.support.log_box import batch_of
from tests.support.open_files import open_files
from tests.support.stored_batches import FETCH_VERSION, fetch_request, fetched

MIB = 1 << 20
RECORDS_MIB = 16
SWEEPS_PER_IDLE_TIME = 3
IDLE_MS = int(SWEEP_EVERY_S * 1000 * SWEEPS_PER_IDLE_TIME)
PIECE_BYTES = MIB // 8


@pytest.fixture
async def served(tmp_path: Path) -> AsyncIterator[BrokerInLoop]:
    settings = {
        "connections_max_idle_ms": str(IDLE_MS),
        "log_segment_delete_delay_ms": "0",
        "message_max_bytes": str(2 * MIB),
        "socket_send_buffer_bytes": "-1",
    }
    async with broker_in_loop([tmp_path], Files(), **settings) as broker:
        await broker.broker.admin.topics.create([NewTopic(name="t")])
        yield broker


async def fetch_much(served: BrokerInLoop) -> socket.socket:
    """Ask for more than the sockets' buffers hold, and read nothing of the answer that comes."""
    batch = batch_of(bytes(MIB))
    for _ in range(RECORDS_MIB):
        await served.produce("t", batch)
    client = await served.send(fetch_request("t", 0, 0, 1 << 30), FETCH_VERSION)
    await asyncio.to_thread(client.socket.recv, 1, socket.MSG_PEEK)
    return client.socket


@pytest.mark.slow
async def test_a_client_that_does_not_read_its_answer_is_closed_and_releases_deleted_files(
    served: BrokerInLoop, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    await fetch_much(served)
    assert open_files(tmp_path / "t-0")
    await served.broker.admin.topics.delete([TopicRef(name="t")])
    await until(lambda: not open_files(tmp_path / "t-0"))
    assert "has not read its answer" in caplog.text


@pytest.mark.slow
async def test_a_client_that_reads_slowly_is_not_idle(
    served: BrokerInLoop, caplog: pytest.LogCaptureFixture
) -> None:
    slow = await fetch_much(served)
    for _ in range(2 * SWEEPS_PER_IDLE_TIME):
        await asyncio.sleep(SWEEP_EVERY_S)
        received = 0
        while received < PIECE_BYTES:  # too little for the broker's socket to ask for more
            piece = await asyncio.to_thread(slow.recv, PIECE_BYTES - received)
            assert piece
            received += len(piece)
    assert "has not read its answer" not in caplog.text


@pytest.mark.slow
async def test_a_client_that_waits_for_records_is_not_idle(served: BrokerInLoop) -> None:
    request = fetch_request("t", 0, 0, MIB, max_wait_ms=2 * IDLE_MS)
    assert fetched(await served.ask(request, FetchResponse, FETCH_VERSION)) == b""


async def test_a_client_that_is_throttled_for_longer_is_idle(served: BrokerInLoop) -> None:
    await served.produce("t", batch_of(b"v"))
    (connection,) = served.connections
    meter: Any = SimpleNamespace(finish=lambda: None, throttle_ms=1000 * IDLE_MS)
    connection._throttle(meter)
    await until(lambda: connection not in served.connections)


async def test_a_client_that_is_idle_keeps_no_large_buffer(served: BrokerInLoop) -> None:
    await served.produce("t", batch_of(bytes(MIB)))
    (connection,) = served.connections
    assert connection.buffer_bytes >= MIB
    await until(lambda: connection.buffer_bytes == 0)
    assert connection in served.connections
