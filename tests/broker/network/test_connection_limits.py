"""Limits on connections, their number and rate: of the broker, of a listener, of an address."""

import asyncio
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from odradek.broker.network.connection_limits import ConnectionLimits, Refusal
from odradek.broker.quotas.host_addresses import HostAddresses
from odradek.broker.quotas.quotas import Quotas
from odradek.config.broker_config import BrokerConfig
from odradek.coordinator.metadata.client_quotas import ClientQuotas
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.alter_client_quotas import AlterClientQuotasResponse
from odradek.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from odradek.protocol.messages.incremental_alter_configs import (
    IncrementalAlterConfigsResponse,
)
from odradek.protocol.records.cluster_metadata import ClientQuotaRecord, EntityData
from odradek.storage.files import Files
from tests.support.broker_in_loop import BrokerInLoop, broker_in_loop, until
from tests.support.broker_process import free_ports
from tests.support.config_requests import alter_configs_request
from tests.support.quotas import ALTER_VERSION, quota_request
from tests.support.wire import WireClient

TWO_LISTENERS = {
    "listeners": "PLAINTEXT://:9092,OUTER://:9093",
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,OUTER:PLAINTEXT",
}
ONE, OTHER = "PLAINTEXT", "OUTER"
BROKER = 4


class Rig:
    """Limits on a clock that the test sets."""

    def __init__(self, **texts: str) -> None:
        self.now_ms = 1_000_000
        self.config = BrokerConfig.from_texts(TWO_LISTENERS | texts)
        self.stored = ClientQuotas()
        addresses = HostAddresses()
        self.quotas = Quotas(self.config, self.stored, addresses, lambda: self.now_ms)
        self.limits = ConnectionLimits(self.config, self.quotas, addresses)

    def limit_rate(self, host: str | None, rate: float) -> None:
        entity = [EntityData(entity_type="ip", entity_name=host)]
        key = "connection_creation_rate"
        self.stored.replay(ClientQuotaRecord(entity=entity, key=key, value=rate, remove=False))
        self.quotas.refresh()

    def connect(self, address: str = "192.0.2.1", listener: str = ONE) -> Refusal | None:
        return self.limits.open(object(), listener, address)


