"""The addresses in bootstrap.servers."""

from __future__ import annotations

import socket
import time
from typing import NamedTuple

from .failure import CommandError, NoAnswerError

CONNECT_S = 3.0
# How long a broker on this machine may take to start, as in `odradek serve & odradek topics list`.
START_S = 2.0
POLL_S = 0.01


class Server(NamedTuple):
    """An address. `text`: as it is written."""

    text: str
    host: str
    port: int


def parse_servers(servers: str) -> list[Server]:
    """The addresses of bootstrap.servers. Raises CommandError."""
    found = [parse_server(text) for each in servers.split(",") if (text := each.strip())]
    if not found:
        raise CommandError("bootstrap.servers is empty")
    return found


def parse_server(text: str) -> Server:
    """One address. Raises CommandError."""
    host, _, port = text.rpartition(":")
    if not host or not port.isdecimal() or int(port) >= 1 << 16:
        raise CommandError(f"{text} is not HOST:PORT")
    return Server(text, host.strip("[]"), int(port))


def unreachable(failures: list[str]) -> NoAnswerError:
    """The failure if no address accepts a connection; `failures`: for each what is wrong."""
    return NoAnswerError(
        f"cannot connect to {', '.join(failures)}; is the broker running (odradek serve),"
        " or is it elsewhere (--bootstrap HOST:PORT)?"
    )


def connection_failure(server: str, error: OSError | UnicodeError) -> str:
    """What is wrong with an address that accepts no connection. UnicodeError: it is no name."""
    if isinstance(error, UnicodeError):
        return f"{server}: that is no name of a host"
    return f"{server}: {error.strerror or error}"


def listening_server(servers: str) -> tuple[str, int]:
    """The first server that accepts a connection. Raises CommandError if none does.

    A broker on this machine may be starting, and is waited for. One elsewhere is not: librdkafka
    would retry until its timeout.
    """
    found = parse_servers(servers)
    deadline = time.monotonic() + START_S
    while True:
        failures = []
        may_start = False
        for server in found:
            try:
                socket.create_connection((server.host, server.port), CONNECT_S).close()
            except (OSError, UnicodeError) as error:
                failures.append(connection_failure(server.text, error))
                may_start |= isinstance(error, ConnectionRefusedError) and _is_loopback(server.host)
            else:
                return server.host, server.port
        if not may_start or time.monotonic() > deadline:
            raise unreachable(failures)
        time.sleep(POLL_S)


def _is_loopback(host: str) -> bool:
    return host in ("localhost", "::1") or host.startswith("127.")
