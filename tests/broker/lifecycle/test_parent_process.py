"""A broker that serves for the process that has started it ends with that process."""

import asyncio
import os
import sys
from types import SimpleNamespace
from typing import Any

import pytest

from odradek.broker.lifecycle import parent_process, run
from odradek.broker.lifecycle.run import serve

PARENT, ANOTHER = 100, 1


class Running:
    """A broker that serves nobody."""

    def __init__(self) -> None:
        self.addresses: dict[str, str] = {}
        self.is_stopped = False
        self.broker: Any = SimpleNamespace(
            config=SimpleNamespace(open_listeners=[None]),
            nodes=SimpleNamespace(all=lambda *_: []),
            directory_failures=SimpleNamespace(fatal=asyncio.get_running_loop().create_future()),
        )

    async def stop(self) -> None:
        self.is_stopped = True


class Machine:
    """Starts a broker; its parent ends meanwhile if `parent_ends`."""

    def __init__(self, *, parent_ends: bool = False) -> None:
        self.parent_ends = parent_ends
        self.parent = PARENT
        self.started: list[Running] = []

    def getppid(self) -> int:
        return self.parent

    async def start(self, _: object) -> Any:
        self.parent = ANOTHER if self.parent_ends else PARENT
        self.started.append(Running())
        return self.started[0]

    def serve(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Run the broker until it ends."""
        monkeypatch.setattr(os, "getppid", self.getppid)
        monkeypatch.setattr(parent_process, "CHECK_EVERY_S", 0.001)
        monkeypatch.setattr(run, "spare_what_stays", lambda: None)
        config: Any = None
        serve(config, for_parent=True, start=self.start)


def test_a_parent_that_ends_during_the_start_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine(parent_ends=True)
    machine.serve(monkeypatch)
    assert machine.started[0].is_stopped


def test_a_broker_whose_address_nobody_reads_stops(monkeypatch: pytest.MonkeyPatch) -> None:
    def write(_: str) -> int:
        raise BrokenPipeError

    monkeypatch.setattr(sys.stdout, "write", write)
    machine = Machine()
    machine.serve(monkeypatch)
    assert machine.started[0].is_stopped
