"""Clients that begin a login and do not end it cost little, and nobody else anything."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from odradek.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from odradek.protocol.messages.sasl_handshake import SaslHandshakeRequest
from tests.bench.two_brokers import allow_files
from tests.support.broker_process import BrokerProcess
from tests.support.lengths import by_length
from tests.support.sasl import ScramClient, add_scram_user, log_in_by_scram
from tests.support.secured import secure
from tests.support.wire import WireClient

CLIENTS = by_length(300, 5000)
BYTES_PER_CLIENT = 24 << 10  # at most
# Far less than connections.max.idle.ms, and enough for a busy machine.
HONEST_SECONDS = 15.0


@pytest.fixture
def secured(tmp_path: Path) -> Iterator[tuple[BrokerProcess, int]]:
    broker = BrokerProcess(tmp_path)
    ports = secure(broker)
    try:
        broker.start()
        with WireClient(broker.port) as admin:
            add_scram_user(admin, "alice", "pencil")
        yield broker, ports["IN"]
    finally:
        broker.stop()


def honest_login_s(port: int) -> float:
    began = time.monotonic()
    with WireClient(port) as client:
        log_in_by_scram(client, "SCRAM-SHA-256", "alice", "pencil")
    return time.monotonic() - began


@pytest.mark.slow
def test_half_open_logins_take_little_memory_and_leave_nothing(
    secured: tuple[BrokerProcess, int],
) -> None:
    broker, port = secured
    allow_files(2 * CLIENTS)
    honest_login_s(port)
    files, memory = broker.open_files(), broker.memory_bytes()
    clients = []
    try:
        for number in range(CLIENTS):
            client = WireClient(port)
            clients.append(client)
            if number % 3:
                client.send(handshake_frame(client))
            if number % 3 == 2:
                first = ScramClient("SCRAM-SHA-256", f"user-{number}", "x").first()
                client.send(token_frame(client, first)[: -number % 40 or None])
        assert honest_login_s(port) < HONEST_SECONDS
        assert broker.memory_bytes() - memory < CLIENTS * BYTES_PER_CLIENT
    finally:
        for client in clients:
            client.close()
    deadline = time.monotonic() + 20
    while broker.open_files() > files + 5:
        assert time.monotonic() < deadline, "connections stay open"
        time.sleep(0.05)
    assert honest_login_s(port) < HONEST_SECONDS
    assert broker.crashes_in_log() == []


def handshake_frame(client: WireClient) -> bytes:
    return client.frame_of(SaslHandshakeRequest(mechanism="SCRAM-SHA-256"), 1)


def token_frame(client: WireClient, token: bytes) -> bytes:
    return client.frame_of(SaslAuthenticateRequest(auth_bytes=token), 2)
