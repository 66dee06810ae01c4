"""The tests of the rim run on the loop that the broker runs on."""

from collections.abc import Callable, Mapping

import pytest
import uvloop

from tests.support.produce_paths import BothPaths


def pytest_asyncio_loop_factories(
    config: pytest.Config, item: pytest.Item
) -> Mapping[str, Callable[[], uvloop.Loop]]:
    return {"uvloop": uvloop.new_event_loop}


@pytest.fixture
def both_produce_paths(monkeypatch: pytest.MonkeyPatch) -> BothPaths:
    """Have brokers in this process compare the two paths of Produce for all that is sent."""
    return BothPaths(monkeypatch)
