import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from faststream.confluent import KafkaBroker

from odradek.broker.testing import ApiKey, Broker, ErrorCode
from shop import Order, router

pytestmark = pytest.mark.asyncio


@asynccontextmanager
async def running_service(broker: Broker) -> AsyncIterator[KafkaBroker]:
    service = KafkaBroker(broker.bootstrap_servers)
    service.include_router(router)
    async with service:
        await service.start()
        yield service


async def totals(broker: Broker, count: int) -> list[int]:
    """The totals of the invoices, when there are at least `count`. The service runs meanwhile."""
    records = await asyncio.to_thread(broker.wait_for_records, "invoices", count)
    return [json.loads(record.value)["total"] for record in records]


async def test_an_order_becomes_an_invoice(odradek_broker: Broker) -> None:
    odradek_broker.create_topic("orders")
    async with running_service(odradek_broker) as service:
        await service.publish(Order(count=2, what="coffee"), "orders")
        assert await totals(odradek_broker, 1) == [6]


async def test_an_order_is_sent_again_when_the_broker_refuses_it(odradek_broker: Broker) -> None:
    odradek_broker.create_topic("orders")
    async with running_service(odradek_broker) as service:
        odradek_broker.fail_next(ApiKey.PRODUCE, ErrorCode.NOT_LEADER_OR_FOLLOWER)
        await service.publish(Order(count=1, what="tea"), "orders")
        assert await totals(odradek_broker, 1) == [2]
