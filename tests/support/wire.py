"""A raw client: one blocking socket, and requests of exactly the version one asks for.

It builds frames and headers by itself, from Kafka's rules, so that it can also hold odradek's own
framing to them. Records are read with `odradek.protocol`.
"""

import socket
import ssl
import struct
from typing import Any, TypeVar

from odradek.protocol.api_keys import ApiKey
from odradek.protocol.schema import Message

Response = TypeVar("Response", bound=Message)

TIMEOUT_SECONDS = 100.0  # a loaded machine may need long; a test that hangs still ends


class ConnectionEndedError(ConnectionError):
    """The broker closed the connection where an answer was due."""


class WireClient:
    """One connection to a broker."""

    def __init__(
        self,
        port: int,
        *,
        client_id: str = "wire",
        timeout_s: float = TIMEOUT_SECONDS,
        own_host: str | None = None,
        receive_buffer_bytes: int | None = None,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        """`own_host` is the address by which the broker knows this client.

        `receive_buffer_bytes`: SO_RCVBUF, which Java's consumer sets to 64 KiB.
        """
        self.socket = socket.socket()
        try:
            self.socket.settimeout(timeout_s)
            if own_host is not None:
                self.socket.bind((own_host, 0))
            if receive_buffer_bytes is not None:  # before connecting: it limits the window
                self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer_bytes)
            self.socket.connect(("127.0.0.1", port))
        except OSError:
            self.socket.close()
            raise
        if tls is not None:
            self.socket = tls.wrap_socket(self.socket, server_hostname="localhost")
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.client_id = client_id
        self._correlation_id = 0

    def __enter__(self) -> "WireClient":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the socket."""
        self.socket.close()

    @property
    def local_port(self) -> int:
        """The port by which the broker knows this connection."""
        port: int = self.socket.getsockname()[1]
        return port

    def ask(self, request: Message, response: type[Response], version: int) -> Response:
        """Send one request and read its answer."""
        self.send_frame(self.frame_of(request, version)[4:])
        return self.read_answer(response, version)

    def frame_of(self, request: Message, version: int) -> bytes:
        """The bytes of a request, from the length prefix on; takes a new correlation id."""
        spec = type(request).SPEC
        assert spec.key is not None
        self._correlation_id += 1
        return request_frame(request, version, self._correlation_id, self.client_id)

    def send(self, data: bytes | memoryview) -> None:
        """Send bytes as they are."""
        self.socket.sendall(data)

    def send_frame(self, payload: bytes) -> None:
        """Send bytes behind their length."""
        self.send(struct.pack(">i", len(payload)) + payload)

    def read_answer(
        self, response: type[Response], version: int, room: memoryview | None = None
    ) -> Response:
        """Read the answer to the request sent last; into `room`, where it is given."""
        payload = self.read_frame(room)
        (correlation_id,) = struct.unpack_from(">i", payload)
        assert correlation_id == self._correlation_id, "an answer to another request"
        position = 4
        spec = response.SPEC
        if version in spec.flexible and spec.key is not ApiKey.API_VERSIONS:
            assert payload[4] == 0, "tagged fields in a response header"
            position = 5
        decoded: Any = response.decode(payload[position:], version)
        answer: Response = decoded
        return answer

    def read_frame(self, room: memoryview | None = None) -> memoryview:
        """The bytes of one frame, without its length."""
        (size,) = struct.unpack(">i", self.read_exactly(4))
        return self.read_exactly(size, room)

    def read_exactly(self, size: int, room: memoryview | None = None) -> memoryview:
        """`size` bytes; raises ConnectionEndedError when there are fewer."""
        data = (memoryview(bytearray(size)) if room is None else room)[:size]
        view = data
        while view:
            count = self.socket.recv_into(view)
            if count == 0:
                raise ConnectionEndedError(f"closed with {len(view)} of {size} bytes missing")
            view = view[count:]
        return data

    def is_closed_by_peer(self, within_s: float = TIMEOUT_SECONDS) -> bool:
        """Whether the broker ends the connection, without an answer, within that time."""
        self.socket.settimeout(within_s)
        try:
            return self.socket.recv(1) == b""
        except ConnectionError:
            return True
        except TimeoutError:
            return False
        finally:
            self.socket.settimeout(TIMEOUT_SECONDS)


def request_frame(request: Message, version: int, correlation_id: int, client_id: str) -> bytes:
    """A request's bytes on the wire: length, header (v1, or v2 where it is flexible), message."""
    spec = type(request).SPEC
    assert spec.key is not None
    name = client_id.encode()
    header = struct.pack(">hhih", spec.key, version, correlation_id, len(name)) + name
    if version in spec.flexible:
        header += b"\x00"
    payload = header + bytes(request.encode(version))
    return struct.pack(">i", len(payload)) + payload
