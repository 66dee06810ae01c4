"""Limits on connections as Apache Kafka has them: what is served, what is closed, and what waits.

Clients have addresses of their own, because all of 127.0.0.0/8 is this machine.
"""

import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.api_versions import ApiVersionsRequest
from odradek.protocol.messages.incremental_alter_configs import (
    IncrementalAlterConfigsResponse,
)
from tests.support.broker_process import ApacheKafkaProcess, BrokerProcess, running
from tests.support.config_requests import alter_configs_request
from tests.support.kafka_answers import BROKERS
from tests.support.lengths import only_long
from tests.support.quotas import alter_quota
from tests.support.wire import WireClient, request_frame

pytestmark = [
    pytest.mark.slow,
    only_long("the limits are kept in broker/network/test_connection_limits.py"),
]

SETTINGS = {"quota.window.num": "2", "max.connections.per.ip.overrides": "127.0.0.7:3"}
REQUEST = request_frame(ApiVersionsRequest(), 0, 1, "limited")
ANSWERED, CLOSED, WAITS = "answered", "closed", "waits"
PATIENCE_S = 2.0
BROKER = 4


@pytest.fixture(scope="module", params=BROKERS)
def broker(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[BrokerProcess]:
    kind = {"kafka": ApacheKafkaProcess, "odradek": BrokerProcess}[request.param]
    with running(kind(tmp_path_factory.mktemp("broker"), SETTINGS)) as process:
        yield process


@pytest.fixture
def opened() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def connect(broker: BrokerProcess, opened: ExitStack, host: str) -> socket.socket:
    """Connect from an address, and send a request."""
    client = socket.create_connection(("127.0.0.1", broker.port), 10, (host, 0))
    opened.callback(client.close)
    client.sendall(REQUEST)
    return client


def fate(client: socket.socket, within_s: float = PATIENCE_S) -> str:
    client.settimeout(within_s)
    try:
        return ANSWERED if client.recv(4) else CLOSED
    except TimeoutError:
        return WAITS
    except ConnectionError:
        return CLOSED


def test_connections_beyond_the_limit_of_an_address_are_closed(
    broker: BrokerProcess, opened: ExitStack
) -> None:
    clients = [connect(broker, opened, "127.0.0.7") for _ in range(5)]
    assert [fate(client) for client in clients] == [ANSWERED] * 3 + [CLOSED] * 2
    assert fate(connect(broker, opened, "127.0.0.6")) == ANSWERED


def test_connections_beyond_the_rate_of_an_address_are_closed_after_a_while(
    broker: BrokerProcess, opened: ExitStack
) -> None:
    alter_quota(broker.port, {"ip": "127.0.0.8"}, connection_creation_rate=5)
    time.sleep(0.5)  # Kafka's broker learns it a little later
    clients = [connect(broker, opened, "127.0.0.8") for _ in range(8)]
    assert [fate(client) for client in clients] == [ANSWERED] * 5 + [CLOSED] * 3
    assert fate(connect(broker, opened, "127.0.0.9")) == ANSWERED


def test_connections_beyond_the_limit_of_a_listener_wait(
    broker: BrokerProcess, opened: ExitStack
) -> None:
    time.sleep(0.5)  # what other tests have closed is gone
    with WireClient(broker.port) as admin:
        alter(admin, "listener.name.plaintext.max.connections", "4")
        time.sleep(0.5)
        clients = [connect(broker, opened, "127.0.0.1") for _ in range(4)]
        assert [fate(client, 0.5) for client in clients] == [ANSWERED] * 3 + [WAITS]
        clients[0].close()
        assert fate(clients[3]) == ANSWERED
        later = connect(broker, opened, "127.0.0.1")
        assert fate(later, 0.5) == WAITS
        alter(admin, "listener.name.plaintext.max.connections", "5")
        assert fate(later) == ANSWERED


def alter(client: WireClient, name: str, value: str) -> None:
    request = alter_configs_request(BROKER, "", {name: value})
    answer = client.ask(request, IncrementalAlterConfigsResponse, 1)
    assert answer.responses[0].error_code == ErrorCode.NONE, answer
