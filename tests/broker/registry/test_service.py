"""Changes: each is decided on all that the log says."""

import asyncio
from collections.abc import Sequence
from typing import Any

from odradek.broker.common.background_tasks import BackgroundTasks
from odradek.broker.registry.service import RegistryService
from odradek.coordinator.registry.records import Record
from odradek.coordinator.registry.registry import Registry
from odradek.coordinator.registry.requests import schema_request
from odradek.coordinator.registry.state import RegistryState


class LogOfTwo:
    """A log to which somebody else writes just before the first record of this registry."""

    is_whole = is_current = True

    def __init__(self) -> None:
        self.registry = Registry(RegistryState())
        self._is_written_to = False

    async def follow(self) -> None:
        """All is replayed."""

    async def append(self, made: Sequence[Record]) -> bool:
        if not self._is_written_to:
            self._is_written_to = True
            self._replay(
                self.registry.register("other", schema_request({"schema": '"int"'})).records
            )
            return False
        self._replay(made)
        return True

    def _replay(self, made: Sequence[Record]) -> None:
        for record in made:
            self.registry.state.replay(record.key, record.value)


def test_a_change_is_decided_again_if_others_have_written_before_its_records() -> None:
    log: Any = LogOfTwo()
    request = schema_request({"schema": '"string"'})

    async def change() -> int:
        background = BackgroundTasks(asyncio.get_running_loop())
        unused: Any = None
        service = RegistryService(log, background, unused, unused)
        decision = await service.change(lambda registry: registry.register("s", request))
        return decision.reply.id

    assert asyncio.run(change()) == 2
    assert log.registry.schema(1).schema.text == '"int"'
