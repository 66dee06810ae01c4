"""Waits, idle times and delays do not depend on the wall clock, which an administrator may set."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path

import pytest
from msgspec.structs import replace

from odradek.broker.lifecycle.running import RunningBroker, open_broker
from odradek.broker.network.listeners import bind_ports
from odradek.broker.network.server import STALLED_FRAME_MS, SWEEP_EVERY_S
from odradek.broker.testing.clock import AdjustableClock
from odradek.config.broker_config import BrokerConfig
from odradek.coordinator.metadata.topic_creation import NewTopic
from odradek.coordinator.metadata.topic_deletion import TopicRef
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.alter_client_quotas import AlterClientQuotasResponse
from odradek.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from odradek.protocol.messages.fetch import FetchResponse
from odradek.protocol.messages.find_coordinator import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from odradek.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from odradek.protocol.messages.join_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
)
from odradek.protocol.messages.produce import ProduceResponse
from odradek.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from tests.support.broker_in_loop import PRODUCE_VERSION, BrokerInLoop, produce_to, until
from tests.support.broker_process import free_ports
from tests.support.log_box import batch_of
from tests.support.quotas import ALTER_VERSION, quota_request
from tests.support.stored_batches import FETCH_VERSION, fetch_request
from tests.support.wire import WireClient

SECOND_MS, MINUTE_MS, HOUR_MS = 1000, 60_000, 3_600_000
DELETE_DELAY_MS = MINUTE_MS
IDLE_MS = 10 * MINUTE_MS
MAX_WAIT_MS = 300
LIMIT_S = 100.0
SETTINGS = {
    "group.initial.rebalance.delay.ms": "0",
    "log.segment.delete.delay.ms": str(DELETE_DELAY_MS),
    "connections.max.idle.ms": str(IDLE_MS),
    "max.incremental.fetch.session.cache.slots": "1",
    "log.flush.interval.ms": str(SECOND_MS),
}

pytestmark = pytest.mark.parametrize("step_ms", [-HOUR_MS, 11 * MINUTE_MS])


class JumpingBroker(BrokerInLoop):
    """A broker whose wall clock the test sets."""

    def __init__(self, running: RunningBroker, port: int, clock: AdjustableClock) -> None:
        super().__init__(running, port)
        self._clock = clock

    def step(self, by_ms: int) -> None:
        """Set the wall clock forward or back."""
        self._clock.set_wall(self._clock.wall_ms() + by_ms)

    async def advance(self, by_ms: int) -> None:
        """Let time pass, and do what is due then."""
        self._clock.advance(by_ms)
        self.broker.coordinators.groups.alarm.expire_due()
        await self.run_tasks()

    async def run_tasks(self) -> None:
        await self._running.periodic_tasks.run_now()


@pytest.fixture
async def served(tmp_path: Path) -> AsyncIterator[JumpingBroker]:
    (port,) = free_ports(1)
    listener = {"listeners": f"PLAINTEXT://127.0.0.1:{port}", "log.dirs": str(tmp_path)}
    config = BrokerConfig.from_texts(listener | SETTINGS)
    bound, _ = bind_ports(config)
    clock = AdjustableClock()
    running = await open_broker(config, bound, now_ms=clock.wall_ms, timer_ms=clock.timer_ms)
    broker = JumpingBroker(running, port, clock)
    await broker.broker.admin.topics.create([NewTopic(name="t")])
    try:
        yield broker
    finally:
        with suppress(asyncio.CancelledError):
            await broker.stop()


async def test_a_woken_fetch_waits_for_the_rest_of_its_time(
    served: JumpingBroker, step_ms: int
) -> None:
    await served.produce("t", batch_of(b"old"))
    began = time.monotonic()
    request = fetch_request("t", 0, 1, 1 << 20, max_wait_ms=MAX_WAIT_MS)
    client = await served.send(request, FETCH_VERSION)
    await until(lambda: served.broker.fetching.waiters.count == 1)
    served.step(step_ms)
    log = served.broker.log_manager.get("t", 0)
    log.roll(0)
    log.notify_waiters()  # it reads again, and finds nothing
    async with asyncio.timeout(LIMIT_S):
        answer = await served.answer(client, FetchResponse, FETCH_VERSION)
    assert not answer.responses or not answer.responses[0].partitions[0].records
    assert time.monotonic() - began > 0.9 * MAX_WAIT_MS / 1000  # a timer may fire early


async def is_answered(served: JumpingBroker, client: WireClient) -> bool:
    client.send(client.frame_of(ApiVersionsRequest(), 2))
    answer = await served.answer(client, ApiVersionsResponse, 2)
    return answer.error_code == ErrorCode.NONE


async def test_connections_are_closed_when_they_were_idle_and_not_before(
    served: JumpingBroker, step_ms: int
) -> None:
    client, idle = [await served.send(ApiVersionsRequest(), 2) for _ in range(2)]
    await served.answer(client, ApiVersionsResponse, 2)
    await served.answer(idle, ApiVersionsResponse, 2)
    served.step(step_ms)
    await asyncio.sleep(2 * SWEEP_EVERY_S)
    assert await is_answered(served, client)
    await served.advance(IDLE_MS + SECOND_MS)
    assert await asyncio.to_thread(idle.socket.recv, 1) == b""


async def test_a_request_that_stops_is_closed_when_it_has_stopped_for_long_and_not_before(
    served: JumpingBroker, step_ms: int, caplog: pytest.LogCaptureFixture
) -> None:
    client, stopped = [await served.send(ApiVersionsRequest(), 2) for _ in range(2)]
    for each in (client, stopped):
        await served.answer(each, ApiVersionsResponse, 2)
    stopped.send(stopped.frame_of(ApiVersionsRequest(), 2)[:10])
    assert await is_answered(served, client)  # so that what came before it is read
    served.step(step_ms)
    await asyncio.sleep(2 * SWEEP_EVERY_S)
    assert "stopped at" not in caplog.text
    await served.advance(STALLED_FRAME_MS + SECOND_MS)
    assert await asyncio.to_thread(stopped.socket.recv, 1) == b""
    assert "stopped at 10 for" in caplog.text
    assert await is_answered(served, client)


async def test_members_stay(served: JumpingBroker, step_ms: int) -> None:
    find = FindCoordinatorRequest(key="g", key_type=0)
    while (await served.ask(find, FindCoordinatorResponse, 3)).error_code:  # noqa: ASYNC110
        await asyncio.sleep(0.02)  # until the topic of the offsets is created
    join = JoinGroupRequest(
        group_id="g",
        session_timeout_ms=10 * SECOND_MS,
        rebalance_timeout_ms=MINUTE_MS,
        member_id="",
        protocol_type="consumer",
        protocols=[JoinGroupRequestProtocol(name="range", metadata=b"")],
    )
    joined = await served.ask(join, JoinGroupResponse, 3)
    who = {"group_id": "g", "generation_id": 1, "member_id": joined.member_id}
    await served.ask(SyncGroupRequest(**who, assignments=[]), SyncGroupResponse, 3)
    served.step(step_ms)
    await served.advance(9 * SECOND_MS)
    beat = HeartbeatRequest(**who)
    assert (await served.ask(beat, HeartbeatResponse, 4)).error_code == ErrorCode.NONE
    await served.advance(11 * SECOND_MS)
    answer = await served.ask(beat, HeartbeatResponse, 4)
    assert answer.error_code == ErrorCode.UNKNOWN_MEMBER_ID


def deleted_in(directory: Path) -> list[Path]:
    return list(directory.glob("t-0.*-delete"))


async def test_deleted_files_are_removed_after_their_delay(
    served: JumpingBroker, step_ms: int, tmp_path: Path
) -> None:
    await served.broker.admin.topics.delete([TopicRef(name="t")])
    served.step(step_ms)
    await served.run_tasks()
    assert len(deleted_in(tmp_path)) == 1
    await served.advance(DELETE_DELAY_MS)
    await until(lambda: not deleted_in(tmp_path))


async def test_a_throttle_is_as_long_as_without_the_jump(
    served: JumpingBroker, step_ms: int
) -> None:
    quotas = served.broker.quotas
    now_ms = quotas.timer_ms()
    quotas.timer_ms = lambda: now_ms
    alter = quota_request({"client-id": None}, producer_byte_rate=1024)
    await served.ask(alter, AlterClientQuotasResponse, ALTER_VERSION)
    throttles = []
    for step in (0, 0, step_ms):
        served.step(step)
        request = produce_to("t", batch_of(bytes(3000)))
        answer = await served.ask(request, ProduceResponse, PRODUCE_VERSION)
        throttles.append(answer.throttle_time_ms)
    first, second, third = throttles
    assert third - second == pytest.approx(second - first, abs=2)


async def test_a_log_is_flushed_by_time(served: JumpingBroker, step_ms: int) -> None:
    log = served.broker.log_manager.get("t", 0)
    await served.produce("t", batch_of(b"first"))
    await served.broker.log_syncs.flush(log)
    await served.produce("t", batch_of(b"second"))
    served.step(step_ms)
    await served.broker.log_syncs.flush_due_by_time()
    assert log.recovery_point == 1
    served._clock.advance(SECOND_MS)
    await served.broker.log_syncs.flush_due_by_time()
    assert log.recovery_point == 2


async def test_a_fetch_session_that_was_just_used_is_not_replaced(
    served: JumpingBroker, step_ms: int
) -> None:
    async def session_id() -> int:
        request = replace(fetch_request("t", 0, 0, 1 << 20), session_epoch=0)
        return (await served.ask(request, FetchResponse, FETCH_VERSION)).session_id

    assert await session_id()
    served.step(step_ms)
    assert not await session_id()
