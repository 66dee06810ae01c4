"""No TLS client keeps the event loop busy, whatever its records are."""

import socket
import ssl
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

from odradek.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from odradek.protocol.messages.fetch import FetchRequest, FetchResponse
from tests.support.broker_process import free_ports
from tests.support.certificates import TlsFiles
from tests.support.requests import build
from tests.support.topics import create_topic
from tests.support.turns import TURN_MS, MeasuredBroker, measured_broker
from tests.support.wire import WireClient, request_frame

pytestmark = pytest.mark.slow

VERSION = 0
RECORDS = 20_000
ANSWER_SECONDS = 60.0
TOPIC = "t"
FETCH_VERSION = 4
UNREAD_BYTES = 40_000  # more than the buffer of a connection that waits
RECORD_BYTES = 9_999
MAX_TURNS = 500  # a loop that is not idle makes tens of thousands in a second


class ByteByByte:
    """A TLS connection that sends each byte in a record of its own."""

    def __init__(self, sock: socket.socket, context: ssl.SSLContext) -> None:
        self._socket = sock
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_hostname="localhost")
        while True:
            try:
                self._tls.do_handshake()
                break
            except ssl.SSLWantReadError:
                self._exchange()
        self._socket.sendall(self._outgoing.read())

    def records(self, data: bytes) -> bytes:
        """The records that hold the data."""
        for position in range(len(data)):
            self._tls.write(data[position : position + 1])
        return self._outgoing.read()

    def read(self) -> bytes:
        """Some of what the broker has sent."""
        while True:
            try:
                return self._tls.read(65_536)
            except ssl.SSLWantReadError:
                self._exchange()

    def _exchange(self) -> None:
        self._socket.sendall(self._outgoing.read())
        received = self._socket.recv(65_536)
        assert received, "the broker has closed the connection"
        self._incoming.write(received)


@contextmanager
def connected(port: int, context: ssl.SSLContext) -> Iterator[tuple[socket.socket, ByteByByte]]:
    with socket.create_connection(("127.0.0.1", port), timeout=ANSWER_SECONDS) as sock:
        yield sock, ByteByByte(sock, context)


class TlsListener(NamedTuple):
    """A broker that is measured, and how to reach it with TLS."""

    broker: MeasuredBroker
    port: int
    context: ssl.SSLContext


@pytest.fixture(scope="module")
def listener(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TlsListener]:
    root = Path(tmp_path_factory.mktemp("tls"))
    files = TlsFiles(root / "certificates")
    plain, tls = free_ports(2)
    listeners = f"PLAINTEXT://127.0.0.1:{plain},SSL://127.0.0.1:{tls}"
    settings = files.broker_settings() | {
        "listeners": listeners,
        "advertised.listeners": listeners,
    }
    context = ssl.create_default_context(cafile=str(files.ca))
    with measured_broker(root / "data", settings) as broker:
        create_topic(f"127.0.0.1:{plain}", TOPIC)
        yield TlsListener(broker, tls, context)


def test_records_of_one_byte_keep_nobody_waiting(listener: TlsListener) -> None:
    broker, port, context = listener
    frame = request_frame(ApiVersionsRequest(), VERSION, 1, "x" * RECORDS)
    longest = float("inf")
    for _ in range(3):  # a turn that was long is measured again
        with connected(port, context) as (sock, client):
            records = client.records(frame)
            broker.turns()
            sock.sendall(records)
            answer = client.read()
        assert struct.unpack_from(">ii", answer) == (len(answer) - 4, 1)
        longest = min(longest, broker.turns().longest_ms)
    assert longest <= TURN_MS


def test_the_loop_is_idle_while_a_request_waits_and_more_of_its_client_has_arrived(
    listener: TlsListener,
) -> None:
    broker, port, context = listener
    partition = {"partition": 0, "fetch_offset": 0, "partition_max_bytes": 1}
    fetch = build(
        FetchRequest,
        FETCH_VERSION,
        replica_id=-1,
        max_wait_ms=1_000,
        min_bytes=1,
        topics=[{"topic": TOPIC, "partitions": [partition]}],
    )
    unread = struct.pack(">i", 1 << 20) + bytes(UNREAD_BYTES)
    with WireClient(port, tls=context) as client, WireClient(port, tls=context) as other:
        client.send(client.frame_of(fetch, FETCH_VERSION))
        other.ask(ApiVersionsRequest(), ApiVersionsResponse, VERSION)  # so the Fetch waits now
        broker.turns()
        for position in range(0, len(unread), RECORD_BYTES):  # parts of a record stay in OpenSSL
            client.send(unread[position : position + RECORD_BYTES])
        answer = client.read_answer(FetchResponse, FETCH_VERSION)
        turns = broker.turns()
    assert answer.responses[0].partitions[0].error_code == 0
    assert turns.count < MAX_TURNS
