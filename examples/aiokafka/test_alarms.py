import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from datetime import timedelta

import pytest
from aiokafka import AIOKafkaProducer

from alarms import send_alarms
from odradek.broker.testing import Broker

pytestmark = pytest.mark.asyncio


@asynccontextmanager
async def running_service(broker: Broker) -> AsyncIterator[None]:
    task = asyncio.create_task(send_alarms(broker.bootstrap_servers))
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def measure(broker: Broker, *temperatures: int) -> None:
    async with AIOKafkaProducer(bootstrap_servers=broker.bootstrap_servers) as producer:
        for temperature in temperatures:
            await producer.send_and_wait("temperatures", b"%d" % temperature, key=b"oven")


async def alarms(broker: Broker, count: int) -> list[bytes | None]:
    """The alarms, when there are at least `count`. The event loop goes on meanwhile."""
    records = await asyncio.to_thread(broker.wait_for_records, "alarms", count)
    return [record.value for record in records]


async def test_only_high_temperatures_are_alarms(odradek_broker: Broker) -> None:
    await measure(odradek_broker, 20, 95, 30, 99)
    async with running_service(odradek_broker):
        assert await alarms(odradek_broker, 2) == [b"95", b"99"]


async def test_the_service_goes_on_when_its_session_has_timed_out(odradek_broker: Broker) -> None:
    await measure(odradek_broker, 95)
    async with running_service(odradek_broker):
        assert await alarms(odradek_broker, 1) == [b"95"]
        odradek_broker.advance(timedelta(minutes=1))
        await measure(odradek_broker, 96)
        sent = await alarms(odradek_broker, 2)
        if sent == [b"95", b"95"]:  # the session ended before the commit
            sent = await alarms(odradek_broker, 3)
        assert sent[-1] == b"96"


async def test_a_service_that_was_away_for_longer_than_retention_goes_on(
    odradek_broker: Broker,
) -> None:
    odradek_broker.create_topic("temperatures", configs={"retention.ms": "3600000"})
    await measure(odradek_broker, 95)
    async with running_service(odradek_broker):
        assert await alarms(odradek_broker, 1) == [b"95"]
    await measure(odradek_broker, 96)
    odradek_broker.advance(timedelta(hours=2))
    assert odradek_broker.records("temperatures") == []
    await measure(odradek_broker, 97)
    async with running_service(odradek_broker):
        assert await alarms(odradek_broker, 2) == [b"95", b"97"]
