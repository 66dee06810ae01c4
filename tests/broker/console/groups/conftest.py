"""One broker with a console serves all tests; each uses topics and groups of its own."""

from collections.abc import Iterator

import pytest

from odradek.broker.testing.broker import Broker
from tests.support.broker_process import free_ports
from tests.support.console_client import ConsoleClient


@pytest.fixture(scope="session")
def broker_with_console(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[tuple[Broker, ConsoleClient]]:
    (port,) = free_ports(1)
    settings = {
        "odradek.http.listener": f"localhost:{port}",
        "odradek.console": "true",
        "group.share.min.heartbeat.interval.ms": "50",
        "group.share.heartbeat.interval.ms": "50",
    }
    with Broker(tmp_path_factory.mktemp("console"), settings) as broker:
        yield broker, ConsoleClient(port)


@pytest.fixture
def broker(broker_with_console: tuple[Broker, ConsoleClient]) -> Broker:
    broker = broker_with_console[0]
    broker.reset()
    return broker


@pytest.fixture
def console(broker: Broker, broker_with_console: tuple[Broker, ConsoleClient]) -> ConsoleClient:  # noqa: ARG001 # which has been reset
    return broker_with_console[1]
