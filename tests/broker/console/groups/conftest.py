"""One broker with a console serves all tests; each finds it empty."""

from collections.abc import Iterator

import pytest

from tests.support.broker_process import BrokerProcess
from tests.support.console_client import ConsoleBroker, ConsoleClient, console_broker


@pytest.fixture(scope="session")
def broker_with_console(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ConsoleBroker]:
    settings = {
        "group.initial.rebalance.delay.ms": "0",
        "group.consumer.min.heartbeat.interval.ms": "50",
        "group.consumer.heartbeat.interval.ms": "50",
        "group.streams.initial.rebalance.delay.ms": "0",
    }
    with console_broker(tmp_path_factory.mktemp("console"), settings) as found:
        yield found


@pytest.fixture
def broker(broker_with_console: ConsoleBroker) -> BrokerProcess:
    """The broker, without the topics and groups of other tests."""
    process, console = broker_with_console
    for topic in console.get("/topics")["topics"]:
        console.delete(f"/topics/{topic['name']}", {"confirm": topic["name"]})
    for group in console.get("/groups")["groups"]:
        console.delete(f"/groups/{group['groupId']}", {"confirm": group["groupId"]})
    return process


@pytest.fixture
def console(broker: BrokerProcess, broker_with_console: ConsoleBroker) -> ConsoleClient:
    assert broker is broker_with_console.process
    return broker_with_console.console
