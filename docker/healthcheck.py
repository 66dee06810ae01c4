"""Whether the broker in this container answers: one ApiVersions round trip, exit code 0 or 1.

    healthcheck.py [HOST:PORT]

Without an argument it asks a listener of the server.properties that the entrypoint wrote: the first
without TLS, else the first. An address is asked without TLS, and by TLS if that connection is
closed, as a listener with TLS closes it. Of a broker with TLS it checks no certificate, and has
none: one that asks for it has answered. Only the standard library is used, because it runs every
few seconds and must start fast.
"""

import os
import re
import socket
import struct
import sys
from contextlib import suppress
from pathlib import Path

FILE_NAME = "odradek-server.properties"
TIMEOUT_SECONDS = 3
CORRELATION_ID = 0x0DDADEC
API_VERSIONS, VERSION = 18, 0
_LISTENER = re.compile(r"([^:,\s]+)://(?:\[([^\]]*)\]|([^:,]*)):(\d+)")
_SETTING = re.compile(
    r"^\s*(listeners|controller\.listener\.names|listener\.security\.protocol\.map)\s*[=:]\s*(.*)$",
    re.MULTILINE,
)
# A backslash that continues a line, or that stands before a separator.
_BACKSLASH = re.compile(r"\\(?:\r?\n[ \t\f]*|(?=[:=]))")
_REACHABLE = {"": "localhost", "0.0.0.0": "127.0.0.1", "::": "::1"}


def address_in(text: str) -> tuple[str, int, bool]:
    """Host and port of a listener in a file that is not a controller's, and whether it has TLS."""
    settings = dict(_SETTING.findall(_BACKSLASH.sub("", text)))
    controllers = settings.get("controller.listener.names", "").upper().split(",")
    pairs = settings.get("listener.security.protocol.map", "").upper().split(",")
    protocols = {name.strip(): text for name, _, text in (x.partition(":") for x in pairs)}
    found = [
        (_REACHABLE.get(ipv6 or host, ipv6 or host), int(port), "SSL" in protocol)
        for name, ipv6, host, port in _LISTENER.findall(settings.get("listeners", ""))
        if (upper := name.upper()) not in controllers
        for protocol in [protocols.get(upper, upper)]
    ]
    return min(found, key=lambda address: address[2], default=("127.0.0.1", 9092, False))


def ask(host: str, port: int, has_tls: bool) -> None:
    """Raises OSError or ValueError when the broker there does not answer as one should."""
    with socket.create_connection((host, port), TIMEOUT_SECONDS) as connection:
        answer = ask_by_tls(connection) if has_tls else exchange(connection)
    if len(answer) < 10:
        raise ConnectionResetError("the connection was closed before the answer")
    _, correlation_id, error_code = struct.unpack(">iih", answer)
    if (correlation_id, error_code) != (CORRELATION_ID, 0):
        raise ValueError(f"correlation id {correlation_id:#x}, error code {error_code}")


def ask_either_way(host: str, port: int) -> None:
    """Ask without TLS, then by TLS. Raises as `ask`: the error of the first if both fail."""
    try:
        ask(host, port, has_tls=False)
    except ConnectionResetError as error:
        try:
            ask(host, port, has_tls=True)
        except (OSError, ValueError):
            raise error from None


def exchange(connection: socket.socket) -> bytes:
    """Send ApiVersions. Returns the begin of the answer: length, correlation id, error code."""
    body = struct.pack(">hhih", API_VERSIONS, VERSION, CORRELATION_ID, -1)
    connection.sendall(struct.pack(">i", len(body)) + body)
    return connection.makefile("rb").read(10)


def ask_by_tls(connection: socket.socket) -> bytes:
    """Like `exchange`, by TLS. A demand for a certificate counts as the right answer.

    In TLS 1.3 it comes after the handshake, as an alert, which the end of the connection may
    overtake.
    """
    import ssl  # it takes 20 ms

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    is_encrypted = False
    try:
        with context.wrap_socket(connection) as encrypted:
            is_encrypted = True
            return exchange(encrypted)
    except (ssl.SSLError, ConnectionError) as error:
        is_demand = "CERTIFICATE_REQUIRED" in str(error) or "HANDSHAKE_FAILURE" in str(error)
        if not is_encrypted and not is_demand:
            raise
    return struct.pack(">iih", 6, CORRELATION_ID, 0)


def places() -> list[Path]:
    """Where the entrypoint's file is: in the first directory that it could write to.

    tempfile.gettempdir() is of no use here. It writes, and a broker serves on a full disk.
    """
    temporary = os.environ.get("TMPDIR")
    return [*([Path(temporary)] if temporary else []), Path("/tmp"), Path.cwd()]


def written_address() -> tuple[str, int, bool]:
    """The address in the file that the entrypoint has written. Raises OSError."""
    for place in places():
        with suppress(OSError):
            return address_in((place / FILE_NAME).read_text("latin-1"))
    raise FileNotFoundError("the entrypoint has not written it")


def main(arguments: list[str]) -> int:
    """The exit code."""
    asked = FILE_NAME
    try:
        if arguments:
            asked = arguments[0]
            host, _, port = asked.rpartition(":")
            ask_either_way(host.strip("[]"), int(port))
        else:
            address = written_address()
            asked = f"{address[0]}:{address[1]}"
            ask(*address)
    except (OSError, ValueError) as error:
        sys.stderr.write(f"{asked}: {error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
