"""Whether the broker in this container answers: one ApiVersions round trip, exit code 0 or 1.

    healthcheck.py [HOST:PORT]

Without an argument it asks the first listener of the server.properties that the entrypoint wrote.
Only the standard library is used, because it runs every few seconds and must start fast.
"""

import re
import socket
import struct
import sys
import tempfile
from pathlib import Path

FILE_NAME = "odradek-server.properties"
TIMEOUT_SECONDS = 3
CORRELATION_ID = 0x0DDADEC
API_VERSIONS, VERSION = 18, 0
_LISTENER = re.compile(r"([^:,\s]+)://(?:\[([^\]]*)\]|([^:,]*)):(\d+)")
_SETTING = re.compile(r"^\s*(listeners|controller\.listener\.names)\s*[=:]\s*(.*)$", re.MULTILINE)
_REACHABLE = {"": "localhost", "0.0.0.0": "127.0.0.1", "::": "::1"}


def address_in(text: str) -> tuple[str, int]:
    """Host and port of the first listener in a file that is not a controller's."""
    settings = dict(_SETTING.findall(text))
    controllers = settings.get("controller.listener.names", "").upper().split(",")
    for name, ipv6, host, port in _LISTENER.findall(settings.get("listeners", "")):
        if name.upper() not in controllers:
            return _REACHABLE.get(ipv6 or host, ipv6 or host), int(port)
    return "127.0.0.1", 9092


def ask(host: str, port: int) -> None:
    """Raises OSError or ValueError when the broker there does not answer as one should."""
    body = struct.pack(">hhih", API_VERSIONS, VERSION, CORRELATION_ID, -1)
    with socket.create_connection((host, port), TIMEOUT_SECONDS) as connection:
        connection.sendall(struct.pack(">i", len(body)) + body)
        answer = connection.makefile("rb").read(10)
    if len(answer) < 10:
        raise ValueError("the connection was closed before the answer")
    _, correlation_id, error_code = struct.unpack(">iih", answer)
    if (correlation_id, error_code) != (CORRELATION_ID, 0):
        raise ValueError(f"correlation id {correlation_id:#x}, error code {error_code}")


def written_address() -> tuple[str, int]:
    """The address in the file that the entrypoint has written. Raises OSError."""
    return address_in((Path(tempfile.gettempdir()) / FILE_NAME).read_text("latin-1"))


def main(arguments: list[str]) -> int:
    """The exit code."""
    asked = FILE_NAME
    try:
        if arguments:
            host, _, port = arguments[0].rpartition(":")
            address = host.strip("[]"), int(port)
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
