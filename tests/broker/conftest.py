"""The tests of the rim run on the loop that the broker runs on."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path

import pytest

from odradek.broker.common.event_loop import new_event_loop
from tests.support.faulty_files import FaultyFiles
from tests.support.produce_paths import BothPaths
from tests.support.transactions import Transactions, transactions_in


def pytest_asyncio_loop_factories(
    config: pytest.Config, item: pytest.Item
) -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    return {"of the broker": new_event_loop}


@pytest.fixture
def both_produce_paths(monkeypatch: pytest.MonkeyPatch) -> BothPaths:
    """Have brokers in this process compare the two paths of Produce for all that is sent."""
    return BothPaths(monkeypatch)


@pytest.fixture
def files() -> FaultyFiles:
    """The files of the broker of `rig`."""
    return FaultyFiles()


@pytest.fixture
def rig_settings() -> dict[str, str]:
    """Settings of the broker of `rig`; a test module may give its own."""
    return {}


@pytest.fixture
async def rig(
    tmp_path: Path, files: FaultyFiles, rig_settings: dict[str, str]
) -> AsyncIterator[Transactions]:
    """A broker whose files can fail, and producers of transactions."""
    async with transactions_in(tmp_path, files=files, **rig_settings) as rig:
        yield rig
        files.heal()