def test_a_host_without_an_address_is_looked_up_again_only_if_the_limits_change(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked = []

    def unknown(host: str, *_: object, **__: object) -> None:
        asked.append(host)
        raise socket.gaierror(socket.EAI_NONAME, "unknown")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    rig = Rig(**{"max.connections.per.ip.overrides": "gone.example:1"})
    rig.limits.update(rig.config.with_dynamic({"max.connections": "100"}))
    assert asked == ["gone.example"]


def test_connections_that_come_too_fast_wait_as_long_as_in_kafka() -> None:
    rig = Rig(**{"max.connection.creation.rate": "2"})
    # 10 full windows of a second allow 20.
    assert [rig.limits.delay_ms(OTHER) for _ in range(20)] == [0] * 20
    assert rig.limits.delay_ms(OTHER) == 500
    assert rig.limits.delay_ms(OTHER) == 1000
    assert rig.limits.delay_ms(OTHER) == 1000  # one window at most
    rig.now_ms += 5000
    assert rig.limits.delay_ms(OTHER) == 1000
    rig.now_ms += 11_000
    assert rig.limits.delay_ms(OTHER) == 0


def test_a_listener_has_a_rate_of_its_own() -> None:
    rig = Rig(**{"listener.name.outer.max.connection.creation.rate": "1"})
    assert [rig.limits.delay_ms(OTHER) for _ in range(11)] == [0] * 10 + [1000]
    assert [rig.limits.delay_ms(ONE) for _ in range(30)] == [0] * 30


def test_the_listener_of_brokers_does_not_count_for_the_brokers_rate() -> None:
    rig = Rig(**{"max.connection.creation.rate": "1"})
    assert [rig.limits.delay_ms(ONE) for _ in range(10)] == [0] * 10
    assert [rig.limits.delay_ms(OTHER) for _ in range(10)] == [0] * 10


def test_the_listener_of_brokers_has_room_beyond_the_brokers_limit() -> None:
    rig = Rig(**{"max.connections": "2"})
    for _ in range(2):
        assert rig.connect(listener=OTHER) is None
    assert not rig.limits.has_room(OTHER)
    assert rig.limits.has_room(ONE)
    assert rig.connect(listener=ONE) is None
    assert rig.limits.excess() == 1


def test_the_only_listener_is_not_protected() -> None:
    rig = Rig(listeners="PLAINTEXT://:9092", **{"max.connections": "1"})
    assert rig.connect() is None
    assert not rig.limits.has_room(ONE)


def test_an_address_has_its_own_limit_or_that_of_all() -> None:
    rig = Rig(
        **{
            "max.connections.per.ip": "1",
            "max.connections.per.ip.overrides": "192.0.2.2:2, 2001:db8:0::5:0",
        }
    )
    assert rig.connect("192.0.2.1") is None
    assert rig.connect("192.0.2.1") == Refusal(
        "192.0.2.1 has 1 connections (max.connections.per.ip)"
    )
    assert [rig.connect("192.0.2.2") is None for _ in range(3)] == [True, True, False]
    assert rig.connect("2001:db8::5") is not None


def test_a_connection_that_ends_makes_room_for_another_one_of_its_address() -> None:
    rig = Rig(**{"max.connections.per.ip": "1"})
    first = object()
    assert rig.limits.open(first, ONE, "192.0.2.1") is None
    called: list[int] = []
    rig.limits.waiting.append(lambda: called.append(1))
    rig.limits.closed(first)
    rig.limits.closed(first)
    assert called == [1]
    assert rig.connect() is None


def test_an_address_that_connects_too_fast_is_refused_and_not_counted() -> None:
    rig = Rig(**{"max.connection.creation.rate": "1000"})
    rig.limit_rate("192.0.2.1", 1)
    for _ in range(10):
        assert rig.connect() is None
    refusal = rig.connect()
    assert refusal is not None
    assert refusal.after_ms == 1000
    assert rig.connect() == refusal
    assert rig.connect("192.0.2.2") is None
    rig.now_ms += 30_000
    assert rig.connect() is None


def test_the_default_rate_is_for_addresses_without_a_rate_of_their_own() -> None:
    rig = Rig()
    rig.limit_rate(None, 1)
    rig.limit_rate("192.0.2.1", 100)
    assert [rig.connect() is None for _ in range(12)] == [True] * 12
    assert [rig.connect("192.0.2.2") is None for _ in range(11)] == [True] * 10 + [False]


# -- in a broker -----------------------------------------------------------------------------------


@asynccontextmanager
async def serving(directory: Path, **settings: str) -> AsyncIterator[BrokerInLoop]:
    async with broker_in_loop([directory], Files(), **settings) as broker:
        yield broker


async def connect(broker: BrokerInLoop, port: int | None = None) -> WireClient:
    """Connect, and send a request."""
    client = await asyncio.to_thread(WireClient, port or broker.port, timeout_s=10)
    broker.clients.append(client)
    client.send(client.frame_of(ApiVersionsRequest(), 2))
    return client


async def answered(client: WireClient) -> None:
    answer = await asyncio.to_thread(client.read_answer, ApiVersionsResponse, 2)
    assert answer.error_code == ErrorCode.NONE


async def is_closed(client: WireClient) -> bool:
    return await asyncio.to_thread(client.is_closed_by_peer, 5)


async def alter(client: WireClient, **values: str) -> None:
    """Change settings of the broker over a connection that is open."""
    changes = {name.replace("_", "."): value for name, value in values.items()}
    request = alter_configs_request(BROKER, "0", changes)
    answer = await asyncio.to_thread(client.ask, request, IncrementalAlterConfigsResponse, 1)
    assert answer.responses[0].error_code == ErrorCode.NONE, answer


def open_count(broker: BrokerInLoop) -> Callable[[int], bool]:
    return lambda count: len(broker._running._server.connections) == count


async def test_a_connection_too_many_is_served_when_another_one_ends(tmp_path: Path) -> None:
    async with serving(tmp_path, max_connections="2") as broker:
        first, second = await connect(broker), await connect(broker)
        await answered(first)
        await answered(second)
        third = await connect(broker)
        await answered_after(third, first.close)
        for client in (second, third):
            client.close()


async def answered_after(client: WireClient, act: Callable[[], object]) -> None:
    """Fail if the client is answered before the act."""
    waiting = asyncio.create_task(answered(client))
    done, _ = await asyncio.wait([waiting], timeout=0.1)
    assert not done
    act()
    await waiting


async def test_a_limit_that_is_raised_lets_waiting_connections_in(tmp_path: Path) -> None:
    async with serving(tmp_path, max_connections="1") as broker:
        first = await connect(broker)
        await answered(first)
        second = await connect(broker)
        await alter(first, max_connections="2")
        await answered(second)


async def test_a_lowered_limit_closes_the_connections_that_were_used_least_recently(
    tmp_path: Path,
) -> None:
    async with serving(tmp_path) as broker:
        clients = [await connect(broker) for _ in range(3)]
        for client in clients:
            await answered(client)
        await asyncio.sleep(0.002)  # `last_active_ms` has milliseconds
        await alter(clients[0], max_connections="1")
        assert [await is_closed(client) for client in clients[1:]] == [True, True]
        clients[0].send(clients[0].frame_of(ApiVersionsRequest(), 2))
        await answered(clients[0])


async def test_an_address_with_too_many_connections_is_closed_at_once(tmp_path: Path) -> None:
    async with serving(tmp_path, max_connections_per_ip="2") as broker:
        clients = [await connect(broker) for _ in range(2)]
        for client in clients:
            await answered(client)
        third = await connect(broker)
        assert await is_closed(third)
        clients[0].close()
        await until(lambda: open_count(broker)(1))
        await answered(await connect(broker))


async def test_a_listener_that_is_full_does_not_stop_the_other(tmp_path: Path) -> None:
    (outer,) = free_ports(1)
    (port,) = free_ports(1)
    settings = {
        "listeners": f"PLAINTEXT://127.0.0.1:{port},OUTER://127.0.0.1:{outer}",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,OUTER:PLAINTEXT",
        "listener.name.outer.max.connections": "1",
    }
    async with serving(tmp_path, **settings) as broker:
        first, second = await connect(broker, outer), await connect(broker, outer)
        await answered(first)
        inner = await connect(broker, port)
        await answered(inner)
        waiting = asyncio.create_task(answered(second))
        await alter(inner, **{"listener.name.outer.max.connections": "2"})
        await waiting


async def test_connections_over_the_rate_are_served_after_the_throttle_time(
    tmp_path: Path,
) -> None:
    settings = {"max_connection_creation_rate": "10", "quota_window_num": "2"}
    async with serving(tmp_path, **settings) as broker:
        now_ms = broker.broker.clock.timer_ms()
        broker.broker.quotas.timer_ms = lambda: now_ms
        for _ in range(10):
            await answered(await connect(broker))
        loop = asyncio.get_running_loop()
        began = loop.time()
        await answered(await connect(broker))
        assert 0.09 < loop.time() - began < 1


async def test_an_address_over_its_rate_is_closed_after_the_throttle_time(tmp_path: Path) -> None:
    async with serving(tmp_path, quota_window_num="2") as broker:
        now_ms = broker.broker.clock.timer_ms()
        broker.broker.quotas.timer_ms = lambda: now_ms
        request = quota_request({"ip": "127.0.0.1"}, connection_creation_rate=10)
        answer = await broker.ask(request, AlterClientQuotasResponse, ALTER_VERSION)
        assert answer.entries[0].error_code == ErrorCode.NONE
        clients = [await connect(broker) for _ in range(11)]
        for client in clients[:10]:
            await answered(client)
        loop = asyncio.get_running_loop()
        began = loop.time()
        assert await is_closed(clients[10])
        assert loop.time() - began < 1


async def test_a_broker_stops_while_a_connection_waits(tmp_path: Path) -> None:
    async with serving(tmp_path, max_connections="1") as broker:
        await answered(await connect(broker))
        waiting = await connect(broker)
        broker.clients.remove(waiting)
        await asyncio.sleep(0.05)
    assert await is_closed(waiting)
    waiting.close()


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "::ffff:127.0.0.1"])
def test_a_host_may_be_an_address_or_a_name(host: str) -> None:
    assert HostAddresses().of(host) in ("127.0.0.1", "::1")
