"""The pytest plugin: fixtures that give a broker to tests.

    def test_orders(odradek_broker):
        producer = KafkaProducer(bootstrap_servers=odradek_broker.bootstrap_servers)

One broker serves a whole session (with pytest-xdist: one per worker), and each test finds it empty.
pytest loads this file in every session where odradek is installed, so nothing of the broker is
imported before a test asks for one.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import suppress
from enum import IntEnum
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from .broker import Broker, LeftoverClient  # imported when a test asks for a broker

_ABOUT_LEFTOVER_CLIENTS = (
    "They were connected before the broker was emptied for this test. Clients that the tests do not"
    " share\nmust be closed by the test that has made them:\n"
)


@pytest.fixture(scope="session")
def odradek_settings() -> dict[str, str]:
    """Keys of server.properties for the session's broker. Override it in a conftest.py."""
    return {}


@pytest.fixture(scope="session")
def odradek_session_broker(
    tmp_path_factory: pytest.TempPathFactory, odradek_settings: dict[str, str]
) -> Iterator[Broker]:
    """The session's broker, which is not reset between tests."""
    from .broker import Broker

    with Broker(tmp_path_factory.mktemp("odradek"), odradek_settings) as broker:
        yield broker


@pytest.fixture
def odradek_broker(odradek_session_broker: Broker) -> Broker:
    """The session's broker, empty: without topics, groups, transactions and faults."""
    return _emptied(odradek_session_broker)


@pytest.fixture(scope="session")
def odradek_secure_session_broker(
    tmp_path_factory: pytest.TempPathFactory, odradek_settings: dict[str, str]
) -> Iterator[Broker]:
    """The session's secure broker, which is not reset between tests."""
    from .broker import Broker

    directory = tmp_path_factory.mktemp("odradek-secure")
    with Broker(directory, odradek_settings, secure=True) as broker:
        yield broker


@pytest.fixture
def odradek_secure_broker(odradek_secure_session_broker: Broker) -> Broker:
    """The session's secure broker, empty: only `admin` can log in, and may do everything."""
    return _emptied(odradek_secure_session_broker)


def _emptied(broker: Broker) -> Broker:
    """A broker that a test before may have stopped or killed."""
    from .injected import BrokerError

    if broker.is_running:
        try:
            broker.reset()
            return broker
        except BrokerError:
            pass  # its process ends, or cannot be reset: another one can
    broker.kill_and_restart()
    broker.reset()
    return broker


def pytest_make_parametrize_id(val: object) -> str | None:
    """Show an ApiKey or an ErrorCode as its name in the id of a test; pytest shows the number."""
    if isinstance(val, IntEnum) and type(val).__module__.startswith("odradek.protocol."):
        return val.name
    return None


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Add the last lines of the broker's log to the report of a failed test that uses it."""
    report = yield
    for name in ("odradek_session_broker", "odradek_secure_session_broker"):
        broker = getattr(item, "funcargs", {}).get(name)
        if report.failed and broker is not None:
            report.sections += _sections_about(broker)
    return report


def _sections_about(broker: Broker) -> Iterator[tuple[str, str]]:
    """The end of its log, and what clients of earlier tests have done in this one."""
    from .injected import BrokerError

    with suppress(BrokerError):  # the test has ended it, or removed its files
        yield "The broker's log", broker.last_log_lines()
        if found := broker.leftover_clients():
            text = "".join([_ABOUT_LEFTOVER_CLIENTS, *map(_line_about, found)])
            yield "Clients of earlier tests", text


def _line_about(client: LeftoverClient) -> str:
    software = " ".join(filter(None, (client.software, client.software_version)))
    done = [f"made the topic {name}" for name in client.topics]
    done += [f"joined the group {name}" for name in client.groups]
    since = client.connected_after
    when = f"after the start of {since}" if since else "before the first reset"
    return (
        f"{client.client_id or 'a client without a name'} ({software or 'unknown software'})"
        f" at {client.address}, which connected {when}, {', '.join(done)}\n"
    )
