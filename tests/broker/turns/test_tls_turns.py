"""A TLS client whose records hold one byte each keeps nobody waiting."""

import socket
import ssl
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from odradek.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from tests.support.broker_process import free_ports
from tests.support.certificates import TlsFiles
from tests.support.turns import TURN_MS, measured_broker
from tests.support.wire import WireClient, request_frame

pytestmark = pytest.mark.slow

VERSION = 0
RECORDS = 20_000
ANSWER_SECONDS = 60.0


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


def test_records_of_one_byte_keep_nobody_waiting(tmp_path: Path) -> None:
    files = TlsFiles(tmp_path / "certificates")
    plain, tls = free_ports(2)
    listeners = f"PLAINTEXT://127.0.0.1:{plain},SSL://127.0.0.1:{tls}"
    settings = files.broker_settings() | {
        "listeners": listeners,
        "advertised.listeners": listeners,
    }
    frame = request_frame(ApiVersionsRequest(), VERSION, 1, "x" * RECORDS)
    context = ssl.create_default_context(cafile=str(files.ca))
    longest = float("inf")
    with measured_broker(tmp_path / "data", settings) as broker:
        for _ in range(3):  # a turn that was long is measured again
            with connected(tls, context) as (sock, client):
                records = client.records(frame)
                broker.turns()
                sock.sendall(records)
                answer = client.read()
            assert struct.unpack_from(">ii", answer) == (len(answer) - 4, 1)
            longest = min(longest, broker.turns().longest_ms)
        with WireClient(plain) as other:
            assert other.ask(ApiVersionsRequest(), ApiVersionsResponse, VERSION).api_keys
    assert longest <= TURN_MS
