"""Requests whose clients have gone away."""

import asyncio
import gc
from typing import Any, cast

from odradek.broker.common.background_tasks import BackgroundTasks
from odradek.broker.registry.schema_log import SchemaLog
from odradek.broker.registry.service import RegistryService
from odradek.coordinator.registry.errors import RegistryError, invalid_schema
from odradek.coordinator.registry.registration import Decision
from odradek.coordinator.registry.registry import Registry
from odradek.coordinator.registry.state import RegistryState


class WaitingLog:
    """A log that is read once `is_read` is set."""

    def __init__(self) -> None:
        self.registry = Registry(RegistryState())
        self.is_asked, self.is_read = asyncio.Event(), asyncio.Event()

    async def follow(self) -> None:
        self.is_asked.set()
        await self.is_read.wait()


def refuse(registry: Registry) -> Decision[None]:
    raise invalid_schema("no")


def test_a_refusal_that_nobody_waits_for_is_not_logged() -> None:
    async def refused() -> list[dict[str, Any]]:
        loop = asyncio.get_running_loop()
        faults: list[dict[str, Any]] = []
        loop.set_exception_handler(lambda _, context: faults.append(context))
        log, background = WaitingLog(), BackgroundTasks(loop)
        nothing = cast(Any, None)
        service = RegistryService(cast(SchemaLog, log), background, nothing, nothing)
        asked = asyncio.create_task(service.change(refuse))
        await log.is_asked.wait()
        asked.cancel()
        await asyncio.wait([asked])
        log.is_read.set()
        await background.wait()
        try:
            await service.change(refuse)
        except RegistryError as error:
            assert error.message == "no"  # noqa: PT017
        else:
            raise AssertionError("it is not refused")
        await asyncio.sleep(0)
        gc.collect()
        return faults

    assert asyncio.run(refused()) == []


def test_a_request_that_waits_for_another_ends_with_its_client() -> None:
    async def held() -> list[int]:
        log, background = WaitingLog(), BackgroundTasks(asyncio.get_running_loop())
        nothing = cast(Any, None)
        service = RegistryService(cast(SchemaLog, log), background, nothing, nothing)
        first = asyncio.create_task(service.load())
        await log.is_asked.wait()
        waiting = [asyncio.create_task(service.load()) for _ in range(10)]
        await asyncio.sleep(0)
        counts = [len(background.running)]
        for task in (first, *waiting):
            task.cancel()
        await asyncio.wait([first, *waiting])
        counts.append(len(background.running))
        log.is_read.set()
        await service.load()
        return [*counts, len(background.running)]

    assert asyncio.run(held()) == [1, 1, 0]
