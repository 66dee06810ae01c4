"""The addresses in bootstrap.servers."""

from __future__ import annotations

from typing import NamedTuple

from .failure import CommandError, NoAnswerError


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
