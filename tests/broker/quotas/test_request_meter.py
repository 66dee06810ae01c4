"""The time that a request takes: what is counted, and for whom."""

import asyncio
from types import SimpleNamespace

import pytest

from odradek.broker.quotas.client_quotas import Client
from odradek.broker.quotas.host_addresses import HostAddresses
from odradek.broker.quotas.precedence import QuotaTable
from odradek.broker.quotas.quotas import Quotas
from odradek.broker.quotas.request_meter import RequestMeter
from odradek.config.broker_config import BrokerConfig
from odradek.coordinator.metadata.client_quotas import ClientQuotas
from odradek.protocol.api_keys import ApiKey

CLIENT = Client("alice", "one")
WORK_S = 0.25
WINDOW_S = 10


class Clock:
    """A clock that goes on only while somebody works."""

    now_s = 0.0

    def work(self) -> None:
        self.now_s += WORK_S


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def quotas(clock: Clock) -> Quotas:
    made = Quotas(BrokerConfig(), ClientQuotas(), HostAddresses(), lambda: 0, lambda: clock.now_s)
    made.request.table = QuotaTable({frozenset({("user", "alice")}): 100.0})
    return made


def meter_of(quotas: Quotas, key: ApiKey) -> RequestMeter:
    return RequestMeter(quotas, CLIENT, key, 0, 100)


def used_s(quotas: Quotas) -> float:
    """The seconds of work that were charged; 0 without any charge."""
    return sum(per_cent for _, per_cent in quotas.request.measured(lambda: 0)) / 100 * WINDOW_S


def test_the_time_until_the_response_is_sent_is_charged(quotas: Quotas, clock: Clock) -> None:
    meter = meter_of(quotas, ApiKey.METADATA)
    clock.work()
    meter.settle(None, object())
    assert used_s(quotas) == WORK_S
    clock.work()  # encoding
    meter.finish()
    assert used_s(quotas) == 2 * WORK_S


async def test_only_the_steps_of_a_coroutine_are_charged(quotas: Quotas, clock: Clock) -> None:
    meter = meter_of(quotas, ApiKey.CREATE_TOPICS)
    ready = asyncio.Event()

    async def create() -> str:
        clock.work()
        await ready.wait()
        clock.work()
        return "created"

    meter.pause()
    task = asyncio.ensure_future(meter.timed(create()))
    await asyncio.sleep(0)
    clock.work()  # of somebody else
    ready.set()
    assert await task == "created"
    meter.settle(None, object())
    assert used_s(quotas) == 2 * WORK_S


async def test_what_others_do_for_a_future_is_not_charged(quotas: Quotas, clock: Clock) -> None:
    meter = meter_of(quotas, ApiKey.JOIN_GROUP)
    future: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    meter.pause()
    clock.work()
    future.set_result("joined")
    assert await meter.timed(future) == "joined"
    meter.settle(None, object())
    assert used_s(quotas) == 0


async def test_errors_and_cancellation_reach_a_coroutine_that_is_metered(quotas: Quotas) -> None:
    meter = meter_of(quotas, ApiKey.CREATE_TOPICS)
    seen: list[str] = []

    async def failing() -> None:
        await asyncio.sleep(0)
        raise ValueError("no")

    async def waiting() -> None:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            seen.append("cancelled")
            raise

    with pytest.raises(ValueError, match="no"):
        await meter.timed(failing())
    task = asyncio.ensure_future(meter.timed(waiting()))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert seen == ["cancelled"]


@pytest.mark.parametrize("key", [ApiKey.WRITE_TXN_MARKERS, ApiKey.SASL_AUTHENTICATE])
def test_requests_of_brokers_and_of_logins_are_exempt(
    key: ApiKey, quotas: Quotas, clock: Clock
) -> None:
    meter = meter_of(quotas, key)
    clock.work()
    meter.settle(None, object())
    meter.finish()
    assert used_s(quotas) == 0


@pytest.mark.parametrize(("acks", "charged_s"), [(1, WORK_S), (-1, WORK_S), (0, 0)])
def test_produce_without_a_response_has_no_quota_on_time(
    acks: int, charged_s: float, quotas: Quotas, clock: Clock
) -> None:
    meter = meter_of(quotas, ApiKey.PRODUCE)
    clock.work()
    meter.settle(SimpleNamespace(acks=acks), object())
    meter.finish()
    assert used_s(quotas) == charged_s


def test_the_fetch_of_a_follower_is_exempt(quotas: Quotas, clock: Clock) -> None:
    quotas.fetch.table = QuotaTable({frozenset({("user", "alice")}): 1.0})
    meter = meter_of(quotas, ApiKey.FETCH)
    meter.exempt()
    clock.work()
    assert meter.throttle_fetch(10**9) == 0
    meter.finish()
    assert used_s(quotas) == 0
    assert not list(quotas.fetch.measured(lambda: 0))


def test_a_client_that_takes_more_than_its_share_is_throttled_for_one_sample_at_most(
    quotas: Quotas, clock: Clock
) -> None:
    for _ in range(int(WINDOW_S / WORK_S)):
        meter = meter_of(quotas, ApiKey.METADATA)
        clock.work()
        meter.settle(None, object())
        assert meter.throttle_ms == 0
    throttled = []
    for _ in range(8):
        meter = meter_of(quotas, ApiKey.METADATA)
        clock.work()
        meter.settle(None, object())
        throttled.append(meter.throttle_ms)
    assert throttled == [250, 500, 750, 1000, 1000, 1000, 1000, 1000]
